//! Columns of lists of integers as tokens: each row is a document.

use tbl_io::{BlockMemory, Location, ParquetDefect, ReadError, ReadLimits, Source, TokensDefect};
use tl_tokens::{TokenFile, TokenFormat, TokenOptions, TokenRecords, TokenType};

use crate::cache::PageCache;
use crate::file::ParquetFile;
use crate::nested::Entry;
use crate::schema::{Leaf, Meaning, Node, Physical, Schema};
use crate::source::is_parquet;
use crate::thrift::Flaw;
use crate::values::Value;

/// Opens a column of lists of integers in a Parquet file as tokens; `None` for another file. This
/// decodes the whole column once, for the lengths of its lists.
///
/// # Errors
/// [`TokensDefect::NoColumn`] if there is not one such column, or not the one that `options` names;
/// [`ReadError::Parquet`] for damage.
pub fn open_tokens(
    source: &Source,
    options: &TokenOptions,
) -> Result<Option<TokenFile>, ReadError> {
    if !is_parquet(source)? {
        return Ok(None);
    }
    let file = ParquetFile::open(source.clone(), ReadLimits::default())?;
    let column = column_of(&file.footer().schema, source, options.column.as_deref())?;
    TokenFile::from_records(Box::new(ListTokens { file, column })).map(Some)
}

/// The lists of a column.
#[derive(Debug)]
struct ListTokens {
    file: ParquetFile,
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
        // The repeated group of a list is its only child.
        let element = node.children.first()?.definition;
        let name = node.name.clone();
        Some(Self { name, leaf: place, number, element, value: leaf.max_definition })
    }
}

fn number_of(leaf: &Leaf) -> Option<TokenType> {
    Some(match (leaf.physical, leaf.meaning) {
        (Physical::Int32, Meaning::Plain) => TokenType::I32,
        (Physical::Int64, Meaning::Plain) => TokenType::I64,
        (Physical::Int32, Meaning::Unsigned) => TokenType::U32,
        (Physical::Int64, Meaning::Unsigned) => TokenType::U64,
        _ => return None,
    })
}

/// The column of tokens: the named one, or the only one of lists of integers.
fn column_of(schema: &Schema, source: &Source, name: Option<&str>) -> Result<Column, ReadError> {
    let found = schema.columns().iter().filter_map(|node| Column::of(node, schema));
    let mut found: Vec<Column> = found.collect();
    let wanted = |column: &&Column| name.is_none_or(|name| column.name == name);
    if let &[column] = &found.iter().filter(wanted).collect::<Vec<_>>()[..] {
        return Ok(column.clone());
    }
    let found = found.drain(..).map(|column| column.name).collect();
    let defect = TokensDefect::NoColumn { name: name.map(str::to_owned), found };
    Err(ReadError::Tokens { location: source.location().clone(), offset: 0, source: defect })
}

impl ListTokens {
    /// Calls `take` with the elements of the list in row `row`: none for null.
    fn list<R>(
        &self,
        row: u64,
        take: impl FnOnce(&mut dyn Iterator<Item = Entry<'_>>) -> R,
    ) -> Result<R, ReadError> {
        let place = self.file.place(row).ok_or_else(|| self.outside(row))?;
        let (entries, first) = self.file.entries(place, self.column.leaf)?;
        let entries = entries.of_row((place.row - first) as usize, self.column.value);
        let is_element = |entry: &Entry<'_>| entry.definition >= self.column.element;
        Ok(take(&mut entries.filter(is_element)))
    }

    fn outside(&self, row: u64) -> ReadError {
        let what = "row";
        let source = TokensDefect::OutOfRange { what, number: row, count: self.file.row_count() };
        self.defect(row, source)
    }

    fn defect(&self, row: u64, source: TokensDefect) -> ReadError {
        ReadError::Tokens { location: self.location().clone(), offset: self.offset(row), source }
    }
}

impl TokenRecords for ListTokens {
    fn location(&self) -> &Location {
        self.file.source().location()
    }

    fn format(&self) -> TokenFormat {
        TokenFormat::Parquet
    }

    fn number(&self) -> TokenType {
        self.column.number
    }

    fn lengths(&self, add: &mut dyn FnMut(u32) -> Result<(), ReadError>) -> Result<(), ReadError> {
        for row in 0..self.file.row_count() {
            let (count, has_null) = self.list(row, |elements| {
                let mut has_null = false;
                let count = elements.inspect(|entry| has_null |= entry.value.is_none()).count();
                (count, has_null)
            })?;
            if has_null {
                return Err(self.defect(row, TokensDefect::RecordNull { record: row }));
            }
            let what = "number of elements in a list";
            let limit = u64::from(u32::MAX);
            let too_large = ParquetDefect::TooLarge { what, found: count as u64, limit };
            let count = u32::try_from(count);
            add(count.map_err(|_| self.file.error(Flaw::new(self.offset(row), too_large)))?)?;
        }
        Ok(())
    }

    fn read(
        &self,
        record: u64,
        first: u64,
        count: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let item = self.column.number.bytes();
        let before = out.len();
        let skipped = usize::try_from(first).unwrap_or(usize::MAX);
        let wanted = usize::try_from(count).unwrap_or(usize::MAX);
        let mut number = 0;
        self.list(record, |elements| {
            for entry in elements.skip(skipped).take(wanted) {
                let Some(Value::Integer(token)) = entry.value else { continue };
                // Of 32 bits the upper half repeats the sign.
                out.extend_from_slice(&token.to_le_bytes()[..item]);
                number += 1;
            }
        })?;
        if number == count && out.len() - before == wanted * item {
            return Ok(());
        }
        Err(self.defect(
            record,
            TokensDefect::RecordArray { record, number: self.column.number.name() },
        ))
    }

    fn block_memory(&self) -> Option<&'static dyn BlockMemory> {
        Some(PageCache::of_process())
    }

    fn offset(&self, record: u64) -> u64 {
        let group = self.file.place(record).map(|place| place.group);
        group.map_or(0, |group| self.file.chunk(group, self.column.leaf).start)
    }
}
