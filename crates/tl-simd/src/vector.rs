//! The operations that kernels need from a vector unit, and the dispatch over [`Level`](crate::Level).
//!
//! [`Simd`] has one implementation per vector level; the files below this one are the only ones
//! with unsafe code.

use std::marker::PhantomData;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod bytes;
pub(crate) mod color;
pub(crate) mod gather;
pub(crate) mod jpeg;
pub(crate) mod mask;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
pub(crate) mod tile;
pub(crate) mod vp8;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub(crate) use neon::Neon;

/// Source rows that the horizontal pass treats together, and taps of a vertical step.
pub(crate) const ROWS: usize = 4;

/// Part of a table of constants, aligned for every level.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u32; WORDS]);

/// Words of a [`Line`].
pub(crate) const WORDS: usize = 16;

/// Rows of one length in one buffer, checked to be there when they are put together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    data: &'a [u8],
    /// The offsets of the rows; no row leaves `data`.
    offsets: &'a [[usize; ROWS]],
    len: usize,
}

impl<'a> Rows<'a> {
    /// Groups of rows of `len` bytes that begin at `offsets` in `data`.
    pub(crate) fn new(data: &'a [u8], offsets: &'a [[usize; ROWS]], len: usize) -> Self {
        let last = data.len().checked_sub(len).expect("a row fits into the data");
        assert!(offsets.as_flattened().iter().all(|&offset| offset <= last), "every row fits");
        Self { data, offsets, len }
    }
}

/// A vector level: its token, the shape of its registers and the operations of the kernels.
///
/// Sums of products are exact modulo 2^32 at every level, whatever way a level takes a coefficient
/// of 24 bits apart: into three signed bytes, two halves or not at all.
pub(crate) trait Simd: Copy {
    /// The level's name in reports.
    const NAME: &'static str;
    /// Output bytes that one step of the horizontal pass works on, per row.
    const LANES: usize;
    /// Lanes that share one window of source bytes.
    const GROUP: usize;
    /// Bytes of a window.
    const WINDOW: usize;
    /// Taps of one horizontal step.
    const TAPS: usize;
    /// Words per lane that [`Simd::split`] makes from `TAPS` coefficients.
    const PARTS: usize;
    /// Bytes that one step of the vertical pass works on.
    const COLUMNS: usize;

    /// Calls `f` with the level's instructions enabled.
    fn vectorize<R>(self, f: impl FnOnce() -> R) -> R;

    /// Takes four coefficients apart the way the level multiplies.
    fn split(weights: [i32; ROWS]) -> [u32; ROWS];

    /// The shuffle word that picks a lane's taps, the first at byte `first` of its window and the
    /// next ones `channels` bytes further each.
    fn positions(first: usize, channels: usize) -> u32;

    /// Running sums of [`ROWS`] rows of `LANES` outputs.
    type RowSums: Copy;

    /// Sums of nothing.
    fn row_sums(self) -> Self::RowSums;

    /// Adds a step: the groups' `windows` of each row, by the positions and coefficients in `step`.
    fn add_rows(
        self,
        sums: Self::RowSums,
        rows: [&[u8]; ROWS],
        windows: [u32; 2],
        step: &[Line],
    ) -> Self::RowSums;

    /// Rounds and clips the sums, and stores each row's groups at `at`.
    fn store_rows(self, sums: Self::RowSums, out: &mut [&mut [u8]; ROWS], at: [u32; 2]);

    /// Running sums of `COLUMNS` columns.
    type ColumnSums: Copy;

    /// Sums of nothing.
    fn column_sums(self) -> Self::ColumnSums;

    /// Adds the columns from `start` on of group `group` of the rows, each row times its coefficient.
    fn add_columns(
        self,
        sums: Self::ColumnSums,
        rows: &Rows<'_>,
        group: usize,
        start: usize,
        weights: &[u32; ROWS],
    ) -> Self::ColumnSums;

    /// Rounds and clips the sums into `COLUMNS` bytes.
    fn store_columns(self, sums: Self::ColumnSums, out: &mut [u8]);

    /// Pixels that the layout operations treat at once: every plane has as many bytes.
    const PIXELS: usize;
    /// As many bytes as a plane has.
    type Bytes: Copy;

    /// A plane from memory.
    fn load_bytes(self, bytes: &[u8]) -> Self::Bytes;

    /// A plane to memory.
    fn store_bytes(self, bytes: Self::Bytes, out: &mut [u8]);

    /// The last byte first.
    fn reverse(self, bytes: Self::Bytes) -> Self::Bytes;

    /// RGB pixels that `mirror` moves at once.
    const MIRRORED: usize = Self::PIXELS;

    /// The last of `MIRRORED` interleaved pixels first.
    #[inline(always)]
    fn mirror(self, pixels: &[u8], out: &mut [u8]) {
        let planes = self.deinterleave(pixels);
        self.interleave(planes.map(|plane| self.reverse(plane)), out);
    }

    /// The planes of interleaved RGB pixels.
    fn deinterleave(self, pixels: &[u8]) -> [Self::Bytes; RGB];

    /// Interleaved RGB pixels of planes.
    fn interleave(self, planes: [Self::Bytes; RGB], pixels: &mut [u8]);

    /// Numbers in [`Simd::Floats`]; divides `PIXELS`.
    const FLOATS: usize;
    /// A vector of `f32`.
    type Floats: Copy;

    /// `FLOATS` numbers from memory.
    fn load_floats(self, values: &[f32]) -> Self::Floats;

