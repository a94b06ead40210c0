//! Lists of samples, labels from elsewhere, and samples in memory, as Python gives them.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use tbl_io::{
    Coco, GivenLabels, HeldBytes, InMemory, Items, Listed, Location, Manifest, Pairs, ReadError,
    Stores, Unpaired, open_coco, open_manifest, open_pairs,
};
use tl_pipeline::{Dataset, PipelineError};
use tl_transform::Segmentation;

use crate::dataset::PyDataset;
use crate::detached::{detached, interruptible};
use crate::element::Element;
use crate::error::Error;
use crate::memory::Memory;
use crate::remote::{DataStores, StoreSettings};
use crate::tensor::Tensor;

/// The columns of a manifest, and the folder of its files.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ManifestSettings {
    image: Option<String>,
    label: Option<String>,
    files: Vec<String>,
    root: Option<PathBuf>,
}

/// Opens the samples that a CSV file, a TSV file or JSON Lines list.
#[pyfunction]
#[pyo3(signature = (
    path: "str", columns: "dict[str, Any]", stores: "Store | None" = None
))]
pub(crate) fn manifest(
    py: Python<'_>,
    path: PathBuf,
    columns: ManifestSettings,
    stores: Option<StoreSettings>,
) -> PyResult<PyDataset> {
    let ManifestSettings { image, label, files, root } = columns;
    let root = root.as_ref().map(Location::new);
    let options = Manifest { image, label, files, root, ..Manifest::default() };
    opened(py, stores, |stores| open_manifest(stores, &path, &options))
}

/// Opens the images of a file of annotations as COCO writes them. ``dense`` numbers categories from
/// 0 on.
#[pyfunction]
#[pyo3(signature = (
    path: "str", images: "str | None", dense, stores: "Store | None" = None
))]
pub(crate) fn coco(
    py: Python<'_>,
    path: PathBuf,
    images: Option<PathBuf>,
    dense: bool,
    stores: Option<StoreSettings>,
) -> PyResult<PyDataset> {
    let images = images.as_ref().map(Location::new);
    let options = Coco { images, dense, ..Coco::default() };
    opened(py, stores, |stores| open_coco(stores, &path, &options))
}

/// Opens images and further files that belong to them by their patterns. ``unpaired`` is
/// ``"error"``, ``"keep"`` or ``"drop"``.
#[pyfunction]
#[pyo3(signature = (
    image, fields, split: "str | None", unpaired, stores: "Store | None" = None
))]
pub(crate) fn pairs(
    py: Python<'_>,
    image: String,
    fields: Vec<(String, String)>,
    split: Option<PathBuf>,
    unpaired: &str,
    stores: Option<StoreSettings>,
) -> PyResult<PyDataset> {
    let unpaired = match unpaired {
        "error" => Unpaired::Refuse,
        "keep" => Unpaired::Keep,
        "drop" => Unpaired::Drop,
        other => {
            let text = format!("unpaired is {other:?}, expected \"error\", \"keep\" or \"drop\"");
            return Err(Error::setting(&text).into());
        }
    };
    let split = split.as_ref().map(Location::new);
    let pairs = Pairs { image, fields, split, unpaired };
    opened(py, stores, |stores| open_pairs(stores, &pairs))
}

fn opened(
    py: Python<'_>,
    stores: Option<StoreSettings>,
    open: impl FnOnce(&Stores) -> Result<Listed, ReadError> + Send,
) -> PyResult<PyDataset> {
    let stores = DataStores::new(&stores.unwrap_or_default())?;
    let open = || -> Result<Dataset, PipelineError> {
        let listed = open(&stores.stores())?;
        Dataset::from_sources(vec![Box::new(listed)])
    };
    let dataset = interruptible(py, open)?.map_err(Error::from)?;
    Ok(PyDataset::new(dataset.into(), stores))
}

/// The names of the categories of annotated objects, by their numbers.
#[pyfunction]
pub(crate) fn box_class_names(dataset: PyRef<'_, PyDataset>) -> Vec<String> {
    dataset.view().dataset().box_class_names().to_vec()
}

/// Labels in a file, by the names of samples, or in the order of the samples.
#[derive(FromPyObject)]
pub(crate) enum LabelSource {
    File(PathBuf),
    ByName(HashMap<String, i64>),
    ClassesByName(HashMap<String, String>),
    InOrder(Vec<i64>),
    ClassesInOrder(Vec<String>),
}

/// The data set with other labels. Samples that have none are an error, unless ``allow_none``.
#[pyfunction]
#[pyo3(signature = (
    dataset, labels: "str | dict[str, int] | dict[str, str] | list[int] | list[str]", allow_none,
    stores: "Store | None" = None
))]
pub(crate) fn with_labels(
    py: Python<'_>,
    dataset: PyRef<'_, PyDataset>,
    labels: LabelSource,
    allow_none: bool,
    stores: Option<StoreSettings>,
) -> PyResult<PyDataset> {
    let stores = DataStores::new(&stores.unwrap_or_default())?;
    let plain = (**dataset.view().dataset()).clone();
    let relabel = || -> Result<Dataset, PipelineError> {
        let bytes = |name: &String| name.clone().into_bytes();
        let given = match &labels {
            LabelSource::File(path) => GivenLabels::read(&stores.stores(), path)?,
            LabelSource::ByName(labels) => {
                GivenLabels::by_name(labels.iter().map(|(n, l)| (bytes(n), *l)).collect())
            }
            LabelSource::ClassesByName(classes) => {
                let classes = classes.iter().map(|(name, class)| (bytes(name), class.clone()));
                GivenLabels::classes_by_name(&classes.collect())
            }
            LabelSource::InOrder(labels) => GivenLabels::in_order(labels.clone()),
            LabelSource::ClassesInOrder(classes) => GivenLabels::classes_in_order(classes),
        };
        plain.with_labels(&if allow_none { given.or_none() } else { given })
    };
    let relabelled = interruptible(py, relabel)?.map_err(Error::from)?;
    Ok(dataset.relabelled(relabelled, &stores))
}

