//! Walks over the pixels of an image in blocks of planes.

use crate::Level;
use crate::vector::{RGB, Simd, dispatch};

/// Pixels of a block: as many as the widest level takes apart at once.
pub(super) const BLOCK: usize = 64;

/// The samples of a block, channel by channel.
pub(super) type Planes = [[u8; BLOCK]; RGB];

/// What is done to every block. Implementations are plain loops over the planes, inlined into the
/// level's frame, where they become vectors.
pub(super) trait Visit {
    /// Looks at the planes of a block; pixels beyond the image's end are black.
    fn visit(&mut self, planes: &Planes);
}

/// As [`Visit`], for kernels that change the pixels.
pub(super) trait Change {
    /// Replaces the planes of a block; what becomes of pixels beyond the image's end is dropped.
    fn change(&self, planes: &mut Planes);
}

/// Shows every block of `pixels` to `visitor`.
pub(super) fn visit(level: Level, pixels: &[u8], visitor: &mut impl Visit) {
    assert!(pixels.len().is_multiple_of(RGB), "whole pixels");
    dispatch!(
        level,
        scalar => visit_with(pixels, visitor, define_split),
        simd => visit_with(pixels, visitor, #[inline(always)] |block, planes| split(simd, block, planes)),
    );
}

/// Replaces every block of `pixels` by what `change` makes of it.
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
fn visit_with(pixels: &[u8], visitor: &mut impl Visit, split: impl Fn(&[u8], &mut Planes)) {
    let mut planes = [[0; BLOCK]; RGB];
    let blocks = pixels.chunks_exact(BLOCK * RGB);
    let rest = blocks.remainder();
    for block in blocks {
        split(block, &mut planes);
        visitor.visit(&planes);
    }
    if !rest.is_empty() {
        let mut block = [0; BLOCK * RGB];
        block[..rest.len()].copy_from_slice(rest);
        split(&block, &mut planes);
        visitor.visit(&planes);
    }
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
