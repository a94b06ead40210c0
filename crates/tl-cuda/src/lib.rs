#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod anchor;
mod buffers;
mod conversion;
mod driver;
mod erasures;
mod jobs;
mod library;
mod nvjpeg;
mod picture;
mod pinned;
mod readers;
mod reason;
mod survey;
mod uploader;

pub use buffers::{BufferLimits, DeviceBuffer};
pub use conversion::Conversion;
pub use driver::{Device, Event, MemoryInfo, PinnedMemory, Stream, StreamHandle};
pub use erasures::{Erasures, RowErasures};
pub use nvjpeg::{DecodedImages, NvJpeg, NvJpegDecoder, NvJpegLibrary, NvJpegVersion, Pixels};
pub use picture::decoder::PictureDecoder;
pub use picture::{Picture, PictureResize, PictureWeights, Placement, RowPicture};
pub use pinned::{PinnedKeeper, PinnedUse};
pub use reason::{CudaVersion, DeviceReason};
pub use survey::{DeviceFigures, DeviceSurvey};
pub use uploader::{HostBytes, Images, UploadStats, Uploader};

#[cfg(test)]
mod tests;
