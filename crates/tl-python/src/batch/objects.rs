//! Keypoints and masks of objects, which lie in no field of the slab.

use pyo3::prelude::*;
use zerocopy::IntoBytes;

use super::PyBatch;
use crate::element::Element;
use crate::memory::Memory;
use crate::tensor::Tensor;

impl PyBatch {
    /// The points of a row's objects: those that a box was left for.
    pub(super) fn keypoints(&self, field: usize, row: usize) -> PyResult<Option<Tensor>> {
        let Some([count, width]) = self.batch.keypoint_shape(field) else { return Ok(None) };
        let numbers = self.batch.keypoints(field, row);
        let shape = vec![numbers.len() / (count * width), count, width];
        Ok(Some(Tensor::new(Memory::of(numbers.as_bytes())?, shape, Element::F32)))
    }

    /// The masks of a row's objects.
    pub(super) fn instance_masks(&self, row: usize) -> PyResult<Tensor> {
        let masks = self.batch.instance_masks(row);
        let own = self.batch.sizes().get(row).copied().unwrap_or_default();
        let size = self.batch.spec().map_or(own, |spec| [spec.height, spec.width]);
        let [height, width] = size.map(|side| side as usize);
        let shape = vec![masks.len() / (height * width).max(1), height, width];
        Ok(Tensor::new(Memory::of(masks)?, shape, Element::U8))
    }
}
