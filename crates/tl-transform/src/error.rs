//! What can be wrong with a recipe or with the image it is planned for.

/// Why a list of operations is not a recipe.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// An operation stands where the fused pass cannot run it.
    #[error("operation {position}: {op} cannot follow {after}")]
    Order {
        /// The operation's place in the list, from 0.
        position: usize,
        /// Its name.
        op: &'static str,
        /// The name of the operation before it.
        after: &'static str,
    },
    /// A parameter outside its range.
    #[error("operation {position}: {parameter} is {value}, expected {expected}")]
    Parameter {
        /// The operation's place in the list, from 0.
        position: usize,
        /// The parameter's name.
        parameter: &'static str,
        /// What it was.
        value: f64,
        /// What it may be.
        expected: &'static str,
    },
    /// A decode margin that is below 1, beyond every image, or not a number.
    #[error("decode margin is {value}, expected a number from 1 to 65536")]
    DecodeMargin {
        /// What it was.
        value: f32,
    },
    /// Integer output of a recipe that makes floats, or the reverse.
    #[error("output type {dtype} does not fit a recipe that {}",
        if *to_float { "converts to float" } else { "does not convert to float" })]
    OutputType {
        /// The name of the output type.
        dtype: &'static str,
        /// Whether the recipe has the float conversion.
        to_float: bool,
    },
}

/// Why no plan can be made for an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A side of the image is 0 or beyond what a plan's arithmetic covers.
    #[error("image of {width}x{height} pixels, sides must be 1 to {}", Self::MAX_SIDE)]
    ImageSize {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
}

impl PlanError {
    /// The longest side a plan is made for. The product of two such sides fits 32 bits.
    pub const MAX_SIDE: u32 = 65_535;
}
