//! Indexes of clips against what FFmpeg finds in them, and what damage leaves of them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "test code, helpers included"
)]

mod damage;
#[cfg(feature = "h264")]
mod decoding;
mod ffmpeg;
mod figures;
mod made;
mod plans;
mod reads;
mod stored;
mod support;
