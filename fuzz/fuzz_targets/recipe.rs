//! Recipes: read, planned and carried out on small images.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::recipe(data));
