//! The errors of recipes, of the images they are planned for, and of running them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The reason why a list of operations is not a recipe.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum RecipeError {
    /// An operation stands where there is nothing it works on.
    #[error("operation {position}: {op} cannot follow {after}{}", place(op, after))]
    Order {
        /// The operation's place in the list, from 0.
        position: usize,
        op: &'static str,
        /// The name of the operation before it.
        after: &'static str,
    },
    /// A user's transform of any size where a sample becomes several images.
    #[error(
        "operation {position}: user's transform {name:?} decides the image's size, so a sample \
         becomes one image and not {views}: declare its size"
    )]
    AnySize {
        /// The operation's place in the list, from 0.
        position: usize,
        name: String,
        /// The number of images.
        views: u32,
    },
    /// An operation within another that is not one on pixels, or a user's transform of any size.
    #[error("operation {position}: {op} cannot be within {within}")]
    Nested {
        /// The place in the list, from 0, of the outermost operation.
        position: usize,
        /// The name of the one that is out of place.
        op: &'static str,
        /// The name of the one it is within.
        within: &'static str,
    },
    /// A parameter outside its range.
    #[error("operation {position}: {op}: {invalid}")]
    Parameter {
        /// The place in the list, from 0, of the operation or of the one it is within.
        position: usize,
        op: &'static str,
        invalid: Invalid,
    },
    /// An operation within too many others.
    #[error(
        "operation {position}: {op} is nested too deep, expected at most {limit} levels of \
         operations"
    )]
    TooDeep {
        /// The place in the list, from 0, of the outermost operation.
        position: usize,
        /// The name of the first one that is too deep.
        op: &'static str,
        /// How many levels there may be.
        limit: usize,
    },
    /// More operations than there are numbers for.
    #[error("recipe has {count} operations, expected at most {limit}")]
    TooManyOps {
        /// How many there are, those within others included.
        count: usize,
        limit: usize,
    },
    /// More images of one sample than anybody needs.
    #[error("recipe of {views} images for each sample, expected at most {limit}")]
    TooManyViews { views: u32, limit: u32 },
    /// The recipe is carried out on no image.
    #[error("0 draws for each sample, expected at least 1")]
    NoDraws,
    /// A decode margin that is below 1, beyond every image, or not a number.
    #[error("decode margin is {value}, expected a number from 1 to 65536")]
    DecodeMargin { value: f32 },
    /// Integer output of a recipe that makes floats, or the reverse.
    #[error("output type {dtype} does not fit a recipe that {}",
        if *to_float { "converts to float" } else { "does not convert to float" })]
    OutputType {
        /// The name of the output type.
        dtype: &'static str,
        /// Whether the recipe has the float conversion.
        to_float: bool,
    },
    /// An operation that is not defined for the type or the channels of the pixels.
    #[error("operation {position}: {op} cannot be done to {pixels} {channels} pixels: {reason}")]
    Pixels {
        /// The place in the list, from 0, of the operation or of the one it is within.
        position: usize,
        op: &'static str,
        /// The type of the pixels in words.
        pixels: &'static str,
        /// Their channels in words.
        channels: &'static str,
        reason: &'static str,
    },
    /// A parameter of a batch operation outside its range.
    #[error("batch operation {position}: {op}: {invalid}")]
    BatchParameter {
        /// Its place in the list, from 0.
        position: usize,
        op: &'static str,
        invalid: Invalid,
    },
    /// A batch operation that is not defined for the numbers of the output.
    #[error("{op} is not defined for batches of {dtype}")]
    BatchType {
        op: &'static str,
        /// The name of the output type.
        dtype: &'static str,
    },
    /// A batch operation on images that have no size in common.
    #[error("{op} needs images of one size, which the operations before it do not determine")]
    BatchSize { op: &'static str },
    /// Two batch operations that disagree about the labels.
    #[error(
        "conflicting batch operations: num_classes is {first} in one and {second} in another; set \
         one value"
    )]
    ClassCount { first: u32, second: u32 },
}

