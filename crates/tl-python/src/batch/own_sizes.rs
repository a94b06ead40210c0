//! Images and masks in their own sizes, which lie in no field of the slab.

use pyo3::prelude::*;

use super::PyBatch;
use crate::element::Element;
use crate::memory::Memory;
use crate::tensor::Tensor;

/// The copies that are kept.
pub(super) const IMAGES: usize = 0;
pub(super) const MASKS: usize = 1;

impl PyBatch {
    /// Row `row` of the copies that are kept of a field, which are made at once by `make`.
    pub(super) fn copy(
        &self,
        py: Python<'_>,
        field: usize,
        row: usize,
        make: impl Fn(usize) -> PyResult<Option<Tensor>>,
    ) -> PyResult<Option<Tensor>> {
        let make = || (0..self.batch.len()).map(make).collect();
        let copies = self.copies[field].get_or_try_init(py, make)?;
        Ok(copies.get(row).cloned().flatten())
    }

    /// A copy of an image, which lies in no field of the slab.
    pub(super) fn image(&self, row: usize) -> PyResult<Option<Tensor>> {
        let Some(sample) = self.batch.sample(row) else { return Ok(None) };
        let channels = sample.channels as usize;
        let shape = vec![sample.height as usize, sample.width as usize, channels];
        let element = sample.pixels.dtype().into();
        Ok(Some(Tensor::new(Memory::of(sample.bytes)?, shape, element)))
    }

    /// A copy of a mask that lies in none either.
    pub(super) fn mask(&self, row: usize) -> PyResult<Option<Tensor>> {
        let (Some(mask), Some(sample)) = (self.batch.mask(row), self.batch.sample(row)) else {
            return Ok(None);
        };
        let shape = vec![sample.height as usize, sample.width as usize];
        Ok(Some(Tensor::new(Memory::of(mask)?, shape, Element::U8)))
    }
}
