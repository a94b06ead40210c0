//! `tl decode`: one image to a PPM, or to a line that says what it is.

mod part;

use std::io::{self, Write};
use std::path::PathBuf;

use tl_decode::{DecodeOptions, Image, JpegRequest, Level, Rect, Scale, probe};

use crate::args::{DamageChoice, ExifChoice, GlobalArgs};
use crate::data_set::{self, Sample};
use crate::failure::{Failure, Subject, Verdict};
use crate::output::{Stdout, note, write_file};
use crate::pixels::SampleDecoder;

/// Decode one image, strictly: damaged or truncated data is an error
///
/// --ppm writes a binary PPM (P6, 8 bits, RGB); without it, the command prints format and size.
/// Alpha is dropped, colour profiles are not applied, and samples of 9 to 16 bits keep their 8 most
/// significant bits (for grey, Pillow clips instead). --region, --scale and --level work for JPEG
/// only.
///
/// Examples:
///   tl decode photo.jpg --ppm > photo.ppm
///   tl decode photo.jpg --scale 1/4 --region 10,20,64,48 --ppm > part.ppm
///   tl decode train.tbl --index 17 --ppm -o 17.ppm
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// An image file, or with --index a data set
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Write the pixels as a binary PPM
    #[arg(long)]
    pub(crate) ppm: bool,

    /// Decode the sample with this number; FILE is a data set
    #[arg(long, value_name = "INDEX")]
    pub(crate) index: Option<u64>,

    /// Whether to turn the image upright, by its EXIF or XMP orientation
    ///
    /// TIFF images are always decoded upright, as Pillow opens them.
    #[arg(long, value_enum, value_name = "CHOICE", default_value_t = ExifChoice::Ignore)]
    pub(crate) exif: ExifChoice,

    /// Decode only this part: X,Y,WIDTH,HEIGHT in pixels of the scaled image
    #[arg(long, value_name = "REGION", value_parser = part::region, conflicts_with = "exif")]
    pub(crate) region: Option<Rect>,

    /// Decode at another size: 1/8 to 16/8, such as 1/4 or 3/8
    #[arg(long, value_name = "SCALE", value_parser = part::scale, conflicts_with = "exif")]
    pub(crate) scale: Option<Scale>,

    /// Decode with this instruction set: scalar, avx2, avx512 or neon, if the CPU has it
    #[arg(long, value_name = "LEVEL", value_parser = part::level, conflicts_with = "exif")]
    pub(crate) level: Option<Level>,

    /// Handling of damaged JPEG data
    #[arg(long, value_enum, value_name = "CHOICE", default_value_t = DamageChoice::Error)]
    pub(crate) on_damaged: DamageChoice,

    /// Write the PPM to this file instead of standard output
    #[arg(short, long, value_name = "OUT", requires = "ppm")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the output file if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Decodes the image.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let mut decoder = decoder(args);
    let mut image = Image::new();
    let of = match args.index {
        None => {
            decoder.file(&args.file, &mut image)?;
            Subject::file(&args.file)
        }
        Some(index) => {
            let (source, local) = data_set::open_sample(global, &args.file, index)?;
            let sample = Sample { source: &*source, local, index };
            decoder.sample(sample, &mut image)?;
            sample.subject(&sample.entry()?)
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

fn decoder(args: &Args) -> SampleDecoder {
    let on_damaged = args.on_damaged.into();
    let options = DecodeOptions { exif: args.exif.into(), on_damaged, ..DecodeOptions::default() };
    let decoder = SampleDecoder::new(options);
    if args.region.is_none() && args.scale.is_none() && args.level.is_none() {
        return decoder;
    }
    let scale = args.scale.unwrap_or_default();
    let region = args.region;
    let request = JpegRequest { scale, region, on_damaged, ..JpegRequest::default() };
    decoder.of_part(request, args.level.unwrap_or_else(Level::detect))
}

/// Writes `image`, which is RGB, as a binary PPM.
fn write_ppm(to: &mut dyn Write, image: &Image) -> io::Result<()> {
    write!(to, "P6\n{} {}\n255\n", image.width, image.height)?;
    to.write_all(&image.data)
}
