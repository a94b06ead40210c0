//! Parquet files of several writers, read as samples.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod damage;
mod nested;
mod oracles;
mod support;
mod written;
