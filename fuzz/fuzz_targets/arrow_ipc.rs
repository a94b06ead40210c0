//! Arrow files and streams as samples.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::arrow_ipc(data));
