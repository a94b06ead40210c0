//! Writing a file: rows come in, blocks go out, and what says where they are comes last.

use alloc::string::String;
use alloc::vec::Vec;
use core::num::{NonZeroU32, NonZeroUsize};
use std::io::{Seek, SeekFrom, Write};

use crate::codec::{Codec, CodecDefinition, write_leb128};
use crate::header::Header;
use crate::toc::{Block, ColumnEntry, Compression, MetadataEntry, Storage};
use crate::values::Values;
use crate::values::ValuesError;
use crate::write_error::WriteError;

mod blocks;
mod check;
mod rows;

use blocks::{Encoders, Job};

/// The options of writing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Rows of every block but the last. `None` follows ML.NET: 8192, or fewer so that the blocks
    /// of all columns together stay within 80 MiB.
    pub rows_per_block: Option<NonZeroU32>,
    /// Threads that encode and compress blocks. The bytes of the file do not depend on them.
    pub threads: NonZeroUsize,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { rows_per_block: None, threads: NonZeroUsize::MIN }
    }
}

/// A column to be written.
#[derive(Clone, Debug)]
pub struct NewColumn {
    /// Its name. Of several columns of one name ML.NET sees the last.
    pub name: String,
    /// The codec of its values. The older codecs are written by the names of today, so that
    /// [`Key::min`](crate::Key::min) is lost.
    pub codec: Codec,
    /// [`Compression::None`] or [`Compression::Deflate`].
    pub compression: Compression,
    /// The metadata of the column.
    pub metadata: Vec<NewMetadata>,
}

impl NewColumn {
    /// A column with DEFLATE, as ML.NET writes it, and without metadata.
    pub fn new(name: impl Into<String>, codec: Codec) -> Self {
        let compression = Compression::Deflate;
        let metadata = Vec::new();
        Self { name: name.into(), codec, compression, metadata }
    }
}

/// A piece of metadata to be written.
#[derive(Clone, Debug)]
pub struct NewMetadata {
    /// The kind, such as `SlotNames`.
    pub kind: String,
    /// The codec of its value.
    pub codec: Codec,
    /// Its value: one, which may be a vector.
    pub value: Values<'static>,
}

/// The summary of a written file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Rows of every column.
    pub rows: u64,
    /// Rows of every block but the last.
    pub rows_per_block: u64,
    /// Blocks of all columns.
    pub blocks: u64,
    /// Size of the file.
    pub bytes: u64,
}

/// Writes a file of version 1.1.1.6, block by block.
///
/// Memory holds the rows of a block, and what says where the blocks are: 16 bytes each. The header
/// is written last: a file that was not finished starts with zeros, and no reader takes it for one.
/// For a file that appears complete or not at all, write to a temporary one and rename it;
/// `tbl_io::AtomicFile` does that.
///
/// ```
/// use idv_format::{Codec, IdvFile, NewColumn, Number, Values, WriteOptions, Writer};
/// use std::io::Cursor;
///
/// let columns = vec![NewColumn::new("x", Codec::number(Number::Single))];
/// let mut writer = Writer::new(Cursor::new(Vec::new()), columns, WriteOptions::default())?;
/// writer.write(&[Values::Single(vec![1.0, 2.5].into())])?;
/// let (file, summary) = writer.finish()?;
/// assert_eq!((summary.rows, summary.blocks), (2, 1));
///
/// let file = IdvFile::open(file.into_inner())?;
/// let Values::Single(values) = file.column(0)?.read(0..2)? else { return Ok(()) };
/// assert_eq!(*values, [1.0, 2.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    sink: W,
    /// The offset of the file in the destination.
    start: u64,
    /// How many bytes of the file are written.
    position: u64,
    columns: Vec<Column>,
    encoders: Encoders,
    /// `None` until there are rows enough to decide.
    rows_per_block: Option<usize>,
    row_count: u64,
    failed: bool,
}

/// A column, the rows of it that do not fill a block yet, and where its blocks are.
#[derive(Debug)]
struct Column {
    new: NewColumn,
    pending: Values<'static>,
    blocks: Vec<Block>,
}

impl<W: Write + Seek> Writer<W> {
    /// Starts a file where `sink` stands.
    ///
    /// # Errors
    /// [`WriteError::Codec`], [`WriteError::Compression`] or [`WriteError::Metadata`] for a column
    /// that cannot be written; [`WriteError::Io`].
    pub fn new(
        mut sink: W,
        columns: Vec<NewColumn>,
        options: WriteOptions,
    ) -> Result<Self, WriteError> {
        columns.iter().try_for_each(check::column)?;
        let io_error = |source| WriteError::Io { offset: 0, source };
        let start = sink.stream_position().map_err(io_error)?;
        sink.write_all(&[0; Header::SIZE]).map_err(io_error)?;
        let column = |new: NewColumn| {
            let pending = new.codec.empty_values();
            Column { new, pending, blocks: Vec::new() }
        };
        let rows = options.rows_per_block;
        Ok(Self {
            sink,
            start,
            position: Header::SIZE as u64,
            columns: columns.into_iter().map(column).collect(),
            encoders: Encoders::new(options.threads),
            rows_per_block: rows.map(|rows| usize::try_from(rows.get()).unwrap_or(usize::MAX)),
            row_count: 0,
            failed: false,
        })
    }

