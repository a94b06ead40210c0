//! The boxes of one sample: read from JSON, moved like the image, with the numbers that belong to
//! each.

use serde_json::Value;
use tl_transform::{AnnotationError, BoundingBoxes, BoxFormat, UserAnnotations};

use super::annotate::Placed;
use super::files::Files;
use super::objects::{Objects, retain, single};
use super::values::{put, whole_or_real};
use super::{BoxField, BoxValue, ListPointer, RowFields, Sanitize, refused};
use crate::error::{AnnotationFault, PipelineError};

impl BoxField {
    pub(super) fn check(&self) -> Result<(), PipelineError> {
        let values = self.values.iter().map(|value| &value.pointer);
        for pointer in [&self.boxes].into_iter().chain(&self.labels).chain(values) {
            ListPointer::parse(pointer)?;
        }
        let Sanitize { min_size, min_area } = self.sanitize.unwrap_or_default();
        if [min_size, min_area].iter().all(|least| *least >= 1.0 && least.is_finite()) {
            return Ok(());
        }
        Err(refused(format!(
            "min_size is {min_size} and min_area {min_area}, expected numbers from 1 on"
        )))
    }
}

/// Reads the boxes of a field that [`Fields::check`](super::Fields::check) has seen.
#[derive(Debug)]
pub(super) struct BoxReader {
    field: BoxField,
    boxes: ListPointer,
    labels: Option<ListPointer>,
    values: Vec<ListPointer>,
}

/// Boxes on the image before the plan, as they are listed.
struct Listed {
    format: BoxFormat,
    boxes: Vec<[f32; 4]>,
}

impl BoxReader {
    pub(super) fn new(field: &BoxField) -> Self {
        let parse = |pointer: &str| ListPointer::parse(pointer).expect("`Fields::check` parsed it");
        Self {
            boxes: parse(&field.boxes),
            labels: field.labels.as_deref().map(parse),
            values: field.values.iter().map(|value| parse(&value.pointer)).collect(),
            field: field.clone(),
        }
    }

    /// The boxes as the image lies, by their edges; a box that a user's transform has dropped is NaN.
    pub(super) fn moved(
        &self,
        files: &mut Files,
        placed: &Placed<'_>,
        carried: Option<&UserAnnotations>,
    ) -> Result<Vec<[f32; 4]>, AnnotationFault> {
        let file = &self.field.file;
        let objects = Objects { file, document: files.document(file)? };
        let carried = carried.and_then(|carried| carried.boxes.as_deref());
        let Listed { format, boxes } = self.find(&objects, carried)?;
        let mut boxes = BoundingBoxes::new(format, placed.size, boxes)?;
        placed.plan().move_boxes(&mut boxes)?;
        boxes.convert(BoxFormat::Xyxy);
        let mut boxes = boxes.boxes().to_vec();
        for (edges, before) in boxes.iter_mut().zip(carried.unwrap_or_default()) {
            if is_dropped(before) {
                *edges = [f32::NAN; 4];
            }
        }
        Ok(boxes)
    }

    /// The boxes on the image before the plan: those of the file, or those that a user's transform
    /// has left, where one that it has dropped has no area.
    fn find(
        &self,
        objects: &Objects<'_>,
        carried: Option<&[[f32; 4]]>,
    ) -> Result<Listed, AnnotationFault> {
        if let Some(carried) = carried {
            let edges = |edges: &[f32; 4]| if is_dropped(edges) { [0.0; 4] } else { *edges };
            let boxes = carried.iter().map(edges).collect();
            return Ok(Listed { format: BoxFormat::Xyxy, boxes });
        }
        let mut boxes = Vec::new();
        objects.each(&self.boxes, "a list of boxes", "a box of four numbers", |value| {
            boxes.push(coordinates(value)?);
            Some(())
        })?;
        self.check_edges(objects, &boxes)?;
        Ok(Listed { format: self.field.format, boxes })
    }