/// The data set with its classes numbered as these names.
#[pyfunction]
#[pyo3(signature = (dataset, names: "list[str]"))]
pub(crate) fn with_classes(
    py: Python<'_>,
    dataset: PyRef<'_, PyDataset>,
    names: Vec<String>,
) -> PyResult<PyDataset> {
    let plain = (**dataset.view().dataset()).clone();
    let renumbered = detached(py, || plain.with_class_names(&names))?.map_err(Error::from)?;
    Ok(dataset.relabelled(renumbered, &DataStores::new(&StoreSettings::default())?))
}

/// The data set of ImageNet's validation images with their labels, from files below ``root``.
#[pyfunction]
#[pyo3(signature = (dataset, root: "str", stores: "Store | None" = None))]
pub(crate) fn with_imagenet_labels(
    py: Python<'_>,
    dataset: PyRef<'_, PyDataset>,
    root: PathBuf,
    stores: Option<StoreSettings>,
) -> PyResult<PyDataset> {
    let stores = DataStores::new(&stores.unwrap_or_default())?;
    let plain = (**dataset.view().dataset()).clone();
    let relabel = || -> Result<Dataset, PipelineError> {
        plain.with_labels(&GivenLabels::imagenet_val(&stores.stores(), &root)?)
    };
    let relabelled = interruptible(py, relabel)?.map_err(Error::from)?;
    Ok(dataset.relabelled(relabelled, &stores))
}

/// Bytes for each sample, or a block of equal parts with a header before each.
#[derive(FromPyObject)]
pub(crate) enum PyItems {
    Each(Vec<Option<PyBackedBytes>>),
    Rows(PyBackedBytes, PyBackedBytes, usize),
}

impl PyItems {
    fn items(self) -> Result<Items, Error> {
        let held = |bytes: PyBackedBytes| Arc::new(bytes) as HeldBytes;
        match self {
            Self::Each(items) => {
                Ok(Items::each(items.into_iter().map(|item| item.map(held)).collect()))
            }
            Self::Rows(front, block, row_bytes) => {
                Ok(Items::rows(front.to_vec(), held(block), row_bytes)?)
            }
        }
    }
}

/// Samples in memory with fields: files of images, or rows of pixels of this width and height.
#[pyfunction]
#[pyo3(signature = (
    samples: "list[bytes] | tuple[bytes, bytes, int]", size: "tuple[int, int] | None",
    fields: "list[tuple[str, list[bytes | None] | tuple[bytes, bytes, int]]]"
))]
pub(crate) fn in_memory(
    py: Python<'_>,
    samples: PyItems,
    size: Option<(u32, u32)>,
    fields: Vec<(String, PyItems)>,
) -> PyResult<PyDataset> {
    let samples = samples.items()?;
    let mut source = match size {
        Some((width, height)) => InMemory::pixels(samples, width, height).map_err(Error::from)?,
        None => InMemory::files(samples),
    };
    for (name, items) in fields {
        source = source.with_field(&name, items.items()?).map_err(Error::from)?;
    }
    let open = || Dataset::from_sources(vec![Box::new(source)]);
    let dataset = interruptible(py, open)?.map_err(Error::from)?;
    Ok(PyDataset::new(dataset.into(), DataStores::new(&StoreSettings::default())?))
}

/// Pairs of keypoints that change places in mirrored images, by the names of the categories.
#[pyfunction]
#[pyo3(signature = (dataset: "Dataset") -> "list[tuple[int, int]]")]
pub(crate) fn flip_pairs(dataset: PyRef<'_, PyDataset>) -> Vec<(usize, usize)> {
    let shards = dataset.view().dataset().shards();
    let pairs = shards.first().map_or(&[][..], |source| source.flip_pairs());
    pairs.iter().map(|&[left, right]| (left, right)).collect()
}

/// The mask of an annotation's ``segmentation``, which is JSON: 1 inside, 0 outside.
#[pyfunction]
pub(crate) fn coco_mask(
    py: Python<'_>,
    segmentation: &str,
    height: u32,
    width: u32,
) -> PyResult<Tensor> {
    let draw = || -> Result<Vec<u8>, Error> {
        let segmentation: Segmentation = serde_json::from_str(segmentation)
            .map_err(|error| Error::setting(&format!("segmentation: {error}")))?;
        let mask = segmentation.mask(width, height);
        Ok(mask.map_err(|error| Error::setting(&error))?.data().to_vec())
    };
    let data = detached(py, draw)??;
    let shape = vec![height as usize, width as usize];
    Ok(Tensor::new(Memory::of(&data)?, shape, Element::U8))
}
