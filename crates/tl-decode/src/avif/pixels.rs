//! Planes to pixels: planes of colour become as large as that of Y, and each pixel is converted.

use tl_av1::Layout as Chroma;

use super::color::{Conversion, Fixed, Float, Samples};
use super::planes::{Alpha, Planes};
use super::properties::Nclx;
use crate::error::DecodeError;
use crate::image::Image;
use crate::options::Color;
use crate::pixel::Layout;

/// The decoded parts of an image.
pub(super) struct Pixels<'a> {
    pub(super) color: &'a Planes,
    /// `None` if it is dropped as well.
    pub(super) alpha: Option<Alpha<'a>>,
    /// Whether the file has alpha, on which Pillow's colours depend: it asks libavif for other pixels.
    pub(super) has_alpha: bool,
    pub(super) is_premultiplied: bool,
    pub(super) nclx: Option<Nclx>,
}

/// The steps from planes to pixels.
#[derive(Clone, Copy, Debug)]
enum Steps {
    /// Y alone, in floating point.
    Grey(Float),
    /// Y alone, in integers.
    GreyFixed(Fixed),
    /// Samples of 8 bits, of which more had their low bits dropped, interpolated.
    Bytes(Fixed),
    /// Samples of 10 bits, interpolated.
    Ten(Fixed),
    /// Samples of 12 bits, of which those of colour are repeated.
    Twelve(Fixed),
    /// Samples of any size, interpolated, in floating point.
    Float(Float),
}

impl Steps {
    /// The bits that samples lose at first.
    fn dropped(self, bit_depth: u8) -> u32 {
        match self {
            Self::Bytes(_) | Self::GreyFixed(_) => bit_depth.saturating_sub(8).into(),
            Self::Grey(_) | Self::Ten(_) | Self::Twelve(_) | Self::Float(_) => 0,
        }
    }

    /// Whether alpha is rounded to 8 bits, which loses its low bits otherwise.
    fn rounds_alpha(self) -> bool {
        match self {
            Self::Bytes(_) | Self::Ten(_) => false,
            Self::Grey(_) | Self::GreyFixed(_) | Self::Twelve(_) | Self::Float(_) => true,
        }
    }
}

/// Rows of samples, as many in each as the image has columns.
#[derive(Debug, Default)]
struct Rows {
    luma: Vec<u16>,
    /// U and V in sixteenths.
    chroma: [Vec<u32>; 2],
    /// The same for conversions in floating point, as numbers around 0.
    floats: [Vec<f32>; 2],
    /// Stored rows, to be read.
    near: Vec<u16>,
    far: Vec<u16>,
}

