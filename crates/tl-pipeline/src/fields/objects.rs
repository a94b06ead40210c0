//! Values of the objects of an image, from the JSON that lists them.

use serde_json::Value;

use super::ListPointer;
use crate::error::AnnotationFault;

/// The JSON of a sidecar file that lists objects.
#[derive(Clone, Copy)]
pub(super) struct Objects<'a> {
    pub(super) file: &'a str,
    pub(super) document: &'a Value,
}

impl<'a> Objects<'a> {
    /// Calls `take` with every value of the list that `pointer` names; a missing one is an error, as
    /// is one that `take` does not want. Errors say that `list` or `element` was expected.
    pub(super) fn each(
        &self,
        pointer: &ListPointer,
        list: &'static str,
        element: &'static str,
        mut take: impl FnMut(&'a Value) -> Option<()>,
    ) -> Result<(), AnnotationFault> {
        let fault = |pointer| self.expected(pointer, element);
        self.each_found(pointer, list, fault, |value| value.and_then(&mut take))
    }

    /// As [`each`](Self::each), with the error of a value at its pointer. `take` decides on missing
    /// values too.
    pub(super) fn each_found(
        &self,
        pointer: &ListPointer,
        list: &'static str,
        fault: impl Fn(String) -> AnnotationFault,
        mut take: impl FnMut(Option<&'a Value>) -> Option<()>,
    ) -> Result<(), AnnotationFault> {
        let values = pointer.values(self.document);
        let values = values.ok_or_else(|| self.expected(pointer.list().to_owned(), list))?;
        for (position, value) in values.enumerate() {
            let taken = take(value);
            taken.ok_or_else(|| fault(pointer.of(position)))?;
        }
        Ok(())
    }

    /// The error of something else at `pointer`.
    pub(super) fn expected(&self, pointer: String, expected: &'static str) -> AnnotationFault {
        AnnotationFault::Value { file: self.file.to_owned(), pointer, expected }
    }

    /// Fails unless there are as many `what` as boxes.
    pub(super) fn check_count(
        &self,
        what: &'static str,
        boxes: usize,
        count: usize,
    ) -> Result<(), AnnotationFault> {
        if boxes == count {
            return Ok(());
        }
        let file = self.file.to_owned();
        Err(AnnotationFault::BoxCount { file, boxes, what, count })
    }
}

/// Keeps the items whose place in `stays` is true.
pub(super) fn retain<T>(items: &mut Vec<T>, stays: &[bool]) {
    let mut stays = stays.iter();
    items.retain(|_| stays.next().is_some_and(|stays| *stays));
}

/// A number, rounded to what coordinates have.
#[expect(clippy::cast_possible_truncation, reason = "coordinates are f32, as torchvision's")]
pub(super) fn single(value: &Value) -> Option<f32> {
    value.as_f64().map(|number| number as f32)
}
