//! Numbers as differences (`DELTA_BINARY_PACKED`), and texts whose lengths are such numbers.

use crate::runs::varint;
use crate::thrift::unzigzag;

/// Numbers, and the bytes after them.
pub(crate) struct Numbers<'a> {
    pub(crate) values: Vec<i64>,
    pub(crate) rest: &'a [u8],
}

/// The most bits of a difference.
const MAX_WIDTH: u8 = 64;

/// Decodes at most `most` numbers. `None` if there are more, or the bytes end early or are damaged.
pub(crate) fn numbers(mut bytes: &[u8], most: usize) -> Option<Numbers<'_>> {
    let block = usize::try_from(varint(&mut bytes)?).ok()?;
    let minis = usize::try_from(varint(&mut bytes)?).ok()?;
    let count = usize::try_from(varint(&mut bytes)?).ok()?;
    let mut value = unzigzag(varint(&mut bytes)?);
    if count > most {
        return None;
    }
    let mut values = Vec::with_capacity(count);
    if count > 0 {
        values.push(value);
    }
    if count < 2 {
        return Some(Numbers { values, rest: bytes });
    }
    if minis == 0 || !block.is_multiple_of(minis) {
        return None;
    }
    let in_mini = block / minis;
    if in_mini == 0 || !in_mini.is_multiple_of(8) {
        return None;
    }
    while values.len() < count {
        let least = unzigzag(varint(&mut bytes)?);
        let widths = bytes.get(..minis)?;
        bytes = bytes.get(minis..)?;
        for &width in widths {
            // Those after the last number have no bytes.
            if values.len() == count {
                break;
            }
            if width > MAX_WIDTH {
                return None;
            }
            let packed_bytes = (in_mini / 8).checked_mul(width.into())?;
            let packed = bytes.get(..packed_bytes)?;
            bytes = bytes.get(packed_bytes..)?;
            let run = in_mini.min(count - values.len());
            for number in 0..run {
                let delta = bits(packed, number * usize::from(width), width).cast_signed();
                value = value.wrapping_add(least).wrapping_add(delta);
                values.push(value);
            }
        }
    }
    Some(Numbers { values, rest: bytes })
}

/// `width` bits from bit `first` on.
fn bits(packed: &[u8], first: usize, width: u8) -> u64 {
    let start = first / 8;
    let mut window = [0; 16];
    let end = packed.len().min(start + 9);
    let stored = packed.get(start..end).unwrap_or_default();
    window[..stored.len()].copy_from_slice(stored);
    let shifted = u128::from_le_bytes(window) >> (first % 8);
    let mask = (1_u128 << width) - 1;
    u64::try_from(shifted & mask).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], most: usize, expected: Option<&[i64]>) {
        let found = numbers(bytes, most).map(|found| found.values);
        assert_eq!(found.as_deref(), expected, "{bytes:?}");
    }

    #[test]
    fn differences_add_up() {
        // The examples of the specification, in blocks of 8 with one part.
        check(&[8, 1, 5, 2, 2, 0], 5, Some(&[1, 2, 3, 4, 5]));
        let bytes = [8, 1, 8, 14, 3, 2, 0xc0, 0x3f];
        check(&bytes, 8, Some(&[7, 5, 3, 1, 2, 3, 4, 5]));
        check(&bytes, 7, None);
    }

    #[test]
    fn wide_differences_wrap() {
        let mut bytes = vec![8, 1, 2, 0, 0, 64];
        bytes.extend(u64::MAX.to_le_bytes());
        bytes.extend([0; 56]);
        check(&bytes, 2, Some(&[0, -1]));
    }

    #[test]
    fn what_ends_early_or_cannot_be_is_damaged() {
        let bytes = [8, 1, 8, 14, 3, 2, 0xc0, 0x3f];
        for end in 0..bytes.len() {
            check(&bytes[..end], 8, None);
        }
        check(&[8, 0, 5, 2, 2, 0], 5, None);
        check(&[8, 3, 5, 2, 2, 0, 0, 0], 5, None);
        check(&[0, 1, 5, 2, 2, 0], 5, None);
        check(&[8, 1, 5, 2, 2, 65], 5, None);
        check(&[8, 1, 1, 2], 5, Some(&[1]));
        check(&[8, 1, 0, 0], 5, Some(&[]));
    }
}
