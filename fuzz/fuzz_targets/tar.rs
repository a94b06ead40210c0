//! TAR archives, with header checksums put right after most mutations.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_seeds::tar(data));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let size = libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    if !seed.is_multiple_of(8) {
        fuzz_seeds::fix_tar_checksums(&mut data[..size]);
    }
    size
});
