//! Rows of an array out of its chunks, each of which is a file or a part of one.

use std::ops::Range;

use tbl_format::checksum::crc32c;
use tbl_io::{Location, Source, Stores};

use super::codec::{decode, most_stored};
use super::copy::{Part, copy};
use super::metadata::{Layout, Shards};
use crate::error::TableError;
use crate::table::array::ArrayDefect;

/// Bytes of a row, of a chunk and of a block at most.
const MOST_BYTES: u64 = 1 << 30;

/// Bytes of a block of rows that are not compressed, unless a row has more.
const BLOCK_BYTES: u64 = 64 << 10;

/// Blocks of an array, each of which takes memory in a loader.
const MOST_BLOCKS: u64 = 1 << 22;

/// Bytes of an entry in the index of a shard: an offset and a length.
const ENTRY_BYTES: u64 = 16;

/// The checksum after the index.
const CRC_BYTES: usize = 4;

/// Chunks that a shard may have: an index of 16 MiB.
const MOST_CHUNKS: u64 = 1 << 20;

/// The chunks of an array.
#[derive(Debug)]
pub(in crate::table::array) struct Chunks {
    stores: Stores,
    folder: Location,
    shape: Vec<u64>,
    layout: Layout,
    /// Bytes of a row of the array, and of a row of a chunk.
    row_bytes: u64,
    chunk_row_bytes: u64,
    block_rows: u64,
    load_bytes: u64,
}

/// The shard that was opened last.
struct Shard {
    number: Vec<u64>,
    /// `None` if it does not exist.
    file: Option<(Source, Vec<u8>)>,
}

impl Chunks {
    /// The chunks in this folder. The error is the reason why they are not read.
    pub(super) fn new(
        stores: Stores,
        folder: Location,
        shape: Vec<u64>,
        layout: Layout,
    ) -> Result<Self, String> {
        let too_large = |what: &str| format!("{what} of more than {MOST_BYTES} bytes");
        let number_bytes = layout.number.bytes() as u64;
        let product = |sides: &[u64]| {
            sides.iter().try_fold(number_bytes, |bytes, &side| bytes.checked_mul(side))
        };
        let (Some(&rows), Some(&chunk_rows)) = (shape.first(), layout.chunk_shape.first()) else {
            return Err(ArrayDefect::Scalar.to_string());
        };
        let row_bytes = product(&shape[1..]).filter(|&bytes| bytes <= MOST_BYTES);
        let row_bytes = row_bytes.ok_or_else(|| too_large("rows"))?;
        let chunk_row_bytes =
            product(&layout.chunk_shape[1..]).filter(|&bytes| bytes <= MOST_BYTES);
        let chunk_row_bytes = chunk_row_bytes.ok_or_else(|| too_large("rows of chunks"))?;
        if let Some(shards) = &layout.shards
            && shards.count().is_none_or(|count| count > MOST_CHUNKS)
        {
            return Err(format!("shards of more than {MOST_CHUNKS} chunks"));
        }
        let is_plain = layout.codecs.is_empty();
        let unit = if is_plain { 1 } else { chunk_rows };
        let wanted = if is_plain { BLOCK_BYTES / row_bytes.max(1) } else { chunk_rows };
        let wanted = wanted.max(rows.div_ceil(MOST_BLOCKS)).max(1);
        let block_rows = wanted.div_ceil(unit).saturating_mul(unit).min(rows).max(1);
        let part_rows = if is_plain { block_rows.min(chunk_rows) } else { chunk_rows };
        let part = part_rows.checked_mul(chunk_row_bytes).filter(|&bytes| bytes <= MOST_BYTES);
        let part = part.ok_or_else(|| too_large("chunks"))?;
        let block = block_rows.checked_mul(row_bytes).filter(|&bytes| bytes <= MOST_BYTES);
        let block = block.ok_or_else(|| too_large("chunks"))?;
        let stored = if is_plain { 0 } else { most_stored(part).saturating_mul(2) };
        let index = layout.shards.as_ref().map_or(0, Shards::index_bytes);
        let load_bytes = block.saturating_add(part).saturating_add(stored).saturating_add(index);
        Ok(Self {
            stores,
            folder,
            shape,
            layout,
            row_bytes,
            chunk_row_bytes,
            block_rows,
            load_bytes,
        })
    }

    /// Rows of a block.
    pub(in crate::table::array) fn block_rows(&self) -> u64 {
        self.block_rows
    }

    /// Bytes of memory that reading a block takes at most.
    pub(in crate::table::array) fn load_bytes(&self) -> u64 {
        self.load_bytes
    }

