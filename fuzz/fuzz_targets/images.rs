//! Files of images of one size, plain and compressed by gzip.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::images(data));
