//! Opening tables by what they are.

use tbl_io::{SampleSource, Source};

use crate::error::{ColumnsError, PipelineError};
use crate::table::layout::describe;
use crate::table::{Content, IdvTable, Table, TableColumn, TableKind, TableSource, TbfTable};

/// The table that a file holds; `None` for a file that holds something else.
pub(crate) fn open(source: &Source) -> Result<Option<Box<dyn Table>>, PipelineError> {
    Ok(match TableKind::of(source)? {
        None => None,
        Some(TableKind::Idv) => Some(Box::new(IdvTable::from_source(source)?)),
        Some(TableKind::Tbf) => {
            let options = tbf_format::UnpackOptions::default();
            Some(Box::new(TbfTable::from_source(source, &options)?))
        }
    })
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
