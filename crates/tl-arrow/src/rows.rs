//! Files of rows, whatever their format: columns as a tree, and the values of each row.

use std::fmt;
use std::ops::{ControlFlow, Range};

use tbl_io::{Mapped, Note, ReadError, ReadLimits, Source, SourceKind};

use crate::codec::Codec;
use crate::file::{ParquetFile, RowPlace};
use crate::json::{Budget, Row};
use crate::places::Place;
use crate::schema::{Node, Schema};
use crate::thrift::Flaw;
use crate::values::Value;

/// Memory for each row of samples of a Parquet file: its label, the place and the format of its image, and
/// where segments of a compressed page are found from.
const ROW_BYTES: u64 = 21;

/// A caller that takes values with an offset each, until it breaks or fails.
pub(crate) type Take<'a> =
    dyn FnMut(Option<Value<'_>>, u64) -> Result<ControlFlow<()>, ReadError> + 'a;

/// The rows before each part of a file with these many rows, and the number of all rows at the end.
pub(crate) fn starts_of(parts: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut starts = vec![0];
    let mut rows = 0_u64;
    starts.extend(parts.map(|part| {
        rows = rows.saturating_add(part);
        rows
    }));
    starts
}

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

    /// Memory for each row of samples.
    fn row_bytes(&self) -> u64;

    /// Fails if the places of all rows take more memory than samples may.
    fn check_rows(&self) -> Result<(), ReadError> {
        let need = self.row_count().saturating_mul(self.row_bytes());
        self.check_size("bytes for places of rows", need)
    }

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

    /// Requests what opening reads of a file that is not mapped: the labels, and what the places of
    /// images need.
    fn request_together(&self, label: Option<usize>, image: Option<usize>)
    -> Result<(), ReadError>;

    /// Finds the places of images that follow from what was requested, and drops that. Whether they are
    /// now known of all images, which are in the file as they are.
    fn find_places(&self, image: usize) -> Result<bool, ReadError>;

    /// The place of the image of a row. The column of images is the same for every row.
    fn image(&self, leaf: usize, row: RowPlace) -> Result<Place, ReadError>;

    /// For each part of a leaf that is decoded as a whole, the row after its last one.
    fn block_ends(&self, leaf: usize) -> Result<Vec<u64>, ReadError>;

    /// Decoded bytes of such a part.
    fn block_bytes(&self, leaf: usize) -> Result<u64, ReadError>;

    /// How many of these parts have been decoded. Of an Arrow file, all buffers that were decompressed.
    fn unpack_count(&self, leaf: usize) -> u64;

    /// The codecs of a leaf.
    fn codecs(&self, leaf: usize) -> Vec<Codec>;

    /// The bytes of the file that the image of a row needs, as far as they are known without reading.
    fn image_range(&self, leaf: usize, row: RowPlace) -> Option<Range<u64>>;

    /// The file, if it is a Parquet file.
    fn parquet(&self) -> Option<&ParquetFile> {
        None
    }

    /// The error of this file with the place and the defect.
    fn error(&self, Flaw { offset, defect }: Flaw) -> ReadError {
        let location = self.source().location().clone();
        ReadError::Rows { location, offset, source: defect }
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

    fn row_bytes(&self) -> u64 {
        ROW_BYTES
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

    fn request_together(
        &self,
        label: Option<usize>,
        image: Option<usize>,
    ) -> Result<(), ReadError> {
        self.request_together(label, image)
    }

    fn find_places(&self, image: usize) -> Result<bool, ReadError> {
        self.find_pages(image)?;
        Ok(false)
    }

    fn image(&self, leaf: usize, row: RowPlace) -> Result<Place, ReadError> {
        self.places(leaf).of(self, row)
    }

    fn block_ends(&self, leaf: usize) -> Result<Vec<u64>, ReadError> {
        self.page_ends(leaf)
    }

    fn block_bytes(&self, leaf: usize) -> Result<u64, ReadError> {
        self.page_bytes(leaf)
    }

    fn unpack_count(&self, leaf: usize) -> u64 {
        self.decoded_pages(leaf)
    }

    fn codecs(&self, leaf: usize) -> Vec<Codec> {
        let groups = 0..self.footer().groups.len();
        groups.filter_map(|group| self.codec(group, leaf).ok()).collect()
    }

    fn image_range(&self, leaf: usize, row: RowPlace) -> Option<Range<u64>> {
        self.places(leaf).range(self, row)
    }

    fn parquet(&self) -> Option<&ParquetFile> {
        Some(self)
    }
}
