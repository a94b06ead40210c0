//! The delivery of a loader: pinned slabs, copies to a device, and who converts pixels.

use tl_cuda::{
    BufferLimits, Conversion, Device, DeviceReason, HostBytes, Images, UploadStats, Uploader,
};
use tl_handoff::pool::{Lease, Pool};
use tl_handoff::slab::Backing;
use tl_handoff::sync::{Arc, Mutex, lock};
use tl_simd::normalize::Table;
use tl_transform::{Dtype, Layout};

use crate::config::LoaderConfig;
use crate::delivery::{Delivery, DeviceOptions};
use crate::device_batch::{DeviceBatch, DeviceUse};
use crate::error::PipelineError;
use crate::fields::FieldReaders;
use crate::layout::{BatchLayout, ImageSpec};
use crate::note::LoaderNote;
use crate::policy::OnError;
use crate::row::RowExtras;
use crate::work::Work;

/// Batches on a device besides those in flight: the one that a training step uses, and the next, which
/// the consumer gets before it drops that.
const HELD: u64 = 2;

/// The delivery of a loader's batches: on the host if it is empty.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    device: Option<Device>,
    /// The settings that rows are made by, if they differ: pixels for the device to convert.
    pub(crate) rendering: Option<LoaderConfig>,
    /// The form of the images on the device, which it makes of pixels.
    converted: Option<ImageSpec>,
    conversion: Option<Arc<Conversion>>,
    uploader: Option<Uploader>,
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
            Err(reason) => return Self::fall_back(options, reason, notes),
        };
        let pinning = Pinning { is_required: options.required, ..Pinning::default() };
        let delivered = Self { device, pinning: Arc::new(pinning), ..Self::default() };
        match &config.delivery {
            Delivery::Device(_) => match delivered.with_conversion(config, notes) {
                Err(reason) => Self::fall_back(options, reason, notes),
                Ok(delivered) => Ok(delivered),
            },
            Delivery::Pinned(_) | Delivery::Host => Ok(delivered),
        }
    }

    fn fall_back(
        options: &DeviceOptions,
        reason: DeviceReason,
        notes: &mut Vec<LoaderNote>,
    ) -> Result<Self, PipelineError> {
        if options.required {
            return Err(PipelineError::Device { reason });
        }
        notes.push(LoaderNote::Device {
            wanted: "batches on a device",
            used: "on the host instead",
            reason,
        });
        Ok(Self::default())
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
        if (output.dtype, output.layout) == (Dtype::U8, Layout::Hwc) {
            return Ok(self);
        }
        let pixels = match recipe.before_table() {
            _ if !config.fields.images.is_empty() => Err("further images"),
            // Its zeros are those of the output.
            _ if config.on_error == OnError::Fill => Err("OnError::Fill"),
            _ if recipe.output_size().is_none() => Err("images of several sizes"),
            pixels => pixels,
        };
        let pixels = match pixels {
            Ok(pixels) => pixels,
            Err(op) => {
                let reason = DeviceReason::Recipe { op };
                let note = LoaderNote::Device {
                    wanted: "conversion on the device",
                    used: "on the CPU instead",
                    reason,
                };
                notes.push(note);
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
            Ok((uploader, limits.keep))
        });
        match result {
            Ok((uploader, keep)) => {
                config.prefetch = config.prefetch.min(keep).max(1);
                Ok(Self { uploader: Some(uploader), ..self })
            }
            Err(reason) => Self::fall_back(options, reason, notes),
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
        let keep = prefetch.saturating_add(usize::try_from(HELD).unwrap_or(2));
        if layout.is_padded || layout.shape.bytes() == 0 {
            return Ok(BufferLimits { bytes, keep, ..BufferLimits::default() });
        }
        let images = self.converted.and_then(|spec| spec.bytes()).unwrap_or(0) as u64;
        let rows = layout.shape.rows() as u64;
        let batch = images.saturating_mul(rows).saturating_add(layout.shape.bytes() as u64);
        let fitting = bytes / batch.max(1);
        if fitting <= HELD {
            return Err(DeviceReason::OutOfMemory { need: batch * (HELD + 1), free: bytes });
        }
        let ahead = usize::try_from(fitting - HELD).unwrap_or(usize::MAX);
        let keep = keep.min(ahead.saturating_add(2));
        Ok(BufferLimits { bytes, keep, ..BufferLimits::default() })
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

    /// The note on memory that could not be pinned, once; an error where it has to be.
    pub(crate) fn pinning(&self) -> Result<Option<LoaderNote>, DeviceReason> {
        let mut failed = lock(&self.pinning.failed);
        if self.pinning.is_required {
            return failed.clone().map_or(Ok(None), Err);
        }
        Ok(failed.take().map(|reason| LoaderNote::Device {
            wanted: "pinned memory",
            used: "ordinary memory instead, which is copied more slowly",
            reason,
        }))
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
        })
    }

    /// Enqueues the copy of a published batch of `rows` rows; none if it stays on the host.
    pub(crate) fn upload(
        &self,
        lease: &Arc<Lease<RowExtras>>,
        layout: &BatchLayout,
        rows: usize,
    ) -> Result<Option<DeviceBatch>, DeviceReason> {
        let Some(uploader) = self.uploader.as_ref().filter(|_| rows > 0) else { return Ok(None) };
        let start = lease.contents().as_ptr().addr();
        let images = self.conversion.as_ref().zip(layout.spec).map(|(conversion, spec)| Images {
            conversion: Some(Arc::clone(conversion)),
            decoder: None,
            count: rows * spec.views as usize,
            pixels: spec.width as usize * spec.height as usize,
            area: lease.pointers().masks.addr() - start,
        });
        let source = Arc::new(Published { lease: Arc::clone(lease) });
        let buffer = Arc::new(uploader.upload(source, images.as_ref(), &[])?);
        Ok(Some(DeviceBatch { buffer, spec: self.converted.or(layout.spec), rows, start }))
    }
}

/// The memory of a published batch, which is kept until its copy is complete.
struct Published {
    lease: Arc<Lease<RowExtras>>,
}

impl HostBytes for Published {
    fn bytes(&self) -> &[u8] {
        self.lease.contents()
    }
}
