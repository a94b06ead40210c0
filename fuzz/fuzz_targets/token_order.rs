//! Orders that Megatron-LM cached.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::token_order(data));
