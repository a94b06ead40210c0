//! What Python says about a loader, and the configuration it comes to.

use std::path::PathBuf;

use pyo3::prelude::*;
use tl_decode::Exif;
use tl_pipeline::{
    Batching, BoxField, Buckets, CacheConfig, CacheKind, DiskCache, ErrorBudget, Fields,
    LoaderConfig, MaskField, MaskType, MemoryCache, OnError, Readers, Shard, Shuffle, Tail, Work,
};
use tl_transform::BoxFormat;

use crate::error::Error;
use crate::recipe::PyRecipe;

/// The settings of a loader, by name; those of `LoaderConfig` as far as they are said.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings<'py> {
    /// What is done with every sample; nothing gives the stored bytes.
    recipe: Option<Bound<'py, PyRecipe>>,
    /// What fields are handed out as.
    pub(crate) form: String,
    batch_size: usize,
    workers: usize,
    prefetch: usize,
    prefetch_bytes: Option<u64>,
    memory_budget: Option<u64>,
    readers: usize,
    shuffle: String,
    seed: u64,
    rank: u32,
    world: u32,
    tail: Option<String>,
    on_error: String,
    max_errors: Option<u64>,
    max_error_rate: Option<f64>,
    keys: bool,
    columns: Vec<String>,
    boxes: Option<BoxSettings>,
    mask: Option<MaskSettings>,
    cache_decoded: bool,
    cache_memory_bytes: u64,
    cache_disk_bytes: u64,
    cache_dir: Option<PathBuf>,
    exif: bool,
    bucket_window: Option<u32>,
    bucket_multiple: u32,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct BoxSettings {
    column: String,
    boxes: String,
    labels: Option<String>,
    format: String,
    output: String,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct MaskSettings {
    column: String,
    dtype: String,
    padding: u8,
}

impl Settings<'_> {
    /// The configuration, which the loader checks.
    pub(crate) fn config(&self) -> Result<LoaderConfig, Error> {
        let work = self.recipe.as_ref().map(|recipe| Work::Images(recipe.get().recipe.clone()));
        let shuffle: Shuffle = self.shuffle.parse()?;
        let mut config = LoaderConfig {
            batch_size: self.batch_size,
            workers: self.workers,
            prefetch: self.prefetch,
            prefetch_bytes: self.prefetch_bytes,
            memory_budget: self.memory_budget,
            sampler: shuffle.into(),
            seed: self.seed,
            shard: Shard { rank: self.rank, world: self.world, tail: self.tail()? },
            on_error: self.on_error()?,
            error_budget: ErrorBudget { count: self.max_errors, rate: self.max_error_rate },
            fields: self.fields()?,
            cache: self.cache(),
            ..LoaderConfig::new(work.unwrap_or(Work::Bytes))
        };
        if self.readers > 0 {
            config.readers = Readers::Threads(self.readers);
        }
        if let Some(window) = self.bucket_window {
            let multiple = self.bucket_multiple;
            config.batching = Batching::Buckets(Buckets { window, multiple });
        }
        config.decode.exif = if self.exif { Exif::Apply } else { Exif::Ignore };
        Ok(config)
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

    fn fields(&self) -> Result<Fields, Error> {
        let boxes = self.boxes.as_ref().map(|boxes| {
            let BoxSettings { column, boxes, labels, format, output } = boxes;
            let (format, output) = (box_format(format)?, box_format(output)?);
            let labels = labels.clone();
            Ok::<_, Error>(BoxField { labels, format, output, ..BoxField::new(column, boxes) })
        });
        let mask = self.mask.as_ref().map(|mask| {
            let dtype = match mask.dtype.as_str() {
                "uint8" => MaskType::U8,
                "int64" => MaskType::I64,
                other => return Err(none_of("the mask's dtype", other, "uint8 and int64")),
            };
            Ok(MaskField { dtype, padding: mask.padding, ..MaskField::new(&mask.column) })
        });
        let (keys, columns) = (self.keys, self.columns.clone());
        Ok(Fields { keys, columns, boxes: boxes.transpose()?, mask: mask.transpose()? })
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

fn box_format(name: &str) -> Result<BoxFormat, Error> {
    Ok(match name {
        "xyxy" => BoxFormat::Xyxy,
        "xywh" => BoxFormat::Xywh,
        "cxcywh" => BoxFormat::Cxcywh,
        _ => return Err(none_of("the boxes' format", name, "xyxy, xywh and cxcywh")),
    })
}

fn none_of(setting: &str, value: &str, expected: &str) -> Error {
    Error::setting(&format!("{setting} is {value}, none of {expected}"))
}
