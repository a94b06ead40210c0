//! Answers of a web server to reads of ranges.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::http_response(data));
