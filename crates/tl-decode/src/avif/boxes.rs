//! Boxes of ISO/IEC 14496-12 and the numbers in them, with their places in the file.

use crate::error::{DecodeError, Defect};
use crate::format::Format;

/// The kind of a box or an item.
pub(super) type FourCc = [u8; 4];

/// Bytes of the file from a place on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    pub(super) data: &'a [u8],
    /// The offset of the first in the file.
    pub(super) at: usize,
}

/// A box without its header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Boxed<'a> {
    pub(super) kind: FourCc,
    pub(super) contents: Bytes<'a>,
}

impl<'a> Bytes<'a> {
    /// All bytes of a file.
    pub(super) fn of_file(data: &'a [u8]) -> Self {
        Self { data, at: 0 }
    }

    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (bytes, rest) =
            self.data.split_first_chunk().ok_or_else(|| self.truncated(N as u64))?;
        self.data = rest;
        self.at += N;
        Ok(*bytes)
    }

    pub(super) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.take().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, DecodeError> {
        self.take().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, DecodeError> {
        self.take().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, DecodeError> {
        self.take().map(u64::from_be_bytes)
    }

    /// A number of so many bytes: 0, 4 or 8.
    pub(super) fn sized(&mut self, bytes: u8) -> Result<u64, DecodeError> {
        match bytes {
            0 => Ok(0),
            4 => self.u32().map(u64::from),
            8 => self.u64(),
            _ => Err(value_at("size of a number", bytes.into(), self.at)),
        }
    }

    /// A number of 32 bits if `wide` says so, otherwise of 16.
    pub(super) fn id(&mut self, wide: bool) -> Result<u32, DecodeError> {
        if wide { self.u32() } else { self.u16().map(u32::from) }
    }

    /// Version and flags of a full box.
    pub(super) fn version(&mut self) -> Result<Version, DecodeError> {
        let [version, high, middle, low] = self.take()?;
        Ok(Version { version, flags: u32::from_be_bytes([0, high, middle, low]) })
    }

    /// The next `size` bytes.
    pub(super) fn part(&mut self, size: u64) -> Result<Self, DecodeError> {
        let parts = usize::try_from(size).ok().and_then(|size| self.data.split_at_checked(size));
        let (data, rest) = parts.ok_or_else(|| self.truncated(size))?;
        let part = Self { data, at: self.at };
        self.at += data.len();
        self.data = rest;
        Ok(part)
    }

    /// The bytes from `offset` on.
    pub(super) fn after(&self, offset: u64) -> Result<Self, DecodeError> {
        let mut rest = *self;
        rest.part(offset)?;
        Ok(rest)
    }

    /// A text up to its zero byte, or to the end.
    pub(super) fn text(&mut self) -> &'a [u8] {
        let length = memchr::memchr(0, self.data).unwrap_or(self.data.len());
        let (text, rest) = self.data.split_at(length);
        let with_end = text.len() + rest.len().min(1);
        self.data = rest.get(1..).unwrap_or_default();
        self.at += with_end;
        text
    }

    /// The next box, `None` after the last.
    pub(super) fn next_box(&mut self) -> Result<Option<Boxed<'a>>, DecodeError> {
        if self.data.is_empty() {
            return Ok(None);
        }
        let at = self.at;
        let whole = self.data.len() as u64;
        let short = self.u32()?;
        let kind = self.take()?;
        let header = if short == 1 { 16 } else { 8 };
        let length = match short {
            // To the end of the file.
            0 => whole,
            1 => self.u64()?,
            length => length.into(),
        };
        let Some(size) = length.checked_sub(header) else {
            return Err(value_at("box length", length, at));
        };
        Ok(Some(Boxed { kind, contents: self.part(size)? }))
    }

    /// The first box of a kind.
    pub(super) fn find(mut self, kind: FourCc) -> Result<Option<Self>, DecodeError> {
        while let Some(found) = self.next_box()? {
            if found.kind == kind {
                return Ok(Some(found.contents));
            }
        }
        Ok(None)
    }

    /// The first box of a kind, which must be there.
    pub(super) fn require(self, kind: FourCc, what: &'static str) -> Result<Self, DecodeError> {
        self.find(kind)?.ok_or_else(|| missing(what))
    }

    fn truncated(&self, need: u64) -> DecodeError {
        let offset = self.at as u64;
        let have = self.data.len() as u64;
        Defect::Truncated { format: Format::Avif, what: "box or item", offset, need, have }.into()
    }
}

/// Version and flags of a full box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) version: u8,
    pub(super) flags: u32,
}

/// A value that the format does not allow, in the segment at `at`.
pub(super) fn value_at(what: &'static str, found: u64, at: usize) -> DecodeError {
    Defect::ValueAt { format: Format::Avif, what, found, offset: at as u64 }.into()
}

pub(super) fn missing(what: &'static str) -> DecodeError {
    Defect::Missing { format: Format::Avif, what }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_boxes_have_three_forms() {
        let data = b"\0\0\0\x0aabcd12\0\0\0\x01efgh\0\0\0\0\0\0\0\x113\0\0\0\0ijkl45";
        let mut reader = Bytes::of_file(data);
        let mut boxes = Vec::new();
        while let Some(found) = reader.next_box().unwrap() {
            boxes.push((found.kind, found.contents.data, found.contents.at));
        }
        let expected: [(FourCc, &[u8], usize); 3] =
            [(*b"abcd", b"12", 8), (*b"efgh", b"3", 26), (*b"ijkl", b"45", 35)];
        assert_eq!(boxes, expected);
    }

    #[test]
    fn boxes_that_are_too_short_or_too_long_are_errors() {
        let text = |data: &[u8]| Bytes::of_file(data).next_box().unwrap_err().to_string();
        let short = "malformed: AVIF box length in the segment at byte 0 is 7";
        assert_eq!(text(b"\0\0\0\x07abcd"), short);
        let long = "malformed: AVIF box or item at byte 8 needs 2 bytes, found 1";
        assert_eq!(text(b"\0\0\0\x0aabcd1"), long);
    }
}
