//! Recipes: read from JSON, and run on pixels from Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value, json};
use tl_decode::{DecodeOptions, Exif, Image, Limits};
use tl_pipeline::{OnError, Renderer, SampleRenderer, Target, TokenNumber};
use tl_transform::op::ToFloat;
use tl_transform::{
    BatchOp, BoundTransforms, Channels, DecodeMode, Draw, Dtype, Layout, Op, OutputSpec, Parity,
    PixelType, Plan, Recipe, RecipeError, Runner,
};

use crate::detached::detached;
use crate::error::Error;
use crate::memory::Memory;
use crate::tensor::Tensor;
use crate::user::UserTransforms;

/// A checked list of transforms and the form of what they make: plain data with a hash.
#[pyclass(frozen, name = "Recipe", module = "turboloader")]
pub(crate) struct PyRecipe {
    pub(crate) recipe: Recipe,
}

/// The options of a recipe besides its operations.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    /// `uint8`, `float32`, ...; that which the operations make where it is not said.
    dtype: Option<String>,
    /// Whether channels come last; by default where pixels stay `uint8`.
    channels_last: Option<bool>,
    /// How many times the result's side a scaled photograph has to have; none decodes exactly.
    decode_margin: Option<f32>,
    /// `exact`, `fast` or `nvjpeg`.
    decode_mode: Option<String>,
    parity: Option<String>,
    /// 3, 1 for grey or 4 with alpha.
    channels: Option<u32>,
    /// The type of the pixels of images: `uint8`, `uint16` or `float32`.
    pixels: Option<String>,
}

#[pymethods]
impl PyRecipe {
    /// The recipe of this JSON text, as `tl explain --json` and `Recipe.to_json` write it.
    #[staticmethod]
    fn from_json(text: &str) -> Result<Self, Error> {
        let recipe = serde_json::from_str(text).map_err(|error| Error::recipe(&error))?;
        Ok(Self { recipe })
    }

    /// The recipe of these operations, given as JSON lists: a conversion to floats is put in where
    /// the type or a normalisation takes one.
    #[staticmethod]
    #[pyo3(signature = (ops, batch_ops, options: "dict[str, Any]"))]
    fn of_ops(ops: &str, batch_ops: &str, options: Options) -> Result<Self, Error> {
        let refused = |error: serde_json::Error| Error::recipe(&error);
        let ops: Vec<Op> = serde_json::from_value(value(ops)?).map_err(refused)?;
        let batch_ops: Vec<BatchOp> = serde_json::from_value(value(batch_ops)?).map_err(refused)?;
        let dtype = options.dtype.as_deref().map(dtype).transpose()?;
        let pixels = options.pixels.as_deref().map_or(Ok(PixelType::U8), pixels)?;
        let channels = channels(options.channels.unwrap_or(3))?;
        let wants_floats = |dtype: Dtype| dtype.is_float() && dtype != pixels.dtype();
        let (ops, inserted) = with_floats(ops, dtype.is_some_and(wants_floats));
        let makes_floats = ops.iter().any(|op| matches!(op, Op::ToFloat(_)));
        let dtype = dtype.unwrap_or(if makes_floats { Dtype::F32 } else { pixels.dtype() });
        if !dtype.is_float() && dtype != pixels.dtype() {
            let name = options.dtype.as_deref().unwrap_or_default();
            let message =
                format!("dtype is {name}, and pixels are not: pass pixels=\"{name}\" too");
            return Err(Error::setting(&message));
        }
        let channels_last = options.channels_last.unwrap_or(!makes_floats);
        let layout = if channels_last { Layout::Hwc } else { Layout::Chw };
        let mut recipe = Recipe::on_pixels(pixels, channels, ops, OutputSpec { dtype, layout })
            .map_err(|error| Error::from(as_given(error, inserted)))?;
        if let Some(mode) = decode_mode(options.decode_mode.as_deref(), options.decode_margin)? {
            recipe = recipe.with_decode(mode)?;
        }
        if let Some(parity) = options.parity {
            let parity: Parity = serde_json::from_value(Value::from(parity)).map_err(refused)?;
            recipe = recipe.with_parity(parity)?;
        }
        Ok(Self { recipe: recipe.with_batch_ops(batch_ops)? })
    }

