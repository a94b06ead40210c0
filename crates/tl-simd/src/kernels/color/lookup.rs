//! Tables of 256 bytes applied to samples, and channels exchanged.

use super::blocks::{self, Map};
use crate::Level;
use crate::vector::color::ColorSimd;
use crate::vector::{RGB, dispatch};

/// Replaces every sample by its entry in `table`.
pub fn lookup(level: Level, table: &[u8; 256], samples: &mut [u8]) {
    dispatch!(level, scalar => define(table, samples), simd => run(simd, table, samples));
}

/// Replaces every sample of each channel by its entry in the channel's table.
///
/// # Panics
///
/// When `pixels` is not a whole number of RGB pixels.
pub fn lookup_channels(level: Level, tables: &[[u8; 256]; RGB], pixels: &mut [u8]) {
    assert!(pixels.len().is_multiple_of(RGB), "whole pixels");
    dispatch!(
        level,
        scalar => define_channels(tables, pixels),
        simd => run_channels(simd, tables, pixels),
    );
}

/// Puts channel `order[i]` of every pixel in place `i`, as torchvision's `permute_channels` does.
///
/// # Panics
///
/// When `pixels` is not a whole number of RGB pixels, or a number in `order` is not below 3.
pub fn permute(level: Level, order: [u8; RGB], pixels: &mut [u8]) {
    let order = order.map(usize::from);
    assert!(order.iter().all(|&channel| channel < RGB), "channels {order:?} of an RGB pixel");
    blocks::map(level, pixels, &Permutation(order));
}

struct Permutation([usize; RGB]);

impl Map for Permutation {
    fn define(&self, pixel: [u8; RGB]) -> [u8; RGB] {
        self.0.map(|channel| pixel[channel])
    }

    #[inline(always)]
    fn run<S: ColorSimd>(&self, _: S, planes: [S::Bytes; RGB]) -> [S::Bytes; RGB] {
        let [first, second, third] = self.0;
        [planes[first], planes[second], planes[third]]
    }
}

fn define(table: &[u8; 256], samples: &mut [u8]) {
    for sample in samples {
        *sample = table[usize::from(*sample)];
    }
}

fn define_channels(tables: &[[u8; 256]; RGB], pixels: &mut [u8]) {
    for pixel in pixels.as_chunks_mut::<RGB>().0 {
        for (sample, table) in pixel.iter_mut().zip(tables) {
            *sample = table[usize::from(*sample)];
        }
    }
}

#[inline(always)]
fn run<S: ColorSimd>(simd: S, table: &[u8; 256], samples: &mut [u8]) {
    let prepared = simd.table(table);
    let mut chunks = samples.chunks_exact_mut(S::PIXELS);
    for chunk in &mut chunks {
        simd.store_bytes(simd.lookup(&prepared, simd.load_bytes(chunk)), chunk);
    }
    define(table, chunks.into_remainder());
}

#[inline(always)]
fn run_channels<S: ColorSimd>(simd: S, tables: &[[u8; 256]; RGB], pixels: &mut [u8]) {
    let [red_table, green_table, blue_table] = tables;
    let prepared = [simd.table(red_table), simd.table(green_table), simd.table(blue_table)];
    let mut chunks = pixels.chunks_exact_mut(S::PIXELS * RGB);
    for chunk in &mut chunks {
        let [red, green, blue] = simd.deinterleave(chunk);
        let found = [
            simd.lookup(&prepared[0], red),
            simd.lookup(&prepared[1], green),
            simd.lookup(&prepared[2], blue),
        ];
        simd.interleave(found, chunk);
    }
    define_channels(tables, chunks.into_remainder());
}
