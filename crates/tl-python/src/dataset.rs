//! Data sets and views of them.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

mod numbers;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tbl_io::{Entry, Field, ListOptions, Manifest, Note, SourceKind};
use tl_decode::{DecodeOptions, Exif, Image};
use tl_pipeline::{
    Dataset, DatasetView, Filter, Fold, Length, MixStage, PipelineError, Replacement, SampleFault,
    SampleRenderer, Split, Stored, Target, ViewError, Weights,
};
use tl_transform::{Channels, Draw, PixelType, Recipe};
use turboloader::sheet::{SheetError, contact_sheet};
use turboloader::{Moments, Survey};

use crate::detached::{detached, interruptible};
use crate::element::Element;
use crate::error::Error;
use crate::loader::source_notes;
use crate::memory::Memory;
use crate::names::text;
use crate::recipe::{channels, orientation, pixels};
use crate::remote::{DataStores, StoreSettings};
use crate::tensor::Tensor;
use crate::warning::warn;
use numbers::numbers;

/// Some samples of a data set, in an order, or draws from them.
#[pyclass(frozen, name = "Dataset", module = "turboloader._native")]
pub(crate) struct PyDataset {
    view: DatasetView,
    /// Those that opened its sources.
    stores: Arc<DataStores>,
}

/// A data set, open or by its paths.
#[derive(FromPyObject)]
pub(crate) enum DatasetSource<'py> {
    Opened(PyRef<'py, PyDataset>),
    Paths(Vec<PathBuf>),
}

impl DatasetSource<'_> {
    /// The view and the stores of its sources; paths are opened with these settings.
    pub(crate) fn open(
        self,
        py: Python<'_>,
        settings: &StoreSettings,
    ) -> PyResult<(DatasetView, Arc<DataStores>)> {
        match self {
            Self::Opened(dataset) => Ok((dataset.view.clone(), Arc::clone(&dataset.stores))),
            Self::Paths(paths) => {
                let stores = DataStores::new(settings)?;
                let dataset = interruptible(py, || Dataset::open_in(&stores.stores(), &paths))?;
                Ok((dataset.map_err(Error::from)?.into(), Arc::new(stores)))
            }
        }
    }
}

impl PyDataset {
    /// A view that `make` makes of this one.
    fn derive(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&DatasetView) -> Result<DatasetView, PipelineError> + Send,
    ) -> PyResult<Self> {
        let view = interruptible(py, || make(&self.view))?.map_err(Error::from)?;
        Ok(Self { view, stores: Arc::clone(&self.stores) })
    }

    /// The number in the data set of the sample at `place`.
    fn at(&self, place: u64) -> Result<u64, Error> {
        // Names the drawing view if there are no places.
        self.view.indices().map(drop).map_err(Error::from)?;
        let len = self.view.len();
        let error = || PipelineError::from(ViewError::OutOfRange { place, len });
        Ok(self.view.sample_at(place).ok_or_else(error)?)
    }

    fn error(&self, index: u64, fault: SampleFault) -> Error {
        (&self.view.dataset().sample_error(index, fault)).into()
    }
}

