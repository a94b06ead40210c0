//! Reading a file: its contents when it is opened, its values when they are asked for.

use alloc::vec::Vec;
use core::ops::Range;

use crate::error::FormatError;
use crate::header::Header;
use crate::read_error::ReadError;
use crate::source::ReadAt;
use crate::toc::{Block, ColumnEntry, MetadataEntry, parse_metadata_toc, parse_toc};
use crate::values::Values;

mod column;
mod scan;
mod scratch;

pub use column::Column;
pub use scratch::Scratch;

/// The limits of a reader's allocations, against files that claim absurd sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest block, uncompressed. 1 GiB: ML.NET keeps the blocks of all columns below
    /// 80 MiB together.
    pub block_bytes: u64,
    /// The blocks of one [`Column::read`] together, uncompressed. 16 GiB.
    pub read_bytes: u64,
    /// The table of contents, and each column's table of metadata. 256 MiB: over a million
    /// columns.
    pub toc_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { block_bytes: 1 << 30, read_bytes: 16 << 30, toc_bytes: 256 << 20 }
    }
}

impl Limits {
    fn check(what: &'static str, need: u64, limit: u64) -> Result<(), FormatError> {
        if need <= limit { Ok(()) } else { Err(FormatError::Limit { what, need, limit }) }
    }
}

/// An open file: what columns it has, and where.
///
/// Opening reads the header, the signature at the end and the table of contents. Lookup tables,
/// metadata and blocks are read when they are asked for, so that a damaged one affects nothing
/// else.
#[derive(Debug)]
pub struct IdvFile<R> {
    source: R,
    header: Header,
    columns: Vec<ColumnEntry>,
    limits: Limits,
}

impl<R: ReadAt> IdvFile<R> {
    /// Opens a file with the default limits.
    ///
    /// # Errors
    /// [`ReadError::Format`] when header or table of contents break the format,
    /// [`ReadError::Io`].
    pub fn open(source: R) -> Result<Self, ReadError> {
        Self::open_with(source, Limits::default())
    }

    /// Opens a file.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with(source: R, limits: Limits) -> Result<Self, ReadError> {
        let bytes = Header::SIZE as u64;
        let size = source.size().map_err(|source| ReadError::Io { offset: 0, bytes, source })?;
        let mut front = [0; Header::SIZE];
        let present = usize::try_from(size.min(bytes)).unwrap_or(Header::SIZE);
        let front = front.get_mut(..present).unwrap_or_default();
        read_exact_at(&source, 0, front)?;
        let header = Header::parse(front)?;
        if header.end() > size {
            return Err(ReadError::Format(FormatError::Truncated {
                what: "tail signature",
                offset: header.tail_offset,
                need: Header::TAIL.len() as u64,
                have: size.saturating_sub(header.tail_offset),
            }));
        }
        let mut tail = Header::TAIL;
        read_exact_at(&source, header.tail_offset, &mut tail)?;
        header.check_tail(tail)?;
        let columns = if header.column_count == 0 {
            Vec::new()
        } else {
            let range = header.toc_offset..header.tail_offset;
            parse_growing(&source, range, limits, |bytes| parse_toc(bytes, &header))?
        };
        Ok(Self { source, header, columns, limits })
    }

    /// The header of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Rows of every column.
    pub fn row_count(&self) -> u64 {
        self.header.row_count
    }

    /// All columns, those too that cannot be read.
    pub fn columns(&self) -> &[ColumnEntry] {
        &self.columns
    }

    /// The number of the column called `name`: of the last one, as in ML.NET, if there are several.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().rposition(|column| column.name == name)
    }

    /// The column of number `index`, ready to be read.
    ///
    /// # Errors
    /// [`ReadError::NoColumn`], [`ReadError::Dead`]; [`ReadError::Format`] when its lookup table
    /// breaks the format; [`ReadError::Io`].
    pub fn column(&self, index: usize) -> Result<Column<'_, R>, ReadError> {
        Column::new(self, self.entry(index)?)
    }

    /// The same for callers that asked for its [blocks](Column::blocks) before and kept them, which
    /// saves reading the lookup table again.
    ///
    /// # Errors
    /// [`ReadError::NoColumn`], [`ReadError::Dead`].
    pub fn column_of_blocks<'f>(
        &'f self,
        index: usize,
        blocks: &'f [Block],
    ) -> Result<Column<'f, R>, ReadError> {
        Column::of_blocks(self, self.entry(index)?, blocks)
    }

    /// The metadata of a column.
    ///
    /// # Errors
    /// [`ReadError::NoColumn`], [`ReadError::Format`], [`ReadError::Io`].
    pub fn metadata(&self, index: usize) -> Result<Vec<MetadataEntry>, ReadError> {
        let Some(start) = self.entry(index)?.metadata_offset else { return Ok(Vec::new()) };
        let range = start..self.header.tail_offset;
        parse_growing(&self.source, range, self.limits, |bytes| {
            parse_metadata_toc(bytes, start, &self.header)
        })
    }

    /// The value of a piece of metadata: always one, which may be a vector.
    ///
    /// # Errors
    /// [`ReadError::Dead`], [`ReadError::Metadata`], [`ReadError::Io`].
    pub fn metadata_value(&self, entry: &MetadataEntry) -> Result<Values<'static>, ReadError> {
        let name = || entry.kind.clone();
        let (codec, compression) =
            entry.storage.known().map_err(|dead| ReadError::Dead { name: name(), dead })?;
        let mut scratch = Scratch::new();
        let read = scratch.inflate_metadata(&self.source, entry, compression, self.limits)?;
        let decoded = read.and_then(|bytes| codec.decode(1, bytes).map(Values::into_owned));
        let offset = entry.offset;
        decoded.map_err(|source| ReadError::Metadata { kind: name(), offset, source })
    }

    fn entry(&self, index: usize) -> Result<&ColumnEntry, ReadError> {
        let count = self.columns.len();
        self.columns.get(index).ok_or(ReadError::NoColumn { index, count })
    }
}

fn read_exact_at<R: ReadAt>(source: &R, offset: u64, bytes: &mut [u8]) -> Result<(), ReadError> {
    let len = bytes.len() as u64;
    let io_error = |source| ReadError::Io { offset, bytes: len, source };
    source.read_exact_at(offset, bytes).map_err(io_error)
}

/// How much of a table of unknown size is read at first: a thousand columns have less.
const FIRST_BYTES: u64 = 64 << 10;

/// Parses something of unknown size that starts where `range` does and ends within it. Reads more
/// while `parse` finds it truncated.
fn parse_growing<R: ReadAt, T>(
    source: &R,
    range: Range<u64>,
    limits: Limits,
    parse: impl Fn(&[u8]) -> Result<T, FormatError>,
) -> Result<T, ReadError> {
    let Range { start, end } = range;
    let most = end.saturating_sub(start);
    let mut len = most.min(FIRST_BYTES);
    let mut buffer = Vec::new();
    loop {
        let usize_len = usize::try_from(len).unwrap_or(usize::MAX);
        let bytes = match source.slice(start, usize_len) {
            Some(bytes) => bytes,
            None => {
                let read = buffer.len();
                buffer.resize(usize_len, 0);
                let rest = buffer.get_mut(read..).unwrap_or_default();
                read_exact_at(source, start + read as u64, rest)?;
                &buffer
            }
        };
        match parse(bytes) {
            Err(FormatError::Truncated { .. }) if len < most => {
                len = most.min(len * 4);
                Limits::check("bytes of a table of contents", len.min(most), limits.toc_bytes)?;
            }
            parsed => return Ok(parsed?),
        }
    }
}
