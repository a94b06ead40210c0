//! Documents of an index of Megatron-LM.

use tbl_io::{Location, Mapped, ReadError, Source, TokensDefect};

use crate::layout::defect;

/// Bytes of a document's length in the index, and of its place.
pub(crate) const LENGTH_BYTES: u64 = 4;
pub(crate) const POINTER_BYTES: u64 = 8;

/// The index of a `.bin`.
#[derive(Debug)]
pub(crate) struct Index {
    source: Source,
    mapped: Option<Mapped>,
    /// The offset of the lengths in the index; the places follow them.
    offset: u64,
    len: u64,
    /// Bytes of one token, and of all.
    item: u64,
    bytes: u64,
}

impl Index {
    /// `len` documents whose lengths start at `offset` of the index `source`, which has all of them;
    /// the tokens of `item` bytes have `bytes` bytes in all.
    pub(crate) fn new(
        source: Source,
        offset: u64,
        len: u64,
        item: u64,
        bytes: u64,
    ) -> Result<Self, ReadError> {
        let mapped = match Mapped::new(&source, offset, len * (LENGTH_BYTES + POINTER_BYTES)) {
            Ok(mapped) => Some(mapped),
            Err(ReadError::NotMapped { .. } | ReadError::Limit { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { source, mapped, offset, len, item, bytes })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn location(&self) -> &Location {
        self.source.location()
    }

    /// The offset of the length of document `document`.
    pub(crate) fn length_at(&self, document: u64) -> u64 {
        self.offset + document * LENGTH_BYTES
    }

    /// As [`Documents::place`](super::Documents::place), of a document that exists.
    pub(crate) fn place(&self, document: u64) -> Result<(u64, u64), ReadError> {
        let length_at = self.length_at(document);
        let start_at = self.offset + self.len * LENGTH_BYTES + document * POINTER_BYTES;
        let length = i32::from_le_bytes(self.number(length_at)?);
        let start = i64::from_le_bytes(self.number(start_at)?);
        let place = u64::try_from(start).ok().zip(u64::try_from(length).ok());
        let is_inside = |&(start, length): &(u64, u64)| {
            let end = length.checked_mul(self.item).and_then(|bytes| bytes.checked_add(start));
            start.is_multiple_of(self.item) && end.is_some_and(|end| end <= self.bytes)
        };
        let (start, length) = place.filter(is_inside).ok_or_else(|| {
            let bytes = self.bytes;
            let source = TokensDefect::Document { document, start, length, bytes };
            defect(&self.source, length_at, source)
        })?;
        Ok((start / self.item, length))
    }

    /// As [`Documents::read_lengths`](super::Documents::read_lengths).
    pub(crate) fn read_lengths(&self, first: u64, lengths: &mut [u32]) -> Result<(), ReadError> {
        let offset = self.length_at(first);
        let bytes = lengths.len() as u64 * LENGTH_BYTES;
        let most = self.bytes / self.item;
        let mut damaged = None;
        let mut convert = |stored: &[u8]| {
            let (stored, _) = stored.as_chunks();
            for ((out, stored), document) in lengths.iter_mut().zip(stored).zip(first..) {
                let length = u32::try_from(i32::from_le_bytes(*stored)).ok();
                let length = length.filter(|&length| u64::from(length) <= most);
                *out = length.unwrap_or_default();
                if length.is_none() {
                    damaged = damaged.or(Some(document));
                }
            }
        };
        match &self.mapped {
            Some(mapped) => mapped.with(offset, bytes, convert)?,
            None => {
                let mut stored = Vec::new();
                self.source.read_range_into(offset, bytes, &mut stored)?;
                convert(&stored);
            }
        }
        damaged.map_or(Ok(()), |document| self.place(document).map(drop))
    }

    fn number<const N: usize>(&self, offset: u64) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        match &self.mapped {
            Some(mapped) => mapped.read_exact_at(offset, &mut bytes)?,
            None => self.source.read_exact_at(offset, &mut bytes)?,
        }
        Ok(bytes)
    }
}
