//! Warps of samples of 16 bits and floats, and of pixels of four channels.
//!
//! Nearest pixels are those of Pillow's modes `I;16`, `F` and `RGBA`. Its smooth filters misread
//! `I;16`; those of 16 bits have the bits of mode `I`, which holds the same numbers, and are held
//! within 16 bits. torch's are those of tensors of these types.

use super::cells::Source;
use super::map::Map;
use super::pil::{cubic, outside};
use super::{Filter, GridWarp, PIECE, Warp, Warper, nearest, tensor};
use crate::Level;
use crate::kernels::normalize::PixelType;
use crate::kernels::resample::ImageView;
use crate::vector::RGB;
use crate::vector::gather::Plain;

/// The most bytes of a pixel: four floats.
const MOST_BYTES: usize = 16;

/// The bytes of pixels, each with the number of its bytes in `$bytes`.
macro_rules! sized {
    ($size:expr, $bytes:ident => $run:expr) => {
        match $size {
            2 => sized!(2, $bytes, $run),
            4 => sized!(4, $bytes, $run),
            6 => sized!(6, $bytes, $run),
            8 => sized!(8, $bytes, $run),
            12 => sized!(12, $bytes, $run),
            16 => sized!(16, $bytes, $run),
            other => panic!("pixels of {other} bytes; 2, 4, 6, 8, 12 or 16 are warped"),
        }
    };
    ($size:literal, $bytes:ident, $run:expr) => {{
        const $bytes: usize = $size;
        $run
    }};
}

impl Warper {
    /// [`Warper::pil`] of samples of type `pixels`, in the machine's byte order. A fourth channel has
    /// the fill of the third.
    ///
    /// # Panics
    ///
    /// When pixels of `src` do not have 2, 4, 6, 8, 12 or 16 bytes, or when `out` does not hold
    /// exactly the output.
    pub fn pil_wide(
        &mut self,
        level: Level,
        pixels: PixelType,
        src: ImageView<'_>,
        warp: &Warp,
        out: &mut [u8],
    ) {
        let source = Source::new(src, warp.size, out);
        let fill = filling(pixels, warp.fill.map(f32::from));
        let empty = out.is_empty() || source.is_empty();
        if empty || warp.filter == Filter::Nearest {
            let columns = &mut self.columns;
            return sized!(src.channels, C => {
                let fill: [u8; C] = core::array::from_fn(|byte| fill[byte]);
                match pixels {
                    _ if empty => out.as_chunks_mut().0.fill(fill),
                    // Pillow has no faster way for `I;16`, and so no other rounding.
                    PixelType::U16 => nearest::by_places(Plain, source, warp, fill, out),
                    PixelType::U8 | PixelType::F32 => {
                        nearest::pil(Plain, source, warp, fill, columns, out);
                    }
                }
            });
        }
        let image = Image { source, fill, pixel: src.channels, size: warp.size };
        level.vectorize(
            #[inline(always)]
            || match pixels {
                PixelType::U8 => image.smooth::<u8>(warp, out),
                PixelType::U16 => image.smooth::<u16>(warp, out),
                PixelType::F32 => image.smooth::<f32>(warp, out),
            },
        );
    }

    /// [`Warper::tensor`] of samples of type `pixels`, as [`Warper::pil_wide`].
    ///
    /// # Panics
    ///
    /// As [`Warper::tensor`], and for pixels of other sizes than [`Warper::pil_wide`] takes.
    pub fn tensor_wide(
        &mut self,
        level: Level,
        pixels: PixelType,
        src: ImageView<'_>,
        warp: &GridWarp<'_>,
        out: &mut [u8],
    ) {
        let source = Source::new(src, warp.size, out);
        warp.check(source);
        let fill = filling(pixels, warp.fill.unwrap_or_default());
        let empty = out.is_empty() || source.is_empty();
        if empty || warp.filter == Filter::Nearest {
            return sized!(src.channels, C => {
                let fill: [u8; C] = core::array::from_fn(|byte| fill[byte]);
                if empty {
                    out.as_chunks_mut().0.fill(fill);
                } else {
                    level.vectorize(
                        #[inline(always)]
                        || nearest::tensor(Plain, source, warp, fill, out),
                    );
                }
            });
        }
        let image = Image { source, fill, pixel: src.channels, size: warp.size };
        level.vectorize(
            #[inline(always)]
            || match pixels {
                PixelType::U8 => image.bilinear::<u8>(warp, out),
                PixelType::U16 => image.bilinear::<u16>(warp, out),
                PixelType::F32 => image.bilinear::<f32>(warp, out),
            },
        );
    }
}

