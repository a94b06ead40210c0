#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod ahead;
mod cache;
mod codec;
mod delta;
mod features;
mod file;
mod footer;
mod format;
mod header;
mod ipc;
mod json;
mod labels;
mod nested;
mod options;
mod own;
mod page;
mod pages;
mod places;
mod roles;
mod rows;
mod runs;
mod schema;
mod segments;
mod source;
mod table;
mod tail;
mod text;
mod thrift;
mod tokens;
mod values;
mod write;

pub use format::add_to;
pub use options::RowOptions;
pub use source::RowSource;
pub use table::{ColumnContent, Missing, NumberType, RowBlock, RowColumn, RowColumns};
pub use tokens::open_tokens;
pub use write::PARQUET;
