//! Single images: their header, and their pixels.

use pyo3::prelude::*;
use tl_decode::{
    Color, DecodeOptions, Decoder, Image, ImageInfo, JpegRequest, PixelType, Rect, Scale,
};
use tl_transform::Channels;

use crate::detached::detached;
use crate::element::Element;
use crate::error::Error;
use crate::memory::Memory;
use crate::recipe;
use crate::tensor::Tensor;

/// The header of an image.
#[pyclass(frozen, get_all, name = "ImageInfo", module = "turboloader")]
pub(crate) struct PyImageInfo {
    /// The file format, as in ``"JPEG"``.
    format: String,
    /// Pixels in a row, as stored.
    width: u32,
    /// Rows, as stored.
    height: u32,
    /// Channels, as stored.
    channels: u8,
    /// Bits of one stored sample.
    bit_depth: u8,
    /// Width and height once the image is turned as its EXIF data say.
    upright_size: (u32, u32),
}

#[pymethods]
impl PyImageInfo {
    fn __repr__(&self) -> String {
        let Self { format, width, height, channels, bit_depth, .. } = self;
        format!(
            "ImageInfo(format={format:?}, width={width}, height={height}, channels={channels}, \
             bit_depth={bit_depth})"
        )
    }
}

/// Reads the header of an image of any format that is decoded.
#[pyfunction]
pub(crate) fn probe(data: &[u8]) -> Result<PyImageInfo, Error> {
    let info = tl_decode::probe(data)?;
    let ImageInfo { format, width, height, channels, bit_depth, .. } = info;
    let format = format.to_string();
    let upright_size = info.upright_size();
    Ok(PyImageInfo { format, width, height, channels, bit_depth, upright_size })
}

/// Decodes an image of any format to rows of red, green and blue, of grey with ``gray``, or of this
/// type of pixels and as many channels; ``region`` of it is (x, y, width, height).
#[pyfunction]
#[pyo3(signature = (data, *, region=None, gray=false, exif=false, channels=None, pixels="uint8"))]
pub(crate) fn decode(
    py: Python<'_>,
    data: &[u8],
    region: Option<(u32, u32, u32, u32)>,
    gray: bool,
    exif: bool,
    channels: Option<u32>,
    pixels: &str,
) -> PyResult<Tensor> {
    let color = match channels {
        None => color(gray),
        Some(_) if gray => {
            let what = "conflicting settings: gray and channels; pass channels=1 alone";
            return Err(Error::setting(&what).into());
        }
        Some(count) => match recipe::channels(count)? {
            Channels::Grey => Color::Grey,
            Channels::Rgb => Color::Rgb,
            Channels::Rgba => Color::Rgba,
        },
    };
    let options = DecodeOptions {
        color,
        pixels: recipe::pixels(pixels)?,
        exif: recipe::orientation(exif),
        ..DecodeOptions::default()
    };
    let decoded = detached(py, || {
        let mut image = Image::new();
        let mut decoder = Decoder::new(options);
        match region {
            Some(part) => decoder.decode_region(data, rect(part), &mut image),
            None => decoder.decode_into(data, &mut image),
        }
        .map(|()| image)
    })?;
    tensor(&decoded.map_err(Error::from)?, channels.is_none())
}

/// Decodes a part of a JPEG image, at 1/8 to 16/8 of its size.
///
/// ``region`` is (x, y, width, height) in pixels of the scaled image.
#[pyfunction]
#[pyo3(signature = (data, *, region=None, eighths=8, gray=false))]
pub(crate) fn decode_jpeg(
    py: Python<'_>,
    data: &[u8],
    region: Option<(u32, u32, u32, u32)>,
    eighths: u8,
    gray: bool,
) -> PyResult<Tensor> {
    let scale = Scale::from_eighths(eighths).ok_or_else(|| {
        let most = Scale::MOST_EIGHTHS;
        Error::setting(&format!("eighths is {eighths}, expected 1 to {most}"))
    })?;
    let region = region.map(rect);
    let request = JpegRequest { scale, region, color: color(gray), ..JpegRequest::default() };
    let decoded = detached(py, || {
        let mut image = Image::new();
        Decoder::default().jpeg().decode(data, &request, &mut image).map(|_| image)
    })?;
    tensor(&decoded.map_err(Error::from)?, true)
}

const fn rect(region: (u32, u32, u32, u32)) -> Rect {
    let (x, y, width, height) = region;
    Rect { x, y, width, height }
}

const fn color(gray: bool) -> Color {
    if gray { Color::Grey } else { Color::Rgb }
}

/// An image as a tensor; one channel has no dimension of its own where it is `squeezed`.
fn tensor(image: &Image, squeezed: bool) -> PyResult<Tensor> {
    let height = image.height as usize;
    let width = image.width as usize;
    let shape = match image.channels {
        1 if squeezed => vec![height, width],
        channels => vec![height, width, usize::from(channels)],
    };
    let element = match image.pixels {
        PixelType::U8 => Element::U8,
        PixelType::U16 => Element::U16,
        PixelType::F32 => Element::F32,
    };
    Ok(Tensor::new(Memory::of(&image.data)?, shape, element))
}
