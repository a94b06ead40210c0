//! Tables that commands know by their columns alone: Parquet files without images, and arrays.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tbl_io::Source;
use tl_pipeline::{
    ColumnType, ColumnValues, Content, Meaning, PipelineError, RowValues, Table, TableError,
};

use crate::args::GlobalArgs;
use crate::failure::Failure;
use crate::info::counts::row as line;
use crate::table::TableFailure;
use crate::text::{Hex, json_text, printable};

/// A file that is a table of columns.
#[derive(Debug)]
pub(crate) struct RowTable {
    path: PathBuf,
    table: Box<dyn Table>,
    bytes: u64,
}

impl RowTable {
    /// Opens the table that the file `source` of this path is; `None` for other files.
    pub(crate) fn open(
        global: &GlobalArgs,
        path: &Path,
        source: &Source,
    ) -> Result<Option<Self>, Failure> {
        let opened = tl_pipeline::open_rows(&global.stores(), source)?;
        let path = path.to_owned();
        Ok(opened.map(|table| Self { path, bytes: table.bytes().unwrap_or(source.len()), table }))
    }

    /// The name of its format.
    pub(crate) fn format(&self) -> &'static str {
        self.table.format()
    }

    /// Bytes of the file, or of the numbers in several ones.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn row_count(&self) -> u64 {
        self.table.row_count()
    }

    /// The name of a column.
    pub(crate) fn name(&self, column: usize) -> &str {
        self.table.columns().get(column).map_or("", |column| &column.name)
    }

    /// How many columns there are.
    pub(crate) fn column_count(&self) -> usize {
        self.table.columns().len()
    }

    /// The content of a column in words, such as `f32 2x3`.
    pub(crate) fn content(&self, column: usize) -> String {
        self.table.columns().get(column).map_or_else(String::new, |column| words(&column.content))
    }

    /// The reason why a column cannot be read.
    pub(crate) fn unreadable(&self, column: usize) -> Option<&str> {
        match &self.table.columns().get(column)?.content {
            Content::Unreadable { reason } => Some(reason),
            Content::Numbers { .. } | Content::Bytes { .. } | _ => None,
        }
    }

    /// The columns of these names, or all that can be read.
    pub(crate) fn choose(&self, names: Option<&[String]>) -> Result<Vec<usize>, Failure> {
        let Some(names) = names else {
            return Ok((0..self.column_count())
                .filter(|&at| self.unreadable(at).is_none())
                .collect());
        };
        let columns = self.table.columns();
        let place = |name: &String| {
            let found = columns.iter().rposition(|column| column.name == *name);
            let path = self.path.clone();
            found.ok_or_else(|| TableFailure::NoColumn { path, name: name.clone() }.into())
        };
        names.iter().map(place).collect()
    }

    /// Fails for a row that does not exist.
    pub(crate) fn require(&self, row: u64) -> Result<(), Failure> {
        let count = self.row_count();
        if row < count {
            return Ok(());
        }
        Err(TableFailure::NoRow { path: self.path.clone(), row, count }.into())
    }

    /// A reader of these columns.
    pub(crate) fn rows(&self, columns: &[usize]) -> Result<Rows<'_>, Failure> {
        let values = |&column: &usize| {
            let content = self.table.columns().get(column).map(|column| &column.content);
            let content = content.ok_or_else(|| self.failure(missing(column)))?;
            if let Content::Unreadable { reason } = content {
                let reason =
                    format!("column {}: {reason}", printable(self.name(column).as_bytes()));
                return Err(Failure::data(format_args!("{}: {reason}", self.table.location())));
            }
            let values = self.table.values(column).map_err(|error| self.failure(error))?;
            Ok(ColumnReader { column, content, values, block: None })
        };
        let columns = columns.iter().map(values).collect::<Result<_, _>>()?;
        Ok(Rows { table: self, columns, bytes: Vec::new() })
    }

    fn failure(&self, source: TableError) -> Failure {
        PipelineError::Table { location: self.table.location().clone(), source }.into()
    }

    /// Checks what the values of a column do not show: checksums of their file.
    pub(crate) fn verify(&self, column: usize) -> Result<(), Failure> {
        self.table.verify(column).map_err(|error| self.failure(error))
    }

    /// The hash of all values of a column, whatever the blocks they are in.
    pub(crate) fn hash(&self, column: usize, on_row: &mut dyn FnMut(u64)) -> Result<Hex, Failure> {
        let mut rows = self.rows(&[column])?;
        let mut hash = Sha256::new();
        let content = &self.table.columns()[column].content;
        // Billions of rows without numbers are as long as none.
        let is_empty = matches!(content, Content::Numbers { shape, .. } if shape.contains(&0));
        let count = if is_empty { self.row_count().min(1) } else { self.row_count() };
        for row in 0..count {
            let is_there = rows.read(0, row)?;
            if matches!(content, Content::Bytes { .. }) {
                let length = if is_there { rows.bytes.len() as u64 } else { u64::MAX };
                hash.update(length.to_le_bytes());
            }
            hash.update(&rows.bytes);
            on_row(row + 1);
        }
        Ok(Hex(hash.finalize().into()))
    }
}

