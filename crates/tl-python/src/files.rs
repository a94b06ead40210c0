//! Stored data sets sample by sample: TBL files read and written, raw ones mapped.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

mod arguments;

use std::any::Any;
use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyMemoryView};
use tbl_format::SampleFormat;
use tbl_format::metadata::MetadataType;
use tbl_io::{
    Entry, Field, Labels, Location, NewSample, ReadError, SampleSource, SampleSourceExt,
    StreamWriter, TblFile, WriteError, WriteOptions,
};

use crate::detached::{attentive, detached, interruptible};
use crate::element::Element;
use crate::error::{Class, Error};
use crate::memory::Memory;
use crate::names::{name_bytes, text};
use crate::remote::{DataStores, StoreSettings};
use crate::tensor::{Tensor, wrap};
pub(crate) use arguments::compression_of;
use arguments::{bytes_of, fields_of, part, text_or_bytes};

/// An open TBL file, or any other stored data set: numbered samples.
///
/// ``reader[i]`` is the bytes of sample ``i``, ``reader.entry(i)`` what the index knows of it.
#[pyclass(frozen, subclass, name = "TblReader", module = "turboloader._native")]
pub(crate) struct PyTblReader {
    /// Labels are resolved over a list; here it has one.
    sources: [Box<dyn SampleSource>; 1],
    labels: Labels,
    /// The samples of the source that it has.
    part: Range<u64>,
}

impl PyTblReader {
    fn source(&self) -> &dyn SampleSource {
        &*self.sources[0]
    }

    /// The number in the source of one of the samples.
    fn place(&self, index: u64) -> PyResult<u64> {
        let count = self.num_samples();
        // A whole source refuses the others itself.
        if index < count || count == self.source().sample_count() {
            return Ok(self.part.start.saturating_add(index));
        }
        let message = format!("sample {index}, expected less than {count}, those of this part");
        Err(Error::new(Class::SampleIndex, &message).in_file(self.source().location()).into())
    }
}

