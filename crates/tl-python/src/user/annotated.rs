//! Annotations of an image as a dict of NumPy arrays, and back.
//!
//! `boxes` are (n, 4), by their edges; `keypoints` a list with (objects, points, 2 or 3) for each
//! field; `masks` of objects (n, height, width); the `mask` (height, width).

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use tl_transform::{Mask, UserAnnotations, UserKeypoints, UserMask};

use super::{array, sides};
use crate::element::{Element, PythonElement};

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
        let taken = Taken::new(made, "boxes", Element::F32)?;
        *boxes = taken.floats().as_chunks().0.to_vec();
    }
    if !annotations.keypoints.is_empty() {
        let list = made.get_item("keypoints")?;
        let list = list.ok_or_else(|| PyRuntimeError::new_err("it returned no keypoints"))?;
        for (place, points) in annotations.keypoints.iter_mut().enumerate() {
            points.numbers = Taken::of(&list.get_item(place)?, Element::F32)?.floats();
        }
    }
    if let Some(masks) = &mut annotations.masks {
        let Taken { shape, bytes } = Taken::new(made, "masks", Element::U8)?;
        let &[count, height, width] = &shape[..] else {
            return Err(unexpected("masks", &shape, "(objects, height, width)"));
        };
        let width = u32::try_from(width).unwrap_or(u32::MAX);
        let height = u32::try_from(height).unwrap_or(u32::MAX);
        let each = bytes.chunks_exact((bytes.len() / count.max(1)).max(1));
        let made = each.map(|mask| Mask::new(width, height, mask.to_vec()));
        let made = made.collect::<Result<_, _>>();
        *masks = made.map_err(|error| PyRuntimeError::new_err(format!("masks: {error}")))?;
    }
    if let Some(mask) = &mut annotations.mask {
        let Taken { shape, bytes } = Taken::new(made, "mask", Element::U16)?;
        let &[height, width] = &shape[..] else {
            return Err(unexpected("mask", &shape, "(height, width)"));
        };
        let size = [width, height].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
        let numbers = bytes.as_chunks().0.iter().map(|number| u16::from_ne_bytes(*number));
        let is_wide = mask.is_wide;
        *mask = UserMask { size: size.into(), numbers: numbers.collect(), is_wide };
    }
    Ok(())
}

/// An array that a function has returned.
struct Taken {
    shape: Vec<usize>,
    /// The numbers, of the type that was asked for.
    bytes: Vec<u8>,
}

impl Taken {
    fn new(made: &Bound<'_, PyDict>, name: &str, element: Element) -> PyResult<Self> {
        let none = || PyRuntimeError::new_err(format!("it returned no {name}"));
        Self::of(&made.get_item(name)?.ok_or_else(none)?, element)
    }

    fn of(made: &Bound<'_, PyAny>, element: Element) -> PyResult<Self> {
        let numpy = made.py().import("numpy")?;
        let made = numpy.call_method1("asarray", (made, element.python_name()))?;
        let shape = made.getattr("shape")?.extract()?;
        let bytes = made.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes().to_vec();
        Ok(Self { shape, bytes })
    }

    fn floats(&self) -> Vec<f32> {
        self.bytes.as_chunks().0.iter().map(|number| f32::from_ne_bytes(*number)).collect()
    }
}

fn unexpected(name: &str, shape: &[usize], expected: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{name} have shape {shape:?}, expected {expected}"))
}
