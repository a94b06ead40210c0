//! JPEG 2000 images: probe and decode.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::decode_jpeg2000(data));