/// The bytes of the numbers of a fill.
fn filling(pixels: PixelType, fill: [f32; RGB]) -> [u8; MOST_BYTES] {
    let mut bytes = [0; MOST_BYTES];
    for (channel, bytes) in bytes.chunks_exact_mut(pixels.bytes()).enumerate() {
        let value = fill[channel.min(RGB - 1)];
        match pixels {
            PixelType::U8 => u8::rounded(value).store(bytes),
            PixelType::U16 => u16::rounded(value).store(bytes),
            PixelType::F32 => value.store(bytes),
        }
    }
    bytes
}

/// An image that is warped into one of `size`, with pixels of `pixel` bytes.
struct Image<'a> {
    source: Source<'a>,
    fill: [u8; MOST_BYTES],
    pixel: usize,
    size: (u32, u32),
}

impl Image<'_> {
    /// Hands every piece of every row to `run`, with the column and the row that it begins at.
    #[inline(always)]
    fn pieces(&self, out: &mut [u8], mut run: impl FnMut(u32, u32, &mut [u8])) {
        let row_bytes = self.size.0 as usize * self.pixel;
        for (row, y) in out.chunks_exact_mut(row_bytes).zip(0..) {
            for (piece, x) in row.chunks_mut(PIECE * self.pixel).zip((0..).step_by(PIECE)) {
                run(x, y, piece);
            }
        }
    }

    /// Pillow's bilinear or bicubic filter.
    #[inline(always)]
    fn smooth<N: Sample>(&self, warp: &Warp, out: &mut [u8]) {
        if warp.filter == Filter::Bicubic {
            self.filtered::<N, 4>(&warp.map, N::cubic, cubic, out);
        } else {
            let down = |[a, b]: [f64; 2], d| a + (b - a) * d;
            self.filtered::<N, 2>(&warp.map, N::line, down, out);
        }
    }

    /// Interpolates between `T` columns, and then between `T` rows.
    #[inline(always)]
    fn filtered<N: Sample, const T: usize>(
        &self,
        map: &Map,
        across: impl Fn([N; T], f64) -> f64,
        down: impl Fn([f64; T], f64) -> f64,
        out: &mut [u8],
    ) {
        let source = self.source;
        let width = f64::from(source.width);
        let height = f64::from(source.height);
        self.pieces(out, |x, y, piece| {
            let places = map.places(x, y);
            for (lane, out) in piece.chunks_exact_mut(self.pixel).enumerate() {
                let place_x = places.x[lane];
                let place_y = places.y[lane];
                if outside(place_x, width) | outside(place_y, height) {
                    out.copy_from_slice(&self.fill[..out.len()]);
                    continue;
                }
                let whole_x = (place_x - 0.5).floor();
                let whole_y = (place_y - 0.5).floor();
                let columns: [u32; T] = taps(whole_x, source.width - 1);
                let rows: [u32; T] = taps(whole_y, source.height - 1);
                for (channel, out) in out.chunks_exact_mut(N::BYTES).enumerate() {
                    let lines = rows.map(|row| {
                        let line = columns.map(|column| self.sample(column, row, channel));
                        across(line, place_x - 0.5 - whole_x)
                    });
                    N::truncated(down(lines, place_y - 0.5 - whole_y)).store(out);
                }
            }
        });
    }

    /// torch's bilinear filter.
    #[inline(always)]
    fn bilinear<N: Sample>(&self, warp: &GridWarp<'_>, out: &mut [u8]) {
        let source = self.source;
        let grid = warp.grid.prepare((source.width, source.height), warp.size);
        let last_x = tensor::edge(source.width - 1);
        let last_y = tensor::edge(source.height - 1);
        self.pieces(out, |x, y, piece| {
            let places = tensor::places(&grid.coordinates(x, y), source);
            for (lane, out) in piece.chunks_exact_mut(self.pixel).enumerate() {
                let left = places.x[lane].floor();
                let top = places.y[lane].floor();
                let right_part = places.x[lane] - left;
                let lower_part = places.y[lane] - top;
                let left_part = 1.0 - right_part;
                let upper_part = 1.0 - lower_part;
                let corners = [
                    (left, top, left_part * upper_part),
                    (left + 1.0, top, right_part * upper_part),
                    (left, top + 1.0, left_part * lower_part),
                    (left + 1.0, top + 1.0, right_part * lower_part),
                ];
                let corners = corners.map(|(x, y, weight)| {
                    let inside = (x >= 0.0) & (x <= last_x) & (y >= 0.0) & (y <= last_y);
                    let column = tensor::index(x, last_x, source.width - 1);
                    inside.then(|| (column, tensor::index(y, last_y, source.height - 1), weight))
                });
                let held = corners.iter().flatten();
                let covered = held.clone().fold(0.0, |sum, (_, _, weight)| sum + weight);
                for (channel, out) in out.chunks_exact_mut(N::BYTES).enumerate() {
                    let mut sum = held.clone().fold(0.0_f32, |sum, (column, row, weight)| {
                        self.sample::<N>(*column, *row, channel).real().mul_add(*weight, sum)
                    });
                    if let Some(fill) = warp.fill {
                        let fill = fill[channel.min(RGB - 1)];
                        sum = (sum - fill) * covered + fill;
                    }
                    N::rounded(sum).store(out);
                }
            }
        });
    }

    #[inline(always)]
    fn sample<N: Sample>(&self, column: u32, row: u32, channel: usize) -> N {
        N::load(self.source.bytes(self.pixel, column, row, channel * N::BYTES, N::BYTES))
    }
}

