//! Columns of lists of integers as tokens: each row is a document.

mod arrow;
mod parquet;

use tbl_io::{BlockMemory, Location, ReadError, ReadLimits, RowsDefect, Source, TokensDefect};
use tl_tokens::{TokenFile, TokenFormat, TokenOptions, TokenRecords, TokenType};

use crate::cache::PageCache;
use crate::file::ParquetFile;
use crate::ipc::{ArrowFile, is_arrow};
use crate::rows::RowFile;
use crate::schema::{Leaf, Meaning, Node, Physical, Repetition, Schema};
use crate::source::is_parquet;
use crate::thrift::Flaw;

/// The column that is taken where several have lists of integers: that of tokenizers of Hugging Face.
const INPUT_IDS: &str = "input_ids";

/// Opens a column of lists of integers in a Parquet file, or in an Arrow file or stream, as tokens;
/// `None` for another file. The lengths of the lists are read once, for which the column of a Parquet
/// file is decoded.
///
/// # Errors
/// [`TokensDefect::NoColumn`] if there is not one such column, none is called `input_ids`, and `options`
/// names none; [`ReadError::Rows`] for damage.
pub fn open_tokens(
    source: &Source,
    options: &TokenOptions,
) -> Result<Option<TokenFile>, ReadError> {
    let limits = ReadLimits::default();
    let file: Box<dyn ListFile> = if is_parquet(source)? {
        Box::new(ParquetFile::open(source.clone(), limits)?)
    } else if is_arrow(source)? {
        Box::new(ArrowFile::open(source.clone(), limits)?)
    } else {
        return Ok(None);
    };
    let column = column_of(file.schema(), source, options.column.as_deref())?;
    TokenFile::from_records(Box::new(ListTokens { file, column })).map(Some)
}

/// A file of rows whose lists of integers can be read.
trait ListFile: RowFile {
    fn format(&self) -> TokenFormat;

    /// Calls `add` with the length of each list; 0 for null.
    fn lengths(
        &self,
        column: &Column,
        add: &mut dyn FnMut(u32) -> Result<(), ReadError>,
    ) -> Result<(), ReadError>;

    /// Appends elements of the list in a row as they are stored, and returns whether there are as many of
    /// this type.
    fn read(
        &self,
        column: &Column,
        row: u64,
        elements: Elements,
        out: &mut Vec<u8>,
    ) -> Result<bool, ReadError>;

    /// The byte of the file that errors name for a row.
    fn offset(&self, column: &Column, row: u64) -> u64;
}

/// Successive elements of a list.
#[derive(Clone, Copy, Debug)]
struct Elements {
    first: u64,
    count: u64,
}

/// The lists of a column.
#[derive(Debug)]
struct ListTokens {
    file: Box<dyn ListFile>,
    column: Column,
}

/// A column of lists of integers.
#[derive(Clone, Debug)]
struct Column {
    name: String,
    leaf: usize,
    number: TokenType,
    /// The level of an element that is there, null or not.
    element: u8,
    /// The level of a value.
    value: u8,
}

impl Column {
    fn of(node: &Node, schema: &Schema) -> Option<Self> {
        let place = node.leaves.start;
        if !node.is_list || node.leaves.len() != 1 {
            return None;
        }
        let leaf = schema.leaf(place);
        if leaf.max_repetition != 1 {
            return None;
        }
        let number = number_of(leaf)?;
        // The only child of a list is its element, or in Parquet files a repeated group around it.
        let child = node.children.first()?;
        let is_group = child.repetition == Repetition::Repeated && !child.is_leaf();
        let element = if is_group { child.children.first()? } else { child };
        let name = node.name.clone();
        let column = Self {
            name,
            leaf: place,
            number,
            element: child.definition,
            value: leaf.max_definition,
        };
        element.is_leaf().then_some(column)
    }

    /// The bytes of a token; `None` for a number outside the type that the file states.
    fn token(&self, number: i64) -> Option<[u8; 8]> {
        let fits = match self.number {
            TokenType::I8 => i8::try_from(number).is_ok(),
            TokenType::U8 => u8::try_from(number).is_ok(),
            TokenType::I16 => i16::try_from(number).is_ok(),
            TokenType::U16 => u16::try_from(number).is_ok(),
            // Of 32 bits without a sign the upper half repeats the highest bit.
            TokenType::I32 | TokenType::U32 | TokenType::I64 | TokenType::U64 => true,
        };
        fits.then_some(number.to_le_bytes())
    }
}

