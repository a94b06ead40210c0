//! Annotations of an image: bounding boxes and masks, moved as torchvision v2 moves its
//! `tv_tensors`.

mod boxes;
mod mask;
mod segmentation;

pub use boxes::{BoundingBoxes, BoxFormat};
pub use mask::Mask;
pub use segmentation::Segmentation;
