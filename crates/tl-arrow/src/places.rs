//! The places of the values of a column of bytes: in the file as they are, in segments of a compressed
//! page, or in pages that must be decoded.
//!
//! They are found page by page, when the first value of a page is asked for, or are in a shard index,
//! and kept: 5 bytes for each row, without a lock. Threads that look at a page at the same time find the same places.

mod part;
mod plain;

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use tbl_format::SampleFormat;
use tbl_io::{ReadError, RowsDefect};

use crate::cache;
use crate::codec::Codec;
use crate::file::{ParquetFile, RowPlace, checked_header};
use crate::header::{Encoding, Levels, PageHeader, PageKind};
use crate::page::level_bytes;
use crate::runs;
use crate::segments::{Mark, Segments};
use crate::thrift::Flaw;
use crate::values::Value;
use plain::Plain;

/// The places of the values of one column.
#[derive(Debug)]
pub(crate) struct Places {
    leaf: usize,
    /// By row group.
    groups: Vec<OnceLock<GroupPlaces>>,
}

#[derive(Debug)]
struct GroupPlaces {
    /// By page, one of the four states.
    states: Box<[AtomicU8]>,
    /// By row: of a value in the file or in segments, its place in its page, or in its decompressed
    /// page; of another one, its length.
    numbers: Box<[AtomicU32]>,
    /// By row: the code of the format, or [`NULL`].
    formats: Box<[AtomicU8]>,
    /// By row, the mark of the segment with the first byte of its value, once it was read.
    marks: OnceLock<Box<[AtomicU64]>>,
    /// By page, the place after the last value of one in the file or in segments.
    ends: Box<[AtomicU32]>,
}

const UNKNOWN: u8 = 0;
const IN_FILE: u8 = 1;
const DECODED: u8 = 2;
const SEGMENTED: u8 = 3;

const NULL: u8 = u8::MAX;

/// The bytes that the format of an image shows in.
pub(crate) const MAGIC_BYTES: usize = 16;

/// The place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is null. The offset is that of its page.
    Null { offset: u64 },
    /// Its bytes are in the file.
    InFile { offset: u64, bytes: u64, format: SampleFormat },
    /// As [`Decoded`](Self::Decoded), and it begins at `start` of the decompressed bytes, which are
    /// segments.
    Segmented { start: u64, within: Decoded },
    /// It is in a page that must be decoded.
    Decoded(Decoded),
}

/// A value in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// The page, and its offset and bytes in the file.
    pub(crate) page: usize,
    pub(crate) offset: u64,
    pub(crate) stored: u64,
    /// Bytes of the value.
    pub(crate) bytes: u64,
    pub(crate) format: SampleFormat,
}

impl Places {
    /// Those of leaf `leaf`, a column of bytes that is not in a list.
    pub(crate) fn new(file: &ParquetFile, leaf: usize) -> Self {
        let groups = file.footer().groups.iter().map(|_| OnceLock::new()).collect();
        Self { leaf, groups }
    }

    /// The place of the value of a row.
    ///
    /// # Errors
    /// The defect of its page.
    pub(crate) fn of(&self, file: &ParquetFile, row: RowPlace) -> Result<Place, ReadError> {
        let slots = file.pages(row.group, self.leaf)?;
        let number = ParquetFile::page_of(slots, row.row);
        let slot = slots[number];
        let group = self.group(file, row.group)?;
        let mut state = group.states[number].load(Ordering::Acquire);
        if state == UNKNOWN {
            state = self.find(file, row.group, group, number)?;
        }
        let at = row.row as usize;
        let format = group.formats[at].load(Ordering::Relaxed);
        let value = u64::from(group.numbers[at].load(Ordering::Relaxed));
        if format == NULL {
            return Ok(Place::Null { offset: slot.offset });
        }
        let format = SampleFormat::from_code(format);
        let within = |bytes| {
            let stored = slot.bytes.into();
            Decoded { page: number, offset: slot.offset, stored, bytes, format }
        };
        if state == DECODED {
            return Ok(Place::Decoded(within(value)));
        }
        let end = slots.get(number + 1).map_or(group.numbers.len(), |next| next.first_row as usize);
        let next = group.numbers.get(at + 1).filter(|_| at + 1 < end);
        // The place of the next value, or of the null that is there instead.
        let next = match next {
            Some(next) => next.load(Ordering::Relaxed).into(),
            None => u64::from(group.end(number)) + LENGTH_BYTES,
        };
        // A file that another process overwrites may have any lengths.
        let bytes = next.saturating_sub(LENGTH_BYTES + value);
        if state == SEGMENTED {
            return Ok(Place::Segmented { start: value, within: within(bytes) });
        }
        Ok(Place::InFile { offset: slot.offset + value, bytes, format })
    }

