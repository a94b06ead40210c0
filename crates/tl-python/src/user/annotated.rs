//! Annotations of an image as a dict of NumPy arrays, and back.
//!
//! `boxes` are (n, 4), by their edges; `keypoints` a list with (objects, points, 2 or 3) for each
//! field; `masks` of objects (n, height, width); the `mask` (height, width).

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use tl_transform::{Mask, UserAnnotations, UserKeypoints, UserMask};

use super::{array, sides};
use crate::element::Element;

/// The dict of the annotations that there are.
pub(super) fn to_python<'py>(
    py: Python<'py>,
    annotations: &UserAnnotations,
) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    let UserAnnotations { boxes, keypoints, masks, mask } = annotations;
    if let Some(boxes) = boxes {
        let edges = boxes.as_flattened().iter().flat_map(|edge| edge.to_ne_bytes());
        let bytes: Vec<u8> = edges.collect();
        made.set_item("boxes", array(py, &bytes, vec![boxes.len(), 4], Element::F32)?)?;
    }
    let keypoints = keypoints.iter().map(|UserKeypoints { shape: [count, width], numbers }| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let objects = numbers.len() / (count * width);
        array(py, &bytes, vec![objects, *count, *width], Element::F32)
    });
    made.set_item("keypoints", PyList::new(py, keypoints.collect::<PyResult<Vec<_>>>()?)?)?;
    if let Some(masks) = masks {
        let [width, height] = masks.first().map_or([0; 2], |mask| sides(mask.size()));
        let bytes = masks.iter().map(Mask::data).collect::<Vec<_>>().concat();
        made.set_item("masks", array(py, &bytes, vec![masks.len(), height, width], Element::U8)?)?;
    }
    if let Some(UserMask { size, numbers, is_wide }) = mask {
        let [width, height] = sides(*size);
        let wide = || numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>();
        let narrow = || numbers.iter().map(|number| number.to_le_bytes()[0]).collect::<Vec<u8>>();
        let bytes = if *is_wide { wide() } else { narrow() };
        let element = if *is_wide { Element::U16 } else { Element::U8 };
        made.set_item("mask", array(py, &bytes, vec![height, width], element)?)?;
    }
    Ok(made)
}

/// Takes the annotations of such a dict.
pub(super) fn from_python(
    made: &Bound<'_, PyDict>,
    annotations: &mut UserAnnotations,
) -> PyResult<()> {
    if let Some(boxes) = &mut annotations.boxes {
        let numbers = Taken::new(made, "boxes")?.floats()?;
        let returned = numbers.as_chunks().0.to_vec();
        check_edges(boxes, &returned)?;
        *boxes = returned;
    }
    if !annotations.keypoints.is_empty() {
        let list = made.get_item("keypoints")?.ok_or_else(|| missing("keypoints"))?;
        for (place, points) in annotations.keypoints.iter_mut().enumerate() {
            points.numbers = Taken::of(list.get_item(place)?, "keypoints")?.floats()?;
            check_visibility(points)?;
        }
    }
    if let Some(masks) = &mut annotations.masks {
        *masks = masks_of(&Taken::new(made, "masks")?)?;
    }
    if let Some(mask) = &mut annotations.mask {
        let taken = Taken::new(made, "mask")?;
        let &[height, width] = &taken.shape[..] else {
            return Err(taken.has_shape("(height, width)")?);
        };
        taken.check_whole(if mask.is_wide { u16::MAX } else { u8::MAX.into() })?;
        let bytes = taken.bytes("uint16")?;
        let numbers = bytes.as_chunks().0.iter().map(|number| u16::from_ne_bytes(*number));
        let numbers = numbers.collect();
        *mask = UserMask { size: size(width, height).into(), numbers, is_wide: mask.is_wide };
    }
    Ok(())
}

/// Masks of objects.
fn masks_of(taken: &Taken<'_>) -> PyResult<Vec<Mask>> {
    let &[count, height, width] = &taken.shape[..] else {
        return Err(taken.has_shape("(objects, height, width)")?);
    };
    if count == 0 {
        return Ok(Vec::new());
    }
    if width == 0 || height == 0 {
        return Err(taken.has_shape("(objects, height, width) without a 0")?);
    }
    let [columns, rows] = size(width, height);
    taken.check_whole(1)?;
    let bytes = taken.bytes("uint8")?;
    let each = bytes.chunks_exact(width * height);
    let made = each.map(|mask| Mask::new(columns, rows, mask.to_vec()));
    let made = made.collect::<Result<_, _>>();
    made.map_err(|error| PyRuntimeError::new_err(format!("masks: {error}")))
}

