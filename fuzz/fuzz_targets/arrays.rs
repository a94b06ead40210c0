//! Arrays of NumPy and safetensors as tables.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::arrays(data));
