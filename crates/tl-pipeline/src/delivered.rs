//! The delivery of a loader: pinned slabs, copies to a device, and who converts pixels.

use std::time::{Duration, Instant};

use tl_cuda::{
    BufferLimits, Conversion, Device, DeviceReason, HostBytes, Images, PictureDecoder,
    PinnedKeeper, PinnedUse, RowErasures, RowPicture, UploadStats, Uploader,
};
use tl_handoff::pool::{Lease, Pool};
use tl_handoff::slab::Backing;
use tl_handoff::sync::{Arc, Mutex, Ordering, lock};
use tl_simd::normalize::Table;

use crate::config::LoaderConfig;
use crate::delivery::{Delivery, DeviceDecode, DeviceOptions};
use crate::device_batch::{DeviceBatch, DeviceUse};
use crate::device_part::{is_pixels, on_cpu, pixels_for_device};
use crate::device_work::{DeviceDecoding, DeviceWork};
use crate::erasing::Erasing;
use crate::error::PipelineError;
use crate::fields::FieldReaders;
use crate::kept_indexes::KeptIndexes;
use crate::layout::{BatchLayout, ImageSpec};
use crate::note::LoaderNote;
use crate::nvjpeg;
use crate::policy::OnError;
use crate::row::RowExtras;
use crate::trace::{EventKind, Trace};
use crate::work::Work;

/// Batches on a device besides those in flight: the one that a training step uses, and the next, which
/// the consumer gets before it drops that.
const HELD: usize = 2;

/// The part of the device's memory for decoding, at most.
const SCRATCH_PART: u64 = 4;

/// Batches that the device decodes at the same time, at most. One is a warp for about every tenth that
/// the device holds, and complete when its longest row is: four have that time in common, and leave
/// half of the device to training.
const LANES: u64 = 4;

/// Bytes for decoding that a lane is worth: with less, large photographs are left to the host.
const LANE_SCRATCH: u64 = 256 << 20;

/// Bytes for decoding that a lane has at most.
const MOST_ROOM: usize = 1 << 30;

/// The part of a lane's bytes for decoding that copies of images have; the rest is between the kernels.
const PAYLOAD_PART: usize = 4;

/// Bytes of row indexes that are kept if no other number is given.
const ROW_INDEXES: u64 = 1 << 30;

/// The delivery of a loader's batches: on the host if it is empty.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    device: Option<Device>,
    /// The settings that rows are made by, if they differ: pixels for the device to convert.
    pub(crate) rendering: Option<LoaderConfig>,
    /// The form of the images on the device, which it makes of pixels.
    converted: Option<ImageSpec>,
    conversion: Option<Arc<Conversion>>,
    /// The decoder, if the device decodes JPEG images.
    decoder: Option<Arc<PictureDecoder>>,
    decoding: DeviceDecoding,
    uploader: Option<Uploader>,
    /// Of batches in pinned memory that the program copies.
    keeper: Option<PinnedKeeper>,
    pinning: Arc<Pinning>,
}

/// The pinning of slabs.
#[derive(Debug, Default)]
struct Pinning {
    /// Whether slabs that cannot be pinned are an error.
    is_required: bool,
    /// The first failure, until it is told.
    failed: Mutex<Option<DeviceReason>>,
}

impl Delivered {
    /// The delivery of `config` and the layout of what is delivered, which `layout` makes for
    /// settings. The prefetch is lowered to what fits the memory of the device.
    pub(crate) fn begin(
        config: &mut LoaderConfig,
        notes: &mut Vec<LoaderNote>,
        layout: impl Fn(&LoaderConfig) -> Result<(BatchLayout, FieldReaders), PipelineError>,
    ) -> Result<(Self, (BatchLayout, FieldReaders)), PipelineError> {
        let delivered = Self::open(config, notes)?;
        let planned = layout(delivered.rendering.as_ref().unwrap_or(config))?;
        let converts = delivered.rendering.is_some();
        let delivered = delivered.with_uploader(config, &planned.0, notes)?;
        // Without the device, rows are the results.
        let is_host = converts && delivered.rendering.is_none();
        Ok((delivered, if is_host { layout(config)? } else { planned }))
    }

