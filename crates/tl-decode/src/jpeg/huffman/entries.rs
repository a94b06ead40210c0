//! The entries of look-up tables, computed without branches, so that the compiler vectorises the
//! loops: nearly every photograph contains its own tables.

use super::tables::{END, Entry};
use super::{HuffmanSpec, Symbols};

/// Bits that an entry has at most: two of them fit into what is refilled.
const MAX_BITS: u32 = 25;

/// Distance of an entry that stands for nothing, as one that overruns at any AC position.
const NO_AC: u32 = 64;
/// The same at position 0.
const NO_DC: u32 = 100;

/// Entries that are computed together.
const BATCH: usize = 64;

/// The AC codes, with which an entry continues.
pub(super) struct Following<'a, const SIZE: usize> {
    symbols: &'a Symbols<SIZE>,
    /// The length of the code of a block's end, or one that never fits.
    end_bits: u32,
    end_code: u32,
}

impl<'a, const SIZE: usize> Following<'a, SIZE> {
    const INDEX_BITS: u32 = SIZE.trailing_zeros();

    #[inline(always)]
    pub(super) fn new(spec: &HuffmanSpec<'_>, symbols: &'a Symbols<SIZE>) -> Self {
        let mut end_bits = Self::INDEX_BITS + 1;
        let mut end_code = 0;
        let mut code = 0;
        let mut values = spec.values.iter();
        for (bits, &count) in (1..=Self::INDEX_BITS).zip(spec.counts) {
            for &value in values.by_ref().take(count.into()) {
                if value == 0 {
                    (end_bits, end_code) = (bits, code);
                }
                code += 1;
            }
            code <<= 1;
        }
        Self { symbols, end_bits, end_code }
    }

    /// The rest of the index after `used` bits, moved to the top of its bits.
    #[inline(always)]
    fn rest_after(index: u32, used: u32) -> u32 {
        (index << (used & 31)) & ((1 << Self::INDEX_BITS) - 1)
    }

    /// The bits of the end-of-block code at bit `used`, 0 for another code.
    #[inline(always)]
    fn end_at(&self, index: u32, used: u32) -> u32 {
        let code = Self::rest_after(index, used) >> Self::INDEX_BITS.saturating_sub(self.end_bits);
        let is_end = used + self.end_bits <= Self::INDEX_BITS && code == self.end_code;
        if is_end { self.end_bits } else { 0 }
    }

    /// The coefficient of `size` bits at bit `used`, taking bits after the index for zeros.
    #[inline(always)]
    fn coefficient(index: u32, used: u32, size: u32) -> u32 {
        let ahead = Self::rest_after(index, used);
        let bits = (ahead << (16 - Self::INDEX_BITS)) >> (16 - size);
        let is_negative = ahead >> (Self::INDEX_BITS - 1) == 0;
        bits.wrapping_sub(if is_negative { (1 << size) - 1 } else { 0 })
    }

    /// The two halves of an entry that begins with the code `first`.
    #[inline(always)]
    fn entry(&self, index: u32, first: u32, is_dc: bool) -> (u32, u32) {
        let index_bits = Self::INDEX_BITS;
        let code = first & 0xFF;
        let run = first >> 12;
        let size = first >> 8 & 15;
        let used = code + size;
        let is_sign_there = size == 0 || code < index_bits;
        let is_first = code > 0 && (is_dc || size > 0) && is_sign_there && used <= MAX_BITS;
        let value = Self::coefficient(index, code, size);

        let next = self.symbols[Self::rest_after(index, used) as usize % SIZE];
        let next_code = used + (next & 0xFF);
        let next_run = next >> 12;
        let next_size = next >> 8 & 15;
        let next_used = next_code + next_size;
        // The first of two coefficients has 8 bits with its sign, and the sign of the second has
        // to be in the index.
        let is_second = is_first
            && next & 0xFF > 0
            && next_code < index_bits
            && next_size > 0
            && next_used <= MAX_BITS
            && size < 8;
        let last_value = Self::coefficient(index, next_code, next_size);
        let last = run + 1 + next_run;

        let end = self.end_at(index, used);
        let next_end = self.end_at(index, next_used);
        // A block's end or 16 zeros come alone.
        let alone = if first >> 8 == 0 { END } else { 16 };
        let is_alone = !is_dc && code > 0 && (first >> 8 == 0 || first >> 8 == 0xF0);

        let pick = |second: u32, first: u32, alone: u32, none: u32| {
            let rest = if is_alone { alone } else { none };
            let rest = if is_first { first } else { rest };
            if is_second { second } else { rest }
        };
        let ended = |end: u32| if end > 0 { END } else { 0 };
        let bits = pick(next_used + next_end, used + end, code, 0);
        let extra =
            pick(next_used.saturating_sub(index_bits), used.saturating_sub(index_bits), 0, 0);
        let none = if is_dc { NO_DC } else { NO_AC };
        let distance = pick(last + 1 + ended(next_end), run + 1 + ended(end), alone, none);
        let at = pick(run, run, 0, 0);
        let last_at = pick(last, run, 0, 0);
        let low = bits | extra << 8 | at << 16 | last_at << 24;
        let high = distance | (value & 0xFF) << 8 | pick(last_value, value, 0, 0) << 16;
        (low, high)
    }
}

/// Fills a table whose entries begin with a code of `first`, or with an AC code if that is `None`.
#[inline(always)]
pub(super) fn fill<const SIZE: usize>(
    following: &Following<'_, SIZE>,
    first: Option<&Symbols<SIZE>>,
    entries: &mut [Entry; SIZE],
) {
    let symbols = first.unwrap_or(following.symbols);
    let is_dc = first.is_some();
    let batches = entries.chunks_exact_mut(BATCH).zip(symbols.chunks_exact(BATCH));
    for (base, (entries, symbols)) in (0..).step_by(BATCH).zip(batches) {
        let mut low = [0; BATCH];
        let mut high = [0; BATCH];
        for (offset, ((low, high), &first)) in (0..).zip(low.iter_mut().zip(&mut high).zip(symbols))
        {
            (*low, *high) = following.entry(base + offset, first, is_dc);
        }
        for (entry, (low, high)) in entries.iter_mut().zip(low.into_iter().zip(high)) {
            *entry = Entry::from(high) << 32 | Entry::from(low);
        }
    }
}