impl Pixels<'_> {
    pub(super) fn convert(
        &self,
        color: Color,
        scratch: &mut Vec<u8>,
        image: &mut Image,
    ) -> Result<(), DecodeError> {
        let steps = self.steps()?;
        let is_grey = self.color.is_monochrome() && !self.has_alpha;
        let with_alpha = self.alpha.is_some();
        let layout = match (is_grey, with_alpha) {
            (true, _) => Layout::Grey,
            (false, false) => Layout::Rgb,
            (false, true) => Layout::Rgba,
        };
        let channels = if is_grey { 1 } else { 3 + usize::from(with_alpha) };
        let mut rows = Rows::default();
        let mut alpha_row = vec![0; if with_alpha { self.color.width } else { 0 }];
        scratch.clear();
        scratch.resize(self.color.width * channels, 0);
        for y in 0..self.color.height {
            self.read(steps, y, &mut rows);
            match channels {
                1 => fill_grey(steps, &rows, scratch),
                _ => fill_colors(steps, &rows, scratch, channels),
            }
            if let Some(alpha) = self.alpha {
                alpha.write_row(y, steps.rounds_alpha(), &mut rows.near, &mut alpha_row);
                let (pixels, _) = scratch.as_chunks_mut::<4>();
                for (pixel, alpha) in pixels.iter_mut().zip(&alpha_row) {
                    pixel[3] = *alpha;
                    if self.is_premultiplied {
                        divide(pixel);
                    }
                }
            }
            layout.convert(scratch, image.row_mut(y), color);
        }
        Ok(())
    }

    /// The conversion that libavif takes for the pixels that Pillow asks for: grey, RGB or RGBA.
    fn steps(&self) -> Result<Steps, DecodeError> {
        let planes = self.color;
        let nclx = self.nclx.unwrap_or(Nclx {
            primaries: UNSPECIFIED_PRIMARIES,
            matrix: planes.matrix.into(),
            full_range: planes.full_range,
        });
        let samples = Samples {
            bit_depth: planes.bit_depth,
            is_monochrome: planes.is_monochrome(),
            is_subsampled: matches!(planes.layout, Chroma::Yuv420 | Chroma::Yuv422),
        };
        let conversion = Conversion::of(nclx, samples)?;
        if planes.is_monochrome() && !self.has_alpha {
            return Ok(Steps::Grey(Float::of_grey(planes.bit_depth, nclx.full_range)));
        }
        let is_420 = planes.layout == Chroma::Yuv420;
        Ok(match (conversion, planes.bit_depth) {
            (Conversion::Float(float), _) => Steps::Float(float),
            (Conversion::Fixed(fixed), _) if planes.is_monochrome() => Steps::GreyFixed(fixed),
            (Conversion::Fixed(fixed), 10) if self.has_alpha => Steps::Ten(fixed),
            (Conversion::Fixed(fixed), 12) if self.has_alpha && is_420 => Steps::Twelve(fixed),
            (Conversion::Fixed(fixed), _) => Steps::Bytes(fixed),
        })
    }

    /// Reads row `y` of all planes.
    fn read(&self, steps: Steps, y: usize, rows: &mut Rows) {
        let planes = self.color;
        let drop = steps.dropped(planes.bit_depth);
        planes.read_row(0, y, drop, &mut rows.luma);
        let Some([right, down]) = planes.layout.shift() else { return };
        let is_repeated = matches!(steps, Steps::Twelve(_));
        let last = planes.height.div_ceil(1 << down) - 1;
        let near = y >> down;
        let far = match (down, is_repeated, y % 2) {
            (0, ..) | (_, true, _) => near,
            (_, _, 0) => near.saturating_sub(1),
            _ => (near + 1).min(last),
        };
        for (plane, row) in rows.chroma.iter_mut().enumerate() {
            planes.read_row(plane + 1, near, drop, &mut rows.near);
            planes.read_row(plane + 1, far, drop, &mut rows.far);
            row.clear();
            if let Steps::Float(float) = steps {
                let [near, far] = [&rows.near, &rows.far];
                widen_floats(near, far, right, planes.width, float, &mut rows.floats[plane]);
            } else if right == 0 || is_repeated {
                row.extend((0..planes.width).map(|x| 16 * u32::from(rows.near[x >> right])));
            } else {
                widen(&rows.near, &rows.far, planes.width, row);
            }
        }
    }
}

/// The code point of primaries that are not stated.
const UNSPECIFIED_PRIMARIES: u16 = 2;

/// Interpolates between samples of colour, of which each is in the middle of two or four pixels: by
/// 9, 3, 3 and 1 sixteenths. The outermost columns have the nearest sample's, at odd widths too.
fn widen(near: &[u16], far: &[u16], width: usize, to: &mut Vec<u32>) {
    let tall = |x: usize| 3 * u32::from(near[x]) + u32::from(far[x]);
    let last = width - 1;
    to.extend((0..width).map(|x| {
        let at = x / 2;
        let next = match x {
            0 => at,
            x if x == last => at,
            x if x % 2 == 0 => at - 1,
            _ => at + 1,
        };
        3 * tall(at) + tall(next)
    }));
}

/// The same by libavif's definition, which rounds nothing before the end and has the neighbours' share
/// in the last of an odd number of columns too.
fn widen_floats(
    near: &[u16],
    far: &[u16],
    shift: u32,
    width: usize,
    float: Float,
    to: &mut Vec<f32>,
) {
    let level = |row: &[u16], x: usize| float.chroma(row[x]);
    to.clear();
    to.extend((0..width).map(|x| {
        if shift == 0 {
            return level(near, x);
        }
        let at = x / 2;
        let next = if x % 2 == 0 { at.saturating_sub(1) } else { (at + 1).min(near.len() - 1) };
        let beside = level(near, next) * (3.0 / 16.0);
        let above = level(far, at) * (3.0 / 16.0);
        level(near, at) * (9.0 / 16.0) + beside + above + level(far, next) * (1.0 / 16.0)
    }));
}

fn fill_grey(steps: Steps, rows: &Rows, to: &mut [u8]) {
    let pairs = to.iter_mut().zip(&rows.luma);
    match steps {
        Steps::Grey(float) | Steps::Float(float) => {
            pairs.for_each(|(to, y)| *to = float.grey(*y));
        }
        Steps::GreyFixed(fixed)
        | Steps::Bytes(fixed)
        | Steps::Ten(fixed)
        | Steps::Twelve(fixed) => pairs.for_each(|(to, y)| *to = fixed.grey(*y)),
    }
}

