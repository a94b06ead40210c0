//! The pages of a column in a row group: where each begins, and its first row.

use tbl_io::{ReadError, RowsDefect};

use crate::footer::Chunk;
use crate::header::{PageHeader, PageKind};
use crate::page::PAGE_VALUES;
use crate::thrift::{Field, Flaw, Kind, Thrift};

/// A page: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The offset of its header in the file.
    pub(crate) offset: u64,
    /// Its first row, within the row group.
    pub(crate) first_row: u32,
    /// Its bytes, with the header.
    pub(crate) bytes: u32,
}

const WHAT: &str = "offset index";

/// The pages that the offset index at `start` lists. Each is inside the column.
pub(crate) fn of_index(
    bytes: &[u8],
    start: u64,
    chunk: &Chunk,
    rows: u64,
) -> Result<Vec<Slot>, Flaw> {
    let mut thrift = Thrift::new(bytes, start, WHAT);
    let mut last = 0;
    let mut slots = Vec::new();
    while let Some(field) = thrift.field(&mut last)? {
        match field.id {
            1 => read_slots(&mut thrift, field, chunk, rows, &mut slots)?,
            _ => thrift.skip(field)?,
        }
    }
    let first = slots.first().map(|slot| slot.first_row);
    if first != Some(0) && rows > 0 {
        let what = "first row of the first page";
        let expected = "0";
        let value = first.map_or(-1, i64::from);
        return Err(Flaw::new(start, RowsDefect::Value { what, value, expected }));
    }
    Ok(slots)
}

fn read_slots(
    thrift: &mut Thrift<'_>,
    field: Field,
    chunk: &Chunk,
    rows: u64,
    slots: &mut Vec<Slot>,
) -> Result<(), Flaw> {
    let len = thrift.list(field, Kind::Struct)?;
    for _ in 0..len {
        let mut last = 0;
        let mut offset = None;
        let mut bytes = None;
        let mut first_row = None;
        while let Some(field) = thrift.field(&mut last)? {
            match field.id {
                1 => offset = Some(thrift.count(field, "offset of a page")?),
                2 => bytes = Some(thrift.size(field, "bytes of a page")?),
                3 => first_row = Some(thrift.count(field, "first row of a page")?),
                _ => thrift.skip(field)?,
            }
        }
        let offset = offset.ok_or_else(|| thrift.missing("offset of a page"))?;
        let bytes = bytes.ok_or_else(|| thrift.missing("bytes of a page"))?;
        let first_row = first_row.ok_or_else(|| thrift.missing("first row of a page"))?;
        let end = offset.checked_add(bytes.into());
        if offset < chunk.start || end.is_none_or(|end| end > chunk.start + chunk.bytes) {
            return Err(thrift.flaw(RowsDefect::OutsideChunk { what: "page" }));
        }
        let before = slots.last().map_or(0, |slot: &Slot| slot.first_row);
        let first_row = u32::try_from(first_row).ok();
        let is_next = |&row: &u32| row >= before && u64::from(row) <= rows;
        let first_row = first_row.filter(is_next).ok_or_else(|| {
            let what = "order of the first rows of pages";
            thrift.flaw(RowsDefect::Damaged { what })
        })?;
        slots.push(Slot { offset, first_row, bytes });
    }
    Ok(())
}

/// The pages of a column without an offset index, by their headers.
pub(crate) fn walk(
    chunk: &Chunk,
    rows: u64,
    header_at: impl Fn(u64) -> Result<PageHeader, ReadError>,
    error: impl Fn(Flaw) -> ReadError,
) -> Result<Vec<Slot>, ReadError> {
    let end = chunk.start + chunk.bytes;
    let mut offset = chunk.start;
    let mut found = 0;
    let mut slots = Vec::new();
    while found < rows && offset < end {
        let header = header_at(offset)?;
        let flaw = |defect| error(Flaw::new(offset, defect));
        let next = offset + header.page_bytes();
        if next > end {
            return Err(flaw(RowsDefect::OutsideChunk { what: "page" }));
        }
        if let Some(values) = header.values() {
            if values > PAGE_VALUES {
                let what = "number of values in a page";
                let found = values.into();
                let limit = PAGE_VALUES.into();
                return Err(flaw(RowsDefect::TooLarge { what, found, limit }));
            }
            let bytes = u32::try_from(header.page_bytes()).ok();
            let first_row = u32::try_from(found).ok();
            let Some((bytes, first_row)) = bytes.zip(first_row) else {
                return Err(flaw(RowsDefect::OutsideChunk { what: "page" }));
            };
            slots.push(Slot { offset, first_row, bytes });
            found += u64::from(values);
        } else if matches!(header.kind, PageKind::Dictionary { .. }) && offset != chunk.start {
            return Err(flaw(RowsDefect::PageKind { expected: "data" }));
        }
        offset = next;
    }
    if found != rows {
        let what = "number of values in pages";
        return Err(error(Flaw::new(
            chunk.start,
            RowsDefect::Count { what, found, expected: rows },
        )));
    }
    Ok(slots)
}
