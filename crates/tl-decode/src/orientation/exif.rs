//! Tag 274 in the first directory of a TIFF structure: an EXIF block or a TIFF file.
//!
//! Accepts what Pillow's `exif_transpose` accepts: every number type, the first of several values,
//! and a directory that is cut after the tag. A damaged EXIF block never makes pixels unusable.

use super::Orientation;

const ORIENTATION: u16 = 274;

/// The orientation of `block`, which may begin with `Exif\0\0`, or `None` where the tag is absent.
/// Values other than 1 to 8 count as upright.
pub(crate) fn orientation(block: &[u8]) -> Option<Orientation> {
    const PREFIX: &[u8] = b"Exif\0\0";
    let tiff = block.strip_prefix(PREFIX).unwrap_or(block);
    // Some writers put the prefix twice.
    let tiff = tiff.strip_prefix(PREFIX).unwrap_or(tiff);
    let directory = Directory::first(tiff)?;
    let tag = directory.orientation()?;
    let value = directory.number(tag).and_then(Orientation::from_tag);
    Some(value.unwrap_or_default())
}

struct Directory<'a> {
    tiff: &'a [u8],
    big_endian: bool,
    /// 4 bytes in TIFF, 8 in `BigTIFF`: the size of offsets, counts and inline values.
    word: usize,
    /// The offset of the first entry.
    at: usize,
    count: u64,
}

/// The values of a tag.
#[derive(Clone, Copy)]
struct Tag<'a> {
    kind: u16,
    data: &'a [u8],
}

impl<'a> Directory<'a> {
    fn first(tiff: &'a [u8]) -> Option<Self> {
        let (big_endian, word) = match tiff.get(..4)? {
            [b'I', b'I', 42, 0] => (false, 4),
            [b'I', b'I', 43, 0] => (false, 8),
            [b'M', b'M', 0, 42] => (true, 4),
            [b'M', b'M', 0, 43] => (true, 8),
            _ => return None,
        };
        let count_size = if word == 4 { 2 } else { 8 };
        let header = Self { tiff, big_endian, word, at: 0, count: 0 };
        let at = usize::try_from(header.uint(word, word)?).ok()?;
        let count = header.uint(at, count_size)?;
        Some(Self { at: at.checked_add(count_size)?, count, ..header })
    }

    /// The orientation tag, if its values are in the block.
    fn orientation(&self) -> Option<Tag<'a>> {
        let mut at = self.at;
        let mut outside = 0usize;
        for _ in 0..self.count {
            let entry = at;
            at = at.checked_add(4 + 2 * self.word)?;
            self.tiff.get(entry..at)?;
            let kind = u16::try_from(self.uint(entry + 2, 2)?).ok()?;
            let Some(unit) = unit_size(kind) else { continue };
            let count = usize::try_from(self.uint(entry + 4, self.word)?).ok()?;
            let Some(size) = count.checked_mul(unit) else { continue };
            let inline = entry + 4 + self.word;
            let mut start = inline;
            if size > self.word {
                // Pillow passes over tags that are larger than the block, and stops at those whose
                // values end outside it.
                outside = outside.saturating_add(size);
                if outside > self.tiff.len() {
                    continue;
                }
                start = usize::try_from(self.uint(inline, self.word)?).ok()?;
            }
            let data = self.tiff.get(start..start.checked_add(size)?)?;
            if self.uint(entry, 2)? == u64::from(ORIENTATION) && !data.is_empty() {
                return Some(Tag { kind, data });
            }
        }
        None
    }

    /// The first value of `tag` if it is a whole number that is not negative.
    fn number(&self, tag: Tag<'_>) -> Option<u64> {
        let data = |size| Some(self.order(tag.data.get(..size)?));
        match tag.kind {
            6 => data(1).filter(|value| *value <= 0x7F),
            3 => data(2),
            8 => data(2).filter(|value| *value <= 0x7FFF),
            4 | 13 => data(4),
            9 => data(4).filter(|value| *value <= 0x7FFF_FFFF),
            16 => data(8),
            5 => {
                let numerator = data(4)?;
                let denominator = self.order(tag.data.get(4..8)?);
                quotient(numerator, denominator)
            }
            10 => {
                let numerator = data(4)?;
                let denominator = self.order(tag.data.get(4..8)?);
                // Two negative numbers have the quotient of their amounts.
                let amount = |value: u64| value.wrapping_neg() & 0xFFFF_FFFF;
                match (numerator >> 31, denominator >> 31) {
                    (0, 0) => quotient(numerator, denominator),
                    (1, 1) => quotient(amount(numerator), amount(denominator)),
                    _ => None,
                }
            }
            11 => {
                let bits = u32::try_from(data(4)?).ok()?;
                whole(f32::from_bits(bits).into())
            }
            12 => whole(f64::from_bits(data(8)?)),
            _ => None,
        }
    }

    /// An unsigned number of `size` bytes at `at`.
    fn uint(&self, at: usize, size: usize) -> Option<u64> {
        Some(self.order(self.tiff.get(at..at.checked_add(size)?)?))
    }

    fn order(&self, bytes: &[u8]) -> u64 {
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        if self.big_endian { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
    }
}