#[pymethods]
impl PyTblReader {
    /// Opens a TBL file, a TAR archive or a folder, or one part of its samples.
    #[new]
    #[pyo3(signature = (path, stores: "Store | None" = None, worker_id=0, num_workers=1))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        stores: Option<StoreSettings>,
        worker_id: u32,
        num_workers: u32,
    ) -> PyResult<Self> {
        let stores = DataStores::new(&stores.unwrap_or_default())?.stores();
        let open = || {
            tbl_io::allow_open_files(1);
            let sources = [tbl_io::open_in(&stores, path)?];
            let labels = Labels::resolve(&sources)?;
            let part = part(worker_id, num_workers, sources[0].sample_count())?;
            Ok::<_, Error>(Self { sources, labels, part })
        };
        Ok(interruptible(py, open)??)
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.num_samples()).unwrap_or(usize::MAX)
    }

    /// How many samples there are.
    #[getter]
    fn num_samples(&self) -> u64 {
        self.part.end - self.part.start
    }

    /// The names of the classes, indexed by label.
    #[getter]
    fn class_names(&self) -> Vec<String> {
        self.labels.class_names().to_vec()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyBytes>> {
        self.read_sample(py, wrap(index, self.__len__())? as u64)
    }

    /// The bytes of sample ``index``, checked against the checksums that the file has.
    fn read_sample<'py>(&self, py: Python<'py>, index: u64) -> PyResult<Bound<'py, PyBytes>> {
        let index = self.place(index)?;
        let read = detached(py, || {
            let mut bytes = Vec::new();
            self.source().read_into(index, &mut bytes).map(|()| bytes)
        })?;
        let read = read.map_err(|error| Error::from(error.for_sample(index, None)))?;
        Ok(PyBytes::new(py, &read))
    }

    /// The index entry of sample ``index``: a dict of key, label, format, width, height, offset,
    /// `stored_bytes` and bytes.
    #[pyo3(signature = (index) -> "dict[str, Any]")]
    fn entry<'py>(&self, py: Python<'py>, index: u64) -> PyResult<Bound<'py, PyDict>> {
        let index = self.place(index)?;
        let read = || {
            let entry = self.source().entry(index)?;
            Ok((entry, self.labels.try_label(&self.sources, 0, index)?))
        };
        let read: Result<_, ReadError> = detached(py, read)?;
        let (entry, label) = read.map_err(Error::from)?;
        let Entry { key, format, width, height, offset, stored_bytes, bytes, .. } = entry;
        let dict = PyDict::new(py);
        dict.set_item("key", key.as_deref().map(|key| text(py, key)).transpose()?)?;
        dict.set_item("label", label)?;
        dict.set_item("format", format.to_string())?;
        dict.set_item("width", width)?;
        dict.set_item("height", height)?;
        dict.set_item("offset", offset)?;
        dict.set_item("stored_bytes", stored_bytes)?;
        dict.set_item("bytes", bytes)?;
        Ok(dict)
    }

    /// The format of sample ``index``, such as ``"JPEG"``, as `entry` has it.
    fn get_format(&self, py: Python<'_>, index: u64) -> PyResult<String> {
        let index = self.place(index)?;
        let facts = detached(py, || self.source().facts(index))?.map_err(Error::from)?;
        Ok(facts.format.to_string())
    }

    /// Whether stored bytes of its samples lie in a mapping of the file: `DataLoader` with ``views``
    /// hands these out without copying them, while `read_sample` copies. Not of samples that are
    /// compressed or in files of their own, and not of stores.
    fn is_memory_mapped(&self, py: Python<'_>) -> PyResult<bool> {
        let mut samples = self.part.clone();
        let is_mapped =
            detached(py, || samples.next().map(|first| Ok(self.source().view(first)?.is_some())))?;
        let is_mapped: Option<Result<bool, ReadError>> = is_mapped;
        Ok(is_mapped.transpose().map_err(Error::from)?.unwrap_or(false))
    }

    /// The fields of sample ``index``: the bytes of each file next to it, by extension.
    #[pyo3(signature = (index) -> "dict[str, bytes]")]
    fn fields<'py>(&self, py: Python<'py>, index: u64) -> PyResult<Bound<'py, PyDict>> {
        let index = self.place(index)?;
        let read = detached(py, || {
            let mut fields = Vec::new();
            self.source().read_fields(index, &mut fields).map(|()| fields)
        })?;
        let read = read.map_err(|error| Error::from(error.for_sample(index, None)))?;
        let dict = PyDict::new(py);
        for Field { extension, bytes } in &read {
            dict.set_item(text(py, extension)?, PyBytes::new(py, bytes))?;
        }
        Ok(dict)
    }

    /// The metadata blocks of sample ``index`` or, without one, of the whole file: a list of
    /// ``(kind, data)`` in stored order.
    ///
    /// A kind is ``json``, ``protobuf``, ``msgpack``, ``custom``, ``none`` or ``type_7`` for another
    /// number; the data is bytes as they are stored. A sample that was written with a key or a label
    /// and without metadata has them as JSON. The application's fields in the header of a version 1
    /// file are JSON of ``creation_timestamp``, ``dataset_version`` and ``custom_flags``. TAR
    /// archives and folders have no metadata.
    #[pyo3(signature = (index=None) -> "list[tuple[str, bytes]]")]
    fn metadata<'py>(
        &self,
        py: Python<'py>,
        index: Option<u64>,
    ) -> PyResult<Vec<(String, Bound<'py, PyBytes>)>> {
        let index = index.map(|index| self.place(index)).transpose()?;
        let source: &dyn Any = self.source();
        let Some(file) = source.downcast_ref::<TblFile>() else { return Ok(Vec::new()) };
        let blocks = detached(py, || match index {
            Some(index) => file.metadata(index),
            None => file.file_metadata(),
        })?;
        let blocks = blocks.map_err(Error::from)?;
        let blocks = blocks.iter().filter(|block| !block.is_extension());
        Ok(blocks.map(|block| (block.kind.to_string(), PyBytes::new(py, &block.data))).collect())
    }

    fn __repr__(&self) -> String {
        let location = self.source().location();
        let count = self.num_samples();
        format!("TblReader({location}, samples={count})")
    }
}

/// Writes a TBL file sample by sample; the file has its name once all is well.
///
/// As a context manager it is finished at the end, and discarded where an exception ended it.
#[pyclass(frozen, subclass, name = "TblWriter", module = "turboloader._native")]
pub(crate) struct PyTblWriter {
    state: Mutex<WriterState>,
    /// Notified when the user is done.
    is_free: Condvar,
}

struct WriterState {
    /// Nothing while it is used, and once it is finished or discarded.
    writer: Option<StreamWriter>,
    /// The thread that uses it.
    user: Option<ThreadId>,
}

