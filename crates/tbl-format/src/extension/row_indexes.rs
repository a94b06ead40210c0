//! Row indexes of a run of JPEG samples: where each MCU row starts in the sample's entropy-coded
//! data, so that a decoder can start at the crop's first row. Indexes of the frames of videos are
//! stored in the same blocks.
//!
//! What a row index says is the decoder's business; here it is bytes that belong to a sample. The
//! table in front of them holds one entry of fixed size per sample, so that an index is found
//! without reading the ones before it.

use alloc::vec::Vec;
use core::mem::size_of;

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::RunHead;
use crate::checksum::Crc32c;
use crate::error::FormatError;

/// One sample's place in the table.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Slot {
    /// The end of the sample's row index, from the first byte after the table; for a sample without
    /// one, the end of the one before it.
    end: U32,
    checksum: U32,
}

const _: () = assert!(size_of::<Slot>() == 8);

/// The row indexes of samples `first_sample()..first_sample() + len()`, of which any number may
/// have none.
#[derive(Clone, Copy, Debug)]
pub struct RowIndexes<'a> {
    first_sample: u64,
    slots: &'a [Slot],
    bytes: &'a [u8],
}

impl<'a> RowIndexes<'a> {
    /// The largest row index: a header of 20 bytes, and 12 bytes for each of 65 535 MCU rows of
    /// four components.
    pub const MAX_ROW_INDEX_BYTES: usize = 20 + 12 * u16::MAX as usize;

    pub(super) fn parse(body: &'a [u8]) -> Result<Self, FormatError> {
        let (head, rest) = RunHead::parse(body, "row index block")?;
        let need = u64::from(head.count.get()) * size_of::<Slot>() as u64;
        let (slots, bytes) = usize::try_from(need)
            .ok()
            .and_then(|table| rest.split_at_checked(table))
            .and_then(|(slots, bytes)| Some((<[Slot]>::ref_from_bytes(slots).ok()?, bytes)))
            .ok_or(FormatError::Truncated {
                what: "row index table",
                need,
                have: rest.len() as u64,
            })?;
        Ok(Self { first_sample: head.first_sample.get(), slots, bytes })
    }

    /// The first sample of the run.
    pub fn first_sample(&self) -> u64 {
        self.first_sample
    }

    /// How many samples the run has.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many samples of the run have a row index.
    ///
    /// # Errors
    /// [`FormatError::RowIndexExtent`], [`FormatError::TooLarge`].
    pub fn count(&self) -> Result<u64, FormatError> {
        let mut count = 0;
        for position in 0..self.slots.len() {
            count += u64::from(self.at(position)?.is_some_and(|(bytes, _)| !bytes.is_empty()));
        }
        Ok(count)
    }

    /// The row index of sample `index` of the file; `None` when it has none or another block has
    /// it. `sample_crc32c` is the checksum of the sample's bytes. A row index of other bytes is
    /// refused.
    ///
    /// # Errors
    /// [`FormatError::RowIndexExtent`], [`FormatError::TooLarge`], [`FormatError::Crc32c`].
    pub fn row_index(
        &self,
        index: u64,
        sample_crc32c: u32,
    ) -> Result<Option<&'a [u8]>, FormatError> {
        let position = index.checked_sub(self.first_sample).map(usize::try_from);
        let Some(Ok(position)) = position else { return Ok(None) };
        let Some((bytes, stored)) = self.at(position)? else { return Ok(None) };
        if bytes.is_empty() {
            return Ok(None);
        }
        let computed = checksum(sample_crc32c, bytes);
        if stored != computed {
            return Err(FormatError::Crc32c { what: "row index", stored, computed });
        }
        Ok(Some(bytes))
    }

    /// The bytes and the checksum at `position` of the table; `None` past its end.
    fn at(&self, position: usize) -> Result<Option<(&'a [u8], u32)>, FormatError> {
        let Some(slot) = self.slots.get(position) else { return Ok(None) };
        let before = position.checked_sub(1).and_then(|before| self.slots.get(before));
        let start = before.map_or(0, |before| before.end.get());
        let end = slot.end.get();
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let bytes = range.and_then(|(start, end)| self.bytes.get(start..end)).ok_or(
            FormatError::RowIndexExtent {
                sample: self.first_sample.saturating_add(position as u64),
                start,
                end,
                limit: self.bytes.len() as u64,
            },
        )?;
        check_size(bytes.len())?;
        Ok(Some((bytes, slot.checksum.get())))
    }
}

/// Collects row indexes and writes the body of their block.
#[derive(Clone, Debug, Default)]
pub struct RowIndexTableBuilder {
    slots: Vec<u8>,
    bytes: Vec<u8>,
}

impl RowIndexTableBuilder {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the row index of the next sample, whose bytes have this CRC-32C. An empty one stands
    /// for none.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] beyond [`RowIndexes::MAX_ROW_INDEX_BYTES`], or when all together
    /// pass 32 bits; nothing is added then.
    pub fn push(&mut self, row_index: &[u8], sample_crc32c: u32) -> Result<(), FormatError> {
        check_size(row_index.len())?;
        let bytes = self.bytes.len() as u64 + row_index.len() as u64;
        let end = u32::try_from(bytes).map_err(|_| FormatError::TooLarge {
            what: "row index table",
            bytes,
            limit: u64::from(u32::MAX),
        })?;
        let checksum = if row_index.is_empty() { 0 } else { checksum(sample_crc32c, row_index) };
        let slot = Slot { end: U32::new(end), checksum: U32::new(checksum) };
        self.slots.extend_from_slice(slot.as_bytes());
        self.bytes.extend_from_slice(row_index);
        Ok(())
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.slots.len() / size_of::<Slot>()
    }

    /// Whether the table has no row indexes.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many bytes the row indexes have together.
    pub fn row_index_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The body of the payload for samples from `first_sample` on.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] past 2^32 - 1 samples.
    pub fn body(&self, first_sample: u64) -> Result<Vec<u8>, FormatError> {
        let head = RunHead::new(first_sample, self.len(), "row index table")?;
        let mut body = Vec::from(head.as_bytes());
        body.extend_from_slice(&self.slots);
        body.extend_from_slice(&self.bytes);
        Ok(body)
    }

    /// Empties the table and keeps its memory.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.bytes.clear();
    }
}

/// CRC-32C of the sample's CRC-32C and the row index: it tells a row index of one sample from
/// that of another.
fn checksum(sample_crc32c: u32, row_index: &[u8]) -> u32 {
    let mut digest = Crc32c::new();
    digest.update(&sample_crc32c.to_le_bytes());
    digest.update(row_index);
    digest.finish()
}

fn check_size(bytes: usize) -> Result<(), FormatError> {
    if bytes <= RowIndexes::MAX_ROW_INDEX_BYTES {
        return Ok(());
    }
    Err(FormatError::TooLarge {
        what: "row index",
        bytes: bytes as u64,
        limit: RowIndexes::MAX_ROW_INDEX_BYTES as u64,
    })
}
