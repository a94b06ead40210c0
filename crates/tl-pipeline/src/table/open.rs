//! Opening tables by what they are.

use tbl_io::{ReadError, RowsDefect, SampleSource, Source, Stores};
use tl_handoff::sync::Arc;

#[cfg(not(feature = "tables"))]
use crate::error::TableError;
use crate::error::{ColumnsError, PipelineError};
#[cfg(feature = "arrow")]
use crate::table::RowTable;
#[cfg(feature = "tables")]
use crate::table::file::open as open_as;
use crate::table::layout::describe;
use crate::table::{ArrayTable, Content, Table, TableColumn, TableKind, TableSource};

/// The table that a file holds; `None` for a file that holds something else.
pub(crate) fn open(
    stores: &Stores,
    source: &Source,
) -> Result<Option<Box<dyn Table>>, PipelineError> {
    if let Some(kind) = TableKind::of(source)? {
        return open_as(kind, source).map(Some);
    }
    Ok(ArrayTable::open(stores, source)?.map(|table| Box::new(table) as _))
}

/// The table that a file is, other than an IDV file or a TBF segment: arrays, or a file of rows without
/// images. `None` for other files.
///
/// # Errors
/// A damaged table. Damaged files of samples are left to those who open them.
pub fn open_rows(
    stores: &Stores,
    source: &Source,
) -> Result<Option<Box<dyn Table>>, PipelineError> {
    if let Some(table) = ArrayTable::open(stores, source)? {
        return Ok(Some(Box::new(table)));
    }
    if !is_rows(source)? {
        return Ok(None);
    }
    match tbl_io::open_source_in(stores, source.clone()) {
        Err(error) if has_no_images(&error) => open_columns(source.clone()),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Whether a file starts as one of rows, so that no other is opened twice.
#[cfg(feature = "arrow")]
fn is_rows(source: &Source) -> Result<bool, ReadError> {
    tl_arrow::RowSource::is(source)
}

#[cfg(not(feature = "arrow"))]
fn is_rows(_: &Source) -> Result<bool, ReadError> {
    Ok(false)
}

fn has_no_images(error: &ReadError) -> bool {
    matches!(error, ReadError::Rows { source: RowsDefect::NoImages { .. }, .. })
}

#[cfg(not(feature = "tables"))]
fn open_as(kind: TableKind, source: &Source) -> Result<Box<dyn Table>, PipelineError> {
    let location = source.location().clone();
    let source = TableError::NoFeature { kind };
    Err(PipelineError::Table { location, source })
}

/// Opens a data set of samples; a file of rows that has none is a table.
pub(crate) fn open_samples(
    stores: &Stores,
    source: Source,
) -> Result<Box<dyn SampleSource>, PipelineError> {
    let kept = source.clone();
    let error = match tbl_io::open_source_in(stores, source) {
        Ok(samples) => return Ok(samples),
        Err(error) => error,
    };
    if has_no_images(&error)
        && let Some(table) = open_columns(kept)?
    {
        return Ok(Box::new(TableSource::boxed(table)));
    }
    Err(error.into())
}

/// The table that a source of samples is too: the rows of a Parquet or Arrow file. `None` for other sources.
#[cfg(feature = "arrow")]
pub(crate) fn of_samples(
    source: &dyn SampleSource,
) -> Result<Option<Box<dyn Table>>, PipelineError> {
    let source: &dyn std::any::Any = source;
    let Some(samples) = source.downcast_ref::<tl_arrow::RowSource>() else { return Ok(None) };
    Ok(Some(Box::new(RowTable::of(samples.columns()?))))
}

#[cfg(feature = "arrow")]
fn open_columns(source: Source) -> Result<Option<Box<dyn Table>>, PipelineError> {
    Ok(Some(Box::new(RowTable::from_source(source)?)))
}

#[cfg(not(feature = "arrow"))]
pub(crate) fn of_samples(_: &dyn SampleSource) -> Result<Option<Box<dyn Table>>, PipelineError> {
    Ok(None)
}

#[cfg(not(feature = "arrow"))]
fn open_columns(_: Source) -> Result<Option<Box<dyn Table>>, PipelineError> {
    Ok(None)
}

/// True if the sources are tables, which must have the same columns.
pub(crate) fn check(shards: &[Arc<dyn SampleSource>]) -> Result<bool, ColumnsError> {
    let Some(first) = shards.iter().find_map(|shard| TableSource::of(&**shard)) else {
        return Ok(false);
    };
    for shard in shards {
        let location = shard.location().clone();
        let table = TableSource::of(&**shard).ok_or(ColumnsError::NoTable { location })?;
        check_same(first, table)?;
    }
    Ok(true)
}

fn check_same(first: &dyn Table, table: &dyn Table) -> Result<(), ColumnsError> {
    let expected = first.columns();
    let found = table.columns();
    let count = expected.len().max(found.len());
    let differs = |&place: &usize| match (expected.get(place), found.get(place)) {
        (Some(expected), Some(found)) => !is_same(expected, found),
        _ => true,
    };
    let Some(column) = (0..count).find(differs) else { return Ok(()) };
    let text = |columns: &[TableColumn]| {
        columns.get(column).map_or("not there".to_owned(), |TableColumn { name, content }| {
            format!("`{}`, {}", name.escape_debug(), describe(content))
        })
    };
    Err(ColumnsError::Mismatch {
        location: table.location().clone(),
        first: first.location().clone(),
        column,
        found: text(found),
        expected: text(expected),
    })
}

/// The reasons why columns cannot be read may differ.
fn is_same(a: &TableColumn, b: &TableColumn) -> bool {
    let unreadable = |column: &TableColumn| matches!(column.content, Content::Unreadable { .. });
    a.name == b.name && (a.content == b.content || unreadable(a) && unreadable(b))
}

#[cfg(all(test, not(feature = "tables")))]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_table_names_the_feature() {
        for (front, kind) in [(&b"CML\0DVB\0"[..], "IDV"), (b"TALB", "TBF")] {
            let source = Source::from_bytes("a.bin", front.to_vec());
            let error = open(&Stores::new(), &source).unwrap_err().to_string();
            let expected = "files need the feature `tables`, which this build lacks";
            assert_eq!(error, format!("a.bin: {kind} {expected}"));
        }
    }
}