    /// `FLOATS` numbers to memory.
    fn store_floats(self, values: Self::Floats, out: &mut [f32]);

    /// `FLOATS` numbers as [`Simd::store_f32`] stores them.
    fn load_f32(self, bytes: &[u8]) -> Self::Floats;

    /// IEEE halves.
    fn load_f16(self, bytes: &[u8]) -> Self::Floats;

    /// Numbers of bfloat16.
    fn load_bf16(self, bytes: &[u8]) -> Self::Floats;

    /// The nearest IEEE halves, ties to even.
    fn round_f16(self, values: Self::Floats) -> Self::Floats;

    /// The nearest numbers of bfloat16, ties to even; the values are numbers.
    fn round_bf16(self, values: Self::Floats) -> Self::Floats;

    /// [`Divisor::normalized`] of samples.
    fn normalize(self, samples: &[u8], scale: f32, by: Divisor<Self::Floats>) -> Self::Floats;

    /// Stores as they are.
    fn store_f32(self, values: Self::Floats, out: &mut [u8]);

    /// [`Simd::store_f32`], past the caches if the level can and `out` is aligned to its length.
    /// Nothing reads or writes `out` again before the fence.
    #[inline(always)]
    fn stream_f32(self, values: Self::Floats, out: &mut [u8], _: &Fence) {
        self.store_f32(values, out);
    }

    /// Stores as IEEE halves, rounded to nearest even.
    fn store_f16(self, values: Self::Floats, out: &mut [u8]);

    /// Stores as bfloat16, rounded to nearest even; the values are numbers.
    fn store_bf16(self, values: Self::Floats, out: &mut [u8]);
}

/// The byte shuffles between interleaved RGB and planes, for vectors of 16 bytes.
///
/// A shuffle reads zero where its position has the top bit set, so that the parts are combined with
/// "or".
#[cfg(target_arch = "x86_64")]
mod shuffles {
    use super::RGB;

    const NONE: u8 = 0x80;

    const fn low_byte(position: usize) -> u8 {
        position.to_le_bytes()[0]
    }

    /// `FROM_PIXELS[plane][part]` takes the plane's bytes out of 16 bytes of pixels, of three.
    pub(super) const FROM_PIXELS: [[[u8; 16]; RGB]; RGB] = {
        let mut all = [[[NONE; 16]; RGB]; RGB];
        let mut byte = 0;
        while byte < 16 * RGB {
            all[byte % RGB][byte / 16][byte / RGB] = low_byte(byte % 16);
            byte += 1;
        }
        all
    };

    /// `TO_PIXELS[part][plane]` puts the plane's bytes into 16 bytes of pixels, of three.
    pub(super) const TO_PIXELS: [[[u8; 16]; RGB]; RGB] = {
        let mut all = [[[NONE; 16]; RGB]; RGB];
        let mut byte = 0;
        while byte < 16 * RGB {
            all[byte / 16][byte % RGB][byte % 16] = low_byte(byte / RGB);
            byte += 1;
        }
        all
    };
}

/// Proof that a store fence follows on this thread, before any other can see what it has stored.
///
/// Stores past the caches are not ordered by the locks and atomics that publish memory to another
/// thread.
#[derive(Debug)]
pub(crate) struct Fence(PhantomData<*const ()>);

impl Fence {
    /// Calls `f`, then waits until all stores of this thread are done.
    pub(crate) fn with<R>(f: impl FnOnce(&Self) -> R) -> R {
        f(&Self(PhantomData))
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        avx2::wait_for_stores();
    }
}

/// The constants of a normalised sample, for one number or a vector of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Divisor<T> {
    pub(crate) mean: T,
    pub(crate) std: T,
    /// `1 / std`, rounded.
    pub(crate) inverse: T,
}

impl Divisor<f32> {
    /// `(sample * scale - mean) / std` with fused steps in place of the division: the product with
    /// the inverse, and its remainder put right (Markstein, 1990). Whether the result is the
    /// quotient's, the caller has to check.
    pub(crate) fn normalized(self, sample: u8, scale: f32) -> f32 {
        let value = f32::from(sample) * scale - self.mean;
        let near = value * self.inverse;
        let remainder = (-near).mul_add(self.std, value);
        remainder.mul_add(self.inverse, near)
    }
}

/// Added with the last bit that stays, rounds an `f32` to the 16 bits of a bfloat16.
pub(crate) const BELOW_HALF: i32 = 0x7FFF;

/// Bytes of an interleaved RGB pixel, and planes of an RGB image.
pub(crate) const RGB: usize = 3;

/// Evaluates `$definition` at the scalar level, and `$kernel` with the level's token otherwise.
macro_rules! dispatch {
    ($level:expr, scalar => $definition:expr, $simd:ident => $kernel:expr $(,)?) => {
        match $level {
            $crate::Level::Scalar => $definition,
            #[cfg(target_arch = "x86_64")]
            $crate::Level::Avx2($simd) => $crate::vector::Simd::vectorize(
                $simd,
                #[inline(always)]
                || $kernel,
            ),
            #[cfg(target_arch = "x86_64")]
            $crate::Level::Avx512($simd) => $crate::vector::Simd::vectorize(
                $simd,
                #[inline(always)]
                || $kernel,
            ),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            $crate::Level::Neon($simd) => $crate::vector::Simd::vectorize(
                $simd,
                #[inline(always)]
                || $kernel,
            ),
        }
    };
}
pub(crate) use dispatch;
