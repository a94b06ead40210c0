//! From luma and colour differences to RGB, as JFIF defines it, in fixed point.
//!
//! The constants have 16 fraction bits and every term is rounded as in libjpeg's `jdcolor.c`, whose
//! tables this arithmetic replaces.

use crate::Level;
use crate::kernels::interleave::starts;
use crate::vector::jpeg::JpegSimd;
use crate::vector::{RGB, dispatch};

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
/// If `out` is not three times as long as each row.
pub fn ycc_to_rgb(level: Level, planes: [&[u8]; RGB], out: &mut [u8]) {
    assert!(planes.iter().all(|plane| plane.len() * RGB == out.len()), "one sample per pixel");
    dispatch!(level, scalar => define(planes, out), simd => run(simd, planes, out));
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
    dispatch!(
        level,
        scalar => define_planar(planes, out),
        simd => run_planar(simd, planes, out),
    );
}

fn define(planes: [&[u8]; RGB], out: &mut [u8]) {
    for (pixel, out) in pixels(planes).zip(out.as_chunks_mut::<RGB>().0) {
        *out = convert(pixel);
    }
}

fn define_planar(planes: [&[u8]; RGB], [red, green, blue]: [&mut [u8]; RGB]) {
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

#[inline(always)]
fn run<S: JpegSimd>(simd: S, planes: [&[u8]; RGB], out: &mut [u8]) {
    let Some(starts) = starts(planes[0].len(), S::PIXELS) else {
        return define(planes, out);
    };
    for start in starts {
        let pixels = &mut out[start * RGB..][..S::PIXELS * RGB];
        simd.interleave(convert_vectors(simd, planes, start), pixels);
    }
}

#[inline(always)]
fn run_planar<S: JpegSimd>(simd: S, planes: [&[u8]; RGB], out: [&mut [u8]; RGB]) {
    let Some(starts) = starts(planes[0].len(), S::PIXELS) else {
        return define_planar(planes, out);
    };
    let [red_out, green_out, blue_out] = out;
    for start in starts {
        let [red, green, blue] = convert_vectors(simd, planes, start);
        simd.store_bytes(red, &mut red_out[start..][..S::PIXELS]);
        simd.store_bytes(green, &mut green_out[start..][..S::PIXELS]);
        simd.store_bytes(blue, &mut blue_out[start..][..S::PIXELS]);
    }
}

/// The pixels from `start` on.
#[inline(always)]
fn convert_vectors<S: JpegSimd>(
    simd: S,
    [y, cb, cr]: [&[u8]; RGB],
    start: usize,
) -> [S::Bytes; RGB] {
    let [y, y_last] = words_at(simd, y, start);
    let [cb, cb_last] = words_at(simd, cb, start);
    let [cr, cr_last] = words_at(simd, cr, start);
    let [red, green, blue] = convert_words(simd, y, cb, cr);
    let [red_last, green_last, blue_last] = convert_words(simd, y_last, cb_last, cr_last);
    [simd.pack(red, red_last), simd.pack(green, green_last), simd.pack(blue, blue_last)]
}

#[inline(always)]
fn words_at<S: JpegSimd>(simd: S, row: &[u8], start: usize) -> [S::Words; 2] {
    simd.widen(simd.load_bytes(&row[start..][..S::PIXELS]))
}

#[inline(always)]
fn convert_words<S: JpegSimd>(simd: S, y: S::Words, cb: S::Words, cr: S::Words) -> [S::Words; RGB] {
    // 15 fraction bits: the 16th is zero except for red, where it changes none of the 256 values.
    const CR_TO_R_BEYOND_1: i16 = 13_173;
    const CB_TO_B_BEYOND_2: i16 = -7_471;
    const TO_G: [i16; 2] = [-11_277, -23_401];
    let centre = simd.splat_word(128);
    let cb = simd.sub(cb, centre);
    let cr = simd.sub(cr, centre);
    let half = simd.splat_sum(1 << 14);
    let green = simd.narrow::<15>(simd.rotate(half, cb, cr, TO_G));
    let red = simd.scale(cr, CR_TO_R_BEYOND_1);
    let blue = simd.scale(cb, CB_TO_B_BEYOND_2);
    [
        simd.add(simd.add(y, cr), red),
        simd.add(y, green),
        simd.add(simd.add(y, simd.add(cb, cb)), blue),
    ]
}
