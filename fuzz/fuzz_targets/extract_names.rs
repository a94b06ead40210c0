//! Names of samples and fields, as readers, writers and extraction check them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::extract_names(data));
