#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod atomic_file;
mod error;
mod escape;
mod mmap;
mod reader;
mod sample;
mod source;
mod tar_writer;
mod write_error;
mod writer;

pub use error::{FileKind, RawDefect, ReadError, TarDefect};
pub use escape::Escaped;
pub use mmap::Mapped;
pub use reader::{Damage, MetadataBlock, RawView, ReadOptions, TblFile, Verify};
pub use sample::{Entry, Field, SampleSource, SourceKind};
pub use source::Source;
pub use tar_writer::{TarOptions, TarSummary, TarWriter};
pub use write_error::{NameDefect, WriteError};
pub use writer::{
    EncodeError, Encoded, Encoder, NewSample, StreamWriter, TblVersion, Unstored, WriteOptions,
    WriteSummary,
};
