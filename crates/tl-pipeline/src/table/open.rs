//! Opening tables by what they are.

use std::path::Path;

use tbl_io::{SampleSource, Source};

use crate::error::{ColumnsError, PipelineError};
use crate::table::layout::describe;
use crate::table::{Content, IdvTable, Table, TableColumn, TableSource, TbfTable};

/// What tables start with.
const MAGIC_BYTES: usize = 8;

/// The table at `path`; `None` where that is something else, or cannot be looked into.
pub(crate) fn open(path: &Path) -> Result<Option<Box<dyn Table>>, PipelineError> {
    let fault = |source| PipelineError::Table { path: path.to_path_buf(), source };
    let Ok(source) = Source::open(path) else { return Ok(None) };
    let mut magic = [0; MAGIC_BYTES];
    let front = usize::try_from(source.len()).unwrap_or(MAGIC_BYTES).min(MAGIC_BYTES);
    let front = &mut magic[..front];
    if source.read_exact_at(0, front).is_err() {
        return Ok(None);
    }
    // A file that starts as none is damaged where its name says that it is one, and not where it is
    // a data set of samples.
    let extension = path.extension().filter(|_| !front.starts_with(b"TBL"));
    let is_named = |name| extension.is_some_and(|extension| extension.eq_ignore_ascii_case(name));
    let (is_idv, is_tbf) = (*front == idv_format::Header::MAGIC[..], tbf_format::sniff(front));
    if is_idv || is_named("idv") && !is_tbf {
        return IdvTable::of(&source).map(|table| Some(Box::new(table) as _)).map_err(fault);
    }
    if is_tbf || is_named("tbf") {
        return TbfTable::of(&source, &tbf_format::UnpackOptions::default())
            .map(|table| Some(Box::new(table) as _))
            .map_err(fault);
    }
    Ok(None)
}

/// Whether sources are tables, which then have the same columns.
pub(crate) fn check(shards: &[Box<dyn SampleSource>]) -> Result<bool, ColumnsError> {
    let Some(first) = shards.iter().find_map(|shard| TableSource::of(&**shard)) else {
        return Ok(false);
    };
    for shard in shards {
        let path = shard.path().to_path_buf();
        let table = TableSource::of(&**shard).ok_or(ColumnsError::NoTable { path })?;
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
        path: table.path().to_path_buf(),
        first: first.path().to_path_buf(),
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
