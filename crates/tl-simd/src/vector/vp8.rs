//! The operations that the VP8 kernels need from a vector unit.
//!
//! Transforms and colours fill whole registers. Prediction works on 16 bytes at every level, the
//! samples of one block row by row, because a block is predicted from the one before.

use super::jpeg::JpegSimd;

/// A vector level's registers as coefficients, blocks of samples and pixels. All arithmetic wraps
/// unless it says otherwise.
pub(crate) trait Vp8Simd: JpegSimd {
    /// Blocks that a transform treats at once, two in each 128 bits.
    const TRANSFORMED: usize = 2 * Self::BLOCKS;

    /// The rows of [`Vp8Simd::TRANSFORMED`] blocks.
    fn load_blocks(self, blocks: &[[i16; 16]]) -> [Self::Words; 4];

    /// The upper halves of the products.
    fn high(self, words: Self::Words, factor: i16) -> Self::Words;

    /// Interleaves `a` and `b` in each 128 bits, four words at a time: the first halves, the second.
    fn zip_quads(self, a: Self::Words, b: Self::Words) -> [Self::Words; 2];

    /// From the columns of the blocks of [`Vp8Simd::load_blocks`] the blocks in bytes, row by row:
    /// what is above zero to `added`, what is below to `subtracted`, saturated.
    fn store_blocks(
        self,
        columns: [Self::Words; 4],
        added: &mut [[u8; 16]],
        subtracted: &mut [[u8; 16]],
    );

    /// 16 bytes.
    type Samples: Copy;

    /// From memory.
    fn load_samples(self, samples: &[u8; 16]) -> Self::Samples;

    /// To memory.
    fn store_samples(self, samples: Self::Samples, out: &mut [u8; 16]);

    /// The first half to memory.
    fn store_first(self, samples: Self::Samples, out: &mut [u8; 8]);

    /// The second half to memory.
    fn store_second(self, samples: Self::Samples, out: &mut [u8; 8]);

    /// The same byte everywhere.
    fn splat_sample(self, sample: u8) -> Self::Samples;

    /// `a + b`, saturated.
    fn add_samples(self, a: Self::Samples, b: Self::Samples) -> Self::Samples;

    /// `a - b`, saturated.
    fn sub_samples(self, a: Self::Samples, b: Self::Samples) -> Self::Samples;

    /// `(a + b + 1) / 2`.
    fn mean_of_two(self, a: Self::Samples, b: Self::Samples) -> Self::Samples;

    /// `(a + 2 * b + c + 2) / 4`.
    fn mean_of_three(self, a: Self::Samples, b: Self::Samples, c: Self::Samples) -> Self::Samples;

    /// The sum of all bytes.
    fn sum(self, samples: Self::Samples) -> u16;

    /// The mean of the bytes that `mask` selects, eight of them, everywhere.
    fn mean_of_eight(self, samples: Self::Samples, mask: Self::Samples) -> Self::Samples;

    /// The bits that are in both.
    fn both(self, a: Self::Samples, b: Self::Samples) -> Self::Samples;

    /// The bits that are in one of them.
    fn either(self, a: Self::Samples, b: Self::Samples) -> Self::Samples;

    /// The bytes at `places`; zero for places of 128 and above.
    fn look_up(self, samples: Self::Samples, places: Self::Samples) -> Self::Samples;

    /// Interleaves `a` and `b`, four bytes at a time: the first halves, the second.
    fn zip_fours(self, a: Self::Samples, b: Self::Samples) -> [Self::Samples; 2];

    /// The same, eight bytes at a time.
    fn zip_eights(self, a: Self::Samples, b: Self::Samples) -> [Self::Samples; 2];

    /// The samples around a block: in bytes 3 to 6 the last column of the block to the `left` from
    /// the bottom up, its end repeated in bytes 0 to 2, then the last byte of the block above to the
    /// left, and the last rows of the blocks above and above to the right.
    fn edge(
        self,
        left: Self::Samples,
        above_left: Self::Samples,
        above: Self::Samples,
        above_right: Self::Samples,
    ) -> Self::Samples;

