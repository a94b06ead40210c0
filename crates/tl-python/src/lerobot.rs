//! Data sets of LeRobot.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

use std::path::PathBuf;

use pyo3::prelude::*;
use tl_pipeline::{Dataset, DatasetView, Deltas, LeRobot, LeRobotOptions, PipelineError};

use crate::dataset::PyDataset;
use crate::detached::interruptible;
use crate::error::Error;
use crate::remote::{DataStores, StoreSettings};

/// The rows that are wanted, and what they have.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LeRobotSettings {
    deltas: Vec<(String, Vec<f64>)>,
    tolerance: f64,
    episodes: Option<Vec<u64>>,
    store: Option<StoreSettings>,
}

/// Opens a data set of LeRobot. Returns the rows of its episodes, the names of their fields, and how many
/// cameras and frames of each a clip has.
#[pyfunction]
#[pyo3(signature = (
    root: "str", settings: "dict[str, Any]"
) -> "tuple[Dataset, list[str], int, int]")]
pub(crate) fn lerobot(
    py: Python<'_>,
    root: PathBuf,
    settings: LeRobotSettings,
) -> PyResult<(PyDataset, Vec<String>, u32, u32)> {
    let LeRobotSettings { deltas, tolerance, episodes, store } = settings;
    let stores = DataStores::new(&store.unwrap_or_default())?;
    let deltas = deltas.into_iter().map(|(feature, seconds)| Deltas { feature, seconds });
    let options =
        LeRobotOptions { deltas: deltas.collect(), tolerance, episodes: episodes.clone() };
    let open = || {
        let rows = LeRobot::open(&stores.stores(), &root, &options)?;
        let fields: Vec<String> = rows.fields().map(str::to_owned).collect();
        let sampling = rows.sampling();
        let wanted: Option<Vec<u64>> = episodes.as_ref().map(|episodes| {
            episodes.iter().filter_map(|one| rows.episode_rows(*one)).flatten().collect()
        });
        let view = DatasetView::from(Dataset::from_sources(vec![Box::new(rows)])?);
        let view = match wanted {
            Some(rows) => view.subset(rows)?,
            None => view,
        };
        Ok::<_, PipelineError>((view, fields, sampling))
    };
    let (view, fields, sampling) = interruptible(py, open)?.map_err(Error::from)?;
    Ok((PyDataset::new(view, stores), fields, sampling.clips, sampling.frames))
}
