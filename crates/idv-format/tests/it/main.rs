//! Files of ML.NET and of an independent generator, damaged ones, and ways of reading.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "test code, helpers included"
)]

#[cfg(feature = "arrow")]
mod arrow;
#[cfg(feature = "arrow")]
mod arrow_writing;
mod damage;
mod data;
#[cfg(not(miri))]
mod kills;
mod oracle;
mod ways;
mod writing;
