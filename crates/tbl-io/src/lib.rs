#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod atomic_file;
mod error;
mod escape;
mod mmap;
mod sample;
mod source;
mod tar_writer;
mod write_error;

pub use error::{FileKind, ReadError, TarDefect};
pub use escape::Escaped;
pub use mmap::Mapped;
pub use sample::{Entry, Field, SampleSource, SourceKind};
pub use source::Source;
pub use tar_writer::{TarOptions, TarSummary, TarWriter};
pub use write_error::{NameDefect, WriteError};
