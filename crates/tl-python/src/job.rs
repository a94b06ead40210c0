//! Jobs over many shards, whose tasks an engine spreads over processes.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use tbl_io::{Location, Stores};
use turboloader::job::{Job, JobFolders, Outcome, Record, Report, Shard, Task};

use crate::detached::{detached, interruptible};
use crate::error::{Class, Error};
use crate::remote::{DataStores, StoreSettings};

/// The shards of a job, and the report that their records make. ``task`` is JSON, as records have it.
#[pyclass(frozen, name = "Job", module = "turboloader._native")]
pub(crate) struct PyJob {
    job: Job,
    stores: DataStores,
    /// None once it is complete.
    report: Mutex<Option<Report>>,
}

impl PyJob {
    fn shard(&self, number: usize) -> Result<&Shard, Error> {
        self.job.shards().get(number).ok_or_else(|| {
            let message = format!("shard {number} of {}", self.job.shards().len());
            Error::new(Class::SampleIndex, &message)
        })
    }
}

#[pymethods]
impl PyJob {
    /// Lists the shards, makes local folders for results, and begins the report.
    #[new]
    #[pyo3(signature = (
        task, sources: "list[str]", *, output=None, records=None, report=None, overwrite=false,
        stores: "Store | None" = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python has them by name")]
    fn new(
        py: Python<'_>,
        task: &str,
        sources: Vec<PathBuf>,
        output: Option<OsString>,
        records: Option<OsString>,
        report: Option<OsString>,
        overwrite: bool,
        stores: Option<StoreSettings>,
    ) -> PyResult<Self> {
        let task = task_of(task)?;
        let stores = DataStores::new(&stores.unwrap_or_default())?;
        let location = |name: OsString| Location::new(name);
        let folders = JobFolders {
            output: output.map(location),
            records: records.map(location),
            report: report.map(location),
            overwrite,
        };
        let made = interruptible(py, || -> Result<_, Error> {
            let opened = stores.stores();
            let job = Job::new(&opened, &sources, task, &folders)?;
            let report = Report::new(&opened, &job)?;
            Ok(Begun { job, report })
        })?;
        let Begun { job, report } = made?;
        Ok(Self { job, stores, report: Mutex::new(Some(report)) })
    }

    /// How many shards there are.
    fn __len__(&self) -> usize {
        self.job.shards().len()
    }

    /// The places of shard ``number``, for `run_shard`: its source, its output, its record, and whether
    /// to replace an output that has no record.
    #[pyo3(signature = (number) -> "tuple[str, str | None, str | None, bool]")]
    fn places(&self, number: usize) -> Result<Places, Error> {
        let Shard { source, output, record, overwrite } = self.shard(number)?;
        let text = |location: &Location| location.as_os_str().to_owned();
        Ok((text(source), output.as_ref().map(text), record.as_ref().map(text), *overwrite))
    }

    /// The record of shard ``number``, whose task has ended with this error outside of `run_shard`.
    fn failure(&self, number: usize, error: &str) -> Result<String, Error> {
        let source = self.stores.stores().printable(&self.shard(number)?.source);
        let message = format!("{source}: {error}");
        Ok(Record::of_failure(&source, self.job.task().settings(), message).line())
    }

    /// Adds the record of shard ``number`` to the report.
    fn add(&self, py: Python<'_>, number: usize, record: &str) -> Result<(), Error> {
        let record = serde_json::from_str(record).map_err(|error| Error::setting(&error))?;
        detached(py, || {
            let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
            report.as_mut().map_or(Ok(()), |report| report.add(number, record))
        })??;
        Ok(())
    }

    /// How many shards the report has: each before the first one whose record has not come.
    fn written(&self) -> usize {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.as_ref().map_or(0, Report::written)
    }

    /// Completes the report, and returns its totals as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner).take();
        let report = report.ok_or_else(|| Error::setting(&"the report is complete already"))?;
        let totals = interruptible(py, || report.finish())?.map_err(Error::from)?;
        Ok(totals.line())
    }

    /// Removes incomplete results of killed processes of this job.
    fn clean_up(&self, py: Python<'_>) -> PyResult<()> {
        #[cfg(feature = "remote")]
        let clean = || self.stores.remote().map_or(Ok(()), |remote| self.job.clean_up(remote));
        #[cfg(not(feature = "remote"))]
        let clean = || self.job.clean_up();
        Ok(interruptible(py, clean)?.map_err(Error::from)?)
    }
}

struct Begun {
    job: Job,
    report: Report,
}

type Places = (OsString, Option<OsString>, Option<OsString>, bool);

/// Works on a shard of a job; `Job.places` has its places. Returns its record as JSON, and whether an
/// earlier run has made it.
#[pyfunction]
#[pyo3(signature = (
    task, source, output, record, overwrite, stores: "Store | None" = None
) -> "tuple[str, bool]")]
pub(crate) fn run_shard(
    py: Python<'_>,
    task: &str,
    source: OsString,
    output: Option<OsString>,
    record: Option<OsString>,
    overwrite: bool,
    stores: Option<StoreSettings>,
) -> PyResult<(String, bool)> {
    let task = task_of(task)?;
    let stores = stores_of_process(stores.unwrap_or_default())?;
    let place = |name: &OsString| Location::new(name);
    let shard = Shard {
        source: place(&source),
        output: output.as_ref().map(place),
        record: record.as_ref().map(place),
        overwrite,
    };
    let Outcome { record, is_skipped } = interruptible(py, || task.run(&stores, &shard))?;
    Ok((record.line(), is_skipped))
}

/// The stores of the tasks of this process, which keep connections and credentials from one to the next:
/// a machine's metadata server refuses thousands of tasks that ask for themselves.
fn stores_of_process(settings: StoreSettings) -> Result<Stores, Error> {
    static LAST: Mutex<Option<LastStores>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(LastStores { settings: same, stores, process }) = &*last
        && *same == settings
        && *process == std::process::id()
    {
        return Ok(stores.clone());
    }
    let stores = DataStores::new(&settings)?.stores();
    *last = Some(LastStores { settings, stores: stores.clone(), process: std::process::id() });
    Ok(stores)
}

struct LastStores {
    settings: StoreSettings,
    stores: Stores,
    /// A fork lacks the threads of the stores.
    process: u32,
}

fn task_of(text: &str) -> Result<Task, Error> {
    serde_json::from_str(text).map_err(|error| Error::setting(&error))
}

/// Ends the uploads to objects below a prefix of S3 that are neither complete nor ended. None may be
/// under way. Other stores do so themselves.
#[pyfunction]
#[pyo3(signature = (prefix, stores: "Store | None" = None))]
pub(crate) fn end_uploads(
    py: Python<'_>,
    prefix: OsString,
    stores: Option<StoreSettings>,
) -> PyResult<()> {
    let stores = DataStores::new(&stores.unwrap_or_default())?;
    #[cfg(feature = "remote")]
    if let Some(remote) = stores.remote()
        && let prefix = Location::new(prefix)
        && prefix.scheme() == Some("s3")
    {
        interruptible(py, || {
            let pending = remote.pending_uploads(&prefix)?;
            pending.iter().try_for_each(|upload| remote.end_upload(upload))
        })?
        .map_err(Error::from)?;
    }
    #[cfg(not(feature = "remote"))]
    drop((py, prefix, stores));
    Ok(())
}
