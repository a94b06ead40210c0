#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

#[allow(dead_code, reason = "its users, the TAR and TBL writers, come next")]
mod atomic_file;
mod error;
mod escape;
mod mmap;
mod sample;
mod source;

pub use error::{FileKind, ReadError, TarDefect};
pub use escape::Escaped;
pub use mmap::Mapped;
pub use sample::{Entry, Field, SampleSource, SourceKind};
pub use source::Source;