/// A column and the block that was read last.
struct ColumnReader<'t> {
    column: usize,
    content: &'t Content,
    values: ColumnValues,
    block: Option<(u64, Arc<dyn RowValues>)>,
}

/// A reader of rows.
pub(crate) struct Rows<'t> {
    table: &'t RowTable,
    columns: Vec<ColumnReader<'t>>,
    /// The value that was read last: little-endian numbers, or bytes.
    bytes: Vec<u8>,
}

impl Rows<'_> {
    /// The values of a row, by column.
    pub(crate) fn values(&mut self, row: u64) -> Result<Vec<Value>, Failure> {
        let mut values = Vec::with_capacity(self.columns.len());
        for at in 0..self.columns.len() {
            let is_there = self.read(at, row)?;
            let content = self.columns[at].content;
            values.push(if is_there { value(content, &self.bytes) } else { Value::Null });
        }
        Ok(values)
    }

    /// Reads the value of column number `at` of this reader; false for missing bytes.
    fn read(&mut self, at: usize, row: u64) -> Result<bool, Failure> {
        let Self { table, columns, bytes } = self;
        let ColumnReader { column, content, values, block } = &mut columns[at];
        let mut read = || -> Result<bool, TableError> {
            let (values, row) = match values {
                ColumnValues::Whole(values) => (Arc::clone(values), row),
                ColumnValues::Blocks { rows, .. } => {
                    let number = row / *rows;
                    let known = block.take().filter(|(known, _)| *known == number);
                    let known = match known {
                        Some(known) => known,
                        None => (number, table.table.load(*column, number)?),
                    };
                    (Arc::clone(&block.insert(known).1), row % *rows)
                }
                _ => return Err(missing(*column)),
            };
            bytes.clear();
            let Content::Numbers { number, shape, .. } = content else {
                return values.append_bytes(row, bytes);
            };
            bytes.resize(number.bytes() * shape.iter().product::<usize>(), 0);
            values.write(row, bytes)?;
            if cfg!(target_endian = "big") {
                bytes.chunks_exact_mut(number.bytes()).for_each(<[u8]>::reverse);
            }
            Ok(true)
        };
        read()
            .and_then(|found| table.table.check().map(|()| found).map_err(TableError::from))
            .map_err(|error| table.failure(error))
    }
}

fn missing(column: usize) -> TableError {
    TableError::OutOfRange { what: "column", number: column as u64 }
}

/// A value as JSON. Numbers that JSON does not have, and those that stand for nulls, are null.
fn value(content: &Content, bytes: &[u8]) -> Value {
    let Content::Numbers { number, shape, meaning } = content else {
        return json!(json_text(bytes));
    };
    let numbers = bytes.chunks_exact(number.bytes()).map(|bytes| scalar(*number, *meaning, bytes));
    nested(shape, &numbers.collect::<Vec<_>>())
}

/// Numbers as lists of these dimensions.
fn nested(shape: &[usize], numbers: &[Value]) -> Value {
    match shape {
        [] => numbers.first().cloned().unwrap_or(Value::Null),
        [_, rest @ ..] => {
            let size = rest.iter().product::<usize>().max(1);
            Value::Array(numbers.chunks(size).map(|part| nested(rest, part)).collect())
        }
    }
}