    /// The bytes of the file that the value of a row needs, as far as they are known without reading:
    /// its own, or those of its page.
    pub(crate) fn range(&self, file: &ParquetFile, row: RowPlace) -> Option<Range<u64>> {
        let slots = file.known_pages(row.group, self.leaf)?;
        let number = ParquetFile::page_of(slots, row.row);
        let slot = slots.get(number)?;
        let group = self.groups[row.group].get();
        let state = group.map_or(UNKNOWN, |group| group.states[number].load(Ordering::Acquire));
        match state {
            IN_FILE | SEGMENTED => match self.of(file, row) {
                Ok(Place::InFile { offset, bytes, .. }) => {
                    return Some(offset..offset.saturating_add(bytes));
                }
                Ok(Place::Segmented { start, within }) if file.map().is_some() => {
                    // Literals are about where the decompressed bytes are.
                    let offset = slot.offset.saturating_add(start);
                    let end = slot.offset + u64::from(slot.bytes);
                    return Some(offset.min(end)..offset.saturating_add(within.bytes).min(end));
                }
                Ok(_) | Err(_) => {}
            },
            _ => {}
        }
        Some(slot.offset..slot.offset + u64::from(slot.bytes))
    }

    /// Reads the value of a row from the segments of its page; false if it is not in these.
    pub(crate) fn read_segments(
        &self,
        file: &ParquetFile,
        row: RowPlace,
        start: u64,
        within: Decoded,
        bytes: &mut Vec<u8>,
    ) -> Result<bool, ReadError> {
        let slot = file.pages(row.group, self.leaf)?[within.page];
        let codec = file.codec(row.group, self.leaf)?;
        let group = self.group(file, row.group)?;
        let rows = group.numbers.len();
        let marks = group.marks.get_or_init(|| (0..rows).map(|_| AtomicU64::new(0)).collect());
        let mark = &marks[row.row as usize];
        let read = |page: &[u8]| {
            let header = PageHeader::parse(page, slot.offset).ok()?;
            let (first, len) = header.compressed_part();
            let stored = page.get(header.bytes as usize..)?.get(first as usize..)?;
            let start = usize::try_from(start).ok()?;
            let part = start..start.checked_add(usize::try_from(within.bytes).ok()?)?;
            let found = Mark::of_number(mark.load(Ordering::Relaxed));
            cache::with_segments(|segments| {
                let mut read = |mark| {
                    bytes.clear();
                    segments.find(codec, stored, len as usize, mark, part.end)?;
                    segments.append(stored, part.clone(), bytes)
                };
                // Copies of bytes before the mark need all segments.
                if found.is_some() && read(found).is_some() {
                    return Some(());
                }
                read(None)?;
                let found = segments.mark(codec, start).map_or(0, Mark::to_number);
                mark.store(found, Ordering::Relaxed);
                Some(())
            })
        };
        Ok(file.with_bytes(slot.offset, slot.bytes.into(), read)?.is_some())
    }

    fn group(&self, file: &ParquetFile, group: usize) -> Result<&GroupPlaces, ReadError> {
        let pages = file.pages(group, self.leaf)?.len();
        let rows = file.footer().groups[group].rows;
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        Ok(self.groups[group].get_or_init(|| GroupPlaces::new(pages, rows)))
    }

    /// Finds the places of all values of a page, and returns its state.
    fn find(
        &self,
        file: &ParquetFile,
        group: usize,
        places: &GroupPlaces,
        number: usize,
    ) -> Result<u8, ReadError> {
        match file.map() {
            Some(_) => self.locate(file, group, places, number),
            // A page that has to be read in any case is kept.
            None => self.decode(file, group, places, number),
        }
    }

