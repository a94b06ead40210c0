//! Numbers that tell lengths and tokenizers from others, for saved states.

/// The finaliser of `SplitMix64` over a number and those before it.
pub(crate) fn mix(before: u64, number: u64) -> u64 {
    let mut z = before.wrapping_add(0x9E37_79B9_7F4A_7C15) ^ number;
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}
