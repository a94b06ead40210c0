//! The operations that the JPEG kernels need from a vector unit.
//!
//! A register is worked on in parts of 128 bits, as `zip` and `pack` instructions are on x86: a
//! transform has one block in each part, so that no operation crosses them before the samples are
//! stored.

use super::Simd;
use crate::kernels::jpeg::{Block, SIDE};

/// Rows of a block, or of as many blocks as a register has parts.
pub(crate) type Rows8<S> = [<S as JpegSimd>::Words; SIDE];

/// A vector level's registers as 16-bit and 32-bit numbers. All arithmetic wraps unless it says
/// otherwise.
pub(crate) trait JpegSimd: Simd {
    /// Blocks that a transform treats at once, one in each 128 bits.
    const BLOCKS: usize;
    /// Numbers in [`JpegSimd::Words`].
    const WORDS: usize = Self::BLOCKS * SIDE;

    /// A vector of `i16`.
    type Words: Copy;
    /// As many `i32`.
    type Sums: Copy;

    /// The rows of a block in each part, times those of the quantizer: blocks 0, `step`, 2 `step`...
    fn dequantize(
        self,
        blocks: &[Block],
        step: usize,
        quantizer: &[u16; SIDE * SIDE],
    ) -> Rows8<Self>;

    /// The same number everywhere.
    fn splat_word(self, word: i16) -> Self::Words;

    /// The same number everywhere.
    fn splat_sum(self, sum: i32) -> Self::Sums;

    /// `a + b`.
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words;

    /// `a - b`.
    fn sub(self, a: Self::Words, b: Self::Words) -> Self::Words;

    /// Without the lowest `N` bits, none of the numbers being negative.
    fn shift_right<const N: i32>(self, words: Self::Words) -> Self::Words;

    /// `words * factor / 2^15`, rounded to nearest, halves up.
    fn scale(self, words: Self::Words, factor: i16) -> Self::Words;

    /// Whether a number is below -2^13 or not below 2^13.
    fn any_wide(self, words: Self::Words) -> bool;

    /// `a + b`.
    fn add_sums(self, a: Self::Sums, b: Self::Sums) -> Self::Sums;

    /// `a - b`.
    fn sub_sums(self, a: Self::Sums, b: Self::Sums) -> Self::Sums;

    /// `sums + a * weights[0] + b * weights[1]`.
    fn rotate(
        self,
        sums: Self::Sums,
        a: Self::Words,
        b: Self::Words,
        weights: [i16; 2],
    ) -> Self::Sums;

    /// Without the lowest `N` bits, saturated.
    fn narrow<const N: i32>(self, sums: Self::Sums) -> Self::Words;

    /// Interleaves the bytes of `a` and `b` in each part: those of the first halves, then those of
    /// the second.
    fn zip_bytes(self, a: Self::Bytes, b: Self::Bytes) -> [Self::Bytes; 2];

    /// The same, two bytes at a time.
    fn zip_words(self, a: Self::Words, b: Self::Words) -> [Self::Words; 2];

    /// The same, two words at a time.
    fn zip_pairs(self, a: Self::Words, b: Self::Words) -> [Self::Words; 2];

    /// The same bits.
    fn to_words(self, bytes: Self::Bytes) -> Self::Words;

    /// The same bits.
    fn to_bytes(self, words: Self::Words) -> Self::Bytes;

    /// Bytes as numbers: those of the first half of each part, of the second.
    fn widen(self, bytes: Self::Bytes) -> [Self::Words; 2];

    /// Saturated to bytes, the numbers of `a` first in each part: undoes [`JpegSimd::widen`].
    fn pack(self, a: Self::Words, b: Self::Words) -> Self::Bytes;

    /// The same of numbers around zero, which becomes 128.
    fn pack_centred(self, a: Self::Words, b: Self::Words) -> Self::Bytes;

    /// [`JpegSimd::WORDS`] bytes as numbers, in their order.
    fn load_words(self, bytes: &[u8]) -> Self::Words;

    /// Numbers that are bytes as such, in their order.
    fn store_words(self, words: Self::Words, out: &mut [u8]);

    /// Pairs of numbers that are bytes, in their order: `first[0]`, `second[0]`, `first[1]`...
    fn store_pairs(self, first: Self::Words, second: Self::Words, out: &mut [u8]);

    /// The first half of each part to `upper`, the second to `lower`.
    fn store_halves(self, bytes: Self::Bytes, upper: &mut [u8], lower: &mut [u8]);
}

/// Methods that call the function of the same name, whose features the level's `detect` has seen.
macro_rules! by_functions {
    ($(fn $name:ident $(<const $n:ident: i32>)? (self $(, $argument:ident: $kind:ty)* $(,)?) $(-> $result:ty)?;)*) => {
        $(
            #[inline(always)]
            fn $name $(<const $n: i32>)? (self $(, $argument: $kind)*) $(-> $result)? {
                // SAFETY: `self` exists, so `detect` saw the features of this function on this CPU.
                unsafe { $name $(::<$n>)? ($($argument),*) }
            }
        )*
    };
}
pub(crate) use by_functions;
