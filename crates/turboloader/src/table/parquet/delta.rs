//! Counts at the beginning of the encodings `DELTA_*`, which decoders take memory for.

/// The counts of a block's header.
#[derive(Clone, Copy, Debug)]
struct Header {
    miniblocks: usize,
    miniblock_values: usize,
    values: u64,
}

/// Numbers of `DELTA_BINARY_PACKED` at the start of `data`: how many there are.
pub(super) fn count(data: &[u8]) -> Option<u64> {
    Some(header(data)?.0.values)
}

/// The bytes after the numbers of `DELTA_BINARY_PACKED` at the start of `data`.
pub(super) fn after_numbers(data: &[u8]) -> Option<&[u8]> {
    let (header, mut rest) = header(data)?;
    // The header has the first number.
    let mut left = header.values.saturating_sub(1);
    let miniblock_values = header.miniblock_values as u64;
    while left > 0 {
        let (_, after) = varint(rest)?;
        let (widths, after) = after.split_at_checked(header.miniblocks)?;
        let mut bytes = 0usize;
        for &width in widths {
            if left == 0 {
                break;
            }
            bytes =
                bytes.checked_add(usize::from(width).checked_mul(header.miniblock_values)? / 8)?;
            left = left.saturating_sub(miniblock_values);
        }
        // The last of the blocks may be cut.
        rest = after.get(bytes..).or_else(|| (left == 0).then_some(&[][..]))?;
    }
    Some(rest)
}

fn header(data: &[u8]) -> Option<(Header, &[u8])> {
    let (block_values, rest) = varint(data)?;
    let (miniblocks, rest) = varint(rest)?;
    let (values, rest) = varint(rest)?;
    let (_first, rest) = varint(rest)?;
    let miniblock_values = usize::try_from(block_values.checked_div(miniblocks)?).ok()?;
    let miniblocks = usize::try_from(miniblocks).ok()?;
    (miniblock_values > 0).then_some((Header { miniblocks, miniblock_values, values }, rest))
}

fn varint(mut data: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = data.split_first()?;
        data = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some((value, data));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 7, then 32 numbers of 3 bits, of which the block has 4 times as many.
    const NUMBERS: [u8; 10] = [0x80, 0x01, 0x04, 0x21, 0x0e, 0x02, 3, 9, 9, 9];

    #[test]
    fn numbers_end_after_the_miniblocks_that_are_used() {
        let data = [&NUMBERS[..], &[0xff; 12], b"rest"].concat();
        assert_eq!((count(&data), after_numbers(&data)), (Some(33), Some(&b"rest"[..])));
        assert_eq!(after_numbers(&[0x80, 0x01, 0x04, 0x01, 0x0e, 5]), Some(&[5][..]));
    }

    #[test]
    fn damaged_headers_have_no_count() {
        for end in 0..5 {
            assert_eq!(count(&NUMBERS[..end]), None);
        }
        assert_eq!(count(&[0x80, 0x01, 0x00, 0x01, 0x00]), None);
        assert_eq!(count(&[0xff; 20]), None);
        assert_eq!(after_numbers(&[0x80, 0x01, 0x04, 0xff, 0xff, 0xff, 0x7f, 0x00]), None);
    }
}
