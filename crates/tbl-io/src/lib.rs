#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[allow(dead_code, reason = "its users, the TAR and TBL writers, come next")]
mod atomic_file;
mod error;
mod sample;

pub use error::ReadError;
pub use sample::{Entry, Field, SampleSource, SourceKind};