    /// As [`find`](Self::find), whatever that reads.
    fn locate(
        &self,
        file: &ParquetFile,
        group: usize,
        places: &GroupPlaces,
        number: usize,
    ) -> Result<u8, ReadError> {
        let slots = file.pages(group, self.leaf)?;
        let slot = slots[number];
        let rows = file.rows_of(group, slots, number);
        let codec = file.codec(group, self.leaf)?;
        let max = file.leaf(self.leaf).max_definition;
        let find = |bytes: &[u8]| {
            let header = checked_header(bytes, slot, rows.len())?;
            let rows = Rows { first: rows.start as usize, count: rows.len(), max };
            if let Some(plain) = Plain::of(&header, bytes, codec, max, slot)? {
                places.hop_in_file(bytes, &plain, rows).ok_or_else(|| {
                    Flaw::new(slot.offset, RowsDefect::Damaged { what: "values of the page" })
                })?;
                places.set_end(number, slot.bytes);
                return Ok(IN_FILE);
            }
            let is_segmented = places.hop_segments(bytes, &header, codec, rows).is_some();
            places.set_end(number, header.compressed_part().1);
            Ok(if is_segmented { SEGMENTED } else { DECODED })
        };
        let found = file.with_bytes(slot.offset, slot.bytes.into(), find)?;
        let found = found.map_err(|flaw| file.error(flaw))?;
        if found == DECODED {
            return self.decode(file, group, places, number);
        }
        places.set_state(number, found);
        Ok(found)
    }

    /// Finds the values of a page by decoding it.
    fn decode(
        &self,
        file: &ParquetFile,
        group: usize,
        places: &GroupPlaces,
        number: usize,
    ) -> Result<u8, ReadError> {
        let first = file.pages(group, self.leaf)?[number].first_row as usize;
        let page = file.page(group, self.leaf, number)?;
        for row in 0..page.rows() {
            match page.get(row) {
                Some(Value::Bytes(bytes)) => {
                    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                    places.set(first + row, len, format_of(bytes));
                }
                _ => places.set(first + row, 0, NULL),
            }
        }
        places.set_state(number, DECODED);
        Ok(DECODED)
    }
}

/// The first bytes of a page, which have the levels of pages of segments.
const LEVELS_READ: usize = 4 << 10;

/// Bytes of the length in front of a value.
const LENGTH_BYTES: u64 = size_of::<u32>() as u64;

/// The rows of a page, counted in the row group, and the definition level of values that are not null.
#[derive(Clone, Copy)]
struct Rows {
    first: usize,
    count: usize,
    max: u8,
}

