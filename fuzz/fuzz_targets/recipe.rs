//! Recipes: read, planned and carried out on small images.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turboloader_fuzz::recipe(data));
