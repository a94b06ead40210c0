//! The table of contents: what columns there are, and where their blocks and metadata lie.

mod compression;

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::codec::{Codec, CodecDefinition, Unknown, write_leb128, write_string};
use crate::cursor::Cursor;
use crate::error::FormatError;
use crate::header::{Header, check_range, from_i64, to_i64};

pub use compression::Compression;

/// The reason why the values of a column, or of a piece of metadata, cannot be read. The rest of
/// the file can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Dead {
    /// A codec of which this crate knows nothing.
    #[error("codec {0} is unknown")]
    Codec(String),
    /// A compression of which this crate knows nothing.
    #[error("compression {0} is unknown")]
    Compression(u8),
}

/// The meaning of stored values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The codec, as the file names it.
    pub codec: CodecDefinition,
    /// The compression, or its number when that is unknown.
    pub compression: Result<Compression, u8>,
}

impl Storage {
    fn parse(cursor: &mut Cursor<'_>) -> Result<Self, FormatError> {
        let codec = CodecDefinition::parse(cursor)?;
        let compression = Compression::from_code(cursor.u8("compression")?);
        Ok(Self { codec, compression })
    }

    /// Codec and compression, when both are known.
    ///
    /// # Errors
    /// [`Dead`] with what is not.
    pub fn known(&self) -> Result<(&Codec, Compression), Dead> {
        match (&self.codec.codec, self.compression) {
            (Err(Unknown(name)), _) => Err(Dead::Codec(name.clone())),
            (Ok(_), Err(code)) => Err(Dead::Compression(code)),
            (Ok(codec), Ok(compression)) => Ok((codec, compression)),
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        self.codec.write(bytes);
        bytes.push(self.compression.map_or_else(|code| code, Compression::code));
    }
}

/// A column, as the table of contents describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnEntry {
    /// The name. Several columns can have the same; ML.NET then sees the last one only.
    pub name: String,
    /// The storage of its values.
    pub storage: Storage,
    /// Rows of every block but the last, which may have fewer.
    pub rows_per_block: u64,
    /// The offset of the lookup table.
    pub lookup_offset: u64,
    /// The offset of its metadata's table of contents, if it has any.
    pub metadata_offset: Option<u64>,
}

impl ColumnEntry {
    fn parse(cursor: &mut Cursor<'_>, header: &Header) -> Result<Self, FormatError> {
        const LOOKUP: &str = "offset of a lookup table";
        const METADATA: &str = "offset of a table of metadata";
        let rows = header.row_count;
        let name = cursor.string("column name")?.to_owned();
        let storage = Storage::parse(cursor)?;
        let offset = cursor.offset();
        let rows_per_block = cursor.leb128("rows per block")?;
        if rows_per_block == 0 && rows > 0 {
            return Err(FormatError::RowsPerBlock { offset, rows });
        }
        let offset = cursor.offset();
        let lookup_offset = from_i64(LOOKUP, offset, cursor.i64(LOOKUP)?)?;
        let low = Header::SIZE as u64;
        if rows > 0 {
            let table_bytes = lookup_bytes(block_count(rows, rows_per_block));
            let high = table_bytes.and_then(|bytes| header.tail_offset.checked_sub(bytes));
            check_range(LOOKUP, offset, lookup_offset, low..=high.unwrap_or(0))?;
        }
        let offset = cursor.offset();
        let metadata_offset = match from_i64(METADATA, offset, cursor.i64(METADATA)?)? {
            0 => None,
            start => {
                check_range(METADATA, offset, start, low..=header.tail_offset)?;
                Some(start)
            }
        };
        Ok(Self { name, storage, rows_per_block, lookup_offset, metadata_offset })
    }

    /// Appends the entry as it stands in a file.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        write_string(bytes, &self.name);
        self.storage.write(bytes);
        write_leb128(bytes, self.rows_per_block);
        bytes.extend_from_slice(&to_i64(self.lookup_offset).to_le_bytes());
        bytes.extend_from_slice(&to_i64(self.metadata_offset.unwrap_or(0)).to_le_bytes());
    }

    /// How many blocks it has in a file of `rows` rows.
    pub fn block_count(&self, rows: u64) -> u64 {
        block_count(rows, self.rows_per_block)
    }

    /// The rows of a block in a file of `rows` rows.
    pub fn block_rows(&self, block: u64, rows: u64) -> Range<u64> {
        let at = |block: u64| block.saturating_mul(self.rows_per_block).min(rows);
        at(block)..at(block.saturating_add(1))
    }

    /// The range of the lookup table of a file of `rows` rows.
    pub fn lookup_range(&self, rows: u64) -> Range<u64> {
        let bytes = lookup_bytes(self.block_count(rows)).unwrap_or(u64::MAX);
        self.lookup_offset..self.lookup_offset.saturating_add(bytes)
    }
}

fn block_count(rows: u64, rows_per_block: u64) -> u64 {
    if rows == 0 { 0 } else { rows.div_ceil(rows_per_block.max(1)) }
}

fn lookup_bytes(blocks: u64) -> Option<u64> {
    blocks.checked_mul(Block::ENTRY_SIZE as u64)
}

