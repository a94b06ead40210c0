//! An IDV file, and its rows one after the other.

use std::ops::Range;
use std::path::{Path, PathBuf};

use idv_format::{Block, Column, Dead, IdvFile, ReadError, Scratch, Values, parse_lookup_table};
use tbl_io::Source;
use tl_pipeline::IdvBytes;

use super::failure::TableFailure;
use crate::failure::{DamagedParts, Failure};
use crate::output;
use crate::table::Cell;
use crate::text::one_line;

/// An open IDV file.
#[derive(Debug)]
pub(crate) struct IdvTable {
    path: PathBuf,
    source: Source,
    file: IdvFile<IdvBytes>,
}

impl IdvTable {
    /// Opens the file.
    pub(crate) fn open(path: &Path, source: Source) -> Result<Self, Failure> {
        let failure = |source| TableFailure::Idv { path: path.to_owned(), source };
        let file = IdvFile::open(IdvBytes::new(source.clone())).map_err(failure)?;
        Ok(Self { path: path.to_owned(), source, file })
    }

    /// The path given to [`open`](Self::open).
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file.
    pub(crate) fn file(&self) -> &IdvFile<IdvBytes> {
        &self.file
    }

    /// The file's length.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.source.len()
    }

    /// The blocks of a column, whether or not its values can be read.
    pub(crate) fn blocks(&self, column: usize) -> Result<Vec<Block>, ReadError> {
        let count = self.file.columns().len();
        let no_column = ReadError::NoColumn { index: column, count };
        let entry = self.file.columns().get(column).ok_or(no_column)?;
        let range = entry.lookup_range(self.file.row_count());
        let size = range.end - range.start;
        let mut table = Vec::new();
        self.source.read_range_into(range.start, size, &mut table).map_err(|error| {
            ReadError::Io { offset: range.start, bytes: size, source: IdvBytes::io_error(error) }
        })?;
        Ok(parse_lookup_table(&table, range.start, self.file.header())?)
    }

    /// The error of reading the file.
    pub(crate) fn failure(&self, source: ReadError) -> Failure {
        TableFailure::Idv { path: self.path.clone(), source }.into()
    }

    /// The reason why a column's values cannot be read, `None` when they can.
    pub(crate) fn dead(&self, column: usize) -> Option<Dead> {
        self.file.columns().get(column)?.storage.known().err()
    }

    /// The numbers of the columns to show: those named, of columns of one name the last, which is
    /// the one that ML.NET sees; or all that can be read, in which case the others are named on
    /// standard error.
    pub(crate) fn choose(&self, names: Option<&[String]>) -> Result<Vec<usize>, Failure> {
        if let Some(names) = names {
            let find = |name: &String| {
                let path = self.path.clone();
                let name = name.clone();
                self.file.find(&name).ok_or_else(|| TableFailure::NoColumn { path, name }.into())
            };
            return names.iter().map(find).collect();
        }
        let entries = self.file.columns();
        let mut chosen = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            if self.file.find(&entry.name) != Some(index) {
                output::note(&format_args!(
                    "{}: column {index} is left out: a later one is also called {:?}",
                    self.path.display(),
                    entry.name
                ));
            } else if let Some(dead) = self.dead(index) {
                output::note(&format_args!(
                    "{}: column {:?} is left out: {dead}",
                    self.path.display(),
                    entry.name
                ));
            } else {
                chosen.push(index);
            }
        }
        Ok(chosen)
    }

    /// The rows of some columns.
    pub(crate) fn rows(&self, columns: &[usize]) -> Result<Rows<'_>, Failure> {
        let open = |&index: &usize| {
            let column = self.file.column(index).map_err(|error| self.failure(error))?;
            Ok(RowColumn { column, scratch: Scratch::new(), block: None })
        };
        let columns = columns.iter().map(open).collect::<Result<_, Failure>>()?;
        Ok(Rows { table: self, columns, damaged: DamagedParts::default() })
    }
}

/// Some columns, of which rows are read in their order. A block of each is in memory.
#[derive(Debug)]
pub(crate) struct Rows<'t> {
    table: &'t IdvTable,
    columns: Vec<RowColumn<'t>>,
    damaged: DamagedParts,
}

#[derive(Debug)]
struct RowColumn<'t> {
    column: Column<'t, IdvBytes>,
    scratch: Scratch,
    block: Option<RowBlock>,
}

/// A block that was read, in vain or not.
#[derive(Debug)]
struct RowBlock {
    rows: Range<u64>,
    /// Or what is wrong with it.
    values: Result<Values<'static>, String>,
}

/// Rows that cannot be read, because a block of some column is damaged.
#[derive(Clone, Debug)]
pub(crate) struct BadRows<'r> {
    /// The requested row, and all after it to the end of the block.
    pub(crate) rows: Range<u64>,
    /// The defect.
    pub(crate) error: &'r str,
}

impl Rows<'_> {
    /// The names of the columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.column.entry().name.as_str())
    }

    /// The storage of the columns' values.
    pub(crate) fn codecs(&self) -> impl Iterator<Item = &idv_format::Codec> {
        self.columns.iter().map(|column| column.column.codec())
    }

    /// One cell for each column of a row; or, where a block is damaged, what is wrong with it.
    ///
    /// # Errors
    /// When the system is at fault.
    pub(crate) fn read(&mut self, row: u64) -> Result<Result<Vec<Cell<'_>>, BadRows<'_>>, Failure> {
        let mut bad = None;
        for (number, column) in self.columns.iter_mut().enumerate() {
            if column.block.as_ref().is_none_or(|block| !block.rows.contains(&row)) {
                column.load(row).or_else(|error| {
                    let failure = self.table.failure(error);
                    let message = one_line(&failure);
                    self.damaged.note_if_damage(failure)?;
                    column.fail(row, message);
                    Ok::<_, Failure>(())
                })?;
            }
            if column.block.as_ref().is_some_and(|block| block.values.is_err()) {
                bad.get_or_insert(number);
            }
        }
        let bad = bad.and_then(|bad| self.columns.get(bad)?.block.as_ref());
        if let Some(RowBlock { rows, values: Err(error) }) = bad {
            let rows = row..rows.end;
            self.damaged.count_more(rows.end - rows.start);
            return Ok(Err(BadRows { rows, error }));
        }
        let cells = self.columns.iter().filter_map(|column| {
            let block = column.block.as_ref()?;
            let values = block.values.as_ref().ok()?;
            // A block in memory has fewer rows than `usize` counts.
            let index = usize::try_from(row - block.rows.start).ok()?;
            Some(Cell::new(column.column.codec(), values, index))
        });
        Ok(Ok(cells.collect()))
    }

    /// The rows that could not be read.
    pub(crate) fn into_damaged(self) -> DamagedParts {
        self.damaged
    }
}

impl RowColumn<'_> {
    fn load(&mut self, row: u64) -> Result<(), ReadError> {
        let (block, rows) = self.place(row);
        let values = self.column.read_block(block, &mut self.scratch)?.into_owned();
        self.block = Some(RowBlock { rows, values: Ok(values) });
        Ok(())
    }

    fn fail(&mut self, row: u64, message: String) {
        let (_, rows) = self.place(row);
        self.block = Some(RowBlock { rows, values: Err(message) });
    }

    fn place(&self, row: u64) -> (u64, Range<u64>) {
        let block = row / self.column.entry().rows_per_block.max(1);
        (block, self.column.block_rows(block))
    }
}
