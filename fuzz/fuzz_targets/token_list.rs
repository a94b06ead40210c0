//! The `index.json` of LitData and MDS, and the files that it lists.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::token_list(data));