fn scalar(number: ColumnType, meaning: Meaning, bytes: &[u8]) -> Value {
    macro_rules! number {
        ($number:ty) => {
            bytes.try_into().map(<$number>::from_le_bytes)
        };
    }
    macro_rules! integer {
        ($number:ty) => {
            match number!($number) {
                Ok(<$number>::MIN) if meaning == Meaning::LeastIsMissing => Value::Null,
                Ok(number) => json!(number),
                Err(_) => Value::Null,
            }
        };
    }
    match number {
        ColumnType::Bool => json!(bytes != [0]),
        ColumnType::U8 if meaning == Meaning::TwoIsMissing => match bytes {
            [flag @ (0 | 1)] => json!(*flag == 1),
            _ => Value::Null,
        },
        ColumnType::U8 => json!(number!(u8).ok()),
        ColumnType::U16 => json!(number!(u16).ok()),
        ColumnType::U32 => json!(number!(u32).ok()),
        ColumnType::U64 => json!(number!(u64).ok()),
        ColumnType::I8 => integer!(i8),
        ColumnType::I16 => integer!(i16),
        ColumnType::I32 => integer!(i32),
        ColumnType::I64 => integer!(i64),
        ColumnType::F16 => json!(number!(u16).ok().map(half)),
        ColumnType::Bf16 => {
            json!(number!(u16).ok().map(|bits| short(f32::from_bits(u32::from(bits) << 16))))
        }
        ColumnType::F32 => json!(number!(f32).ok().map(short)),
        ColumnType::F64 => json!(number!(f64).ok()),
    }
}

/// The double with the shortest digits of the narrow number.
fn short(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::NAN)
}

/// A float of 16 bits.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let fraction = f64::from(bits & 0x3ff);
    sign * match bits >> 10 & 0x1f {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * 2_f64.powi(i32::from(exponent) - 25),
    }
}

fn words(content: &Content) -> String {
    match content {
        Content::Numbers { number, shape, .. } if shape.is_empty() => number.name().to_owned(),
        Content::Numbers { number, shape, .. } => {
            let sides: Vec<String> = shape.iter().map(usize::to_string).collect();
            format!("{} {}", number.name(), sides.join("x"))
        }
        Content::Bytes { what } => (*what).to_owned(),
        Content::Unreadable { reason } => format!("unreadable: {reason}"),
        _ => String::new(),
    }
}

/// The output of `tl info`.
#[derive(Debug, Serialize)]
pub(crate) struct RowFacts {
    schema: &'static str,
    path: String,
    kind: &'static str,
    rows: u64,
    file_bytes: u64,
    columns: Vec<ColumnFacts>,
}

#[derive(Debug, Serialize)]
struct ColumnFacts {
    name: String,
    content: String,
    /// `null` if it can be read.
    unreadable: Option<String>,
}

impl RowFacts {
    pub(crate) fn of(table: &RowTable) -> Self {
        let facts = |at| ColumnFacts {
            name: table.name(at).to_owned(),
            content: table.content(at),
            unreadable: table.unreadable(at).map(str::to_owned),
        };
        Self {
            schema: "tl.info.rows/1",
            path: table.path.to_string_lossy().into_owned(),
            kind: table.format(),
            rows: table.row_count(),
            file_bytes: table.bytes(),
            columns: (0..table.column_count()).map(facts).collect(),
        }
    }
}

impl fmt::Display for RowFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<12} {}", "path", printable(self.path.as_bytes()))?;
        line(f, "kind", self.kind)?;
        line(f, "rows", self.rows)?;
        line(f, "bytes", self.file_bytes)?;
        let widths = self.columns.iter().map(|column| column.name.chars().count());
        let width = widths.max().unwrap_or(0);
        for (at, ColumnFacts { name, content, .. }) in self.columns.iter().enumerate() {
            let name = printable(name.as_bytes());
            line(
                f,
                if at == 0 { "columns" } else { "" },
                format_args!("{name:<width$}  {content}"),
            )?;
        }
        Ok(())
    }
}
