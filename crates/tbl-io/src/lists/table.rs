//! Tables of text, which lists are: CSV files and JSON Lines.

use tbl_format::path::{PathDefect, check_extension};

use crate::error::ReadError;
use crate::limits::ReadLimits;
use crate::list_error::{ListDefect, ListPlace};
use crate::listed::Texts;
use crate::location::{Location, without_query};
use crate::source::Source;

use super::{csv, jsonl};

/// The most columns of a table: each has buffers of its own, however short it is.
pub(super) const MAX_COLUMNS: usize = 10_000;

/// The mark that editors on Windows write in front of UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A text without the mark that some editors write first.
pub(super) fn without_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableFormat {
    /// Comma-separated values (RFC 4180).
    Csv,
    /// The same with tabs instead of commas.
    Tsv,
    /// An object of JSON per line.
    Jsonl,
}

impl TableFormat {
    /// The format by the extension of the file's name.
    pub(crate) fn of(location: &Location) -> Option<Self> {
        let name = location.url().map_or(location.clone(), |url| without_query(url).into());
        let extension = name.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Some(Self::Csv),
            "tsv" => Some(Self::Tsv),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            _ => None,
        }
    }
}

/// Rows of named columns. The name of a column may be empty, as pandas writes it for an index.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) names: Vec<String>,
    /// By column, the text of each row.
    pub(crate) columns: Vec<Texts>,
    /// The line in which each row starts, from 1.
    pub(crate) lines: Vec<u32>,
}

/// An error of a parser, which does not know the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Defect { place: ListPlace, source: ListDefect },
    Limit { what: &'static str, limit: u64, need: u64 },
}

impl Fault {
    pub(super) fn at(place: ListPlace, source: ListDefect) -> Self {
        Self::Defect { place, source }
    }

    pub(super) fn in_file(self, location: &Location) -> ReadError {
        match self {
            Self::Defect { place, source } => source.at(location, place),
            Self::Limit { what, limit, need } => {
                ReadError::Limit { location: location.clone(), what, limit, need }
            }
        }
    }
}

impl Table {
    /// Reads a file as a whole. It must not be larger than a sample may be.
    pub(crate) fn read(
        source: &Source,
        format: TableFormat,
        limits: &ReadLimits,
    ) -> Result<Self, ReadError> {
        let location = source.location();
        let mut bytes = Vec::new();
        limits.read_whole(source, &mut bytes)?;
        Self::parse(&bytes, format, limits).map_err(|fault| fault.in_file(location))
    }

    pub(super) fn parse(
        bytes: &[u8],
        format: TableFormat,
        limits: &ReadLimits,
    ) -> Result<Self, Fault> {
        let text = without_byte_order_mark(bytes);
        let mut table = match format {
            TableFormat::Csv => csv::parse(text, b',', limits),
            TableFormat::Tsv => csv::parse(text, b'\t', limits),
            TableFormat::Jsonl => jsonl::parse(text, limits),
        }?;
        table.columns.iter_mut().for_each(Texts::shrink_to_fit);
        Ok(table)
    }

    pub(crate) fn rows(&self) -> usize {
        self.lines.len()
    }

    /// The line of a row, for messages.
    pub(crate) fn line(&self, row: usize) -> u64 {
        self.lines.get(row).copied().unwrap_or(0).into()
    }

    /// The place of column `name`.
    pub(crate) fn find(&self, name: &str) -> Result<usize, ListDefect> {
        let found = self.names.iter().position(|column| column == name);
        found.ok_or_else(|| self.no_column(name))
    }

    fn no_column(&self, name: &str) -> ListDefect {
        ListDefect::NoColumn { name: name.to_owned(), columns: self.names.clone() }
    }

    /// Adds a column, which all rows lack so far.
    pub(super) fn add_column(
        &mut self,
        name: &[u8],
        line: u64,
        limits: &ReadLimits,
    ) -> Result<usize, Fault> {
        let at = self.columns.len();
        if at == MAX_COLUMNS {
            let limit = MAX_COLUMNS as u64;
            return Err(Fault::Limit { what: "columns of the list", limit, need: limit + 1 });
        }
        let name = str::from_utf8(name).map_err(|_| {
            let source = PathDefect::NotUtf8;
            Fault::at(ListPlace::line(line), ListDefect::ColumnName { source })
        })?;
        check_extension(name.as_bytes()).map_err(|source| {
            Fault::at(ListPlace::cell(line, name), ListDefect::ColumnName { source })
        })?;
        check_cells(self.rows(), at + 1, limits)?;
        let mut texts = Texts::default();
        for _ in 0..self.rows() {
            texts.push(None).map_err(|_| too_many_texts())?;
        }
        self.names.push(name.to_owned());
        self.columns.push(texts);
        Ok(at)
    }

    /// Adds the text of a row to a column.
    pub(super) fn push(&mut self, column: usize, text: Option<&[u8]>) -> Result<(), Fault> {
        let Some(texts) = self.columns.get_mut(column) else { return Ok(()) };
        texts.push(text).map_err(|_| too_many_texts())
    }

    /// Fails before there are more cells than the limits allow bytes for.
    pub(super) fn check_cells(&self, rows: usize, limits: &ReadLimits) -> Result<(), Fault> {
        check_cells(rows, self.columns.len(), limits)
    }
}

fn check_cells(rows: usize, columns: usize, limits: &ReadLimits) -> Result<(), Fault> {
    let bytes = size_of::<u32>() as u64 + 1;
    let need = (rows as u64).saturating_mul(columns as u64).saturating_mul(bytes);
    let limit = limits.sample_bytes.saturating_mul(MAX_GROWTH);
    if need > limit {
        return Err(Fault::Limit { what: "bytes for the cells of the list", limit, need });
    }
    Ok(())
}

/// How much larger than a file its table may be: a cell of one character takes two bytes there and
/// six here.
const MAX_GROWTH: u64 = 3;

fn too_many_texts() -> Fault {
    let limit = u64::from(u32::MAX);
    Fault::Limit { what: "bytes or rows of a column", limit, need: limit + 1 }
}
