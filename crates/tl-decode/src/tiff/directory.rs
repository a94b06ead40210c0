//! The file header and one image file directory of TIFF 6.0 and `BigTIFF`. Values are read where
//! they lie; nothing is copied, so a directory cannot ask for memory.

use crate::error::{DecodeError, Defect, Limit};
use crate::format::Format;
use crate::limits::{Limits, check};

/// The byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(super) fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    /// An unsigned number of 1, 2, 4 or 8 bytes.
    fn uint(self, bytes: &[u8]) -> Option<u64> {
        Some(match *bytes {
            [byte] => byte.into(),
            [a, b] => self.u16([a, b]).into(),
            [a, b, c, d] => self.u32([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => self.u64([a, b, c, d, e, f, g, h]),
            _ => return None,
        })
    }
}

/// The first directory of a file.
pub(super) struct Directory<'a> {
    file: &'a [u8],
    order: Order,
    entries: &'a [u8],
    /// 4 bytes in TIFF, 8 in `BigTIFF`: the size of offsets, counts and inline values.
    word: usize,
}

/// The values of one tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    order: Order,
    size: usize,
    integer: bool,
    /// The bytes of all values.
    pub(super) data: &'a [u8],
}

impl Values<'_> {
    pub(super) fn len(&self) -> usize {
        self.data.len() / self.size
    }

    /// Value `index` if the tag has it and its type is unsigned.
    pub(super) fn get(&self, index: usize) -> Option<u64> {
        let at = index.checked_mul(self.size)?;
        let bytes = self.data.get(at..at.checked_add(self.size)?)?;
        if self.integer { self.order.uint(bytes) } else { None }
    }
}

impl<'a> Directory<'a> {
    pub(super) fn first(file: &'a [u8], limits: &Limits) -> Result<Self, DecodeError> {
        let order = if file.starts_with(b"II") { Order::Little } else { Order::Big };
        let version = slice(file, 2, 2, "header")?;
        let big = order.uint(version) == Some(43);
        let (word, first_at, count_size) = if big { (8, 8, 8) } else { (4, 4, 2) };
        let offset = order.uint(slice(file, first_at, word, "header")?).unwrap_or(0);
        let count = slice(file, offset, count_size, "directory")?;
        let count = order.uint(count).unwrap_or(0);
        check(Limit::TiffEntries, limits.tiff_entries.into(), count)?;
        let entry_size = 4 + 2 * word as u64;
        let entries_at = offset + count_size as u64;
        let entries = slice(file, entries_at, to_usize(count * entry_size), "directory")?;
        Ok(Self { file, order, entries, word })
    }

    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// The values of `tag`, or `None` where the directory does not have it.
    pub(super) fn find(&self, tag: u16) -> Result<Option<Values<'a>>, DecodeError> {
        let word = self.word;
        let entry = self
            .entries
            .chunks_exact(4 + 2 * word)
            .find(|entry| entry.first_chunk().is_some_and(|bytes| self.order.u16(*bytes) == tag));
        let Some(entry) = entry else { return Ok(None) };
        let kind = self.order.uint(&entry[2..4]).unwrap_or(0);
        let count = self.order.uint(&entry[4..4 + word]).unwrap_or(0);
        let inline = &entry[4 + word..];
        let (size, integer) = match kind {
            // BYTE, ASCII, SBYTE, UNDEFINED
            1 | 2 | 6 | 7 => (1, kind == 1 || kind == 7),
            // SHORT, SSHORT
            3 | 8 => (2, kind == 3),
            // LONG, SLONG, FLOAT, IFD
            4 | 9 | 11 | 13 => (4, matches!(kind, 4 | 13)),
            // RATIONAL, SRATIONAL, DOUBLE, LONG8, SLONG8, IFD8
            5 | 10 | 12 | 16..=18 => (8, matches!(kind, 16 | 18)),
            other => {
                let what = "type of a tag";
                return Err(Defect::Value { format: Format::Tiff, what, found: other }.into());
            }
        };
        let bytes = to_usize(count.saturating_mul(size as u64));
        let data = match inline.get(..bytes) {
            Some(data) => data,
            None => {
                let offset = self.order.uint(inline).unwrap_or(u64::MAX);
                slice(self.file, offset, bytes, "tag values")?
            }
        };
        Ok(Some(Values { order: self.order, size, integer, data }))
    }

    /// The first value of `tag`, or `default` where it is absent or empty.
    pub(super) fn number(&self, tag: u16, default: u64) -> Result<u64, DecodeError> {
        Ok(self.find(tag)?.and_then(|values| values.get(0)).unwrap_or(default))
    }
}

/// `size` bytes of `file` at `offset`.
pub(super) fn slice<'a>(
    file: &'a [u8],
    offset: u64,
    size: usize,
    what: &'static str,
) -> Result<&'a [u8], DecodeError> {
    let rest = usize::try_from(offset).ok().and_then(|at| file.get(at..)).unwrap_or_default();
    rest.get(..size).ok_or_else(|| {
        let need = size as u64;
        let have = rest.len() as u64;
        Defect::Truncated { format: Format::Tiff, what, offset, need, have }.into()
    })
}

fn to_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
