//! Files of tokens: headers of llm.c, indexes of Megatron-LM, NumPy and safetensors.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::tokens(data));