    /// Opens the device of `config`, and decides what it does.
    fn open(config: &LoaderConfig, notes: &mut Vec<LoaderNote>) -> Result<Self, PipelineError> {
        let options = match &config.delivery {
            Delivery::Host => return Ok(Self::default()),
            Delivery::Pinned(options) | Delivery::Device(options) => options,
        };
        let device = match options.open() {
            Ok(device) => Some(device),
            Err(reason) => return Self::fall_back(config, options, reason, notes),
        };
        let pinning = Pinning { is_required: options.required, ..Pinning::default() };
        let delivered = Self { device, pinning: Arc::new(pinning), ..Self::default() };
        let delivered = match &config.delivery {
            Delivery::Device(_) => delivered.with_kernels(config, options, notes),
            Delivery::Pinned(_) | Delivery::Host => delivered.with_keeper(),
        };
        delivered.or_else(|reason| Self::fall_back(config, options, reason, notes))
    }

    fn with_keeper(self) -> Result<Self, DeviceReason> {
        let keeper = self.device.as_ref().map(PinnedKeeper::new).transpose()?;
        Ok(Self { keeper, ..self })
    }

    fn fall_back(
        config: &LoaderConfig,
        options: &DeviceOptions,
        reason: DeviceReason,
        notes: &mut Vec<LoaderNote>,
    ) -> Result<Self, PipelineError> {
        // Nothing has the pixels of nvJPEG but nvJPEG.
        if options.required || nvjpeg::recipe(config).is_some() {
            return Err(PipelineError::Device { reason });
        }
        notes.push(match config.delivery {
            Delivery::Pinned(_) => not_pinned(reason),
            Delivery::Device(_) | Delivery::Host => LoaderNote::Device {
                wanted: "batches on a device",
                used: "on the host instead",
                reason,
            },
        });
        Ok(Self::default())
    }

    /// Has the device convert and decode what it can.
    fn with_kernels(
        self,
        config: &LoaderConfig,
        options: &DeviceOptions,
        notes: &mut Vec<LoaderNote>,
    ) -> Result<Self, DeviceReason> {
        let delivered = self.with_conversion(config, notes)?;
        let (Some(device), Work::Images(recipe)) = (&delivered.device, &config.work) else {
            return Ok(delivered);
        };
        let makes_pixels = is_pixels(recipe) && pixels_for_device(config, recipe).is_ok();
        let is_nvjpeg = nvjpeg::recipe(config).is_some();
        if options.decode == DeviceDecode::Never && !is_nvjpeg
            || !(makes_pixels || delivered.conversion.is_some())
        {
            return Ok(delivered);
        }
        if config.memory_budget.is_some() && options.decode == DeviceDecode::Auto && !is_nvjpeg {
            let reason = DeviceReason::Recipe { op: "a memory budget" };
            notes.push(on_cpu("decoding on the device", reason));
            return Ok(delivered);
        }
        let mut decoder = PictureDecoder::new(device)?;
        if is_nvjpeg {
            decoder = decoder.with_nvjpeg(nvjpeg::open(device, options)?);
        }
        let decoder = Some(Arc::new(decoder));
        let kept = options.row_indexes.unwrap_or(ROW_INDEXES);
        let kept = config.memory_budget.is_none().then(|| Arc::new(KeptIndexes::new(kept)));
        let decode = options.decode;
        let nvjpeg = is_nvjpeg;
        let decoding = DeviceDecoding { decode, nvjpeg, kept, ..DeviceDecoding::default() };
        Ok(Self { decoder, decoding, ..delivered })
    }

