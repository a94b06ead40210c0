//! What is wrong with boxes and masks.

use tl_decode::DecodeError;
use tl_transform::AnnotationError;

/// What is wrong with the boxes or the mask of a sample.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnnotationFault {
    /// The sample has no such sidecar file.
    #[error("no sidecar file `{column}`")]
    NoColumn {
        /// Its extension.
        column: String,
    },
    /// The sidecar file is no JSON.
    #[error("sidecar file `{column}`: {source}")]
    Json {
        /// Its extension.
        column: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The JSON has something else in a place.
    #[error("sidecar file `{column}` has not {expected} at `{pointer}`")]
    Value {
        /// The file's extension.
        column: String,
        /// The place, as a JSON pointer.
        pointer: String,
        /// What should be there.
        expected: &'static str,
    },
    /// There are not as many labels as boxes.
    #[error("sidecar file `{column}` has {boxes} boxes and {labels} labels")]
    LabelCount {
        /// The file's extension.
        column: String,
        /// Boxes.
        boxes: usize,
        /// Labels.
        labels: usize,
    },
    /// The mask cannot be decoded.
    #[error("sidecar file `{column}`: {source}")]
    Mask {
        /// The file's extension.
        column: String,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// The mask is not as large as the image.
    #[error("mask `{column}` has {width}x{height} pixels, the image {image_width}x{image_height}")]
    MaskSize {
        /// The file's extension.
        column: String,
        /// Width of the mask.
        width: u32,
        /// Height of the mask.
        height: u32,
        /// Width of the image.
        image_width: u32,
        /// Height of the image.
        image_height: u32,
    },
    /// They cannot be moved as the image was.
    #[error(transparent)]
    Moved(#[from] AnnotationError),
}
