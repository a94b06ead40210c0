//! Lists in Arrow files and streams: the tokens of a list follow each other in the file.

use std::ops::Range;

use tbl_io::ReadError;
use tl_tokens::TokenFormat;

use super::{Column, Elements, ListFile, length, null};
use crate::ipc::{Array, ArrowFile};
use crate::rows::RowFile;
use crate::values::Value;

/// Record batches whose offsets are requested together.
const TOGETHER: usize = 256;

/// A list in an array of elements.
struct List<'f> {
    elements: Array<'f>,
    range: Range<u64>,
}

impl List<'_> {
    fn has_null(&self) -> Result<bool, ReadError> {
        let Self { elements, range } = self;
        let validity = elements.validity(range.clone())?;
        if validity.is_some_and(|bits| !range.clone().all(|element| bits.is_valid(element))) {
            return Ok(true);
        }
        if !elements.is_indexed() {
            return Ok(false);
        }
        // A number of a dictionary may stand for null.
        for element in range.clone() {
            if elements.resolve(element)?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl ArrowFile {
    /// The array of a column of lists in a record batch.
    fn lists(&self, column: &Column, group: usize) -> Option<Array<'_>> {
        self.column(group, *self.path(column.leaf).first()?)
    }

    /// Calls `add` with the lengths in a record batch, whose first row is `record`.
    fn lengths_in(
        &self,
        column: &Column,
        group: usize,
        record: &mut u64,
        add: &mut dyn FnMut(u32) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let array = self.lists(column, group).zip(self.batches().get(group));
        let Some((array, batch)) = array else { return Ok(()) };
        for row in 0..u64::from(batch.rows) {
            let list = Self::list_in(array, row)?;
            let has_null = list.as_ref().map_or(Ok(false), List::has_null)?;
            if has_null {
                return Err(null(self, column, *record));
            }
            let count = list.map_or(0, |list| list.range.end - list.range.start);
            add(length(self, column, *record, count)?)?;
            *record += 1;
        }
        Ok(())
    }

    /// The list in a row of a record batch; `None` for null.
    fn list_in(array: Array<'_>, row: u64) -> Result<Option<List<'_>>, ReadError> {
        let Some((array, row)) = array.resolve(row)? else { return Ok(None) };
        let range = array.elements(row)?;
        let elements = array.child(0).ok_or_else(|| array.damaged("type of a column"))?;
        Ok(Some(List { elements, range }))
    }
}

impl ListFile for ArrowFile {
    fn format(&self) -> TokenFormat {
        TokenFormat::Arrow
    }

    fn lengths(
        &self,
        column: &Column,
        add: &mut dyn FnMut(u32) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut record = 0;
        let groups: Vec<usize> = (0..self.batches().len()).collect();
        for groups in groups.chunks(TOGETHER) {
            self.request_lists(column.leaf, groups)?;
            for &group in groups {
                self.lengths_in(column, group, &mut record, add)?;
            }
        }
        self.release_ahead();
        self.check()
    }

    fn read(
        &self,
        column: &Column,
        row: u64,
        elements: Elements,
        out: &mut Vec<u8>,
    ) -> Result<bool, ReadError> {
        let place = self.place(row);
        let array = place.and_then(|place| self.lists(column, place.group));
        let Some((place, array)) = place.zip(array) else { return Ok(false) };
        let Some(List { elements: array, range }) = Self::list_in(array, place.row.into())? else {
            return Ok(elements.count == 0);
        };
        let start = range.start.saturating_add(elements.first);
        let end = start.saturating_add(elements.count);
        if end > range.end || end > array.len() {
            return Ok(false);
        }
        if array.is_indexed() {
            for element in start..end {
                let mut token = None;
                array.value(element, &mut |value| {
                    if let Some(Value::Integer(number)) = value {
                        token = column.token(number);
                    }
                })?;
                let Some(token) = token else { return Ok(false) };
                out.extend_from_slice(&token[..column.number.bytes()]);
            }
        } else {
            let item = column.number.bytes() as u64;
            let bytes = elements.count.saturating_mul(item);
            array.part(1, start.saturating_mul(item), bytes, |tokens| {
                out.extend_from_slice(tokens);
            })?;
        }
        self.check()?;
        Ok(true)
    }

    fn offset(&self, _: &Column, row: u64) -> u64 {
        let batch = self.place(row).and_then(|place| self.batches().get(place.group));
        batch.map_or(0, |batch| batch.offset)
    }
}
