//! The encoding of parts: numbers and strings.

use alloc::vec::Vec;

use crate::error::FormatError;

/// The most bytes of strings for each byte of a part. Strings share their fronts with the one
/// before, so that a short part could stand for any amount of text. A member of an archive takes at
/// least 4 bytes of a part, and a path has at most 4 KiB.
const MAX_TEXT_RATIO: usize = 1024;

/// Numbers and strings, as parts of shards have them: numbers as LEB128 of 64 bits, strings without
/// their length.
#[derive(Clone, Debug)]
pub struct PartReader<'a> {
    rest: &'a [u8],
    what: &'static str,
    /// Bytes of strings that may still come.
    text_left: usize,
}

impl<'a> PartReader<'a> {
    /// Reads `part`, which errors call `what`.
    pub fn new(part: &'a [u8], what: &'static str) -> Self {
        Self { rest: part, what, text_left: part.len().saturating_mul(MAX_TEXT_RATIO) }
    }

    /// The next number.
    ///
    /// # Errors
    /// [`FormatError::Unreadable`] where the part ends, and for more than 64 bits.
    pub fn number(&mut self) -> Result<u64, FormatError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or_else(|| self.unreadable())?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.unreadable())
    }

    /// The next number, which counts things that take at least one byte of the part each, so that a
    /// damaged count is an error before memory is taken for them.
    ///
    /// # Errors
    /// As for [`number`](Self::number).
    pub fn count(&mut self) -> Result<usize, FormatError> {
        let count = usize::try_from(self.number()?).map_err(|_| self.unreadable())?;
        if count <= self.rest.len() { Ok(count) } else { Err(self.unreadable()) }
    }

    /// The next number with a sign.
    ///
    /// # Errors
    /// As for [`number`](Self::number).
    pub fn signed(&mut self) -> Result<i64, FormatError> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// As for [`number`](Self::number).
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or_else(|| self.unreadable())?;
        self.rest = rest;
        Ok(bytes)
    }

    /// As many strings as were [pushed](push_strings) together, one after the other to `take`.
    ///
    /// # Errors
    /// As for [`number`](Self::number), for strings of more than 1024 times the bytes of the part
    /// in total, and those of `take`.
    pub fn strings<E: From<FormatError>>(
        &mut self,
        count: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut shared = self.clone();
        for _ in 0..count {
            self.number()?;
        }
        let mut own = self.clone();
        for _ in 0..count {
            self.number()?;
        }
        let mut string: Vec<u8> = Vec::new();
        for _ in 0..count {
            let kept = usize::try_from(shared.number()?).unwrap_or(usize::MAX);
            if kept > string.len() {
                return Err(self.unreadable().into());
            }
            string.truncate(kept);
            let own = usize::try_from(own.number()?).unwrap_or(usize::MAX);
            string.extend_from_slice(self.bytes(own)?);
            let text_left = self.text_left.checked_sub(string.len());
            self.text_left = text_left.ok_or_else(|| self.unreadable())?;
            take(&string)?;
        }
        Ok(())
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// [`FormatError::Unreadable`].
    pub fn finish(self) -> Result<(), FormatError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.unreadable()) }
    }

    /// The error of a part that does not make sense.
    pub fn unreadable(&self) -> FormatError {
        FormatError::Unreadable { what: self.what }
    }
}

/// Appends a number as LEB128.
pub fn push_number(part: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        part.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    part.push(number.to_le_bytes()[0]);
}

/// Appends a number with a sign: small ones of either sign take one byte.
pub fn push_signed(part: &mut Vec<u8>, number: i64) {
    push_number(part, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

/// Appends strings, each as the bytes that differ from the one before it: the number of bytes that
/// each shares with the one before, then the numbers of their own bytes, then those bytes.
pub fn push_strings<S: AsRef<[u8]>>(part: &mut Vec<u8>, strings: impl Iterator<Item = S>) {
    let mut own_lens = Vec::new();
    let mut own_bytes = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    for string in strings {
        let string = string.as_ref();
        let shared = last.iter().zip(string).take_while(|(one, other)| one == other).count();
        push_number(part, shared as u64);
        push_number(&mut own_lens, (string.len() - shared) as u64);
        own_bytes.extend_from_slice(&string[shared..]);
        last.clear();
        last.extend_from_slice(string);
    }
    part.append(&mut own_lens);
    part.append(&mut own_bytes);
}

#[cfg(test)]
mod tests {
    use std::string::String;
    use std::{format, vec};

    use super::*;

    #[test]
    fn a_part_reads_back() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let signed = [0, -1, 1, 63, -64, 64, i64::MIN, i64::MAX];
        let names: Vec<String> = (0..300).map(|n| format!("train/{:06}.jpg", n / 2)).collect();
        let mut part = Vec::new();
        numbers.iter().for_each(|&number| push_number(&mut part, number));
        signed.iter().for_each(|&number| push_signed(&mut part, number));
        push_strings(&mut part, names.iter());
        push_strings(&mut part, ["", "a", ""].iter());
        let read = |part: &[u8]| {
            let mut reader = PartReader::new(part, "part");
            for number in numbers {
                assert_eq!(reader.number()?, number);
            }
            for number in signed {
                assert_eq!(reader.signed()?, number);
            }
            let mut found = Vec::new();
            let mut take = |name: &[u8]| {
                found.push(String::from_utf8(name.to_vec()).unwrap());
                Ok::<(), FormatError>(())
            };
            reader.strings(names.len(), &mut take)?;
            reader.strings(3, &mut take)?;
            reader.finish()?;
            assert_eq!(found[..300], names);
            assert_eq!(found[300..], ["", "a", ""]);
            Ok::<(), FormatError>(())
        };
        read(&part).unwrap();
        for len in 0..part.len() {
            assert_eq!(read(&part[..len]), Err(FormatError::Unreadable { what: "part" }), "{len}");
        }
        part.push(0);
        assert!(read(&part).is_err());
    }

    #[test]
    fn strings_have_a_bounded_multiple_of_the_bytes_of_the_part() {
        let read = |name: &str, count: usize| {
            let mut part = Vec::new();
            push_strings(&mut part, core::iter::repeat_n(name, count));
            let mut text_bytes = 0;
            let mut reader = PartReader::new(&part, "part");
            let read = reader.strings(count, |string| {
                text_bytes += string.len();
                Ok::<(), FormatError>(())
            });
            assert!(text_bytes <= 1024 * part.len());
            read.and_then(|()| reader.finish())
        };
        // Three bytes of the part for each name.
        assert_eq!(read(&"a".repeat(3000), 10_000), Ok(()));
        let unreadable = Err(FormatError::Unreadable { what: "part" });
        assert_eq!(read(&"a".repeat(8000), 10_000), unreadable);
    }

    #[test]
    fn numbers_of_more_than_64_bits_are_refused() {
        let unreadable = Err(FormatError::Unreadable { what: "n" });
        for bytes in [vec![0xff; 10], [vec![0xff; 9], vec![2]].concat(), vec![0x80]] {
            assert_eq!(PartReader::new(&bytes, "n").number(), unreadable, "{bytes:?}");
        }
        assert_eq!(
            PartReader::new(&[3, 1, 1], "n").count(),
            Err(FormatError::Unreadable { what: "n" })
        );
        assert_eq!(PartReader::new(&[2, 1, 1], "n").count(), Ok(2));
    }
}
