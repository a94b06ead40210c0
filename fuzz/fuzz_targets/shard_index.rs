//! Shard indexes, and the part of a shard of each kind.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::shard_index(data));
