//! Names of samples and fields, as readers, writers and extraction check them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turboloader_fuzz::extract_names(data));
