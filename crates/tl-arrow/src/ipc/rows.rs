//! Arrow files as files of rows, and what is requested together of those in a store.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::Ordering;

use tbl_io::{Mapped, Note, ReadError, ReadLimits, Source, SourceKind};

use crate::codec::Codec;
use crate::file::RowPlace;
use crate::ipc::array::Array;
use crate::ipc::file::{ArrowFile, LENGTH_BYTES, ROW_BYTES};
use crate::ipc::message::Batch;
use crate::ipc::places::Places;
use crate::json::Budget;
use crate::places::Place;
use crate::rows::{RowFile, Take};
use crate::schema::{Node, Schema};
use crate::values::Value;

impl ArrowFile {
    /// The ranges that the places of the values of a leaf in a record batch need: bits of missing values,
    /// offsets or views, and the lengths of compressed buffers.
    fn place_ranges(&self, leaf: usize, group: usize) -> Vec<(u64, u64)> {
        let arrays = self.arrays(leaf, group).unwrap_or_default();
        let mut ranges = Vec::new();
        let mut push = |array: &Array<'_>, number: usize, most: u64| {
            let buffer = array.batch.buffer(array.batch.buffer_number(array.at, number));
            ranges.extend(buffer.map(|buffer| (buffer.offset, buffer.bytes.min(most))));
        };
        for array in &arrays {
            push(array, 0, u64::MAX);
        }
        if let Some(values) = arrays.last() {
            push(values, 1, u64::MAX);
            if values.batch.codec.is_some() {
                push(values, 2, LENGTH_BYTES);
            }
        }
        ranges
    }

    /// Requests what the lengths of the lists of a leaf in these record batches need, if the file is not
    /// mapped: bits of missing values, and offsets.
    pub(crate) fn request_lists(&self, leaf: usize, groups: &[usize]) -> Result<(), ReadError> {
        if self.map.is_some() {
            return Ok(());
        }
        self.ahead.clear();
        let mut ranges = Vec::new();
        for &group in groups {
            let arrays = self.arrays(leaf, group).unwrap_or_default();
            let last = arrays.len().saturating_sub(1);
            for (number, array) in arrays.iter().enumerate() {
                let own = if number == last { 1 } else { array.field.own_buffers() };
                let buffers = (0..own).map(|buffer| array.batch.buffer_number(array.at, buffer));
                let buffers = buffers.filter_map(|buffer| array.batch.buffer(buffer));
                ranges.extend(buffers.map(|buffer| (buffer.offset, buffer.bytes)));
            }
        }
        self.ahead.request(&self.source, ranges)
    }
}

impl RowFile for ArrowFile {
    fn kind(&self) -> SourceKind {
        SourceKind::Arrow
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn limits(&self) -> ReadLimits {
        self.limits
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn schema_mut(&mut self) -> &mut Schema {
        &mut self.schema
    }

    fn features(&self) -> Option<&[u8]> {
        self.features.as_deref()
    }

    fn row_count(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    fn row_bytes(&self) -> u64 {
        ROW_BYTES
    }

    fn place(&self, row: u64) -> Option<RowPlace> {
        // Batches without rows start where the next one does, and are passed over.
        let group = self.starts.partition_point(|&start| start <= row).checked_sub(1)?;
        let rows = self.layout.batches.get(group)?.rows;
        let row = u32::try_from(row - self.starts[group]).ok().filter(|&row| row < rows)?;
        Some(RowPlace { group, row })
    }

    fn map(&self) -> Option<&Mapped> {
        self.map.as_ref()
    }

    fn notes(&self) -> Vec<Note> {
        let is_open = !self.layout.has_end;
        is_open.then_some(Note::NoStreamEnd).into_iter().collect()
    }

    fn with_value(
        &self,
        leaf: usize,
        row: RowPlace,
        read: &mut dyn FnMut(Option<Value<'_>>),
    ) -> Result<(), ReadError> {
        self.leaf_value(leaf, row, read)?;
        self.check()
    }

    fn each_value(&self, leaf: usize, take: &mut Take<'_>) -> Result<(), ReadError> {
        for (group, batch) in self.layout.batches.iter().enumerate() {
            for row in 0..batch.rows {
                let mut taken = Ok(ControlFlow::Continue(()));
                self.leaf_value(leaf, RowPlace { group, row }, &mut |value| {
                    taken = take(value, batch.offset);
                })?;
                if taken?.is_break() {
                    return self.check();
                }
            }
        }
        self.check()
    }

    fn json(&self, node: &Node, row: RowPlace) -> Result<Option<Vec<u8>>, ReadError> {
        let column = self.path(node.leaves.start).first();
        let column = column.and_then(|&column| self.column(row.group, column));
        let Some(column) = column else { return Ok(None) };
        let json = column.json(row.row.into(), &Budget::new(self))?;
        self.check()?;
        Ok((!json.is_null()).then(|| json.to_string().into_bytes()))
    }

    fn request_together(
        &self,
        label: Option<usize>,
        image: Option<usize>,
    ) -> Result<(), ReadError> {
        if self.map.is_some() {
            return Ok(());
        }
        let mut ranges = Vec::new();
        for (group, batch) in self.layout.batches.iter().enumerate() {
            let labels = label.into_iter().flat_map(|label| self.column_buffers(batch, label));
            ranges.extend(labels.map(|buffer| (buffer.offset, buffer.bytes)));
            ranges.extend(image.into_iter().flat_map(|image| self.place_ranges(image, group)));
        }
        self.ahead.request(&self.source, ranges)
    }

    fn find_places(&self, image: usize) -> Result<bool, ReadError> {
        if self.map.is_some() {
            return Ok(false);
        }
        let images = self.images.get_or_init(|| Places::new(self, image));
        let is_here =
            |&(offset, len): &(u64, u64)| len == 0 || self.ahead.get(offset, len).is_some();
        let mut are_all = true;
        for group in 0..self.layout.batches.len() {
            let ranges = self.place_ranges(image, group);
            let is_found = !ranges.is_empty() && ranges.iter().all(is_here);
            are_all &= is_found && images.in_batch(self, group)?.are_in_file();
        }
        self.ahead.clear();
        Ok(are_all)
    }

    fn image(&self, leaf: usize, row: RowPlace) -> Result<Place, ReadError> {
        self.images.get_or_init(|| Places::new(self, leaf)).of(self, row)
    }

    fn block_ends(&self, _: usize) -> Result<Vec<u64>, ReadError> {
        Ok(self.starts.get(1..).unwrap_or_default().to_vec())
    }

    fn block_bytes(&self, leaf: usize) -> Result<u64, ReadError> {
        self.largest_buffer(leaf)
    }

    fn unpack_count(&self, _: usize) -> u64 {
        self.decompressed.load(Ordering::Relaxed)
    }

    fn codecs(&self, _: usize) -> Vec<Codec> {
        let codec = |batch: &Batch| batch.codec.unwrap_or(Codec::Uncompressed);
        self.layout.batches.iter().map(codec).collect()
    }

    fn image_range(&self, leaf: usize, row: RowPlace) -> Option<Range<u64>> {
        self.images.get_or_init(|| Places::new(self, leaf)).range(self, row)
    }
}
