//! The columns of a table in batches.

use tl_pipeline::{ColumnRequest, Columns, Content, Dataset, Work};

use super::RowArgs;

/// Columns of the kind that `dataset` has under the names of `--columns`: numbers, or texts and other
/// bytes, which are fields. Without any, batches have all columns of numbers.
pub(super) fn work(args: &RowArgs, dataset: &Dataset) -> (Work, Vec<String>) {
    // The loader reports rows that cannot be tables.
    let rows = dataset.as_tables().ok().flatten();
    let table = rows.as_ref().unwrap_or(dataset).tables().next();
    let is_bytes = |name: &String| {
        let known = table.iter().flat_map(|table| table.columns());
        let mut known = known.filter(|column| column.name == *name);
        known.any(|column| matches!(column.content, Content::Bytes { .. }))
    };
    let requested = args.columns.as_deref().unwrap_or_default().iter().cloned();
    let (bytes, numbers): (Vec<String>, Vec<String>) = requested.partition(is_bytes);
    let numbers = numbers.into_iter().map(ColumnRequest::new).collect();
    let columns = args.columns.is_some().then_some(numbers);
    let features = args.features.clone();
    let label = args.label.clone();
    (Work::Columns(Columns { columns, features, label, ..Columns::default() }), bytes)
}
