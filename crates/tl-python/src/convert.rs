//! Whole data sets: conversion and verification.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tbl_io::{
    AsStored, Compression, ConvertEvent, ConvertOptions, ConvertSummary, Finding, Location,
    Selection, Source, Stores, Target, VerifySummary,
};
use tl_pipeline::{Dataset, TableKind};
use turboloader::{ConversionNotes, HeaderCheck, Probe, StrictDecode};

use crate::dataset::DatasetSource;
use crate::detached::{attentive, detached, interruptible};
use crate::error::Error;
use crate::files::compression_of;
use crate::remote::{DataStores, StoreSettings};
use crate::warning::warn;

/// Copies the samples of `sources` into a new TBL file, version 2 or 1, a TAR archive or a Parquet file.
///
/// ``compression`` is ``"lz4"``, ``"zstd"`` or ``"zstd:LEVEL"`` with a level of 1 to 22, for samples that
/// it makes smaller; ``lz4=True`` is the same as ``"lz4"``. Zstandard is for texts, masks and raw pixels,
/// with a dictionary where that pays; the first turboloader cannot read it.
///
/// ``progress_callback(current, total)`` is called as samples are written; what it raises ends the
/// conversion. Returns how many samples were written. Warns of odd labels and names in the sources,
/// and of data that the new file cannot store.
#[pyfunction]
#[pyo3(signature = (
    sources: "Dataset | list[str]", destination, *, to="tbl", lz4=false, overwrite=false, sync=true,
    progress_callback: "Callable[[int, int], Any] | None" = None,
    stores: "Store | None" = None, compression: "str | None" = None
))]
#[expect(clippy::too_many_arguments, reason = "Python has them by name")]
pub(crate) fn convert(
    py: Python<'_>,
    sources: DatasetSource<'_>,
    destination: PathBuf,
    to: &str,
    lz4: bool,
    overwrite: bool,
    sync: bool,
    progress_callback: Option<Py<PyAny>>,
    stores: Option<StoreSettings>,
    compression: Option<&str>,
) -> PyResult<u64> {
    let compression = compression_of(compression, lz4)?;
    if compression != Compression::None && to != "tbl" {
        return Err(Error::setting(&"compression and lz4 are for to=\"tbl\"").into());
    }
    let target = match to {
        "tbl" => Target::Tbl2(compression),
        "tbl1" => Target::Tbl1,
        "tar" => Target::Tar,
        "parquet" => tl_pipeline::parquet_target()
            .ok_or_else(|| Error::setting(&"Parquet files need the feature `arrow`"))?,
        _ => {
            let message = format!("to is {to}, expected one of tbl, tbl1, tar, parquet");
            return Err(Error::setting(&message).into());
        }
    };
    let options = ConvertOptions { sync, overwrite, ..ConvertOptions::new(target) };
    let stores = DataStores::new(&stores.unwrap_or_default())?.stores();
    let stores = stores.unpacking_for(&destination);
    let mut heard = Heard::new(progress_callback);
    let view = match sources {
        DatasetSource::Opened(dataset) => dataset.view().clone(),
        DatasetSource::Paths(paths) => interruptible(py, || -> Result<_, Error> {
            Ok(Dataset::from_sources(tbl_io::open_all_in(&stores, &paths)?)?.into())
        })??,
    };
    let dataset = view.dataset();
    if dataset.tables().next().is_some() {
        let message = "tables have rows, not samples: convert the file of a table by its path";
        return Err(Error::setting(&message).into());
    }
    let chosen: Option<Vec<u64>> =
        if view.is_whole() { None } else { Some(view.indices().map_err(Error::from)?.collect()) };
    warn_each(py, &ConversionNotes::of_sources(dataset.shards(), dataset.labels()))?;
    let mut notes = ConversionNotes::default();
    let summary = attentive(py, || -> Result<ConvertSummary, Error> {
        let all = Selection::all(dataset.shards(), dataset.labels())?;
        let selection = chosen.as_ref().map_or_else(|| all.clone(), |chosen| all.choose(chosen));
        let total = selection.sample_count();
        let mut on_event = |event: ConvertEvent<'_>| {
            notes.add(&event);
            let ConvertEvent::Written { samples, .. } = event else {
                return ControlFlow::Continue(());
            };
            heard.tell(samples, total)
        };
        let to = Location::new(&destination);
        Ok(if matches!(target, Target::Tbl2(_)) {
            tbl_io::convert_in(&stores, &selection, &to, &options, || Probe, &mut on_event)?
        } else {
            let prepare = AsStored::default;
            tbl_io::convert_in(&stores, &selection, &to, &options, prepare, &mut on_event)?
        })
    })?;
    let summary = heard.unless_raised(summary)?;
    warn_each(py, &notes.of_samples(&summary))?;
    warn_each(py, &ConversionNotes::of_destination(&destination, &summary))?;
    Ok(summary.samples)
}

