//! Arrow's files and streams (IPC).
//!
//! Metadata are read by a parser of this crate, as those of Parquet files are: bounded, without panics,
//! and with the offset of a defect. Values are looked at where they are in the file.

mod array;
mod file;
mod fixed;
mod flat;
mod input;
mod layout;
mod message;
mod places;
mod rows;
mod schema;
mod value;

pub(crate) use array::{Array, Bytes};
pub(crate) use file::ArrowFile;
pub(crate) use fixed::{FixedLists, fixed_lists};
pub(crate) use layout::is_arrow;
pub(crate) use schema::Kind;
pub(crate) use value::{MAX_DECIMAL, fixed_value};