    /// Has the device convert pixels, unless something stands against it.
    fn with_conversion(
        self,
        config: &LoaderConfig,
        notes: &mut Vec<LoaderNote>,
    ) -> Result<Self, DeviceReason> {
        let (Some(device), Work::Images(recipe)) = (&self.device, &config.work) else {
            return Ok(self);
        };
        let output = recipe.output();
        if is_pixels(recipe) {
            return Ok(self);
        }
        let pixels = match pixels_for_device(config, recipe) {
            // Its zeros are those of the output.
            Ok(_) if config.on_error == OnError::Fill => Err("OnError::Fill"),
            pixels => pixels,
        };
        let pixels = match pixels {
            Ok(pixels) => pixels,
            Err(op) => {
                let reason = DeviceReason::Recipe { op };
                notes.push(on_cpu("conversion on the device", reason));
                return Ok(self);
            }
        };
        let (mean, std) = recipe.normalization();
        let [red, green, blue, _] = mean;
        let mean = [red, green, blue];
        let [red, green, blue, _] = std;
        let table = Table::new(mean, [red, green, blue]);
        let conversion = Conversion::new(device, output.dtype, output.layout, &table)?;
        Ok(Self {
            rendering: Some(LoaderConfig { work: Work::Images(pixels), ..config.clone() }),
            converted: ImageSpec::of(recipe),
            conversion: Some(Arc::new(conversion)),
            ..self
        })
    }

    /// Gets ready to copy batches of `layout`; without any delivery to the device if too few fit its
    /// memory.
    fn with_uploader(
        self,
        config: &mut LoaderConfig,
        layout: &BatchLayout,
        notes: &mut Vec<LoaderNote>,
    ) -> Result<Self, PipelineError> {
        let (Delivery::Device(options), Some(device)) = (&config.delivery, &self.device) else {
            return Ok(self);
        };
        let result = self.limits(device, options, config.prefetch, layout).and_then(|limits| {
            let uploader = Uploader::new(device, limits)?;
            Ok((uploader, limits))
        });
        match result {
            Ok((uploader, limits)) => {
                let ahead = limits.keep.saturating_sub(HELD);
                config.prefetch = config.prefetch.min(ahead).max(1);
                let BufferLimits { scratch, payload, .. } = limits;
                let decoding = DeviceDecoding { scratch, payload, ..self.decoding };
                Ok(Self { uploader: Some(uploader), decoding, ..self })
            }
            Err(reason) => Self::fall_back(config, options, reason, notes),
        }
    }

    /// The memory of batches on the device.
    fn limits(
        &self,
        device: &Device,
        options: &DeviceOptions,
        prefetch: usize,
        layout: &BatchLayout,
    ) -> Result<BufferLimits, DeviceReason> {
        let free = device.free_memory()?;
        let bytes = options.memory.unwrap_or(free).min(free);
        let keep = prefetch.saturating_add(HELD);
        let requires_pinned = options.required;
        let unbounded = BufferLimits { requires_pinned, ..BufferLimits::default() };
        if layout.is_padded || layout.shape.bytes() == 0 {
            return Ok(self.with_room(BufferLimits { bytes, keep, ..unbounded }, bytes));
        }
        let of_rows = |spec: Option<ImageSpec>| {
            let image = spec.and_then(|spec| spec.bytes()).unwrap_or(0);
            (image as u64).saturating_mul(layout.shape.rows() as u64)
        };
        let slab = layout.shape.bytes() as u64;
        // Pixels that are converted lie there once, and their numbers in each batch.
        let (batch, pixels) = match self.converted {
            None => (slab, 0),
            converted => {
                let pixels = of_rows(layout.spec);
                (slab.saturating_sub(pixels).saturating_add(of_rows(converted)), pixels)
            }
        };
        let fixed = |lanes: usize| {
            let scratch = self.room(bytes, lanes) as u64;
            // The tables are there already.
            let of_lanes = pixels.saturating_add(scratch).saturating_mul(lanes as u64);
            of_lanes.saturating_add(device.allocated())
        };
        let fitting = |lanes: usize| bytes.saturating_sub(fixed(lanes)) / batch.max(1);
        // Batches in flight come before lanes for them.
        let mut fewer = (1..=self.lanes(bytes)).rev();
        let lanes = fewer.find(|lanes| fitting(*lanes) >= keep as u64).unwrap_or(1);
        let fixed = fixed(lanes);
        let fitting = fitting(lanes);
        let least = HELD as u64 + 1;
        if fitting < least {
            let need = fixed.saturating_add(batch.saturating_mul(least));
            return Err(DeviceReason::OutOfMemory { need, free: bytes });
        }
        let keep = keep.min(usize::try_from(fitting).unwrap_or(usize::MAX));
        let left = bytes.saturating_sub(fixed);
        Ok(self.with_room(BufferLimits { bytes: left, keep, lanes, ..unbounded }, bytes))
    }