#[pymethods]
impl PyDataset {
    /// Opens a data set. Rows of tables get the labels of the column ``label``; rows of Parquet files
    /// also the images of the column ``image``.
    #[staticmethod]
    #[pyo3(signature = (
        paths: "list[str]", stores: "Store | None" = None, label=None, image=None
    ))]
    fn open(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        stores: Option<StoreSettings>,
        label: Option<String>,
        image: Option<String>,
    ) -> PyResult<Self> {
        let stores = DataStores::new(&stores.unwrap_or_default())?;
        let dataset = interruptible(py, || {
            let manifest = Manifest { image, label: label.clone(), ..Manifest::default() };
            let lists = ListOptions { manifest, ..ListOptions::default() };
            let dataset = Dataset::open_in(&stores.stores().with_list_options(lists), &paths)?;
            let are_rows = |kind| matches!(kind, SourceKind::Parquet | SourceKind::Arrow);
            let has_rows = dataset.shards().iter().any(|shard| are_rows(shard.kind()));
            match label {
                Some(label) if !has_rows => dataset.with_labels_of(&label),
                Some(_) | None => Ok(dataset),
            }
        })?;
        let view = dataset.map_err(Error::from)?.into();
        Ok(Self { view, stores: Arc::new(stores) })
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.view.len()).unwrap_or(usize::MAX)
    }

    /// All samples of the data set that this is a view of.
    fn whole(&self) -> Self {
        let view = DatasetView::from(Arc::clone(self.view.dataset()));
        Self { view, stores: Arc::clone(&self.stores) }
    }

    /// Whether it has all samples of the data set, in their order.
    fn is_whole(&self) -> bool {
        self.view.is_whole()
    }

    /// Whether the samples are known before an epoch is drawn.
    fn is_plain(&self) -> bool {
        self.view.indices().is_ok()
    }

    fn take(&self, py: Python<'_>, count: u64) -> PyResult<Self> {
        self.derive(py, |view| view.take(count))
    }

    fn skip(&self, py: Python<'_>, count: u64) -> PyResult<Self> {
        self.derive(py, |view| view.skip(count))
    }

    fn slice(&self, py: Python<'_>, start: u64, stop: u64) -> PyResult<Self> {
        self.derive(py, |view| view.slice(start..stop))
    }

    fn subset(&self, py: Python<'_>, places: Vec<u64>) -> PyResult<Self> {
        self.derive(py, |view| view.subset(places))
    }

    fn shard(&self, py: Python<'_>, number: u64, of: u64) -> PyResult<Self> {
        self.derive(py, |view| view.shard(number, of))
    }

    fn select_labels(&self, py: Python<'_>, labels: Vec<i64>) -> PyResult<Self> {
        self.derive(py, |view| view.select_labels(&labels))
    }

    fn select_classes(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Self> {
        self.derive(py, |view| view.select_classes(&names))
    }

    fn filter(&self, py: Python<'_>, condition: &str) -> PyResult<Self> {
        let filter: Filter = condition.parse().map_err(PipelineError::from).map_err(Error::from)?;
        self.derive(py, |view| view.filter(&filter))
    }

    /// Random parts of these sizes.
    fn split(
        &self,
        py: Python<'_>,
        fractions: Vec<f64>,
        seed: u64,
        stratify: bool,
    ) -> PyResult<Vec<Self>> {
        let split = Split { seed, stratify };
        let parts = interruptible(py, || self.view.split(&fractions, split))?;
        let part = |view| Self { view, stores: Arc::clone(&self.stores) };
        Ok(parts.map_err(Error::from)?.into_iter().map(part).collect())
    }

    /// The other folds, and this one.
    fn fold(
        &self,
        py: Python<'_>,
        fold: u32,
        of: u32,
        seed: u64,
        stratify: bool,
    ) -> PyResult<(Self, Self)> {
        let split = Split { seed, stratify };
        let parts = interruptible(py, || self.view.fold(fold, of, split))?;
        let Fold { train, validation } = parts.map_err(Error::from)?;
        let part = |view| Self { view, stores: Arc::clone(&self.stores) };
        Ok((part(train), part(validation)))
    }

    fn weights(
        &self,
        py: Python<'_>,
        weights: Vec<f64>,
        replacement: bool,
        count: Option<u64>,
    ) -> PyResult<Self> {
        let replacement = if replacement { Replacement::With } else { Replacement::Without };
        let weights = Weights::from_floats(&weights).map_err(Error::from)?;
        self.derive(py, |view| view.weights(&weights, replacement, count))
    }

    fn balance(&self, py: Python<'_>, length: &str) -> PyResult<Self> {
        let length = length_of(length)?;
        self.derive(py, |view| view.balance(length))
    }

    fn repeat(&self, py: Python<'_>, count: u32) -> PyResult<Self> {
        self.derive(py, |view| view.repeat(count))
    }

    /// The samples of all, one after the other.
    #[staticmethod]
    fn concat(py: Python<'_>, views: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let stores = Arc::new(DataStores::joined(views.iter().map(|view| &*view.stores)));
        let views: Vec<DatasetView> = views.iter().map(|view| view.view.clone()).collect();
        let view = interruptible(py, || DatasetView::concat(&views))?.map_err(Error::from)?;
        Ok(Self { view, stores })
    }

    /// The samples of all in the proportion of their weights.
    #[staticmethod]
    #[pyo3(signature = (views: "list[tuple[Dataset, int]]", length, stages: "list[tuple[int, list[int]]]"))]
    fn mix(
        py: Python<'_>,
        views: Vec<(PyRef<'_, Self>, u32)>,
        length: &str,
        stages: Vec<(u64, Vec<u32>)>,
    ) -> PyResult<Self> {
        let length = length_of(length)?;
        let stage = |(start, weights)| MixStage { start, weights };
        let stages: Vec<MixStage> = stages.into_iter().map(stage).collect();
        let stores = Arc::new(DataStores::joined(views.iter().map(|(view, _)| &*view.stores)));
        let views: Vec<(DatasetView, u32)> =
            views.iter().map(|(view, weight)| (view.view.clone(), *weight)).collect();
        let mix = || DatasetView::mix_in_stages(&views, length, stages);
        let view = interruptible(py, mix)?.map_err(Error::from)?;
        Ok(Self { view, stores })
    }

    /// The views that it was made by, and what each cost.
    fn explain(&self) -> String {
        self.view.explain()
    }

    /// The names of the classes, indexed by label.
    #[getter]
    fn class_names(&self) -> Vec<String> {
        self.view.dataset().class_names().to_vec()
    }

    /// The kinds of its sources, each once.
    #[getter]
    fn kinds(&self) -> Vec<&'static str> {
        crate::loader::kinds(self.view.dataset())
    }

    /// The path or URL of each source.
    #[pyo3(signature = () -> "list[str]")]
    fn locations(&self) -> Vec<OsString> {
        let shards = self.view.dataset().shards().iter();
        shards.map(|shard| shard.location().as_os_str().to_owned()).collect()
    }

    /// Notes on the data set, such as labels that are missing; ``usual`` is as in `Loader.notes`.
    /// ``knows_images`` leaves out those on samples with several images.
    #[pyo3(signature = (*, usual=true, knows_images=false))]
    fn notes(&self, usual: bool, knows_images: bool) -> Vec<String> {
        let of_labels = self.view.dataset().label_notes().iter().map(ToString::to_string);
        let known = |note: &Note| knows_images && matches!(note, Note::SeveralImages { .. });
        source_notes(self.view.dataset(), usual, known).chain(of_labels).collect()
    }

    /// The numbers of the samples in the stored data set, as ``int64``.
    fn indices(&self, py: Python<'_>) -> PyResult<Tensor> {
        let bytes = detached(py, || -> Result<Vec<u8>, PipelineError> {
            Ok(self.view.indices()?.flat_map(u64::to_le_bytes).collect())
        })?;
        numbers(&bytes.map_err(Error::from)?)
    }

    /// The labels of the samples as ``int64``, -1 for none. One that cannot be read is an error.
    fn labels(&self, py: Python<'_>) -> PyResult<Tensor> {
        let bytes = detached(py, || -> Result<Vec<u8>, Error> {
            let mut bytes = Vec::new();
            for index in self.view.indices()? {
                let label = self.view.dataset().try_label(index);
                let label = label.map_err(|error| self.error(index, error.into()))?;
                bytes.extend_from_slice(&label.unwrap_or(-1).to_le_bytes());
            }
            Ok(bytes)
        })??;
        numbers(&bytes)
    }

    /// The names of the samples.
    #[pyo3(signature = () -> "list[str | None]")]
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let indices = self.view.indices().map_err(Error::from)?;
        let key = |index| {
            let entry = self.view.dataset().entry(index);
            let entry = entry.map_err(|error| self.error(index, error.into()))?;
            entry.key.as_deref().map(|key| text(py, key)).transpose()
        };
        indices.map(key).collect()
    }

    /// The number in the stored data set of the sample at ``place``.
    fn index(&self, place: u64) -> Result<u64, Error> {
        self.at(place)
    }

    /// The index entry of the sample at ``place``: a dict of index, key, label, format, width,
    /// height and bytes.
    #[pyo3(signature = (place) -> "dict[str, Any]")]
    fn entry<'py>(&self, py: Python<'py>, place: u64) -> PyResult<Bound<'py, PyDict>> {
        let index = self.at(place)?;
        let dataset = self.view.dataset();
        let read = detached(py, || Ok((dataset.entry(index)?, dataset.try_label(index)?)))?;
        let (entry, label) =
            read.map_err(|error: tbl_io::ReadError| self.error(index, error.into()))?;
        let Entry { key, format, width, height, bytes, .. } = entry;
        let dict = PyDict::new(py);
        dict.set_item("index", index)?;
        dict.set_item("key", key.as_deref().map(|key| text(py, key)).transpose()?)?;
        dict.set_item("label", label)?;
        dict.set_item("format", format.to_string())?;
        dict.set_item("width", width)?;
        dict.set_item("height", height)?;
        dict.set_item("bytes", bytes)?;
        Ok(dict)
    }

    /// The bytes of the sample at ``place``, checked against the checksums that the file has.
    fn read<'py>(&self, py: Python<'py>, place: u64) -> PyResult<Bound<'py, PyBytes>> {
        let index = self.at(place)?;
        let read = detached(py, || {
            let mut bytes = Vec::new();
            self.view.dataset().read_into(index, &mut bytes).map(|()| bytes)
        })?;
        Ok(PyBytes::new(py, &read.map_err(|error| self.error(index, error.into()))?))
    }

    /// The name and the bytes of each further file of the sample at ``place``.
    #[pyo3(signature = (place) -> "list[tuple[str, bytes]]")]
    fn fields<'py>(
        &self,
        py: Python<'py>,
        place: u64,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyBytes>)>> {
        let index = self.at(place)?;
        let dataset = self.view.dataset();
        let read = detached(py, || -> Result<Vec<Field>, tbl_io::ReadError> {
            let mut fields = Vec::new();
            dataset.read_fields_where(index, &mut |_, _| true, &mut fields)?;
            let entry = dataset.entry(index)?;
            for field in &mut fields {
                if let Some(own) = entry.own_field_name(&field.extension).map(<[u8]>::to_vec) {
                    field.extension = own;
                }
            }
            Ok(fields)
        })?;
        let fields = read.map_err(|error| self.error(index, error.into()))?;
        let field =
            |field: Field| Ok((text(py, &field.extension)?, PyBytes::new(py, &field.bytes)));
        fields.into_iter().map(field).collect()
    }

    /// The pixels of the sample at ``place``, of shape (height, width, 3); with ``exif`` upright.
    fn image(&self, py: Python<'_>, place: u64, exif: bool) -> PyResult<Tensor> {
        let index = self.at(place)?;
        let exif = orientation(exif);
        let image = detached(py, || self.decoded(index, exif))??;
        let shape = vec![image.height as usize, image.width as usize, 3];
        Ok(Tensor::new(Memory::of(&image.data)?, shape, Element::U8))
    }

    /// A PNG file of up to ``count`` samples, spread over the data set; with ``exif`` they are upright.
    fn sheet<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        side: u32,
        exif: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let options = DecodeOptions { exif: orientation(exif), ..DecodeOptions::default() };
        let drawn = interruptible(py, || {
            let mut file = Vec::new();
            contact_sheet(&self.view, count, side, options, &mut file).map(|()| file)
        })?;
        let file = drawn.map_err(|error| match error {
            SheetError::Sample(error) => Error::from(error),
            SheetError::TooLarge { .. } | SheetError::Write(_) | _ => Error::setting(&error),
        })?;
        Ok(PyBytes::new(py, &file))
    }

    /// Counts of the samples, as a dict of what `Dataset.stats` documents; with a type of pixels and
    /// their channels also the figures of these.
    #[pyo3(signature = (pixels) -> "dict[str, Any]")]
    fn stats<'py>(
        &self,
        py: Python<'py>,
        pixels: Option<(String, u32)>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let pixels = pixels.map(|(name, count)| pixels_of(&name, count)).transpose()?;
        let survey = interruptible(py, || Survey::of(&self.view, pixels))?.map_err(Error::from)?;
        if let Some(moments) = &survey.moments {
            warn_of_reduced(py, moments)?;
        }
        let dict = PyDict::new(py);
        dict.set_item("bytes", survey.bytes)?;
        dict.set_item("formats", survey.formats)?;
        dict.set_item("widths", survey.widths.summary())?;
        dict.set_item("heights", survey.heights.summary())?;
        dict.set_item("mean", survey.moments.as_ref().map(Moments::mean))?;
        dict.set_item("std", survey.moments.as_ref().map(Moments::deviation))?;
        dict.set_item("damaged", survey.damaged)?;
        dict.set_item("damaged_count", survey.damaged_count)?;
        Ok(dict)
    }

    /// Mean and standard deviation of each channel over all pixels of this type and as many channels,
    /// and the number of images.
    #[pyo3(signature = (pixels, channels) -> "tuple[list[float], list[float], int]")]
    fn mean_std(
        &self,
        py: Python<'_>,
        pixels: String,
        channels: u32,
    ) -> PyResult<(Vec<f64>, Vec<f64>, u64)> {
        let (pixels, channels) = pixels_of(&pixels, channels)?;
        let made = interruptible(py, || Moments::of(&self.view, pixels, channels))?;
        let moments = made.map_err(Error::from)?;
        warn_of_reduced(py, &moments)?;
        Ok((moments.mean(), moments.deviation(), moments.images()))
    }
}

