//! Decodes a part of a JPEG image at a smaller scale to a binary PPM on standard output:
//! `jpeg_region FILE SCALE X Y WIDTH HEIGHT`, where SCALE is 1, 2, 4 or 8 and the rectangle is in
//! pixels of the scaled image.
//!
//! Without arguments it decodes a part of a small image of the test data and writes only its size.

use std::error::Error;
use std::io::{self, Write};

use tl_decode::{Image, JpegDecoder, JpegRequest, Limits, Rect, Scale};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout().lock();
    if let [path, scale, x, y, width, height] = &arguments[..] {
        let region =
            Rect { x: x.parse()?, y: y.parse()?, width: width.parse()?, height: height.parse()? };
        let image = decode(&std::fs::read(path)?, scale_of(scale)?, region)?;
        write!(out, "P6\n{} {}\n255\n", image.width, image.height)?;
        out.write_all(&image.data)?;
    } else {
        let bytes = include_bytes!("../testdata/jpeg/420.jpg");
        let image = decode(bytes, Scale::HALF, Rect { x: 2, y: 1, width: 8, height: 4 })?;
        writeln!(out, "{}x{}, {} bytes", image.width, image.height, image.data.len())?;
    }
    Ok(())
}

fn scale_of(divisor: &str) -> Result<Scale, Box<dyn Error>> {
    Ok(match divisor {
        "1" => Scale::FULL,
        "2" => Scale::HALF,
        "4" => Scale::QUARTER,
        "8" => Scale::EIGHTH,
        _ => return Err("the scale is one of 1, 2, 4 and 8".into()),
    })
}

/// A training loop keeps the decoder and the image, which keep their memory.
fn decode(bytes: &[u8], scale: Scale, region: Rect) -> Result<Image, Box<dyn Error>> {
    let mut decoder = JpegDecoder::new(Limits::default());
    let mut image = Image::new();
    let request = JpegRequest { scale, region: Some(region), ..JpegRequest::default() };
    decoder.decode(bytes, &request, &mut image)?;
    Ok(image)
}
