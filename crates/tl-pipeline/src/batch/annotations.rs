//! Boxes, keypoints and masks of a batch's samples.

use zerocopy::FromBytes;

use super::Batch;
use crate::fields::MaskType;

impl Batch {
    /// Sample `row`'s boxes, as they lie on the image in the batch.
    #[must_use]
    pub fn boxes(&self, row: usize) -> &[[f32; 4]] {
        self.fields(row).map_or(&[], |fields| &fields.boxes)
    }

    /// The labels of sample `row`'s boxes; empty where boxes have none.
    #[must_use]
    pub fn box_labels(&self, row: usize) -> &[i64] {
        self.fields(row).map_or(&[], |fields| &fields.box_labels)
    }

    /// The places that sample `row`'s boxes have in the list of its file, ascending: those that are
    /// missing were cut off.
    #[must_use]
    pub fn box_indices(&self, row: usize) -> &[i64] {
        self.fields(row).map_or(&[], |fields| &fields.box_indices)
    }

    /// Numbers of sample `row`'s boxes, in their type and the machine's byte order: those of entry
    /// `value` of [`BoxField::values`](crate::BoxField::values).
    #[must_use]
    pub fn box_values(&self, value: usize, row: usize) -> &[u8] {
        self.fields(row).and_then(|fields| fields.box_values.get(value)).map_or(&[], Vec::as_slice)
    }

    /// The numbers of sample `row`'s points of entry `field` of
    /// [`Fields::keypoints`](crate::Fields::keypoints), as they lie on the image in the batch: object
    /// by object, or those of the sample.
    #[must_use]
    pub fn keypoints(&self, field: usize, row: usize) -> &[f32] {
        match self.keypoints.get(field).and_then(|layout| layout.column) {
            Some(column) => {
                let numbers = <[f32]>::ref_from_bytes(self.column_bytes(column));
                let numbers = numbers.expect("a column is aligned and whole");
                let each = numbers.len() / self.len.max(1);
                // Points have two numbers or more; a batch without rows has none.
                numbers.chunks_exact(each.max(1)).nth(row).unwrap_or_default()
            }
            None => {
                let fields = self.fields(row).and_then(|fields| fields.keypoints.get(field));
                fields.map_or(&[], Vec::as_slice)
            }
        }
    }

    /// The number of points in each set of [`keypoints`](Self::keypoints), and the numbers of a
    /// point.
    #[must_use]
    pub fn keypoint_shape(&self, field: usize) -> Option<[usize; 2]> {
        self.keypoints.get(field).map(|layout| layout.shape)
    }

    /// The masks of sample `row`'s objects, one after the other: a byte per pixel, 1 inside. They are
    /// as large as the image in the batch, with its padding, which is 0 in masks.
    #[must_use]
    pub fn instance_masks(&self, row: usize) -> &[u8] {
        self.fields(row).map_or(&[], |fields| &fields.instance_masks)
    }

    /// The masks in row order, one number per pixel of the images, in the type of
    /// [`mask_type`](Self::mask_type) and the machine's byte order; empty without masks, or if
    /// images have their own sizes.
    #[must_use]
    pub fn masks(&self) -> &[u8] {
        self.lease.masks(self.len)
    }

    /// The type of the numbers in [`masks`](Self::masks).
    #[must_use]
    pub fn mask_type(&self) -> Option<MaskType> {
        self.mask
    }

    /// The masks as 64-bit integers, if that is what they are.
    #[must_use]
    pub fn masks_i64(&self) -> Option<&[i64]> {
        let numbers = self.mask? == MaskType::I64;
        numbers
            .then(|| <[i64]>::ref_from_bytes(self.masks()).expect("a field is aligned and whole"))
    }

    /// The mask of sample `row` of a batch whose images have their own sizes: a byte per pixel.
    #[must_use]
    pub fn mask(&self, row: usize) -> Option<&[u8]> {
        let mask = self.fields(row)?.mask.as_slice();
        (!mask.is_empty()).then_some(mask)
    }
}
