//! User-supplied transforms in Python: functions of an image, called on the loader's threads.

mod annotated;
mod decoding;

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use pyo3::Borrowed;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use serde_json::Value;
use tl_pipeline::OnError;
use tl_transform::{Image, Rng, UserAnnotations, UserError, UserTransform};

use crate::element::Element;
use crate::memory::Memory;
use crate::tensor::Tensor;

pub(crate) use decoding::UserDecoders;

thread_local! {
    /// The functions that this thread is in, by their addresses.
    static ENTERED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Functions by the names that a recipe has for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserTransforms {
    functions: Vec<(String, Arc<Py<PyAny>>)>,
    /// The arguments of each.
    takes: Vec<Takes>,
}

/// The arguments of a function besides the image.
#[derive(Clone, Copy, Debug)]
struct Takes {
    /// A number that follows from the sample's draw.
    seed: bool,
    /// The annotations, which it returns with the image (`_functions.Annotated`).
    annotations: bool,
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
        let takes = pairs.iter().map(|(_, function)| {
            let function = function.bind(py);
            let annotations = function.hasattr("takes_annotations")?;
            Ok(Takes { seed: takes_seed(function), annotations })
        });
        let takes = takes.collect::<PyResult<_>>()?;
        let functions = pairs.into_iter().map(|(name, function)| (name, Arc::new(function)));
        Ok(Self { functions: functions.collect(), takes })
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
        for ((name, function), &takes) in self.functions.iter().zip(&self.takes) {
            let function = Arc::clone(function);
            transforms.insert(name.clone(), Function { function, takes, on_error });
        }
        transforms
    }
}

/// A function that takes an image as a NumPy array and returns one.
struct Function {
    function: Arc<Py<PyAny>>,
    takes: Takes,
    on_error: OnError,
}

impl UserTransform for Function {
    fn moves(&self) -> bool {
        self.takes.annotations
    }

    fn change(
        &self,
        image: &mut Image,
        annotations: &mut UserAnnotations,
        rng: &mut Rng,
        _parameters: &Value,
    ) -> Result<(), UserError> {
        let gone = || UserError::from("the interpreter is gone");
        let seed = self.takes.seed.then(|| rng.next_u32());
        let called = Python::try_attach(|py| self.call(py, image, annotations, seed));
        called.ok_or_else(gone)?.map_err(|error| {
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
        image: &mut Image,
        annotations: &mut UserAnnotations,
        seed: Option<u32>,
    ) -> PyResult<()> {
        let [width, height] = sides(image.size());
        let pixels = array(py, image.pixels(), vec![height, width, CHANNELS], Element::U8)?;
        let has_annotations = *annotations != UserAnnotations::default();
        let given = (self.takes.annotations && has_annotations)
            .then(|| annotated::to_python(py, annotations));
        let given = given.transpose()?;
        let made = {
            let _entered = Entered::new(&self.function);
            let named = PyDict::new(py);
            if let Some(seed) = seed {
                named.set_item("seed", seed)?;
            }
            let function = self.function.bind(py);
            match &given {
                None => function.call((&pixels,), Some(&named))?,
                Some(given) => function.call((&pixels, given), Some(&named))?,
            }
        };
        if given.is_none() {
            // A function that can move fields too returns its image with them.
            let alone = made.cast::<PyDict>().ok().and_then(|made| made.get_item("image").ok()?);
            return take_image(&alone.unwrap_or(made), image);
        }
        let (made, left): (Bound<'_, PyAny>, Bound<'_, PyDict>) = made.extract()?;
        take_image(&made, image)?;
        annotated::from_python(&left, annotations)
    }
}

const CHANNELS: usize = 3;

fn sides(size: (u32, u32)) -> [usize; 2] {
    [size.0 as usize, size.1 as usize]
}

/// A NumPy array with a copy of these bytes.
fn array<'py>(
    py: Python<'py>,
    bytes: &[u8],
    shape: Vec<usize>,
    element: Element,
) -> PyResult<Bound<'py, PyAny>> {
    Bound::new(py, Tensor::new(Memory::of(bytes)?, shape, element))?.call_method0("numpy")
}

/// Makes `image` the pixels that a function has returned.
fn take_image(made: &Bound<'_, PyAny>, image: &mut Image) -> PyResult<()> {
    let py = made.py();
    let made = py.import("numpy")?.call_method1("asarray", (made,))?;
    let shape: Vec<usize> = made.getattr("shape")?.extract()?;
    let dtype = made.getattr("dtype")?.str()?;
    let refused = || -> PyResult<PyErr> {
        let shape = PyTuple::new(py, &shape)?.repr()?;
        Ok(PyRuntimeError::new_err(format!(
            "it returned {dtype} of shape {shape}, expected uint8 of shape (height, width, 3)"
        )))
    };
    let &[height, width, CHANNELS] = &shape[..] else { return Err(refused()?) };
    let (Ok(columns), Ok(rows)) = (u32::try_from(width), u32::try_from(height)) else {
        return Err(refused()?);
    };
    if dtype.to_string_lossy() != "uint8" || shape.contains(&0) {
        return Err(refused()?);
    }
    let bytes = made.call_method0("tobytes")?;
    let bytes = bytes.cast::<PyBytes>()?.as_bytes();
    if image.size() != (columns, rows) {
        *image = Image::from_pixels(columns, rows, bytes.to_vec());
    } else {
        image.pixels_mut().copy_from_slice(bytes);
    }
    Ok(())
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
