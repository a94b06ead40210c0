//! Arrays of NumPy, also several in a file, and safetensors as tables.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::arrays(data));
