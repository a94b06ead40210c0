//! Integration tests of tbf-format: files of the reference's writer, and everything damaged.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod data;
#[cfg(feature = "encryption")]
mod encryption;
mod header;
#[cfg(all(feature = "std", not(miri)))]
mod kills;
mod model;
mod oracle;
mod packing;
#[cfg(feature = "std")]
mod recovery;
mod reference;
mod segment;
mod writer;
