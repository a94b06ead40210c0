//! The columns of a file of rows, for tables: numbers row by row, and bytes.

mod arrow;
mod block;
mod columns;
mod fixed;
mod number;
mod parquet;

use std::ops::Range;

use tbl_io::{BlockMemory, Location, ReadError, ReadLimits, Source, SourceKind};

use crate::cache::PageCache;
use crate::file::ParquetFile;
use crate::ipc::{ArrowFile, is_arrow};
use crate::options::RowOptions;
use crate::roles::{FieldValues, field_values};
use crate::schema::{Meaning, Node, Physical, Repetition};
use crate::thrift::Flaw;
use columns::ColumnFile;
use number::Number;

pub use block::RowBlock;
pub use number::{Missing, NumberType};

/// The columns of a Parquet file, or of an Arrow file or stream.
///
/// Flat numbers, booleans, dates and times are numbers of their width, and decimals the nearest `f64`.
/// Lists are numbers too if the metadata of `datasets` or Arrow states one length for them; other lists
/// and structures are bytes, as JSON, and so are texts and bytes as they are.
#[derive(Debug)]
pub struct RowColumns {
    file: Box<dyn ColumnFile>,
    columns: Vec<RowColumn>,
    access: Vec<Access>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowColumn {
    /// The name of the column.
    pub name: String,
    /// The content of its rows.
    pub content: ColumnContent,
}

/// The content of the rows of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnContent {
    /// Equally many numbers each.
    Numbers {
        /// Their type.
        number: NumberType,
        /// The dimensions of a row; none where that is a single number.
        shape: Vec<usize>,
        /// The number that stands for a null.
        missing: Missing,
    },
    /// Bytes, of another number in every row.
    Bytes {
        /// Their kind, such as `text`.
        what: &'static str,
    },
    /// Nothing that can be read.
    Unreadable {
        /// The reason.
        reason: String,
    },
}

/// The way to the values of a column.
#[derive(Debug)]
enum Access {
    Numbers {
        leaf: usize,
        number: Number,
    },
    /// Lists of these dimensions.
    Lists {
        leaf: usize,
        number: Number,
        shape: Vec<usize>,
        /// The definition level from which on a list of a Parquet file has elements.
        definition: u8,
    },
    Bytes {
        leaf: usize,
    },
    Json {
        node: Node,
    },
    None,
}

/// Bytes of a block, unless a row has more.
const BLOCK_BYTES: u64 = 256 << 10;

/// The most rows of a block.
const BLOCK_ROWS: u64 = 1 << 14;

/// The most bytes of a block of rows that are decoded together: of a row group of lists without an offset
/// index, and of a record batch that is compressed.
const TOGETHER_BYTES: u64 = 32 << 20;

impl RowColumns {
    /// Reads the footer of a file, or the metadata of the record batches.
    ///
    /// # Errors
    /// [`ReadError::Rows`] with the offset of a defect. A column that cannot be read is none: it is
    /// [unreadable](ColumnContent::Unreadable), and the others are not affected.
    pub fn open(source: Source) -> Result<Self, ReadError> {
        Self::open_with(source, &RowOptions::default())
    }

    /// As [`open`](Self::open), with the columns and the features of `options`.
    ///
    /// # Errors
    /// As for [`open`](Self::open), and for a column that does not exist.
    pub fn open_with(source: Source, options: &RowOptions) -> Result<Self, ReadError> {
        let limits = ReadLimits::default();
        let mut file: Box<dyn ColumnFile> = match is_arrow(&source)? {
            true => {
                let file = ArrowFile::open(source, limits)?;
                file.release_ahead();
                Box::new(file)
            }
            false => Box::new(ParquetFile::open(source, limits)?),
        };
        if let Some(columns) = &options.columns {
            let selected = file.schema().select(columns);
            *file.schema_mut() = selected.map_err(|defect| file.error(Flaw::new(0, defect)))?;
        }
        Ok(Self::of(file, options))
    }

    fn of(file: Box<dyn ColumnFile>, options: &RowOptions) -> Self {
        let fixed = file.fixed_lists();
        let given = options.features.as_deref().map(str::as_bytes);
        let features = given.or(file.features());
        let names = options.columns.as_deref().unwrap_or_default();
        let mut columns = Vec::new();
        let mut access = Vec::new();
        for node in file.schema().columns() {
            let stored = names.iter().find(|(_, name)| *name == node.name);
            let stored = stored.map_or(&node.name, |(stored, _)| stored);
            let shape = || {
                let dimensions = features.and_then(|text| fixed::dimensions(text, &node.name));
                dimensions.or_else(|| fixed.of(stored))
            };
            let found = file.unreadable(node).map_or_else(|| access_of(&*file, node, shape), Err);
            let (content, way) = match found {
                Ok(way) => (content(&*file, &way), way),
                Err(reason) => (ColumnContent::Unreadable { reason }, Access::None),
            };
            columns.push(RowColumn { name: node.name.clone(), content });
            access.push(way);
        }
        Self { file, columns, access }
    }

    /// The format of the file.
    #[must_use]
    pub fn kind(&self) -> SourceKind {
        self.file.kind()
    }

    /// The file.
    #[must_use]
    pub fn location(&self) -> &Location {
        self.file.source().location()
    }

