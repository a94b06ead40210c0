//! Scans over columns of numbers: which rows lie in a range or equal a value, and the extremes.
//!
//! A row that is found is a bit, so that conditions on several columns are combined word by word.

mod extremes;

use crate::Level;
use crate::kernels::streams::places;
use crate::vector::dispatch;
use crate::vector::mask::{self, MaskSimd, Plain, WORD};
pub use extremes::{Number, extremes};
use std::ops::RangeInclusive;

/// A type that columns are searched by: `i8` to `i64`, `u8` to `u64`.
#[expect(private_bounds, reason = "nobody else implements it")]
pub trait Integer: mask::Column {}

impl<T: mask::Column> Integer for T {}

/// Sets the bits of the rows whose value is in `range` and clears all others. Row `r` has bit
/// `r % 64` of word `r / 64`. Returns how many are set.
///
/// # Panics
///
/// When there are not `values.len().div_ceil(64)` words.
pub fn find_range<T: Integer>(
    level: Level,
    values: &[T],
    range: RangeInclusive<T>,
    bits: &mut [u64],
) -> usize {
    assert_eq!(bits.len(), values.len().div_ceil(WORD), "a bit per value");
    if range.is_empty() {
        bits.fill(0);
        return 0;
    }
    let (first, last) = range.into_inner();
    let span = last.above(first);
    dispatch!(
        level,
        scalar => find(Plain, values, first, span, bits),
        simd => find(simd, values, first, span, bits),
    )
}

/// [`find_range`] for the rows that equal `value`.
///
/// # Panics
///
/// When there are not `values.len().div_ceil(64)` words.
pub fn find_equal<T: Integer>(level: Level, values: &[T], value: T, bits: &mut [u64]) -> usize {
    find_range(level, values, value..=value, bits)
}

/// The rows whose bits are set, in their order.
pub fn rows(bits: &[u64]) -> impl Iterator<Item = usize> {
    bits.iter().enumerate().flat_map(|(word, &bits)| {
        std::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)))
            .take_while(|&bits| bits != 0)
            .map(move |bits| word * WORD + bits.trailing_zeros() as usize)
    })
}

#[inline(always)]
fn find<M: MaskSimd, T: Integer>(
    simd: M,
    values: &[T],
    first: T,
    span: u64,
    bits: &mut [u64],
) -> usize {
    let (whole, rest) = values.as_chunks();
    let mut count = 0;
    for place in places(whole.len()).flatten() {
        if let (Some(values), Some(word)) = (whole.get(place), bits.get_mut(place)) {
            *word = simd.within(values, first, span);
            count += word.count_ones() as usize;
        }
    }
    if let (false, Some(word)) = (rest.is_empty(), bits.last_mut()) {
        *word = 0;
        for (place, value) in rest.iter().enumerate() {
            *word |= u64::from(value.above(first) <= span) << place;
        }
        count += word.count_ones() as usize;
    }
    count
}
