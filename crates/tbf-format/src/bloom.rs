//! The bloom filter over node ids: a "no" is certain, a "yes" is right in 99 of 100 cases.
//!
//! The two hashes are FNV-1a of the key, and FNV-1a of that hash's eight bytes plus one. Bit `i`
//! of a key is `(h1 + i * h2) mod 2^64 mod bits`, as the reference's writer has it.

use core::mem::size_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::FormatError;
use crate::region::Region;
use crate::values::Values;

/// The header of the bits.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct BloomHeader {
    num_hashes: U32,
    num_bits: U64,
}

const _: () = assert!(size_of::<BloomHeader>() == 12);

/// A filter takes at most as many hashes. The formula never asks for more than 45; a damaged
/// filter could ask for four thousand million, each time an id is looked up.
const MAX_HASHES: u32 = 1024;

/// A key's two hashes, to ask the filters of several segments with.
///
/// ```
/// let key = tbf_format::BloomKey::new(&[0; 16]);
/// assert_eq!(key.hashes(), (0x8820_1fb9_60ff_6465, 0x572e_0d9a_1118_7f7c));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BloomKey {
    h1: u64,
    h2: u64,
}

impl BloomKey {
    /// The hashes of `key`.
    #[inline]
    pub fn new(key: &[u8]) -> Self {
        let h1 = fnv1a(key);
        Self { h1, h2: fnv1a(&h1.to_le_bytes()).wrapping_add(1) }
    }

    /// The two hashes.
    pub fn hashes(self) -> (u64, u64) {
        (self.h1, self.h2)
    }

    /// The key's bits in a filter of `num_bits` bits (not zero) and `num_hashes` hashes.
    #[inline]
    pub(crate) fn bits(self, num_hashes: u32, num_bits: u64) -> impl Iterator<Item = u64> {
        let Self { h1, h2 } = self;
        (0..u64::from(num_hashes)).map(move |i| h1.wrapping_add(i.wrapping_mul(h2)) % num_bits)
    }
}

/// FNV-1a with 64 bits (Fowler, Noll, Vo).
#[inline]
fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET_BASIS, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// A filter in the bytes of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Bloom<'a> {
    num_hashes: u32,
    num_bits: u64,
    words: Values<'a, u64>,
}

impl<'a> Bloom<'a> {
    /// The filter at the front of `region`.
    ///
    /// # Errors
    /// [`FormatError::Truncated`]; [`FormatError::UnknownCode`] for a filter without bits or
    /// hashes, [`FormatError::TooMany`] for one of more than 1024 hashes.
    pub fn parse(region: &'a [u8]) -> Result<Self, FormatError> {
        let have = region.len() as u64;
        let truncated = |need| FormatError::Truncated { region: Region::Bloom, need, have };
        let (header, rest) = BloomHeader::read_from_prefix(region)
            .map_err(|_| truncated(size_of::<BloomHeader>() as u64))?;
        let num_hashes = header.num_hashes.get();
        let num_bits = header.num_bits.get();
        for (field, found) in [("num_hashes", u64::from(num_hashes)), ("num_bits", num_bits)] {
            if found == 0 {
                return Err(FormatError::UnknownCode { field, found });
            }
        }
        if num_hashes > MAX_HASHES {
            let count = num_hashes.into();
            let limit = MAX_HASHES.into();
            return Err(FormatError::TooMany { what: "hashes", count, limit });
        }
        let words = Values::prefix(rest, num_bits.div_ceil(64))
            .ok_or_else(|| truncated(filter_bytes(num_bits)))?;
        Ok(Self { num_hashes, num_bits, words })
    }

    /// Hashes of each key.
    pub fn num_hashes(&self) -> u32 {
        self.num_hashes
    }

    /// Bits of the filter.
    pub fn num_bits(&self) -> u64 {
        self.num_bits
    }

