//! The columns of Arrow files and streams.

use std::collections::BTreeMap;
use std::ops::Range;

use tbl_io::{ReadError, RowsDefect};

use crate::file::RowPlace;
use crate::ipc::{Array, ArrowFile, Bytes, FixedLists, Kind, MAX_DECIMAL, fixed_value};
use crate::rows::RowFile;
use crate::schema::{Leaf, Node};
use crate::table::columns::{ColumnFile, LENGTH, Lists, NULL, NULL_LIST, NUMBER, SHAPE, Take};
use crate::table::number::Number;
use crate::thrift::Flaw;
use crate::values::Value;

/// Rows of a record batch.
struct Part {
    group: usize,
    rows: Range<u64>,
    /// The offset of the record batch, which errors name.
    offset: u64,
}

/// The numbers of a leaf.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    leaf: &'a Leaf,
    number: Number,
}

impl ArrowFile {
    /// The parts of these rows, by record batch.
    fn parts(&self, rows: Range<u64>) -> impl Iterator<Item = Part> {
        let mut next = rows.start;
        std::iter::from_fn(move || {
            if next >= rows.end {
                return None;
            }
            let RowPlace { group, row } = self.place(next)?;
            let batch = self.batches().get(group)?;
            let first = u64::from(row);
            let end = u64::from(batch.rows).min(first + (rows.end - next));
            next += end - first;
            Some(Part { group, rows: first..end, offset: batch.offset })
        })
    }

    /// Calls `take` with the values of rows of a record batch.
    fn each_of(&self, leaf: usize, part: &Part, take: &mut Take<'_>) -> Result<(), ReadError> {
        let arrays = self.arrays(leaf, part.group);
        let Some(values) = arrays.as_deref().and_then(<[_]>::last) else {
            return self.each_by_row(leaf, part, take);
        };
        let mut missing = Vec::new();
        for array in arrays.iter().flatten() {
            missing.extend(array.validity(part.rows.clone())?);
        }
        let is_there = |row| missing.iter().all(|bits| bits.is_valid(row));
        let kind = values.field.kind;
        if let Kind::Bytes { .. } | Kind::View { .. } = kind {
            return each_span(values, part, is_there, take);
        }
        let Some(size) = kind.width().filter(|&size| size > 0) else {
            return self.each_by_row(leaf, part, take);
        };
        let start = part.rows.start.saturating_mul(size);
        let bytes = (part.rows.end - part.rows.start).saturating_mul(size);
        values.part(1, start, bytes, |bytes| {
            let chunk_bytes = usize::try_from(size).unwrap_or(usize::MAX);
            let mut chunks = part.rows.clone().zip(bytes.chunks_exact(chunk_bytes));
            chunks.try_for_each(|(row, chunk)| {
                let mut reversed = [0; MAX_DECIMAL];
                let value = is_there(row).then(|| fixed_value(kind, chunk, &mut reversed));
                take(value, part.offset)
            })
        })?
    }

    fn each_by_row(&self, leaf: usize, part: &Part, take: &mut Take<'_>) -> Result<(), ReadError> {
        for row in part.rows.clone() {
            let row = u32::try_from(row).unwrap_or(u32::MAX);
            let mut taken = Ok(());
            self.leaf_value(leaf, RowPlace { group: part.group, row }, &mut |value| {
                taken = take(value, part.offset);
            })?;
            taken?;
        }
        Ok(())
    }
}

