#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod context;
mod decoder;
mod error;
mod picture;
mod units;

pub use decoder::Decoder;
pub use error::Error;
pub use picture::{Layout, Picture};
