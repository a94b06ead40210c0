//! The columns of a Parquet file, for tables: numbers row by row, and bytes.

mod block;
mod fixed;
mod number;

use std::ops::Range;

use tbl_io::{BlockMemory, Location, ParquetDefect, ReadError, ReadLimits, Source};

use crate::cache::PageCache;
use crate::file::ParquetFile;
use crate::roles::{FieldValues, field_values};
use crate::schema::{Meaning, Node, Physical};
use number::Number;

pub use block::ParquetBlock;
pub use number::{Missing, NumberType};

/// The columns of a Parquet file.
///
/// Flat numbers, booleans, dates and times are numbers of their width, and decimals the nearest `f64`.
/// Lists are numbers too if the metadata of `datasets` or Arrow states one length for them; other lists
/// and structures are bytes, as JSON, and so are texts and bytes as they are.
#[derive(Debug)]
pub struct ParquetColumns {
    file: ParquetFile,
    columns: Vec<ParquetColumn>,
    access: Vec<Access>,
}

/// A column of a Parquet file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParquetColumn {
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

/// The most bytes of a block of lists without an offset index, whose row group is decoded as a whole.
const GROUP_BLOCK_BYTES: u64 = 32 << 20;

/// Copies of the bytes of a page while it is decoded: compressed, decompressed and as numbers of 64 bits.
const COPIES: u64 = 3;

impl ParquetColumns {
    /// Whether a file is a Parquet file, by its first bytes.
    ///
    /// # Errors
    /// [`ReadError::Io`] and other errors of reading.
    pub fn is(source: &Source) -> Result<bool, ReadError> {
        crate::source::is_parquet(source)
    }

    /// Reads the footer of a file.
    ///
    /// # Errors
    /// [`ReadError::Parquet`] with the offset of a defect. A column that cannot be read is none: it is
    /// [unreadable](ColumnContent::Unreadable), and the others are not affected.
    pub fn open(source: Source) -> Result<Self, ReadError> {
        let file = ParquetFile::open(source, ReadLimits::default())?;
        let metadata = &file.footer().metadata;
        let arrow = fixed::of_arrow(metadata);
        let mut columns = Vec::new();
        let mut access = Vec::new();
        for node in file.footer().schema.columns() {
            let shape = || fixed::dimensions(metadata, &arrow, &node.name);
            let found = unreadable(&file, node).map_or_else(|| access_of(&file, node, shape), Err);
            let (content, way) = match found {
                Ok(way) => (content(&file, &way), way),
                Err(reason) => (ColumnContent::Unreadable { reason }, Access::None),
            };
            columns.push(ParquetColumn { name: node.name.clone(), content });
            access.push(way);
        }
        Ok(Self { file, columns, access })
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
    pub fn columns(&self) -> &[ParquetColumn] {
        &self.columns
    }

    /// The rows that are best read together from column number `column`; at least 1.
    #[must_use]
    pub fn block_rows(&self, column: usize) -> u64 {
        let within = |bytes: u64, row: u64| (bytes / row.max(1)).clamp(1, BLOCK_ROWS);
        match self.access.get(column) {
            Some(Access::Numbers { number, .. }) => within(BLOCK_BYTES, number.kind.bytes() as u64),
            Some(Access::Lists { leaf, number, shape }) => {
                let row = (number.kind.bytes() * shape.iter().product::<usize>()) as u64;
                let groups = &self.file.footer().groups;
                let has_index = groups.iter().all(|group| group.chunks[*leaf].index.is_some());
                if has_index {
                    return within(BLOCK_BYTES, row);
                }
                let rows = groups.iter().map(|group| group.rows).max().unwrap_or(1);
                (GROUP_BLOCK_BYTES / row.max(1)).clamp(1, rows.max(1))
            }
            Some(Access::Bytes { leaf }) => {
                within(BLOCK_BYTES, self.bytes_per_row(*leaf..leaf + 1))
            }
            Some(Access::Json { node }) => {
                within(BLOCK_BYTES, self.bytes_per_row(node.leaves.clone()))
            }
            Some(Access::None) | None => 1,
        }
    }

    /// Bytes of memory that reading a block of column number `column` takes at most, as far as the
    /// footer states them.
    #[must_use]
    pub fn load_bytes(&self, column: usize) -> u64 {
        let leaves = match self.access.get(column) {
            Some(
                Access::Numbers { leaf, .. } | Access::Bytes { leaf } | Access::Lists { leaf, .. },
            ) => *leaf..leaf + 1,
            Some(Access::Json { node }) => node.leaves.clone(),
            Some(Access::None) | None => 0..0,
        };
        let of_group = |chunks: &[crate::footer::Chunk]| -> u64 {
            let chunks = chunks.get(leaves.clone()).unwrap_or_default();
            chunks
                .iter()
                .map(|chunk| chunk.decompressed.max(chunk.bytes))
                .fold(0, u64::saturating_add)
        };
        let groups = self.file.footer().groups.iter().map(|group| of_group(&group.chunks));
        groups.max().unwrap_or(0).saturating_mul(COPIES)
    }

    /// The memory for pages, which blocks share.
    #[must_use]
    pub fn block_memory(&self) -> &'static dyn BlockMemory {
        PageCache::of_process()
    }

