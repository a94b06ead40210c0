//! WebP images: a region of the image against the whole.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::webp_region_equals_full(data));
