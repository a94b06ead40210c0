//! Every level against plain loops, at all lengths and offsets.

use crate::noise;
use tl_simd::Level;
use tl_simd::interleave::{deinterleave, flip_row, interleave};

/// Four times the most pixels of a vector, and one.
const LONGEST: usize = 4 * 64 + 1;
const OFFSETS: usize = 8;

#[test]
fn pixels_are_taken_apart_and_put_together_at_every_level() {
    let bytes = noise(LONGEST * 3 + OFFSETS, 1);
    for level in Level::available() {
        for (pixels, offset) in (0..=LONGEST).flat_map(|n| (0..=OFFSETS).map(move |o| (n, o))) {
            let row = &bytes[offset..][..pixels * 3];
            let plane = |channel: usize| row.iter().skip(channel).step_by(3).copied().collect();
            let expected: [Vec<u8>; 3] = [plane(0), plane(1), plane(2)];
            let mut planes = [(); 3].map(|()| vec![0; offset + pixels]);
            let [r, g, b] = planes.each_mut().map(|plane| &mut plane[offset..]);
            deinterleave(level, row, [r, g, b]);
            let [r, g, b] = planes.each_ref().map(|plane| &plane[offset..]);
            assert_eq!([r, g, b], expected.each_ref().map(Vec::as_slice), "{level} {pixels}");
            let mut joined = vec![0; offset + pixels * 3];
            interleave(level, [r, g, b], &mut joined[offset..]);
            assert_eq!(&joined[offset..], row, "{level} {pixels}");
        }
    }
}

#[test]
fn rows_are_mirrored_at_every_level() {
    let bytes = noise(LONGEST * 4 + OFFSETS, 2);
    for level in Level::available() {
        for (pixels, offset) in (0..=LONGEST).flat_map(|n| (0..=OFFSETS).map(move |o| (n, o))) {
            for channels in [1, 3, 4] {
                let row = &bytes[offset..][..pixels * channels];
                let expected: Vec<u8> = row.chunks(channels).rev().flatten().copied().collect();
                let mut out = vec![0; offset + row.len()];
                flip_row(level, row, channels, &mut out[offset..]);
                assert_eq!(&out[offset..], expected, "{level} {pixels} of {channels}");
            }
        }
    }
}