    /// As many sums of samples from memory as a register holds.
    fn load_sums(self, sums: &[u16]) -> Self::Words;

    /// The bytes at even places and those at odd ones, times 256.
    fn shift_up(self, bytes: Self::Bytes) -> [Self::Words; 2];

    /// 16 times 256 samples without their fractions: of sums of 16ths the samples times 256.
    fn floor(self, sums: Self::Words) -> Self::Words;

    /// The upper halves of the products of numbers without a sign.
    fn high_unsigned(self, words: Self::Words, factor: u16) -> Self::Words;

    /// `a - b` of numbers without a sign, 0 where `b` is larger.
    fn sub_to_zero(self, a: Self::Words, b: Self::Words) -> Self::Words;

    /// 64ths as saturated bytes, alternating.
    fn pack_64ths(self, even: Self::Words, odd: Self::Words) -> Self::Bytes;
}

/// The operations of the loop filters, on 16 samples of luma and 16 of chroma at once.
pub(crate) trait FilterSimd: Vp8Simd {
    /// 32 bytes, in two halves.
    type Lanes: Copy;

    /// From its halves.
    fn join(self, luma: Self::Samples, chroma: Self::Samples) -> Self::Lanes;

    /// Its halves.
    fn split(self, lanes: Self::Lanes) -> [Self::Samples; 2];

    /// The same byte everywhere.
    fn splat_lanes(self, lane: u8) -> Self::Lanes;

    /// 8 bytes, then zeros.
    fn load_eight(self, samples: &[u8; 8]) -> Self::Samples;

    /// Four times four bytes.
    fn load_fours(self, fours: [[u8; 4]; 4]) -> Self::Samples;

    /// Luma and the first 8 bytes of chroma of `a`, then those of `b`.
    fn merge_chroma(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;

    /// Interleaves the bytes of `a` and `b` in each half: the first halves of these, the second.
    fn zip_lanes(self, a: Self::Lanes, b: Self::Lanes) -> [Self::Lanes; 2];

    /// The same, four bytes at a time.
    fn zip_lane_fours(self, a: Self::Lanes, b: Self::Lanes) -> [Self::Lanes; 2];

    /// The same, eight bytes at a time.
    fn zip_lane_eights(self, a: Self::Lanes, b: Self::Lanes) -> [Self::Lanes; 2];

    /// Transposes the 4 times 4 bytes of each half.
    fn turn_lanes(self, lanes: Self::Lanes) -> Self::Lanes;

    /// The bits of `a` where those of `b` are set.
    fn and(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;

    /// The bits of `a` where those of `b` are not set.
    fn without(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;

    /// The bits that are in one of them.
    fn or(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;

    /// Bytes from 0 to 255 as bytes from -128 to 127, and back.
    fn centre(self, lanes: Self::Lanes) -> Self::Lanes;

    /// The distance of bytes without a sign.
    fn distance(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;

    /// The larger of bytes without a sign.
    fn max(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;

    /// 255 where `a` is at most `b`, without a sign.
    fn at_most(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;

    /// `2 * a + b / 2`, without a sign and saturated.
    fn twice_and_half(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;

    /// `a + b` of bytes with a sign, saturated.
    fn add_signed(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;

    /// `a - b` of bytes with a sign, saturated.
    fn sub_signed(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;

    /// Bytes with a sign by 8, rounded down.
    fn eighth(self, lanes: Self::Lanes) -> Self::Lanes;

    /// Bytes with a sign by 2, rounded up.
    fn half(self, lanes: Self::Lanes) -> Self::Lanes;

    /// `(27 * a + 63) / 128`, `(18 * a + 63) / 128` and `(9 * a + 63) / 128` of bytes with a sign,
    /// rounded down.
    fn weigh(self, lanes: Self::Lanes) -> [Self::Lanes; 3];
}
