//! An open Arrow file, or a stream in a file: its columns, its record batches, and the bytes of these.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, OnceLock};

use tbl_io::{Mapped, Note, ParquetDefect, ReadError, ReadLimits, Source, SourceKind};

use crate::cache::{FileNumber, Key, PageCache, Part};
use crate::codec::Codec;
use crate::file::RowPlace;
use crate::ipc::array::{Array, Bytes};
use crate::ipc::layout::{self, Layout};
use crate::ipc::message::{Batch, Buffer};
use crate::ipc::places::Places;
use crate::ipc::schema::{Columns, Cursor, Field};
use crate::json::Budget;
use crate::page::decompressed;
use crate::places::Place;
use crate::rows::{RowFile, Take};
use crate::schema::{Node, Schema};
use crate::thrift::Flaw;
use crate::values::Value;

/// A file that is open.
#[derive(Debug)]
pub(crate) struct ArrowFile {
    source: Source,
    limits: ReadLimits,
    /// Tells the file from others in the cache.
    number: FileNumber,
    map: Option<Mapped>,
    layout: Layout,
    fields: Vec<Field>,
    features: Option<Vec<u8>>,
    schema: Schema,
    /// By leaf, the numbers of the fields from the column on that lead to it.
    paths: Vec<Vec<usize>>,
    /// By record batch, the rows before it; the number of rows at the end.
    starts: Vec<u64>,
    /// The places of images once they were asked for.
    images: OnceLock<Places>,
}

/// The number of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchNumber {
    /// Of the record batches.
    Rows(usize),
    /// Of the dictionaries.
    Dictionary(usize),
}

/// Memory for each row: its label, and the place of its image.
const ROW_BYTES: u64 = 18;

/// Buffers up to this size are read as a whole where the file cannot be mapped: 256 KiB.
const WHOLE: u64 = 256 << 10;

/// The bytes of the length in front of a compressed buffer.
const LENGTH_BYTES: u64 = size_of::<i64>() as u64;

impl ArrowFile {
    pub(crate) fn open(source: Source, limits: ReadLimits) -> Result<Self, ReadError> {
        let map = Mapped::new(&source, 0, source.len()).ok();
        let input = Input { source: &source, map: map.as_ref(), limits };
        let (columns, layout) = layout::read(&input)?;
        let mut starts = vec![0];
        let mut rows: u64 = 0;
        for batch in &layout.batches {
            rows = rows.saturating_add(batch.rows.into());
            starts.push(rows);
        }
        let need = rows.saturating_mul(ROW_BYTES);
        input.check_size("bytes for places of rows", need)?;
        let (schema, paths) = columns.to_schema();
        let number = FileNumber::next();
        let images = OnceLock::new();
        let Columns { fields, features, .. } = columns;
        Ok(Self {
            source,
            limits,
            number,
            map,
            layout,
            fields,
            features,
            schema,
            paths,
            starts,
            images,
        })
    }

