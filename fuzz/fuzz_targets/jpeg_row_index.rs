//! JPEG images: row indexes, right and wrong ones.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::jpeg_row_index(data));
