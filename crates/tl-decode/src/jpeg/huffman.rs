//! Huffman codes (T.81 annex C and F.2.2.3), one symbol at a time. `tables` has the look-up tables
//! of sequential scans, `cache` keeps them.

mod cache;
mod entries;
mod tables;
#[cfg(test)]
mod tests;

pub(super) use cache::TableCache;
pub(super) use tables::{COEFFICIENTS, Entry, Tables, distance, lengths_of, overruns};

use super::parts::HuffmanCodes;
use super::scan::HuffmanSpec;

/// Longest code in bits.
const MAX_CODE_BITS: u32 = 16;

/// The value that `size` bits, 1 or more, stand for (T.81 figure F.12).
#[inline(always)]
pub(super) fn extend(bits: u32, size: u32) -> i32 {
    let negative = bits >> (size - 1) == 0;
    bits.cast_signed() - if negative { (1 << size) - 1 } else { 0 }
}

/// A code and its symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    /// Length of the code in bits, 1..=16.
    pub(super) bits: u32,
    /// The symbol of the code.
    pub(super) value: u8,
}

/// The codes of a table, for decoding them one by one.
#[derive(Clone, Debug)]
pub(super) struct Codes {
    /// Per length, the first code of 16 bits that begins with no code of this length or shorter.
    limits: [u32; MAX_CODE_BITS as usize],
    /// Per length, what added to a code gives the index of its symbol.
    offsets: [u32; MAX_CODE_BITS as usize],
    values: [u8; 256],
}

impl Default for Codes {
    /// No codes.
    fn default() -> Self {
        Self { limits: [0; 16], offsets: [0; 16], values: [0; 256] }
    }
}

impl Codes {
    /// Assigns the codes; `None` for more codes of some length than there are, the code of ones
    /// only counting as none (C.2), or for a missing symbol.
    pub(super) fn new(spec: &HuffmanSpec<'_>) -> Option<Self> {
        let mut codes = Self::default();
        let mut code = 0u32;
        let mut index = 0u32;
        for (bits, &count) in (1u32..).zip(spec.counts) {
            let slot = bits as usize - 1;
            codes.offsets[slot] = index.wrapping_sub(code);
            (code, index) = (code + u32::from(count), index + u32::from(count));
            if count > 0 && code >= 1 << bits {
                return None;
            }
            codes.limits[slot] = code << (MAX_CODE_BITS - bits);
            code <<= 1;
        }
        let values = spec.values.get(..index as usize)?;
        codes.values.get_mut(..values.len())?.copy_from_slice(values);
        Some(codes)
    }

    /// The codes of DC coefficients; as libjpeg, none of a category beyond 15.
    pub(super) fn of_dc(spec: &HuffmanSpec<'_>) -> Option<Self> {
        Self::new(spec).filter(|_| spec.values.iter().all(|&size| size <= 15))
    }

    /// The symbol whose code `bits` begin with.
    pub(super) fn symbol(&self, bits: u64) -> Option<Symbol> {
        let [.., high, low] = (bits >> (64 - MAX_CODE_BITS)).to_be_bytes();
        let code = u32::from(u16::from_be_bytes([high, low]));
        let shorter: u32 = self.limits.iter().map(|&limit| u32::from(code >= limit)).sum();
        let offset = *self.offsets.get(shorter as usize)?;
        let index = offset.wrapping_add(code >> (MAX_CODE_BITS - 1 - shorter));
        Some(Symbol { bits: shorter + 1, value: self.values[index as usize & 0xFF] })
    }
}

impl From<Codes> for HuffmanCodes {
    fn from(codes: Codes) -> Self {
        let Codes { limits, offsets, values: symbols } = codes;
        Self { limits, offsets, symbols }
    }
}

/// Symbols by the next bits of the data: `value << 8 | bits` of a code that fits into the index,
/// else 0.
type Symbols<const SIZE: usize> = [u32; SIZE];

fn symbols<const SIZE: usize>(spec: &HuffmanSpec<'_>) -> Symbols<SIZE> {
    let mut symbols = [0; SIZE];
    let mut filled = 0;
    let mut values = spec.values.iter();
    for (bits, &count) in (1u32..).zip(spec.counts).take(SIZE.trailing_zeros() as usize) {
        let run = SIZE >> bits;
        for &value in values.by_ref().take(count.into()) {
            let Some(slots) = symbols.get_mut(filled..filled + run) else { return symbols };
            slots.fill(u32::from(value) << 8 | bits);
            filled += run;
        }
    }
    symbols
}
