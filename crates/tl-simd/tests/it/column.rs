//! Every level against a comparison of one value after the other.

use crate::noise;
use proptest::prelude::*;
use std::fmt::Debug;
use std::ops::RangeInclusive;
use tl_simd::Level;
use tl_simd::column::{Integer, Number, extremes, find_equal, find_range, rows};

/// Two words for each stream, and one value more.
const LONGEST: usize = 8 * 64 + 1;

/// A bitmap that holds something else.
fn stale(values: usize) -> Vec<u64> {
    vec![0xA5A5_A5A5_A5A5_A5A5; values.div_ceil(64)]
}

fn check<T: Integer + PartialOrd + Debug>(values: &[T], range: RangeInclusive<T>) {
    let expected: Vec<usize> =
        (0..values.len()).filter(|&row| range.contains(&values[row])).collect();
    for level in Level::available() {
        let mut bits = stale(values.len());
        let count = find_range(level, values, range.clone(), &mut bits);
        assert_eq!(count, expected.len(), "{level} {range:?}");
        assert!(rows(&bits).eq(expected.iter().copied()), "{level} {range:?} {}", values.len());
    }
}

macro_rules! checks {
    ($($name:ident: $integer:ty;)*) => {
        $(
            #[test]
            fn $name() {
                const BYTES: usize = size_of::<$integer>();
                let bytes = noise((LONGEST + 8) * BYTES, 4);
                let drawn: Vec<$integer> = bytes
                    .as_chunks::<BYTES>()
                    .0
                    .iter()
                    .map(|&bytes| <$integer>::from_le_bytes(bytes))
                    .collect();
                let (least, most) = (<$integer>::MIN, <$integer>::MAX);
                let (a, b) = (drawn[3].min(drawn[4]), drawn[3].max(drawn[4]));
                for (len, offset) in (0..=LONGEST).map(|len| (len, len % 8)) {
                    let values = &drawn[offset..][..len];
                    check(values, a..=b);
                    check(values, a..=a);
                }
                for range in [least..=most, least..=b, a..=most, least..=least, most..=most, 0..=1] {
                    check(&drawn, range);
                }
                let ends = [least, most, 0, 1, most, least, least + 1, most - 1].repeat(17);
                for range in [least..=least, most..=most, least..=0, 0..=most, least + 1..=most - 1] {
                    check(&ends, range);
                }
            }
        )*
    };
}

checks! {
    ranges_of_i8: i8;
    ranges_of_u8: u8;
    ranges_of_i16: i16;
    ranges_of_u16: u16;
    ranges_of_i32: i32;
    ranges_of_u32: u32;
    ranges_of_i64: i64;
    ranges_of_u64: u64;
}

#[test]
fn nothing_lies_in_a_range_from_above_to_below() {
    for level in Level::available() {
        let mut bits = stale(200);
        #[expect(clippy::reversed_empty_ranges, reason = "the point of the test")]
        let count = find_range(level, &[5_u8; 200], 6..=4, &mut bits);
        assert_eq!((count, bits), (0, vec![0; 4]));
    }
}

#[test]
fn equal_values_are_found() {
    let values: Vec<u64> = (0..1000).map(|row| row * row % 97).collect();
    for level in Level::available() {
        let mut bits = stale(1000);
        let count = find_equal(level, &values, 4, &mut bits);
        // The squares that leave 4 when divided by 97 are those of 2 and of 95, in 1000 numbers.
        let expected: Vec<usize> = (0..1000).filter(|row| [2, 95].contains(&(row % 97))).collect();
        assert_eq!((count, expected.len()), (21, 21));
        assert!(rows(&bits).eq(expected));
    }
}

fn check_extremes<T: Number + PartialEq + Debug>(values: &[T], expected: Option<(T, T)>) {
    for level in Level::available() {
        assert_eq!(extremes(level, values), expected, "{level} {}", values.len());
    }
}

#[test]
fn extremes_of_integers_are_found_wherever_they_are() {
    check_extremes::<u64>(&[], None);
    for len in 1..=LONGEST {
        let mut values = vec![7_i64; len];
        values[len / 3] = i64::MIN;
        values[len - 1] = i64::MAX;
        let least = if len == 1 { i64::MAX } else { i64::MIN };
        check_extremes(&values, Some((least, i64::MAX)));
        let bytes: Vec<u8> = noise(len, 3);
        let expected = bytes.iter().copied().min().zip(bytes.iter().copied().max());
        check_extremes(&bytes, expected);
        let words: Vec<u64> =
            noise(8 * len, 6).as_chunks().0.iter().map(|&b| u64::from_le_bytes(b)).collect();
        check_extremes(&words, words.iter().copied().min().zip(words.iter().copied().max()));
    }
}

type Pair = Option<(f64, f64)>;

/// By the bits, because -0 equals 0 otherwise.
fn bits(extremes: Pair) -> Option<(u64, u64)> {
    extremes.map(|(least, most)| (least.to_bits(), most.to_bits()))
}

#[test]
fn extremes_of_floats_pass_over_what_is_no_number() {
    let nan = f64::from_bits(0xFFF8_0000_0000_0001);
    let cases: [(&[f64], Pair); 6] = [
        (&[f64::NAN, nan, -f64::NAN], None),
        (&[0.0, -0.0, nan], Some((-0.0, 0.0))),
        (&[-0.0], Some((-0.0, -0.0))),
        (&[f64::NAN, f64::INFINITY], Some((f64::INFINITY, f64::INFINITY))),
        (&[1.5, f64::NEG_INFINITY, nan, 2.5], Some((f64::NEG_INFINITY, 2.5))),
        (&[5e-324, -5e-324, f64::MAX], Some((-5e-324, f64::MAX))),
    ];
    for (values, expected) in cases {
        for (level, times) in Level::available().flat_map(|level| [1, 30].map(|t| (level, t))) {
            let found = extremes(level, &values.repeat(times));
            assert_eq!(bits(found), bits(expected), "{level} {values:?}");
        }
    }
}

proptest! {
    #[test]
    fn extremes_of_drawn_floats(words in prop::collection::vec(any::<u32>(), 0..400)) {
        let values: Vec<f32> = words.iter().map(|&bits| f32::from_bits(bits)).collect();
        let numbers = || values.iter().copied().filter(|value| !value.is_nan());
        let expected = numbers().min_by(f32::total_cmp).zip(numbers().max_by(f32::total_cmp));
        for level in Level::available() {
            prop_assert_eq!(extremes(level, &values), expected);
        }
    }

    #[test]
    fn timestamps_in_drawn_ranges(
        values in prop::collection::vec(0_u64..50, 0..700),
        ends in (0_u64..60, 0_u64..60),
    ) {
        check(&values, ends.0.min(ends.1)..=ends.0.max(ends.1));
    }
}
