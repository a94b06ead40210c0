//! AVIF images: probe and decode.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::decode_avif(data));
