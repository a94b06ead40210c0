//! The columns of a table in batches.

use tl_pipeline::{ColumnRequest, Columns, Content, Dataset, LoaderConfig, Work};

use super::RowArgs;

/// Columns, of which those that `--columns` names are still to come.
pub(super) fn work(args: &RowArgs) -> Work {
    let features = args.features.clone();
    let label = args.label.clone();
    Work::Columns(Columns { features, label, ..Columns::default() })
}

/// Takes the columns named for numbers from the fields, where those of text and other bytes stay.
/// Without any, batches have all columns of numbers.
pub(super) fn split(mut config: LoaderConfig, dataset: &Dataset) -> LoaderConfig {
    let Work::Columns(columns) = &mut config.work else { return config };
    if config.fields.columns.is_empty() {
        return config;
    }
    let table = dataset.tables().next();
    let is_bytes = |name: &String| {
        let known = table.iter().flat_map(|table| table.columns());
        let mut known = known.filter(|column| column.name == *name);
        known.any(|column| matches!(column.content, Content::Bytes { .. }))
    };
    let (bytes, numbers): (Vec<String>, Vec<String>) =
        config.fields.columns.drain(..).partition(is_bytes);
    columns.columns = Some(numbers.into_iter().map(ColumnRequest::new).collect());
    config.fields.columns = bytes;
    config
}