/// The place where an operation belongs that is out of place.
fn place(op: &str, after: &str) -> &'static str {
    match (op, after) {
        ("ToFloat", _) => ": it makes floats once; remove one of the two",
        (_, "ToFloat" | "Normalize") => {
            ": it works on 8-bit pixels, so put it before ToFloat (ToTensor)"
        }
        ("Normalize", _) => ": it works on floats, so put ToFloat (ToTensor) before it",
        _ => "",
    }
}

/// A parameter outside its range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{parameter} is {value}, expected {expected}")]
pub struct Invalid {
    /// The parameter's name.
    pub parameter: &'static str,
    /// The value.
    pub value: InvalidValue,
    /// The values that are accepted.
    pub expected: &'static str,
}

/// The value of a parameter outside its range.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum InvalidValue {
    /// A number.
    Number(f64),
    /// A name, or a description of a value that is not a number.
    Name(&'static str),
}

impl From<f64> for InvalidValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl fmt::Display for InvalidValue {
    /// Numbers with many digits have an exponent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) if number.is_finite() && number.abs() >= 1e16 => {
                write!(f, "{number:e}")
            }
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// The reason why an image has no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum PlanError {
    /// A side of the image is 0 or beyond what a plan's arithmetic covers.
    #[error("image of {width}x{height} pixels, sides must be 1 to {}", Self::MAX_SIDE)]
    ImageSize { width: u32, height: u32 },
    /// A crop that is larger than the image and its border.
    #[error("crop of {}x{} pixels from an image of {width}x{height}", crop.0, crop.1)]
    CropSize {
        /// Width and height of the crop.
        crop: (u32, u32),
        /// Width of the image with its border.
        width: u32,
        /// Height of the image with its border.
        height: u32,
    },
    /// A resize to a side beyond [`PlanError::MAX_RESIZED_SIDE`].
    #[error("resize to {width}x{height} pixels, sides must be at most {}", Self::MAX_RESIZED_SIDE)]
    ResizedSide { width: u32, height: u32 },
    /// A user's transform whose results have a size that it alone decides.
    #[error(
        "user's transform {name:?} decides the image's size: operations are planned only after it \
         has run"
    )]
    UserSize { name: String },
}

impl PlanError {
    /// The longest side a plan is made for. The product of two such sides fits 32 bits.
    pub const MAX_SIDE: u32 = 65_535;
    /// The longest side of an image that is resized and then cropped, of which only the crop is
    /// computed. The filter of an axis is evaluated for each of its pixels.
    pub const MAX_RESIZED_SIDE: u32 = 1 << 20;
}

/// The reason why a step cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum StepError {
    /// The step is for an image of another size, or makes one with a side that is 0 or beyond
    /// [`PlanError::MAX_SIDE`].
    #[error("step {position} cannot be applied to an image of {width}x{height} pixels")]
    Size {
        /// The step's place in the list, from 0.
        position: usize,
        /// Width of the image in pixels.
        width: u32,
        /// Height of the image in pixels.
        height: u32,
    },
    /// The steps need more memory than the runner may take.
    #[error("steps need {need} bytes, the limit is {limit}")]
    Memory { need: u64, limit: u64 },
    /// The step is not one of those that move pixels, which are all that others than 8-bit RGB have.
    #[error("step {position} cannot be done to {pixels} {channels} pixels")]
    Pixels {
        /// The step's place in the list, from 0.
        position: usize,
        /// The type of the pixels in words.
        pixels: &'static str,
        /// Their channels in words.
        channels: &'static str,
    },
    /// The plan names a user's transform that the runner was not given.
    #[error("step {position}: no user's transform is bound to operation {op}")]
    NoUserTransform {
        /// The step's place in the list, from 0.
        position: usize,
        /// The operation's number in the recipe, those within others counted too.
        op: u8,
    },
    /// A user's transform failed.
    #[error("step {position}: user's transform {name:?}: {source}")]
    UserTransform {
        /// The step's place in the list, from 0.
        position: usize,
        name: String,
        source: UserFault,
    },
}

