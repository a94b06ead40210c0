//! The kernels, one module per operation, each with its scalar definition.

pub mod color;
pub mod column;
pub mod erase;
pub mod gaussian;
pub mod interleave;
pub mod jpeg;
pub mod mix;
pub mod mixture;
pub mod normal;
pub mod normalize;
pub mod pad;
pub mod resample;
pub mod similarity;
pub(crate) mod streams;
pub mod video;
pub mod vp8;
pub mod warp;