    /// The numbers of a range of rows, which is in the array and no more than a block, as they are stored.
    pub(in crate::table::array) fn read(&self, rows: Range<u64>) -> Result<Vec<u8>, TableError> {
        let bytes = (rows.end - rows.start).checked_mul(self.row_bytes);
        let limit = TableError::Limit {
            what: "bytes of rows",
            need: bytes.unwrap_or(u64::MAX),
            limit: MOST_BYTES,
        };
        let bytes = bytes.filter(|&bytes| bytes <= MOST_BYTES);
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let Some(bytes) = bytes else { return Err(limit) };
        let mut out = Vec::new();
        if bytes == 0 || out.try_reserve_exact(bytes).is_err() {
            return if bytes == 0 { Ok(out) } else { Err(limit) };
        }
        let fill = &*self.layout.fill;
        let first = fill.first().copied().unwrap_or_default();
        if fill.iter().all(|&byte| byte == first) {
            out.resize(bytes, first);
        } else {
            out.extend(fill.iter().copied().cycle().take(bytes));
        }
        let chunk_shape = &self.layout.chunk_shape;
        let mut chunk: Vec<u64> = vec![0; chunk_shape.len()];
        chunk[0] = rows.start / chunk_shape[0];
        let last_row = (rows.end - 1) / chunk_shape[0];
        let mut shard = None;
        loop {
            self.read_chunk(&chunk, &rows, &mut shard, &mut out)?;
            // The next chunk, the last dimension first.
            let next = (1..chunk.len()).rev().find(|&side| {
                (chunk[side] + 1).saturating_mul(chunk_shape[side]) < self.shape[side]
            });
            match next {
                Some(side) => {
                    chunk[side] += 1;
                    chunk[side + 1..].fill(0);
                }
                None if chunk[0] == last_row => return Ok(out),
                None => {
                    chunk[0] += 1;
                    chunk[1..].fill(0);
                }
            }
        }
    }

    /// Copies what a chunk has of the rows into `out`.
    fn read_chunk(
        &self,
        chunk: &[u64],
        rows: &Range<u64>,
        shard: &mut Option<Shard>,
        out: &mut [u8],
    ) -> Result<(), TableError> {
        let shape = &self.layout.chunk_shape;
        let chunk_start = chunk[0].saturating_mul(shape[0]);
        let first = rows.start.max(chunk_start);
        let end = rows.end.min(chunk_start.saturating_add(shape[0]));
        let within = first - chunk_start..end - chunk_start;
        let Some(bytes) = self.chunk_rows(chunk, &within, shard)? else { return Ok(()) };
        let mut origin = vec![first - rows.start];
        let mut stored = vec![end - first];
        let mut extent = vec![end - first];
        let mut whole = vec![rows.end - rows.start];
        for side in 1..chunk.len() {
            let start = chunk[side].saturating_mul(shape[side]);
            origin.push(start);
            stored.push(shape[side]);
            extent.push(shape[side].min(self.shape[side].saturating_sub(start)));
            whole.push(self.shape[side]);
        }
        let part = Part {
            stored: &sizes(&stored),
            extent: &sizes(&extent),
            whole: &sizes(&whole),
            origin: &sizes(&origin),
            number_bytes: self.layout.number.bytes(),
        };
        if copy(&bytes, &part, out) {
            return Ok(());
        }
        Err(self.defect(chunk, "too few numbers".to_owned()))
    }

