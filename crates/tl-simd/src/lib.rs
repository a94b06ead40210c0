#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod kernels;
mod level;
mod vector;

pub use kernels::{
    color, column, erase, gaussian, interleave, jpeg, mix, mixture, normal, normalize, pad,
    resample, similarity, video, vp8, warp,
};
pub use level::{LEVEL_VARIABLE, Level, LevelError};
