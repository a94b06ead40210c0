#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod annotations;
pub mod batch_op;
mod bounds;
mod decode_mode;
mod draw;
mod error;
mod fill;
mod hash;
mod image;
mod interpolation;
pub mod op;
mod output;
mod parity;
mod pass;
mod plan;
mod recipe;
mod render;
pub mod rng;
mod runner;
pub mod step;
mod stream;
mod trigonometry;
mod user;
mod wide;

pub use annotations::{BoundingBoxes, BoxFormat, Coordinates, Keypoints, Mask, Segmentation};
pub use batch_op::{BatchOp, Mixing};
pub use decode_mode::DecodeMode;
pub use error::{
    AnnotationError, Invalid, InvalidValue, PlanError, RecipeError, StepError, UserFault,
    UserTransformError,
};
pub use fill::Fill;
pub use hash::RecipeHash;
pub use image::Image;
pub use interpolation::Interpolation;
pub use op::Op;
pub use output::{Channels, Dtype, Layout, OutputSpec, PixelType};
pub use parity::Parity;
pub use pass::{Padding, Pass};
pub use plan::Plan;
pub use recipe::{Recipe, Split};
pub use render::{Renderer, Rows};
pub use rng::Rng;
pub use runner::Runner;
pub use step::Step;
pub use stream::{Draw, Stream};
pub use user::{
    BoundTransforms, UserAnnotations, UserError, UserKeypoints, UserMask, UserTransform,
    UserTransforms,
};
pub use wide::WideRenderer;
