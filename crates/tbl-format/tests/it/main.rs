//! Integration tests of tbl-format: byte layouts, and every structure cut short or damaged.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod extension;
mod header;
mod metadata;
mod row_indexes;
