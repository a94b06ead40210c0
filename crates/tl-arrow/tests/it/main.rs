//! Parquet and Arrow files of several writers, read as samples.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod arrow;
mod arrow_wide;
mod arrow_written;
mod both;
mod columns;
mod damage;
mod nested;
mod oracles;
mod rows;
mod support;
mod tokens;
mod write;
mod written;
