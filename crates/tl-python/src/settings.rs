//! The settings of a loader from Python, and its configuration.

use std::path::PathBuf;

use pyo3::prelude::*;
use tl_decode::Exif;
use tl_pipeline::{
    Batching, BoxField, BoxValue, Buckets, CacheConfig, CacheKind, ColumnRequest, Columns, Content,
    Dataset, Direction, DiskCache, ErrorBudget, Fields, ImageField, ImageSource, ImageTransform,
    LoaderConfig, MaskField, MaskType, MemoryCache, Neighbors, OnError, Readers, Shard, Shuffle,
    Table, Tail, ValueField, ValueFormat, ValueKind, Work,
};
use tl_transform::BoxFormat;

use crate::element::{Element, PythonElement};
use crate::error::Error;
use crate::recipe::PyRecipe;
use crate::user::UserTransforms;

/// The settings of a loader, by the names of the arguments of `DataLoader`; `Settings.native` in
/// `_settings.py` converts those that have another form here.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings<'py> {
    /// The recipe for every sample; none gives the stored bytes.
    recipe: Option<Bound<'py, PyRecipe>>,
    /// The form of the fields.
    pub(crate) form: String,
    batch_size: usize,
    num_workers: usize,
    prefetch_batches: usize,
    prefetch_bytes: Option<u64>,
    memory_budget: Option<u64>,
    readers: usize,
    read_ahead: Option<u64>,
    shuffle: String,
    seed: u64,
    world_rank: Option<u32>,
    world_size: Option<u32>,
    tail: Option<String>,
    on_error: String,
    max_errors: Option<u64>,
    max_error_rate: Option<f64>,
    keys: bool,
    /// Names, each with the type its numbers are to have.
    columns: Vec<(String, Option<String>)>,
    features: Vec<String>,
    label: Option<String>,
    neighbors: Vec<u32>,
    neighbor_columns: Vec<(String, Option<String>)>,
    neighbor_direction: String,
    block_bytes: u64,
    /// The code of the recipe's user transforms.
    pub(crate) user_transforms: UserTransforms,
    boxes: Option<BoxSettings>,
    mask: Option<MaskSettings>,
    /// Further images.
    images: Vec<ImageSettings<'py>>,
    values: Vec<ValueSettings>,
    /// Names, extension, kind and place of fields that batches have as lists.
    pub(crate) stored: Vec<(String, String, String, String)>,
    /// Other names for fields of batches.
    pub(crate) renamed: Vec<(String, String)>,
    cache_decoded: bool,
    cache_memory_bytes: u64,
    cache_disk_bytes: u64,
    cache_dir: Option<PathBuf>,
    exif: bool,
    /// The window in batches, and the multiple of sides.
    buckets: Option<(u32, u32)>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct BoxSettings {
    column: String,
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
    column: Option<String>,
    /// Its recipe; none where it is changed as the first image is.
    recipe: Option<Bound<'py, PyRecipe>>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ValueSettings {
    name: String,
    column: String,
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
struct MaskSettings {
    column: String,
    dtype: String,
    padding: u8,
}

impl Settings<'_> {
    /// The configuration for this data set, which the loader checks.
    pub(crate) fn config(&self, dataset: &Dataset) -> Result<LoaderConfig, Error> {
        let (work, columns) = match dataset.tables().next() {
            Some(table) => self.of_table(table)?,
            None => self.of_samples()?,
        };
        let shuffle: Shuffle = self.shuffle.parse()?;
        let mut config = LoaderConfig {
            batch_size: self.batch_size,
            workers: self.num_workers,
            prefetch: self.prefetch_batches,
            prefetch_bytes: self.prefetch_bytes,
            memory_budget: self.memory_budget,
            sampler: shuffle.into(),
            seed: self.seed,
            shard: Shard {
                rank: self.world_rank.unwrap_or(0),
                world: self.world_size.unwrap_or(1),
                tail: self.tail()?,
            },
            on_error: self.on_error()?,
            error_budget: match (self.max_errors, self.max_error_rate) {
                (None, None) => ErrorBudget::default(),
                (count, rate) => ErrorBudget { count, rate },
            },
            fields: self.fields(columns)?,
            cache: self.cache(),
            read_ahead_bytes: self.read_ahead.unwrap_or(0),
            ..LoaderConfig::new(work)
        };
        if self.readers > 0 {
            config.readers = Readers::Threads(self.readers);
        }
        if let Some((window, multiple)) = self.buckets {
            config.batching = Batching::Buckets(Buckets { window, multiple });
        }
        config.decode.exif = if self.exif { Exif::Apply } else { Exif::Ignore };
        config.user_transforms = self.user_transforms.of_loader(config.on_error);
        Ok(config)
    }

    /// The work on samples, and their sidecar files.
    fn of_samples(&self) -> Result<(Work, Vec<String>), Error> {
        let of_tables = [
            ("features", !self.features.is_empty()),
            ("label", self.label.is_some()),
            ("neighbors", !self.neighbors.is_empty() || !self.neighbor_columns.is_empty()),
            ("block_bytes", self.block_bytes > 0),
            ("a column's dtype", self.columns.iter().any(|(_, dtype)| dtype.is_some())),
        ];
        if let Some((setting, _)) = of_tables.into_iter().find(|(_, is_set)| *is_set) {
            let message = format!("{setting}: only supported for tables (IDV, TBF)");
            return Err(Error::setting(&message));
        }
        let recipe = self.recipe.as_ref().map(|recipe| Work::Images(recipe.get().recipe.clone()));
        let columns = self.columns.iter().map(|(name, _)| name.clone());
        let columns = columns.chain(self.stored.iter().map(|stored| stored.1.clone())).collect();
        Ok((recipe.unwrap_or(Work::Bytes), columns))
    }

    /// The columns of a table: those of numbers, and those that are bytes.
    fn of_table(&self, table: &dyn Table) -> Result<(Work, Vec<String>), Error> {
        if !self.neighbor_columns.is_empty() && self.neighbors.is_empty() {
            return Err(Error::setting(
                &"neighbor_columns needs neighbors, the number to sample for each hop",
            ));
        }
        let is_bytes = |name: &str| {
            let found = table.columns().iter().rev().find(|column| column.name == name);
            found.is_some_and(|column| matches!(column.content, Content::Bytes { .. }))
        };
        let (bytes, numbers): (Vec<_>, Vec<_>) =
            self.columns.iter().partition(|(name, _)| is_bytes(name));
        if let Some((name, Some(dtype))) = bytes.iter().find(|(_, dtype)| dtype.is_some()) {
            return Err(Error::setting(&format!(
                "column {name} holds bytes, which cannot become {dtype}"
            )));
        }
        let neighbors = Neighbors {
            fanouts: self.neighbors.clone(),
            direction: match self.neighbor_direction.as_str() {
                "outgoing" => Direction::Outgoing,
                "incoming" => Direction::Incoming,
                other => return Err(none_of("neighbor_direction", other, "outgoing and incoming")),
            },
            columns: requests(&self.neighbor_columns)?,
        };
        let columns = Columns {
            columns: if self.columns.is_empty() { None } else { Some(requests(numbers)?) },
            features: self.features.clone(),
            label: self.label.clone(),
            neighbors: (!self.neighbors.is_empty()).then_some(neighbors),
            block_bytes: self.block_bytes,
        };
        let bytes = bytes.into_iter().map(|(name, _)| name.clone()).collect();
        Ok((Work::Columns(columns), bytes))
    }

    fn tail(&self) -> Result<Option<Tail>, Error> {
        let Some(tail) = self.tail.as_deref() else { return Ok(None) };
        Ok(Some(match tail {
            "drop" => Tail::Drop,
            "pad" => Tail::Pad,
            "uneven" => Tail::Uneven,
            _ => return Err(none_of("tail", tail, "drop, pad and uneven")),
        }))
    }

    fn on_error(&self) -> Result<OnError, Error> {
        Ok(match self.on_error.as_str() {
            "raise" => OnError::Raise,
            "skip" => OnError::Skip,
            "replace" => OnError::Replace,
            "fill" => OnError::Fill,
            other => return Err(none_of("on_error", other, "raise, skip, replace and fill")),
        })
    }

    fn fields(&self, columns: Vec<String>) -> Result<Fields, Error> {
        let boxes = self.boxes.as_ref().map(|boxes| {
            let BoxSettings { column, boxes, labels, values, format, output } = boxes;
            let value = |(name, pointer, dtype): &(String, String, String)| {
                let pointer = pointer.clone();
                Ok::<_, Error>(BoxValue { pointer, number: element(name, dtype)? })
            };
            let values = values.iter().map(value).collect::<Result<_, _>>()?;
            let format = box_format(format)?;
            let output = box_format(output)?;
            let labels = labels.clone();
            let field = BoxField::new(column, boxes);
            Ok::<_, Error>(BoxField { labels, values, format, output, ..field })
        });
        let mask = self.mask.as_ref().map(|mask| {
            let dtype = match mask.dtype.as_str() {
                "uint8" => MaskType::U8,
                "int64" => MaskType::I64,
                other => return Err(none_of("the mask's dtype", other, "uint8 and int64")),
            };
            Ok(MaskField { dtype, padding: mask.padding, ..MaskField::new(&mask.column) })
        });
        Ok(Fields {
            keys: self.keys,
            columns,
            boxes: boxes.transpose()?,
            mask: mask.transpose()?,
            images: self.images.iter().map(ImageSettings::field).collect(),
            values: self.values.iter().map(ValueSettings::field).collect::<Result<_, _>>()?,
            ..Fields::default()
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

    fn cache(&self) -> CacheConfig {
        let kind = if self.cache_decoded { CacheKind::Decoded } else { CacheKind::Encoded };
        let memory = MemoryCache { kind, bytes: self.cache_memory_bytes };
        let disk = self.cache_dir.clone().map(|folder| DiskCache {
            kind,
            folder,
            bytes: self.cache_disk_bytes,
        });
        CacheConfig {
            memory: (memory.bytes > 0).then_some(memory),
            disk: disk.filter(|disk| disk.bytes > 0),
        }
    }
}

impl ImageSettings<'_> {
    fn field(&self) -> ImageField {
        let Self { name, column, recipe } = self;
        ImageField {
            name: name.clone(),
            source: column.clone().map_or(ImageSource::Sample, ImageSource::Column),
            transform: recipe.as_ref().map_or(ImageTransform::Joint, |recipe| {
                ImageTransform::Recipe(recipe.get().recipe.clone())
            }),
        }
    }
}

impl ValueSettings {
    fn field(&self) -> Result<ValueField, Error> {
        let Self { name, column, place, missing, names, .. } = self;
        let format = match self.format.as_str() {
            "text" => ValueFormat::Text,
            "json" => ValueFormat::Json(place.clone()),
            "npy" => ValueFormat::Npy,
            _ => ValueFormat::Npz(place.clone()),
        };
        let number = self.dtype.as_ref().map(|dtype| element(name, dtype)).transpose()?;
        let names = names.clone();
        let kind = match (self.kind.as_str(), number) {
            ("class", _) => ValueKind::Class(names),
            ("multi_hot", Some(number)) => {
                ValueKind::MultiHot { count: self.count.unwrap_or(0), names, number }
            }
            _ => ValueKind::Numbers { number, shape: self.shape.clone() },
        };
        Ok(ValueField { kind, missing: *missing, ..ValueField::new(name, column, format) })
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
