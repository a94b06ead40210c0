//! NumPy's `.npy` files, and arrays in `.npz` files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::numpy(data));
