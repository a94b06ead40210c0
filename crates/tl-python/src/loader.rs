//! Loaders and their epochs, as Python drives them.

mod explain;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyStopIteration;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use serde_json::Value;
use tbl_io::{Note, SampleSource, SourceKind};
use tl_pipeline::{
    Dataset, Delivery, Epoch, ImageField, Loader, LoaderNote, LoaderState, PipelineError,
    TableSource,
};

use crate::batch::{Contents, PyBatch};
use crate::dataset::DatasetSource;
use crate::detached::{PATIENCE, detached, interruptible};
use crate::error::{Class, Error};
use crate::remote::{DataStores, StoreSettings};
use crate::report::{PyReport, counters};
use crate::settings::Settings;
use crate::tensor::Form;
use crate::user::UserTransforms;
use crate::warning::warn;
use explain::explain;

/// A data set and what is done with it, open.
#[pyclass(frozen, name = "Loader", module = "turboloader._native")]
pub(crate) struct PyLoader {
    loader: Closable<Arc<Loader>>,
    stores: Arc<DataStores>,
    /// The functions in its recipe, for the garbage collector: of a method that belongs to what has
    /// the loader, nothing else says so.
    functions: UserTransforms,
    contents: Arc<Contents>,
    len: u64,
    /// Whether a warning has said that there are bad samples.
    has_warned: AtomicBool,
    /// Whether to warn of memory that cannot be pinned.
    may_pin: AtomicBool,
}

/// The batches of one epoch, in order.
#[pyclass(frozen, name = "Epoch", module = "turboloader._native")]
pub(crate) struct PyEpoch {
    epoch: Closable<Epoch>,
    /// The loader, whose functions the epoch's threads call.
    loader: Py<PyLoader>,
    contents: Arc<Contents>,
    number: u32,
    /// Whether another iteration of the loader ended this one.
    is_replaced: AtomicBool,
}

/// The owner of threads, until it is closed.
struct Closable<T: Send> {
    /// Nothing once it is closed.
    value: Mutex<Option<T>>,
    /// The process that has the threads. In a fork of it nobody may ever give the lock back.
    process: u32,
}

impl<T: Send> Closable<T> {
    fn new(value: T) -> Self {
        Self { value: Mutex::new(Some(value)), process: std::process::id() }
    }

    /// Locks the value; code that panicked with it has left it as it was.
    fn lock(&self) -> Result<MutexGuard<'_, Option<T>>, Error> {
        if std::process::id() != self.process {
            return Err(PipelineError::Forked.into());
        }
        Ok(self.value.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets go of it; in a forked process there is nothing to stop. Threads are waited for without
    /// the interpreter, which transforms of the user's may be waiting for.
    fn close(&self) {
        let close = || drop(self.lock().map(|mut value| value.take()));
        // There is no interpreter any more at the end of the process.
        if Python::try_attach(|py| py.detach(close)).is_none() {
            close();
        }
    }
}

impl<T: Send> Drop for Closable<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl PyLoader {
    fn open(&self) -> Result<Arc<Loader>, Error> {
        self.loader.lock()?.clone().ok_or_else(|| Error::closed(&"the loader is closed"))
    }

    /// Asks the loader without the interpreter. If it is closed meanwhile, the handle of this thread
    /// is the last one, and to drop it waits for threads that may wait for the interpreter.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&Arc<Loader>) -> T + Send,
    ) -> Result<T, Error> {
        detached(py, || self.open().map(|loader| question(&loader)))?
    }

    /// Warns once that samples were bad and were skipped, replaced or filled.
    fn warn_of_bad_samples(&self, py: Python<'_>) -> PyResult<()> {
        if self.has_warned.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let notes = self.ask(py, |loader| loader.notes())?;
        let first = notes.iter().find(|note| matches!(note, LoaderNote::BadSample { .. }));
        let Some(first) = first else { return Ok(()) };
        warn(py, &format!("{first} (DataLoader.audit lists all, Errors(at_most=...) bounds them)"))
    }

