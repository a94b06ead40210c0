//! Recipes: what happens to every image between decoding and the batch, as plain data.

use std::fmt;

use serde::{Deserialize, Serialize};
use tl_simd::normalize::{self, Element};

use crate::decode_mode::DecodeMode;
use crate::error::RecipeError;
use crate::op::{Interpolation, Op};

/// Channel means of ImageNet, for values in 0..=1.
pub const IMAGENET_MEAN: [f32; 3] = [0.485, 0.456, 0.406];
/// Channel standard deviations of ImageNet, for values in 0..=1.
pub const IMAGENET_STD: [f32; 3] = [0.229, 0.224, 0.225];

/// The type of the numbers in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dtype {
    /// 32-bit floats.
    F32,
    /// 16-bit IEEE floats, rounded to nearest even from the 32-bit value.
    F16,
    /// The upper half of a 32-bit float, rounded to nearest even.
    Bf16,
    /// Pixels as they are.
    U8,
}

impl Dtype {
    /// Bytes of one number.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::U8 => 1,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::U8 => "u8",
        }
    }
}

impl From<Dtype> for Element {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => Self::F32,
            Dtype::F16 => Self::F16,
            Dtype::Bf16 => Self::Bf16,
            Dtype::U8 => Self::U8,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How the numbers of one image are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Layout {
    /// Three planes, as PyTorch wants it.
    Chw,
    /// Interleaved pixels.
    Hwc,
}

impl From<Layout> for normalize::Layout {
    fn from(layout: Layout) -> Self {
        match layout {
            Layout::Chw => Self::Chw,
            Layout::Hwc => Self::Hwc,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Chw => "CHW",
            Self::Hwc => "HWC",
        })
    }
}

/// The form in which a recipe's results land in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OutputSpec {
    /// The numbers.
    pub dtype: Dtype,
    /// Their arrangement.
    pub layout: Layout,
}

/// A checked list of operations, how photographs are decoded for them, and the form of the output.
///
/// A recipe that exists can be run in one pass from the decoded image to the batch: it is at most
/// one resampling (`RandomResizedCrop`, `Resize`, `CenterCrop`, or `Resize` then `CenterCrop`), then
/// a flip, then the conversion to float, then normalisation. It serialises with serde, and reading
/// it back checks it again.
///
/// ```
/// use tl_transform::Recipe;
///
/// let recipe = Recipe::imagenet_eval(224)?;
/// assert_eq!(
///     recipe.to_string(),
///     "Resize(256, bilinear) -> CenterCrop(224x224) -> ToFloat -> \
///      Normalize(mean [0.485, 0.456, 0.406], std [0.229, 0.224, 0.225]) -> f32 CHW"
/// );
/// let json = serde_json::to_string(&recipe)?;
/// assert_eq!(serde_json::from_str::<Recipe>(&json)?, recipe);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Recipe {
    ops: Vec<Op>,
    output: OutputSpec,
    decode: DecodeMode,
}

impl Recipe {
    /// Checks the operations' order and parameters. Photographs are decoded exactly.
    ///
    /// # Errors
    /// Names the first operation that is out of place or has a parameter out of range, or the
    /// output type that does not fit.
    pub fn new(ops: Vec<Op>, output: OutputSpec) -> Result<Self, RecipeError> {
        for (position, op) in ops.iter().enumerate() {
            op.check_parameters(position)?;
            let before = position.checked_sub(1).map(|before| &ops[before]);
            if !before.map_or(op.may_lead(), |before| op.may_follow(before)) {
                let after = before.map_or("the decoded image", Op::name);
                return Err(RecipeError::Order { position, op: op.name(), after });
            }
        }
        let to_float = ops.contains(&Op::ToFloat);
        if to_float == (output.dtype == Dtype::U8) {
            return Err(RecipeError::OutputType { dtype: output.dtype.name(), to_float });
        }
        Ok(Self { ops, output, decode: DecodeMode::Exact })
    }

    /// The usual ImageNet training recipe: a random resized crop of `size` x `size` (area 8 % to
    /// 100 %, ratio 3/4 to 4/3, bilinear, antialiased), a flip half of the time, float,
    /// normalisation; f32 CHW. Photographs are decoded fast ([`DecodeMode::FAST`]).
    ///
    /// # Errors
    /// When `size` is not 1 to 65 535.
    pub fn imagenet_train(size: u32) -> Result<Self, RecipeError> {
        let crop = Op::RandomResizedCrop {
            width: size,
            height: size,
            scale: (0.08, 1.0),
            ratio: (3.0 / 4.0, 4.0 / 3.0),
            interpolation: Interpolation::Bilinear,
        };
        Self::imagenet(vec![crop, Op::RandomHorizontalFlip { p: 0.5 }])?
            .with_decode(DecodeMode::FAST)
    }