    /// These rows of a chunk, in all its other dimensions; `None` for a chunk that is missing.
    fn chunk_rows(
        &self,
        chunk: &[u64],
        rows: &Range<u64>,
        shard: &mut Option<Shard>,
    ) -> Result<Option<Vec<u8>>, TableError> {
        let Some((source, range)) = self.find(chunk, shard)? else { return Ok(None) };
        let stored = range.end - range.start;
        let row_bytes = self.chunk_row_bytes;
        let start = rows.start.saturating_mul(row_bytes);
        let bytes = (rows.end - rows.start).saturating_mul(row_bytes);
        let whole = self.layout.chunk_shape[0].checked_mul(row_bytes);
        let mut read = Vec::new();
        if self.layout.codecs.is_empty() {
            if Some(stored) != whole {
                let expected = whole.unwrap_or(u64::MAX);
                return Err(self.defect(chunk, format!("{stored} bytes, expected {expected}")));
            }
            source.read_range_into(range.start.saturating_add(start), bytes, &mut read)?;
            return Ok(Some(read));
        }
        let whole = whole.unwrap_or(u64::MAX);
        let most = most_stored(whole);
        if stored > most {
            let reason = format!("{stored} bytes, expected at most {most} for {whole} of numbers");
            return Err(self.defect(chunk, reason));
        }
        source.read_range_into(range.start, stored, &mut read)?;
        let whole = usize::try_from(whole).unwrap_or(usize::MAX);
        let decoded = decode(&self.layout.codecs, read, whole);
        let mut decoded = decoded.map_err(|reason| self.defect(chunk, reason))?;
        // The rows lie in the chunk, whose length was checked.
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(bytes).unwrap_or(usize::MAX));
        decoded.truncate(end);
        decoded.drain(..start.min(decoded.len()));
        Ok(Some(decoded))
    }

    /// The file that has a chunk, and its place there.
    fn find(
        &self,
        chunk: &[u64],
        shard: &mut Option<Shard>,
    ) -> Result<Option<(Source, Range<u64>)>, TableError> {
        let Some(shards) = &self.layout.shards else {
            let source = self.stores.open_existing(&self.location(chunk))?;
            return Ok(source.map(|source| {
                let len = source.len();
                (source, 0..len)
            }));
        };
        let number: Vec<u64> =
            chunk.iter().zip(&shards.chunks).map(|(place, chunks)| place / chunks).collect();
        let known = shard.take().filter(|known| known.number == number);
        let known = match known {
            Some(known) => known,
            None => Shard { file: self.open_shard(&number, shards)?, number },
        };
        let Some((source, index)) = &shard.insert(known).file else { return Ok(None) };
        let entry = shards
            .entry(chunk, index)
            .ok_or_else(|| self.defect(chunk, "not in the index of its shard".to_owned()))?;
        if entry == (u64::MAX, u64::MAX) {
            return Ok(None);
        }
        let (offset, len) = entry;
        let end = offset.checked_add(len).filter(|&end| end <= source.len());
        let end = end.ok_or_else(|| {
            let have = source.len();
            self.defect(chunk, format!("{len} bytes at {offset} of a shard of {have} bytes"))
        })?;
        Ok(Some((source.clone(), offset..end)))
    }

    /// Opens a shard and reads its index.
    fn open_shard(
        &self,
        number: &[u64],
        shards: &Shards,
    ) -> Result<Option<(Source, Vec<u8>)>, TableError> {
        let location = self.location(number);
        let Some(source) = self.stores.open_existing(&location)? else { return Ok(None) };
        let defect = |reason| {
            TableError::from(ArrayDefect::Chunk { chunk: self.stores.printable(&location), reason })
        };
        let bytes = shards.index_bytes();
        let Some(end) = source.len().checked_sub(bytes) else {
            let have = source.len();
            return Err(defect(format!("{have} bytes, its index alone has {bytes}")));
        };
        let mut index = Vec::new();
        source.read_range_into(if shards.index_is_first { 0 } else { end }, bytes, &mut index)?;
        if shards.index_has_checksum {
            let entries = index.len().saturating_sub(CRC_BYTES);
            let stored = index.split_off(entries);
            if stored != crc32c(&index).to_le_bytes() {
                return Err(defect("the CRC-32C of its index does not match".to_owned()));
            }
        }
        Ok(Some((source, index)))
    }

    /// The location of the file of a chunk, or of a shard.
    fn location(&self, chunk: &[u64]) -> Location {
        self.folder.join(self.layout.keys.path(chunk).as_bytes())
    }

    /// A defect of the file that has a chunk.
    fn defect(&self, chunk: &[u64], reason: String) -> TableError {
        let number: Vec<u64> = match &self.layout.shards {
            None => chunk.to_vec(),
            Some(shards) => chunk.iter().zip(&shards.chunks).map(|(at, of)| at / of).collect(),
        };
        let location = self.stores.printable(&self.location(&number));
        let reason = match &self.layout.shards {
            None => reason,
            Some(_) => format!("part {chunk:?}: {reason}"),
        };
        ArrayDefect::Chunk { chunk: location, reason }.into()
    }
}

/// Sizes of something in memory.
fn sizes(sizes: &[u64]) -> Vec<usize> {
    sizes.iter().map(|&size| usize::try_from(size).unwrap_or(usize::MAX)).collect()
}

impl Shards {
    /// Chunks of a shard; `None` for more than 64 bits have.
    fn count(&self) -> Option<u64> {
        self.chunks.iter().try_fold(1_u64, |count, &side| count.checked_mul(side))
    }

    /// Bytes of the index, with its checksum.
    fn index_bytes(&self) -> u64 {
        let crc = if self.index_has_checksum { CRC_BYTES as u64 } else { 0 };
        self.count().unwrap_or(u64::MAX).saturating_mul(ENTRY_BYTES).saturating_add(crc)
    }

    /// Offset and length of a chunk of the array, as the index of its shard has them.
    fn entry(&self, chunk: &[u64], index: &[u8]) -> Option<(u64, u64)> {
        let place = chunk.iter().zip(&self.chunks).try_fold(0_u64, |place, (&at, &chunks)| {
            place.checked_mul(chunks)?.checked_add(at % chunks)
        })?;
        let start = usize::try_from(place.checked_mul(ENTRY_BYTES)?).ok()?;
        let entry = index.get(start..)?.first_chunk::<16>()?;
        let (offset, len) = entry.split_at(size_of::<u64>());
        let number = |bytes: &[u8]| -> Option<u64> {
            let bytes = bytes.try_into().ok()?;
            let is_big_endian = self.index_is_big_endian;
            Some(if is_big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
        };
        Some((number(offset)?, number(len)?))
    }
}
