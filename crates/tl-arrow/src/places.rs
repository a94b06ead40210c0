//! The places of the values of a column of bytes: in the file as they are, or in pages that must be
//! decoded.
//!
//! They are found page by page, when the first value of a page is asked for, and kept: 5 bytes for each
//! row, without a lock. Threads that look at a page at the same time find the same places.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use tbl_format::SampleFormat;
use tbl_io::{ParquetDefect, ReadError};

use crate::codec::Codec;
use crate::file::{ParquetFile, RowPlace, checked_header};
use crate::header::{Encoding, Levels, PageHeader, PageKind};
use crate::page::level_bytes;
use crate::pages::Slot;
use crate::runs;
use crate::thrift::Flaw;
use crate::values::Value;

/// The places of the values of one column.
#[derive(Debug)]
pub(crate) struct Places {
    leaf: usize,
    /// By row group.
    groups: Vec<OnceLock<GroupPlaces>>,
}

#[derive(Debug)]
struct GroupPlaces {
    /// By page, one of the three states.
    states: Box<[AtomicU8]>,
    /// By row: of a value in the file, its place in its page; of another one, its length.
    numbers: Box<[AtomicU32]>,
    /// By row: the code of the format, or [`NULL`].
    formats: Box<[AtomicU8]>,
}

const UNKNOWN: u8 = 0;
const IN_FILE: u8 = 1;
const DECODED: u8 = 2;

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
    /// It is in page `page`, which must be decoded, and which is at `offset`.
    Decoded { page: usize, offset: u64, stored: u64, bytes: u64, format: SampleFormat },
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
        let group = self.groups[row.group].get_or_init(|| {
            let rows = file.footer().groups[row.group].rows;
            GroupPlaces::new(slots.len(), usize::try_from(rows).unwrap_or(usize::MAX))
        });
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
        if state == DECODED {
            let stored = slot.bytes.into();
            return Ok(Place::Decoded {
                page: number,
                offset: slot.offset,
                stored,
                bytes: value,
                format,
            });
        }
        let end = slots.get(number + 1).map_or(group.numbers.len(), |next| next.first_row as usize);
        let next = group.numbers.get(at + 1).filter(|_| at + 1 < end);
        // The place of the next value, or of the null that is there instead.
        let next = next.map_or(u64::from(slot.bytes) + LENGTH_BYTES, |next| {
            u64::from(next.load(Ordering::Relaxed))
        });
        // A file that another process overwrites may have any lengths.
        let bytes = next.saturating_sub(LENGTH_BYTES + value);
        Ok(Place::InFile { offset: slot.offset + value, bytes, format })
    }

    /// The bytes of the file that the value of a row needs, as far as they are known without reading:
    /// its own, or those of its page.
    pub(crate) fn range(&self, file: &ParquetFile, row: RowPlace) -> Option<std::ops::Range<u64>> {
        let slots = file.known_pages(row.group, self.leaf)?;
        let number = ParquetFile::page_of(slots, row.row);
        let slot = slots.get(number)?;
        let group = self.groups[row.group].get();
        let state = group.map_or(UNKNOWN, |group| group.states[number].load(Ordering::Acquire));
        if state == IN_FILE
            && let Ok(Place::InFile { offset, bytes, .. }) = self.of(file, row)
        {
            return Some(offset..offset.saturating_add(bytes));
        }
        Some(slot.offset..slot.offset + u64::from(slot.bytes))
    }

    /// Finds the places of all values of a page, and returns its state.
    fn find(
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
        let found = file.with_bytes(slot.offset, slot.bytes.into(), |bytes| {
            let header = checked_header(bytes, slot, rows.len())?;
            let Some(plain) = Plain::of(&header, bytes, codec, max, slot)? else {
                return Ok(false);
            };
            places.hop(bytes, &plain, rows.start, rows.len(), max).ok_or_else(|| {
                Flaw::new(slot.offset, ParquetDefect::Damaged { what: "values of the page" })
            })?;
            Ok(true)
        })?;
        let state = if found.map_err(|flaw| file.error(flaw))? {
            IN_FILE
        } else {
            let page = file.page(group, self.leaf, number)?;
            for row in 0..page.rows() {
                let at = rows.start as usize + row;
                match page.get(row) {
                    Some(Value::Bytes(bytes)) => {
                        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                        places.set(at, len, format_of(bytes));
                    }
                    _ => places.set(at, 0, NULL),
                }
            }
            DECODED
        };
        places.states[number].store(state, Ordering::Release);
        Ok(state)
    }
}

