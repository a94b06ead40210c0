//! IDV files: open, read every column and all metadata.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turboloader_fuzz::idv_open(data));
