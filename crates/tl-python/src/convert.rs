//! Whole data sets: conversion and verification.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tbl_io::{
    AsStored, Compression, ConvertEvent, ConvertOptions, ConvertSummary, Entry, Finding, Labels,
    Prepare, Prepared, Selection, Source, Target, VerifySummary,
};
use turboloader::{Probe, StrictDecode, TableConversion};

use crate::error::Error;
use crate::idv::PyIdvFile;
use crate::tbf::PyTbfSegment;

/// Copies all samples of `sources` into a new TBL file, version 2 or 1, or a TAR archive.
///
/// ``progress_callback(current, total)`` is called as samples are written; what it raises ends the
/// conversion. Returns how many samples were written.
#[pyfunction]
#[pyo3(signature = (
    sources, destination, *, to="tbl", lz4=false, overwrite=false, sync=true,
    progress_callback=None
))]
#[expect(clippy::too_many_arguments, reason = "Python has them by name")]
pub(crate) fn convert(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    destination: PathBuf,
    to: &str,
    lz4: bool,
    overwrite: bool,
    sync: bool,
    progress_callback: Option<Py<PyAny>>,
) -> PyResult<u64> {
    let compression = if lz4 { Compression::Lz4 } else { Compression::None };
    let target = match to {
        "tbl" => Target::Tbl2(compression),
        "tbl1" => Target::Tbl1,
        "tar" => Target::Tar,
        _ => {
            let message = format!("to is {to}, none of tbl, tbl1 and tar");
            return Err(Error::setting(&message).into());
        }
    };
    let options = ConvertOptions { sync, overwrite, ..ConvertOptions::new(target) };
    let mut raised = None;
    let stopped = AtomicBool::new(false);
    let summary = py.detach(|| -> Result<ConvertSummary, Error> {
        let sources = tbl_io::open_all(&sources)?;
        let labels = Labels::resolve(&sources)?;
        let selection = Selection::all(&sources, &labels)?;
        let mut progress =
            Progress { total: selection.sample_count(), callback: progress_callback };
        let mut on_event = |event: ConvertEvent<'_>| {
            if let (ConvertEvent::Written { samples, .. }, None) = (event, &raised) {
                raised = progress.tell(samples).err();
                stopped.store(raised.is_some(), Ordering::Relaxed);
            }
        };
        let to = destination.as_path();
        let stopped = &stopped;
        Ok(if matches!(target, Target::Tbl2(_)) {
            let prepare = || Stoppable { prepare: Probe, stopped };
            tbl_io::convert(&selection, to, &options, prepare, &mut on_event)?
        } else {
            let prepare = || Stoppable { prepare: AsStored, stopped };
            tbl_io::convert(&selection, to, &options, prepare, &mut on_event)?
        })
    });
    match raised {
        // The conversion's own error only says that it was stopped.
        Some(raised) => Err(raised),
        None => Ok(summary?.samples),
    }
}

/// Prepares samples until the conversion is to end, and refuses them from then on.
struct Stoppable<'a, P> {
    prepare: P,
    stopped: &'a AtomicBool,
}

impl<P: Prepare> Prepare for Stoppable<'_, P> {
    const COSTLY: bool = P::COSTLY;

    fn prepare(
        &mut self,
        entry: &Entry<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<Prepared, Box<dyn std::error::Error + Send + Sync>> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err("the conversion was stopped".into());
        }
        self.prepare.prepare(entry, bytes)
    }
}

/// Samples between two calls of the interpreter where nobody wants to hear of progress.
const SAMPLES_UNHEARD: u64 = 256;

/// Who hears how far a conversion is.
struct Progress {
    total: u64,
    callback: Option<Py<PyAny>>,
}

impl Progress {
    fn tell(&mut self, samples: u64) -> PyResult<()> {
        match &self.callback {
            Some(callback) => Python::attach(|py| {
                callback.call1(py, (samples, self.total))?;
                py.check_signals()
            }),
            None if samples.is_multiple_of(SAMPLES_UNHEARD) => {
                Python::attach(|py| py.check_signals())
            }
            None => Ok(()),
        }
    }
}

