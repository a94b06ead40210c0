#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod decode_mode;
mod error;
mod op;
mod plan;
mod recipe;
pub mod rng;

pub use decode_mode::DecodeMode;
pub use error::{PlanError, RecipeError};
pub use op::{Interpolation, Op};
pub use plan::{Padding, Plan};
pub use recipe::{Dtype, IMAGENET_MEAN, IMAGENET_STD, Layout, OutputSpec, Recipe};
pub use rng::Rng;
