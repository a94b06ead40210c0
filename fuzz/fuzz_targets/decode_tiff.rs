//! TIFF images: probe and decode.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turboloader_fuzz::decode_tiff(data));