    /// The bits: bit `b` is bit `b % 64` of word `b / 64`.
    pub fn words(&self) -> Values<'a, u64> {
        self.words
    }

    /// The filter's size in bytes.
    pub(crate) fn byte_len(&self) -> usize {
        size_of::<BloomHeader>() + self.words.as_bytes().len()
    }

    /// Whether `key` may be in the set. `false` is certain.
    #[inline]
    pub fn may_contain(&self, key: &BloomKey) -> bool {
        key.bits(self.num_hashes, self.num_bits).all(|bit| {
            // A word's number is below the number of words, which fitted into `usize`.
            let word = usize::try_from(bit / 64).ok().and_then(|word| self.words.get(word));
            word.is_some_and(|word| word >> (bit % 64) & 1 == 1)
        })
    }
}

/// Bytes of a filter of this many bits.
fn filter_bytes(num_bits: u64) -> u64 {
    size_of::<BloomHeader>() as u64 + num_bits.div_ceil(64).saturating_mul(8)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn filter(num_hashes: u32, num_bits: u64, words: &[u64]) -> Vec<u8> {
        let mut bytes = num_hashes.to_le_bytes().to_vec();
        bytes.extend(num_bits.to_le_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    #[test]
    fn published_vectors_hold() {
        let zeros = BloomKey::new(&[0; 16]);
        assert_eq!(zeros.hashes(), (0x8820_1fb9_60ff_6465, 0x572e_0d9a_1118_7f7c));
        assert_eq!(zeros.bits(9, 64).collect::<Vec<_>>(), [37, 33, 29, 25, 21, 17, 13, 9, 5]);
        let counting: Vec<u8> = (0..16).collect();
        let counting = BloomKey::new(&counting);
        assert_eq!(counting.hashes(), (0x7c84_dc94_7785_1775, 0x6a8b_b4a7_d199_5346));
        assert_eq!(
            counting.bits(7, 958_506).collect::<Vec<_>>(),
            [814_181, 497_657, 16261, 658_243, 176_847, 818_829, 502_305]
        );
    }

    #[test]
    fn a_key_is_found_when_all_its_bits_are_set() {
        let bits = [37, 33, 29, 25, 21, 17, 13, 9, 5];
        let word = bits.iter().fold(0, |word, bit| word | 1 << bit);
        let key = BloomKey::new(&[0; 16]);
        let contains = |word| Bloom::parse(&filter(9, 64, &[word])).unwrap().may_contain(&key);
        assert!(contains(word));
        for bit in bits {
            assert!(!contains(word & !(1 << bit)), "bit {bit}");
        }
    }

    #[test]
    fn a_filter_without_bits_or_with_too_many_hashes_is_refused() {
        let field = |found: Result<Bloom<'_>, _>| match found {
            Err(FormatError::UnknownCode { field, found: 0 }) => field,
            other => panic!("{other:?}"),
        };
        assert_eq!(field(Bloom::parse(&filter(1, 0, &[]))), "num_bits");
        assert_eq!(field(Bloom::parse(&filter(0, 64, &[0]))), "num_hashes");
        let expected = FormatError::TooMany { what: "hashes", count: 1025, limit: 1024 };
        assert_eq!(Bloom::parse(&filter(1025, 64, &[0])).unwrap_err(), expected);
        assert!(Bloom::parse(&filter(1024, 64, &[0])).is_ok());
    }

    #[test]
    fn every_prefix_is_truncated_and_no_count_wraps() {
        let bytes = filter(7, 65, &[1, 2]);
        assert_eq!(Bloom::parse(&bytes).unwrap().byte_len(), 28);
        for have in 0..bytes.len() {
            let error = Bloom::parse(&bytes[..have]).unwrap_err();
            assert!(matches!(error, FormatError::Truncated { .. }), "{have}");
        }
        assert!(Bloom::parse(&filter(7, u64::MAX, &[0; 8])).is_err());
    }
}
