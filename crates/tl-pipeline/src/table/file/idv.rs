//! IDV files as tables.
//!
//! Numbers of uncompressed columns, and of dense vectors in them, are taken from where they lie in
//! the mapped file. Everything else is decoded block by block.

mod bytes;
mod decoded;
mod direct;
mod names;

use std::fmt;
use std::path::Path;

use idv_format::{Block, Codec, Column, Compression, IdvFile, Item, Key, Number, Scratch, Vector};
use sha2::{Digest, Sha256};
use tbl_io::{Location, Mapped, ReadError, Source};
use tl_handoff::sync::Arc;

pub use self::bytes::IdvBytes;
use self::decoded::Decoded;
use self::direct::{Direct, DirectVectors};
use crate::error::{PipelineError, TableError};
use crate::table::{
    ColumnType, ColumnValues, Content, Meaning, RowValues, Table, TableColumn, TableKind,
};

/// An IDV file, ML.NET's table of typed columns.
///
/// | codec | batches have |
/// |---|---|
/// | numbers | them as they are |
/// | keys | their numbers as they are stored: from 1 on, 0 for a missing one |
/// | Boolean | `bool` |
/// | `DvBool` | `u8`: 0, 1, or 2 for a missing one |
/// | spans and points of time | `i64` ticks of 100 ns, the least for a missing one |
/// | points of time with an offset | two `i64`: ticks, and minutes ahead of UTC |
/// | row ids | two `u64`: the lower half, the upper half |
/// | vectors of one length | their dimensions of the above; what sparse ones leave out is 0 |
/// | text; vectors of their own lengths | bytes, row by row: UTF-8, the items one behind the other |
/// | vectors of text | bytes, row by row: a JSON list of strings, `null` for a missing one |
pub struct IdvTable {
    location: Location,
    mapped: Option<Arc<Mapped>>,
    file: IdvFile<IdvBytes>,
    columns: Vec<TableColumn>,
    /// The blocks of every column; none of those that cannot be read.
    blocks: Vec<Arc<[Block]>>,
}

impl IdvTable {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// [`PipelineError::Open`], [`PipelineError::Table`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, PipelineError> {
        Self::from_source(&Source::open(path)?)
    }

    /// Opens a file that is in memory or in a store. One that cannot be mapped is read by position,
    /// block by block.
    ///
    /// # Errors
    /// [`PipelineError::Table`].
    pub fn from_source(source: &Source) -> Result<Self, PipelineError> {
        let fault =
            |fault| PipelineError::Table { location: source.location().clone(), source: fault };
        Self::of(source).map_err(fault)
    }

    fn of(source: &Source) -> Result<Self, TableError> {
        let bytes = IdvBytes::mapped(source)?;
        let mapped = bytes.mapping().cloned();
        let file = IdvFile::open(bytes)?;
        let mut columns = Vec::new();
        let mut blocks = Vec::new();
        for (place, entry) in file.columns().iter().enumerate() {
            let (content, of_column) = match file.column(place) {
                Ok(column) => {
                    let names = || key_names(&file, place);
                    (content(column.codec(), names), column.blocks().into())
                }
                // A request for this column reports its defect; the other columns stay usable.
                Err(error) => (Content::Unreadable { reason: error.to_string() }, Arc::default()),
            };
            columns.push(TableColumn { name: entry.name.clone(), content });
            blocks.push(of_column);
        }
        Ok(Self { location: source.location().clone(), mapped, file, columns, blocks })
    }

    fn column(&self, column: usize) -> Result<Column<'_, IdvBytes>, TableError> {
        let blocks = self.blocks.get(column).map(|blocks| &**blocks).unwrap_or_default();
        Ok(self.file.column_of_blocks(column, blocks)?)
    }
}

impl Table for IdvTable {
    fn location(&self) -> &Location {
        &self.location
    }

    fn format(&self) -> &'static str {
        TableKind::Idv.name()
    }

    fn row_count(&self) -> u64 {
        self.file.row_count()
    }

    fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    fn values(&self, column: usize) -> Result<ColumnValues, TableError> {
        let values = self.column(column)?;
        let direct = self.mapped.as_ref();
        if let Some(direct) = direct.and_then(|map| Direct::of(&values, map, &self.blocks[column]))
        {
            return Ok(ColumnValues::Whole(Arc::new(direct)));
        }
        let load_bytes = values.blocks().iter().map(|block| load_bytes(block, values.codec()));
        let rows = values.entry().rows_per_block.max(1);
        Ok(ColumnValues::Blocks { rows, load_bytes: load_bytes.max().unwrap_or(0) })
    }

    fn load(&self, column: usize, block: u64) -> Result<Arc<dyn RowValues>, TableError> {
        let values = self.column(column)?;
        let direct = self.mapped.as_ref();
        if let Some(vectors) = direct.and_then(|map| DirectVectors::of(&values, map, block)) {
            return Ok(Arc::new(vectors));
        }
        let mut scratch = Scratch::new();
        let loaded = values.read_block(block, &mut scratch).map(Decoded::new);
        // Zeros after a cut are not damage of the block.
        self.check()?;
        Ok(Arc::new(loaded?))
    }

    fn class_names(&self, column: usize) -> Result<Vec<String>, TableError> {
        names::of_keys(&self.file, column)
    }

    fn check(&self) -> Result<(), ReadError> {
        self.mapped.as_ref().map_or(Ok(()), |mapped| mapped.check())
    }
}

