//! TBL version 1 files: open, read every sample.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::tbl1(data));