pub(crate) fn warn_each(py: Python<'_>, lines: &[String]) -> PyResult<()> {
    lines.iter().try_for_each(|line| warn(py, line))
}

/// How long the interpreter is left alone when progress has no callback.
const UNHEARD: Duration = Duration::from_millis(20);

/// Tells Python how far the work is, and ends it with what is raised there: by the callback, or by
/// Ctrl-C.
pub(crate) struct Heard {
    callback: Option<Py<PyAny>>,
    told: Instant,
    raised: Option<PyErr>,
}

impl Heard {
    pub(crate) fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, told: Instant::now(), raised: None }
    }

    pub(crate) fn tell(&mut self, done: u64, total: u64) -> ControlFlow<()> {
        if self.callback.is_none() && self.told.elapsed() < UNHEARD {
            return ControlFlow::Continue(());
        }
        self.told = Instant::now();
        let told = Python::attach(|py| {
            if let Some(callback) = &self.callback {
                callback.call1(py, (done, total))?;
            }
            py.check_signals()
        });
        self.raised = told.err();
        if self.raised.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The exception that was raised, or the work's own result, which otherwise only tells that it
    /// was stopped.
    pub(crate) fn unless_raised<T>(self, result: Result<T, Error>) -> PyResult<T> {
        match self.raised {
            Some(raised) => Err(raised),
            None => Ok(result?),
        }
    }
}

/// Reads a whole data set and returns what is wrong with it: a dict of ``samples``, ``bad``, a list
/// of (sample, offset, message), ``damage``, a list of messages, and ``oddities``.
///
/// For tables, ``samples`` are rows, and all defects are in ``damage``. Encrypted regions of a
/// segment are listed as ``not_verified``, and the segment is not good.
#[pyfunction]
#[pyo3(signature = (
    path, *, decode=false, workers=None, stores: "Store | None" = None
) -> "dict[str, Any]")]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    path: PathBuf,
    decode: bool,
    workers: Option<usize>,
    stores: Option<StoreSettings>,
) -> PyResult<Bound<'py, PyDict>> {
    let stores = DataStores::new(&stores.unwrap_or_default())?.stores();
    if let Some((kind, source)) = detached(py, || table(&stores, &path))?? {
        #[cfg(feature = "tables")]
        return crate::table::verify(py, source, kind);
        #[cfg(not(feature = "tables"))]
        {
            drop(source);
            return Err(crate::no_tables::error(kind.name()).into());
        }
    }
    let workers = workers.and_then(NonZeroUsize::new);
    let workers =
        workers.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN);
    let mut bad = Vec::new();
    let mut damage = Vec::new();
    let mut oddities = Vec::new();
    let mut heard = Heard::new(None);
    let summary = detached(py, || -> Result<VerifySummary, Error> {
        let mut on_finding = |finding: Finding<'_>| {
            match finding {
                Finding::Damage { shard, reason } => damage.push(in_shard(shard, &reason)),
                Finding::BadSample { shard, index, offset, reason, .. } => {
                    bad.push((index, offset, in_shard(shard, &reason)));
                }
                Finding::Oddity { shard, oddity } => oddities.push(in_shard(shard, oddity)),
                Finding::Progress { samples, of } => return heard.tell(samples, of),
                _ => {}
            }
            ControlFlow::Continue(())
        };
        Ok(if decode {
            tbl_io::verify(&stores, &[&path], workers, StrictDecode::new, &mut on_finding)?
        } else {
            tbl_io::verify(&stores, &[&path], workers, HeaderCheck::default, &mut on_finding)?
        })
    })?;
    let summary = heard.unless_raised(summary)?;
    let result = PyDict::new(py);
    result.set_item("samples", summary.samples)?;
    result.set_item("is_good", summary.is_good())?;
    result.set_item("bad", bad)?;
    result.set_item("damage", damage)?;
    result.set_item("oddities", oddities)?;
    result.set_item("not_verified", PyList::empty(py))?;
    Ok(result)
}

/// The message of a finding, which names the shard of a data set of several.
fn in_shard(shard: Option<&Location>, message: &dyn Display) -> String {
    shard.map_or_else(|| message.to_string(), |shard| format!("{shard}: {message}"))
}

/// Whether a path or a URL is a table, and which; `None` where it stands for several files.
fn table(stores: &Stores, path: &Path) -> Result<Option<(TableKind, Source)>, Error> {
    // The reader of data sets refuses devices.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Ok(None);
    }
    let found = stores.expand(path)?;
    let [location] = &*found else { return Ok(None) };
    let Some(source) = stores.open_file(location)? else { return Ok(None) };
    Ok(TableKind::of(&source)?.map(|kind| (kind, source)))
}