    pub(crate) fn batches(&self) -> &[Batch] {
        &self.layout.batches
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self, place: Buffer) -> Result<Cow<'_, [u8]>, ReadError> {
        let map = self.map.as_ref();
        Input { source: &self.source, map, limits: self.limits }.bytes(place)
    }

    /// Checks that the file still had everything that was lent of it.
    pub(crate) fn check(&self) -> Result<(), ReadError> {
        self.map.as_ref().map_or(Ok(()), Mapped::check)
    }

    /// Buffer `number` of a batch, decompressed.
    pub(crate) fn buffer(
        &self,
        batch_number: BatchNumber,
        batch: &Batch,
        number: usize,
    ) -> Result<Bytes<'_>, ReadError> {
        let damaged = || {
            let what = "number of buffers";
            self.error(Flaw::new(batch.offset, ParquetDefect::Damaged { what }))
        };
        let place = batch.buffer(number).ok_or_else(damaged)?;
        let Some((place, codec, len)) = self.compressed(batch, number, place)? else {
            return self.stored(batch_number, self.in_place(batch, place), number);
        };
        let decoded = PageCache::of_process().get(self.key(batch_number, number), || {
            let stored = self.bytes(place)?;
            let decoded = decompressed(codec, &stored, len, place.offset, self.limits.sample_bytes);
            self.check()?;
            decoded.map_err(|flaw| self.error(flaw))
        })?;
        Ok(Bytes::kept(place.offset, decoded))
    }

    /// The bytes, the codec and the decompressed length of a buffer; `None` for one whose bytes are in
    /// the file as they are.
    fn compressed(
        &self,
        batch: &Batch,
        number: usize,
        place: Buffer,
    ) -> Result<Option<(Buffer, Codec, u64)>, ReadError> {
        let Some(codec) = batch.codec.filter(|_| place.bytes > 0) else { return Ok(None) };
        let what = "length of a compressed buffer";
        if place.bytes < LENGTH_BYTES {
            return Err(self.error(Flaw::new(place.offset, ParquetDefect::Truncated { what })));
        }
        let value = batch.length(number, || {
            let length = self.bytes(Buffer { bytes: LENGTH_BYTES, ..place })?;
            let value = length.first_chunk().map_or(0, |length| i64::from_le_bytes(*length));
            self.check().map(|()| value)
        })?;
        if value == -1 {
            return Ok(None);
        }
        let expected = "at least -1";
        let len = u64::try_from(value).map_err(|_| {
            self.error(Flaw::new(place.offset, ParquetDefect::Value { what, value, expected }))
        })?;
        Ok(Some((after_length(place), codec, len)))
    }

    /// The bytes of a buffer that is not compressed.
    fn in_place(&self, batch: &Batch, place: Buffer) -> Buffer {
        if batch.codec.is_some() && place.bytes > 0 { after_length(place) } else { place }
    }

    fn stored(
        &self,
        batch: BatchNumber,
        place: Buffer,
        number: usize,
    ) -> Result<Bytes<'_>, ReadError> {
        if self.map.is_some() {
            return match self.bytes(place)? {
                Cow::Borrowed(bytes) => Ok(Bytes::lent(place, bytes)),
                Cow::Owned(bytes) => Ok(Bytes::kept(place.offset, Arc::new(bytes))),
            };
        }
        if place.bytes > WHOLE {
            return Ok(Bytes::in_file(place, self));
        }
        let read = || self.bytes(place).map(Cow::into_owned);
        let bytes = PageCache::of_process().get(self.key(batch, number), read)?;
        Ok(Bytes::kept(place.offset, bytes))
    }

    fn key(&self, batch: BatchNumber, leaf: usize) -> Key {
        let (group, part) = match batch {
            BatchNumber::Rows(number) => (number, Part::RowBuffer),
            BatchNumber::Dictionary(number) => (number, Part::DictionaryBuffer),
        };
        Key { file: self.number.get(), group, leaf, part }
    }

    /// Whether buffer `number` of a batch is in the file as it is, and where.
    pub(crate) fn place_of(
        &self,
        batch: &Batch,
        number: usize,
    ) -> Result<Option<Buffer>, ReadError> {
        let Some(place) = batch.buffer(number) else { return Ok(None) };
        let compressed = self.compressed(batch, number, place)?;
        Ok(compressed.is_none().then(|| self.in_place(batch, place)))
    }

    /// The parts of the dictionary that record batch or dictionary `number` uses.
    pub(crate) fn dictionary(
        &self,
        id: i64,
        number: BatchNumber,
    ) -> impl Iterator<Item = (BatchNumber, &Batch)> {
        let before = match number {
            BatchNumber::Rows(number) => number,
            BatchNumber::Dictionary(number) => {
                self.layout.dictionaries.get(number).map_or(0, |dictionary| dictionary.before)
            }
        };
        let of_id = self.layout.by_id.get(&id).map_or(&[][..], Vec::as_slice);
        let dictionary = |number: &usize| self.layout.dictionaries.get(*number);
        let is_before = |number: &usize| dictionary(number).is_some_and(|d| d.before <= before);
        let parts = &of_id[..of_id.partition_point(is_before)];
        let is_whole = |number: &usize| dictionary(number).is_some_and(|d| !d.is_delta);
        let first = parts.iter().rposition(is_whole).unwrap_or(0);
        parts[first..].iter().filter_map(|&number| {
            let dictionary = self.layout.dictionaries.get(number)?;
            Some((BatchNumber::Dictionary(number), &dictionary.values))
        })
    }

    /// Column `number` in record batch `group`.
    pub(crate) fn column(&self, group: usize, number: usize) -> Option<Array<'_>> {
        let field = self.fields.get(number)?;
        let batch = self.layout.batches.get(group)?;
        let number = BatchNumber::Rows(group);
        let at = field.start;
        Some(Array { file: self, number, batch, field, at, is_dictionary: false })
    }

    /// The fields from a column on that lead to a leaf.
    pub(crate) fn path(&self, leaf: usize) -> &[usize] {
        self.paths.get(leaf).map_or(&[], Vec::as_slice)
    }

    /// Calls `read` with the value of a leaf; with `None` for null. The caller checks the file after.
    pub(crate) fn leaf_value(
        &self,
        leaf: usize,
        row: RowPlace,
        read: &mut dyn FnMut(Option<Value<'_>>),
    ) -> Result<(), ReadError> {
        let mut path = self.path(leaf).iter();
        let column = path.next().and_then(|&column| self.column(row.group, column));
        let mut found = column.map(|column| (column, u64::from(row.row)));
        for &child in path {
            let Some((array, row)) = found else { break };
            let there = array.resolve(row)?;
            found = there.and_then(|(array, row)| Some((array.child(child)?, row)));
        }
        let Some((array, row)) = found else {
            read(None);
            return Ok(());
        };
        array.value(row, read)
    }
}

