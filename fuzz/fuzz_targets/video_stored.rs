//! Indexes of videos that were stored.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::video_stored(data));
