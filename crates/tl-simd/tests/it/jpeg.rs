//! Every level of the JPEG kernels against the scalar one, at all lengths, and against the
//! transforms' own sums of cosines.

use crate::{noise, split_mix};
use proptest::prelude::*;
use std::f64::consts::{FRAC_1_SQRT_2, PI};
use tl_simd::Level;
use tl_simd::jpeg::{
    Block, Scale, idct, replicate, upsample_h1v2, upsample_h2v1, upsample_h2v2, ycc_to_rgb,
    ycc_to_rgb_planar,
};

/// Four times the most samples of a vector, and two.
const LONGEST: usize = 4 * 64 + 2;

/// Two groups of the smallest scale, and some.
const LONGEST_RUN: usize = 35;

/// The blocks' samples and what is between the rows.
fn transformed(
    level: Level,
    scale: Scale,
    quantizer: &[u16; 64],
    blocks: &[Block],
    gap: usize,
) -> Vec<u8> {
    let side = scale.block_side();
    let row = blocks.len() * side;
    let stride = row + gap;
    let mut blocks = blocks.to_vec();
    let mut out = vec![0x5A; (side - 1) * stride + row];
    idct(level, scale, quantizer, &mut blocks, &mut out, stride);
    assert!(blocks.iter().all(|block| *block == Block::ZERO), "{level} leaves coefficients");
    out
}

fn levels_agree(quantizer: &[u16; 64], blocks: &[Block], gap: usize) {
    for scale in Scale::all() {
        let expected = transformed(Level::Scalar, scale, quantizer, blocks, gap);
        for level in Level::available() {
            let out = transformed(level, scale, quantizer, blocks, gap);
            assert!(out == expected, "{level} {scale} {} blocks, {gap} between", blocks.len());
        }
    }
}

/// Blocks of coefficients from 1 - 2^(bits - 1) to 2^(bits - 1), more of them zero.
fn random_blocks(count: usize, bits: u32, seed: u64) -> Vec<Block> {
    let coefficient = |counter: u64| {
        let word = split_mix(seed, counter);
        let [low, high, ..] = word.to_le_bytes();
        let drawn = i16::from_le_bytes([low, high]) >> (16 - bits);
        if (word >> 16).is_multiple_of(3) { drawn } else { 0 }
    };
    let block = |i: usize| Block(std::array::from_fn(|k| coefficient((i * 64 + k) as u64)));
    (0..count).map(block).collect()
}

#[test]
fn every_level_transforms_runs_of_every_length() {
    for count in 0..=LONGEST_RUN {
        for (gap, bits) in [(0, 8), (1, 11), (64, 14), (7, 16)] {
            levels_agree(&[16; 64], &random_blocks(count, bits, count as u64), gap);
        }
    }
}

/// The samples that the standard defines, before they are rounded.
fn sums_of_cosines(block: &Block) -> [f64; 64] {
    let wave = |at: usize, frequency: usize| match u8::try_from(frequency * (2 * at + 1)) {
        Ok(0) => FRAC_1_SQRT_2,
        Ok(angle) => (f64::from(angle) * PI / 16.0).cos(),
        Err(_) => unreachable!("at most 7 times 15"),
    };
    std::array::from_fn(|i| {
        let term = |k: usize| f64::from(block.0[k]) * wave(i / 8, k / 8) * wave(i % 8, k % 8);
        ((0..64).map(term).sum::<f64>() / 4.0 + 128.0).clamp(0.0, 255.0)
    })
}

#[test]
fn a_transform_is_a_sum_of_cosines() {
    for seed in 0..200 {
        let mut block = random_blocks(1, 9, seed)[0];
        let full = transformed(Level::Scalar, Scale::FULL, &[1; 64], &[block], 0);
        for (&sample, expected) in full.iter().zip(sums_of_cosines(&block)) {
            assert!((f64::from(sample) - expected).abs() < 0.6, "{sample} for {expected}");
        }
        block.0[1..].fill(0);
        let mean = sums_of_cosines(&block)[0];
        for scale in Scale::all() {
            for sample in transformed(Level::Scalar, scale, &[1; 64], &[block], 0) {
                assert!((f64::from(sample) - mean).abs() < 0.6, "{scale}: {sample} for {mean}");
            }
        }
    }
}

/// The samples of a transform to `side` points, before they are rounded.
fn sized_sums(block: &Block, side: u32) -> Vec<f64> {
    let wave = |at: u32, frequency: u32| match frequency {
        0 => FRAC_1_SQRT_2,
        _ => (f64::from(frequency * (2 * at + 1)) * PI / f64::from(2 * side)).cos(),
    };
    let used = side.min(8);
    let sample = |y: u32, x: u32| {
        let term =
            |v: u32, u: u32| f64::from(block.0[(8 * v + u) as usize]) * wave(y, v) * wave(x, u);
        let sum: f64 = (0..used * used).map(|k| term(k / used, k % used)).sum();
        (sum / 4.0 + 128.0).clamp(0.0, 255.0)
    };
    (0..side * side).map(|i| sample(i / side, i % side)).collect()
}

#[test]
fn a_transform_to_another_size_is_a_sum_of_cosines_of_its_own() {
    for seed in 0..50 {
        let block = random_blocks(1, 8, seed)[0];
        for side in [3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16] {
            let scale = Scale::from_eighths(side).expect("1 to 16");
            let samples = transformed(Level::Scalar, scale, &[1; 64], &[block], 0);
            for (&sample, expected) in samples.iter().zip(sized_sums(&block, side.into())) {
                let error = (f64::from(sample) - expected).abs();
                assert!(error < 0.75, "{side}: {sample} for {expected}");
            }
        }
    }
}

