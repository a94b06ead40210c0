//! The metadata of Zarr 3 and a chunk.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::zarr(data));