/// Bytes of the length in front of a value.
const LENGTH_BYTES: u64 = size_of::<u32>() as u64;

/// A page whose values are in the file as they are.
struct Plain {
    /// The place of its levels, after their length.
    levels: std::ops::Range<usize>,
    encoding: Levels,
    values: usize,
}

impl Plain {
    /// `None` for a page that must be decoded.
    fn of(
        header: &PageHeader,
        bytes: &[u8],
        codec: Codec,
        max: u8,
        slot: Slot,
    ) -> Result<Option<Self>, Flaw> {
        let damaged = || {
            let what = "levels of the page";
            Flaw::new(slot.offset, ParquetDefect::Damaged { what })
        };
        let start = header.bytes as usize;
        let page = bytes.get(start..).unwrap_or_default();
        match header.kind {
            PageKind::Data { values, encoding: Encoding::Plain, definition, .. }
                if codec == Codec::Uncompressed =>
            {
                let len = level_bytes(page, definition, max, values).ok_or_else(damaged)?;
                let first = if definition == Levels::Rle && len > 0 { 4 } else { 0 };
                let levels = start + first..start + len;
                Ok(Some(Self { levels, encoding: definition, values: start + len }))
            }
            PageKind::DataV2 {
                encoding: Encoding::Plain,
                definition_bytes,
                repetition_bytes,
                is_compressed,
                ..
            } if codec == Codec::Uncompressed || !is_compressed => {
                let first = start + repetition_bytes as usize;
                let values = first + definition_bytes as usize;
                if values > bytes.len() {
                    return Err(damaged());
                }
                Ok(Some(Self { levels: first..values, encoding: Levels::Rle, values }))
            }
            PageKind::Data { .. }
            | PageKind::DataV2 { .. }
            | PageKind::Dictionary { .. }
            | PageKind::Other => Ok(None),
        }
    }
}

impl GroupPlaces {
    fn new(pages: usize, rows: usize) -> Self {
        Self {
            states: (0..pages).map(|_| AtomicU8::new(UNKNOWN)).collect(),
            numbers: (0..rows).map(|_| AtomicU32::new(0)).collect(),
            formats: (0..rows).map(|_| AtomicU8::new(NULL)).collect(),
        }
    }

    fn set(&self, row: usize, number: u32, format: u8) {
        self.numbers[row].store(number, Ordering::Relaxed);
        self.formats[row].store(format, Ordering::Relaxed);
    }

    /// Hops from length to length over the values of a page, which begins with row `first`. `None` if
    /// they do not end where the page does.
    fn hop(&self, page: &[u8], plain: &Plain, first: u32, rows: usize, max: u8) -> Option<()> {
        let mut at = plain.values;
        let mut row = first as usize;
        let mut is_inside = true;
        let end = row + rows;
        let mut take = |level: u32, run: usize| {
            for _ in 0..run.min(end - row) {
                is_inside &= level <= max.into();
                let start = at + size_of::<u32>();
                let Ok(place) = u32::try_from(start) else {
                    is_inside = false;
                    return;
                };
                if level < max.into() {
                    self.set(row, place, NULL);
                } else {
                    let length = page.get(at..).and_then(<[u8]>::first_chunk);
                    let len = length.map(|length| u32::from_le_bytes(*length) as usize);
                    let value = len.and_then(|len| page.get(start..)?.get(..len));
                    let Some(value) = value else {
                        is_inside = false;
                        return;
                    };
                    self.set(row, place, format_of(value));
                    at = start + value.len();
                }
                row += 1;
            }
        };
        if max == 0 {
            take(0, rows);
        } else {
            let levels = page.get(plain.levels.clone())?;
            let width = runs::width_of(max);
            match plain.encoding {
                Levels::Rle => runs::decode(levels, width, rows, take)?,
                Levels::BitPacked => runs::decode_packed(levels, width, rows, take)?,
            }
        }
        (is_inside && row == end && at == page.len()).then_some(())
    }
}

/// The code of the format that an image begins with.
pub(crate) fn format_of(value: &[u8]) -> u8 {
    let magic = value.get(..MAGIC_BYTES).unwrap_or(value);
    SampleFormat::from_magic(magic).code()
}
