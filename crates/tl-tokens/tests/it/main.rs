//! Token files as their writers make them, and as damage leaves them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::cast_possible_truncation,
    reason = "test code, helpers included"
)]

mod containers;
mod damage;
mod documents;
mod ends;
mod files;
mod formats;
mod orders;
#[cfg(feature = "text")]
mod text;
#[cfg(feature = "text")]
mod text_index;
mod windows;