    /// The usual ImageNet evaluation recipe: the shorter side resized to `size * 256 / 224`, rounded
    /// half to even, the middle `size` x `size`, float, normalisation; f32 CHW. Photographs are decoded exactly.
    ///
    /// # Errors
    /// When `size`, or the side it is cut from, is not 1 to 65 535.
    pub fn imagenet_eval(size: u32) -> Result<Self, RecipeError> {
        let side = (f64::from(size) * 256.0 / 224.0).round_ties_even();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let resize = Op::Resize { size: side as u32, interpolation: Interpolation::Bilinear };
        Self::imagenet(vec![resize, Op::CenterCrop { width: size, height: size }])
    }

    /// No operation at all: the decoded pixels, each image in its own size; u8 HWC.
    #[must_use]
    pub fn decode() -> Self {
        let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
        Self { ops: Vec::new(), output, decode: DecodeMode::Exact }
    }

    /// The same geometry without float conversion and normalisation: pixels to look at.
    #[must_use]
    pub fn into_pixels(mut self, layout: Layout) -> Self {
        self.ops.retain(|op| !matches!(op, Op::ToFloat | Op::Normalize { .. }));
        self.output = OutputSpec { dtype: Dtype::U8, layout };
        self
    }

    /// The same operations with another form of output.
    ///
    /// # Errors
    /// When integers are asked of a recipe that makes floats, or the reverse.
    pub fn with_output(self, output: OutputSpec) -> Result<Self, RecipeError> {
        Self::new(self.ops, output)?.with_decode(self.decode)
    }

    /// The same operations on photographs decoded another way.
    ///
    /// # Errors
    /// [`RecipeError::DecodeMargin`].
    pub fn with_decode(self, decode: DecodeMode) -> Result<Self, RecipeError> {
        Ok(Self { decode: decode.check()?, ..self })
    }

    /// How photographs are decoded.
    #[must_use]
    pub fn decode_mode(&self) -> DecodeMode {
        self.decode
    }

    /// The operations, in order. An operation's place is its number in the random streams.
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The form of the output.
    #[must_use]
    pub fn output(&self) -> OutputSpec {
        self.output
    }

    /// Width and height of every result, or `None` when they depend on the image.
    #[must_use]
    pub fn output_size(&self) -> Option<(u32, u32)> {
        self.ops.iter().find_map(|op| match *op {
            Op::RandomResizedCrop { width, height, .. } | Op::CenterCrop { width, height } => {
                Some((width, height))
            }
            Op::Resize { .. }
            | Op::RandomHorizontalFlip { .. }
            | Op::ToFloat
            | Op::Normalize { .. } => None,
        })
    }

    /// Mean and standard deviation of the normalisation; those of no normalisation are 0 and 1.
    #[must_use]
    pub fn normalization(&self) -> ([f32; 3], [f32; 3]) {
        let last = self.ops.last();
        if let Some(Op::Normalize { mean, std }) = last {
            (*mean, *std)
        } else {
            ([0.0; 3], [1.0; 3])
        }
    }

    fn imagenet(mut ops: Vec<Op>) -> Result<Self, RecipeError> {
        ops.push(Op::ToFloat);
        ops.push(Op::Normalize { mean: IMAGENET_MEAN, std: IMAGENET_STD });
        Self::new(ops, OutputSpec { dtype: Dtype::F32, layout: Layout::Chw })
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.decode != DecodeMode::Exact {
            write!(f, "Decode({}) -> ", self.decode)?;
        }
        for op in &self.ops {
            write!(f, "{op} -> ")?;
        }
        write!(f, "{} {}", self.output.dtype, self.output.layout)
    }
}

#[derive(Deserialize)]
struct Unchecked {
    ops: Vec<Op>,
    output: OutputSpec,
    #[serde(default)]
    decode: DecodeMode,
}

impl TryFrom<Unchecked> for Recipe {
    type Error = RecipeError;

    fn try_from(unchecked: Unchecked) -> Result<Self, RecipeError> {
        Self::new(unchecked.ops, unchecked.output)?.with_decode(unchecked.decode)
    }
}
