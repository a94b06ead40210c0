//! Warps of samples of 16 bits and floats, and of pixels of four channels.
//!
//! Nearest pixels are those of Pillow's modes `I;16`, `F` and `RGBA`. Its smooth filters misread
//! `I;16`; those of 16 bits have the bits of mode `I`, which holds the same numbers, and are held
//! within 16 bits. torch's are those of tensors of these types.

use super::cells::Source;
use super::map::Map;
use super::pil::{Inside, Taps, cubic};
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
            self.filtered::<N, 2>(&warp.map, N::line, line, out);
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
        self.pieces(
            out,
            #[inline(always)]
            |x, y, piece| {
                let places = map.places(x, y);
                let Inside(inside) = Inside::of(&places, source);
                let taps = Taps::<T>::of(&places, source);
                for (lane, out) in piece.chunks_exact_mut(self.pixel).enumerate() {
                    if !inside[lane] {
                        out.copy_from_slice(&self.fill[..out.len()]);
                        continue;
                    }
                    for (channel, out) in out.chunks_exact_mut(N::BYTES).enumerate() {
                        let mut lines = [0.0; T];
                        for (line, rows) in lines.iter_mut().zip(&taps.lines) {
                            let row = taps.columns.each_ref().map(
                                #[inline(always)]
                                |columns| self.sample(columns[lane], rows[lane], channel),
                            );
                            *line = across(row, taps.across[lane]);
                        }
                        N::truncated(down(lines, taps.down[lane])).store(out);
                    }
                }
            },
        );
    }

    /// torch's bilinear filter.
    #[inline(always)]
    fn bilinear<N: Sample>(&self, warp: &GridWarp<'_>, out: &mut [u8]) {
        let source = self.source;
        let grid = warp.grid.prepare((source.width, source.height), warp.size);
        self.pieces(
            out,
            #[inline(always)]
            |x, y, piece| {
                let places = tensor::places(&grid.coordinates(x, y), source);
                let across = Halves::of(&places.x, source.width);
                let down = Halves::of(&places.y, source.height);
                for (lane, out) in piece.chunks_exact_mut(self.pixel).enumerate() {
                    let mut corners = [(0, 0, 0.0); 4];
                    let mut held = 0;
                    let mut covered = 0.0;
                    for corner in 0..4 {
                        let column = corner % 2;
                        let row = corner / 2;
                        if across.inside[column][lane] & down.inside[row][lane] {
                            let weight = across.weights[column][lane] * down.weights[row][lane];
                            let column = across.places[column][lane];
                            corners[held] = (column, down.places[row][lane], weight);
                            covered += weight;
                            held += 1;
                        }
                    }
                    for (channel, out) in out.chunks_exact_mut(N::BYTES).enumerate() {
                        let mut sum = 0.0_f32;
                        for &(column, row, weight) in &corners[..held] {
                            let sample: N = self.sample(column, row, channel);
                            sum = sample.real().mul_add(weight, sum);
                        }
                        if let Some(fill) = warp.fill {
                            let fill = fill[channel.min(RGB - 1)];
                            sum = (sum - fill) * covered + fill;
                        }
                        N::rounded(sum).store(out);
                    }
                }
            },
        );
    }

    #[inline(always)]
    fn sample<N: Sample>(&self, column: u32, row: u32, channel: usize) -> N {
        N::load(self.source.bytes(self.pixel, column, row, channel * N::BYTES, N::BYTES))
    }
}

/// Pillow's line through two numbers.
#[inline(always)]
fn line([a, b]: [f64; 2], d: f64) -> f64 {
    a + (b - a) * d
}

/// The pixels before and after the places of a piece along an axis, with their weights.
struct Halves {
    places: [[u32; PIECE]; 2],
    inside: [[bool; PIECE]; 2],
    weights: [[f32; PIECE]; 2],
}

impl Halves {
    #[inline(always)]
    fn of(places: &[f32; PIECE], size: u32) -> Self {
        let last = size - 1;
        let edge = tensor::edge(last);
        let mut halves = Self {
            places: [[0; PIECE]; 2],
            inside: [[false; PIECE]; 2],
            weights: [[0.0; PIECE]; 2],
        };
        for (lane, place) in places.iter().enumerate() {
            let whole = place.floor();
            let after = place - whole;
            halves.weights[0][lane] = 1.0 - after;
            halves.weights[1][lane] = after;
            for (half, place) in [whole, whole + 1.0].into_iter().enumerate() {
                halves.inside[half][lane] = (place >= 0.0) & (place <= edge);
                halves.places[half][lane] = tensor::index(place, edge, last);
            }
        }
        halves
    }
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