/// Calls `take` with values of bytes. Of a file that is not in memory, each buffer is read once.
fn each_span(
    values: &Array<'_>,
    part: &Part,
    is_there: impl Fn(u64) -> bool,
    take: &mut Take<'_>,
) -> Result<(), ReadError> {
    let spans = values.spans(part.rows.clone())?;
    let spans = || part.rows.clone().zip(&spans);
    let mut ranges: BTreeMap<usize, Range<u64>> = BTreeMap::new();
    for (_, span) in spans().filter(|&(row, _)| is_there(row)) {
        let end = span.start.saturating_add(span.len);
        let range = ranges.entry(span.buffer).or_insert(span.start..end);
        *range = range.start.min(span.start)..range.end.max(end);
    }
    let mut buffers: BTreeMap<usize, Bytes<'_>> = BTreeMap::new();
    for (number, range) in ranges {
        buffers.insert(number, values.buffer(number)?.with_part(range)?);
    }
    for (row, span) in spans() {
        let buffer = buffers.get(&span.buffer).filter(|_| is_there(row));
        let Some(buffer) = buffer else {
            take(None, part.offset)?;
            continue;
        };
        let value = buffer.get(span.start, span.len)?;
        let value = value.ok_or_else(|| values.damaged("buffer of a record batch"))?;
        take(Some(Value::Bytes(&value)), part.offset)?;
    }
    Ok(())
}

impl Numbers<'_> {
    /// Appends a value; what is wrong with one that does not fit.
    fn misfit(self, value: Option<Value<'_>>, out: &mut Vec<u8>) -> Option<&'static str> {
        let what = if value.is_none() { NULL } else { NUMBER };
        (!self.number.push(self.leaf, value, out)).then_some(what)
    }

    /// Appends the numbers of rows of an array.
    fn push(self, array: Array<'_>, rows: Range<u64>, out: &mut Vec<u8>) -> Result<(), ReadError> {
        let Self { leaf, number } = self;
        let size = number.kind.bytes();
        if cfg!(target_endian = "big") || !self.is_stored(&array) {
            for row in rows {
                let mut misfit = None;
                array.value(row, &mut |value| misfit = self.misfit(value, out))?;
                misfit.map_or(Ok(()), |what| Err(array.damaged(what)))?;
            }
            return Ok(());
        }
        let validity = array.validity(rows.clone())?;
        let before = out.len();
        let start = rows.start.saturating_mul(size as u64);
        let bytes = (rows.end - rows.start).saturating_mul(size as u64);
        array.part(1, start, bytes, |bytes| out.extend_from_slice(bytes))?;
        let Some(validity) = validity else { return Ok(()) };
        let mut missing = Vec::new();
        let has_missing = number.push(leaf, None, &mut missing);
        let numbers = out.get_mut(before..).unwrap_or_default().chunks_exact_mut(size);
        for (row, number) in rows.zip(numbers) {
            if validity.is_valid(row) {
                continue;
            }
            if !has_missing {
                return Err(array.damaged(NULL));
            }
            number.copy_from_slice(&missing);
        }
        Ok(())
    }

    /// Whether the numbers are in the file as batches have them on a machine that is little-endian.
    fn is_stored(self, array: &Array<'_>) -> bool {
        let is_number = matches!(array.field.kind, Kind::Integer { .. } | Kind::Float { .. });
        let size = self.number.kind.bytes() as u64;
        is_number && array.field.kind.width() == Some(size) && !array.is_indexed()
    }

    /// Appends lists of numbers: rows of `array`, from which `path` leads to the leaf.
    fn push_lists(
        self,
        array: Array<'_>,
        path: &[usize],
        shape: &[usize],
        rows: Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let Some((&step, path)) = path.split_first() else {
            return if shape.is_empty() {
                self.push(array, rows, out)
            } else {
                Err(array.damaged(SHAPE))
            };
        };
        if let Kind::FixedList { len } = array.field.kind
            && let Some((&expected, inner)) = shape.split_first()
            && usize::try_from(len).is_ok_and(|len| len == expected)
            && !array.is_indexed()
            && array.validity(rows.clone())?.is_none()
            && let Some(child) = array.child(step)
        {
            // Lists that follow each other without a gap.
            let len = u64::from(len);
            let rows = rows.start.saturating_mul(len)..rows.end.saturating_mul(len);
            return self.push_lists(child, path, inner, rows, out);
        }
        for row in rows {
            let Some((array, row)) = array.resolve(row)? else { return Err(array.damaged(LENGTH)) };
            let Some(child) = array.child(step) else { return Err(array.damaged(SHAPE)) };
            if array.field.kind == Kind::Struct {
                self.push_lists(child, path, shape, row..row + 1, out)?;
                continue;
            }
            let Some((&expected, inner)) = shape.split_first() else {
                return Err(array.damaged(SHAPE));
            };
            let elements = array.elements(row)?;
            if elements.end - elements.start != expected as u64 {
                return Err(array.damaged(LENGTH));
            }
            self.push_lists(child, path, inner, elements, out)?;
        }
        Ok(())
    }
}

