//! `tl decode`: one image to a PPM, or to a line that says what it is.

use std::io::{self, Write};

use tl_decode::{DecodeOptions, Exif, Image, JpegRequest, Level, probe};

use crate::args::{DecodeArgs, ExifChoice};
use crate::data_set;
use crate::failure::{Failure, Subject, Verdict};
use crate::output::{Stdout, note, write_file};
use crate::pixels::SampleDecoder;

/// Decodes the image.
pub(crate) fn run(args: &DecodeArgs) -> Result<Verdict, Failure> {
    let mut decoder = decoder(args);
    let mut image = Image::new();
    let of = match args.index {
        None => {
            decoder.file(&args.file, &mut image)?;
            Subject::file(&args.file)
        }
        Some(index) => {
            let source = data_set::open(&args.file)?;
            decoder.sample(source.as_ref(), index, &mut image)?;
            Subject::sample(source.as_ref(), index, &source.entry(index)?)
        }
    };
    if let Some(damage) = decoder.damage() {
        note(&format_args!("{of}: damaged at byte {}: {}", damage.offset, damage.what));
    }
    if args.ppm {
        return match &args.output {
            Some(path) => write_file(path, args.force, |file| write_ppm(file, &image)),
            None => {
                let mut stdout = Stdout::open_binary()?;
                write_ppm(&mut stdout, &image).map_err(Failure::stdout)?;
                stdout.finish()
            }
        }
        .map(|()| Verdict::Good);
    }
    let mut stdout = Stdout::open()?;
    let stored = match probe(decoder.bytes()) {
        Ok(info) => {
            format!("{}, {} channels of {} bits", info.format, info.channels, info.bit_depth)
        }
        // It has decoded, so only a sample of raw pixels has no header.
        Err(_) => "raw pixels".to_owned(),
    };
    stdout.line(&format_args!("{of}: {}x{} {stored}", image.width, image.height))?;
    stdout.finish()?;
    Ok(Verdict::Good)
}

fn decoder(args: &DecodeArgs) -> SampleDecoder {
    let exif = match args.exif {
        ExifChoice::Ignore => Exif::Ignore,
        ExifChoice::Apply => Exif::Apply,
    };
    let on_damaged = args.on_damaged.into();
    let options = DecodeOptions { exif, on_damaged, ..DecodeOptions::default() };
    let decoder = SampleDecoder::new(options);
    if args.region.is_none() && args.scale.is_none() && args.level.is_none() {
        return decoder;
    }
    let (scale, region) = (args.scale.unwrap_or_default(), args.region);
    let request = JpegRequest { scale, region, on_damaged, ..JpegRequest::default() };
    decoder.of_part(request, args.level.unwrap_or_else(Level::detect))
}

/// Writes `image`, which is RGB, as a binary PPM.
fn write_ppm(to: &mut dyn Write, image: &Image) -> io::Result<()> {
    write!(to, "P6\n{} {}\n255\n", image.width, image.height)?;
    to.write_all(&image.data)
}