fn number_of(leaf: &Leaf) -> Option<TokenType> {
    Some(match (leaf.physical, leaf.bits, leaf.meaning) {
        (Physical::Int32, 8, Meaning::Plain) => TokenType::I8,
        (Physical::Int32, 8, Meaning::Unsigned) => TokenType::U8,
        (Physical::Int32, 16, Meaning::Plain) => TokenType::I16,
        (Physical::Int32, 16, Meaning::Unsigned) => TokenType::U16,
        (Physical::Int32, _, Meaning::Plain) => TokenType::I32,
        (Physical::Int64, _, Meaning::Plain) => TokenType::I64,
        (Physical::Int32, _, Meaning::Unsigned) => TokenType::U32,
        (Physical::Int64, _, Meaning::Unsigned) => TokenType::U64,
        _ => return None,
    })
}

/// The column of tokens: the named one, or the only one of lists of integers, or that of `input_ids`.
fn column_of(schema: &Schema, source: &Source, name: Option<&str>) -> Result<Column, ReadError> {
    let found = schema.columns().iter().filter_map(|node| Column::of(node, schema));
    let mut found: Vec<Column> = found.collect();
    let name = name.or_else(|| (found.len() > 1).then_some(INPUT_IDS));
    let wanted = |column: &&Column| name.is_none_or(|name| column.name == name);
    if let &[column] = &found.iter().filter(wanted).collect::<Vec<_>>()[..] {
        return Ok(column.clone());
    }
    let found = found.drain(..).map(|column| column.name).collect();
    let defect = TokensDefect::NoColumn { name: name.map(str::to_owned), found };
    Err(ReadError::Tokens { location: source.location().clone(), offset: 0, source: defect })
}

impl ListTokens {
    fn defect(&self, row: u64, source: TokensDefect) -> ReadError {
        ReadError::Tokens { location: self.location().clone(), offset: self.offset(row), source }
    }
}

impl TokenRecords for ListTokens {
    fn location(&self) -> &Location {
        self.file.source().location()
    }

    fn format(&self) -> TokenFormat {
        self.file.format()
    }

    fn number(&self) -> TokenType {
        self.column.number
    }

    fn lengths(&self, add: &mut dyn FnMut(u32) -> Result<(), ReadError>) -> Result<(), ReadError> {
        self.file.lengths(&self.column, add)
    }

    fn read(
        &self,
        record: u64,
        first: u64,
        count: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        if record >= self.file.row_count() {
            let count = self.file.row_count();
            return Err(self
                .defect(record, TokensDefect::OutOfRange { what: "row", number: record, count }));
        }
        let before = out.len();
        let expected = usize::try_from(count).unwrap_or(usize::MAX);
        let expected = expected.saturating_mul(self.column.number.bytes());
        let is_read = self.file.read(&self.column, record, Elements { first, count }, out)?;
        if is_read && out.len() - before == expected {
            return Ok(());
        }
        let number = self.column.number.name();
        Err(self.defect(record, TokensDefect::RecordArray { record, number }))
    }

    fn block_memory(&self) -> Option<&'static dyn BlockMemory> {
        Some(PageCache::of_process())
    }

    fn offset(&self, record: u64) -> u64 {
        self.file.offset(&self.column, record)
    }
}

/// The length of the list in row `record`, which may have more elements than lengths can say.
fn length(file: &dyn ListFile, column: &Column, record: u64, count: u64) -> Result<u32, ReadError> {
    let what = "number of elements in a list";
    let too_large = RowsDefect::TooLarge { what, found: count, limit: u32::MAX.into() };
    let offset = file.offset(column, record);
    u32::try_from(count).map_err(|_| file.error(Flaw::new(offset, too_large)))
}

/// The error of a list with a null.
fn null(file: &dyn ListFile, column: &Column, record: u64) -> ReadError {
    let source = TokensDefect::RecordNull { record };
    let location = file.source().location().clone();
    ReadError::Tokens { location, offset: file.offset(column, record), source }
}
