//! TAR archives that are compressed by gzip or Zstandard.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::packed_tar(data));