/// The reason why the user's transforms of a recipe cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum UserTransformError {
    /// The recipe has a name that no transform was registered under.
    #[error("no user's transform is registered as {name:?}")]
    Unknown { name: String },
    /// A transform refuses its parameters.
    #[error("user's transform {name:?}: parameters: {source}")]
    Parameters { name: String, source: UserFault },
    /// A transform that moves pixels stands where annotations cannot go through it.
    #[error(
        "user's transform {name:?} moves pixels within another operation, where boxes, keypoints \
         and masks cannot follow: put it into the list itself"
    )]
    Within { name: String },
    /// A transform changes the size of images, and does not move annotations.
    #[error(
        "user's transform {name:?} changes the size of images and does not move boxes, keypoints \
         and masks"
    )]
    Still { name: String },
}

/// A failure of a user's transform.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum UserFault {
    /// It returned this error.
    Failed(Arc<dyn Error + Send + Sync>),
    /// It made an image of another size than the recipe says.
    Size {
        /// Width and height that it made.
        made: (u32, u32),
        /// Width and height that were expected; `None` for any that an image can have.
        expected: Option<(u32, u32)>,
    },
    /// It returned something that the image which it made cannot have.
    Returned {
        /// The thing, such as `boxes`.
        what: &'static str,
        /// Its state, and the one expected.
        reason: String,
    },
    /// It panicked.
    Panicked {
        /// The panic's message on one line, or empty.
        message: String,
    },
}

impl PartialEq for UserFault {
    /// Whether both are the very same error, or others with the same content.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Failed(a), Self::Failed(b)) => Arc::ptr_eq(a, b),
            (Self::Size { made: a, expected: c }, Self::Size { made: b, expected: d }) => {
                a == b && c == d
            }
            (Self::Returned { what: a, reason: c }, Self::Returned { what: b, reason: d }) => {
                a == b && c == d
            }
            (Self::Panicked { message: a }, Self::Panicked { message: b }) => a == b,
            (
                Self::Failed(_) | Self::Size { .. } | Self::Returned { .. } | Self::Panicked { .. },
                _,
            ) => false,
        }
    }
}

impl Eq for UserFault {}

impl fmt::Display for UserFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Size { made, expected: Some(expected) } => write!(
                f,
                "returned an image of {}x{} pixels, expected {}x{}: declare size [{1}, {0}], or \
                 size \"any\"",
                made.0, made.1, expected.0, expected.1
            ),
            Self::Size { made, expected: None } => write!(
                f,
                "returned an image of {}x{} pixels, expected sides of 1 to {}",
                made.0,
                made.1,
                PlanError::MAX_SIDE
            ),
            Self::Returned { what, reason } => write!(f, "{what}: {reason}"),
            Self::Panicked { message } => write!(f, "panicked: {message}"),
        }
    }
}

impl Error for UserFault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => error.source(),
            Self::Size { .. } | Self::Returned { .. } | Self::Panicked { .. } => None,
        }
    }
}

/// The reason why boxes or a mask are refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum AnnotationError {
    /// A coordinate that is NaN, or one beyond every image.
    #[error("box {position} has a coordinate that is not a number from -1e20 to 1e20")]
    NotFinite {
        /// The box's place in the list, from 0.
        position: usize,
    },
    /// A keypoint with such a coordinate.
    #[error("keypoint {position} has a coordinate that is not a number from -1e20 to 1e20")]
    NotFinitePoint {
        /// The keypoint's place in the list, from 0.
        position: usize,
    },
    /// A mask without pixels, or with more or fewer numbers than pixels.
    #[error(
        "mask of {width}x{height} pixels has {have} values, expected one per pixel and at least \
         one pixel"
    )]
    MaskLength { width: u32, height: u32, have: usize },
    /// An image of a size that annotations cannot have, or that a step does not accept.
    #[error(
        "annotations: image of {width}x{height} pixels does not have the size that this step \
         expects, or has a side outside 1 to {max}",
        max = PlanError::MAX_SIDE
    )]
    Size { width: u32, height: u32 },
    /// Polygons or run lengths that are not those of a mask.
    #[error("segmentation: {reason}, expected {expected}")]
    Segmentation { reason: String, expected: String },
    /// A limit that would keep boxes without an area.
    #[error("{name} is {value}, expected a number from 1 on")]
    Limit { name: &'static str, value: f32 },
}
