//! Walks over the pixels of an image, in vectors of planes or in blocks.

use crate::Level;
use crate::vector::color::ColorSimd;
use crate::vector::{RGB, Simd, dispatch};

/// Pixels of a block: as many as the widest level takes apart at once.
pub(super) const BLOCK: usize = 64;

/// The samples of one channel of a block.
pub(super) type Plane = [u8; BLOCK];

/// The samples of a block, channel by channel.
pub(super) type Planes = [Plane; RGB];

/// A function of each pixel, in vectors.
pub(super) trait Map {
    /// The definition.
    fn define(&self, pixel: [u8; RGB]) -> [u8; RGB];

    /// The same for a vector of pixels.
    fn run<S: ColorSimd>(&self, simd: S, planes: [S::Bytes; RGB]) -> [S::Bytes; RGB];
}

/// Replaces every pixel by `map` of it.
pub(super) fn map(level: Level, pixels: &mut [u8], map: &impl Map) {
    assert!(pixels.len().is_multiple_of(RGB), "whole pixels");
    dispatch!(level, scalar => define_map(pixels, map), simd => run_map(simd, pixels, map));
}

fn define_map(pixels: &mut [u8], map: &impl Map) {
    for pixel in pixels.as_chunks_mut::<RGB>().0 {
        *pixel = map.define(*pixel);
    }
}

#[inline(always)]
fn run_map<S: ColorSimd>(simd: S, pixels: &mut [u8], map: &impl Map) {
    let mut chunks = pixels.chunks_exact_mut(S::PIXELS * RGB);
    for chunk in &mut chunks {
        simd.interleave(map.run(simd, simd.deinterleave(chunk)), chunk);
    }
    define_map(chunks.into_remainder(), map);
}

/// The sum over all pixels of the first channel of their `map`.
pub(super) fn sum(level: Level, pixels: &[u8], map: &impl Map) -> u64 {
    assert!(pixels.len().is_multiple_of(RGB), "whole pixels");
    dispatch!(level, scalar => define_sum(pixels, map), simd => run_sum(simd, pixels, map))
}

fn define_sum(pixels: &[u8], map: &impl Map) -> u64 {
    pixels.as_chunks::<RGB>().0.iter().map(|&pixel| u64::from(map.define(pixel)[0])).sum()
}

#[inline(always)]
fn run_sum<S: ColorSimd>(simd: S, pixels: &[u8], map: &impl Map) -> u64 {
    let chunks = pixels.chunks_exact(S::PIXELS * RGB);
    let rest = define_sum(chunks.remainder(), map);
    let mut plane = [0; BLOCK];
    let mut total = 0;
    for chunk in chunks {
        let [first, ..] = map.run(simd, simd.deinterleave(chunk));
        simd.store_bytes(first, &mut plane[..S::PIXELS]);
        let mut sum = 0_u32;
        for &sample in &plane {
            sum += u32::from(sample);
        }
        total += u64::from(sum);
    }
    total + rest
}

/// A function of each block of pixels. Implementations are plain loops over the planes, inlined
/// into the level's frame, where they become vectors.
pub(super) trait Change {
    /// Replaces the planes of a block; results for pixels beyond the image's end are dropped.
    fn change(&self, planes: &mut Planes);
}

/// Applies `change` to every block of `pixels`.
pub(super) fn change(level: Level, pixels: &mut [u8], change: &impl Change) {
    assert!(pixels.len().is_multiple_of(RGB), "whole pixels");
    dispatch!(
        level,
        scalar => change_with(pixels, change, define_split, define_join),
        simd => change_with(
            pixels,
            change,
            #[inline(always)]
            |block, planes| split(simd, block, planes),
            #[inline(always)]
            |planes, block| join(simd, planes, block),
        ),
    );
}

#[inline(always)]
fn change_with(
    pixels: &mut [u8],
    change: &impl Change,
    split: impl Fn(&[u8], &mut Planes),
    join: impl Fn(&Planes, &mut [u8]),
) {
    let mut planes = [[0; BLOCK]; RGB];
    let mut blocks = pixels.chunks_exact_mut(BLOCK * RGB);
    for block in &mut blocks {
        split(block, &mut planes);
        change.change(&mut planes);
        join(&planes, block);
    }
    let rest = blocks.into_remainder();
    if !rest.is_empty() {
        let mut block = [0; BLOCK * RGB];
        block[..rest.len()].copy_from_slice(rest);
        split(&block, &mut planes);
        change.change(&mut planes);
        join(&planes, &mut block);
        rest.copy_from_slice(&block[..rest.len()]);
    }
}

fn define_split(block: &[u8], planes: &mut Planes) {
    let [red, green, blue] = planes;
    for (((pixel, red), green), blue) in block.chunks_exact(RGB).zip(red).zip(green).zip(blue) {
        (*red, *green, *blue) = (pixel[0], pixel[1], pixel[2]);
    }
}

fn define_join([red, green, blue]: &Planes, block: &mut [u8]) {
    for (((pixel, red), green), blue) in block.chunks_exact_mut(RGB).zip(red).zip(green).zip(blue) {
        pixel.copy_from_slice(&[*red, *green, *blue]);
    }
}

#[inline(always)]
fn split<S: Simd>(simd: S, block: &[u8], planes: &mut Planes) {
    for start in (0..BLOCK).step_by(S::PIXELS) {
        let parts = simd.deinterleave(&block[start * RGB..][..S::PIXELS * RGB]);
        for (part, plane) in parts.into_iter().zip(planes.iter_mut()) {
            simd.store_bytes(part, &mut plane[start..][..S::PIXELS]);
        }
    }
}

#[inline(always)]
fn join<S: Simd>(simd: S, planes: &Planes, block: &mut [u8]) {
    for start in (0..BLOCK).step_by(S::PIXELS) {
        let [red, green, blue] = planes;
        let parts = [
            simd.load_bytes(&red[start..][..S::PIXELS]),
            simd.load_bytes(&green[start..][..S::PIXELS]),
            simd.load_bytes(&blue[start..][..S::PIXELS]),
        ];
        simd.interleave(parts, &mut block[start * RGB..][..S::PIXELS * RGB]);
    }
}
