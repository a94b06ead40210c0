//! Moving pixels: rows mirrored, channels taken apart and put together. All exact.

use crate::Level;
use crate::vector::{RGB, Simd, dispatch};

/// The starts of steps of `step` pixels that cover `pixels`: the last one can overlap the one
/// before. None when a step is longer than the row.
pub(crate) fn starts(pixels: usize, step: usize) -> Option<impl Iterator<Item = usize>> {
    let last = pixels.checked_sub(step)?;
    Some((0..pixels).step_by(step).map(move |start| start.min(last)))
}

/// Mirrors a row of interleaved pixels of `channels` bytes each into `out`.
///
/// # Panics
///
/// When the lengths differ or are not a multiple of `channels`.
pub fn flip_row(level: Level, row: &[u8], channels: usize, out: &mut [u8]) {
    assert_eq!(row.len(), out.len(), "one output byte per byte");
    assert!(channels > 0 && row.len().is_multiple_of(channels), "whole pixels of {channels} bytes");
    dispatch!(level, scalar => define_flip(row, channels, out), simd => flip(simd, row, channels, out));
}

/// Takes a row of RGB pixels apart into its three planes.
///
/// # Panics
///
/// When `row` is not three times as long as each plane.
pub fn deinterleave(level: Level, row: &[u8], planes: [&mut [u8]; RGB]) {
    assert!(planes.iter().all(|plane| plane.len() * RGB == row.len()), "one sample per pixel");
    dispatch!(level, scalar => define_deinterleave(row, planes), simd => split(simd, row, planes));
}

/// Puts three planes together into a row of RGB pixels.
///
/// # Panics
///
/// When `row` is not three times as long as each plane.
pub fn interleave(level: Level, planes: [&[u8]; RGB], row: &mut [u8]) {
    assert!(planes.iter().all(|plane| plane.len() * RGB == row.len()), "one sample per pixel");
    dispatch!(level, scalar => define_interleave(planes, row), simd => join(simd, planes, row));
}

fn define_flip(row: &[u8], channels: usize, out: &mut [u8]) {
    for (pixel, out) in row.chunks_exact(channels).rev().zip(out.chunks_exact_mut(channels)) {
        out.copy_from_slice(pixel);
    }
}

#[inline(always)]
fn flip<S: Simd>(simd: S, row: &[u8], channels: usize, out: &mut [u8]) {
    let step = match channels {
        1 => S::PIXELS,
        RGB => S::MIRRORED,
        _ => return define_flip(row, channels, out),
    };
    let pixels = row.len() / channels;
    let Some(starts) = starts(pixels, step) else {
        return define_flip(row, channels, out);
    };
    if channels == 1 {
        for start in starts {
            let bytes = simd.load_bytes(&row[start..][..S::PIXELS]);
            simd.store_bytes(
                simd.reverse(bytes),
                &mut out[pixels - start - S::PIXELS..][..S::PIXELS],
            );
        }
        return;
    }
    for start in starts {
        let mirrored = pixels - start - S::MIRRORED;
        let out = &mut out[mirrored * RGB..][..S::MIRRORED * RGB];
        simd.mirror(&row[start * RGB..][..S::MIRRORED * RGB], out);
    }
}

fn define_deinterleave(row: &[u8], [r, g, b]: [&mut [u8]; RGB]) {
    for (((pixel, r), g), b) in row.chunks_exact(RGB).zip(r).zip(g).zip(b) {
        (*r, *g, *b) = (pixel[0], pixel[1], pixel[2]);
    }
}

#[inline(always)]
fn split<S: Simd>(simd: S, row: &[u8], mut planes: [&mut [u8]; RGB]) {
    let Some(starts) = starts(row.len() / RGB, S::PIXELS) else {
        return define_deinterleave(row, planes);
    };
    for start in starts {
        let parts = simd.deinterleave(&row[start * RGB..][..S::PIXELS * RGB]);
        for (part, plane) in parts.into_iter().zip(&mut planes) {
            simd.store_bytes(part, &mut plane[start..][..S::PIXELS]);
        }
    }
}

fn define_interleave([r, g, b]: [&[u8]; RGB], row: &mut [u8]) {
    for (((pixel, r), g), b) in row.chunks_exact_mut(RGB).zip(r).zip(g).zip(b) {
        pixel.copy_from_slice(&[*r, *g, *b]);
    }
}

#[inline(always)]
fn join<S: Simd>(simd: S, planes: [&[u8]; RGB], row: &mut [u8]) {
    let Some(starts) = starts(row.len() / RGB, S::PIXELS) else {
        return define_interleave(planes, row);
    };
    for start in starts {
        let parts = planes.map(|plane| simd.load_bytes(&plane[start..][..S::PIXELS]));
        simd.interleave(parts, &mut row[start * RGB..][..S::PIXELS * RGB]);
    }
}