    /// Warns once that memory could not be pinned, which is tried as batches are made.
    fn warn_of_pinning(&self, py: Python<'_>) -> PyResult<()> {
        if !self.may_pin.load(Ordering::Relaxed) {
            return Ok(());
        }
        let notes = self.ask(py, |loader| loader.notes())?;
        let Some(note) = notes.iter().find(|note| is_of_pinning(note)) else { return Ok(()) };
        self.may_pin.store(false, Ordering::Relaxed);
        warn(py, &note.to_string())
    }

    fn begun(slf: &Bound<'_, Self>, epoch: Epoch) -> PyEpoch {
        let contents = Arc::clone(&slf.get().contents);
        let number = epoch.number();
        let is_replaced = AtomicBool::new(false);
        PyEpoch {
            epoch: Closable::new(epoch),
            loader: slf.clone().unbind(),
            contents,
            number,
            is_replaced,
        }
    }
}

#[pymethods]
impl PyLoader {
    #[new]
    #[pyo3(signature = (dataset: "Dataset | list[str]", settings: "dict[str, Any]"))]
    fn new(
        py: Python<'_>,
        dataset: DatasetSource<'_>,
        settings: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let settings: Settings<'_> = settings.extract().map_err(|error| wrong_type(py, &error))?;
        let form = Form::named(&settings.form)
            .ok_or_else(|| Error::setting(&format!("no form of output {}", settings.form)))?;
        let store = settings.store.as_ref();
        let (view, stores) = dataset.open(py, store.unwrap_or(&StoreSettings::default()))?;
        let mut config = settings.config(view.dataset())?;
        if let Some(read_ahead) = stores.read_ahead {
            if config.read_ahead_bytes > 0 {
                let message = "conflicting settings: read_ahead of store, and read_ahead_bytes of \
                               memory; pass only one";
                return Err(Error::setting(&message).into());
            }
            config.read_ahead_bytes = read_ahead;
        }
        let contents = Contents::new(&config, form, &settings)?;
        let may_pin = config.delivery != Delivery::Host;
        let loader = interruptible(py, || Loader::new(view, config))?.map_err(Error::from)?;
        // The warnings of a new loader are of the notes that it has.
        let may_pin = AtomicBool::new(may_pin && !loader.notes().iter().any(is_of_pinning));
        let contents = Arc::new(contents.with_columns(&loader));
        let len = loader.len();
        let functions = settings.user_transforms.with_decoders(&settings.decoders);
        let loader = Closable::new(Arc::new(loader));
        let has_warned = AtomicBool::new(false);
        Ok(Self { loader, stores, functions, contents, len, has_warned, may_pin })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.functions.traverse(&visit)
    }

    /// How many batches an epoch has for this rank.
    fn __len__(&self) -> usize {
        usize::try_from(self.len).unwrap_or(usize::MAX)
    }

    /// The names of the fields of its batches.
    #[getter]
    fn fields(&self) -> Vec<&str> {
        self.contents.names()
    }

    /// The batches of this epoch.
    fn epoch(slf: &Bound<'_, Self>, epoch: u32) -> PyResult<PyEpoch> {
        slf.get().functions.refuse_within()?;
        let epoch = slf.get().ask(slf.py(), |loader| loader.epoch(epoch))?;
        Ok(Self::begun(slf, epoch))
    }

    /// The batches that are left of the epoch of this state, as JSON.
    fn resume(slf: &Bound<'_, Self>, state: &str) -> PyResult<PyEpoch> {
        slf.get().functions.refuse_within()?;
        let state = parsed(state)?;
        let epoch =
            slf.get().ask(slf.py(), |loader| loader.resume(&state))?.map_err(Error::from)?;
        Ok(Self::begun(slf, epoch))
    }

