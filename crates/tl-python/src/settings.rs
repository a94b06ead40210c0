//! The settings of a loader from Python, and its configuration.

mod clips;
mod groups;

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tl_pipeline::{
    Batching, BoxField, BoxValue, Buckets, CacheConfig, CacheKind, ColumnRequest, Columns, Content,
    Dataset, Delivery, Direction, DiskCache, Fields, ImageField, ImageSource, ImageTransform,
    InstanceMaskField, KeypointField, LoaderConfig, MaskField, MaskType, MemoryCache, Neighbors,
    Shard, Shuffle, Table, Tail, TextFile, TextFormat, TokenWork, ValueField, ValueFormat,
    ValueKind, Work,
};
use tl_transform::BoxFormat;

use crate::element::{Element, PythonElement};
use crate::error::Error;
use crate::recipe::{PyRecipe, channels, orientation, pixels, token_number};
use crate::remote::StoreSettings;
use crate::user::{UserDecoders, UserTransforms};
use clips::ClipSettings;
use groups::{DeviceSettings, ErrorSettings, ReaderSettings, RetrySettings};

/// The settings of a loader, by the names of the arguments of `DataLoader`, with groups as objects;
/// `Settings.native` in `_settings.py` converts those that have another form here.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings<'py> {
    /// The recipe for every sample; none gives the stored bytes.
    recipe: Option<Bound<'py, PyRecipe>>,
    /// The type of tokens, for a data set that has tokens.
    token_dtype: Option<String>,
    /// The form of the fields.
    pub(crate) form: String,
    batch_size: usize,
    num_workers: usize,
    readers: ReaderSettings,
    shuffle: String,
    seed: u64,
    tail: Option<String>,
    keys: bool,
    buckets: Option<BucketSettings>,
    cache: Option<CacheSettings>,
    clips: Option<ClipSettings>,
    columns: Option<ColumnSettings>,
    errors: Option<ErrorSettings>,
    retry: Option<RetrySettings>,
    memory: Option<MemorySettings>,
    device: Option<DeviceSettings>,
    pin_memory: Option<DeviceSettings>,
    ranks: Option<RankSettings>,
    pub(crate) store: Option<StoreSettings>,
    views: bool,
    exif: bool,
    /// The code of the recipe's user transforms.
    pub(crate) user_transforms: UserTransforms,
    pub(crate) decoders: UserDecoders,
    boxes: Option<BoxSettings>,
    /// The extension of the file, and the pointer to masks of objects.
    masks: Option<(String, String)>,
    mask: Option<MaskSettings>,
    /// Further images.
    images: Vec<ImageSettings<'py>>,
    values: Vec<ValueSettings>,
    keypoints: Vec<KeypointSettings>,
    /// Names, extension, kind and place of fields that batches have as lists.
    pub(crate) stored: Vec<(String, String, String, String)>,
    /// Other names for fields of batches.
    pub(crate) renamed: Vec<(String, String)>,
}

/// `Buckets` of Python.
#[derive(FromPyObject)]
struct BucketSettings {
    window: u32,
    multiple: u32,
}

/// `Cache` of Python.
#[derive(FromPyObject)]
struct CacheSettings {
    memory: u64,
    disk: u64,
    folder: Option<PathBuf>,
    decoded: bool,
    blocks: bool,
}

/// `Columns` of Python.
#[derive(Default, FromPyObject)]
struct ColumnSettings {
    columns: Requests,
    features: Vec<String>,
    label: Option<String>,
    neighbors: Option<NeighborSettings>,
    block_bytes: u64,
}

/// `Neighbors` of Python.
#[derive(FromPyObject)]
struct NeighborSettings {
    fanouts: Vec<u32>,
    columns: Requests,
    direction: String,
}

/// Names of columns, each with the type its numbers are to have.
#[derive(Default)]
struct Requests(Vec<(String, Option<String>)>);

impl<'a, 'py> FromPyObject<'a, 'py> for Requests {
    type Error = PyErr;

    fn extract(columns: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let items = columns.cast::<PyDict>()?.items();
        Ok(Self(items.extract()?))
    }
}

/// `Memory` of Python.
#[derive(FromPyObject)]
struct MemorySettings {
    budget: Option<u64>,
    prefetch: usize,
    prefetch_bytes: Option<u64>,
    read_ahead_bytes: Option<u64>,
}

