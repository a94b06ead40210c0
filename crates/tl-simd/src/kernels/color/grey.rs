//! Luma in both conventions: images made grey, their mean, and mixtures of pixels with their grey.

use super::Arithmetic;
use super::blend::{Blend, Mix, Plane, clip, to_f32};
use super::blocks::{self, BLOCK, Change, Planes, Visit};
use crate::Level;
use crate::vector::RGB;

/// Makes every pixel grey: `convert("L")` of Pillow, or `rgb_to_grayscale` of torchvision on
/// tensors, in all three channels.
///
/// # Panics
///
/// When `pixels` is not a whole number of RGB pixels.
pub fn to_grey(level: Level, arithmetic: Arithmetic, pixels: &mut [u8]) {
    match arithmetic {
        Arithmetic::Pillow => blocks::change(level, pixels, &ToGrey(pillow)),
        Arithmetic::Torch => blocks::change(level, pixels, &ToGrey(torch)),
    }
}

/// The sum of the greys of all pixels, of which both conventions of adjusting contrast take the mean.
///
/// # Panics
///
/// When `pixels` is not a whole number of RGB pixels.
#[must_use]
pub fn grey_sum(level: Level, arithmetic: Arithmetic, pixels: &[u8]) -> u64 {
    match arithmetic {
        Arithmetic::Pillow => sum_with(level, pixels, pillow),
        Arithmetic::Torch => sum_with(level, pixels, torch),
    }
}

fn sum_with(level: Level, pixels: &[u8], grey: impl Fn(&Planes) -> Plane) -> u64 {
    let mut sum = Sum { grey, sum: 0 };
    blocks::visit(level, pixels, &mut sum);
    sum.sum
}

/// Moves every pixel by `factor` from its grey: `ImageEnhance.Color` of Pillow, or
/// `adjust_saturation` of torchvision on tensors.
///
/// # Panics
///
/// When `pixels` is not a whole number of RGB pixels.
pub fn blend_with_grey(level: Level, arithmetic: Arithmetic, factor: f64, pixels: &mut [u8]) {
    match (arithmetic, Blend::pillow(factor)) {
        (Arithmetic::Pillow, Blend::Fixed(mix)) => {
            blocks::change(level, pixels, &FromGrey { grey: pillow, mix });
        }
        (Arithmetic::Pillow, Blend::Exact(mix)) => {
            blocks::change(level, pixels, &FromGrey { grey: pillow, mix });
        }
        (Arithmetic::Torch, _) => {
            let mix = WeightedSum::new(factor);
            blocks::change(level, pixels, &FromGrey { grey: torch, mix });
        }
    }
}

struct ToGrey<G>(G);

impl<G: Fn(&Planes) -> Plane> Change for ToGrey<G> {
    #[inline(always)]
    fn change(&self, planes: &mut Planes) {
        *planes = [(self.0)(planes); RGB];
    }
}

struct Sum<G> {
    grey: G,
    sum: u64,
}

impl<G: Fn(&Planes) -> Plane> Visit for Sum<G> {
    #[inline(always)]
    fn visit(&mut self, planes: &Planes) {
        let grey = (self.grey)(planes);
        self.sum += u64::from(grey.iter().map(|&grey| u32::from(grey)).sum::<u32>());
    }
}

struct FromGrey<G, M> {
    grey: G,
    mix: M,
}

impl<G: Fn(&Planes) -> Plane, M: Mix> Change for FromGrey<G, M> {
    #[inline(always)]
    fn change(&self, planes: &mut Planes) {
        let grey = (self.grey)(planes);
        for samples in planes {
            self.mix.mix(&grey, samples);
        }
    }
}

/// ITU-R 601 luma as `L24` of Pillow's `Convert.c` rounds it: 16 fraction bits.
#[expect(clippy::cast_possible_truncation, reason = "the weights add up to 65536")]
#[inline(always)]
fn pillow([red, green, blue]: &Planes) -> Plane {
    let mut grey = [0; BLOCK];
    for (((grey, &red), &green), &blue) in grey.iter_mut().zip(red).zip(green).zip(blue) {
        let weighted =
            u32::from(red) * 19_595 + u32::from(green) * 38_470 + u32::from(blue) * 7_471;
        *grey = ((weighted + 0x8000) >> 16) as u8;
    }
    grey
}

/// The weights of torchvision's `rgb_to_grayscale`, as PyTorch rounds them. They add up to 0.9999.
const RED: f32 = 0.2989;
const GREEN: f32 = 0.587;
const BLUE: f32 = 0.114;

/// `r.mul(0.2989).add_(g, alpha=0.587).add_(b, alpha=0.114)` truncated: each sum is fused with its
/// product.
#[inline(always)]
fn torch([red, green, blue]: &Planes) -> Plane {
    let mut grey = [0; BLOCK];
    for (((grey, &red), &green), &blue) in grey.iter_mut().zip(red).zip(green).zip(blue) {
        let with_green = f32::from(green).mul_add(GREEN, f32::from(red) * RED);
        *grey = clip(f32::from(blue).mul_add(BLUE, with_green));
    }
    grey
}

/// PyTorch's `samples.mul(factor).add_(grey, alpha=1 - factor)`, clipped and truncated.
#[derive(Clone, Copy)]
struct WeightedSum {
    factor: f32,
    rest: f32,
}

impl WeightedSum {
    fn new(factor: f64) -> Self {
        Self { factor: to_f32(factor), rest: to_f32(1.0 - factor) }
    }
}

impl Mix for WeightedSum {
    #[inline(always)]
    fn mix(&self, grey: &Plane, samples: &mut Plane) {
        for (sample, &grey) in samples.iter_mut().zip(grey) {
            *sample = clip(f32::from(grey).mul_add(self.rest, f32::from(*sample) * self.factor));
        }
    }
}
