//! Columns of structures and lists: the entries of rows with their levels, leaf by leaf.

use std::ops::Range;
use std::sync::Arc;

use tbl_io::RowsDefect;

use crate::header::PageHeader;
use crate::page::{PAGE_VALUES, PageContext, PageParts};
use crate::thrift::Flaw;
use crate::values::{Value, Values};

/// The entries of a leaf in rows that follow each other.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// By entry, the list in which it begins a new element; 0 for a new row. Empty if no leaf is in a
    /// list.
    repetition: Vec<u8>,
    /// By entry, how much of its path is there.
    definition: Vec<u8>,
    /// By row, its first entry and the values before it.
    rows: Vec<RowStart>,
    pages: Vec<PageValues>,
    value_count: u32,
}

#[derive(Clone, Copy, Debug)]
struct RowStart {
    entry: u32,
    value: u32,
}

/// The values of a page.
#[derive(Debug)]
struct PageValues {
    /// The values of the pages before it.
    first: u32,
    values: Values,
}

/// An entry of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry<'a> {
    pub(crate) repetition: u8,
    pub(crate) definition: u8,
    /// The value; `None` for null, and for an empty list.
    pub(crate) value: Option<Value<'a>>,
}

impl Entries {
    /// The rows.
    pub(crate) fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        let values: usize = self.pages.iter().map(|page| page.values.memory()).sum();
        self.repetition.len() + self.definition.len() + size_of_val(&*self.rows) + values
    }

    /// The numbers of the entries of row `row`; none past the end.
    pub(crate) fn range(&self, row: usize) -> Range<usize> {
        let start =
            |row: usize| self.rows.get(row).map_or(self.definition.len(), |row| row.entry as usize);
        start(row)..start(row + 1)
    }

    /// The entries of row `row`; none past the end.
    pub(crate) fn of_row(&self, row: usize, max_definition: u8) -> impl Iterator<Item = Entry<'_>> {
        let mut value = self.rows.get(row).map_or(0, |start| start.value);
        let entry = move |at: usize| {
            let definition = self.definition[at];
            let repetition = self.repetition.get(at).copied().unwrap_or(0);
            let is_value = definition == max_definition;
            let found = is_value.then(|| self.value(value)).flatten();
            value += u32::from(is_value);
            Entry { repetition, definition, value: found }
        };
        self.range(row).map(entry)
    }

    fn value(&self, number: u32) -> Option<Value<'_>> {
        let page = self.pages.partition_point(|page| page.first <= number).checked_sub(1)?;
        let PageValues { first, values } = self.pages.get(page)?;
        values.get((number - first) as usize)
    }

    /// Appends the entries of a data page; `stored` are its bytes after the header.
    pub(crate) fn push(
        &mut self,
        header: &PageHeader,
        stored: &[u8],
        dictionary: Option<&Arc<Values>>,
        context: PageContext<'_>,
    ) -> Result<(), Flaw> {
        let damaged = |what| context.flaw(RowsDefect::Damaged { what });
        let parts = PageParts::of(header, stored, context)?;
        let before = self.definition.len();
        let count = parts.values as usize;
        let total = before.saturating_add(count);
        if total > PAGE_VALUES as usize {
            let what = "number of values in a row group of lists";
            let found = total as u64;
            let limit = PAGE_VALUES.into();
            return Err(context.flaw(RowsDefect::TooLarge { what, found, limit }));
        }
        let leaf = context.leaf;
        if leaf.max_repetition > 0 {
            let levels = &mut self.repetition;
            let take = |level, run| levels.extend(std::iter::repeat_n(level, run));
            let decoded = parts.repetition().decode(leaf.max_repetition, count, take);
            decoded.ok_or_else(|| damaged("repetition levels of the page"))?;
        }
        let levels = &mut self.definition;
        if leaf.max_definition > 0 {
            let take = |level, run| levels.extend(std::iter::repeat_n(level, run));
            let decoded = parts.definition().decode(leaf.max_definition, count, take);
            decoded.ok_or_else(|| damaged("definition levels of the page"))?;
        } else {
            levels.resize(total, 0);
        }
        let first = self.value_count;
        self.push_rows(before, leaf.max_definition);
        let values = (self.value_count - first) as usize;
        let values = parts.into_values(values, dictionary, context)?;
        self.pages.push(PageValues { first, values });
        Ok(())
    }

    /// Notes the rows that begin from entry `first` on, and counts values.
    fn push_rows(&mut self, first: usize, max_definition: u8) {
        for at in first..self.definition.len() {
            if self.repetition.get(at).is_none_or(|&repetition| repetition == 0) {
                let entry = u32::try_from(at).unwrap_or(u32::MAX);
                self.rows.push(RowStart { entry, value: self.value_count });
            }
            self.value_count += u32::from(self.definition[at] == max_definition);
        }
    }
}
