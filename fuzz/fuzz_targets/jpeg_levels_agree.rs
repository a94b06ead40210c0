//! JPEG images: every level of instructions.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::jpeg_levels_agree(data));
