//! Transforms of the user's in Python: functions of an image, called on the loader's threads.

use std::sync::Arc;

use pyo3::Borrowed;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use serde_json::Value;
use tl_transform::{Rng, UserError, UserTransform};

use crate::element::Element;
use crate::memory::Memory;
use crate::tensor::Tensor;

/// Functions by the names that a recipe has for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserTransforms {
    functions: Vec<(String, Arc<Py<PyAny>>)>,
}

impl<'a, 'py> FromPyObject<'a, 'py> for UserTransforms {
    type Error = PyErr;

    /// Of a dict from names to functions.
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let pairs: Vec<(String, Py<PyAny>)> = object
            .call_method0("items")?
            .try_iter()?
            .map(|item| item?.extract::<(String, Py<PyAny>)>())
            .collect::<PyResult<_>>()?;
        let functions = pairs.into_iter().map(|(name, function)| (name, Arc::new(function)));
        Ok(Self { functions: functions.collect() })
    }
}

impl UserTransforms {
    /// Shows the functions to the garbage collector. Of each there is one count, however many
    /// loaders and threads share it, so one object alone may show it.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.functions.iter().try_for_each(|(_, function)| visit.call(&**function))
    }

    /// The functions as a loader has them.
    pub(crate) fn of_loader(&self) -> tl_transform::UserTransforms {
        let mut transforms = tl_transform::UserTransforms::new();
        for (name, function) in &self.functions {
            transforms.insert(name.clone(), Function(Arc::clone(function)));
        }
        transforms
    }
}

/// A function that takes an image as a NumPy array and returns one of the same size.
struct Function(Arc<Py<PyAny>>);

impl UserTransform for Function {
    fn apply(
        &self,
        pixels: &mut [u8],
        size: (u32, u32),
        _rng: &mut Rng,
        _parameters: &Value,
    ) -> Result<(), UserError> {
        let gone = || UserError::from("the interpreter is gone");
        Python::try_attach(|py| self.call(py, pixels, size)).ok_or_else(gone)?.map_err(|error| {
            // With the exception's name, and without the interpreter from here on.
            UserError::from(Python::attach(|py| in_words(&error, py)))
        })
    }
}

impl Function {
    fn call(&self, py: Python<'_>, pixels: &mut [u8], size: (u32, u32)) -> PyResult<()> {
        let shape = vec![size.1 as usize, size.0 as usize, 3];
        let image = Bound::new(py, Tensor::new(Memory::of(pixels)?, shape, Element::U8))?;
        let image = image.call_method0("numpy")?;
        let made = self.0.bind(py).call1((&image,))?;
        let made = py.import("numpy")?.call_method1("asarray", (made,))?;
        let same = |name| -> PyResult<bool> { made.getattr(name)?.eq(image.getattr(name)?) };
        if !(same("shape")? && same("dtype")?) {
            let of = |array: &Bound<'_, PyAny>| -> PyResult<String> {
                Ok(format!("{} of shape {}", array.getattr("dtype")?, array.getattr("shape")?))
            };
            let (made, image) = (of(&made)?, of(&image)?);
            let message = format!(
                "it returned {made} for {image}: a function keeps size and type, which the \
                 transforms around it change"
            );
            return Err(PyRuntimeError::new_err(message));
        }
        let bytes = made.call_method0("tobytes")?;
        pixels.copy_from_slice(bytes.cast::<PyBytes>()?.as_bytes());
        Ok(())
    }
}

fn in_words(error: &PyErr, py: Python<'_>) -> String {
    let kind = error.get_type(py);
    let name = kind.name().unwrap_or_else(|_| PyString::new(py, "exception"));
    format!("{name}: {}", error.value(py))
}