    /// Refuses a state that `resume` would refuse, and returns its epoch.
    fn check(&self, py: Python<'_>, state: &str) -> PyResult<u32> {
        let state = parsed(state)?;
        self.ask(py, |loader| loader.check(&state))?.map_err(Error::from)?;
        Ok(state.epoch)
    }

    /// Whether all ranks have received all batches of the state's epoch.
    fn is_over(&self, py: Python<'_>, state: &str) -> PyResult<bool> {
        let state = parsed(state)?;
        Ok(self.ask(py, |loader| loader.is_over(&state))?.map_err(Error::from)?)
    }

    /// The state at the start of this epoch, as JSON.
    fn state(&self, py: Python<'_>, epoch: u32) -> PyResult<String> {
        let state = self.ask(py, |loader| loader.state(epoch))?.map_err(Error::from)?;
        json(&state)
    }

    /// How many samples the data set has.
    #[getter]
    fn sample_count(&self, py: Python<'_>) -> Result<u64, Error> {
        self.ask(py, |loader| loader.dataset().len())
    }

    /// The kinds of the files, each once: ``"folder"``, ``"files"``, ``"manifest"``, ``"tar"``,
    /// ``"images"``, ``"tbl"``, ``"idv"`` or ``"tbf"``.
    #[getter]
    fn kinds(&self, py: Python<'_>) -> Result<Vec<&'static str>, Error> {
        self.ask(py, |loader| kinds(loader.dataset()))
    }

    /// The names of the classes, indexed by label.
    #[getter]
    fn class_names(&self, py: Python<'_>) -> Result<Vec<String>, Error> {
        self.ask(py, |loader| loader.dataset().class_names().to_vec())
    }

    /// Requests to stores and bytes of them so far, by name.
    fn remote_stats(&self) -> BTreeMap<&'static str, u64> {
        self.stores.stats().into_iter().collect()
    }

    /// The contents and counters of the caches: of ``"memory"`` and ``"disk"`` a dict each.
    fn cache_stats(
        &self,
        py: Python<'_>,
    ) -> Result<BTreeMap<&'static str, BTreeMap<&'static str, u64>>, Error> {
        let stats = self.ask(py, |loader| loader.cache_stats())?;
        let mut disk = counters(stats.disk);
        disk.extend([
            ("bytes_from_blocks", stats.bytes_from_blocks),
            ("dropped_blocks", stats.dropped_blocks),
            ("large_blocks", stats.large_blocks),
            ("bad_entries", stats.bad_entries),
            ("faults", stats.faults),
        ]);
        Ok(BTreeMap::from([("memory", counters(stats.memory)), ("disk", disk)]))
    }

    /// The counters, read as rates and shares.
    fn report(&self, py: Python<'_>) -> Result<PyReport, Error> {
        self.ask(py, |loader| loader.report().into())
    }

    /// Notes on the data set, such as files that were passed over, and on the loader.
    ///
    /// ``usual`` is whether to list counts of hidden files and of files without an image, too.
    #[pyo3(signature = (*, usual=true))]
    fn notes(&self, py: Python<'_>, usual: bool) -> Result<Vec<String>, Error> {
        self.ask(py, |loader| notes(loader, usual))
    }

    /// The bad samples in the batches received so far: the error, and how each was handled.
    fn audit(&self, py: Python<'_>) -> Result<Vec<(u64, String, String)>, Error> {
        let entries = self.ask(py, |loader| loader.audit())?;
        let entry = |entry: tl_pipeline::AuditEntry| {
            (entry.error.index, entry.error.to_string(), format!("{:?}", entry.outcome))
        };
        Ok(entries.into_iter().map(entry).collect())
    }

    /// The plan in words.
    fn explain(&self, py: Python<'_>) -> Result<String, Error> {
        self.ask(py, |loader| explain(loader))
    }

    /// Stops the threads and closes the files, once the last batch is gone.
    fn close(&self) -> Result<(), Error> {
        self.functions.refuse_within()?;
        self.loader.close();
        Ok(())
    }
}