/// Refuses boxes whose edges were in order and are no longer, as after a mirror that did not swap
/// them. They would be dropped as if they had left the image.
fn check_edges(before: &[[f32; 4]], after: &[[f32; 4]]) -> PyResult<()> {
    let is_turned = |edges: &[f32; 4]| edges[2] < edges[0] || edges[3] < edges[1];
    let mut pairs = before.iter().zip(after);
    match pairs.find(|(before, after)| !is_turned(before) && is_turned(after)) {
        Some((_, [left, top, right, bottom])) => Err(PyRuntimeError::new_err(format!(
            "it returned boxes with {left}, {top}, {right}, {bottom}, expected left, top, right, \
             bottom"
        ))),
        None => Ok(()),
    }
}

/// Refuses visibilities that are none.
fn check_visibility(points: &UserKeypoints) -> PyResult<()> {
    if points.shape[1] != 3 {
        return Ok(());
    }
    let mut each = points.numbers.iter().skip(2).step_by(3);
    match each.find(|number| !(number.is_finite() && **number >= 0.0)) {
        Some(number) => Err(PyRuntimeError::new_err(format!(
            "it returned keypoints with visibility {number}, expected 0 or more"
        ))),
        None => Ok(()),
    }
}

/// Sides in pixels; what no image has is refused with the annotations.
fn size(width: usize, height: usize) -> [u32; 2] {
    [width, height].map(|side| u32::try_from(side).unwrap_or(u32::MAX))
}

/// An array that a function has returned.
struct Taken<'py> {
    /// The name in messages.
    name: &'static str,
    array: Bound<'py, PyAny>,
    shape: Vec<usize>,
}

impl<'py> Taken<'py> {
    fn new(made: &Bound<'py, PyDict>, name: &'static str) -> PyResult<Self> {
        let found = made.get_item(name)?.filter(|found| !found.is_none());
        Self::of(found.ok_or_else(|| missing(name))?, name)
    }

    fn of(made: Bound<'py, PyAny>, name: &'static str) -> PyResult<Self> {
        let array = made.py().import("numpy")?.call_method1("asarray", (made,))?;
        let shape = array.getattr("shape")?.extract()?;
        Ok(Self { name, array, shape })
    }

    /// Numbers with or without a fraction.
    fn floats(&self) -> PyResult<Vec<f32>> {
        if !["f", "i", "u"].contains(&&*self.kind()?) {
            return Err(self.has_type("numbers")?);
        }
        let bytes = self.bytes("float64")?;
        #[expect(clippy::cast_possible_truncation, reason = "annotations are in f32")]
        let float = |number: &[u8; 8]| f64::from_ne_bytes(*number) as f32;
        Ok(bytes.as_chunks().0.iter().map(float).collect())
    }

    /// Refuses other than whole numbers from 0 to `most`.
    fn check_whole(&self, most: u16) -> PyResult<()> {
        if !["b", "i", "u"].contains(&&*self.kind()?) {
            return Err(self.has_type("whole numbers")?);
        }
        if !self.shape.contains(&0) {
            for end in ["min", "max"] {
                let number = self.array.call_method0(end)?;
                if !number.ge(0)? || !number.le(most)? {
                    let name = self.name;
                    let message = format!("it returned {name} with {number}, expected 0 to {most}");
                    return Err(PyRuntimeError::new_err(message));
                }
            }
        }
        Ok(())
    }

    fn kind(&self) -> PyResult<String> {
        self.array.getattr("dtype")?.getattr("kind")?.extract()
    }

    /// The numbers as a type of NumPy's that has them all.
    fn bytes(&self, dtype: &str) -> PyResult<Vec<u8>> {
        let array = self.array.call_method1("astype", (dtype,))?;
        Ok(array.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes().to_vec())
    }

    fn has_shape(&self, expected: &str) -> PyResult<PyErr> {
        let Self { name, array, .. } = self;
        let shape = array.getattr("shape")?;
        let message = format!("it returned {name} of shape {shape}, expected {expected}");
        Ok(PyRuntimeError::new_err(message))
    }

    fn has_type(&self, expected: &str) -> PyResult<PyErr> {
        let Self { name, array, .. } = self;
        let dtype = array.getattr("dtype")?;
        let message = format!("it returned {name} of {dtype}, expected {expected}");
        Ok(PyRuntimeError::new_err(message))
    }
}

fn missing(name: &str) -> PyErr {
    PyRuntimeError::new_err(format!("it returned no {name}"))
}
