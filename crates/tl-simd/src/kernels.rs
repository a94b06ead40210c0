//! The kernels, one module per operation, each with its scalar definition.

pub mod interleave;
pub mod normalize;
pub mod resample;
