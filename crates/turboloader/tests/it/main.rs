//! The `tl` binary, run as a user runs it.

mod support;
mod usage;