    /// Adds rows: the values of every column, as many of each.
    ///
    /// # Errors
    /// [`WriteError::Columns`] or [`WriteError::Rows`], which leave the file as it was;
    /// [`WriteError::Values`] or [`WriteError::Io`], after which it cannot be finished.
    pub fn write(&mut self, rows: &[Values<'_>]) -> Result<(), WriteError> {
        let count = check::rows(&self.columns, rows)?;
        self.or_fail(|writer| writer.take(rows, count))
    }

    /// Writes the rows that are left, all tables and the header, and hands back the destination.
    ///
    /// # Errors
    /// [`WriteError::Failed`] after an earlier error, [`WriteError::Values`], [`WriteError::Io`].
    pub fn finish(mut self) -> Result<(W, WriteSummary), WriteError> {
        let summary = self.or_fail(Self::write_rest)?;
        Ok((self.sink, summary))
    }

    /// Remembers when something goes wrong in between.
    fn or_fail<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        if self.failed {
            return Err(WriteError::Failed);
        }
        self.failed = true;
        let result = work(self)?;
        self.failed = false;
        Ok(result)
    }

    /// A column whose metadata and number of keys are still open: they are written at the end.
    #[cfg(feature = "arrow")]
    pub(crate) fn column_mut(&mut self, index: usize) -> Option<&mut NewColumn> {
        self.columns.get_mut(index).map(|column| &mut column.new)
    }