/// Notes on the data set and on the loader; ``usual`` is as in `PyLoader::notes`.
fn notes(loader: &Loader, usual: bool) -> Vec<String> {
    // The user knows of images that the fields name, and of files that are decoded by functions.
    let names_images = loader.config().fields.images.iter().any(ImageField::is_of_file);
    let has_decoders = !loader.config().decoders.is_empty();
    let is_known = |note: &Note| {
        let is_of_fields = names_images && matches!(note, Note::SeveralImages { .. });
        let is_of_decoders = has_decoders && matches!(note, Note::NoImages { .. });
        !usual && (is_of_fields || is_of_decoders)
    };
    let of_sources = source_notes(loader.dataset(), usual, is_known);
    of_sources.chain(loader.notes().iter().map(ToString::to_string)).collect()
}

/// The kinds of the sources, each once.
pub(crate) fn kinds(dataset: &Dataset) -> Vec<&'static str> {
    let kind = |shard: &Arc<dyn SampleSource>| match shard.kind() {
        SourceKind::Folder => "folder",
        SourceKind::Files => "files",
        SourceKind::Manifest => "manifest",
        SourceKind::Memory => "memory",
        SourceKind::Tar => "tar",
        SourceKind::Images => "images",
        SourceKind::Parquet => "parquet",
        SourceKind::Arrow => "arrow",
        SourceKind::Tbl1 | SourceKind::Tbl2 => "tbl",
        SourceKind::Tokens => "tokens",
        // The rows of other files, which may be samples too.
        SourceKind::Table | _ => match TableSource::of(&**shard).map(|table| table.format()) {
            Some(format @ ("idv" | "tbf")) => format,
            Some(_) | None => "rows",
        },
    };
    let kinds: BTreeSet<_> = dataset.shards().iter().map(kind).collect();
    kinds.into_iter().collect()
}

fn is_of_pinning(note: &LoaderNote) -> bool {
    matches!(note, LoaderNote::Device { wanted: "pinned memory", .. })
}

/// Notes on the files and folders of a data set; ``usual`` is as in `PyLoader::notes`. Without those
/// on samples with several images if the user names the further ones.
pub(crate) fn source_notes(
    dataset: &Dataset,
    usual: bool,
    is_known: impl Fn(&Note) -> bool + Copy,
) -> impl Iterator<Item = String> {
    dataset.shards().iter().flat_map(move |source| {
        let location = source.location();
        let notes = source.notes().into_iter();
        let notes = notes.filter(move |note| !is_known(note) && (usual || !note.is_usual()));
        notes.map(move |note| format!("{location}: {note}"))
    })
}

/// A setting of another type, by its name: `error` names the structs that it is in, each the cause
/// of the one before.
fn wrong_type(py: Python<'_>, error: &PyErr) -> PyErr {
    let mut names = Vec::new();
    let mut reason = error.clone_ref(py);
    while let Some(cause) = reason.cause(py) {
        let place = reason.value(py).to_string();
        names.push(place.rsplit_once('.').map_or_else(|| place.clone(), |(_, name)| name.into()));
        reason = cause;
    }
    Error::setting(&format!("{}: {}", names.join("."), reason.value(py))).into()
}

fn parsed(state: &str) -> Result<LoaderState, Error> {
    // By way of a value, so that no error names a place in what nobody has written.
    let value = serde_json::from_str::<Value>(state).and_then(serde_json::from_value);
    value.map_err(|error| Error::state(&format_args!("not a state of turboloader: {error}")))
}

fn json(state: &LoaderState) -> PyResult<String> {
    serde_json::to_string(state).map_err(|error| Error::state(&error).into())
}

