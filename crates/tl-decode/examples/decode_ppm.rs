//! Decodes one image file to a binary PPM on standard output: `decode_ppm FILE`.
//!
//! Without an argument it decodes a small image of the test data and writes only its size.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use tl_decode::{DecodeError, DecodeOptions, Decoder, Image, probe};

fn main() -> ExitCode {
    let result = match std::env::args_os().nth(1) {
        Some(path) => std::fs::read(path).map_err(Into::into).and_then(|bytes| write_ppm(&bytes)),
        None => describe_sample(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "an example tells its error")]
            {
                eprintln!("decode_ppm: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn write_ppm(bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let image = decode(bytes)?;
    let mut out = io::stdout().lock();
    write!(out, "P6\n{} {}\n255\n", image.width, image.height)?;
    out.write_all(&image.data)?;
    Ok(())
}

fn describe_sample() -> Result<(), Box<dyn Error>> {
    let bytes = include_bytes!("../testdata/png/rgb8.png");
    let info = probe(bytes)?;
    let image = decode(bytes)?;
    writeln!(
        io::stdout(),
        "{}: {}x{}, {} bytes",
        info.format,
        info.width,
        info.height,
        image.data.len()
    )?;
    Ok(())
}

fn decode(bytes: &[u8]) -> Result<Image, DecodeError> {
    let mut image = Image::new();
    Decoder::new(DecodeOptions::default()).decode_into(bytes, &mut image)?;
    Ok(image)
}
