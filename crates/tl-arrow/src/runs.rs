//! Runs of small numbers: levels, and indices into dictionaries.

/// The widest numbers.
const MAX_WIDTH: u8 = 32;

/// Calls `take` with `count` numbers of `width` bits, each a run of equal ones or packed (the encoding
/// RLE). `None` if the bytes end early or are damaged.
pub(crate) fn decode(
    mut bytes: &[u8],
    width: u8,
    count: usize,
    mut take: impl FnMut(u32, usize),
) -> Option<()> {
    if width > MAX_WIDTH {
        return None;
    }
    let mut left = count;
    while left > 0 {
        let header = varint(&mut bytes)?;
        let len = usize::try_from(header >> 1).ok()?;
        if header & 1 == 0 {
            let value_bytes = usize::from(width.div_ceil(8));
            let mut value = [0; 4];
            let stored = bytes.get(..value_bytes)?;
            value.get_mut(..value_bytes)?.copy_from_slice(stored);
            bytes = bytes.get(value_bytes..)?;
            let run = len.min(left);
            // A run of none would never end.
            if run == 0 {
                return None;
            }
            take(u32::from_le_bytes(value), run);
            left -= run;
        } else {
            let values = len.checked_mul(8)?;
            let packed_bytes = len.checked_mul(width.into())?;
            if values == 0 {
                return None;
            }
            let run = values.min(left);
            // The last group may be cut off after the last number.
            let needed = (run * usize::from(width)).div_ceil(8);
            let packed = bytes.get(..packed_bytes.min(bytes.len()))?;
            if packed.len() < needed {
                return None;
            }
            unpack(packed, width, run, |value| take(value, 1));
            bytes = bytes.get(packed.len()..)?;
            left -= run;
        }
    }
    Some(())
}

/// Calls `take` with `count` numbers of `width` bits that follow each other from the least bit on;
/// bits past the end are zeros.
fn unpack(packed: &[u8], width: u8, count: usize, mut take: impl FnMut(u32)) {
    let mask = (1_u64 << width) - 1;
    let mut buffer = 0_u64;
    let mut bits = 0;
    let mut bytes = packed.iter();
    for _ in 0..count {
        while bits < width {
            buffer |= u64::from(bytes.next().copied().unwrap_or(0)) << bits;
            bits += 8;
        }
        let value = buffer & mask;
        buffer >>= width;
        bits -= width;
        take(u32::try_from(value).unwrap_or(u32::MAX));
    }
}

/// As [`decode`], for numbers that follow each other from the greatest bit on (the obsolete encoding
/// `BIT_PACKED`).
pub(crate) fn decode_packed(
    bytes: &[u8],
    width: u8,
    count: usize,
    mut take: impl FnMut(u32, usize),
) -> Option<()> {
    let needed = packed_bytes(width, count)?;
    let bytes = bytes.get(..needed)?;
    let bit = |at: usize| u32::from(bytes[at / 8] >> (7 - at % 8) & 1);
    for number in 0..count {
        let first = number * usize::from(width);
        let value = (first..first + usize::from(width)).fold(0, |value, at| value << 1 | bit(at));
        take(value, 1);
    }
    Some(())
}

/// The bytes that [`decode_packed`] reads.
pub(crate) fn packed_bytes(width: u8, count: usize) -> Option<usize> {
    Some(count.checked_mul(width.into())?.div_ceil(8))
}

/// The bits that the number takes.
pub(crate) fn width_of(max: u8) -> u8 {
    u8::try_from(8 - max.leading_zeros()).unwrap_or(8)
}

pub(crate) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], width: u8, count: usize, expected: Option<&[u32]>) {
        let mut found = Vec::new();
        let decoded = decode(bytes, width, count, |value, run| {
            found.extend(std::iter::repeat_n(value, run));
        });
        assert_eq!(decoded.map(|()| &*found), expected, "{bytes:?}");
    }

    #[test]
    fn runs_and_packed_numbers_follow_each_other() {
        // The example of the specification: 0 to 7 in 3 bits.
        check(&[0x03, 0x88, 0xc6, 0xfa], 3, 8, Some(&[0, 1, 2, 3, 4, 5, 6, 7]));
        check(&[0x06, 0x05, 0x03, 0x88, 0xc6, 0xfa], 3, 5, Some(&[5, 5, 5, 0, 1]));
        check(&[0x04, 0x34, 0x12], 16, 2, Some(&[0x1234; 2]));
        check(&[0x04], 0, 2, Some(&[0; 2]));
        check(&[], 3, 0, Some(&[]));
    }

    #[test]
    fn a_run_ends_with_the_last_number() {
        // Packed numbers have bytes for those that are asked for.
        check(&[0xff, 0xff, 0xff, 0x0e, 0x01], 1, 3, Some(&[1, 0, 0]));
        check(&[0xff, 0xff, 0xff, 0x0e, 0x01], 1, 9, None);
        check(&[0xfe, 0xff, 0xff, 0x0e, 0x01], 1, 3, Some(&[1; 3]));
    }

    #[test]
    fn bytes_that_end_early_are_damaged() {
        for bytes in [&[][..], &[0x06], &[0x03, 0x88, 0xc6], &[0x00, 0x01], &[0x01]] {
            check(bytes, 3, 8, None);
        }
        check(&[0x02, 0x01], 33, 1, None);
    }

    #[test]
    fn obsolete_levels_begin_with_the_greatest_bit() {
        let mut found = Vec::new();
        let decoded = decode_packed(&[0x05, 0x39, 0x77], 3, 8, |value, _| found.push(value));
        assert_eq!((decoded, found), (Some(()), vec![0, 1, 2, 3, 4, 5, 6, 7]));
        assert_eq!(decode_packed(&[0x05, 0x39], 3, 8, |_, _| ()), None);
    }

    #[test]
    fn widths_hold_their_maximum() {
        let widths = [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (255, 8)];
        for (max, width) in widths {
            assert_eq!(width_of(max), width);
        }
    }
}
