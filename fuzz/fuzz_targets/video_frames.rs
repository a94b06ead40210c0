//! Frames of H.264 in MP4, MOV, Matroska and AVI files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::video_frames(data));
