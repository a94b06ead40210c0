//! Decoding against what Pillow gives, on whole and on damaged files.

#![expect(clippy::panic, reason = "a failure names its file")]

#[cfg(feature = "avif")]
mod avif;
mod corpora;
mod hostile;
mod jpeg;
mod jpeg_parts;
mod jpeg_rules;
mod manifest;
mod masks;
mod memory;
mod probe;
mod regions;
mod reuse;
mod webp;
mod wide;