impl fmt::Debug for IdvTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdvTable")
            .field("location", &self.location)
            .field("rows", &self.row_count())
            .field("columns", &self.columns.len())
            .finish_non_exhaustive()
    }
}

/// The most memory for loading a block: the stored bytes, the inflated ones, and the values, which
/// are eight times as large for booleans, five times for sparse vectors, and twice otherwise;
/// values are then copied.
fn load_bytes(block: &Block, codec: &Codec) -> u64 {
    let times = match (codec, codec.item()) {
        (_, Item::Boolean | Item::MissingBoolean) => 8,
        (Codec::Vector(_), _) => 5,
        (Codec::Item(_), _) => 2,
    };
    let bytes = u64::from(block.bytes).saturating_mul(1 + 2 * times);
    bytes.saturating_add(block.stored_bytes.into())
}

/// The first bytes of a hash of the names that a key's categories have, if they can be read.
fn key_names(file: &IdvFile<IdvBytes>, column: usize) -> Option<u64> {
    let metadata = file.metadata(column).ok()?;
    let entry = metadata.iter().find(|entry| entry.kind == "KeyValues")?;
    let mut hash = Sha256::new();
    file.metadata_value(entry).ok()?.canonical(&mut |bytes| hash.update(bytes));
    let hash: [u8; 32] = hash.finalize().into();
    hash.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn content(codec: &Codec, names: impl FnOnce() -> Option<u64>) -> Content {
    let (mut shape, item) = match codec {
        Codec::Item(item) => (Vec::new(), item),
        Codec::Vector(vector) => match dimensions(vector) {
            Some(shape) => (shape, &vector.item),
            None if vector.item == Item::Text => {
                return Content::Bytes { what: "vectors of text" };
            }
            None => return Content::Bytes { what: "vectors of different lengths" },
        },
    };
    let (number, meaning) = match item {
        Item::Number(number) => (column_type(*number), Meaning::Value),
        Item::Key(Key { number, count, .. }) => {
            (column_type(*number), Meaning::Key { count: *count, names: names() })
        }
        Item::Boolean => (ColumnType::Bool, Meaning::Value),
        Item::MissingBoolean => (ColumnType::U8, Meaning::TwoIsMissing),
        Item::TimeSpan | Item::DateTime => (ColumnType::I64, Meaning::LeastIsMissing),
        Item::DateTimeOffset => {
            shape.push(2);
            (ColumnType::I64, Meaning::LeastIsMissing)
        }
        Item::RowId => {
            shape.push(2);
            (ColumnType::U64, Meaning::Value)
        }
        Item::Text if shape.is_empty() => return Content::Bytes { what: "text" },
        Item::Text => return Content::Bytes { what: "vectors of text" },
    };
    Content::Numbers { number, shape, meaning }
}

/// The dimensions of vectors that all have them.
fn dimensions(vector: &Vector) -> Option<Vec<usize>> {
    vector.length()?;
    vector.dimensions.iter().map(|&extent| usize::try_from(extent).ok()).collect()
}

fn column_type(number: Number) -> ColumnType {
    match number {
        Number::SByte => ColumnType::I8,
        Number::Byte => ColumnType::U8,
        Number::Int16 => ColumnType::I16,
        Number::UInt16 => ColumnType::U16,
        Number::Int32 => ColumnType::I32,
        Number::UInt32 => ColumnType::U32,
        Number::Int64 => ColumnType::I64,
        Number::UInt64 => ColumnType::U64,
        Number::Single => ColumnType::F32,
        Number::Double => ColumnType::F64,
    }
}

/// The type of an item that is one number, as which it also lies in the file.
fn stored_number(item: &Item) -> Option<ColumnType> {
    match item {
        Item::Number(number) | Item::Key(Key { number, .. }) => Some(column_type(*number)),
        Item::TimeSpan | Item::DateTime => Some(ColumnType::I64),
        Item::Boolean | Item::MissingBoolean | Item::Text | Item::DateTimeOffset | Item::RowId => {
            None
        }
    }
}

/// True if blocks are stored uncompressed.
fn is_plain(column: &Column<'_, IdvBytes>) -> bool {
    column.compression() == Compression::None
}