/// Whether a row has no list, or one without elements.
fn is_missing(array: Array<'_>, row: u64) -> Result<bool, ReadError> {
    let Some((array, row)) = array.resolve(row)? else { return Ok(true) };
    Ok(array.field.kind != Kind::Struct && array.elements(row)?.is_empty())
}

impl ColumnFile for ArrowFile {
    fn unreadable(&self, column: &Node) -> Option<String> {
        let what = column.leaves.clone().find_map(|leaf| self.unread(leaf))?;
        Some(format!("{what}, which are not read"))
    }

    fn part_ends(&self) -> Vec<u64> {
        self.starts().get(1..).unwrap_or_default().to_vec()
    }

    fn fixed_lists(&self) -> FixedLists {
        self.fixed_lists()
    }

    fn has_nulls(&self, leaf: usize) -> bool {
        self.has_nulls(leaf)
    }

    fn leaf_bytes(&self, leaves: Range<usize>) -> u64 {
        let buffers =
            self.batches().iter().flat_map(|batch| self.column_buffers(batch, leaves.start));
        buffers.map(|buffer| buffer.bytes).fold(0, u64::saturating_add)
    }

    fn rows_together(&self, _leaf: usize, _is_list: bool) -> Option<u64> {
        // A compressed buffer is decompressed as a whole.
        let batches = self.batches().iter().filter(|batch| batch.codec.is_some());
        batches.map(|batch| batch.rows.into()).max()
    }

    fn load_bytes(&self, leaves: Range<usize>) -> u64 {
        // A buffer that cannot be read is an error where it is needed.
        self.largest_buffer(leaves.start).unwrap_or(0)
    }

    fn each(&self, leaf: usize, rows: Range<u64>, take: &mut Take<'_>) -> Result<(), ReadError> {
        self.parts(rows).try_for_each(|part| self.each_of(leaf, &part, take))?;
        self.check()
    }

    fn numbers(
        &self,
        leaf: usize,
        number: Number,
        rows: Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let numbers = Numbers { leaf: self.schema().leaf(leaf), number };
        for part in self.parts(rows) {
            // A column that is a leaf, not one in a structure.
            let column = self.path(leaf).first().filter(|_| self.path(leaf).len() == 1);
            if let Some(array) = column.and_then(|&column| self.column(part.group, column)) {
                numbers.push(array, part.rows, bytes)?;
                continue;
            }
            self.each_of(leaf, &part, &mut |value, offset| {
                let Some(what) = numbers.misfit(value, bytes) else { return Ok(()) };
                Err(self.error(Flaw::new(offset, RowsDefect::Damaged { what })))
            })?;
        }
        self.check()
    }

    fn lists(
        &self,
        lists: &Lists<'_>,
        rows: Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let Lists { leaf, number, shape, .. } = *lists;
        let numbers = Numbers { leaf: self.schema().leaf(leaf), number };
        let Some((&column, path)) = self.path(leaf).split_first() else { return Ok(()) };
        let expected: usize = shape.iter().product();
        for part in self.parts(rows) {
            let Some(array) = self.column(part.group, column) else { return Ok(()) };
            for row in part.rows {
                if !is_missing(array, row)? {
                    numbers.push_lists(array, path, shape, row..row + 1, bytes)?;
                } else if !(0..expected).all(|_| number.push(numbers.leaf, None, bytes)) {
                    return Err(array.damaged(NULL_LIST));
                }
            }
        }
        self.check()
    }
}
