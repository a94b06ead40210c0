//! An open Arrow file, or a stream in a file: its columns, its record batches, and the bytes of these.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tbl_io::{Mapped, ReadError, ReadLimits, RowsDefect, Source};

use crate::ahead::Ahead;
use crate::cache::{FileNumber, Key, PageCache, Part};
use crate::codec::Codec;
use crate::file::RowPlace;
use crate::ipc::array::{Array, Bytes};
use crate::ipc::fixed::FixedLists;
use crate::ipc::input::Input;
use crate::ipc::layout::{self, Layout};
use crate::ipc::message::{Batch, Buffer};
use crate::ipc::places::Places;
use crate::ipc::schema::{Columns, Cursor, Field, Kind};
use crate::page::decompressed;
use crate::rows::{RowFile, starts_of};
use crate::schema::Schema;
use crate::thrift::Flaw;
use crate::values::Value;

/// A file that is open.
#[derive(Debug)]
pub(crate) struct ArrowFile {
    pub(super) source: Source,
    pub(super) limits: ReadLimits,
    /// Tells the file from others in the cache.
    number: FileNumber,
    pub(super) map: Option<Mapped>,
    pub(super) ahead: Ahead,
    pub(super) layout: Layout,
    pub(super) fields: Vec<Field>,
    pub(super) features: Option<Vec<u8>>,
    pub(super) schema: Schema,
    /// By leaf, the numbers of the fields from the column on that lead to it.
    pub(super) paths: Vec<Vec<usize>>,
    /// By record batch, the rows before it; the number of rows at the end.
    pub(super) starts: Vec<u64>,
    /// The buffers that were decompressed.
    pub(super) decompressed: AtomicU64,
    /// The places of images once they were asked for.
    pub(super) images: OnceLock<Places>,
}

/// The number of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchNumber {
    /// Of the record batches.
    Rows(usize),
    /// Of the dictionaries.
    Dictionary(usize),
}

/// Memory for each row of samples: its label, and the place of its image.
pub(super) const ROW_BYTES: u64 = 18;

/// Buffers up to this size are read as a whole where the file cannot be mapped: 256 KiB.
const WHOLE: u64 = 256 << 10;

/// The bytes of the length in front of a compressed buffer.
pub(super) const LENGTH_BYTES: u64 = size_of::<i64>() as u64;

impl ArrowFile {
    pub(crate) fn open(source: Source, limits: ReadLimits) -> Result<Self, ReadError> {
        let map = Mapped::new(&source, 0, source.len()).ok();
        let ahead = Ahead::default();
        let input = Input { source: &source, map: map.as_ref(), ahead: &ahead, limits };
        let (columns, layout) = layout::read(&input)?;
        let starts = starts_of(layout.batches.iter().map(|batch| batch.rows.into()));
        let (schema, paths) = columns.to_schema();
        let number = FileNumber::next();
        let images = OnceLock::new();
        let Columns { fields, features, .. } = columns;
        Ok(Self {
            source,
            limits,
            number,
            map,
            ahead,
            layout,
            fields,
            features,
            schema,
            paths,
            starts,
            decompressed: AtomicU64::new(0),
            images,
        })
    }

    /// Drops what was requested to open the file.
    pub(crate) fn release_ahead(&self) {
        self.ahead.clear();
    }

    pub(crate) fn batches(&self) -> &[Batch] {
        &self.layout.batches
    }

    /// By record batch, the rows before it; the number of rows at the end.
    pub(crate) fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The lists of one length among the columns.
    pub(crate) fn fixed_lists(&self) -> FixedLists {
        FixedLists::of_fields(&self.fields)
    }