    /// Puts the boxes into the row, as the image lies there. Tells of each box in the file whether
    /// it stays.
    pub(super) fn place(
        &self,
        files: &mut Files,
        placed: &Placed<'_>,
        carried: Option<&UserAnnotations>,
        row: &mut RowFields,
    ) -> Result<Vec<bool>, AnnotationFault> {
        let file = &self.field.file;
        let objects = Objects { file, document: files.document(file)? };
        let carried = carried.and_then(|carried| carried.boxes.as_deref());
        let Listed { format, boxes } = self.find(&objects, carried)?;
        let count = boxes.len();
        if let Some(pointer) = &self.labels {
            let expected = "a label of a whole number";
            objects.each(pointer, "a list of labels", expected, |value| {
                row.box_labels.push(value.as_i64()?);
                Some(())
            })?;
            objects.check_count("labels", count, row.box_labels.len())?;
        }
        row.box_values.resize_with(self.values.len(), Vec::new);
        for (place, (pointer, BoxValue { number, .. })) in
            self.values.iter().zip(&self.field.values).enumerate()
        {
            let out = &mut row.box_values[place];
            let bytes = number.bytes();
            let expected = "a number that the type has";
            objects.each(pointer, "a list of numbers", expected, |value| {
                let start = out.len();
                out.resize(start + bytes, 0);
                let number =
                    whole_or_real(value).map(|value| put(*number, value, &mut out[start..]));
                number.filter(|fits| *fits).map(drop)
            })?;
            objects.check_count("values", count, out.len() / bytes)?;
        }
        let indices = 0..i64::try_from(count).unwrap_or(i64::MAX);
        row.box_indices.extend(indices);
        let mut boxes = BoundingBoxes::new(format, placed.size, boxes)?;
        placed.plan().move_boxes(&mut boxes)?;
        Ok(self.put(boxes, carried.unwrap_or_default(), row)?)
    }

    /// Puts moved boxes into the row, and leaves out what is too small or dropped with all that
    /// belongs to it.
    fn put(
        &self,
        mut boxes: BoundingBoxes,
        carried: &[[f32; 4]],
        row: &mut RowFields,
    ) -> Result<Vec<bool>, AnnotationError> {
        let field = &self.field;
        let mut stays = vec![true; boxes.boxes().len()];
        stays.iter_mut().zip(carried).for_each(|(stays, edges)| *stays = !is_dropped(edges));
        if let Some(sanitize) = field.sanitize {
            // A box beyond the edge by a rounding is not cut off. Dropped ones have no area.
            boxes.clamp();
            stays = boxes.sanitize(sanitize.min_size, sanitize.min_area)?;
        }
        boxes.convert(field.output);
        row.boxes.extend_from_slice(boxes.boxes());
        if stays.contains(&false) {
            if field.sanitize.is_none() {
                retain(&mut row.boxes, &stays);
            }
            retain(&mut row.box_labels, &stays);
            retain(&mut row.box_indices, &stays);
            for (values, BoxValue { number, .. }) in row.box_values.iter_mut().zip(&field.values) {
                let bytes = number.bytes();
                let each = |stays: &bool| std::iter::repeat_n(*stays, bytes);
                retain(values, &stays.iter().flat_map(each).collect::<Vec<bool>>());
            }
        }
        Ok(stays)
    }

    /// Refuses boxes whose edges are in the wrong order: most often they are in another format.
    fn check_edges(
        &self,
        objects: &Objects<'_>,
        boxes: &[[f32; 4]],
    ) -> Result<(), AnnotationFault> {
        let has_edges = self.field.format == BoxFormat::Xyxy;
        let is_reversed = |&[left, top, right, bottom]: &[f32; 4]| {
            if has_edges { right < left || bottom < top } else { right < 0.0 || bottom < 0.0 }
        };
        let Some(position) = boxes.iter().position(is_reversed) else { return Ok(()) };
        let expected = if has_edges {
            "edges as left, top, right, bottom (COCO's boxes have format xywh)"
        } else {
            "a box whose width and height are 0 or more"
        };
        Err(objects.expected(self.boxes.of(position), expected))
    }
}

/// Whether a user's transform has dropped the box.
fn is_dropped(edges: &[f32; 4]) -> bool {
    edges.iter().any(|edge| edge.is_nan())
}

/// Four numbers, rounded to what boxes have.
fn coordinates(value: &Value) -> Option<[f32; 4]> {
    let [a, b, c, d] = value.as_array()?.as_slice() else { return None };
    Some([single(a)?, single(b)?, single(c)?, single(d)?])
}