/// Reads a whole data set and returns what is wrong with it: a dict of ``samples``, ``bad``, a list
/// of (sample, offset, message), ``damage``, a list of messages, and ``oddities``.
///
/// Of tables ``samples`` are rows, and all that is wrong is ``damage``.
#[pyfunction]
#[pyo3(signature = (path, *, decode=false, workers=None))]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    path: PathBuf,
    decode: bool,
    workers: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    if let Some(kind) = table_kind(&path) {
        return verify_table(py, path, kind);
    }
    let workers = workers.and_then(NonZeroUsize::new);
    let workers =
        workers.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN);
    let (mut bad, mut damage, mut oddities) = (Vec::new(), Vec::new(), Vec::new());
    let summary = py.detach(|| -> Result<VerifySummary, Error> {
        let mut on_finding = |finding: Finding<'_>| match finding {
            Finding::Damage { reason } => damage.push(reason.to_string()),
            Finding::BadSample { index, offset, reason, .. } => {
                bad.push((index, offset, reason.to_string()));
            }
            Finding::Oddity(oddity) => oddities.push(oddity.to_string()),
            Finding::Progress { .. } | _ => {}
        };
        Ok(if decode {
            tbl_io::verify(&path, workers, StrictDecode::new, &mut on_finding)?
        } else {
            tbl_io::verify(&path, workers, AsStored::default, &mut on_finding)?
        })
    })?;
    let result = PyDict::new(py);
    result.set_item("samples", summary.samples)?;
    result.set_item("is_good", summary.is_good())?;
    result.set_item("bad", bad)?;
    result.set_item("damage", damage)?;
    result.set_item("oddities", oddities)?;
    Ok(result)
}

/// A file that is a table, by its first bytes.
#[derive(Clone, Copy)]
enum TableKind {
    Idv,
    Tbf,
}

fn table_kind(path: &Path) -> Option<TableKind> {
    let source = Source::open(path).ok().filter(|_| path.is_file())?;
    let mut front = [0; idv_format::Header::MAGIC.len()];
    source.read_exact_at(0, &mut front).ok()?;
    if front == idv_format::Header::MAGIC {
        return Some(TableKind::Idv);
    }
    tbf_format::sniff(&front).then_some(TableKind::Tbf)
}

/// Reads every block or every region.
fn verify_table(py: Python<'_>, path: PathBuf, kind: TableKind) -> PyResult<Bound<'_, PyDict>> {
    let (rows, damage, oddities) = py.detach(|| -> Result<_, Error> {
        Ok(match kind {
            TableKind::Idv => {
                let file = PyIdvFile::open(path)?;
                let (damage, oddities) = file.damage();
                (file.rows(), damage, oddities)
            }
            TableKind::Tbf => PyTbfSegment::damage(&path)?,
        })
    })?;
    let result = PyDict::new(py);
    result.set_item("samples", rows)?;
    result.set_item("is_good", damage.is_empty())?;
    result.set_item("bad", PyList::empty(py))?;
    result.set_item("damage", damage)?;
    result.set_item("oddities", oddities)?;
    Ok(result)
}

/// Converts a table: an IDV file from or to CSV and Parquet, or into another IDV file. Returns how
/// many rows there are.
#[pyfunction]
#[pyo3(signature = (source, destination, *, to=None, columns=None, schema=None, time_unit="us",
    overwrite=false, sync=true))]
#[expect(clippy::too_many_arguments, reason = "Python has them by name")]
pub(crate) fn convert_table(
    py: Python<'_>,
    source: PathBuf,
    destination: PathBuf,
    to: Option<String>,
    columns: Option<Vec<String>>,
    schema: Option<Vec<String>>,
    time_unit: &str,
    overwrite: bool,
    sync: bool,
) -> PyResult<u64> {
    let conversion = TableConversion {
        to,
        columns: columns.unwrap_or_default(),
        schema: schema.unwrap_or_default(),
        time_unit: time_unit.to_owned(),
        overwrite,
        sync,
    };
    let rows = py.detach(|| conversion.run(&source, &destination));
    rows.map_err(|error| Error::command(&error).into())
}
