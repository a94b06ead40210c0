//! Manifests, annotations, files of labels, and masks of objects.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::lists(data));
