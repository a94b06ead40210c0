//! Rows of samples to rows of pixels: upsampling and colour conversion.

use tl_simd::Level;
use tl_simd::interleave::interleave;
use tl_simd::jpeg::{replicate, upsample_h1v2, upsample_h2v1, upsample_h2v2, ycc_to_rgb};

use super::frame::PlaneColor;
use super::geometry::{ComponentGeometry, Geometry, Upsampling};
use super::output::PlaneBuffer;
use super::scan::MAX_COMPONENTS;
use crate::options::Color;
use crate::pixel::Layout;

/// Channels of a pixel.
const RGB: usize = 3;

/// The conversion of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pixels {
    /// Pixels as Pillow's `convert` makes them.
    Converted(Color),
    /// The samples as they are stored, side by side; only `YCbCr` becomes RGB.
    Stored,
}

impl Pixels {
    /// Bytes per pixel of an image with this many components.
    pub(super) fn channels(self, components: u8) -> u8 {
        match self {
            Self::Converted(color) => color.channels(),
            Self::Stored => components,
        }
    }
}

/// Memory reused from image to image.
#[derive(Clone, Debug, Default)]
pub(super) struct RowBuffers {
    upsampled: [Vec<u8>; MAX_COMPONENTS],
    pixels: Vec<u8>,
}

impl RowBuffers {
    pub(super) fn kept_bytes(&self) -> usize {
        self.upsampled.iter().map(Vec::capacity).sum::<usize>() + self.pixels.capacity()
    }
}

/// Writes the rows of an image from top to bottom.
pub(super) struct RowWriter<'a> {
    level: Level,
    color: PlaneColor,
    pixels: Pixels,
    buffers: &'a mut RowBuffers,
    /// The rest of the image, row by row.
    rows: std::slice::ChunksExactMut<'a, u8>,
    /// The row of the scaled image that is written next.
    next: u32,
}

impl<'a> RowWriter<'a> {
    /// Writes into `image`, which has room for exactly the region.
    pub(super) fn new(
        level: Level,
        geometry: &Geometry,
        color: PlaneColor,
        pixels: Pixels,
        buffers: &'a mut RowBuffers,
        image: &'a mut [u8],
    ) -> Self {
        let width = geometry.region.width as usize;
        for (buffer, component) in buffers.upsampled.iter_mut().zip(geometry.components()) {
            grow(buffer, component.columns.len() * component.upsampling.across() as usize);
        }
        grow(&mut buffers.pixels, width * (RGB + MAX_COMPONENTS));
        let row_bytes = image.len() / geometry.region.height as usize;
        let rows = image.chunks_exact_mut(row_bytes.max(1));
        Self { level, color, pixels, buffers, rows, next: geometry.region.y }
    }

    /// Writes the rows above row `end` of the scaled image that have not been written.
    pub(super) fn write_until(
        &mut self,
        end: u32,
        geometry: &Geometry,
        planes: &[PlaneBuffer; MAX_COMPONENTS],
    ) {
        while self.next < end {
            let Some(out) = self.rows.next() else { return };
            let RowBuffers { upsampled, pixels } = &mut *self.buffers;
            let mut rows = [&[][..]; MAX_COMPONENTS];
            let sources = geometry.components().iter().zip(planes).zip(upsampled);
            for (row, ((component, plane), buffer)) in rows.iter_mut().zip(sources) {
                let x = geometry.region.x;
                let width = geometry.region.width;
                *row = pixel_row(self.level, component, plane, x, self.next, buffer);
                *row = &row[..width as usize];
            }
            match self.pixels {
                Pixels::Converted(color) => {
                    convert(self.level, self.color, color, rows, pixels, out);
                }
                Pixels::Stored => store(self.level, self.color, rows, out),
            }
            self.next += 1;
        }
    }
}

