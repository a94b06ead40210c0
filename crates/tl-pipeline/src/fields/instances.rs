//! The masks of a sample's objects: drawn from JSON, moved like the image.

use serde::Deserialize;
use serde_json::Value;
use tl_transform::{Mask, Segmentation};

use super::ListPointer;
use super::annotate::Placed;
use super::files::Files;
use super::objects::Objects;
use crate::error::{AnnotationFault, PipelineError};

/// Masks of the objects in a sidecar file of JSON: polygons and run lengths as COCO writes them
/// ([`Segmentation`]), of the image as it is decoded.
///
/// A mask has 1 where the object is, and 0 elsewhere. It is drawn as pycocotools draws it, at the size
/// of the stored image, and then moves like the image, by nearest pixels. The masks of objects are
/// left out with the boxes of [`Fields::boxes`](super::Fields::boxes), in whose order they are;
/// without boxes all objects stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceMaskField {
    /// The extension of the sidecar file, without its leading dot.
    pub file: String,
    /// The JSON pointer to the masks, with one `*` for the elements of a list.
    pub masks: String,
}

impl InstanceMaskField {
    /// Masks in the list at `masks` of the sidecar file with extension `file`.
    #[must_use]
    pub fn new(file: impl Into<String>, masks: impl Into<String>) -> Self {
        Self { file: file.into(), masks: masks.into() }
    }

    /// Masks as COCO writes them, `annotations` of objects with `segmentation`.
    #[must_use]
    pub fn coco(file: impl Into<String>) -> Self {
        Self::new(file, "/annotations/*/segmentation")
    }

    pub(super) fn check(&self) -> Result<(), PipelineError> {
        ListPointer::parse(&self.masks).map(drop)
    }
}

/// Draws the masks of a field that [`Fields::check`](super::Fields::check) has seen.
#[derive(Debug)]
pub(super) struct InstanceMaskReader {
    file: String,
    masks: ListPointer,
    /// The most bytes that the masks of a sample may have.
    limit: u64,
}

impl InstanceMaskReader {
    pub(super) fn new(field: &InstanceMaskField, limit: u64) -> Self {
        let masks = ListPointer::parse(&field.masks).expect("`Fields::check` parsed it");
        Self { file: field.file.clone(), masks, limit }
    }

    /// The masks of all objects, as the image lies.
    pub(super) fn moved(
        &self,
        files: &mut Files,
        placed: &Placed<'_>,
        carried: Option<&[Mask]>,
    ) -> Result<Vec<Mask>, AnnotationFault> {
        let mut masks = Vec::new();
        self.each(files, placed, placed.plan().output_size(), carried, None, |mask| {
            masks.push(mask);
        })?;
        Ok(masks)
    }

    /// Appends the masks of the objects that stay, as the image lies in the batch; of all objects
    /// without `stays`.
    pub(super) fn place(
        &self,
        files: &mut Files,
        placed: &Placed<'_>,
        carried: Option<&[Mask]>,
        stays: Option<&[bool]>,
        out: &mut Vec<u8>,
    ) -> Result<(), AnnotationFault> {
        let size = placed.room.unwrap_or_else(|| placed.plan().output_size());
        self.each(files, placed, size, carried, stays, |mask| write(&mask, size, out))
    }

    /// Calls `take` with the moved masks of the objects that stay: those that a user's transform has
    /// left, or those of the file. `size` is what each will need.
    fn each(
        &self,
        files: &mut Files,
        placed: &Placed<'_>,
        size: (u32, u32),
        carried: Option<&[Mask]>,
        stays: Option<&[bool]>,
        mut take: impl FnMut(Mask),
    ) -> Result<(), AnnotationFault> {
        let objects = Objects { file: &self.file, document: files.document(&self.file)? };
        let list = "a list of masks";
        let mut found: Vec<&Value> = Vec::new();
        objects.each(&self.masks, list, "polygons or run lengths", |value| {
            found.push(value);
            Some(())
        })?;
        if let Some(stays) = stays {
            objects.check_count("masks", stays.len(), found.len())?;
        }
        let stay = |place: &usize| stays.is_none_or(|stays| stays[*place]);
        let kept: Vec<usize> = (0..found.len()).filter(stay).collect();
        self.check_bytes(kept.len(), size)?;
        // The crop's part of a mask in the file is all that is drawn.
        let plan = match carried {
            Some(_) => placed.plan().with_fill(0),
            None => placed.plan().of_region().with_fill(0),
        };
        for place in kept {
            let mut mask = match carried {
                Some(carried) => carried[place].clone(),
                None => self.draw(found[place], self.masks.of(place), placed)?,
            };
            plan.move_mask(&mut mask)?;
            take(mask);
        }
        Ok(())
    }

    /// Fails for more masks of this size than the memory allows.
    fn check_bytes(&self, masks: usize, size: (u32, u32)) -> Result<(), AnnotationFault> {
        let (width, height) = size;
        let pixels = u64::from(width) * u64::from(height);
        let bytes = pixels.saturating_mul(masks as u64);
        let limit = self.limit;
        if bytes <= limit {
            return Ok(());
        }
        let file = self.file.clone();
        Err(AnnotationFault::MaskBytes { file, masks, width, height, bytes, limit })
    }

    /// The part of an object's mask that the plan reads.
    fn draw(
        &self,
        value: &Value,
        pointer: String,
        placed: &Placed<'_>,
    ) -> Result<Mask, AnnotationFault> {
        let file = || self.file.clone();
        let segmentation = Segmentation::deserialize(value).map_err(|source| {
            AnnotationFault::Segmentation { file: file(), pointer: pointer.clone(), source }
        })?;
        let part = placed.plan().head.region;
        let mut pixels = vec![0; part.width as usize * part.height as usize];
        segmentation
            .draw(placed.size, part, &mut pixels)
            .map_err(|source| AnnotationFault::Drawing { file: file(), pointer, source })?;
        Ok(Mask::new(part.width, part.height, pixels)?)
    }
}

/// Appends a mask, and zeros where `size` is larger.
fn write(mask: &Mask, size: (u32, u32), out: &mut Vec<u8>) {
    let width = size.0 as usize;
    let end = out.len() + width * size.1 as usize;
    out.reserve(end - out.len());
    for row in mask.data().chunks_exact(mask.size().0 as usize) {
        out.extend_from_slice(row);
        out.resize(out.len() + width - row.len(), 0);
    }
    out.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_lie_in_the_corner_of_larger_ones() {
        let mask = Mask::new(2, 2, vec![1, 0, 1, 1]).unwrap();
        let mut out = vec![7];
        write(&mask, (3, 3), &mut out);
        write(&mask, (2, 2), &mut out);
        assert_eq!(out, [7, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1]);
    }
}