    /// The number of rows.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.file.row_count()
    }

    /// All columns, also those that cannot be read.
    #[must_use]
    pub fn columns(&self) -> &[RowColumn] {
        &self.columns
    }

    /// For each row group or record batch, the row after its last one.
    #[must_use]
    pub fn block_ends(&self) -> Vec<u64> {
        self.file.part_ends()
    }

    /// The rows that are best read together from column number `column`; at least 1.
    #[must_use]
    pub fn block_rows(&self, column: usize) -> u64 {
        let Some(access) = self.access.get(column) else { return 1 };
        let Some(leaves) = access.leaves() else { return 1 };
        let row = match access {
            Access::Numbers { number, .. } => number.kind.bytes() as u64,
            Access::Lists { number, shape, .. } => {
                (number.kind.bytes() * shape.iter().product::<usize>()) as u64
            }
            Access::Bytes { .. } | Access::Json { .. } | Access::None => {
                self.file.leaf_bytes(leaves.clone()) / self.row_count().max(1)
            }
        };
        let is_list = matches!(access, Access::Lists { .. });
        match self.file.rows_together(leaves.start, is_list) {
            Some(rows) => (TOGETHER_BYTES / row.max(1)).clamp(1, rows.max(1)),
            None => (BLOCK_BYTES / row.max(1)).clamp(1, BLOCK_ROWS),
        }
    }

    /// Bytes of memory that reading a block of column number `column` takes at most, as far as the
    /// file states them.
    #[must_use]
    pub fn load_bytes(&self, column: usize) -> u64 {
        let leaves = self.access.get(column).and_then(Access::leaves);
        leaves.map_or(0, |leaves| self.file.load_bytes(leaves))
    }

    /// The memory for pages, which blocks share.
    #[must_use]
    pub fn block_memory(&self) -> &'static dyn BlockMemory {
        PageCache::of_process()
    }

    /// Reads rows of column number `column`.
    ///
    /// # Errors
    /// [`ReadError::Rows`] for a damaged page, and for a value that is none of the column's type.
    ///
    /// # Panics
    /// If a row does not exist, or the column cannot be read.
    pub fn read(&self, column: usize, rows: Range<u64>) -> Result<RowBlock, ReadError> {
        assert!(rows.end <= self.row_count(), "the rows of a block exist");
        block::read(&*self.file, &self.access[column], rows)
    }
}

impl Access {
    /// The leaves that are read; `None` if there are none.
    fn leaves(&self) -> Option<Range<usize>> {
        match self {
            Self::Numbers { leaf, .. } | Self::Lists { leaf, .. } | Self::Bytes { leaf } => {
                Some(*leaf..leaf + 1)
            }
            Self::Json { node } => Some(node.leaves.clone()),
            Self::None => None,
        }
    }
}

fn access_of(
    file: &dyn ColumnFile,
    node: &Node,
    shape: impl FnOnce() -> Option<Vec<usize>>,
) -> Result<Access, String> {
    let first = node.leaves.start;
    let leaf = file.schema().leaf(first);
    let is_number = |physical| !matches!(physical, Physical::Bytes | Physical::Fixed(_));
    let is_number =
        is_number(leaf.physical) || matches!(leaf.meaning, Meaning::Decimal(_) | Meaning::Half);
    if is_number && node.leaves.len() == 1 {
        let has_nulls = file.has_nulls(first);
        if node.is_leaf() && leaf.max_repetition == 0 {
            let number = Number::of(leaf, has_nulls)?;
            return Ok(Access::Numbers { leaf: first, number });
        }
        let shape = shape().filter(|shape| shape.len() == usize::from(leaf.max_repetition));
        if let Some(shape) = shape.filter(|shape| is_possible(shape))
            && let Ok(number) = Number::of(leaf, has_nulls)
        {
            let definition = list_definition(node);
            return Ok(Access::Lists { leaf: first, number, shape, definition });
        }
    }
    match field_values(file, node) {
        Some(FieldValues::Single(values)) => Ok(Access::Bytes { leaf: values.bytes }),
        Some(FieldValues::Nested(node)) => Ok(Access::Json { node }),
        None => Err("lists or structures of bytes that are not text".to_owned()),
    }
}

/// The definition level from which on the list that a column is has elements.
fn list_definition(column: &Node) -> u8 {
    let mut node = column;
    while node.repetition != Repetition::Repeated {
        let Some(child) = node.children.first() else { return 0 };
        node = child;
    }
    node.definition
}

/// Whether a page can have a row of these dimensions.
fn is_possible(shape: &[usize]) -> bool {
    let numbers = shape.iter().try_fold(1_usize, |numbers, &size| numbers.checked_mul(size));
    numbers.is_some_and(|numbers| (1..=crate::page::PAGE_VALUES as usize).contains(&numbers))
}

fn content(file: &dyn ColumnFile, access: &Access) -> ColumnContent {
    let (number, shape) = match access {
        Access::Numbers { number, .. } => (number, Vec::new()),
        Access::Lists { number, shape, .. } => (number, shape.clone()),
        Access::Bytes { leaf } => {
            let is_text =
                matches!(file.schema().leaf(*leaf).meaning, Meaning::Text | Meaning::Json);
            return ColumnContent::Bytes { what: if is_text { "text" } else { "bytes" } };
        }
        Access::Json { .. } => {
            return ColumnContent::Bytes { what: "lists or structures, as JSON" };
        }
        Access::None => return ColumnContent::Unreadable { reason: String::new() },
    };
    ColumnContent::Numbers { number: number.kind, shape, missing: number.missing }
}
