//! Files of rows, whatever their format: columns as a tree, and the values of each row.

use std::fmt;
use std::ops::{ControlFlow, Range};

use tbl_io::{Mapped, Note, ReadError, ReadLimits, Source, SourceKind};

use crate::file::{ParquetFile, RowPlace};
use crate::json::{Budget, Row};
use crate::places::Place;
use crate::schema::{Node, Schema};
use crate::thrift::Flaw;
use crate::values::Value;

/// A caller that takes values with an offset each, until it breaks or fails.
pub(crate) type Take<'a> =
    dyn FnMut(Option<Value<'_>>, u64) -> Result<ControlFlow<()>, ReadError> + 'a;

/// A file of rows.
pub(crate) trait RowFile: fmt::Debug + Send + Sync {
    fn kind(&self) -> SourceKind;

    fn source(&self) -> &Source;

    fn limits(&self) -> ReadLimits;

    fn schema(&self) -> &Schema;

    fn schema_mut(&mut self) -> &mut Schema;

    /// The features of `datasets`, as JSON.
    fn features(&self) -> Option<&[u8]>;

    /// The uses of columns that the writer of this crate states, as JSON. None by default.
    fn own(&self) -> Option<&[u8]> {
        None
    }

    fn row_count(&self) -> u64;

    /// The place of row `row`; `None` past the end.
    fn place(&self, row: u64) -> Option<RowPlace>;

    /// The whole file in memory, if it can be mapped.
    fn map(&self) -> Option<&Mapped>;

    /// Notes on the file; usually empty.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }

    /// Calls `read` with the value of a column that is not in a list; with `None` for null.
    fn with_value(
        &self,
        leaf: usize,
        row: RowPlace,
        read: &mut dyn FnMut(Option<Value<'_>>),
    ) -> Result<(), ReadError>;

    /// Calls `take` with all values of a column that is not in a list, in the order of the rows, until
    /// it breaks. The number is the offset of the place in the file that errors name.
    fn each_value(&self, leaf: usize, take: &mut Take<'_>) -> Result<(), ReadError>;

    /// A structure or a list as JSON; `None` for null.
    fn json(&self, node: &Node, row: RowPlace) -> Result<Option<Vec<u8>>, ReadError>;

    /// The place of the image of a row. The column of images is the same for every row.
    fn image(&self, leaf: usize, row: RowPlace) -> Result<Place, ReadError>;

    /// The bytes of the file that the image of a row needs, as far as they are known without reading.
    fn image_range(&self, leaf: usize, row: RowPlace) -> Option<Range<u64>>;

    /// The file, if it is a Parquet file.
    fn parquet(&self) -> Option<&ParquetFile> {
        None
    }

    /// The error of this file with the place and the defect.
    fn error(&self, Flaw { offset, defect }: Flaw) -> ReadError {
        let location = self.source().location().clone();
        ReadError::Parquet { location, offset, source: defect }
    }

    fn check_size(&self, what: &'static str, need: u64) -> Result<(), ReadError> {
        let limit = self.limits().sample_bytes;
        if need <= limit {
            return Ok(());
        }
        Err(ReadError::Limit { location: self.source().location().clone(), what, limit, need })
    }
}

impl RowFile for ParquetFile {
    fn kind(&self) -> SourceKind {
        SourceKind::Parquet
    }

    fn source(&self) -> &Source {
        self.source()
    }

    fn limits(&self) -> ReadLimits {
        self.limits()
    }

    fn schema(&self) -> &Schema {
        &self.footer().schema
    }

    fn schema_mut(&mut self) -> &mut Schema {
        &mut self.footer_mut().schema
    }

    fn features(&self) -> Option<&[u8]> {
        self.footer().metadata.features.as_deref()
    }

    fn own(&self) -> Option<&[u8]> {
        self.footer().metadata.own.as_deref()
    }

    fn row_count(&self) -> u64 {
        self.row_count()
    }

    fn place(&self, row: u64) -> Option<RowPlace> {
        self.place(row)
    }

    fn map(&self) -> Option<&Mapped> {
        self.map()
    }

    fn with_value(
        &self,
        leaf: usize,
        row: RowPlace,
        read: &mut dyn FnMut(Option<Value<'_>>),
    ) -> Result<(), ReadError> {
        let slots = self.pages(row.group, leaf)?;
        let number = Self::page_of(slots, row.row);
        let first = slots.get(number).map_or(0, |slot| slot.first_row);
        let page = self.page(row.group, leaf, number)?;
        read(page.get((row.row - first) as usize));
        Ok(())
    }

    fn each_value(&self, leaf: usize, take: &mut Take<'_>) -> Result<(), ReadError> {
        for group in 0..self.footer().groups.len() {
            let slots = self.pages(group, leaf)?;
            for (number, slot) in slots.iter().enumerate() {
                let page = self.page(group, leaf, number)?;
                for row in 0..page.rows() {
                    if take(page.get(row), slot.offset)?.is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn json(&self, node: &Node, row: RowPlace) -> Result<Option<Vec<u8>>, ReadError> {
        let read = |leaf| self.entries(row, leaf);
        let leaves = node.leaves.clone();
        let found = leaves.clone().map(read).collect::<Result<Vec<_>, _>>()?;
        let budget = Budget::new(self);
        let entries = leaves.zip(&found).map(|(leaf, (entries, first))| {
            let at = (row.row - first) as usize;
            budget.entries(entries.range(at).len())?;
            Ok(entries.of_row(at, self.leaf(leaf).max_definition).collect())
        });
        let entries = entries.collect::<Result<_, ReadError>>()?;
        let leaves = self.footer().schema.leaves();
        Row { leaves, entries, first_leaf: node.leaves.start, budget }.to_json(node)
    }

    fn image(&self, leaf: usize, row: RowPlace) -> Result<Place, ReadError> {
        self.places(leaf).of(self, row)
    }

    fn image_range(&self, leaf: usize, row: RowPlace) -> Option<Range<u64>> {
        self.places(leaf).range(self, row)
    }

    fn parquet(&self) -> Option<&ParquetFile> {
        Some(self)
    }
}
