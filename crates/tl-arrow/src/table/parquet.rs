//! The columns of Parquet files.

use std::ops::Range;

use tbl_io::{ReadError, RowsDefect};

use crate::file::{ParquetFile, RowPlace};
use crate::footer::Chunk;
use crate::ipc::FixedLists;
use crate::nested::Entry;
use crate::schema::Node;
use crate::table::columns::{
    ColumnFile, ELEMENT, LENGTH, Lists, NULL, NULL_LIST, NUMBER, SHAPE, Take,
};
use crate::table::fixed;
use crate::table::number::Number;
use crate::thrift::Flaw;

/// Copies of the bytes of a page while it is decoded: compressed, decompressed and as numbers of 64 bits.
const COPIES: u64 = 3;

impl ParquetFile {
    fn misfit(&self, offset: u64, what: &'static str) -> ReadError {
        self.error(Flaw::new(offset, RowsDefect::Damaged { what }))
    }

    /// Bytes of these leaves in each row group.
    fn group_bytes(&self, leaves: Range<usize>) -> impl Iterator<Item = u64> {
        let bytes = |chunk: &Chunk| chunk.decompressed.max(chunk.bytes);
        self.footer().groups.iter().map(move |group| {
            let chunks = group.chunks.get(leaves.clone()).unwrap_or_default();
            chunks.iter().map(bytes).fold(0, u64::saturating_add)
        })
    }

    /// Appends the numbers of the list in a row.
    fn list(&self, lists: &Lists<'_>, row: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let Lists { leaf, number, shape, definition } = *lists;
        let Some(place) = self.place(row) else { return Ok(()) };
        let at = self.chunk(place.group, leaf).start;
        let error = |what| self.misfit(at, what);
        let described = self.leaf(leaf);
        let expected: usize = shape.iter().product();
        let (entries, first) = self.entries(place, leaf)?;
        let row = (place.row - first) as usize;
        let mut of_row = entries.of_row(row, described.max_definition).peekable();
        let count = entries.range(row).len();
        if of_row.peek().is_none_or(|entry| entry.definition < definition) {
            let missing = (0..expected).all(|_| number.push(described, None, bytes));
            return if missing { Ok(()) } else { Err(error(NULL_LIST)) };
        }
        if count != expected {
            return Err(error(LENGTH));
        }
        for (at, Entry { repetition, value, .. }) in of_row.enumerate() {
            if usize::from(repetition) != level(shape, at) {
                return Err(error(SHAPE));
            }
            if !number.push(described, value, bytes) {
                return Err(error(ELEMENT));
            }
        }
        Ok(())
    }
}

impl ColumnFile for ParquetFile {
    fn unreadable(&self, column: &Node) -> Option<String> {
        let leaves = column.leaves.clone();
        let codecs = (0..self.footer().groups.len())
            .flat_map(|group| leaves.clone().map(move |leaf| self.codec(group, leaf)));
        let error = codecs.filter_map(Result::err).next()?;
        // The file is named where the column is.
        Some(if let ReadError::Rows { source, .. } = error {
            source.to_string()
        } else {
            error.to_string()
        })
    }

    fn part_ends(&self) -> Vec<u64> {
        self.starts().get(1..).unwrap_or_default().to_vec()
    }

    fn fixed_lists(&self) -> FixedLists {
        fixed::of_arrow(&self.footer().metadata)
    }

    fn has_nulls(&self, leaf: usize) -> bool {
        self.leaf(leaf).max_definition > 0
            && self.footer().groups.iter().any(|group| group.chunks[leaf].nulls != Some(0))
    }

    fn leaf_bytes(&self, leaves: Range<usize>) -> u64 {
        self.group_bytes(leaves).fold(0, u64::saturating_add)
    }

    fn rows_together(&self, leaf: usize, is_list: bool) -> Option<u64> {
        let groups = &self.footer().groups;
        let has_index = groups.iter().all(|group| group.chunks[leaf].index.is_some());
        // Without an index a row group of lists is decoded as a whole.
        (is_list && !has_index).then(|| groups.iter().map(|group| group.rows).max().unwrap_or(1))
    }

    fn load_bytes(&self, leaves: Range<usize>) -> u64 {
        self.group_bytes(leaves).max().unwrap_or(0).saturating_mul(COPIES)
    }

    fn each(&self, leaf: usize, rows: Range<u64>, take: &mut Take<'_>) -> Result<(), ReadError> {
        let mut next = rows.start;
        while next < rows.end {
            let Some(RowPlace { group, row }) = self.place(next) else { return Ok(()) };
            let slots = self.pages(group, leaf)?;
            let number = Self::page_of(slots, row);
            let within = self.rows_of(group, slots, number);
            let page = self.page(group, leaf, number)?;
            let left = u32::try_from(rows.end - next).unwrap_or(u32::MAX);
            let end = within.end.min(row.saturating_add(left));
            let offset = slots[number].offset;
            for row in row..end {
                take(page.get((row - within.start) as usize), offset)?;
            }
            next += u64::from(end - row).max(1);
        }
        Ok(())
    }

    fn numbers(
        &self,
        leaf: usize,
        number: Number,
        rows: Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let described = self.leaf(leaf);
        self.each(leaf, rows, &mut |value, offset| {
            if number.push(described, value, bytes) {
                return Ok(());
            }
            Err(self.misfit(offset, if value.is_none() { NULL } else { NUMBER }))
        })
    }

    fn lists(
        &self,
        lists: &Lists<'_>,
        mut rows: Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        rows.try_for_each(|row| self.list(lists, row, bytes))
    }
}

/// The repetition level of element `at` of a row: the number of the list that it begins an element of,
/// 0 for the row itself.
fn level(shape: &[usize], at: usize) -> usize {
    let begins = |&level: &usize| at.is_multiple_of(shape[level..].iter().product());
    if at == 0 { 0 } else { (1..=shape.len()).find(begins).unwrap_or(shape.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_nested_lists() {
        let levels =
            |shape: &[usize], count| (0..count).map(|at| level(shape, at)).collect::<Vec<_>>();
        assert_eq!(levels(&[3], 3), [0, 1, 1]);
        assert_eq!(levels(&[2, 3], 6), [0, 2, 2, 1, 2, 2]);
        assert_eq!(levels(&[2, 1, 2], 4), [0, 3, 1, 3]);
    }
}
