//! The values of a field in a record batch.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value as Json;
use tbl_io::{ReadError, RowsDefect};

use crate::ipc::file::{ArrowFile, BatchNumber};
use crate::ipc::message::{Batch, Buffer};
use crate::ipc::schema::{Cursor, Field, Kind};
use crate::ipc::value::{MAX_DECIMAL, VIEW_BYTES, Validity, fixed_value, halves, span_of_view};
use crate::json::Budget;
use crate::rows::RowFile;
use crate::thrift::Flaw;
use crate::values::Value;

/// A field in a record batch or in a dictionary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array<'f> {
    pub(crate) file: &'f ArrowFile,
    pub(crate) number: BatchNumber,
    pub(crate) batch: &'f Batch,
    pub(crate) field: &'f Field,
    pub(crate) at: Cursor,
    /// True where the values of a dictionary are stored, and not their numbers.
    pub(crate) is_dictionary: bool,
}

/// The bytes of a buffer.
#[derive(Debug)]
pub(crate) struct Bytes<'f> {
    /// The place of the buffer in the file; of its bytes, if they are in the file as they are.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// The first byte that the content has.
    first: u64,
    content: Content<'f>,
}

#[derive(Debug)]
enum Content<'f> {
    Lent(&'f [u8]),
    /// Decompressed, or read as a whole.
    Kept(Arc<Vec<u8>>),
    /// In a file that is not in memory.
    InFile(&'f ArrowFile),
}

/// A value's place in the buffers of its field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The buffer, counted from the first of the field.
    pub(crate) buffer: usize,
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl<'f> Bytes<'f> {
    pub(crate) fn lent(place: Buffer, bytes: &'f [u8]) -> Self {
        Self { offset: place.offset, len: place.bytes, first: 0, content: Content::Lent(bytes) }
    }

    pub(crate) fn kept(offset: u64, bytes: Arc<Vec<u8>>) -> Self {
        Self { offset, len: bytes.len() as u64, first: 0, content: Content::Kept(bytes) }
    }

    pub(crate) fn in_file(place: Buffer, file: &'f ArrowFile) -> Self {
        Self { offset: place.offset, len: place.bytes, first: 0, content: Content::InFile(file) }
    }

    /// The buffer with this part in memory, for a caller that takes many parts of it.
    pub(crate) fn with_part(mut self, part: Range<u64>) -> Result<Self, ReadError> {
        let Content::InFile(file) = self.content else { return Ok(self) };
        let end = part.end.min(self.len);
        let start = part.start.min(end);
        let place = Buffer { offset: self.offset + start, bytes: end - start };
        self.content = Content::Kept(Arc::new(file.bytes(place)?.into_owned()));
        self.first = start;
        Ok(self)
    }

    /// A part; `None` if the buffer does not have it.
    pub(crate) fn get(&self, start: u64, len: u64) -> Result<Option<Cow<'_, [u8]>>, ReadError> {
        if start.checked_add(len).is_none_or(|end| end > self.len) {
            return Ok(None);
        }
        let bytes: &[u8] = match &self.content {
            Content::Lent(bytes) => bytes,
            Content::Kept(bytes) => bytes,
            Content::InFile(file) => {
                return file.bytes(Buffer { offset: self.offset + start, bytes: len }).map(Some);
            }
        };
        let part = || {
            let start = usize::try_from(start.checked_sub(self.first)?).ok()?;
            bytes.get(start..)?.get(..usize::try_from(len).ok()?)
        };
        Ok(part().map(Cow::Borrowed))
    }
}

impl<'f> Array<'f> {
    /// The error of this array: the record batch cannot be what its metadata says.
    pub(crate) fn damaged(&self, what: &'static str) -> ReadError {
        self.file.error(Flaw::new(self.batch.offset, RowsDefect::Damaged { what }))
    }

    pub(crate) fn len(&self) -> u64 {
        self.batch.len(self.at)
    }