/// `Ranks` of Python.
#[derive(FromPyObject)]
struct RankSettings {
    rank: u32,
    world_size: u32,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct BoxSettings {
    file: String,
    boxes: String,
    /// Names, pointers and types of numbers that belong to each box.
    values: Vec<(String, String, String)>,
    labels: Option<String>,
    format: String,
    output: String,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ImageSettings<'py> {
    name: String,
    /// The extension of its file; none for the sample's own image.
    file: Option<String>,
    /// Its recipe; none where it is changed as the first image is.
    recipe: Option<Bound<'py, PyRecipe>>,
    /// The type and channels of pixels that are moved as the first image is and keep their numbers.
    moves: Option<(String, u32)>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ValueSettings {
    name: String,
    file: String,
    format: String,
    place: String,
    kind: String,
    dtype: Option<String>,
    shape: Option<Vec<usize>>,
    names: Vec<String>,
    count: Option<u32>,
    missing: Option<f64>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct KeypointSettings {
    name: String,
    file: String,
    format: String,
    place: String,
    shape: Option<[usize; 2]>,
    flip_pairs: Vec<[usize; 2]>,
    fills_missing: bool,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct MaskSettings {
    file: String,
    dtype: String,
    padding: Option<u8>,
}

impl Settings<'_> {
    /// The configuration for this data set, which the loader checks.
    pub(crate) fn config(&self, dataset: &Dataset) -> Result<LoaderConfig, Error> {
        // Files of samples whose rows are asked for.
        let rows = match (&self.columns, dataset.tables().next()) {
            (Some(_), None) => dataset.as_tables()?,
            (Some(_) | None, _) => None,
        };
        let (work, columns) = match rows.as_ref().unwrap_or(dataset).tables().next() {
            _ if dataset.sequences().is_some() && self.columns.is_none() => {
                let number = token_number(self.token_dtype.as_deref())?;
                (Work::Tokens(TokenWork { number }), Vec::new())
            }
            Some(table) => {
                let all = ColumnSettings::default();
                self.columns.as_ref().unwrap_or(&all).work(table)?
            }
            None => self.of_samples()?,
        };
        let shuffle: Shuffle = self.shuffle.parse()?;
        let mut config = LoaderConfig {
            batch_size: self.batch_size,
            workers: self.num_workers,
            sampler: shuffle.into(),
            seed: self.seed,
            shard: self.shard()?,
            fields: self.fields(columns)?,
            cache: self.cache.as_ref().map(CacheSettings::config).unwrap_or_default(),
            ..LoaderConfig::new(work)
        };
        if let Some(memory) = &self.memory {
            config.memory_budget = memory.budget;
            config.prefetch = memory.prefetch;
            config.prefetch_bytes = memory.prefetch_bytes;
            config.read_ahead_bytes = memory.read_ahead_bytes.unwrap_or(0);
        }
        if let Some(device) = &self.device {
            config.delivery = Delivery::Device(device.options()?);
        } else if let Some(device) = &self.pin_memory {
            config.delivery = Delivery::Pinned(device.options()?);
        }
        if let Some(errors) = &self.errors {
            config.on_error = errors.on_error()?;
            config.error_budget = errors.budget();
        }
        if let Some(retry) = &self.retry {
            config.retry = retry.policy()?;
        }
        config.readers = self.readers.readers()?;
        if let Some(BucketSettings { window, multiple }) = self.buckets {
            config.batching = Batching::Buckets(Buckets { window, multiple });
        }
        config.decode.exif = orientation(self.exif);
        config.user_transforms = self.user_transforms.of_loader(config.on_error);
        config.decoders = self.decoders.of_loader(config.on_error);
        Ok(config)
    }

    /// The work on samples, and their sidecar files.
    fn of_samples(&self) -> Result<(Work, Vec<String>), Error> {
        if let Some(columns) = &self.columns {
            return Err(columns.without_table());
        }
        let recipe = self.recipe.as_ref().map(|recipe| recipe.get().recipe.clone());
        let work = match (&self.clips, recipe) {
            (Some(clips), Some(recipe)) => Work::Clips(clips.work(recipe)?),
            // Settings of images without decoding are refused in Python.
            (None, Some(recipe)) => Work::Images(recipe),
            (_, None) if self.views => Work::Views,
            (_, None) => Work::Bytes,
        };
        let files = self.stored.iter().map(|stored| stored.1.clone()).collect();
        Ok((work, files))
    }

    fn shard(&self) -> Result<Shard, Error> {
        let tail = match self.tail.as_deref() {
            None => None,
            Some("drop") => Some(Tail::Drop),
            Some("pad") => Some(Tail::Pad),
            Some("uneven") => Some(Tail::Uneven),
            Some(tail) => return Err(none_of("tail", tail, "drop, pad and uneven")),
        };
        let ranks = self.ranks.as_ref();
        let (rank, world) = ranks.map_or((0, 1), |ranks| (ranks.rank, ranks.world_size));
        Ok(Shard { rank, world, tail })
    }

    /// The files of texts, which the workers check.
    fn texts(&self) -> Vec<TextFile> {
        let text = |(_, file, kind, _): &(String, String, String, String)| {
            let format = match kind.as_str() {
                "text" => TextFormat::Utf8,
                "json" => TextFormat::Json,
                _ => return None,
            };
            Some(TextFile { file: file.clone(), format })
        };
        self.stored.iter().filter_map(text).collect()
    }

    fn fields(&self, bytes: Vec<String>) -> Result<Fields, Error> {
        let boxes = self.boxes.as_ref().map(|boxes| {
            let BoxSettings { file, boxes, labels, values, format, output } = boxes;
            let value = |(name, pointer, dtype): &(String, String, String)| {
                let pointer = pointer.clone();
                Ok::<_, Error>(BoxValue { pointer, number: element(name, dtype)? })
            };
            let values = values.iter().map(value).collect::<Result<_, _>>()?;
            let format = box_format(format)?;
            let output = box_format(output)?;
            let labels = labels.clone();
            let field = BoxField::new(file, boxes);
            Ok::<_, Error>(BoxField { labels, values, format, output, ..field })
        });
        let mask = self.mask.as_ref().map(|mask| {
            let dtype = match mask.dtype.as_str() {
                "uint8" => MaskType::U8,
                "uint16" => MaskType::U16,
                "int32" => MaskType::I32,
                "int64" => MaskType::I64,
                other => {
                    return Err(none_of(
                        "the mask's dtype",
                        other,
                        "uint8, uint16, int32 and int64",
                    ));
                }
            };
            Ok(MaskField { dtype, padding: mask.padding, ..MaskField::new(&mask.file) })
        });
        let masks = self.masks.as_ref();
        Ok(Fields {
            keys: self.keys,
            bytes,
            texts: self.texts(),
            boxes: boxes.transpose()?,
            mask: mask.transpose()?,
            instance_masks: masks.map(|(file, masks)| InstanceMaskField::new(file, masks)),
            images: self.images.iter().map(ImageSettings::field).collect::<Result<_, _>>()?,
            values: self.values.iter().map(ValueSettings::field).collect::<Result<_, _>>()?,
            keypoints: self.keypoints.iter().map(KeypointSettings::field).collect(),
        })
    }

    /// The names of the numbers of boxes, and their types.
    pub(crate) fn box_values(&self, config: &LoaderConfig) -> Vec<(String, Element)> {
        let (Some(settings), Some(field)) = (&self.boxes, &config.fields.boxes) else {
            return Vec::new();
        };
        let values = settings.values.iter().zip(&field.values);
        values.map(|(setting, value)| (setting.0.clone(), value.number)).collect()
    }
}

impl CacheSettings {
    fn config(&self) -> CacheConfig {
        let kind = if self.decoded { CacheKind::Decoded } else { CacheKind::Encoded };
        let memory = MemoryCache { kind, bytes: self.memory };
        let folder = self.folder.clone();
        let on_disk = if self.blocks { CacheKind::Blocks } else { kind };
        let disk = folder.map(|folder| DiskCache { kind: on_disk, folder, bytes: self.disk });
        CacheConfig { memory: (memory.bytes > 0).then_some(memory), disk }
    }
}

impl ColumnSettings {
    /// The work on a table, and its columns of bytes.
    fn work(&self, table: &dyn Table) -> Result<(Work, Vec<String>), Error> {
        let is_bytes = |name: &str| {
            let found = table.columns().iter().rev().find(|column| column.name == name);
            found.is_some_and(|column| matches!(column.content, Content::Bytes { .. }))
        };
        let (bytes, numbers): (Vec<_>, Vec<_>) =
            self.columns.0.iter().partition(|(name, _)| is_bytes(name));
        if let Some((name, Some(dtype))) = bytes.iter().find(|(_, dtype)| dtype.is_some()) {
            return Err(Error::setting(&format!(
                "column {name} holds bytes, which cannot become {dtype}"
            )));
        }
        let columns = Columns {
            columns: if self.columns.0.is_empty() { None } else { Some(requests(numbers)?) },
            features: self.features.clone(),
            label: self.label.clone(),
            neighbors: self.neighbors.as_ref().map(NeighborSettings::config).transpose()?,
            block_bytes: self.block_bytes,
        };
        let bytes = bytes.into_iter().map(|(name, _)| name.clone()).collect();
        Ok((Work::Columns(columns), bytes))
    }

    /// The error for a data set that is not a table.
    fn without_table(&self) -> Error {
        let name = self.columns.0.first().map_or("json", |(name, _)| name);
        Error::setting(&format!(
            "columns: only supported for tables (IDV, TBF, Parquet, Arrow, .npy, .npz, safetensors, Zarr); files \
             next to images are fields, such as fields={{'{name}': tl.Bytes()}}"
        ))
    }
}

impl NeighborSettings {
    fn config(&self) -> Result<Neighbors, Error> {
        let direction = match self.direction.as_str() {
            "outgoing" => Direction::Outgoing,
            "incoming" => Direction::Incoming,
            other => return Err(none_of("direction", other, "outgoing and incoming")),
        };
        let columns = requests(&self.columns.0)?;
        Ok(Neighbors { fanouts: self.fanouts.clone(), direction, columns })
    }
}

impl ImageSettings<'_> {
    fn field(&self) -> Result<ImageField, Error> {
        let Self { name, file, recipe, moves } = self;
        let transform = match (recipe, moves) {
            (Some(recipe), _) => ImageTransform::Recipe(recipe.get().recipe.clone()),
            (None, Some((type_name, count))) => {
                ImageTransform::Moves(pixels(type_name)?, channels(*count)?)
            }
            (None, None) => ImageTransform::Joint,
        };
        let name = name.clone();
        let source = file.clone().map_or(ImageSource::Sample, ImageSource::File);
        Ok(ImageField { name, source, transform })
    }
}

impl ValueSettings {
    fn field(&self) -> Result<ValueField, Error> {
        let Self { name, file, missing, names, .. } = self;
        let format = value_format(&self.format, &self.place);
        let number = self.dtype.as_ref().map(|dtype| element(name, dtype)).transpose()?;
        let names = names.clone();
        let kind = match (self.kind.as_str(), number) {
            ("class", _) => ValueKind::Class(names),
            ("multi_hot", Some(number)) => {
                ValueKind::MultiHot { count: self.count.unwrap_or(0), names, number }
            }
            _ => ValueKind::Numbers { number, shape: self.shape.clone() },
        };
        Ok(ValueField { kind, missing: *missing, ..ValueField::new(name, file, format) })
    }
}

impl KeypointSettings {
    fn field(&self) -> KeypointField {
        let format = value_format(&self.format, &self.place);
        let field = KeypointField::new(&self.name, &self.file, format);
        KeypointField {
            shape: self.shape,
            flip_pairs: self.flip_pairs.clone(),
            fills_missing: self.fills_missing,
            ..field
        }
    }
}

/// The format of this name, with the place of values in a file.
fn value_format(format: &str, place: &str) -> ValueFormat {
    match format {
        "text" => ValueFormat::Text,
        "json" => ValueFormat::Json(place.to_owned()),
        "npy" => ValueFormat::Npy,
        _ => ValueFormat::Npz(place.to_owned()),
    }
}

/// The type of this name of the numbers of a column.
fn element(column: &str, dtype: &str) -> Result<Element, Error> {
    let message = || format!("column {column}: unsupported dtype {dtype}");
    Element::of_python(dtype).ok_or_else(|| Error::setting(&message()))
}

fn requests<'a>(
    columns: impl IntoIterator<Item = &'a (String, Option<String>)>,
) -> Result<Vec<ColumnRequest>, Error> {
    let request = |(name, dtype): &(String, Option<String>)| {
        let number = dtype.as_ref().map(|dtype| element(name, dtype)).transpose()?;
        Ok(ColumnRequest { number, ..ColumnRequest::new(name.clone()) })
    };
    columns.into_iter().map(request).collect()
}

fn box_format(name: &str) -> Result<BoxFormat, Error> {
    Ok(match name {
        "xyxy" => BoxFormat::Xyxy,
        "xywh" => BoxFormat::Xywh,
        "cxcywh" => BoxFormat::Cxcywh,
        _ => return Err(none_of("the boxes' format", name, "xyxy, xywh and cxcywh")),
    })
}

fn none_of(setting: &str, value: &str, expected: &str) -> Error {
    Error::setting(&format!("{setting} is {value}, expected one of {expected}"))
}