/// The pixels that a type and a number of channels specify.
fn pixels_of(name: &str, count: u32) -> Result<(PixelType, Channels), Error> {
    Ok((pixels(name)?, channels(count)?))
}

/// Warns if images hold more than the pixels whose figures these are.
fn warn_of_reduced(py: Python<'_>, moments: &Moments) -> PyResult<()> {
    moments.reduced().map_or(Ok(()), |note| warn(py, &note.to_string()))
}

impl PyDataset {
    pub(crate) fn new(view: DatasetView, stores: DataStores) -> Self {
        Self { view, stores: Arc::new(stores) }
    }

    pub(crate) fn view(&self) -> &DatasetView {
        &self.view
    }

    /// The same samples in a data set with other labels, which `stores` read.
    pub(crate) fn relabelled(&self, dataset: Dataset, stores: &DataStores) -> Self {
        Self::new(dataset.into(), DataStores::joined([&*self.stores, stores]))
    }

    fn decoded(&self, index: u64, exif: Exif) -> Result<Image, Error> {
        let fault = |fault| self.error(index, fault);
        let dataset = self.view.dataset();
        let entry = dataset.entry(index).map_err(|error| fault(error.into()))?;
        let mut bytes = Vec::new();
        dataset.read_into(index, &mut bytes).map_err(|error| fault(error.into()))?;
        let size = (entry.width, entry.height);
        let stored = Stored { format: entry.format, size, bytes: &mut bytes, row_index: None };
        let options = DecodeOptions { exif, ..DecodeOptions::default() };
        let mut renderer = SampleRenderer::new(&Recipe::decode(), options);
        let mut image = Image::new();
        let draw = Draw { seed: 0, epoch: 0, sample: index };
        let rendered = renderer.render(stored, draw, Target::Image(&mut image));
        rendered.map(|_| image).map_err(fault)
    }
}

/// A length of draws, as `tl bench` reads it.
fn length_of(text: &str) -> PyResult<Length> {
    text.parse().map_err(|error: tl_pipeline::SamplerError| Error::from(error).into())
}