/// Reads the columns of a file from `bytes`, which lie at [`Header::toc_offset`] and may have more
/// after them.
///
/// # Errors
/// [`FormatError`]. A column that cannot be read but can be passed over is not an error.
pub fn parse_toc(bytes: &[u8], header: &Header) -> Result<Vec<ColumnEntry>, FormatError> {
    let mut cursor = Cursor::new(bytes, header.toc_offset);
    (0..header.column_count).map(|_| ColumnEntry::parse(&mut cursor, header)).collect()
}

/// The place and the size of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The offset of its start.
    pub offset: u64,
    /// Its size in the file.
    pub stored_bytes: u32,
    /// Its size without compression.
    pub bytes: u32,
}

impl Block {
    /// The size of an entry of a lookup table.
    pub const ENTRY_SIZE: usize = 16;

    fn parse(cursor: &mut Cursor<'_>, header: &Header) -> Result<Self, FormatError> {
        const OFFSET: &str = "offset of a block";
        let at = cursor.offset();
        let offset = from_i64(OFFSET, at, cursor.i64(OFFSET)?)?;
        let stored_bytes = Self::size("stored size of a block", cursor)?;
        let bytes = Self::size("size of a block", cursor)?;
        // No size is above the end of a file that has room for the block.
        let high = header.tail_offset.saturating_sub(stored_bytes.into());
        check_range(OFFSET, at, offset, Header::SIZE as u64..=high)?;
        Ok(Self { offset, stored_bytes, bytes })
    }

    fn size(what: &'static str, cursor: &mut Cursor<'_>) -> Result<u32, FormatError> {
        let offset = cursor.offset();
        let found = cursor.i32(what)?;
        u32::try_from(found).map_err(|_| FormatError::Negative {
            what,
            offset,
            found: found.into(),
        })
    }

    /// Appends the entry as it stands in a lookup table.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&to_i64(self.offset).to_le_bytes());
        bytes.extend_from_slice(&self.stored_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
    }
}

/// Reads a whole lookup table, which lies at `offset`.
///
/// # Errors
/// [`FormatError`] for the first entry that breaks a rule.
pub fn parse_lookup_table(
    bytes: &[u8],
    offset: u64,
    header: &Header,
) -> Result<Vec<Block>, FormatError> {
    let mut cursor = Cursor::new(bytes, offset);
    let mut blocks = Vec::with_capacity(bytes.len() / Block::ENTRY_SIZE);
    while cursor.remaining() > 0 {
        blocks.push(Block::parse(&mut cursor, header)?);
    }
    Ok(blocks)
}

/// A piece of a column's metadata: one value, in a separate block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataEntry {
    /// The kind, such as `SlotNames`.
    pub kind: String,
    /// The storage of its value.
    pub storage: Storage,
    /// The offset of its block.
    pub offset: u64,
    /// The size of its block in the file. The size without compression is not stored.
    pub stored_bytes: u64,
}

impl MetadataEntry {
    fn parse(cursor: &mut Cursor<'_>, header: &Header) -> Result<Self, FormatError> {
        const OFFSET: &str = "offset of metadata";
        let kind = cursor.name("kind of metadata")?.to_owned();
        let storage = Storage::parse(cursor)?;
        let at = cursor.offset();
        let offset = from_i64(OFFSET, at, cursor.i64(OFFSET)?)?;
        check_range(OFFSET, at, offset, Header::SIZE as u64..=header.tail_offset)?;
        let at = cursor.offset();
        let stored_bytes = cursor.leb128("size of metadata")?;
        check_range("size of metadata", at, stored_bytes, 1..=header.tail_offset - offset)?;
        Ok(Self { kind, storage, offset, stored_bytes })
    }

    /// Appends the entry as it stands in a table of metadata.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        write_string(bytes, &self.kind);
        self.storage.write(bytes);
        bytes.extend_from_slice(&to_i64(self.offset).to_le_bytes());
        write_leb128(bytes, self.stored_bytes);
    }
}

/// Reads what metadata a column has from `bytes`, which lie at `offset` and may have more after
/// them.
///
/// # Errors
/// [`FormatError`], also when two entries are of one kind.
pub fn parse_metadata_toc(
    bytes: &[u8],
    offset: u64,
    header: &Header,
) -> Result<Vec<MetadataEntry>, FormatError> {
    const COUNT: &str = "number of metadata entries";
    let mut cursor = Cursor::new(bytes, offset);
    let count = cursor.leb128(COUNT)?;
    check_range(COUNT, offset, count, 1..=i32::MAX.unsigned_abs().into())?;
    let mut entries: Vec<MetadataEntry> = Vec::new();
    for _ in 0..count {
        let offset = cursor.offset();
        let entry = MetadataEntry::parse(&mut cursor, header)?;
        entries.push(entry);
        if let Some(kind) = duplicate_of_last(&entries) {
            return Err(FormatError::DuplicateKind { kind, offset });
        }
    }
    Ok(entries)
}

fn duplicate_of_last(entries: &[MetadataEntry]) -> Option<String> {
    let (last, before) = entries.split_last()?;
    before.iter().find(|entry| entry.kind == last.kind).map(|entry| entry.kind.clone())
}
