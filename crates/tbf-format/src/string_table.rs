//! The string table: one text for each node, in their order.

use core::str;

use crate::error::FormatError;
use crate::region::Region;
use crate::values::Values;

/// The texts of a segment.
///
/// The region holds for each row where its text ends, counted from the first byte after these
/// numbers, and then the texts.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'a> {
    ends: Values<'a, u64>,
    text: &'a [u8],
}

impl<'a> Strings<'a> {
    /// The texts of `node_count` nodes.
    ///
    /// # Errors
    /// [`FormatError::Truncated`].
    pub fn parse(region: &'a [u8], node_count: u64) -> Result<Self, FormatError> {
        let have = region.len() as u64;
        let need = node_count.saturating_mul(8);
        let truncated = FormatError::Truncated { region: Region::Strings, need, have };
        let ends = Values::<u64>::prefix(region, node_count).ok_or(truncated)?;
        let (_, text) = region.split_at(ends.as_bytes().len());
        Ok(Self { ends, text })
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the table has no texts.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The text of a row.
    ///
    /// # Errors
    /// [`FormatError::NoRow`], [`FormatError::StringExtent`] or [`FormatError::StringUtf8`].
    pub fn row(&self, row: usize) -> Result<&'a str, FormatError> {
        let number = row as u64;
        let no_row = FormatError::NoRow { row: number, node_count: self.len() as u64 };
        let end = self.ends.get(row).ok_or(no_row)?;
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).unwrap_or(0);
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let bytes = range.and_then(|(start, end)| self.text.get(start..end)).ok_or(
            FormatError::StringExtent { row: number, start, end, bytes: self.text.len() as u64 },
        )?;
        str::from_utf8(bytes).map_err(|_| FormatError::StringUtf8 { row: number })
    }

    /// Checks every text, and that nothing lies after the last one.
    pub(crate) fn verify(&self) -> Result<(), FormatError> {
        for row in 0..self.len() {
            self.row(row)?;
        }
        let stated = self.ends.iter().next_back().unwrap_or(0);
        let found = self.text.len() as u64;
        if stated == found {
            return Ok(());
        }
        Err(FormatError::Contradiction { what: "length of all texts", stated, found })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn table(ends: &[u64], text: &[u8]) -> Vec<u8> {
        ends.iter().flat_map(|end| end.to_le_bytes()).chain(text.iter().copied()).collect()
    }

    #[test]
    fn texts_follow_one_another() {
        let region = table(&[2, 2, 6], "lsgrün".split_at(6).0.as_bytes());
        let strings = Strings::parse(&region, 3).unwrap();
        assert_eq!(strings.row(0), Ok("ls"));
        assert_eq!(strings.row(1), Ok(""));
        assert_eq!(strings.row(2), Ok("grü"));
        assert_eq!(strings.row(3), Err(FormatError::NoRow { row: 3, node_count: 3 }));
        assert_eq!(strings.verify(), Ok(()));
    }

    #[test]
    fn damaged_texts_are_named() {
        let verify = |ends: &[u64], text: &[u8]| {
            let region = table(ends, text);
            Strings::parse(&region, ends.len() as u64).unwrap().verify().unwrap_err()
        };
        let extent = |row, start, end| FormatError::StringExtent { row, start, end, bytes: 3 };
        assert_eq!(verify(&[2, 1, 3], b"abc"), extent(1, 2, 1));
        assert_eq!(verify(&[2, 4], b"abc"), extent(1, 2, 4));
        assert_eq!(verify(&[2, u64::MAX], b"abc"), extent(1, 2, u64::MAX));
        assert_eq!(verify(&[1, 3], "a\u{fc}".as_bytes().split_at(2).0), extent2());
        assert_eq!(verify(&[1, 2], b"a\xff"), FormatError::StringUtf8 { row: 1 });
        assert!(matches!(verify(&[1, 2], b"abc"), FormatError::Contradiction { .. }));
    }

    fn extent2() -> FormatError {
        FormatError::StringExtent { row: 1, start: 1, end: 3, bytes: 2 }
    }

    #[test]
    fn tables_too_short_are_refused() {
        let have = 23;
        let expected = FormatError::Truncated { region: Region::Strings, need: 24, have };
        assert_eq!(Strings::parse(&[0; 23], 3).unwrap_err(), expected);
        assert!(Strings::parse(&[0; 23], u64::MAX).is_err());
    }
}
