#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod sample;

pub use error::ReadError;
pub use sample::{Entry, Field, SampleSource, SourceKind};