    fn pending_rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.pending.len())
    }

    fn take(&mut self, rows: &[Values<'_>], count: usize) -> Result<(), WriteError> {
        let mut taken = 0;
        while taken < count {
            let rest: Vec<Values<'_>> =
                rows.iter().map(|values| values.slice(taken..count)).collect();
            taken += match self.rows_per_block {
                None => self.decide(&rest, count - taken)?,
                Some(per_block) if self.pending_rows() > 0 || count - taken < per_block => {
                    let missing = per_block - self.pending_rows();
                    self.keep(&rest, missing.min(count - taken), per_block)?
                }
                Some(per_block) => {
                    let whole = (count - taken) / per_block * per_block;
                    self.write_blocks(&rest, whole, per_block)?;
                    whole
                }
            };
        }
        self.row_count += count as u64;
        Ok(())
    }

    /// Keeps rows until it is known how many make a block. Returns how many it took.
    fn decide(&mut self, rows: &[Values<'_>], count: usize) -> Result<usize, WriteError> {
        let pending: Vec<&Values<'_>> = self.columns.iter().map(|column| &column.pending).collect();
        match rows::fitting(&pending, rows, count) {
            rows::Fit::More => {
                self.append(rows, count)?;
                Ok(count)
            }
            rows::Fit::Block { added } => {
                let per_block = self.pending_rows() + added;
                self.rows_per_block = Some(per_block);
                self.keep(rows, added, per_block)
            }
        }
    }

    /// Keeps the first `count` rows, and writes the block if they fill it.
    fn keep(
        &mut self,
        rows: &[Values<'_>],
        count: usize,
        per_block: usize,
    ) -> Result<usize, WriteError> {
        self.append(rows, count)?;
        if self.pending_rows() == per_block {
            self.write_pending(per_block)?;
        }
        Ok(count)
    }

    fn append(&mut self, rows: &[Values<'_>], count: usize) -> Result<(), WriteError> {
        for (column, values) in self.columns.iter_mut().zip(rows) {
            let appended = column.pending.append(&values.slice(0..count));
            appended.map_err(|source| column.values_error(source))?;
        }
        Ok(())
    }

    fn write_pending(&mut self, per_block: usize) -> Result<(), WriteError> {
        let rows = self.pending_rows();
        let empty = |column: &mut Column| {
            core::mem::replace(&mut column.pending, column.new.codec.empty_values())
        };
        let pending: Vec<Values<'_>> = self.columns.iter_mut().map(empty).collect();
        self.write_blocks(&pending, rows, per_block)
    }

    /// Writes the first `count` rows, block by block, and in each block column by column.
    fn write_blocks(
        &mut self,
        rows: &[Values<'_>],
        count: usize,
        per_block: usize,
    ) -> Result<(), WriteError> {
        let starts: Vec<usize> = (0..count).step_by(per_block).collect();
        let at_once = self.encoders.jobs_at_once().div_ceil(rows.len().max(1));
        for starts in starts.chunks(at_once.max(1)) {
            let job = |start: usize, (number, values)| {
                let column: &Column = self.columns.get(number)?;
                let values: &Values<'_> = values;
                let values = values.slice(start..count.min(start + per_block));
                let codec = &column.new.codec;
                let compression = column.new.compression;
                Some(Job { column: number, codec, compression, values })
            };
            let jobs: Vec<Job<'_>> = starts
                .iter()
                .flat_map(|&start| rows.iter().enumerate().filter_map(move |row| job(start, row)))
                .collect();
            let encoded = self.encoders.encode(&jobs)?;
            drop(jobs);
            for (number, encoded) in encoded {
                let Some(column) = self.columns.get_mut(number) else { continue };
                let encoded = encoded.map_err(|source| column.values_error(source))?;
                let stored_bytes = encoded.stored_bytes();
                let bytes = encoded.bytes();
                column.blocks.push(Block { offset: self.position, stored_bytes, bytes });
                self.write_bytes(encoded.stored())?;
                self.encoders.recycle(encoded);
            }
        }
        Ok(())
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        let io_error = |source| WriteError::Io { offset: self.position, source };
        self.sink.write_all(bytes).map_err(io_error)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn write_rest(&mut self) -> Result<WriteSummary, WriteError> {
        // Fewer rows than a block: the block is as small as they are, as in ML.NET.
        let pending = self.pending_rows();
        let per_block = self.rows_per_block.unwrap_or(pending).max(1);
        if pending > 0 {
            self.write_pending(per_block)?;
        }
        let rows_per_block = per_block as u64;
        let mut toc = Vec::new();
        for entry in self.write_tables(rows_per_block)? {
            entry.write(&mut toc);
        }
        let toc_offset = self.position;
        self.write_bytes(&toc)?;
        let header = Header {
            toc_offset,
            tail_offset: self.position,
            row_count: self.row_count,
            column_count: u32::try_from(self.columns.len()).unwrap_or(u32::MAX),
            ..Header::default()
        };
        self.write_bytes(&Header::TAIL)?;
        let io_error = |source| WriteError::Io { offset: 0, source };
        self.sink.seek(SeekFrom::Start(self.start)).map_err(io_error)?;
        self.sink.write_all(&header.to_bytes()).map_err(io_error)?;
        self.sink.seek(SeekFrom::Start(self.start + self.position)).map_err(io_error)?;
        self.sink.flush().map_err(io_error)?;
        let blocks = self.columns.iter().map(|column| column.blocks.len() as u64).sum();
        Ok(WriteSummary { rows: self.row_count, rows_per_block, blocks, bytes: self.position })
    }

    /// Lookup tables of all columns, then metadata of all columns.
    fn write_tables(&mut self, rows_per_block: u64) -> Result<Vec<ColumnEntry>, WriteError> {
        let columns = core::mem::take(&mut self.columns);
        let mut lookup_offsets = Vec::with_capacity(columns.len());
        for column in &columns {
            lookup_offsets.push(self.position);
            let mut table = Vec::with_capacity(column.blocks.len() * Block::ENTRY_SIZE);
            column.blocks.iter().for_each(|block| block.write(&mut table));
            self.write_bytes(&table)?;
        }
        let mut entries = Vec::with_capacity(columns.len());
        for (column, lookup_offset) in columns.iter().zip(lookup_offsets) {
            let metadata_offset = self.write_metadata(&column.new)?;
            let codec = CodecDefinition::new(column.new.codec.clone());
            let storage = Storage { codec, compression: Ok(column.new.compression) };
            let name = column.new.name.clone();
            entries.push(ColumnEntry {
                name,
                storage,
                rows_per_block,
                lookup_offset,
                metadata_offset,
            });
        }
        self.columns = columns;
        Ok(entries)
    }

    /// The blocks of a column's metadata and the table of them; where that is, if there are any.
    fn write_metadata(&mut self, column: &NewColumn) -> Result<Option<u64>, WriteError> {
        if column.metadata.is_empty() {
            return Ok(None);
        }
        let mut table = Vec::new();
        write_leb128(&mut table, column.metadata.len() as u64);
        for metadata in &column.metadata {
            let encoded = self.encoders.encode_smaller(&metadata.codec, &metadata.value);
            let column = || column.name.clone();
            let encoded =
                encoded.map_err(|source| WriteError::Values { column: column(), source })?;
            let codec = CodecDefinition::new(metadata.codec.clone());
            let entry = MetadataEntry {
                kind: metadata.kind.clone(),
                storage: Storage { codec, compression: Ok(encoded.compression()) },
                offset: self.position,
                stored_bytes: encoded.stored_bytes().into(),
            };
            entry.write(&mut table);
            self.write_bytes(encoded.stored())?;
        }
        let offset = self.position;
        self.write_bytes(&table)?;
        Ok(Some(offset))
    }
}

impl Column {
    fn values_error(&self, source: ValuesError) -> WriteError {
        WriteError::Values { column: self.new.name.clone(), source }
    }
}