    /// Reads rows of column number `column`.
    ///
    /// # Errors
    /// [`ReadError::Parquet`] for a damaged page, and for a value that is none of the column's type.
    ///
    /// # Panics
    /// If a row does not exist, or the column cannot be read.
    pub fn read(&self, column: usize, rows: Range<u64>) -> Result<ParquetBlock, ReadError> {
        assert!(rows.end <= self.row_count(), "the rows of a block exist");
        block::read(&self.file, &self.access[column], rows)
    }

    /// The mean number of bytes in a row.
    fn bytes_per_row(&self, leaves: Range<usize>) -> u64 {
        let chunks =
            self.file.footer().groups.iter().flat_map(|group| &group.chunks[leaves.clone()]);
        let bytes =
            chunks.map(|chunk| chunk.decompressed.max(chunk.bytes)).fold(0, u64::saturating_add);
        bytes / self.row_count().max(1)
    }
}

/// The reason why no row of a column can be read.
fn unreadable(file: &ParquetFile, node: &Node) -> Option<String> {
    let leaves = node.leaves.clone();
    let codecs = (0..file.footer().groups.len())
        .flat_map(|group| leaves.clone().map(move |leaf| file.codec(group, leaf)));
    let error = codecs.filter_map(Result::err).next()?;
    // The file is named where the column is.
    Some(if let ReadError::Parquet { source, .. } = error {
        source.to_string()
    } else {
        error.to_string()
    })
}

fn access_of(
    file: &ParquetFile,
    node: &Node,
    shape: impl FnOnce() -> Option<Vec<usize>>,
) -> Result<Access, String> {
    let first = node.leaves.start;
    let leaf = file.leaf(first);
    let is_number = |physical| !matches!(physical, Physical::Bytes | Physical::Fixed(_));
    let is_number =
        is_number(leaf.physical) || matches!(leaf.meaning, Meaning::Decimal(_) | Meaning::Half);
    if is_number && node.leaves.len() == 1 {
        let has_nulls = leaf.max_definition > 0
            && file.footer().groups.iter().any(|group| group.chunks[first].nulls != Some(0));
        if node.is_leaf() && leaf.max_repetition == 0 {
            let number = Number::of(leaf, has_nulls)?;
            return Ok(Access::Numbers { leaf: first, number });
        }
        let shape = shape().filter(|shape| shape.len() == usize::from(leaf.max_repetition));
        if let Some(shape) = shape.filter(|shape| is_possible(shape))
            && let Ok(number) = Number::of(leaf, has_nulls)
        {
            return Ok(Access::Lists { leaf: first, number, shape });
        }
    }
    match field_values(file, node) {
        Some(FieldValues::Single(values)) => Ok(Access::Bytes { leaf: values.bytes }),
        Some(FieldValues::Nested(node)) => Ok(Access::Json { node }),
        None => Err("lists or structures of bytes that are not text".to_owned()),
    }
}

/// Whether a page can have a row of these dimensions.
fn is_possible(shape: &[usize]) -> bool {
    let numbers = shape.iter().try_fold(1_usize, |numbers, &size| numbers.checked_mul(size));
    numbers.is_some_and(|numbers| (1..=crate::page::PAGE_VALUES as usize).contains(&numbers))
}

fn content(file: &ParquetFile, access: &Access) -> ColumnContent {
    let (number, shape) = match access {
        Access::Numbers { number, .. } => (number, Vec::new()),
        Access::Lists { number, shape, .. } => (number, shape.clone()),
        Access::Bytes { leaf } => {
            let is_text = matches!(file.leaf(*leaf).meaning, Meaning::Text | Meaning::Json);
            return ColumnContent::Bytes { what: if is_text { "text" } else { "bytes" } };
        }
        Access::Json { .. } => {
            return ColumnContent::Bytes { what: "lists or structures, as JSON" };
        }
        Access::None => return ColumnContent::Unreadable { reason: String::new() },
    };
    ColumnContent::Numbers { number: number.kind, shape, missing: number.missing }
}

/// The defect of a value that does not fit into its column.
fn misfit(what: &'static str) -> ParquetDefect {
    ParquetDefect::Damaged { what }
}
