//! Opening tables by what they are.

use std::path::Path;

use tbl_io::{SampleSource, Source};

use crate::error::{ColumnsError, PipelineError};
use crate::table::layout::describe;
use crate::table::{Content, IdvTable, Table, TableColumn, TableKind, TableSource, TbfTable};

/// The table at `path`; `None` where that is something else, or cannot be looked into.
pub(crate) fn open(path: &Path) -> Result<Option<Box<dyn Table>>, PipelineError> {
    let fault = |source| PipelineError::Table { location: path.into(), source };
    let Ok(source) = Source::open(path) else { return Ok(None) };
    let Ok(Some(kind)) = TableKind::of(&source) else { return Ok(None) };
    let table: Result<Box<dyn Table>, _> = match kind {
        TableKind::Idv => IdvTable::of(&source).map(|table| Box::new(table) as _),
        TableKind::Tbf => TbfTable::of(&source, &tbf_format::UnpackOptions::default())
            .map(|table| Box::new(table) as _),
    };
    table.map(Some).map_err(fault)
}

/// Whether sources are tables, which then have the same columns.
pub(crate) fn check(shards: &[Box<dyn SampleSource>]) -> Result<bool, ColumnsError> {
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
    let (expected, found) = (first.columns(), table.columns());
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

/// Columns that cannot be read are so for reasons of their own.
fn is_same(a: &TableColumn, b: &TableColumn) -> bool {
    let unreadable = |column: &TableColumn| matches!(column.content, Content::Unreadable { .. });
    a.name == b.name && (a.content == b.content || unreadable(a) && unreadable(b))
}
