//! Arrow tables of other libraries as data sets: files by path, and tables in memory as streams.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use tbl_io::{Location, ReadError, RowsDefect, SampleSource, Source, allow_open_files};
use tl_arrow::{RowOptions, RowSource};
use tl_pipeline::{Dataset, PipelineError, RowTable, TableSource};

use crate::dataset::PyDataset;
use crate::detached::interruptible;
use crate::error::Error;
use crate::remote::{DataStores, StoreSettings};

/// An Arrow file, or a stream in memory with a name for messages, and its columns with their names in
/// the data set.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct StoredTable {
    path: PathBuf,
    data: Option<PyBackedBytes>,
    columns: Vec<(String, String)>,
}

/// The use of columns, and the folder that paths of images are relative to.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RowSettings {
    features: String,
    image: Option<String>,
    label: Option<String>,
    folder: PathBuf,
}

/// Opens the rows of tables, one table after the other, and returns the number of the first row of each
/// too. Paths of images may lead anywhere. Rows without images are those of tables here too.
#[pyfunction]
#[pyo3(signature = (
    tables: "list[dict[str, Any]]", settings: "dict[str, Any]"
) -> "tuple[Dataset, list[int]]")]
pub(crate) fn rows(
    py: Python<'_>,
    tables: Vec<StoredTable>,
    settings: RowSettings,
) -> PyResult<(PyDataset, Vec<u64>)> {
    let stores = DataStores::new(&StoreSettings::default())?;
    let RowSettings { features, image, label, folder } = settings;
    let options = RowOptions {
        image,
        label,
        features: Some(features),
        folder: Some(Location::new(folder)),
        root: Some(Location::new("/")),
        ..RowOptions::default()
    };
    let open = |StoredTable { path, data, columns }: StoredTable| {
        let source = match data {
            Some(data) => Source::from_bytes(&path, data.to_vec()),
            None => Source::open(&path)?,
        };
        let options = RowOptions { columns: Some(columns), ..options.clone() };
        let kept = source.clone();
        let opened: Box<dyn SampleSource> =
            match RowSource::open_with(&stores.stores(), source, &options) {
                Ok(rows) => Box::new(rows),
                Err(ReadError::Rows { source: RowsDefect::NoImages { .. }, .. }) => {
                    Box::new(TableSource::new(RowTable::open_with(kept, &options)?))
                }
                Err(error) => return Err(error.into()),
            };
        Ok::<_, PipelineError>(opened)
    };
    let open_all = || {
        allow_open_files(tables.len());
        let sources = tables.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let dataset = Dataset::from_sources(sources)?;
        match &options.label {
            Some(label) if dataset.tables().next().is_some() => dataset.with_labels_of(label),
            Some(_) | None => Ok(dataset),
        }
    };
    let dataset = interruptible(py, open_all)?.map_err(Error::from)?;
    let samples = (0..dataset.shards().len()).filter_map(|source| dataset.shard_samples(source));
    let starts = samples.map(|samples| samples.start).collect();
    Ok((PyDataset::new(dataset.into(), stores), starts))
}
