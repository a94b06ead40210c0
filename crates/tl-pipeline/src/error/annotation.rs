//! The faults of boxes and masks.

use tl_decode::DecodeError;
use tl_transform::AnnotationError;

/// The fault of the boxes or the mask of a sample.
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
    /// They cannot be moved as the image was.
    #[error(transparent)]
    Moved(#[from] AnnotationError),
}