impl PyTblWriter {
    fn lock(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the writer, once no other thread uses it. The interpreter is not held in a wait, because
    /// the user needs it: a handler of a signal may run there, and may call the writer, which is an
    /// error.
    fn claim(&self, py: Python<'_>) -> Result<StreamWriter, Error> {
        let user = thread::current().id();
        py.detach(|| {
            let mut state = self.lock();
            while let Some(other) = state.user {
                if other == user {
                    return Err(Error::closed(&"the writer is in use by this thread"));
                }
                state = self.is_free.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let closed = || Error::closed(&"the writer is finished, or was discarded");
            let writer = state.writer.take().ok_or_else(closed)?;
            state.user = Some(user);
            Ok(writer)
        })
    }

    /// Returns the writer, if there is more to write.
    fn release(&self, writer: Option<StreamWriter>) {
        let mut state = self.lock();
        state.writer = writer;
        state.user = None;
        self.is_free.notify_all();
    }

    fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut StreamWriter) -> Result<R, WriteError> + Send,
    ) -> PyResult<R> {
        let mut writer = self.claim(py)?;
        let done = attentive(py, || work(&mut writer));
        self.release(Some(writer));
        Ok(done?.map_err(Error::from)?)
    }

    fn complete(&self, py: Python<'_>) -> PyResult<u64> {
        let writer = self.claim(py)?;
        let done = attentive(py, || writer.finish());
        self.release(None);
        Ok(done?.map_err(Error::from)?.bytes)
    }
}

#[pymethods]
impl PyTblWriter {
    /// Starts a file that will be called ``path``; the class of Python has the parameters.
    #[new]
    #[pyo3(signature = (
        path, *, lz4=false, overwrite=false, sync=true, class_names: "list[str] | None" = None,
        box_class_names: "list[str] | None" = None, compression: "str | None" = None,
        sample_count=None, stores: "Store | None" = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python has them by name")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        lz4: bool,
        overwrite: bool,
        sync: bool,
        class_names: Option<Vec<String>>,
        box_class_names: Option<Vec<String>>,
        compression: Option<&str>,
        sample_count: Option<u64>,
        stores: Option<StoreSettings>,
    ) -> PyResult<Self> {
        let compression = compression_of(compression, lz4)?;
        let options =
            WriteOptions { compression, overwrite, sync, sample_count, ..WriteOptions::default() };
        let stores = DataStores::new(&stores.unwrap_or_default())?.stores();
        let location = Location::new(&path);
        let create = || StreamWriter::create_in(&stores, &location, options);
        let mut writer = attentive(py, create)?.map_err(Error::from)?;
        if let Some(names) = class_names {
            writer.set_class_names(&names);
        }
        if let Some(names) = box_class_names {
            writer.set_box_class_names(&names);
        }
        let state = Mutex::new(WriterState { writer: Some(writer), user: None });
        Ok(Self { state, is_free: Condvar::new() })
    }

    /// Adds a sample. What it is, and its size if it is an image, is read from its bytes.
    ///
    /// ``fields`` has the files next to the sample by their extensions, such as ``json``, ``txt``
    /// or ``seg.png``: bytes, or text that is stored as UTF-8. They are the fields of batches, and
    /// members of archives that the file is converted to. The label is that of ``label`` alone.
    ///
    /// A key that is not UTF-8 is passed as it is read, in surrogate escapes, or as bytes. This
    /// also holds for extensions.
    #[pyo3(signature = (
        data: "bytes | bytearray | memoryview", *, key: "str | bytes | None" = None, label=None,
        fields: "Mapping[str, str | bytes | bytearray | memoryview] | None" = None
    ))]
    fn add_sample(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        key: Option<Bound<'_, PyAny>>,
        label: Option<i64>,
        fields: Option<Bound<'_, PyMapping>>,
    ) -> PyResult<()> {
        let copied = bytes_of(data)?;
        let data = copied.as_bytes();
        let key = key.as_ref().map(name_bytes).transpose()?;
        let info = tl_decode::probe(data).ok();
        let format = info
            .and_then(|info| SampleFormat::from_name(info.format.name()))
            .unwrap_or(SampleFormat::Unknown);
        let (width, height) = info.map_or((0, 0), |info| (info.width, info.height));
        let key = key.as_deref();
        let fields = fields.as_ref().map_or(Ok(Vec::new()), fields_of)?;
        let fields = &fields;
        let sample =
            NewSample { format, width, height, key, label, fields, ..NewSample::new(data) };
        self.with(py, |writer| writer.write_sample(&sample))
    }

    /// Adds an image as raw pixels: an array of ``uint8`` and shape (height, width, 3). Reading it
    /// decodes nothing, but takes many times the bytes of a photograph.
    #[pyo3(signature = (
        pixels: "npt.NDArray[Any]", *, key: "str | bytes | None" = None, label=None
    ))]
    fn add_pixels(
        &self,
        py: Python<'_>,
        pixels: &Bound<'_, PyAny>,
        key: Option<Bound<'_, PyAny>>,
        label: Option<i64>,
    ) -> PyResult<()> {
        let view = PyMemoryView::from(pixels)?;
        let shape: Vec<u32> = view.getattr("shape")?.extract()?;
        let format: String = view.getattr("format")?.extract()?;
        let (&[height, width, 3], "B") = (&shape[..], &*format) else {
            let message = format!(
                "pixels are of shape {shape:?} and format {format:?}, expected (height, width, 3) \
                 of uint8"
            );
            return Err(Error::setting(&message).into());
        };
        let bytes = view.call_method0("tobytes")?;
        let data = bytes.cast::<PyBytes>()?.as_bytes();
        let key = key.as_ref().map(name_bytes).transpose()?;
        let format = SampleFormat::RawU8;
        let key = key.as_deref();
        let sample = NewSample { format, width, height, key, label, ..NewSample::new(data) };
        self.with(py, |writer| writer.write_sample(&sample))
    }

    /// Adds a metadata block to sample ``index``, which has been added, or with ``None`` to the whole
    /// file; ``kind`` is as in `TblReader.metadata`.
    ///
    /// The data is stored as it is, text as UTF-8. A sample keeps its blocks in the order in which
    /// they are added.
    #[pyo3(signature = (
        index: "SupportsIndex | None", data: "str | bytes | bytearray | memoryview", kind="json"
    ))]
    fn add_metadata(
        &self,
        py: Python<'_>,
        index: Option<u64>,
        data: &Bound<'_, PyAny>,
        kind: &str,
    ) -> PyResult<()> {
        let Some(kind) = MetadataType::from_name(kind) else {
            let expected = "expected json, protobuf, msgpack, custom, none or type_<number>";
            return Err(Error::setting(&format_args!("kind is {kind}, {expected}")).into());
        };
        let data = text_or_bytes(data)?;
        let data = data.as_bytes();
        self.with(py, |writer| writer.add_metadata(index, kind, data))
    }

    /// How many samples have been written.
    #[getter]
    fn num_samples(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |writer| Ok(writer.sample_count()))
    }

    /// Completes the file and gives it its name; returns its size in bytes.
    fn finish(&self, py: Python<'_>) -> PyResult<u64> {
        self.complete(py)
    }

    /// Gives up what was written.
    fn discard(&self, py: Python<'_>) -> Result<(), Error> {
        match self.claim(py) {
            Ok(writer) => {
                // A store is told.
                py.detach(|| drop(writer));
                self.release(None);
                Ok(())
            }
            // Nothing is left to discard.
            Err(_) if self.lock().user.is_none() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Py<PyAny>>,
        _value: Option<Py<PyAny>>,
        _traceback: Option<Py<PyAny>>,
    ) -> PyResult<bool> {
        let is_open = self.lock().writer.is_some();
        if kind.is_some() {
            self.discard(py)?;
        } else if is_open {
            self.complete(py)?;
        }
        Ok(false)
    }
}

