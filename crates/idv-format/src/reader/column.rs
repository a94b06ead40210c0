//! Reading the values of one column.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::ops::Range;

use crate::codec::Codec;
use crate::error::FormatError;
use crate::read_error::ReadError;
use crate::reader::{IdvFile, Limits, Scratch, read_exact_at};
use crate::source::ReadAt;
use crate::toc::{Block, ColumnEntry, Compression, parse_lookup_table};
use crate::values::Values;

/// A column whose blocks are known, to be read from any number of threads.
#[derive(Debug)]
pub struct Column<'f, R> {
    file: &'f IdvFile<R>,
    entry: &'f ColumnEntry,
    codec: &'f Codec,
    compression: Compression,
    blocks: Cow<'f, [Block]>,
}

impl<'f, R: ReadAt> Column<'f, R> {
    pub(super) fn new(file: &'f IdvFile<R>, entry: &'f ColumnEntry) -> Result<Self, ReadError> {
        let column = Self::of_blocks(file, entry, &[])?;
        let table = entry.lookup_range(file.row_count());
        let len = usize::try_from(table.end - table.start);
        // The table was seen to lie in the file when that was opened.
        let what = "bytes of a lookup table";
        let need = table.end - table.start;
        let limit = usize::MAX as u64;
        let len = len.map_err(|_| FormatError::Limit { what, need, limit })?;
        let mut buffer = Vec::new();
        let bytes = match file.source.slice(table.start, len) {
            _ if len == 0 => &[],
            Some(bytes) => bytes,
            None => {
                buffer.resize(len, 0);
                read_exact_at(&file.source, table.start, &mut buffer)?;
                &buffer[..]
            }
        };
        let blocks = parse_lookup_table(bytes, table.start, &file.header)?;
        Ok(Self { blocks: blocks.into(), ..column })
    }

    pub(super) fn of_blocks(
        file: &'f IdvFile<R>,
        entry: &'f ColumnEntry,
        blocks: &'f [Block],
    ) -> Result<Self, ReadError> {
        let dead = |dead| ReadError::Dead { name: entry.name.clone(), dead };
        let (codec, compression) = entry.storage.known().map_err(dead)?;
        Ok(Self { file, entry, codec, compression, blocks: blocks.into() })
    }

    /// The entry of the table of contents for the column.
    pub fn entry(&self) -> &'f ColumnEntry {
        self.entry
    }

    /// The compression of its blocks.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The storage of its values.
    pub fn codec(&self) -> &'f Codec {
        self.codec
    }

    /// How many rows it has.
    pub fn row_count(&self) -> u64 {
        self.file.row_count()
    }

    /// The places of its blocks.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The rows of a block; empty when the column has no such block.
    pub fn block_rows(&self, block: u64) -> Range<u64> {
        self.entry.block_rows(block, self.row_count())
    }

    /// The values of one block. They borrow from the source or from `scratch` where that is
    /// possible.
    ///
    /// # Errors
    /// [`ReadError::NoBlock`], [`ReadError::Block`], [`ReadError::Io`].
    pub fn read_block<'s>(
        &'s self,
        block: u64,
        scratch: &'s mut Scratch,
    ) -> Result<Values<'s>, ReadError> {
        let place = self.block(block)?;
        let rows = self.block_rows(block);
        let error = |source| self.block_error(block, source);
        let rows = self.check_rows(place, rows.end - rows.start).map_err(error)?;
        let source = &self.file.source;
        let limits = self.file.limits;
        let bytes = scratch.read_block(source, place, self.compression, limits)?.map_err(error)?;
        self.codec.decode(rows, bytes).map_err(error)
    }

    /// The values of `rows`. Only the blocks that have some of them are read.
    ///
    /// They are copied into one new array. To look at each value once, read block by block,
    /// with [`read_block`](Self::read_block), which lends numbers in place, or on several threads
    /// with [`scan`](Self::scan): that is up to the speed of memory, and this a fraction of it.
    ///
    /// # Errors
    /// [`ReadError::NoRows`]; [`ReadError::Values`] when texts are too long for one array;
    /// [`ReadError::Block`], also when the blocks are over the [limit](Limits::read_bytes)
    /// together; [`ReadError::Io`].
    pub fn read(&self, rows: Range<u64>) -> Result<Values<'static>, ReadError> {
        let count = self.row_count();
        if rows.start > rows.end || rows.end > count {
            return Err(ReadError::NoRows { start: rows.start, end: rows.end, count });
        }
        let mut values = self.codec.empty_values();
        if rows.is_empty() {
            return Ok(values);
        }
        self.check_total(&rows)?;
        values.reserve(usize::try_from(rows.end - rows.start).unwrap_or(0));
        let per_block = self.entry.rows_per_block.max(1);
        let mut scratch = Scratch::new();
        let mut start = rows.start;
        while start < rows.end {
            let block = start / per_block;
            let block_rows = self.block_rows(block);
            let end = rows.end.min(block_rows.end);
            let found = self.read_block(block, &mut scratch)?;
            // Rows of a block that was decoded are in memory, so they fit into `usize`.
            let within = |row: u64| usize::try_from(row - block_rows.start).unwrap_or(usize::MAX);
            let found = found.slice(within(start)..within(end));
            let column = || self.entry.name.clone();
            values
                .append(&found)
                .map_err(|source| ReadError::Values { column: column(), source })?;
            start = end;
        }
        Ok(values)
    }

    /// Checks the memory of some rows' blocks before it is allocated. Blocks that have the size
    /// that their rows need are as large as the result, or an eighth of it.
    fn check_total(&self, rows: &Range<u64>) -> Result<(), ReadError> {
        let per_block = self.entry.rows_per_block.max(1);
        let mut total = 0u64;
        for block in rows.start / per_block..rows.end.div_ceil(per_block) {
            let place = self.block(block)?;
            let block_rows = self.block_rows(block);
            let checked = self.check_rows(place, block_rows.end - block_rows.start);
            total = total.saturating_add(place.bytes.into());
            let limit = self.file.limits.read_bytes;
            checked
                .and_then(|_| Limits::check("bytes of the blocks to read", total, limit))
                .map_err(|source| self.block_error(block, source))?;
        }
        Ok(())
    }

    fn block(&self, block: u64) -> Result<&Block, ReadError> {
        let found = usize::try_from(block).ok().and_then(|block| self.blocks.get(block));
        found.ok_or_else(|| ReadError::NoBlock {
            column: self.entry.name.clone(),
            block,
            count: self.blocks.len() as u64,
        })
    }

    /// The number of rows, if a block of that size can have as many.
    fn check_rows(&self, block: &Block, rows: u64) -> Result<usize, FormatError> {
        let found = u64::from(block.bytes);
        match self.codec.block_bytes(rows) {
            Some(expected) if expected != found => {
                return Err(FormatError::BlockSize { found, expected });
            }
            _ => {}
        }
        let what = "rows of a block";
        let limit = usize::MAX as u64;
        usize::try_from(rows).map_err(|_| FormatError::Limit { what, need: rows, limit })
    }

    fn block_error(&self, block: u64, source: FormatError) -> ReadError {
        let found = usize::try_from(block).ok().and_then(|block| self.blocks.get(block));
        let offset = found.map_or(0, |block| block.offset);
        ReadError::Block { column: self.entry.name.clone(), block, offset, source }
    }
}
