//! Loads images of a format that is not built in: FITS 4.0, of astronomy (the standard of the IAU's
//! FITS working group, sections 3 to 5). One image of two axes is read, of 8, 16 or 32 bits or floats,
//! with its physical values (`BZERO`, `BSCALE`) as grey floats.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::fs;
use std::path::Path;

use tl_decode::{CustomError, Decode, Decoders, Image, ImageForm, Limits, PixelType};
use tl_pipeline::{Dataset, Loader, LoaderConfig, Work};
use tl_transform::op::{CenterCrop, Resize, Size};
use tl_transform::{Channels, Dtype, Layout, OutputSpec, Recipe};

/// Headers and data fill blocks of this many bytes, and a header has cards of 80.
const BLOCK: usize = 2880;
const CARD: usize = 80;

/// The decoder of FITS files.
struct Fits;

/// The numbers of a header, and the place of the data.
struct Header {
    /// Bits of a number, negative for floats.
    bits: i64,
    width: u32,
    height: u32,
    zero: f64,
    scale: f64,
    data: usize,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self, CustomError> {
        let mut header = Self { bits: 0, width: 0, height: 0, zero: 0.0, scale: 1.0, data: 0 };
        for (number, card) in bytes.chunks_exact(CARD).enumerate() {
            let card = str::from_utf8(card)?;
            let keyword = card.get(..8).unwrap_or_default().trim_end();
            let value = card.get(10..).unwrap_or_default().split('/').next().unwrap_or_default();
            let value = value.trim();
            match keyword {
                "BITPIX" => header.bits = value.parse()?,
                "NAXIS" if value != "2" => return Err(format!("{value} axes, expected 2").into()),
                "NAXIS1" => header.width = value.parse()?,
                "NAXIS2" => header.height = value.parse()?,
                "BZERO" => header.zero = value.parse()?,
                "BSCALE" => header.scale = value.parse()?,
                "END" => {
                    header.data = (number * CARD + CARD).next_multiple_of(BLOCK);
                    return Ok(header);
                }
                _ => {}
            }
        }
        Err("no END in the header".into())
    }

    /// The physical values of one row.
    fn values(&self, row: &[u8]) -> Result<Vec<f32>, CustomError> {
        let stored: Vec<f64> = match self.bits {
            8 => row.iter().map(|&byte| byte.into()).collect(),
            16 => row.as_chunks().0.iter().map(|two| i16::from_be_bytes(*two).into()).collect(),
            32 => row.as_chunks().0.iter().map(|four| i32::from_be_bytes(*four).into()).collect(),
            -32 => row.as_chunks().0.iter().map(|four| f32::from_be_bytes(*four).into()).collect(),
            bits => return Err(format!("BITPIX is {bits}, expected 8, 16, 32 or -32").into()),
        };
        #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest float")]
        let physical = |value: f64| (self.zero + self.scale * value) as f32;
        Ok(stored.into_iter().map(physical).collect())
    }
}

impl Decode for Fits {
    fn takes(&self, extension: &str, bytes: &[u8]) -> bool {
        matches!(extension, "fits" | "fit") || bytes.starts_with(b"SIMPLE  =")
    }

    fn probe(&self, bytes: &[u8]) -> Result<Option<ImageForm>, CustomError> {
        let Header { width, height, .. } = Header::read(bytes)?;
        Ok(Some(ImageForm { width, height, channels: 1, pixels: PixelType::F32 }))
    }

    fn decode(&self, bytes: &[u8], _: &Limits, image: &mut Image) -> Result<(), CustomError> {
        let header = Header::read(bytes)?;
        let row = usize::try_from(header.width)? * usize::try_from(header.bits.unsigned_abs() / 8)?;
        let rows = usize::try_from(header.height)?;
        let data = bytes.get(header.data..).unwrap_or_default();
        let need = row.checked_mul(rows).filter(|&need| need > 0 && need <= data.len());
        let data = need.and_then(|need| data.get(..need)).ok_or_else(|| {
            format!("{rows} rows of {row} bytes do not fit in {} bytes of data", data.len())
        })?;
        // The first row is the lowest.
        for row in data.rchunks_exact(row) {
            let values = header.values(row)?;
            image.data.extend(values.iter().flat_map(|value| value.to_ne_bytes()));
        }
        (image.width, image.height, image.channels) = (header.width, header.height, 1);
        image.pixels = PixelType::F32;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    for (name, bits, zero) in [("a.fits", 8, 0), ("b.fits", 16, 32768), ("c.fits", -32, 0)] {
        write_fits(&folder.path().join(name), bits, zero)?;
    }
    let operations = vec![Resize::new(32).into(), CenterCrop { size: Size::exact(24, 24) }.into()];
    let output = OutputSpec { dtype: Dtype::F32, layout: Layout::Chw };
    let recipe = Recipe::on_pixels(PixelType::F32, Channels::Grey, operations, output)?;
    let config = LoaderConfig {
        batch_size: 3,
        decoders: Decoders::new().with("fits", 1, Fits),
        ..LoaderConfig::new(Work::Images(recipe))
    };
    let loader = Loader::new(Dataset::open(&[folder.path()])?, config)?;
    for batch in loader.epoch(0) {
        let batch = batch?;
        println!("{:?}", batch.shape());
        for (row, image) in batch.images_f32().unwrap_or_default().chunks(24 * 24).enumerate() {
            println!("image {row}: {:.1} in the upper left corner", image[0]);
        }
    }
    Ok(())
}

/// A FITS file of 48 x 40 numbers, which rise from the lowest row to the highest.
fn write_fits(path: &Path, bits: i64, zero: i64) -> std::io::Result<()> {
    let cards = [
        "SIMPLE  =                    T".to_owned(),
        format!("BITPIX  = {bits:20}"),
        "NAXIS   =                    2".to_owned(),
        "NAXIS1  =                   48 / columns".to_owned(),
        "NAXIS2  =                   40".to_owned(),
        format!("BZERO   = {zero:20}"),
        "END".to_owned(),
    ];
    let mut file: Vec<u8> =
        cards.iter().flat_map(|card| format!("{card:<80}").into_bytes()).collect();
    file.resize(file.len().next_multiple_of(BLOCK), b' ');
    for row in 0..40_u8 {
        for _ in 0..48 {
            match bits {
                8 => file.push(row),
                16 => file.extend((i16::from(row) - i16::MAX).to_be_bytes()),
                _ => file.extend((f32::from(row) / 2.0).to_be_bytes()),
            }
        }
    }
    file.resize(file.len().next_multiple_of(BLOCK), 0);
    fs::write(path, file)
}
