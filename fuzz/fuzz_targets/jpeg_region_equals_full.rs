//! JPEG images: a region of the image against the whole.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turboloader_fuzz::jpeg_region_equals_full(data));