/// Makes a row of pixels of a row of samples of each component.
fn convert(
    level: Level,
    from: PlaneColor,
    to: Color,
    rows: [&[u8]; MAX_COMPONENTS],
    scratch: &mut [u8],
    out: &mut [u8],
) {
    let [a, b, c, black] = rows;
    let width = a.len();
    let (rgb, inks) = scratch.split_at_mut(RGB * width);
    let inks = &mut inks[..MAX_COMPONENTS * width];
    match (from, to) {
        (PlaneColor::Grey, _) => Layout::Grey.convert(a, out, to),
        (PlaneColor::YCbCr, Color::Rgb) => ycc_to_rgb(level, [a, b, c], out),
        (PlaneColor::Rgb, Color::Rgb) => interleave(level, [a, b, c], out),
        (PlaneColor::YCbCr, Color::Grey | Color::Rgba) => {
            ycc_to_rgb(level, [a, b, c], rgb);
            Layout::Rgb.convert(rgb, out, to);
        }
        (PlaneColor::Rgb, Color::Grey | Color::Rgba) => {
            interleave(level, [a, b, c], rgb);
            Layout::Rgb.convert(rgb, out, to);
        }
        (PlaneColor::Cmyk, _) => {
            let samples = a.iter().zip(b).zip(c).zip(black);
            for (ink, (((a, b), c), d)) in inks.as_chunks_mut::<4>().0.iter_mut().zip(samples) {
                *ink = [a, b, c, d].map(|sample| 255 - sample);
            }
            Layout::Cmyk.convert(inks, out, to);
        }
        (PlaneColor::Ycck, _) => {
            // The colour differences give 255 minus each of the inks as Adobe stores them,
            // and those are 255 minus the amount of ink.
            ycc_to_rgb(level, [a, b, c], rgb);
            let samples = rgb.as_chunks::<RGB>().0.iter().zip(black);
            for (ink, (&[r, g, b], black)) in inks.as_chunks_mut::<4>().0.iter_mut().zip(samples) {
                *ink = [r, g, b, 255 - black];
            }
            Layout::Cmyk.convert(inks, out, to);
        }
    }
}

/// The samples side by side, of four components or fewer.
fn store(level: Level, color: PlaneColor, rows: [&[u8]; MAX_COMPONENTS], out: &mut [u8]) {
    let [a, b, c, d] = rows;
    match color {
        PlaneColor::Grey => out.copy_from_slice(a),
        PlaneColor::YCbCr => ycc_to_rgb(level, [a, b, c], out),
        PlaneColor::Rgb => interleave(level, [a, b, c], out),
        PlaneColor::Cmyk | PlaneColor::Ycck => {
            let samples = a.iter().zip(b).zip(c).zip(d);
            for (out, (((&a, &b), &c), &d)) in out.as_chunks_mut::<4>().0.iter_mut().zip(samples) {
                *out = [a, b, c, d];
            }
        }
    }
}

/// Row `y` of the scaled image of one component, from pixel `x` on.
fn pixel_row<'a>(
    level: Level,
    component: &ComponentGeometry,
    plane: &'a PlaneBuffer,
    x: u32,
    y: u32,
    buffer: &'a mut [u8],
) -> &'a [u8] {
    let columns = &component.columns;
    let row = |row: u32| plane.row(row, columns);
    // The filter is centred on the sample whose half the row is in, and reaches to that half's
    // side.
    let near = y / 2;
    let lower = y % 2 == 1;
    let far = if lower { (near + 1).min(component.size.1 - 1) } else { near.saturating_sub(1) };
    let across = component.upsampling.across();
    let out = columns.len() * across as usize;
    match component.upsampling {
        Upsampling::None | Upsampling::Fractional => return row(y),
        Upsampling::Replicate(1, down) => return row(y / down),
        Upsampling::Replicate(across, down) => {
            replicate(level, row(y / down), across as usize, &mut buffer[..out]);
        }
        Upsampling::H2V1 => upsample_h2v1(level, row(y), &mut buffer[..out]),
        Upsampling::H1V2 => upsample_h1v2(level, row(near), row(far), lower, &mut buffer[..out]),
        Upsampling::H2V2 => upsample_h2v2(level, row(near), row(far), &mut buffer[..out]),
    }
    &buffer[(x - columns.start * across) as usize..out]
}

fn grow(buffer: &mut Vec<u8>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
}
