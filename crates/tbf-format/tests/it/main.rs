//! Integration tests of tbf-format: files of the reference's writer, and everything damaged.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod data;
mod header;
mod model;
mod oracle;
#[cfg(feature = "std")]
mod recovery;
mod reference;
mod segment;
mod writer;
