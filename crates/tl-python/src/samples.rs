//! A data set sample by sample, in whatever order somebody else makes.

use std::ffi::OsString;
use std::sync::{Mutex, TryLockError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tl_decode::{DecodeOptions, Image};
use tl_pipeline::{
    Dataset, DatasetView, Fields, OnError, PipelineError, SampleFault, SampleRenderer, Stored,
    Target,
};
use tl_transform::{BoundTransforms, Draw, Layout, OutputSpec, Plan, Recipe};

use crate::dataset::DatasetSource;
use crate::detached::{detached, interruptible};
use crate::error::Error;
use crate::loader::source_notes;
use crate::memory::Memory;
use crate::names::text;
use crate::recipe::{PyRecipe, orientation};
use crate::remote::StoreSettings;
use crate::tensor::Tensor;
use crate::user::UserTransforms;

/// The samples of a data set, each transformed by a recipe: the same bytes as in a loader's
/// batches.
///
/// It starts no threads, so it keeps working in a forked process.
#[pyclass(frozen, name = "Samples", module = "turboloader._native")]
pub(crate) struct PySamples {
    view: DatasetView,
    recipe: Recipe,
    functions: UserTransforms,
    user_transforms: BoundTransforms,
    /// The sidecar files that `files` reads.
    fields: Fields,
    options: DecodeOptions,
    seed: u64,
    /// Those that are idle, with their memory: at most as many as there were callers at once.
    renderers: Mutex<Vec<SampleRenderer>>,
}

impl PySamples {
    fn renderer(&self) -> SampleRenderer {
        let idle = match self.renderers.try_lock() {
            Ok(mut renderers) => renderers.pop(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().pop(),
            // Whoever holds the lock may not exist in this process.
            Err(TryLockError::WouldBlock) => None,
        };
        idle.unwrap_or_else(|| {
            SampleRenderer::new(&self.recipe, self.options)
                .with_user_transforms(self.user_transforms.clone())
        })
    }

    fn put_back(&self, renderer: SampleRenderer) {
        match self.renderers.try_lock() {
            Ok(mut renderers) => renderers.push(renderer),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().push(renderer),
            Err(TryLockError::WouldBlock) => drop(renderer),
        }
    }

    /// Applies the recipe to sample `index`; also returns the size of each of its images.
    fn render(&self, index: u64, draw: Draw) -> Result<(Image, (u32, u32)), Error> {
        let fault = |fault| self.error(index, fault);
        let entry = self.dataset().entry(index).map_err(|error| fault(error.into()))?;
        let mut bytes = Vec::new();
        self.dataset().read_into(index, &mut bytes).map_err(|error| fault(error.into()))?;
        let format = entry.format;
        let size = (entry.width, entry.height);
        let stored = Stored { format, size, bytes: &mut bytes, row_index: None };
        let mut renderer = self.renderer();
        let mut image = Image::new();
        let rendered = renderer.render(stored, draw, Target::Image(&mut image));
        let size = rendered.map(|plans| plans.first().map_or((0, 0), Plan::output_size));
        let size = size.map_err(fault)?;
        self.put_back(renderer);
        Ok((image, size))
    }

    fn dataset(&self) -> &Dataset {
        self.view.dataset()
    }

    /// The number in the data set of the sample at a place, or one that no sample has.
    fn at(&self, place: u64) -> u64 {
        let past_the_end = if self.view.is_whole() { place } else { u64::MAX };
        self.view.sample_at(place).unwrap_or(past_the_end)
    }

    fn error(&self, index: u64, fault: SampleFault) -> Error {
        (&self.dataset().sample_error(index, fault)).into()
    }
}

#[pymethods]
impl PySamples {
    /// Opens the data set.
    #[new]
    #[pyo3(signature = (
        dataset: "Dataset | list[str]", recipe, *, seed, exif=false,
        user_transforms: "dict[str, Callable[[Any], Any]] | None" = None,
        files: "list[str] | None" = None, stores: "Store | None" = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python has them by name")]
    fn new(
        py: Python<'_>,
        dataset: DatasetSource<'_>,
        recipe: &PyRecipe,
        seed: u64,
        exif: bool,
        user_transforms: Option<UserTransforms>,
        files: Option<Vec<String>>,
        stores: Option<StoreSettings>,
    ) -> PyResult<Self> {
        let functions = user_transforms.unwrap_or_default();
        let user_transforms = functions.of_loader(OnError::Raise);
        let user_transforms =
            user_transforms.bind(&recipe.recipe).map_err(|error| Error::recipe(&error))?;
        let fields = Fields { bytes: files.unwrap_or_default(), ..Fields::default() };
        let (view, _) = dataset.open(py, &stores.unwrap_or_default())?;
        // Samples that are drawn have no numbers.
        view.indices().map(drop).map_err(Error::from)?;
        interruptible(py, || fields.check_names(view.dataset()))?.map_err(Error::from)?;
        let exif = orientation(exif);
        let options = DecodeOptions { exif, ..DecodeOptions::default() };
        let recipe = recipe.recipe.clone();
        let renderers = Mutex::default();
        Ok(Self { view, recipe, functions, user_transforms, fields, options, seed, renderers })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.functions.traverse(&visit)
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.view.len()).unwrap_or(usize::MAX)
    }

    /// Refuses a data set without samples, or without an image.
    fn require_images(&self, py: Python<'_>) -> PyResult<()> {
        let check =
            || self.dataset().require_samples().and_then(|()| self.dataset().require_images());
        Ok(detached(py, check)?.map_err(PipelineError::from).map_err(Error::from)?)
    }

    /// Notes on the data set, such as labels that are missing; ``usual`` is as in `Loader.notes`.
    #[pyo3(signature = (*, usual=true))]
    fn notes(&self, usual: bool) -> Vec<String> {
        let of_labels = self.dataset().label_notes().iter().map(ToString::to_string);
        source_notes(self.dataset(), usual, |_| false).chain(of_labels).collect()
    }

    /// The names of the classes, indexed by label.
    #[getter]
    fn class_names(&self) -> Vec<String> {
        self.dataset().class_names().to_vec()
    }

    /// The number in the stored data set of sample ``index``.
    fn number(&self, index: u64) -> u64 {
        self.at(index)
    }

    /// Sample ``index``'s label, if it has one. One that cannot be read is an error.
    fn label(&self, index: u64) -> Result<Option<i64>, Error> {
        let index = self.at(index);
        self.dataset().try_label(index).map_err(|error| self.error(index, error.into()))
    }

    /// The labels of all samples. One that cannot be read is an error.
    fn labels(&self, py: Python<'_>) -> Result<Vec<Option<i64>>, Error> {
        detached(py, || (0..self.view.len()).map(|index| self.label(index)).collect())?
    }

    /// Sample ``index``'s name, if it has one.
    #[pyo3(signature = (index) -> "str | None")]
    fn key<'py>(&self, py: Python<'py>, index: u64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let index = self.at(index);
        let entry = self.dataset().entry(index);
        let entry = entry.map_err(|error| self.error(index, error.into()))?;
        entry.key.as_deref().map(|key| text(py, key)).transpose()
    }

    /// The bytes of each sidecar file of sample ``index`` that is asked for, None where it has none.
    #[pyo3(signature = (index) -> "list[bytes | None]")]
    fn files<'py>(
        &self,
        py: Python<'py>,
        index: u64,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let index = self.at(index);
        let read = detached(py, || self.fields.read_bytes(self.dataset(), index))?;
        let read = read.map_err(|fault| self.error(index, fault))?;
        Ok(read.into_iter().map(|bytes| bytes.map(|bytes| PyBytes::new(py, &bytes))).collect())
    }

    /// The path or URL of each file or folder, its first sample, and the one after its last.
    #[pyo3(signature = () -> "list[tuple[str, int, int]]")]
    fn shards(&self) -> Vec<(OsString, u64, u64)> {
        let shards = self.dataset().shards().iter().enumerate();
        let samples = shards.filter_map(|(shard, source)| {
            let samples = self.dataset().shard_samples(shard)?;
            Some((source.location().as_os_str().to_owned(), samples.start, samples.end))
        });
        samples.collect()
    }

    /// How many bytes these samples have, together.
    fn nbytes(&self, py: Python<'_>, start: u64, stop: u64) -> Result<u64, Error> {
        detached(py, || {
            let mut sum = 0_u64;
            for index in start..stop {
                sum = sum.saturating_add(self.dataset().facts(self.at(index))?.bytes);
            }
            Ok(sum)
        })?
    }

    /// The bytes of sample ``index``, checked against the checksums that the file has.
    fn read<'py>(&self, py: Python<'py>, index: u64) -> PyResult<Bound<'py, PyBytes>> {
        let index = self.at(index);
        let read = detached(py, || {
            let mut bytes = Vec::new();
            self.dataset().read_into(index, &mut bytes).map(|()| bytes)
        })?;
        let read = read.map_err(|error| Error::from(error.for_sample(index, None)))?;
        Ok(PyBytes::new(py, &read))
    }

    /// Applies the recipe to sample ``index`` in this epoch; the result has shape (height, width,
    /// channels) or (channels, height, width). Recipes with several views make a tensor with these first.
    ///
    /// ``number`` is the sample's where this data set is a part of a larger one, whose bytes it has.
    /// ``seed`` replaces that of the data set.
    #[pyo3(signature = (index, epoch, number=None, seed=None))]
    fn image(
        &self,
        py: Python<'_>,
        index: u64,
        epoch: u32,
        number: Option<u64>,
        seed: Option<u64>,
    ) -> PyResult<Tensor> {
        let index = self.at(index);
        let seed = seed.unwrap_or(self.seed);
        let sample = number.unwrap_or(index);
        let draw = Draw { seed, epoch, sample };
        let rendered = detached(py, || self.render(index, draw))?;
        let (image, (width, height)) = rendered.map_err(|error| error.of_call(py))?;
        let width = width as usize;
        let height = height as usize;
        let OutputSpec { dtype, layout } = self.recipe.output();
        // Decoded pixels that nothing is done to stay as they are.
        let is_interleaved = layout == Layout::Hwc || self.recipe.ops().is_empty();
        let channels = self.recipe.channels().count() as usize;
        let one =
            if is_interleaved { [height, width, channels] } else { [channels, height, width] };
        let views = (self.recipe.views() > 1).then_some(self.recipe.views() as usize);
        let shape = views.into_iter().chain(one).collect();
        Ok(Tensor::new(Memory::of(&image.data)?, shape, dtype.into()))
    }
}
