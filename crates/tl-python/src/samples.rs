//! A data set sample by sample, in whatever order somebody else makes.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, TryLockError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tbl_io::ReadError;
use tl_decode::{DecodeOptions, Exif, Image};
use tl_pipeline::{Dataset, OnError, PipelineError, SampleError, SampleRenderer, Stored, Target};
use tl_transform::{BoundTransforms, Draw, Layout, OutputSpec, Plan, Recipe};

use crate::detached::detached;
use crate::element::Element;
use crate::error::{Error, text};
use crate::memory::Memory;
use crate::recipe::PyRecipe;
use crate::tensor::Tensor;
use crate::user::UserTransforms;

/// The samples of a data set, and what a recipe makes of each: the bytes that a loader's batches
/// have of it.
///
/// It has no threads of its own, so that it works on in a forked process.
#[pyclass(frozen, name = "Samples", module = "turboloader._native")]
pub(crate) struct PySamples {
    dataset: Dataset,
    recipe: Recipe,
    functions: UserTransforms,
    user_transforms: BoundTransforms,
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

    /// What the recipe makes of sample `index`, and the size of each of its images.
    fn render(&self, index: u64, draw: Draw) -> Result<(Image, (u32, u32)), Error> {
        let entry = self.dataset.entry(index)?;
        let mut bytes = Vec::new();
        self.dataset.read_into(index, &mut bytes)?;
        let (format, size) = (entry.format, (entry.width, entry.height));
        let stored = Stored { format, size, bytes: &mut bytes, row_index: None };
        let (mut renderer, mut image) = (self.renderer(), Image::new());
        let rendered = renderer.render(stored, draw, Target::Image(&mut image));
        let size = rendered.map(|plans| plans.first().map_or((0, 0), Plan::output_size));
        let size = size.map_err(|fault| {
            let (key, offset) = (entry.key.map(std::borrow::Cow::into_owned), Some(entry.offset));
            let shard = self.dataset.locate(index).map_or_else(
                |error| error.path().to_owned(),
                |(source, _)| source.path().to_owned(),
            );
            PipelineError::Sample(Arc::new(SampleError { index, key, shard, offset, fault }))
        })?;
        self.put_back(renderer);
        Ok((image, size))
    }
}

#[pymethods]
impl PySamples {
    /// Opens the data set.
    #[new]
    #[pyo3(signature = (
        paths: "list[str]", recipe, *, seed, exif=false,
        user_transforms: "dict[str, Callable[[Any], Any]] | None" = None
    ))]
    fn new(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        recipe: &PyRecipe,
        seed: u64,
        exif: bool,
        user_transforms: Option<UserTransforms>,
    ) -> Result<Self, Error> {
        let functions = user_transforms.unwrap_or_default();
        let user_transforms = functions.of_loader(OnError::Raise);
        let user_transforms =
            user_transforms.bind(&recipe.recipe).map_err(|error| Error::recipe(&error))?;
        let dataset = detached(py, || Dataset::open(&paths))??;
        let exif = if exif { Exif::Apply } else { Exif::Ignore };
        let options = DecodeOptions { exif, ..DecodeOptions::default() };
        let (recipe, renderers) = (recipe.recipe.clone(), Mutex::default());
        Ok(Self { dataset, recipe, functions, user_transforms, options, seed, renderers })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.functions.traverse(&visit)
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.dataset.len()).unwrap_or(usize::MAX)
    }

    /// The names of the classes, indexed by label.
    #[getter]
    fn class_names(&self) -> Vec<String> {
        self.dataset.class_names().to_vec()
    }

    /// Sample ``index``'s label, if it has one. One that cannot be read is an error.
    fn label(&self, index: u64) -> Result<Option<i64>, Error> {
        Ok(self.dataset.try_label(index)?)
    }

    /// The labels of all samples. One that cannot be read is an error.
    fn labels(&self, py: Python<'_>) -> Result<Vec<Option<i64>>, Error> {
        let labels = || (0..self.dataset.len()).map(|index| self.dataset.try_label(index));
        Ok(detached(py, || labels().collect::<Result<_, ReadError>>())??)
    }

    /// Sample ``index``'s name, if it has one.
    #[pyo3(signature = (index) -> "str | None")]
    fn key<'py>(&self, py: Python<'py>, index: u64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let entry = self.dataset.entry(index).map_err(Error::from)?;
        entry.key.as_deref().map(|key| text(py, key)).transpose()
    }

    /// The first sample of each file or folder, and the one behind its last.
    fn shards(&self) -> Vec<(u64, u64)> {
        let shards = 0..self.dataset.shards().len();
        let samples = shards.filter_map(|shard| self.dataset.shard_samples(shard));
        samples.map(|samples| (samples.start, samples.end)).collect()
    }

    /// How many bytes these samples have, together.
    fn nbytes(&self, py: Python<'_>, start: u64, stop: u64) -> Result<u64, Error> {
        detached(py, || {
            let mut sum = 0_u64;
            for index in start..stop {
                sum = sum.saturating_add(self.dataset.facts(index)?.bytes);
            }
            Ok(sum)
        })?
    }

    /// The bytes of sample ``index``, checked against the checksums that the file has.
    fn read<'py>(&self, py: Python<'py>, index: u64) -> PyResult<Bound<'py, PyBytes>> {
        let read = detached(py, || {
            let mut bytes = Vec::new();
            self.dataset.read_into(index, &mut bytes).map(|()| bytes)
        })?;
        let read = read.map_err(|error| Error::from(error.for_sample(index, None)))?;
        Ok(PyBytes::new(py, &read))
    }

    /// What the recipe makes of sample ``index`` in this epoch, of shape (height, width, 3) or (3,
    /// height, width); recipes with several views make a tensor with these first.
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
        let (seed, sample) = (seed.unwrap_or(self.seed), number.unwrap_or(index));
        let draw = Draw { seed, epoch, sample };
        let rendered = detached(py, || self.render(index, draw))?;
        let (image, (width, height)) = rendered.map_err(|error| error.of_call(py))?;
        let (width, height) = (width as usize, height as usize);
        let OutputSpec { dtype, layout } = self.recipe.output();
        // Decoded pixels that nothing is done to stay as they are.
        let is_interleaved = layout == Layout::Hwc || self.recipe.ops().is_empty();
        let one = if is_interleaved { [height, width, 3] } else { [3, height, width] };
        let views = (self.recipe.views() > 1).then_some(self.recipe.views() as usize);
        let shape = views.into_iter().chain(one).collect();
        Ok(Tensor::new(Memory::of(&image.data)?, shape, Element::try_from(dtype)?))
    }
}
