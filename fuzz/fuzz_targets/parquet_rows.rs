//! Parquet files as samples.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::parquet_rows(data));
