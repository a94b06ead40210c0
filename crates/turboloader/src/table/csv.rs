//! Tables as CSV by RFC 4180: a header with names, then a line for each row.
//!
//! A vector of a known length has a column for each slot, called `name.0`, `name.1` and so on.
//! `docs/idv.md` says what every value looks like, and what does not come back.

pub(super) mod cells;
pub(super) mod error;
mod header;
mod read;
mod rows;
pub(super) mod schema;
mod survey;
mod write;

pub(super) use read::read;
pub(super) use write::write;
