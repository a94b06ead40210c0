//! From luma and colour differences to RGB, as JFIF defines it, in fixed point.
//!
//! The constants have 16 fraction bits and every term is rounded as in libjpeg's `jdcolor.c`, whose
//! tables this arithmetic replaces.

use crate::Level;
use crate::vector::RGB;

/// Fraction bits of the constants.
const BITS: u32 = 16;
const HALF: i32 = 1 << (BITS - 1);
/// 1.402, 0.71414, 0.34414 and 1.772.
const CR_TO_R: i32 = 91_881;
const CR_TO_G: i32 = 46_802;
const CB_TO_G: i32 = 22_554;
const CB_TO_B: i32 = 116_130;

/// Converts rows of Y, Cb and Cr to a row of RGB pixels.
///
/// # Panics
///
/// When `out` is not three times as long as each row.
pub fn ycc_to_rgb(level: Level, planes: [&[u8]; RGB], out: &mut [u8]) {
    assert!(planes.iter().all(|plane| plane.len() * RGB == out.len()), "one sample per pixel");
    _ = level;
    for (pixel, out) in pixels(planes).zip(out.as_chunks_mut::<RGB>().0) {
        *out = convert(pixel);
    }
}

/// Converts rows of Y, Cb and Cr to rows of R, G and B.
///
/// # Panics
///
/// When the rows differ in length.
pub fn ycc_to_rgb_planar(level: Level, planes: [&[u8]; RGB], out: [&mut [u8]; RGB]) {
    let len = planes[0].len();
    assert!(planes.iter().all(|plane| plane.len() == len), "one sample per pixel");
    assert!(out.iter().all(|plane| plane.len() == len), "one output sample per pixel");
    _ = level;
    let [red, green, blue] = out;
    for (((pixel, red), green), blue) in pixels(planes).zip(red).zip(green).zip(blue) {
        [*red, *green, *blue] = convert(pixel);
    }
}

fn pixels([y, cb, cr]: [&[u8]; RGB]) -> impl Iterator<Item = [u8; RGB]> {
    y.iter().zip(cb).zip(cr).map(|((&y, &cb), &cr)| [y, cb, cr])
}

fn convert([y, cb, cr]: [u8; RGB]) -> [u8; RGB] {
    let [y, cb, cr] = [i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128];
    [
        y + ((CR_TO_R * cr + HALF) >> BITS),
        y + ((-CB_TO_G * cb - CR_TO_G * cr + HALF) >> BITS),
        y + ((CB_TO_B * cb + HALF) >> BITS),
    ]
    .map(clip)
}

#[expect(clippy::cast_sign_loss, reason = "clamped to a byte")]
fn clip(value: i32) -> u8 {
    value.clamp(0, 255) as u8
}