impl GroupPlaces {
    fn new(pages: usize, rows: usize) -> Self {
        Self {
            states: (0..pages).map(|_| AtomicU8::new(UNKNOWN)).collect(),
            numbers: (0..rows).map(|_| AtomicU32::new(0)).collect(),
            formats: (0..rows).map(|_| AtomicU8::new(NULL)).collect(),
            marks: OnceLock::new(),
            ends: (0..pages).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Publishes the places of a page.
    fn set_state(&self, page: usize, state: u8) {
        self.states[page].store(state, Ordering::Release);
    }

    fn set_end(&self, page: usize, end: u32) {
        self.ends[page].store(end, Ordering::Relaxed);
    }

    fn end(&self, page: usize) -> u32 {
        self.ends[page].load(Ordering::Relaxed)
    }

    fn number(&self, row: usize) -> u32 {
        self.numbers[row].load(Ordering::Relaxed)
    }

    fn set(&self, row: usize, number: u32, format: u8) {
        self.numbers[row].store(number, Ordering::Relaxed);
        self.formats[row].store(format, Ordering::Relaxed);
    }

    /// Finds the values of a page that has them as they are. `None` if they do not end where the page
    /// does.
    fn hop_in_file(&self, page: &[u8], plain: &Plain, rows: Rows) -> Option<()> {
        let levels = page.get(plain.levels.clone())?;
        self.hop(levels, plain.encoding, plain.values, page.len(), rows, |at| {
            let length = page.get(at..)?.first_chunk()?;
            let len = u32::from_le_bytes(*length);
            let value = page.get(at + length.len()..)?.get(..len as usize)?;
            Some((len, format_of(value)))
        })
    }

    /// As [`hop_in_file`](Self::hop_in_file), for a page of segments; `None` also for other pages.
    fn hop_segments(
        &self,
        page: &[u8],
        header: &PageHeader,
        codec: Codec,
        rows: Rows,
    ) -> Option<()> {
        if header.encoding() != Some(Encoding::Plain) {
            return None;
        }
        let after_header = page.get(header.bytes as usize..)?;
        // Nothing else reads all of the page.
        let is_sound = |&expected: &u32| crc32fast::hash(after_header) == expected;
        header.checksum.as_ref().is_none_or(is_sound).then_some(())?;
        let part = header.compressed_part();
        let stored = after_header.get(part.0 as usize..)?;
        let len = part.1 as usize;
        let mut segments = Segments::default();
        segments.find(codec, stored, len, None, len)?;
        let mut buffer = Vec::new();
        let mut read = |range: Range<usize>| {
            buffer.clear();
            segments.append(stored, range.start..range.end.min(len), &mut buffer)?;
            Some(buffer.clone())
        };
        let (levels, encoding, start) = match header.kind {
            PageKind::Data { definition, values, .. } => {
                // The levels of a page are much shorter than its values, which are photographs.
                let front = read(0..LEVELS_READ)?;
                let bytes = level_bytes(&front, definition, rows.max, values)?;
                let first = if definition == Levels::Rle && bytes > 0 { 4 } else { 0 };
                (front.get(first..bytes)?.to_vec(), definition, bytes)
            }
            PageKind::DataV2 { definition_bytes, repetition_bytes, .. } => {
                let levels = after_header.get(repetition_bytes as usize..)?;
                (levels.get(..definition_bytes as usize)?.to_vec(), Levels::Rle, 0)
            }
            PageKind::Dictionary { .. } | PageKind::Other => return None,
        };
        self.hop(&levels, encoding, start, len, rows, |at| {
            let head = read(at..at + size_of::<u32>() + MAGIC_BYTES)?;
            let (length, value) = head.split_first_chunk()?;
            let len = u32::from_le_bytes(*length);
            Some((len, format_of(value.get(..len as usize).unwrap_or(value))))
        })
    }

    /// Hops from length to length over the values of a page, which begin at `start`. `None` if they do
    /// not end at `end`. `head` has length and format of the value whose length is at a place.
    fn hop(
        &self,
        levels: &[u8],
        encoding: Levels,
        start: usize,
        end: usize,
        rows: Rows,
        mut head: impl FnMut(usize) -> Option<(u32, u8)>,
    ) -> Option<()> {
        let mut at = start;
        let mut row = rows.first;
        let mut is_inside = true;
        let last = row + rows.count;
        let mut take = |level: u32, run: usize| {
            for _ in 0..run.min(last - row) {
                is_inside &= level <= rows.max.into();
                let start = at + size_of::<u32>();
                let Ok(place) = u32::try_from(start) else {
                    is_inside = false;
                    return;
                };
                if level < rows.max.into() {
                    self.set(row, place, NULL);
                } else {
                    let found = head(at).and_then(|(len, format)| {
                        let next = start.checked_add(len as usize)?;
                        (next <= end).then_some((next, format))
                    });
                    let Some((next, format)) = found else {
                        is_inside = false;
                        return;
                    };
                    self.set(row, place, format);
                    at = next;
                }
                row += 1;
            }
        };
        if rows.max == 0 {
            take(0, rows.count);
        } else {
            let width = runs::width_of(rows.max);
            match encoding {
                Levels::Rle => runs::decode(levels, width, rows.count, take)?,
                Levels::BitPacked => runs::decode_packed(levels, width, rows.count, take)?,
            }
        }
        (is_inside && row == last && at == end).then_some(())
    }
}

/// A state or a format.
fn state_of(byte: &AtomicU8) -> u8 {
    byte.load(Ordering::Acquire)
}

/// The code of the format that an image begins with.
pub(crate) fn format_of(value: &[u8]) -> u8 {
    let magic = value.get(..MAGIC_BYTES).unwrap_or(value);
    SampleFormat::from_magic(magic).code()
}
