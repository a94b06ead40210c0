//! Blocks of IDV files: decode, join, encode, fill up.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::idv_codecs(data));