#[test]
fn scaled_lengths_are_rounded_up() {
    let scaled = |len| Scale::HALVINGS.map(|scale| scale.apply(len));
    assert_eq!(scaled(0), [0, 0, 0, 0]);
    assert_eq!(scaled(1), [1, 1, 1, 1]);
    assert_eq!(scaled(17), [17, 9, 5, 3]);
    assert_eq!(scaled(u32::MAX), [u32::MAX, 1 << 31, 1 << 30, 1 << 29]);
    let of_17: Vec<u32> = Scale::all().map(|scale| scale.apply(17)).collect();
    assert_eq!(of_17, [3, 5, 7, 9, 11, 13, 15, 17, 20, 22, 24, 26, 28, 30, 32, 34]);
    assert_eq!(Scale::from_eighths(16).map(|scale| scale.apply(u32::MAX)), Some(u32::MAX));
    assert_eq!([Scale::from_eighths(0), Scale::from_eighths(17)], [None, None]);
    let names: Vec<String> = Scale::all().map(|scale| scale.to_string()).collect();
    let expected = "1/8 1/4 3/8 1/2 5/8 3/4 7/8 1/1 9/8 5/4 11/8 3/2 13/8 7/4 15/8 2/1";
    assert_eq!(names.join(" "), expected);
}

/// Calls `kernel` with every level and length, on rows `near` and `far`, and compares its output of
/// `factor` samples per sample with the scalar level's.
fn check_rows(factor: usize, kernel: impl Fn(Level, &[u8], &[u8], &mut [u8])) {
    let bytes = noise(2 * LONGEST, 3);
    let (near, far) = bytes.split_at(LONGEST);
    for len in 0..=LONGEST {
        let offset = len % 3 * usize::from(len + 3 <= LONGEST);
        let (near, far) = (&near[offset..offset + len], &far[offset..offset + len]);
        let mut expected = vec![0; len * factor];
        kernel(Level::Scalar, near, far, &mut expected);
        for level in Level::available() {
            let mut out = vec![0; len * factor + offset];
            kernel(level, near, far, &mut out[offset..]);
            assert!(out[offset..] == expected, "{level}, {len} samples");
        }
    }
}

#[test]
fn every_level_upsamples_rows_of_every_length() {
    check_rows(2, |level, near, _, out| upsample_h2v1(level, near, out));
    check_rows(2, upsample_h2v2);
    for lower in [false, true] {
        check_rows(1, |level, near, far, out| upsample_h1v2(level, near, far, lower, out));
    }
    for factor in 1..=4 {
        check_rows(factor, |level, near, _, out| replicate(level, near, factor, out));
    }
}

#[test]
fn upsampling_weights_three_to_one() {
    let mut out = [0; 6];
    upsample_h2v1(Level::Scalar, &[0, 100, 200], &mut out);
    assert_eq!(out, [0, 25, 75, 125, 175, 200]);
    upsample_h2v2(Level::Scalar, &[0, 100, 200], &[40; 3], &mut out);
    assert_eq!(out, [10, 29, 66, 104, 141, 160]);
    upsample_h1v2(Level::Scalar, &[0, 0, 255], &[1, 2, 255], false, &mut out[..3]);
    assert_eq!(out[..3], [0, 0, 255]);
    upsample_h1v2(Level::Scalar, &[0, 0, 255], &[1, 2, 255], true, &mut out[..3]);
    assert_eq!(out[..3], [0, 1, 255]);
    replicate(Level::Scalar, &[7, 9], 3, &mut out);
    assert_eq!(out, [7, 7, 7, 9, 9, 9]);
}

#[test]
fn every_level_converts_rows_of_every_length() {
    let bytes = noise(3 * LONGEST, 4);
    for level in Level::available() {
        for len in 0..=LONGEST {
            let planes =
                [0, 1, 2].map(|plane| &bytes[plane * LONGEST + len % 3..][..len.saturating_sub(2)]);
            let size = planes[0].len();
            let [mut expected, mut out] = [vec![0; size * 3], vec![0; size * 3]];
            ycc_to_rgb(Level::Scalar, planes, &mut expected);
            ycc_to_rgb(level, planes, &mut out);
            assert!(out == expected, "{level}, {size} pixels");
            let mut separate = [(); 3].map(|()| vec![0; size]);
            let [red, green, blue] = separate.each_mut().map(Vec::as_mut_slice);
            ycc_to_rgb_planar(level, planes, [red, green, blue]);
            for (channel, plane) in separate.iter().enumerate() {
                let expected = expected.iter().skip(channel).step_by(3);
                assert!(plane.iter().eq(expected), "{level}, channel {channel} of {size} pixels");
            }
        }
    }
}

proptest! {
    #[test]
    fn levels_agree_on_any_coefficients(
        seed: u64,
        count in 0..20_usize,
        bits in 1..=16_u32,
        last in 0..64_usize,
        quantizer in prop_oneof![Just(1), 1..256_u16, any::<u16>()],
        gap in 0..40_usize,
    ) {
        let mut blocks = random_blocks(count, bits, seed);
        for block in &mut blocks {
            block.0[last + 1..].fill(0);
        }
        levels_agree(&[quantizer; 64], &blocks, gap);
    }
}