    pub(crate) fn buffer(&self, number: usize) -> Result<Bytes<'f>, ReadError> {
        self.file.buffer(self.number, self.batch, self.batch.buffer_number(self.at, number))
    }

    /// A part of buffer `number`.
    pub(crate) fn part<R>(
        &self,
        number: usize,
        start: u64,
        len: u64,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, ReadError> {
        let buffer = self.buffer(number)?;
        let part = buffer.get(start, len)?;
        part.map(|part| read(&part)).ok_or_else(|| self.damaged("buffer of a record batch"))
    }

    /// `N` bytes of each row in buffer `number`.
    fn number<const N: usize>(&self, number: usize, row: u64) -> Result<[u8; N], ReadError> {
        let size = N as u64;
        self.part(number, row.saturating_mul(size), size, |bytes| {
            bytes.first_chunk().copied().unwrap_or([0; N])
        })
    }

    /// Whether the value of a row is there. A buffer without bytes stands for all of them.
    pub(crate) fn is_valid(&self, row: u64) -> Result<bool, ReadError> {
        if row >= self.len() {
            return Err(self.damaged("number of values of a column"));
        }
        if self.has_no_values() {
            return Ok(false);
        }
        let bits = self.buffer(0)?;
        if bits.len == 0 {
            return Ok(true);
        }
        let byte = bits.get(row / 8, 1)?;
        let byte = byte.and_then(|byte| byte.first().copied());
        let byte = byte.ok_or_else(|| self.damaged("bits of missing values"))?;
        Ok(byte >> (row % 8) & 1 == 1)
    }

    /// The bits of missing values of these rows; `None` if none is missing.
    pub(crate) fn validity(&self, rows: Range<u64>) -> Result<Option<Validity>, ReadError> {
        let damaged = || self.damaged("bits of missing values");
        if rows.end > self.len() {
            return Err(self.damaged("number of values of a column"));
        }
        if self.has_no_values() {
            return Ok(Some(Validity { bytes: Vec::new(), first: 0 }));
        }
        let bits = self.buffer(0)?;
        if bits.len == 0 || rows.is_empty() {
            return Ok(None);
        }
        let first = rows.start / 8;
        let bytes = bits.get(first, rows.end.div_ceil(8) - first)?;
        let bytes = bytes.ok_or_else(damaged)?.into_owned();
        Ok(Some(Validity { bytes, first: first * 8 }))
    }

    /// Whether the field has no buffers that are read.
    fn has_no_values(&self) -> bool {
        !self.is_indexed() && matches!(self.field.kind, Kind::Null | Kind::Other { .. })
    }

    /// Whether the values are numbers of a dictionary.
    pub(crate) fn is_indexed(&self) -> bool {
        self.field.dictionary.is_some() && !self.is_dictionary
    }

    /// The array and the row that has the value: those of the dictionary, if there is one. `None` for
    /// null.
    pub(crate) fn resolve(self, row: u64) -> Result<Option<(Self, u64)>, ReadError> {
        if !self.is_valid(row)? {
            return Ok(None);
        }
        let Some(dictionary) = self.field.dictionary.filter(|_| !self.is_dictionary) else {
            return Ok(Some((self, row)));
        };
        let index = match dictionary.index_bytes {
            1 => u64::from(u8::from_le_bytes(self.number(1, row)?)),
            2 => u16::from_le_bytes(self.number(1, row)?).into(),
            4 => u32::from_le_bytes(self.number(1, row)?).into(),
            _ => u64::from_le_bytes(self.number(1, row)?),
        };
        let mut left = index;
        for (number, batch) in self.file.dictionary(dictionary.id, self.number) {
            let at = Cursor::default();
            let values = Self { number, batch, at, is_dictionary: true, ..self };
            if left < values.len() {
                return Ok(values.is_valid(left)?.then_some((values, left)));
            }
            left -= values.len();
        }
        Err(self.damaged("number of a value in a dictionary"))
    }

    /// The array of child `number`.
    pub(crate) fn child(self, number: usize) -> Option<Self> {
        let field = self.field.children.get(number)?;
        Some(Self { field, at: self.at.plus(field.start), is_dictionary: false, ..self })
    }

    /// The place of the value of a row of bytes, which is there.
    pub(crate) fn span(&self, row: u64) -> Result<Span, ReadError> {
        if let Kind::Bytes { offset_bytes, .. } = self.field.kind {
            let range = self.range(1, offset_bytes, row)?;
            return Ok(Span { buffer: 2, start: range.start, len: range.end - range.start });
        }
        if let Kind::View { .. } = self.field.kind {
            let view: [u8; VIEW_BYTES] = self.number(1, row)?;
            let span = span_of_view(&view, row, self.batch.view_buffers(self.at));
            return span.ok_or_else(|| self.damaged("view of a value"));
        }
        Err(self.damaged("type of a column"))
    }

    /// The places of the values of these rows of a column of bytes, those that are missing included.
    pub(crate) fn spans(&self, rows: Range<u64>) -> Result<Vec<Span>, ReadError> {
        let damaged = || self.damaged("offsets of a column");
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let start = rows.start;
        let count = rows.end - start;
        let Kind::Bytes { offset_bytes, .. } = self.field.kind else {
            let buffers = self.batch.view_buffers(self.at);
            let size = VIEW_BYTES as u64;
            let first = start.saturating_mul(size);
            let spans = self.part(1, first, count.saturating_mul(size), |bytes| {
                let (views, _) = bytes.as_chunks();
                let span = |(row, view)| span_of_view(view, row, buffers);
                (start..).zip(views).map(span).collect::<Option<_>>()
            })?;
            return spans.ok_or_else(damaged);
        };
        let size = u64::from(offset_bytes);
        let first = start.saturating_mul(size);
        let offsets = self.part(1, first, (count + 1).saturating_mul(size), |bytes| {
            if offset_bytes == 4 {
                let (offsets, _) = bytes.as_chunks();
                let offset = |bytes: &[u8; 4]| i64::from(i32::from_le_bytes(*bytes));
                offsets.iter().map(offset).collect()
            } else {
                let (offsets, _) = bytes.as_chunks();
                let offset = |bytes: &[u8; 8]| i64::from_le_bytes(*bytes);
                offsets.iter().map(offset).collect::<Vec<_>>()
            }
        })?;
        let span = |pair: &[i64]| {
            let &[start, end] = pair else { return None };
            let start = u64::try_from(start).ok()?;
            Some(Span { buffer: 2, start, len: u64::try_from(end).ok()?.checked_sub(start)? })
        };
        offsets.windows(2).map(span).collect::<Option<_>>().ok_or_else(damaged)
    }

    /// The offsets of a row and of the one after it, in buffer `number`.
    fn range(&self, number: usize, offset_bytes: u8, row: u64) -> Result<Range<u64>, ReadError> {
        let (start, end) = match offset_bytes {
            4 => {
                let pair: [u8; 8] = self.pair(number, row, 4)?;
                let [start, end] = halves(pair).map(i32::from_le_bytes).map(i64::from);
                (start, end)
            }
            _ => {
                let pair: [u8; 16] = self.pair(number, row, 8)?;
                let [start, end] = halves(pair).map(i64::from_le_bytes);
                (start, end)
            }
        };
        let offset = |offset| u64::try_from(offset).ok();
        let range = offset(start).zip(offset(end)).filter(|(start, end)| start <= end);
        let range = range.map(|(start, end)| start..end);
        range.ok_or_else(|| self.damaged("offsets of a column"))
    }

    /// `N` bytes from the `size` bytes of a row on.
    fn pair<const N: usize>(
        &self,
        number: usize,
        row: u64,
        size: u64,
    ) -> Result<[u8; N], ReadError> {
        self.part(number, row.saturating_mul(size), N as u64, |bytes| {
            bytes.first_chunk().copied().unwrap_or([0; N])
        })
    }

    /// Calls `read` with the value of a row; with `None` for null.
    pub(crate) fn value(
        self,
        row: u64,
        read: &mut dyn FnMut(Option<Value<'_>>),
    ) -> Result<(), ReadError> {
        let Some((array, row)) = self.resolve(row)? else {
            read(None);
            return Ok(());
        };
        array.stored(row, read)
    }

    /// Calls `read` with the value of a row, which is there and in no dictionary.
    fn stored(self, row: u64, read: &mut dyn FnMut(Option<Value<'_>>)) -> Result<(), ReadError> {
        let kind = self.field.kind;
        if let Some(size) = kind.width() {
            self.file.check_size("bytes of a value", size)?;
            return self.part(1, row.saturating_mul(size), size, |bytes| {
                read(Some(fixed_value(kind, bytes, &mut [0; MAX_DECIMAL])));
            });
        }
        match kind {
            Kind::Boolean => {
                let byte: [u8; 1] = self.number(1, row / 8)?;
                read(Some(Value::Boolean(byte[0] >> (row % 8) & 1 == 1)));
            }
            Kind::Bytes { .. } | Kind::View { .. } => {
                let Span { buffer, start, len } = self.span(row)?;
                self.file.check_size("bytes of a value", len)?;
                return self.part(buffer, start, len, |bytes| read(Some(Value::Bytes(bytes))));
            }
            Kind::Null
            | Kind::Integer { .. }
            | Kind::Float { .. }
            | Kind::Decimal { .. }
            | Kind::Fixed { .. }
            | Kind::List { .. }
            | Kind::ListView { .. }
            | Kind::FixedList { .. }
            | Kind::Struct
            | Kind::Other { .. } => read(None),
        }
        Ok(())
    }

    /// The value of a row as JSON.
    pub(crate) fn json(self, row: u64, budget: &Budget<'_>) -> Result<Json, ReadError> {
        let Some((array, row)) = self.resolve(row)? else { return Ok(Json::Null) };
        match array.field.kind {
            Kind::Struct => {
                budget.object()?;
                let mut object = serde_json::Map::new();
                for number in 0..array.field.children.len() {
                    let Some(child) = array.child(number) else { continue };
                    budget.member(&child.field.name)?;
                    object.insert(child.field.name.clone(), child.json(row, budget)?);
                }
                Ok(Json::Object(object))
            }
            Kind::List { .. } | Kind::ListView { .. } | Kind::FixedList { .. } => {
                let range = array.elements(row)?;
                let Some(child) = array.child(0) else { return Ok(Json::Null) };
                let mut elements = Vec::new();
                for element in range {
                    budget.element()?;
                    elements.push(child.json(element, budget)?);
                }
                Ok(Json::Array(elements))
            }
            kind @ (Kind::Null
            | Kind::Boolean
            | Kind::Integer { .. }
            | Kind::Float { .. }
            | Kind::Decimal { .. }
            | Kind::Bytes { .. }
            | Kind::View { .. }
            | Kind::Fixed { .. }
            | Kind::Other { .. }) => {
                let leaf = kind.leaf();
                let mut found = Ok(Json::Null);
                array.stored(row, &mut |value| {
                    found = value.map_or(Ok(Json::Null), |value| budget.value(&leaf, value));
                })?;
                found
            }
        }
    }

    /// The elements of a row of a list, which is there.
    pub(crate) fn elements(&self, row: u64) -> Result<Range<u64>, ReadError> {
        let damaged = || self.damaged("offsets of a list");
        if let Kind::List { offset_bytes } = self.field.kind {
            return self.range(1, offset_bytes, row);
        }
        if let Kind::FixedList { len } = self.field.kind {
            let len = u64::from(len);
            let start = row.checked_mul(len).ok_or_else(damaged)?;
            return Ok(start..start.checked_add(len).ok_or_else(damaged)?);
        }
        let [start, len] = match self.field.kind == (Kind::ListView { offset_bytes: 4 }) {
            true => [
                i32::from_le_bytes(self.number(1, row)?).into(),
                i32::from_le_bytes(self.number(2, row)?).into(),
            ],
            false => {
                [i64::from_le_bytes(self.number(1, row)?), i64::from_le_bytes(self.number(2, row)?)]
            }
        };
        let range = u64::try_from(start).ok().zip(u64::try_from(len).ok());
        let range = range.and_then(|(start, len)| Some(start..start.checked_add(len)?));
        range.ok_or_else(damaged)
    }
}
