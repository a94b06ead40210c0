//! Reading numbers and strings one after the other, with errors that say where.

use zerocopy::FromBytes;
use zerocopy::little_endian::{I32, I64, U64};

use crate::error::FormatError;

/// Bytes and a position in them.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    /// The offset of `rest`, for errors.
    offset: u64,
}

impl<'a> Cursor<'a> {
    /// Starts at the front of `bytes`, which lie at `offset`.
    pub(crate) fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self { rest: bytes, offset }
    }

    /// The offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// How many bytes are left.
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, what: &'static str, len: usize) -> Result<&'a [u8], FormatError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(FormatError::Truncated {
                what,
                offset: self.offset,
                need: len as u64,
                have: self.rest.len() as u64,
            });
        };
        self.rest = rest;
        self.offset += len as u64;
        Ok(taken)
    }

    /// The next `count` items of `item_bytes` bytes.
    pub(crate) fn take_items(
        &mut self,
        what: &'static str,
        count: usize,
        item_bytes: usize,
    ) -> Result<&'a [u8], FormatError> {
        let Some(len) = count.checked_mul(item_bytes) else {
            return Err(FormatError::Truncated {
                what,
                offset: self.offset,
                // More than this machine addresses.
                need: (count as u64).saturating_mul(item_bytes as u64),
                have: self.rest.len() as u64,
            });
        };
        self.take(what, len)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, FormatError> {
        let bytes = self.take(what, 1)?;
        Ok(bytes.first().copied().unwrap_or_default())
    }

    pub(crate) fn i32(&mut self, what: &'static str) -> Result<i32, FormatError> {
        let bytes = self.take(what, size_of::<i32>())?;
        Ok(I32::read_from_bytes(bytes).map_or(0, I32::get))
    }

    pub(crate) fn i64(&mut self, what: &'static str) -> Result<i64, FormatError> {
        let bytes = self.take(what, size_of::<i64>())?;
        Ok(I64::read_from_bytes(bytes).map_or(0, I64::get))
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, FormatError> {
        let bytes = self.take(what, size_of::<u64>())?;
        Ok(U64::read_from_bytes(bytes).map_or(0, U64::get))
    }

    /// An `i32` that counts something.
    pub(crate) fn count(&mut self, what: &'static str) -> Result<usize, FormatError> {
        let offset = self.offset;
        let found = self.i32(what)?;
        let negative = FormatError::Negative { what, offset, found: found.into() };
        usize::try_from(found).map_err(|_| negative)
    }

    /// An unsigned LEB128 number of up to 64 bits: the tenth byte has one bit at most.
    pub(crate) fn leb128(&mut self, what: &'static str) -> Result<u64, FormatError> {
        self.leb128_of(what, u64::BITS)
    }

    fn leb128_of(&mut self, what: &'static str, bits: u32) -> Result<u64, FormatError> {
        let offset = self.offset;
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            let byte = self.u8(what)?;
            let payload = u64::from(byte & 0x7f);
            if shift >= bits || payload >> (bits - shift).min(7) != 0 {
                return Err(FormatError::Leb128 { what, offset, bits });
            }
            value |= payload << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// A string: its length as a LEB128 number that fits into an `i32`, then UTF-8.
    pub(crate) fn string(&mut self, what: &'static str) -> Result<&'a str, FormatError> {
        let len = self.leb128_of(what, i32::BITS - 1)?;
        let offset = self.offset;
        let have = self.rest.len() as u64;
        let too_long = FormatError::Truncated { what, offset, need: len, have };
        let bytes = self.take(what, usize::try_from(len).map_err(|_| too_long)?)?;
        core::str::from_utf8(bytes).map_err(|error| FormatError::Utf8 {
            what,
            offset,
            valid_up_to: error.valid_up_to() as u64,
        })
    }

    /// A string that names something.
    pub(crate) fn name(&mut self, what: &'static str) -> Result<&'a str, FormatError> {
        let offset = self.offset;
        let name = self.string(what)?;
        if name.is_empty() { Err(FormatError::Empty { what, offset }) } else { Ok(name) }
    }

    /// Nothing may be left.
    pub(crate) fn finish(&self) -> Result<(), FormatError> {
        match self.rest.len() as u64 {
            0 => Ok(()),
            bytes => Err(FormatError::Leftover { offset: self.offset, bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: &Result<u64, FormatError>) {
        assert_eq!(&Cursor::new(bytes, 100).leb128("number"), expected, "{bytes:02x?}");
    }

    #[test]
    fn leb128_takes_64_bits_and_no_more() {
        check(&[0], &Ok(0));
        check(&[0x7f], &Ok(127));
        check(&[0x80, 1], &Ok(128));
        check(&[0xe5, 0x8e, 0x26], &Ok(624_485));
        check(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], &Ok(u64::MAX));
        let wrong = |bits| Err(FormatError::Leb128 { what: "number", offset: 100, bits });
        check(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], &wrong(64));
        check(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0], &wrong(64));
        check(
            &[0x80],
            &Err(FormatError::Truncated { what: "number", offset: 101, need: 1, have: 0 }),
        );
    }

    #[test]
    fn a_string_is_at_most_31_bits_long() {
        let string = |bytes| Cursor::new(bytes, 7).string("name").map(str::len);
        assert_eq!(string(b"\x03abc."), Ok(3));
        let truncated = FormatError::Truncated { what: "name", offset: 8, need: 4, have: 3 };
        assert_eq!(string(b"\x04abc"), Err(truncated));
        let need = i32::MAX.unsigned_abs().into();
        let truncated = FormatError::Truncated { what: "name", offset: 12, need, have: 0 };
        assert_eq!(string(b"\xff\xff\xff\xff\x07"), Err(truncated));
        let wrong = FormatError::Leb128 { what: "name", offset: 7, bits: 31 };
        assert_eq!(string(b"\xff\xff\xff\xff\x08"), Err(wrong.clone()));
        assert_eq!(string(b"\x80\x80\x80\x80\x80\x00"), Err(wrong));
        let utf8 = FormatError::Utf8 { what: "name", offset: 8, valid_up_to: 1 };
        assert_eq!(string(b"\x02a\xff"), Err(utf8));
    }
}