fn fill_colors(steps: Steps, rows: &Rows, to: &mut [u8], channels: usize) {
    let [u, v] = &rows.chroma;
    let samples = rows.luma.iter().zip(u.iter().zip(v));
    let pixels = to.chunks_exact_mut(channels).zip(samples);
    // Sixteenths are rounded to samples.
    let whole = |sixteenths: u32| u16::try_from((sixteenths + 8) >> 4).unwrap_or(u16::MAX);
    match steps {
        Steps::Grey(float) => fill_from_grey(rows, to, channels, |y| float.grey(y)),
        Steps::GreyFixed(fixed) => fill_from_grey(rows, to, channels, |y| fixed.grey(y)),
        Steps::Bytes(fixed) => pixels.for_each(|(to, (y, (u, v)))| {
            to[..3].copy_from_slice(&fixed.pixel(*y, whole(*u), whole(*v)));
        }),
        Steps::Ten(fixed) => pixels.for_each(|(to, (y, (u, v)))| {
            let y = u32::from(*y);
            let [u, v] = [u, v].map(|sample| i32::from(whole(*sample) >> 2));
            to[..3].copy_from_slice(&fixed.wide_pixel(y << 6 | y >> 4, u, v));
        }),
        Steps::Twelve(fixed) => pixels.for_each(|(to, (y, (u, v)))| {
            let y = u32::from(*y);
            let [u, v] = [u, v].map(|sample| i32::from(whole(*sample) >> 4));
            to[..3].copy_from_slice(&fixed.wide_pixel(y << 4 | y >> 8, u, v));
        }),
        Steps::Float(float) if rows.floats[0].is_empty() => {
            fill_from_grey(rows, to, channels, |y| float.grey(y));
        }
        Steps::Float(float) => {
            let [u, v] = &rows.floats;
            let samples = rows.luma.iter().zip(u.iter().zip(v));
            for (to, (y, (u, v))) in to.chunks_exact_mut(channels).zip(samples) {
                to[..3].copy_from_slice(&float.pixel(*y, *u, *v));
            }
        }
    }
}

fn fill_from_grey(rows: &Rows, to: &mut [u8], channels: usize, grey: impl Fn(u16) -> u8) {
    for (to, y) in to.chunks_exact_mut(channels).zip(&rows.luma) {
        to[..3].fill(grey(*y));
    }
}

/// Divides colours by alpha as libyuv does on x86, with 8 fraction bits. Colours above alpha, which
/// lossy files have, may wrap.
fn divide(pixel: &mut [u8; 4]) {
    let factor = match pixel[3] {
        0 => 0,
        1 => 0xFFFF,
        // 0x10000 / 255 is 257; the table of libyuv has 256.
        255 => 0x100,
        alpha => 0x1_0000 / u32::from(alpha),
    };
    for color in &mut pixel[..3] {
        let product = (u32::from(*color) * 0x101 * factor) >> 16;
        // The number is packed as a signed one of 16 bits.
        *color = match product {
            0..=255 => product.to_le_bytes()[0],
            256..=0x7FFF => 255,
            _ => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By libyuv's definition of `ScaleRowUp2_Bilinear`, worked out by hand.
    #[test]
    fn colours_are_interpolated_by_sixteenths() {
        let mut row = Vec::new();
        widen(&[0, 16, 32], &[160, 0, 0], 6, &mut row);
        // 9 * 0 + 3 * 16 + 3 * 160 + 0, ..
        assert_eq!(row, [640, 528, 304, 240, 336, 384]);
        row.clear();
        widen(&[0, 16, 32], &[160, 0, 0], 5, &mut row);
        assert_eq!(row, [640, 528, 304, 240, 384]);
        row.clear();
        widen(&[7], &[7], 1, &mut row);
        assert_eq!(row, [112]);
    }

    #[test]
    fn floats_are_interpolated_to_the_last_column() {
        let samples = Samples { bit_depth: 8, is_monochrome: false, is_subsampled: true };
        let nclx = Nclx { primaries: 1, matrix: 8, full_range: true };
        let Conversion::Float(float) = Conversion::of(nclx, samples).unwrap() else {
            panic!("libyuv has no YCgCo");
        };
        let mut row = Vec::new();
        widen_floats(&[128, 255, 128], &[128; 3], 1, 5, float, &mut row);
        let level = 127.0 / 255.0;
        let expected = [0.0, 3.0, 9.0, 9.0, 3.0].map(|share| level * share / 16.0);
        for (found, expected) in row.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{row:?}");
        }
    }

    #[test]
    fn opaque_and_transparent_pixels_are_divided_as_libyuv_does() {
        for (pixel, expected) in [
            ([10, 20, 30, 255], [10, 20, 30, 255]),
            ([10, 20, 30, 0], [0, 0, 0, 0]),
            ([10, 64, 128, 128], [20, 128, 255, 128]),
            ([1, 2, 200, 1], [255, 255, 0, 1]),
        ] {
            let mut divided = pixel;
            divide(&mut divided);
            assert_eq!(divided, expected);
        }
    }
}