/// The bytes after the length of a compressed buffer.
fn after_length(place: Buffer) -> Buffer {
    let bytes = place.bytes.saturating_sub(LENGTH_BYTES);
    Buffer { offset: place.offset + (place.bytes - bytes), bytes }
}

/// The bytes of a file that is being opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'s> {
    pub(crate) source: &'s Source,
    pub(crate) map: Option<&'s Mapped>,
    pub(crate) limits: ReadLimits,
}

impl<'s> Input<'s> {
    /// Bytes of the file, lent if it is mapped. A caller that uses lent bytes checks the mapping after.
    pub(crate) fn bytes(&self, place: Buffer) -> Result<Cow<'s, [u8]>, ReadError> {
        if let Some(map) = self.map {
            return match map.lend(place.offset, place.bytes) {
                Some(bytes) => Ok(Cow::Borrowed(bytes)),
                // The error says that the range is not in the file.
                None => map.slice(place.offset, place.bytes).map(Cow::Borrowed),
            };
        }
        self.check_size("bytes of a buffer", place.bytes)?;
        let mut bytes = Vec::new();
        self.source.read_range_into(place.offset, place.bytes, &mut bytes)?;
        Ok(Cow::Owned(bytes))
    }

    pub(crate) fn error(&self, Flaw { offset, defect }: Flaw) -> ReadError {
        ReadError::Parquet { location: self.source.location().clone(), offset, source: defect }
    }

    pub(crate) fn check_size(&self, what: &'static str, need: u64) -> Result<(), ReadError> {
        let limit = self.limits.sample_bytes;
        if need <= limit {
            return Ok(());
        }
        Err(ReadError::Limit { location: self.source.location().clone(), what, limit, need })
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

    fn image(&self, leaf: usize, row: RowPlace) -> Result<Place, ReadError> {
        self.images.get_or_init(|| Places::new(self, leaf)).of(self, row)
    }

    fn image_range(&self, leaf: usize, row: RowPlace) -> Option<Range<u64>> {
        self.images.get_or_init(|| Places::new(self, leaf)).range(self, row)
    }
}

/// The nodes and buffers of the values of a dictionary; `None` if no field has it.
pub(crate) fn values_of(fields: &[Field], id: i64) -> Option<Cursor> {
    fields.iter().find_map(|field| {
        let is_this = field.dictionary.is_some_and(|dictionary| dictionary.id == id);
        if is_this { Some(field.values()) } else { values_of(&field.children, id) }
    })
}
