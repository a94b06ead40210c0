//! The faults of fields: boxes, masks and further images.

use tbl_io::{Escaped, NpyError};
use tl_decode::DecodeError;
use tl_transform::AnnotationError;

use super::SampleFault;
use crate::table::ColumnType;

/// The fault of a field of a sample.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum AnnotationFault {
    /// The sample has no such sidecar file.
    #[error("no sidecar file `{file}`")]
    NoFile { file: String },
    /// The sidecar file is not JSON.
    #[error("sidecar file `{file}`: {source}")]
    Json { file: String, source: serde_json::Error },
    /// The JSON has something else in a place.
    #[error("sidecar file `{file}`: expected {expected} at `{pointer}`")]
    Value { file: String, pointer: String, expected: &'static str },
    /// The JSON has something else in place of points of an object.
    #[error(
        "sidecar file `{file}`: expected {} points of {} numbers at `{pointer}`",
        shape[0],
        shape[1]
    )]
    Points { file: String, pointer: String, shape: [usize; 2] },
    /// There are not as many labels or values as boxes.
    #[error("sidecar file `{file}` has {count} {what} for {boxes} boxes")]
    BoxCount { file: String, boxes: usize, what: &'static str, count: usize },
    /// The mask cannot be decoded.
    #[error("sidecar file `{file}`: {source}")]
    Mask { file: String, source: DecodeError },
    /// The mask has numbers that those of the batch do not hold.
    #[error("mask `{file}` has 16 bits, and masks are u8: u16, i32 and i64 hold its numbers")]
    MaskDepth { file: String },
    /// The mask is not as large as the image.
    #[error("mask `{file}` has {width}x{height} pixels, the image {image_width}x{image_height}")]
    MaskSize { file: String, width: u32, height: u32, image_width: u32, image_height: u32 },
    /// The mask of an object is neither polygons nor run lengths.
    #[error("sidecar file `{file}`: {source} at `{pointer}`")]
    Segmentation { file: String, pointer: String, source: serde_json::Error },
    /// The mask of an object is not one of the image.
    #[error("sidecar file `{file}`, `{pointer}`: {source}")]
    Drawing { file: String, pointer: String, source: AnnotationError },
    /// The masks of a sample need more memory than its limit.
    #[error(
        "sidecar file `{file}`: {masks} masks of {width}x{height} pixels have {bytes} bytes, \
        memory_budget and max_decoded_bytes leave {limit} for one sample"
    )]
    MaskBytes { file: String, masks: usize, width: u32, height: u32, bytes: u64, limit: u64 },
    /// An image of a sidecar file cannot be used.
    #[error("sidecar file `{file}`: {source}")]
    Image { file: String, source: Box<SampleFault> },
    /// An image that gets the crop of the sample's own image has another size.
    #[error(
        "image `{file}` has {}x{} pixels, the sample's own image {}x{}: a common crop needs equal \
        sizes", size.0, size.1, expected.0, expected.1
    )]
    ImageSize { file: String, size: (u32, u32), expected: (u32, u32) },
    /// The sample has no value, neither the file nor what it should have.
    #[error("sidecar file `{file}`: no value; pass `missing`, a number for samples without one")]
    NoValue { file: String },
    /// An array cannot be read.
    #[error("sidecar file `{file}`: {source}")]
    Npy { file: String, source: NpyError },
    /// A text is not UTF-8.
    #[error("sidecar file `{file}`: {source}")]
    Text { file: String, source: std::str::Utf8Error },
    /// A text has something else in place of a number.
    #[error("sidecar file `{file}`: `{}` is not a number", Escaped(found.as_bytes()))]
    NoNumber { file: String, found: String },
    /// The batch's type of numbers does not have the value.
    #[error("sidecar file `{file}`: {value} is not a number of type {}", number.name())]
    Misfit { file: String, value: String, number: ColumnType },
    /// The values have other dimensions than those of other samples.
    #[error("sidecar file `{file}`: values of shape {shape:?}, expected {expected:?}")]
    Shape { file: String, shape: Vec<usize>, expected: Vec<usize> },
    /// A class does not exist.
    #[error("sidecar file `{file}`: `{}` is not one of the {count} classes", Escaped(found.as_bytes()))]
    NoClass { file: String, found: String, count: u32 },
    /// They cannot be moved as the image was.
    #[error(transparent)]
    Moved(#[from] AnnotationError),
}
