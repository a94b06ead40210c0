//! Parquet files as tables of columns, without the library `parquet`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::parquet_columns(data));
