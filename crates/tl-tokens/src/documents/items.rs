//! Documents that the front of a LitData chunk lists.

use tbl_io::{Location, ReadError, Source, TokensDefect};

use crate::layout::defect;

/// Bytes of the number of items, and of the place of each.
pub(crate) const NUMBER_BYTES: u64 = 4;

/// The items of a chunk: the first byte of each, and the end of the last, follow their number.
#[derive(Debug)]
pub(crate) struct Items {
    source: Source,
    len: u64,
    /// Bytes of a token.
    item: u64,
}

/// The offset of the place of item `item`.
pub(crate) const fn offset_at(item: u64) -> u64 {
    NUMBER_BYTES + item * NUMBER_BYTES
}

impl Items {
    /// The `len` items of `source`, which has all of their places; their tokens have `item` bytes each
    /// and reach to its end.
    pub(crate) const fn new(source: Source, len: u64, item: u64) -> Self {
        Self { source, len, item }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn location(&self) -> &Location {
        self.source.location()
    }

    /// The offset of the first token.
    fn first(&self) -> u64 {
        offset_at(self.len + 1)
    }

    /// As [`Documents::place`](super::Documents::place), of an item that exists.
    pub(crate) fn place(&self, number: u64) -> Result<(u64, u64), ReadError> {
        let mut bytes = [0; 8];
        self.source.read_exact_at(offset_at(number), &mut bytes)?;
        let [start, end] = [0, 4].map(|at| {
            let number = bytes[at..at + 4].try_into().expect("four of eight bytes");
            u32::from_le_bytes(number)
        });
        let length = self.length(start, end).ok_or_else(|| self.defect(number, start, end))?;
        Ok(((u64::from(start) - self.first()) / self.item, length.into()))
    }

    /// As [`Documents::read_lengths`](super::Documents::read_lengths).
    pub(crate) fn read_lengths(&self, first: u64, lengths: &mut [u32]) -> Result<(), ReadError> {
        let mut bytes = Vec::new();
        let count = lengths.len() as u64 + 1;
        self.source.read_range_into(offset_at(first), count * NUMBER_BYTES, &mut bytes)?;
        let places: Vec<u32> =
            bytes.as_chunks().0.iter().map(|place| u32::from_le_bytes(*place)).collect();
        for ((out, pair), number) in lengths.iter_mut().zip(places.windows(2)).zip(first..) {
            let [start, end] = [pair[0], pair[1]];
            *out = self.length(start, end).ok_or_else(|| self.defect(number, start, end))?;
        }
        Ok(())
    }

    /// The number of tokens between two bytes; `None` if they are not tokens of the file.
    fn length(&self, start: u32, end: u32) -> Option<u32> {
        let begins = u64::from(start).checked_sub(self.first())?.is_multiple_of(self.item);
        let bytes = u64::from(end.checked_sub(start)?);
        let is_inside = begins && bytes.is_multiple_of(self.item);
        (is_inside && u64::from(end) <= self.source.len())
            .then(|| u32::try_from(bytes / self.item).ok())?
    }

    fn defect(&self, document: u64, start: u32, end: u32) -> ReadError {
        let length = (i64::from(end) - i64::from(start)) / i64::try_from(self.item).unwrap_or(1);
        let length = i32::try_from(length).unwrap_or(i32::MAX);
        let source = TokensDefect::Document {
            document,
            start: start.into(),
            length,
            bytes: self.source.len(),
        };
        defect(&self.source, offset_at(document), source)
    }
}
