//! Batches on a device.

use std::fmt;

use tl_cuda::{DeviceBuffer, NvJpegVersion};
use tl_handoff::sync::Arc;

use crate::device_part::DevicePart;
use crate::layout::ImageSpec;

/// The device of a loader, and its part of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceUse {
    /// The device's number among those that the process sees.
    pub ordinal: u32,
    /// Its name.
    pub name: String,
    /// Whether it makes the numbers of the batch of pixels.
    pub converts: bool,
    /// Whether it decodes JPEG images.
    pub decodes: bool,
    /// The version of nvJPEG, if the recipe decodes with it.
    pub nvjpeg: Option<NvJpegVersion>,
}

impl From<&DeviceUse> for DevicePart {
    fn from(device: &DeviceUse) -> Self {
        let DeviceUse { decodes, converts, ref nvjpeg, .. } = *device;
        Self { decodes, converts, nvjpeg: nvjpeg.is_some(), op: None }
    }
}

impl fmt::Display for DeviceUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let work = DevicePart::from(self);
        write!(f, "cuda:{} ({}), {work}", self.ordinal, self.name)?;
        self.nvjpeg.map_or(Ok(()), |version| write!(f, ", version {version}"))
    }
}

/// The copy of a batch on a device.
#[derive(Debug)]
pub struct DeviceBatch {
    pub(crate) buffer: Arc<DeviceBuffer>,
    pub(crate) spec: Option<ImageSpec>,
    pub(crate) rows: usize,
    /// The address of the batch on the host.
    pub(crate) start: usize,
    /// Whether the device has made the images, so that the host does not have them.
    pub(crate) is_elsewhere: bool,
    /// Images that the device has decoded.
    pub(crate) decoded: usize,
}

impl DeviceBatch {
    /// The memory on the device, which orders streams before and after the batch. Who reads it
    /// outside of a batch's life clones it.
    #[must_use]
    pub fn buffer(&self) -> &Arc<DeviceBuffer> {
        &self.buffer
    }

    /// The layout of the images there.
    #[must_use]
    pub fn spec(&self) -> Option<ImageSpec> {
        self.spec
    }

    /// The number of images that the device decoded: those that the host could leave to it.
    #[must_use]
    pub fn decoded(&self) -> usize {
        self.decoded
    }

    /// The dimensions of the images there, batch first; `None` if the samples differ in size.
    #[must_use]
    pub fn shape(&self) -> Option<Vec<usize>> {
        let spec = self.spec?;
        Some([self.rows].into_iter().chain(spec.shape()).collect())
    }

    /// Bytes of the images, which are at the front of the buffer; 0 if the samples differ in size.
    #[must_use]
    pub fn image_bytes(&self) -> usize {
        self.spec.and_then(|spec| spec.bytes()).map_or(0, |bytes| bytes * self.rows)
    }

    /// The place in the buffer of the copy of a field other than images, one of
    /// [`Batch::pointers`](crate::Batch::pointers).
    ///
    /// # Panics
    /// When the address is before that of the batch.
    #[must_use]
    pub fn place_of<T>(&self, field: *mut T) -> usize {
        let offset = field.addr().checked_sub(self.start);
        self.buffer.place(offset.expect("a field of the batch"))
    }
}
