//! Indexes of clips against what FFmpeg finds in them, and what damage leaves of them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "test code, helpers included"
)]

mod damage;
mod ffmpeg;
mod made;
mod plans;
mod reads;
mod support;
