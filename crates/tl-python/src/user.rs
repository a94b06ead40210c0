//! User-supplied transforms in Python: functions of an image, called on the loader's threads.

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use pyo3::Borrowed;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use serde_json::Value;
use tl_pipeline::OnError;
use tl_transform::{Rng, UserError, UserTransform};

use crate::element::Element;
use crate::memory::Memory;
use crate::tensor::Tensor;

thread_local! {
    /// The functions that this thread is in, by their addresses.
    static ENTERED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Functions by the names that a recipe has for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserTransforms {
    functions: Vec<(String, Arc<Py<PyAny>>)>,
    /// Whether each of them has a parameter `seed`.
    seeded: Vec<bool>,
}

/// Whether a function has a parameter `seed`; one that Python knows nothing of has none.
fn takes_seed(function: &Bound<'_, PyAny>) -> bool {
    let parameters = || {
        let inspect = function.py().import("inspect")?;
        inspect.call_method1("signature", (function,))?.getattr("parameters")?.contains("seed")
    };
    parameters().unwrap_or(false)
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
        let py = object.py();
        let seeded = pairs.iter().map(|(_, function)| takes_seed(function.bind(py))).collect();
        let functions = pairs.into_iter().map(|(name, function)| (name, Arc::new(function)));
        Ok(Self { functions: functions.collect(), seeded })
    }
}

impl UserTransforms {
    /// Shows the functions to the garbage collector. Of each there is one count, however many
    /// loaders and threads share it, so one object alone may show it.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.functions.iter().try_for_each(|(_, function)| visit.call(&**function))
    }

    /// Refuses calls that wait for the threads that run the functions, if this thread is one of
    /// them. So does a call that only locks the epoch: at an error the consumer joins the threads
    /// with the epoch locked.
    pub(crate) fn refuse_within(&self) -> Result<(), crate::error::Error> {
        let entered = |function: &Arc<Py<PyAny>>| {
            ENTERED.with_borrow(|entered| entered.contains(&Arc::as_ptr(function).addr()))
        };
        match self.functions.iter().find(|(_, function)| entered(function)) {
            Some((name, _)) => {
                let message = format!(
                    "{name} is called by this loader, so it cannot begin, read or close the loader"
                );
                Err(crate::error::Error::setting(&message))
            }
            None => Ok(()),
        }
    }

    /// The functions as a loader has them. What they raise is kept where it ends the epoch.
    pub(crate) fn of_loader(&self, on_error: OnError) -> tl_transform::UserTransforms {
        let mut transforms = tl_transform::UserTransforms::new();
        for ((name, function), &is_seeded) in self.functions.iter().zip(&self.seeded) {
            let function = Arc::clone(function);
            transforms.insert(name.clone(), Function { function, is_seeded, on_error });
        }
        transforms
    }
}

/// A function that takes an image as a NumPy array and returns one of the same size.
struct Function {
    function: Arc<Py<PyAny>>,
    /// Whether it gets a number that follows from the sample's draw.
    is_seeded: bool,
    on_error: OnError,
}

impl UserTransform for Function {
    fn apply(
        &self,
        pixels: &mut [u8],
        size: (u32, u32),
        rng: &mut Rng,
        _parameters: &Value,
    ) -> Result<(), UserError> {
        let gone = || UserError::from("the interpreter is gone");
        let seed = self.is_seeded.then(|| rng.next_u32());
        let called = Python::try_attach(|py| self.call(py, pixels, size, seed)).ok_or_else(gone)?;
        called.map_err(|error| {
            let words = Python::attach(|py| in_words(&error, py));
            // Its traceback has the function's images: of a list of bad samples too many.
            let error = (self.on_error == OnError::Raise).then_some(error);
            UserError::from(Raised { words, error })
        })
    }
}

impl Function {
    fn call(
        &self,
        py: Python<'_>,
        pixels: &mut [u8],
        size: (u32, u32),
        seed: Option<u32>,
    ) -> PyResult<()> {
        let shape = vec![size.1 as usize, size.0 as usize, 3];
        let image = Bound::new(py, Tensor::new(Memory::of(pixels)?, shape, Element::U8))?;
        let image = image.call_method0("numpy")?;
        let made = {
            let _entered = Entered::new(&self.function);
            let named = PyDict::new(py);
            if let Some(seed) = seed {
                named.set_item("seed", seed)?;
            }
            self.function.bind(py).call((&image,), Some(&named))?
        };
        let made = py.import("numpy")?.call_method1("asarray", (made,))?;
        let same = |name| -> PyResult<bool> { made.getattr(name)?.eq(image.getattr(name)?) };
        if !(same("shape")? && same("dtype")?) {
            let of = |array: &Bound<'_, PyAny>| -> PyResult<String> {
                Ok(format!("{} of shape {}", array.getattr("dtype")?, array.getattr("shape")?))
            };
            let made = of(&made)?;
            let image = of(&image)?;
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

/// Says that this thread is in a function, as long as it is there.
struct Entered;

impl Entered {
    fn new(function: &Arc<Py<PyAny>>) -> Self {
        ENTERED.with_borrow_mut(|entered| entered.push(Arc::as_ptr(function).addr()));
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        ENTERED.with_borrow_mut(Vec::pop);
    }
}

/// An exception of a function, and its text, which needs no interpreter.
#[derive(Debug)]
struct Raised {
    words: String,
    error: Option<PyErr>,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl Error for Raised {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.as_ref().map(|error| error as _)
    }
}

fn in_words(error: &PyErr, py: Python<'_>) -> String {
    let kind = error.get_type(py);
    let name = kind.name().unwrap_or_else(|_| PyString::new(py, "exception"));
    format!("{name}: {}", error.value(py))
}