    /// Batches that are decoded at the same time by a device that may have so many bytes; one lane is
    /// enough for copies, which are done one after the other anyway.
    fn lanes(&self, bytes: u64) -> usize {
        let part = self.decoder.as_ref().map_or(0, |_| bytes / SCRATCH_PART);
        usize::try_from((part / LANE_SCRATCH).clamp(1, LANES)).unwrap_or(1)
    }

    /// Bytes for the images that each lane decodes at once, of those that the device may have.
    fn room(&self, bytes: u64, lanes: usize) -> usize {
        let part = self.decoder.as_ref().map_or(0, |_| bytes / SCRATCH_PART / lanes as u64);
        usize::try_from(part).unwrap_or(usize::MAX).min(MOST_ROOM)
    }

    /// The limits with room for decoding, of the bytes that the device may have.
    fn with_room(&self, limits: BufferLimits, bytes: u64) -> BufferLimits {
        let room = self.room(bytes, limits.lanes);
        let payload = room / PAYLOAD_PART;
        BufferLimits { scratch: room - payload, payload, ..limits }
    }

    /// The pool of slabs, which keeps `keep` free ones.
    pub(crate) fn pool(&self, keep: usize) -> Pool<RowExtras> {
        let Some(device) = self.device.clone() else { return Pool::new(keep) };
        let pinning = Arc::clone(&self.pinning);
        Pool::new(keep).with_backings(Box::new(move |bytes| match device.pinned(bytes) {
            Ok(pinned) => Some(Box::new(pinned) as Box<dyn Backing>),
            Err(reason) => {
                // Ordinary memory is as right, and copied by way of pinned memory of the driver.
                lock(&pinning.failed).get_or_insert(reason);
                None
            }
        }))
    }

    /// Bounds the memory that pictures and erasures are copied from.
    pub(crate) fn limit_copies(&self, bytes: u64) {
        if let Some(uploader) = &self.uploader {
            uploader.limit_copies(bytes);
        }
    }

    /// Whether rows own memory that is copied to the device: pictures, or numbers to erase.
    pub(crate) fn has_copies(&self, config: &LoaderConfig) -> bool {
        let DeviceWork { decoding, erasing } = self.work(config);
        decoding.decode != DeviceDecode::Never || decoding.nvjpeg || erasing.is_some()
    }

    /// The note on memory that could not be pinned, once; an error where it has to be.
    pub(crate) fn pinning(&self) -> Result<Option<LoaderNote>, DeviceReason> {
        let mut failed = lock(&self.pinning.failed);
        if self.pinning.is_required {
            return failed.clone().map_or(Ok(None), Err);
        }
        Ok(failed.take().map(not_pinned))
    }

    /// The counters of copies; zeros without any.
    pub(crate) fn stats(&self) -> UploadStats {
        self.uploader.as_ref().map(Uploader::stats).unwrap_or_default()
    }

    /// The device that batches are copied to, and its part of the work.
    pub(crate) fn device_use(&self) -> Option<DeviceUse> {
        let device = self.uploader.as_ref()?.device();
        Some(DeviceUse {
            ordinal: device.ordinal(),
            name: device.name().to_owned(),
            converts: self.conversion.is_some(),
            decodes: self.decoder.is_some(),
            nvjpeg: self
                .decoder
                .as_ref()
                .and_then(|decoder| decoder.nvjpeg().map(|nvjpeg| nvjpeg.library().version())),
        })
    }

    /// The work on samples that is left to the device.
    pub(crate) fn work(&self, config: &LoaderConfig) -> DeviceWork {
        let erasing = if let (Some(_), Work::Images(recipe)) = (&self.rendering, &config.work) {
            Erasing::of(recipe)
        } else {
            None
        };
        DeviceWork { decoding: self.decoding(), erasing }
    }

    /// The part of JPEG decoding that the device does.
    pub(crate) fn decoding(&self) -> DeviceDecoding {
        let decoding = self.decoder.as_ref().zip(self.uploader.as_ref());
        let never = DeviceDecoding { decode: DeviceDecode::Never, ..DeviceDecoding::default() };
        decoding.map_or(never, |_| self.decoding.clone())
    }

