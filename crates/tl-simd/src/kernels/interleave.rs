//! Moving pixels: rows mirrored, channels taken apart and put together. All exact.

use crate::Level;
use crate::vector::dispatch;

/// Bytes of an interleaved RGB pixel.
pub(crate) const RGB: usize = 3;

/// Mirrors a row of interleaved pixels of `channels` bytes each into `out`.
///
/// # Panics
///
/// When the lengths differ or are no multiple of `channels`.
pub fn flip_row(level: Level, row: &[u8], channels: usize, out: &mut [u8]) {
    assert_eq!(row.len(), out.len(), "one output byte per byte");
    assert!(channels > 0 && row.len().is_multiple_of(channels), "whole pixels of {channels} bytes");
    dispatch!(level, scalar => define_flip(row, channels, out), _simd => define_flip(row, channels, out));
}

/// Takes a row of RGB pixels apart into its three planes.
///
/// # Panics
///
/// When `row` is not three times as long as each plane.
pub fn deinterleave(level: Level, row: &[u8], planes: [&mut [u8]; RGB]) {
    assert!(planes.iter().all(|plane| plane.len() * RGB == row.len()), "one sample per pixel");
    dispatch!(level, scalar => define_deinterleave(row, planes), _simd => define_deinterleave(row, planes));
}

/// Puts three planes together into a row of RGB pixels.
///
/// # Panics
///
/// When `row` is not three times as long as each plane.
pub fn interleave(level: Level, planes: [&[u8]; RGB], row: &mut [u8]) {
    assert!(planes.iter().all(|plane| plane.len() * RGB == row.len()), "one sample per pixel");
    dispatch!(level, scalar => define_interleave(planes, row), _simd => define_interleave(planes, row));
}

fn define_flip(row: &[u8], channels: usize, out: &mut [u8]) {
    for (pixel, out) in row.chunks_exact(channels).rev().zip(out.chunks_exact_mut(channels)) {
        out.copy_from_slice(pixel);
    }
}

fn define_deinterleave(row: &[u8], [r, g, b]: [&mut [u8]; RGB]) {
    for (((pixel, r), g), b) in row.chunks_exact(RGB).zip(r).zip(g).zip(b) {
        (*r, *g, *b) = (pixel[0], pixel[1], pixel[2]);
    }
}

fn define_interleave([r, g, b]: [&[u8]; RGB], row: &mut [u8]) {
    for (((pixel, r), g), b) in row.chunks_exact_mut(RGB).zip(r).zip(g).zip(b) {
        pixel.copy_from_slice(&[*r, *g, *b]);
    }
}
