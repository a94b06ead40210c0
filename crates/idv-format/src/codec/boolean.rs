//! Booleans: one bit each, or two when they can be missing.

use alloc::vec::Vec;

use crate::cursor::Cursor;
use crate::error::FormatError;
use crate::values::ValuesError;

/// The form of a missing value among decoded booleans, and as a pair of bits.
pub(crate) const MISSING: u8 = 2;

const WHAT: &str = "booleans";
const PAIRS_PER_WORD: usize = 16;

/// Bit `i & 7` of byte `i >> 3` is value `i`.
pub(super) fn decode_bits(count: usize, cursor: &mut Cursor<'_>) -> Result<Vec<u8>, FormatError> {
    let bits = cursor.take(WHAT, count.div_ceil(8))?;
    let mut values = Vec::with_capacity(bits.len() * 8);
    for &byte in bits {
        values.extend_from_slice(&core::array::from_fn::<u8, 8, _>(|bit| (byte >> bit) & 1));
    }
    values.truncate(count);
    Ok(values)
}

/// Two bits a value, sixteen values a word of 32 bits: the same as four values a byte, in blocks
/// of a multiple of four bytes.
pub(super) fn decode_pairs(count: usize, cursor: &mut Cursor<'_>) -> Result<Vec<u8>, FormatError> {
    let words = cursor.take_items(WHAT, count.div_ceil(PAIRS_PER_WORD), size_of::<u32>())?;
    let mut values = Vec::with_capacity(words.len() * 4);
    for &byte in words {
        values.extend_from_slice(&core::array::from_fn::<u8, 4, _>(|i| (byte >> (2 * i)) & 3));
    }
    values.truncate(count);
    match values.iter().position(|&value| value > MISSING) {
        None => Ok(values),
        Some(item) => Err(FormatError::BooleanPattern { item: item as u64 }),
    }
}

pub(super) fn encode_bits(values: &[u8], bytes: &mut Vec<u8>) -> Result<(), ValuesError> {
    check(values)?;
    if let Some(item) = values.iter().position(|&value| value == MISSING) {
        return Err(ValuesError::MissingBoolean { item });
    }
    let pack = |values: &[u8]| values.iter().rev().fold(0, |byte, value| byte << 1 | value);
    bytes.extend(values.chunks(8).map(pack));
    Ok(())
}

pub(super) fn encode_pairs(values: &[u8], bytes: &mut Vec<u8>) -> Result<(), ValuesError> {
    check(values)?;
    for word in values.chunks(PAIRS_PER_WORD) {
        let word = word.iter().rev().fold(0u32, |word, &value| word << 2 | u32::from(value));
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    Ok(())
}

fn check(values: &[u8]) -> Result<(), ValuesError> {
    match values.iter().enumerate().find(|&(_, &value)| value > MISSING) {
        None => Ok(()),
        Some((item, &found)) => Err(ValuesError::BooleanValue { item, found }),
    }
}
