//! The work on samples that is left to a device.

use tl_handoff::sync::{Arc, AtomicBool};

use crate::delivery::DeviceDecode;
use crate::erasing::Erasing;
use crate::kept_indexes::KeptIndexes;

/// The work that a worker leaves to a device.
#[derive(Debug)]
pub(crate) struct DeviceWork {
    pub(crate) decoding: DeviceDecoding,
    /// `None` if nothing is erased.
    pub(crate) erasing: Option<Erasing>,
}

/// The part of decoding that a device does, and the row indexes that were made for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceDecoding {
    pub(crate) decode: DeviceDecode,
    /// Whether nvJPEG decodes the files of [`DecodeMode::NvJpeg`](tl_transform::DecodeMode::NvJpeg).
    pub(crate) nvjpeg: bool,
    pub(crate) kept: Option<Arc<KeptIndexes>>,
    /// Bytes of the device's memory that decoding an image may take.
    pub(crate) scratch: usize,
    /// Bytes that may be copied for an image.
    pub(crate) payload: usize,
    /// Whether a row index that is stored with a sample was wrong: the device uses none from then on.
    pub(crate) distrusts_stored: Arc<AtomicBool>,
}
