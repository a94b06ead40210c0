//! The faults of fields: boxes, masks and further images.

use tl_decode::DecodeError;
use tl_transform::AnnotationError;

use super::SampleFault;

/// The fault of a field of a sample.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum AnnotationFault {
    /// The sample has no such sidecar file.
    #[error("no sidecar file `{column}`")]
    NoColumn { column: String },
    /// The sidecar file is not JSON.
    #[error("sidecar file `{column}`: {source}")]
    Json { column: String, source: serde_json::Error },
    /// The JSON has something else in a place.
    #[error("sidecar file `{column}`: expected {expected} at `{pointer}`")]
    Value { column: String, pointer: String, expected: &'static str },
    /// There are not as many labels as boxes.
    #[error("sidecar file `{column}` has {boxes} boxes and {labels} labels")]
    LabelCount { column: String, boxes: usize, labels: usize },
    /// The mask cannot be decoded.
    #[error("sidecar file `{column}`: {source}")]
    Mask { column: String, source: DecodeError },
    /// The mask is not as large as the image.
    #[error("mask `{column}` has {width}x{height} pixels, the image {image_width}x{image_height}")]
    MaskSize { column: String, width: u32, height: u32, image_width: u32, image_height: u32 },
    /// An image of a sidecar file cannot be used.
    #[error("sidecar file `{column}`: {source}")]
    Image { column: String, source: Box<SampleFault> },
    /// An image that gets the crop of the sample's own image has another size.
    #[error(
        "image `{column}` has {}x{} pixels, the sample's own image {}x{}: a common crop needs equal \
        sizes", size.0, size.1, expected.0, expected.1
    )]
    ImageSize { column: String, size: (u32, u32), expected: (u32, u32) },
    /// They cannot be moved as the image was.
    #[error(transparent)]
    Moved(#[from] AnnotationError),
}