    /// Ends decoding by row indexes that are stored with samples, after one of them was wrong.
    pub(crate) fn distrust_indexes(&self) {
        self.decoding.distrusts_stored.store(true, Ordering::Relaxed);
    }

    /// The use of a published batch by the program, if it is in pinned memory for copies of its own.
    pub(crate) fn pinned(&self, lease: &Arc<Lease<RowExtras>>) -> Option<PinnedUse> {
        let keeper = self.keeper.as_ref().filter(|_| lease.is_backed())?;
        Some(keeper.keep(Arc::new(Published {
            lease: Arc::clone(lease),
            kind: EventKind::Copy,
            traced: None,
        })))
    }

    /// Enqueues the copy of a published batch of `rows` rows; none if it stays on the host.
    pub(crate) fn upload(
        &self,
        lease: &Arc<Lease<RowExtras>>,
        layout: &BatchLayout,
        rows: usize,
        traced: Option<Traced>,
    ) -> Result<Option<DeviceBatch>, DeviceReason> {
        let Some(uploader) = self.uploader.as_ref().filter(|_| rows > 0) else { return Ok(None) };
        let start = lease.contents().as_ptr().addr();
        let made = self.conversion.is_some() || self.decoder.is_some();
        let images = layout.spec.filter(|_| made && !layout.is_padded).map(|spec| Images {
            conversion: self.conversion.clone(),
            decoder: self.decoder.clone(),
            count: rows * spec.views as usize,
            pixels: spec.width as usize * spec.height as usize,
            width: spec.width as usize,
            area: lease.pointers().masks.addr() - start,
        });
        let views = layout.spec.map_or(1, |spec| spec.views as usize);
        let pictures: Vec<RowPicture<'_>> = (0..rows)
            .flat_map(|row| {
                let pictures = lease.extra(row).pictures.iter();
                pictures.enumerate().map(move |(view, picture)| (row * views + view, picture))
            })
            .filter(|(_, picture)| !picture.is_empty())
            .map(|(row, picture)| RowPicture { row, picture })
            .collect();
        let erasures: Vec<RowErasures<'_>> = (0..rows)
            .map(|row| (row, &lease.extra(row).erasures))
            .filter(|(_, erasures)| !erasures.is_empty())
            .map(|(row, erasures)| RowErasures { first_image: row * views, erasures })
            .collect();
        let has_nvjpeg = self.decoder.as_ref().is_some_and(|decoder| decoder.nvjpeg().is_some());
        let kind = if has_nvjpeg { EventKind::NvJpegCopy } else { EventKind::Copy };
        let source = Arc::new(Published { lease: Arc::clone(lease), kind, traced });
        let buffer = Arc::new(uploader.upload(source, images.as_ref(), &pictures, &erasures)?);
        if let Some(reason) = uploader.take_unpinned() {
            lock(&self.pinning.failed).get_or_insert(reason);
        }
        let is_elsewhere = images.is_some();
        let decoded = pictures.len();
        let spec = self.converted.or(layout.spec);
        Ok(Some(DeviceBatch { buffer, spec, rows, start, is_elsewhere, decoded }))
    }
}

/// The note on batches that are in ordinary memory.
fn not_pinned(reason: DeviceReason) -> LoaderNote {
    LoaderNote::Device {
        wanted: "pinned memory",
        used: "ordinary memory instead, which is copied more slowly",
        reason,
    }
}

/// The memory of a published batch, which is kept until its copy is complete.
struct Published {
    lease: Arc<Lease<RowExtras>>,
    kind: EventKind,
    traced: Option<Traced>,
}

/// The trace that the copy of a batch is written to.
pub(crate) struct Traced {
    pub(crate) trace: Arc<Trace>,
    pub(crate) batch: u64,
}

impl HostBytes for Published {
    fn bytes(&self) -> &[u8] {
        self.lease.contents()
    }

    fn copied(&self, start: Instant, time: Duration) {
        if let Some(Traced { trace, batch }) = &self.traced {
            trace.copy(self.kind, start, time, *batch);
        }
    }
}