    /// Refuses an operation, given as JSON, for its parameters and for what is within it.
    #[staticmethod]
    fn check_operation(op: &str) -> Result<(), Error> {
        let op: Op = serde_json::from_value(value(op)?).map_err(|error| Error::recipe(&error))?;
        let name = op.name();
        let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
        match Recipe::new(vec![op], output) {
            Err(RecipeError::Parameter { invalid, .. }) => {
                Err(Error::recipe(&format_args!("{name}: {invalid}")))
            }
            Err(error @ RecipeError::Nested { .. }) => Err(error.into()),
            // What may stand before and after it is known when a recipe is made.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The same recipe carried out this many times on every image, each with other random numbers.
    fn with_draws(&self, draws: u32) -> Result<Self, Error> {
        Ok(Self { recipe: self.recipe.clone().with_draws(draws)? })
    }

    /// The usual ImageNet training recipe.
    #[staticmethod]
    #[pyo3(signature = (size=224))]
    fn imagenet_train(size: u32) -> Result<Self, Error> {
        Ok(Self { recipe: Recipe::imagenet_train(size)? })
    }

    /// The usual ImageNet evaluation recipe.
    #[staticmethod]
    #[pyo3(signature = (size=224))]
    fn imagenet_eval(size: u32) -> Result<Self, Error> {
        Ok(Self { recipe: Recipe::imagenet_eval(size)? })
    }

    /// The recipe as JSON text, which `from_json` reads.
    fn to_json(&self) -> String {
        json!(self.recipe).to_string()
    }

    /// Everything random about one sample, an image of this size, as JSON text: its crop, flips,
    /// angles and factors. A data set numbers its samples from 0, as ``batch["index"]`` does.
    #[pyo3(signature = (width, height, *, seed, epoch=0, sample=0))]
    fn plan(
        &self,
        width: u32,
        height: u32,
        seed: u64,
        epoch: u32,
        sample: u64,
    ) -> Result<String, Error> {
        let plan = self.recipe.plan(width, height, Draw { seed, epoch, sample })?;
        Ok(json!(plan).to_string())
    }

    /// The hash of all that decides what it makes.
    #[getter]
    fn hash(&self) -> String {
        self.recipe.hash().to_string()
    }

    /// Width and height of every result, or nothing where they depend on the image.
    #[getter]
    fn output_size(&self) -> Option<(u32, u32)> {
        self.recipe.output_size()
    }

    fn __str__(&self) -> String {
        self.recipe.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Recipe({})", self.recipe)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.recipe == other.recipe
    }

    fn __hash__(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.recipe.hash().0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// Pickles as JSON.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<Self>().getattr("from_json")?, (self.to_json(),)))
    }

    /// Applies the recipe to one image: `width * height` pixels of red, green and blue, or of its own
    /// type and channels where these are others than 8-bit RGB or grey.
    ///
    /// Recipes with several views make a tensor with these first. `user_transforms` are the functions
    /// that the recipe names.
    #[pyo3(signature = (
        pixels, size, draw, user_transforms: "dict[str, Callable[[Any], Any]] | None" = None
    ))]
    fn apply(
        &self,
        py: Python<'_>,
        pixels: &[u8],
        size: (u32, u32),
        draw: (u64, u32, u64),
        user_transforms: Option<UserTransforms>,
    ) -> PyResult<Tensor> {
        let (width, height) = size;
        let pixel_bytes = Renderer::new(&self.recipe).pixel_bytes() as u64;
        let need = u64::from(width) * u64::from(height) * pixel_bytes;
        if pixels.len() as u64 != need {
            let have = pixels.len();
            let message = format!("{have} bytes for {width}x{height} pixels, expected {need}");
            return Err(PyValueError::new_err(message));
        }
        let (seed, epoch, sample) = draw;
        let user_transforms = user_transforms.unwrap_or_default().of_loader(OnError::Raise);
        let bound = user_transforms.bind(&self.recipe).map_err(|error| Error::recipe(&error))?;
        let drawn = detached(py, || self.run(pixels, size, Draw { seed, epoch, sample }, bound))?;
        let (numbers, shape) = drawn.map_err(|error| error.of_call(py))?;
        Ok(Tensor::new(Memory::of(&numbers)?, shape, self.recipe.output().dtype.into()))
    }
}

impl PyRecipe {
    /// The bytes of all views, and their shape.
    fn run(
        &self,
        pixels: &[u8],
        size: (u32, u32),
        draw: Draw,
        bound: BoundTransforms,
    ) -> Result<(Vec<u8>, Vec<usize>), Error> {
        let recipe = &self.recipe;
        let limits = Limits { max_decoded_bytes: Runner::MEMORY_LIMIT, ..Limits::default() };
        let options = DecodeOptions { limits, ..DecodeOptions::default() };
        let renderer = SampleRenderer::new(recipe, options);
        let mut image = Image::new();
        let target = Target::Image(&mut image);
        let mut renderer = renderer.with_user_transforms(bound);
        let plans = renderer.render_pixels(pixels, size, draw, target)?;
        let made = plans.first().map_or((0, 0), Plan::output_size);
        let width = made.0 as usize;
        let height = made.1 as usize;
        let channels = recipe.channels().count() as usize;
        let shape = match recipe.output().layout {
            Layout::Hwc => [height, width, channels],
            Layout::Chw => [channels, height, width],
        };
        let views = (recipe.views() > 1).then_some(recipe.views() as usize);
        Ok((image.data, views.into_iter().chain(shape).collect()))
    }
}