#[pymethods]
impl PyEpoch {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.loader)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyBatch>> {
        self.receive(py, None)
    }

    /// The next batch, which is waited for at most ``timeout`` seconds: 0 takes only a batch that is
    /// ready, None waits for as long as it takes. One thread may take batches at a time: a call waits
    /// for that of another thread first.
    ///
    /// Raises `StopIteration` after the last batch, and `BatchTimeoutError`, which is a
    /// ``TimeoutError``, if the time is over. The batch is then that of the next call.
    #[pyo3(signature = (timeout: "float | None" = None) -> "Batch")]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<PyBatch> {
        let wait = timeout.map(|seconds| {
            Duration::try_from_secs_f64(seconds).map_err(|_| {
                Error::setting(&format_args!("timeout is {seconds}, expected seconds, at least 0"))
            })
        });
        let batch = self.receive(py, wait.transpose()?)?;
        batch.ok_or_else(|| PyStopIteration::new_err(()))
    }

    /// The epoch's number.
    #[getter]
    fn number(&self) -> u32 {
        self.number
    }

    /// How many batches are still to come.
    fn remaining(&self, py: Python<'_>) -> Result<u64, Error> {
        self.loader.get().functions.refuse_within()?;
        detached(py, || Ok(self.epoch.lock()?.as_ref().map_or(0, Epoch::remaining)))?
    }

    /// The state after the last batch that was received, as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        self.loader.get().functions.refuse_within()?;
        let state =
            detached(py, || Ok::<_, Error>(self.epoch.lock()?.as_ref().map(Epoch::state)))??;
        let state = state.ok_or_else(|| self.over())?;
        json(&state.map_err(Error::from)?)
    }

    /// Stops the threads; ``is_replaced`` says that another iteration of the loader begins.
    #[pyo3(signature = (*, is_replaced=false))]
    fn close(&self, is_replaced: bool) -> Result<(), Error> {
        self.loader.get().functions.refuse_within()?;
        self.is_replaced.store(is_replaced, Ordering::Relaxed);
        self.epoch.close();
        Ok(())
    }
}

impl PyEpoch {
    /// The next batch, if it comes within `wait`; `None` after the last one.
    fn receive(&self, py: Python<'_>, wait: Option<Duration>) -> PyResult<Option<PyBatch>> {
        self.loader.get().functions.refuse_within()?;
        // A time that the clock does not have is never over.
        let end = wait.and_then(|wait| Instant::now().checked_add(wait));
        loop {
            let rest = end.map(|end| end.saturating_duration_since(Instant::now()));
            let patience = rest.map_or(PATIENCE, |rest| rest.min(PATIENCE));
            // Other threads of Python continue meanwhile, and threads that want the lock wait
            // without holding the interpreter.
            let next = detached(py, || {
                let mut epoch = self.epoch.lock()?;
                Ok::<_, Error>(epoch.as_mut().map(|epoch| {
                    let next = epoch.next_timeout(patience);
                    (next, epoch.bad_samples())
                }))
            })??;
            let Some((next, bad_samples)) = next else { return Err(self.over().into()) };
            if bad_samples > 0 {
                self.loader.get().warn_of_bad_samples(py)?;
            }
            match next {
                None => return Ok(None),
                Some(Ok(batch)) => {
                    self.loader.get().warn_of_pinning(py)?;
                    return PyBatch::new(py, batch, &self.contents).map(Some);
                }
                Some(Err(PipelineError::TimedOut { .. })) => py.check_signals()?,
                Some(Err(error)) => return Err(Error::from(error).into()),
            }
            if let (Some(wait), Some(Duration::ZERO)) = (wait, rest) {
                let message = format_args!("no batch is ready after {} s", wait.as_secs_f64());
                return Err(Error::new(Class::BatchTimeout, &message).into());
            }
        }
    }

    /// The error for an iteration that was closed.
    fn over(&self) -> Error {
        if self.is_replaced.load(Ordering::Relaxed) {
            return Error::closed(
                &"another iteration of this loader began and ended this one: nested loops and zip \
                  need a second loader",
            );
        }
        Error::closed(&"this iteration is over: its loader was closed")
    }
}
