//! Parquet files as tables.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turboloader_fuzz::parquet(data));
