#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod kernels;
mod level;
mod vector;

pub use kernels::{color, gaussian, interleave, jpeg, normalize, pad, resample, warp};
pub use level::Level;