    /// The first type below a column whose values are not read.
    pub(crate) fn unread(&self, leaf: usize) -> Option<&'static str> {
        fn unread(field: &Field) -> Option<&'static str> {
            let what = if let Kind::Other { what, .. } = field.kind { Some(what) } else { None };
            what.or_else(|| field.children.iter().find_map(unread))
        }
        self.fields.get(*self.path(leaf).first()?).and_then(unread)
    }

    /// Whether values of a leaf may be null, as far as the metadata say.
    pub(crate) fn has_nulls(&self, leaf: usize) -> bool {
        let mut fields = &self.fields;
        let mut at = Cursor::default();
        let mut is_in_dictionary = false;
        for &number in self.path(leaf) {
            let Some(field) = fields.get(number).filter(|_| !is_in_dictionary) else { return true };
            at = at.plus(field.start);
            let parts =
                field.dictionary.and_then(|dictionary| self.layout.by_id.get(&dictionary.id));
            let mut parts = parts.into_iter().flatten();
            let has_nulls = |&part: &usize| {
                let dictionary = self.layout.dictionaries.get(part);
                dictionary.is_some_and(|dictionary| dictionary.values.has_any_nulls())
            };
            if field.kind == Kind::Null
                || self.layout.batches.iter().any(|batch| batch.has_nulls(at))
                || parts.any(has_nulls)
            {
                return true;
            }
            is_in_dictionary = field.dictionary.is_some();
            fields = &field.children;
        }
        false
    }

    /// The numbers of the buffers that the column of a leaf has in a record batch.
    fn buffer_numbers(&self, batch: &Batch, leaf: usize) -> Range<usize> {
        let column = self.path(leaf).first().and_then(|&column| self.fields.get(column));
        column.map_or(0..0, |column| batch.buffer_numbers(column.start, column.end()))
    }

    /// The buffers of the column of a leaf in a record batch.
    pub(crate) fn column_buffers<'b>(
        &self,
        batch: &'b Batch,
        leaf: usize,
    ) -> impl Iterator<Item = Buffer> + use<'b> {
        self.buffer_numbers(batch, leaf).filter_map(|number| batch.buffer(number))
    }

    /// Bytes of the largest buffer of the column of a leaf, decompressed.
    pub(crate) fn largest_buffer(&self, leaf: usize) -> Result<u64, ReadError> {
        let buffers = self.batches().iter().flat_map(|batch| {
            let numbers = self.buffer_numbers(batch, leaf);
            numbers.filter_map(move |number| Some((batch, number, batch.buffer(number)?)))
        });
        let largest = buffers.max_by_key(|(_, _, buffer)| buffer.bytes);
        let Some((batch, number, buffer)) = largest else { return Ok(0) };
        let decompressed = self.compressed(batch, number, buffer)?.map_or(0, |(_, _, len)| len);
        Ok(decompressed.max(buffer.bytes))
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self, place: Buffer) -> Result<Cow<'_, [u8]>, ReadError> {
        let Self { source, map, ahead, limits, .. } = self;
        Input { source, map: map.as_ref(), ahead, limits: *limits }.bytes(place)
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
            self.error(Flaw::new(batch.offset, RowsDefect::Damaged { what }))
        };
        let place = batch.buffer(number).ok_or_else(damaged)?;
        let Some((place, codec, len)) = self.compressed(batch, number, place)? else {
            return self.stored(batch_number, self.in_place(batch, place), number);
        };
        let decoded = PageCache::of_process().get(self.key(batch_number, number), || {
            let stored = self.bytes(place)?;
            self.decompressed.fetch_add(1, Ordering::Relaxed);
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
            return Err(self.error(Flaw::new(place.offset, RowsDefect::Truncated { what })));
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
            self.error(Flaw::new(place.offset, RowsDefect::Value { what, value, expected }))
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

    /// The arrays from a column to a leaf in record batch `group`, none of which is in a dictionary;
    /// otherwise none.
    pub(crate) fn arrays(&self, leaf: usize, group: usize) -> Option<Vec<Array<'_>>> {
        let mut path = self.path(leaf).iter();
        let mut arrays = vec![self.column(group, *path.next()?)?];
        for &child in path {
            arrays.push(arrays.last()?.child(child)?);
        }
        (!arrays.iter().any(Array::is_indexed)).then_some(arrays)
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

/// The nodes and buffers of the values of a dictionary; `None` if no field has it.
pub(crate) fn values_of(fields: &[Field], id: i64) -> Option<Cursor> {
    fields.iter().find_map(|field| {
        let is_this = field.dictionary.is_some_and(|dictionary| dictionary.id == id);
        if is_this { Some(field.values()) } else { values_of(&field.children, id) }
    })
}