/// The pixels around `whole`, up to `last`: one before it where there are four.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn taps<const T: usize>(whole: f64, last: u32) -> [u32; T] {
    let first = if T > 2 { -1.0 } else { 0.0 };
    let mut offset = first;
    [(); T].map(|()| {
        let place = (whole + offset) as u32;
        offset += 1.0;
        place.min(last)
    })
}

/// A type of samples.
trait Sample: Copy {
    const BYTES: usize;

    fn load(bytes: &[u8]) -> Self;

    fn store(self, out: &mut [u8]);

    /// Pillow's line through two samples, whose difference has their type.
    fn line(samples: [Self; 2], d: f64) -> f64;

    /// Pillow's cubic through four samples, whose sums have their type.
    fn cubic(samples: [Self; 4], d: f64) -> f64;

    /// Without its fraction, for integers.
    fn truncated(value: f64) -> Self;

    fn real(self) -> f32;

    /// To the nearest one, half to even, for integers.
    fn rounded(value: f32) -> Self;
}

/// Implements samples that are integers: their sums are exact as doubles.
macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Sample for $type {
            const BYTES: usize = size_of::<Self>();

            #[inline(always)]
            fn load(bytes: &[u8]) -> Self {
                bytes.first_chunk().copied().map_or(0, Self::from_ne_bytes)
            }

            #[inline(always)]
            fn store(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_ne_bytes());
            }

            #[inline(always)]
            fn line([a, b]: [Self; 2], d: f64) -> f64 {
                f64::from(a) + (f64::from(b) - f64::from(a)) * d
            }

            #[inline(always)]
            fn cubic(samples: [Self; 4], d: f64) -> f64 {
                cubic(samples.map(f64::from), d)
            }

            #[inline(always)]
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
            fn truncated(value: f64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn real(self) -> f32 {
                self.into()
            }

            #[inline(always)]
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
            fn rounded(value: f32) -> Self {
                value.round_ties_even() as Self
            }
        }
    )*};
}

integers!(u8, u16);

impl Sample for f32 {
    const BYTES: usize = size_of::<Self>();

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        bytes.first_chunk().copied().map_or(0.0, Self::from_ne_bytes)
    }

    #[inline(always)]
    fn store(self, out: &mut [u8]) {
        out.copy_from_slice(&self.to_ne_bytes());
    }

    #[inline(always)]
    fn line([a, b]: [Self; 2], d: f64) -> f64 {
        f64::from(a) + f64::from(b - a) * d
    }

    #[inline(always)]
    fn cubic([v1, v2, v3, v4]: [Self; 4], d: f64) -> f64 {
        let p2 = f64::from(-v1 + v3);
        let p3 = f64::from(2.0 * (v1 - v2) + v3 - v4);
        let p4 = f64::from(-v1 + v2 - v3 + v4);
        f64::from(v2) + d * (p2 + d * (p3 + d * p4))
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "rounds as Pillow does")]
    fn truncated(value: f64) -> Self {
        value as Self
    }

    #[inline(always)]
    fn real(self) -> f32 {
        self
    }

    #[inline(always)]
    fn rounded(value: f32) -> Self {
        value
    }
}
