//! Every level against the scalar one, for images of all small sizes.

use crate::noise;
use tl_simd::Level;
use tl_simd::color::{self, Arithmetic, Extremes};

const CONVENTIONS: [Arithmetic; 2] = [Arithmetic::Pillow, Arithmetic::Torch];

/// Factors of which some products are nearly whole, and others are not.
const FACTORS: [f64; 9] = [0.0, 0.1, 0.5, 0.9, 1.0, 1.3, 1.618_033_988, 2.0, 37.25];

/// Compares the levels' results of `change` on images of up to 260 pixels, and on one with few
/// values.
fn check(change: impl Fn(Level, &mut [u8])) {
    let mut samples = noise(260 * 3, 5);
    samples.extend(noise(100 * 3, 6).iter().map(|sample| if sample & 1 == 0 { 0 } else { 255 }));
    for pixels in (0..=260).chain([360]) {
        let mut expected = samples[..pixels * 3].to_vec();
        change(Level::Scalar, &mut expected);
        for level in Level::available() {
            let mut image = samples[..pixels * 3].to_vec();
            change(level, &mut image);
            assert_eq!(image, expected, "{level}, {pixels} pixels");
        }
    }
}

#[test]
fn every_level_looks_up_the_entry() {
    let entries = noise(3 * 256, 7);
    let tables = [0, 1, 2].map(|channel| {
        entries[channel * 256..][..256].try_into().expect("a table has 256 entries")
    });
    let all: Vec<u8> = (0..=255).chain(0..=255).collect();
    for level in Level::available() {
        let mut found = all.clone();
        color::lookup(level, &tables[0], &mut found);
        assert_eq!(found, [tables[0], tables[0]].concat(), "{level}");
    }
    check(|level, pixels| color::lookup(level, &tables[1], pixels));
    check(|level, pixels| color::lookup_channels(level, &tables, pixels));
    check(|level, pixels| color::permute(level, [2, 0, 1], pixels));
}

#[test]
fn every_level_makes_the_same_greys_and_blends() {
    for arithmetic in CONVENTIONS {
        check(|level, pixels| color::to_grey(level, arithmetic, pixels));
        for factor in FACTORS {
            check(|level, pixels| color::blend_with_grey(level, arithmetic, factor, pixels));
        }
    }
}

#[test]
fn every_level_turns_hues_alike() {
    for shift in [0, 1, 25, 128, 231] {
        check(|level, pixels| color::shift_hue_bytes(level, shift, pixels));
    }
    for factor in [-0.5, -0.1, 0.0, 0.003, 0.25, 0.5] {
        check(|level, pixels| color::shift_hue(level, factor, pixels));
    }
}

#[test]
fn every_level_sharpens_alike() {
    let mut rows = [0; 2 * 90 * 3];
    for (width, height) in [(1, 5), (2, 9), (3, 3), (4, 3), (22, 4), (23, 5), (24, 3), (90, 3)] {
        let samples = noise(width * height * 3, 8);
        for arithmetic in CONVENTIONS {
            for factor in FACTORS {
                let mut sharpen = |level| {
                    let mut image = samples.clone();
                    color::sharpen(level, arithmetic, factor, width, &mut image, &mut rows);
                    image
                };
                let expected = sharpen(Level::Scalar);
                for level in Level::available() {
                    assert_eq!(sharpen(level), expected, "{level}, {width}x{height}, {factor}");
                }
            }
        }
    }
}

#[test]
fn statistics_are_those_of_counting() {
    for pixels in [0, 1, 63, 64, 65, 127, 128, 500] {
        let samples: Vec<u8> = noise(pixels * 3, 9).iter().map(|sample| 40 + sample / 2).collect();
        let channel = |channel| samples.iter().skip(channel).step_by(3).copied();
        let histograms = color::histograms(&samples);
        for (index, histogram) in histograms.iter().enumerate() {
            for value in 0..=255 {
                let count = channel(index).filter(|&sample| sample == value).count();
                assert_eq!(histogram[usize::from(value)], count as u64);
            }
        }
        let extremes = [0, 1, 2].map(|index| Extremes {
            low: channel(index).min().unwrap_or(255),
            high: channel(index).max().unwrap_or(0),
        });
        for level in Level::available() {
            assert_eq!(color::extremes(level, &samples), extremes, "{level}");
            for arithmetic in CONVENTIONS {
                let mut grey = samples.clone();
                color::to_grey(Level::Scalar, arithmetic, &mut grey);
                let sum: u64 = grey.iter().step_by(3).map(|&grey| u64::from(grey)).sum();
                assert_eq!(color::grey_sum(level, arithmetic, &samples), sum, "{level}");
            }
        }
    }
}