/// Parses JSON that no user wrote, so that no error names a place in it. Python writes invalid JSON
/// for numbers that are not finite.
fn value(json: &str) -> Result<Value, Error> {
    serde_json::from_str(json).map_err(|_| Error::recipe(&"numbers of transforms are finite"))
}

/// The signatures of the transforms and of those of batches, each a JSON list: names, texts, and
/// parameters with their kinds, texts and defaults.
#[pyfunction]
pub(crate) fn signatures() -> (String, String) {
    (json!(Op::signatures()).to_string(), json!(BatchOp::signatures()).to_string())
}

/// Inserts the conversion to floats if it is missing: before a normalisation, or at the end where
/// floats are wanted. Returns where it was inserted.
fn with_floats(mut ops: Vec<Op>, wanted: bool) -> (Vec<Op>, Option<usize>) {
    if ops.iter().any(|op| matches!(op, Op::ToFloat(_))) {
        return (ops, None);
    }
    let normalization = ops.iter().position(|op| matches!(op, Op::Normalize(_)));
    let inserted = normalization.or_else(|| wanted.then_some(ops.len()));
    if let Some(position) = inserted {
        ops.insert(position, ToFloat {}.into());
    }
    (ops, inserted)
}

/// Counts operations as the caller gave them, without the one that was inserted.
fn as_given(mut error: RecipeError, inserted: Option<usize>) -> RecipeError {
    if let RecipeError::Order { position, .. }
    | RecipeError::Nested { position, .. }
    | RecipeError::Parameter { position, .. }
    | RecipeError::Pixels { position, .. } = &mut error
        && inserted.is_some_and(|inserted| inserted < *position)
    {
        *position -= 1;
    }
    error
}

/// The type of this name in NumPy and PyTorch.
/// The decode mode of this name; `fast` with a margin alone.
fn decode_mode(name: Option<&str>, margin: Option<f32>) -> Result<Option<DecodeMode>, Error> {
    Ok(match (name, margin) {
        (None, None) => None,
        (None | Some("fast"), Some(decode_margin)) => Some(DecodeMode::Fast { decode_margin }),
        (Some("fast"), None) => Some(DecodeMode::FAST),
        (Some("exact"), None) => Some(DecodeMode::Exact),
        (Some("nvjpeg"), None) => Some(DecodeMode::NvJpeg),
        (Some(name @ ("exact" | "nvjpeg")), Some(_)) => {
            let message = format!(
                "conflicting settings: decode_mode={name:?} has no decode_margin; pass only one"
            );
            return Err(Error::setting(&message));
        }
        (Some(other), _) => {
            let message = format!("decode_mode is {other:?}, expected exact, fast or nvjpeg");
            return Err(Error::setting(&message));
        }
    })
}

fn dtype(name: &str) -> Result<Dtype, Error> {
    Ok(match name {
        "float32" => Dtype::F32,
        "float16" => Dtype::F16,
        "bfloat16" => Dtype::Bf16,
        "uint8" => Dtype::U8,
        "uint16" => Dtype::U16,
        _ => {
            let message =
                format!("dtype is {name}, expected float32, float16, bfloat16, uint8 or uint16");
            return Err(Error::setting(&message));
        }
    })
}

/// The type of tokens in batches that this name stands for.
pub(crate) fn token_number(dtype: Option<&str>) -> Result<TokenNumber, Error> {
    Ok(match dtype {
        None | Some("int64") => TokenNumber::I64,
        Some("int32") => TokenNumber::I32,
        Some("stored") => TokenNumber::Stored,
        Some(other) => {
            let expected = "expected \"int64\", \"int32\" or \"stored\" for tokens";
            return Err(Error::setting(&format!("dtype is {other:?}, {expected}")));
        }
    })
}

/// The type of pixels of this name in NumPy and PyTorch.
pub(crate) fn pixels(name: &str) -> Result<PixelType, Error> {
    Ok(match name {
        "uint8" => PixelType::U8,
        "uint16" => PixelType::U16,
        "float32" => PixelType::F32,
        _ => {
            let message = format!("pixels is {name}, expected uint8, uint16 or float32");
            return Err(Error::setting(&message));
        }
    })
}

/// The orientation that images get: upright if `is_applied`, else that of their pixels.
pub(crate) fn orientation(is_applied: bool) -> Exif {
    if is_applied { Exif::Apply } else { Exif::Ignore }
}

/// This many channels.
pub(crate) fn channels(count: u32) -> Result<Channels, Error> {
    Ok(match count {
        1 => Channels::Grey,
        3 => Channels::Rgb,
        4 => Channels::Rgba,
        other => {
            let message =
                format!("channels is {other}, expected 3 (RGB), 1 (grey) or 4 (RGB and alpha)");
            return Err(Error::setting(&message));
        }
    })
}
