#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

#[cfg(feature = "arrow")]
mod arrow;
mod codec;
mod cursor;
mod error;
mod header;
mod toc;
mod values;

#[cfg(feature = "std")]
mod compression;
#[cfg(feature = "std")]
mod read_error;
#[cfg(feature = "std")]
mod reader;
#[cfg(feature = "std")]
mod source;
#[cfg(feature = "std")]
mod write_error;
#[cfg(feature = "std")]
mod writer;

#[cfg(feature = "arrow")]
pub use arrow::{
    ArrowError, ArrowOptions, ArrowReader, ArrowWriteError, ArrowWriter, ConvertError, ValueError,
};
pub use codec::{Codec, CodecDefinition, Item, Key, Number, Unknown, Vector};
pub use error::FormatError;
pub use header::{Header, Version};
pub use toc::{
    Block, ColumnEntry, Compression, Dead, MetadataEntry, Storage, parse_lookup_table,
    parse_metadata_toc, parse_toc,
};
pub use values::{RowId, Text, Values, ValuesError, VectorRow, Vectors};

#[cfg(feature = "std")]
pub use read_error::ReadError;
#[cfg(feature = "std")]
pub use reader::{Column, IdvFile, Limits, Scratch};
#[cfg(feature = "std")]
pub use source::ReadAt;
#[cfg(feature = "std")]
pub use write_error::WriteError;
#[cfg(feature = "std")]
pub use writer::{NewColumn, NewMetadata, WriteOptions, WriteSummary, Writer};
