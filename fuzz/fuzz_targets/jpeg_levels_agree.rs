//! JPEG images: every level of instructions.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turboloader_fuzz::jpeg_levels_agree(data));
