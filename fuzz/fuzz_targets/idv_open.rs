//! IDV files: open, read every column and all metadata.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::idv_open(data));