/// Bytes of one value of the types that Pillow reads.
fn unit_size(kind: u16) -> Option<usize> {
    Some(match kind {
        1 | 2 | 6 | 7 => 1,
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        5 | 10 | 12 | 16 => 8,
        _ => return None,
    })
}

fn quotient(numerator: u64, denominator: u64) -> Option<u64> {
    (numerator.checked_rem(denominator)? == 0).then(|| numerator / denominator)
}

/// The tag value that `value` is equal to; others than 1 to 8 have no meaning.
fn whole(value: f64) -> Option<u64> {
    (1..=8u8).find(|tag| f64::from(*tag) == value).map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An EXIF block of the directory entry `kind`, `count` and `data`.
    fn block(big_endian: bool, kind: u16, count: u32, data: &[u8]) -> Vec<u8> {
        let u16 = |v: u16| if big_endian { v.to_be_bytes() } else { v.to_le_bytes() };
        let u32 = |v: u32| if big_endian { v.to_be_bytes() } else { v.to_le_bytes() };
        let mut block = if big_endian { b"MM".to_vec() } else { b"II".to_vec() };
        block.extend([u16(42), u16(8), u16(0)].concat());
        if big_endian {
            block[4..8].copy_from_slice(&u32(8));
        }
        block.extend([u16(1), u16(274), u16(kind)].concat());
        block.extend(u32(count));
        if data.len() <= 4 {
            block.extend(data);
            block.resize(22, 0);
        } else {
            block.extend(u32(26));
        }
        block.extend([0; 4]);
        if data.len() > 4 {
            block.extend(data);
        }
        block
    }

    /// Value 6 of every type, as Pillow reads it.
    #[test]
    fn orientation_is_read_from_every_number_type() {
        for big_endian in [false, true] {
            let ordered = |bytes: &[u8], size: usize| -> Vec<u8> {
                if big_endian {
                    return bytes.to_vec();
                }
                bytes.chunks(size).flat_map(|value| value.iter().rev().copied()).collect()
            };
            let six = |size: usize| ordered(&6u64.to_be_bytes()[8 - size..], size);
            let turned = [
                (3, six(2)),
                (4, six(4)),
                (5, ordered(&[0, 0, 0, 12, 0, 0, 0, 2], 4)),
                (6, six(1)),
                (8, six(2)),
                (9, six(4)),
                (10, ordered(&[255, 255, 255, 244, 255, 255, 255, 254], 4)),
                (11, ordered(&6f32.to_be_bytes(), 4)),
                (12, ordered(&6f64.to_be_bytes(), 8)),
                (13, six(4)),
                (16, six(8)),
            ];
            for (kind, data) in turned {
                let found = orientation(&block(big_endian, kind, 1, &data));
                assert_eq!(found, Some(Orientation::Rotate90), "type {kind}");
                let twice = [&*data, &*data].concat();
                let found = orientation(&block(big_endian, kind, 2, &twice));
                assert_eq!(found, Some(Orientation::Rotate90), "type {kind} twice");
            }
            // Bytes and text are not numbers, but the tag is present.
            for kind in [1, 2, 7] {
                let found = orientation(&block(big_endian, kind, 1, &[6]));
                assert_eq!(found, Some(Orientation::Upright), "type {kind}");
            }
            for kind in [0, 14, 17, 18] {
                assert_eq!(orientation(&block(big_endian, kind, 1, &six(8))), None, "type {kind}");
            }
            assert_eq!(orientation(&block(big_endian, 3, 0, &six(2))), None);
        }
    }

    #[test]
    fn a_cut_block_has_its_orientation_or_none() {
        let whole = block(false, 3, 1, &[6, 0]);
        for end in 0..whole.len() {
            let expected = (end >= 22).then_some(Orientation::Rotate90);
            assert_eq!(orientation(&whole[..end]), expected, "{end}");
        }
        let prefixed = [b"Exif\0\0Exif\0\0", &*whole].concat();
        assert_eq!(orientation(&prefixed), Some(Orientation::Rotate90));
    }
}