/// The images of a TBL file of raw ones, where they lie in the mapped file: a read-only tensor of
/// shape (samples, height, width, 3).
///
/// No checksum is looked at. A file that is cut short while it is mapped reads as zeros from there on.
#[pyfunction]
pub(crate) fn open_raw_view(py: Python<'_>, path: PathBuf) -> Result<Tensor, Error> {
    let view = detached(py, || TblFile::open(path)?.raw_view())??;
    let height = usize::from(view.height());
    let width = usize::from(view.width());
    let count = usize::try_from(view.sample_count()).unwrap_or(usize::MAX);
    let memory = Memory::of_file(Arc::new(view))?;
    Ok(Tensor::new(memory, vec![count, height, width, 3], Element::U8))
}

/// The names that ranges in braces stand for, as in ``train-{000..127}.tar``.
#[pyfunction]
#[pyo3(signature = (path) -> "list[str]")]
pub(crate) fn expand_braces(path: PathBuf) -> Result<Vec<OsString>, Error> {
    let names = tbl_io::expand_braces(path)?;
    Ok(names.iter().map(|name| name.as_os_str().to_owned()).collect())
}

/// Whether files can be read through ``io_uring`` here: the build has it, and the kernel, its sandbox
/// and its limits permit it.
#[pyfunction]
pub(crate) fn has_io_uring() -> bool {
    #[cfg(all(target_os = "linux", feature = "io-uring"))]
    return tbl_io::UringReader::new(1, tbl_io::PageCache::Used).is_ok();
    #[cfg(not(all(target_os = "linux", feature = "io-uring")))]
    false
}
