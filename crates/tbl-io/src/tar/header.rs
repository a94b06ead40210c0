//! One 512-byte header block: POSIX ustar, GNU, star and the old V7 layout.
//!
//! Layouts: POSIX.1-2017 pax, "ustar Interchange Format"; GNU tar manual, "Basic Tar Format".

use std::borrow::Cow;
use std::ops::Range;

use crate::error::TarDefect;

/// Bytes of a header, and the unit that everything in an archive is padded to.
pub(crate) const BLOCK_BYTES: u64 = 512;

/// One block.
pub(crate) type Block = [u8; 512];

const NAME: Range<usize> = 0..100;
const SIZE: Range<usize> = 124..136;
const CHECKSUM: Range<usize> = 148..156;
const TYPE: usize = 156;
const MAGIC: Range<usize> = 257..263;
const PREFIX: Range<usize> = 345..500;
/// star keeps times after a shorter prefix and signs the header's last bytes.
const STAR_PREFIX: Range<usize> = 345..476;
const STAR_TRAILER: Range<usize> = 508..512;
/// GNU sparse headers say here whether blocks with more of the map follow.
const GNU_SPARSE_EXTENDED: usize = 482;

/// The offset of the flag, in a block that continues a GNU sparse map, that another one follows.
pub(crate) const SPARSE_MAP_CONTINUES: usize = 504;

/// Numbers that the index has no use for. That they are numbers tells a header from bytes whose
/// sum is right by chance.
const OTHER_NUMBERS: [(&str, Range<usize>); 4] =
    [("mode", 100..108), ("uid", 108..116), ("gid", 116..124), ("mtime", 136..148)];

/// Numbers that V7 does not have.
const DEVICE_NUMBERS: [(&str, Range<usize>); 2] = [("devmajor", 329..337), ("devminor", 337..345)];

/// A header block whose checksum is right and whose numbers are numbers.
#[derive(Debug)]
pub(crate) struct Header<'a> {
    block: &'a Block,
}

impl<'a> Header<'a> {
    pub(crate) fn parse(block: &'a Block) -> Result<Self, TarDefect> {
        let stored = number(&block[CHECKSUM]).ok_or(TarDefect::BadNumber { field: "checksum" })?;
        let sums = Checksums::of(block);
        // Some old archivers added the bytes up as signed.
        if stored != sums.unsigned && i64::try_from(stored) != Ok(sums.signed) {
            return Err(TarDefect::Checksum { stored, computed: sums.unsigned });
        }
        let device_numbers: &[_] =
            if block[MAGIC].starts_with(b"ustar") { &DEVICE_NUMBERS } else { &[] };
        for (field, range) in OTHER_NUMBERS.iter().chain(device_numbers) {
            if !is_number(&block[range.clone()]) {
                return Err(TarDefect::BadNumber { field });
            }
        }
        Ok(Self { block })
    }

    pub(crate) fn type_flag(&self) -> u8 {
        self.block[TYPE]
    }

    pub(crate) fn size(&self) -> Result<u64, TarDefect> {
        number(&self.block[SIZE]).ok_or(TarDefect::BadNumber { field: "size" })
    }

    /// The name, with its prefix where the magic says that there is one. GNU archives keep times
    /// in that place.
    pub(crate) fn path(&self) -> Cow<'a, [u8]> {
        let name = text(&self.block[NAME]);
        let prefix: &[u8] = match &self.block[MAGIC] {
            b"ustar\0" if &self.block[STAR_TRAILER] == b"tar\0" => text(&self.block[STAR_PREFIX]),
            b"ustar\0" => text(&self.block[PREFIX]),
            _ => &[],
        };
        if prefix.is_empty() {
            Cow::Borrowed(name)
        } else {
            Cow::Owned([prefix, b"/", name].concat())
        }
    }

    /// Whether this header of a GNU sparse member continues in the next block.
    pub(crate) fn sparse_map_continues(&self) -> bool {
        self.block[GNU_SPARSE_EXTENDED] != 0
    }
}

/// The sum of a header's bytes with blanks instead of the checksum field.
struct Checksums {
    unsigned: u64,
    signed: i64,
}

impl Checksums {
    fn of(block: &Block) -> Self {
        let blanks = CHECKSUM.len() as u64 * u64::from(b' ');
        let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
        let high = |bytes: &[u8]| bytes.iter().map(|&byte| u32::from(byte >> 7)).sum::<u32>();
        let unsigned = u64::from(sum(block) - sum(&block[CHECKSUM])) + blanks;
        // Each byte of 128 and more counts 256 less when it is signed.
        let negative = i64::from(high(block) - high(&block[CHECKSUM]));
        Self { unsigned, signed: unsigned.cast_signed() - 256 * negative }
    }
}

/// A number field: octal digits among blanks up to a NUL, or base-256 when the first bit is set.
/// `None` for anything else, negative base-256 included. An empty field is zero.
fn number(field: &[u8]) -> Option<u64> {
    let (&first, rest) = field.split_first()?;
    if first == 0x80 {
        return rest
            .iter()
            .try_fold(0_u64, |value, &byte| Some(value.checked_mul(256)? | u64::from(byte)));
    }
    text(field).trim_ascii().iter().try_fold(0_u64, |value, &digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// Whether a field that may be negative is a number: base-256 with either sign, octal with or
/// without a minus.
fn is_number(field: &[u8]) -> bool {
    match field.first() {
        Some(0x80 | 0xff) => true,
        _ => {
            let digits = text(field).trim_ascii();
            number(digits.strip_prefix(b"-").unwrap_or(digits)).is_some() || digits.is_empty()
        }
    }
}

/// Whether every byte of `block` is zero.
pub(crate) fn is_zero(block: &Block) -> bool {
    block.iter().fold(0, |all, &byte| all | byte) == 0
}

/// A text field: all of it, or up to the first NUL.
pub(crate) fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    &field[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_base_256() {
        let check = |field: &[u8], expected| assert_eq!(number(field), expected, "{field:?}");
        check(b"00000000644\0", Some(0o644));
        check(b"     644 \0\0\0", Some(0o644));
        check(b"777777777777", Some(0o777_777_777_777));
        check(b"\0\0\0\0", Some(0));
        check(b"        ", Some(0));
        check(b"12\09", Some(0o12));
        check(b"128", None);
        check(b"1 2", None);
        check(b"-1", None);
        check(b"", None);
        check(b"\x80\0\0\0\0\0\0\0\0\x01\0\0", Some(65536));
        check(b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", Some(u64::MAX));
        check(b"\x80\0\0\x01\0\0\0\0\0\0\0\0", None);
        check(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None);
        check(b"7777777777777777777777777", None);
    }

    #[test]
    fn both_ways_to_add_up_a_header_are_accepted() {
        let mut block = [0; 512];
        block[..4].copy_from_slice(b"\xe4\xf6\xfc.");
        let unsigned: u64 = 0xe4 + 0xf6 + 0xfc + 0x2e + 8 * 0x20;
        for stored in [unsigned, unsigned - 3 * 256] {
            block[CHECKSUM].copy_from_slice(format!("{stored:06o}\0 ").as_bytes());
            assert_eq!(Header::parse(&block).unwrap().path().as_ref(), b"\xe4\xf6\xfc.");
        }
        block[CHECKSUM].copy_from_slice(format!("{:06o}\0 ", unsigned + 1).as_bytes());
        let defect = TarDefect::Checksum { stored: unsigned + 1, computed: unsigned };
        assert_eq!(Header::parse(&block).unwrap_err(), defect);
    }
}
