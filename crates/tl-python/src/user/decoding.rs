//! Decoders in Python: functions of the bytes of a file, called on the loader's threads.

use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyTuple};
use tl_decode::{CustomError, Decode, DecodeError, Decoders, Image, ImageForm, Limits, PixelType};
use tl_pipeline::OnError;

use super::{Entered, Raised, UserTransforms, in_words};

/// `Decoder` of Python, which checks its values.
#[derive(FromPyObject)]
pub(crate) struct DecoderSettings {
    name: String,
    function: Py<PyAny>,
    extensions: Vec<String>,
    magic: Vec<u8>,
    version: u32,
}

/// The decoders of a loader.
pub(crate) struct UserDecoders(Vec<(Arc<Py<PyAny>>, DecoderSettings)>);

impl<'a, 'py> FromPyObject<'a, 'py> for UserDecoders {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let given: Vec<DecoderSettings> = object.extract()?;
        let shared = |one: DecoderSettings| (Arc::new(one.function.clone_ref(py)), one);
        Ok(Self(given.into_iter().map(shared).collect()))
    }
}

impl UserDecoders {
    /// The functions as a loader has them. What they raise is kept where it ends the epoch.
    pub(crate) fn of_loader(&self, on_error: OnError) -> Decoders {
        self.0.iter().fold(Decoders::new(), |decoders, (function, settings)| {
            let DecoderSettings { name, extensions, magic, version, .. } = settings;
            let function = Function {
                function: Arc::clone(function),
                extensions: extensions.clone(),
                magic: magic.clone(),
                on_error,
            };
            decoders.with(name, *version, function)
        })
    }
}

impl UserTransforms {
    /// The same with the functions of decoders, for the garbage collector and for calls that would wait
    /// for the threads that run them.
    pub(crate) fn with_decoders(mut self, decoders: &UserDecoders) -> Self {
        let functions = decoders.0.iter();
        self.functions
            .extend(functions.map(|(function, one)| (one.name.clone(), Arc::clone(function))));
        self
    }
}

/// A function that takes the bytes of a file and returns a NumPy array.
struct Function {
    function: Arc<Py<PyAny>>,
    extensions: Vec<String>,
    magic: Vec<u8>,
    on_error: OnError,
}

impl Decode for Function {
    fn takes(&self, extension: &str, bytes: &[u8]) -> bool {
        let has_magic = !self.magic.is_empty() && bytes.starts_with(&self.magic);
        has_magic || self.extensions.iter().any(|known| known == extension)
    }

    fn decode(&self, bytes: &[u8], limits: &Limits, image: &mut Image) -> Result<(), CustomError> {
        let called = Python::try_attach(|py| {
            let called = self.call(py, bytes, limits, image).map_err(|error| {
                let words = in_words(&error, py);
                // Its traceback has the function's arrays: of a list of bad samples too many.
                let error = (self.on_error == OnError::Raise).then_some(error);
                CustomError::from(Raised { words, error })
            });
            called?.map_err(CustomError::from)
        });
        called.ok_or_else(|| CustomError::from("the interpreter is gone"))?
    }
}

impl Function {
    /// Calls it. The inner error is that of an image which is larger than the limits.
    fn call(
        &self,
        py: Python<'_>,
        bytes: &[u8],
        limits: &Limits,
        image: &mut Image,
    ) -> PyResult<Result<(), DecodeError>> {
        // Bytes of their own: the function may keep the view.
        let view = PyMemoryView::from(&PyBytes::new(py, bytes))?;
        let made = {
            let _entered = Entered::new(&self.function);
            self.function.bind(py).call1((view,))?
        };
        take_array(&made, limits, image)
    }
}

/// Makes `image` the pixels that a function has returned. The inner error is that of larger ones than
/// the limits allow.
fn take_array(
    made: &Bound<'_, PyAny>,
    limits: &Limits,
    image: &mut Image,
) -> PyResult<Result<(), DecodeError>> {
    let py = made.py();
    let made = py.import("numpy")?.call_method1("asarray", (made,))?;
    let shape: Vec<usize> = made.getattr("shape")?.extract()?;
    let dtype = made.getattr("dtype")?.getattr("name")?;
    let pixels = match &*dtype.str()?.to_string_lossy() {
        "uint8" => Some(PixelType::U8),
        "uint16" => Some(PixelType::U16),
        "float32" => Some(PixelType::F32),
        _ => None,
    };
    let size = match shape[..] {
        [height, width] => Some((height, width, 1)),
        [height, width, channels @ (1 | 3 | 4)] => Some((height, width, channels)),
        _ => None,
    };
    let form = pixels.zip(size).and_then(|(pixels, (height, width, channels))| {
        let [height, width] = [height, width].map(|side| u32::try_from(side).ok());
        let channels = u8::try_from(channels).ok()?;
        Some(ImageForm { width: width?, height: height?, channels, pixels })
    });
    let Some(form) = form else {
        let shape = PyTuple::new(py, &shape)?.repr()?;
        return Err(PyRuntimeError::new_err(format!(
            "it returned {dtype} of shape {shape}, expected uint8, uint16 or float32 of shape \
             (height, width) or (height, width, 1, 3 or 4)"
        )));
    };
    if let Err(error) = form.charge(limits) {
        return Ok(Err(error));
    }
    // In the machine's byte order, whatever order the array has.
    let made = made
        .call_method1("astype", (made.getattr("dtype")?.call_method1("newbyteorder", ("=",))?,))?;
    let bytes = made.call_method0("tobytes")?;
    image.data.extend_from_slice(bytes.cast::<PyBytes>()?.as_bytes());
    let ImageForm { width, height, channels, pixels } = form;
    (image.width, image.height, image.channels) = (width, height, channels);
    image.pixels = pixels;
    Ok(Ok(()))
}
