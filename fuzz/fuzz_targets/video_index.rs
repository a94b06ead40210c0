//! Indexes of MP4, MOV, Matroska, WebM and AVI files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::video_index(data));
