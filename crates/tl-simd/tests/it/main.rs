//! Integration tests of tl-simd.

mod color;
mod colors;
mod column;
mod erase;
mod filter;
mod gaussian;
mod interleave;
mod jpeg;
mod jpeg_pillow;
mod normalize;
mod pad;
mod pillow;
mod resample;
mod similarity;
mod torchvision;
mod video;
mod vp8;
mod warp;
mod warp_references;

/// Bytes that depend on their place and `seed` only.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let words = (1..).flat_map(|counter| split_mix(seed, counter).to_le_bytes());
    words.take(len).collect()
}

/// `SplitMix64` in counter mode.
fn split_mix(seed: u64, counter: u64) -> u64 {
    let z = seed.wrapping_add(counter.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
