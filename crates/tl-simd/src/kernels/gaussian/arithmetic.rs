//! Sums of products with and without instructions that round once.

use super::EXACT;
use super::weights::fused;
use crate::vector::color::ColorSimd;

/// A level's multiplication and addition.
pub(super) trait Arithmetic: Copy {
    /// [`EXACT`] numbers.
    type Block: Copy;
    /// One number, in the form that blocks are multiplied with.
    type Weight: Copy;

    fn zeros(self) -> Self::Block;
    fn load(self, numbers: &[f32; EXACT]) -> Self::Block;
    fn store(self, block: Self::Block, numbers: &mut [f32; EXACT]);
    fn weight(self, weight: f32) -> Self::Weight;

    /// `block * weight + sums`, rounded once or twice.
    fn roughly(self, block: Self::Block, weight: Self::Weight, sums: Self::Block) -> Self::Block;

    /// `block * weight + sums`, rounded once.
    fn exactly(self, block: Self::Block, weight: Self::Weight, sums: Self::Block) -> Self::Block;
}

/// Without fused instructions.
#[derive(Clone, Copy)]
pub(super) struct Plain;

impl Arithmetic for Plain {
    type Block = [f32; EXACT];
    type Weight = f32;

    #[inline(always)]
    fn zeros(self) -> [f32; EXACT] {
        [0.0; EXACT]
    }

    #[inline(always)]
    fn load(self, numbers: &[f32; EXACT]) -> [f32; EXACT] {
        *numbers
    }

    #[inline(always)]
    fn store(self, block: [f32; EXACT], numbers: &mut [f32; EXACT]) {
        *numbers = block;
    }

    #[inline(always)]
    fn weight(self, weight: f32) -> f32 {
        weight
    }

    #[inline(always)]
    fn roughly(self, block: [f32; EXACT], weight: f32, mut sums: [f32; EXACT]) -> [f32; EXACT] {
        for (sum, sample) in sums.iter_mut().zip(block) {
            *sum += sample * weight;
        }
        sums
    }

    #[inline(always)]
    fn exactly(self, block: [f32; EXACT], weight: f32, mut sums: [f32; EXACT]) -> [f32; EXACT] {
        for (sum, sample) in sums.iter_mut().zip(block) {
            *sum = fused(sample, weight, *sum);
        }
        sums
    }
}

/// With fused instructions, which every vector level has: `N` vectors are a block.
///
/// By vectors and not by loops over lanes, which LLVM unrolled instead of vectorising them where
/// they were short.
#[derive(Clone, Copy)]
pub(super) struct Fused<S, const N: usize>(pub(super) S);

impl<S: ColorSimd, const N: usize> Arithmetic for Fused<S, N> {
    type Block = [S::Floats; N];
    type Weight = S::Floats;

    #[inline(always)]
    fn zeros(self) -> Self::Block {
        [self.0.splat_float(0.0); N]
    }

    #[inline(always)]
    fn load(self, numbers: &[f32; EXACT]) -> Self::Block {
        let mut block = self.zeros();
        for (floats, numbers) in block.iter_mut().zip(numbers.chunks_exact(S::FLOATS)) {
            *floats = self.0.load_floats(numbers);
        }
        block
    }

    #[inline(always)]
    fn store(self, block: Self::Block, numbers: &mut [f32; EXACT]) {
        for (floats, numbers) in block.into_iter().zip(numbers.chunks_exact_mut(S::FLOATS)) {
            self.0.store_floats(floats, numbers);
        }
    }

    #[inline(always)]
    fn weight(self, weight: f32) -> S::Floats {
        self.0.splat_float(weight)
    }

    #[inline(always)]
    fn roughly(self, block: Self::Block, weight: S::Floats, sums: Self::Block) -> Self::Block {
        self.exactly(block, weight, sums)
    }

    #[inline(always)]
    fn exactly(self, block: Self::Block, weight: S::Floats, mut sums: Self::Block) -> Self::Block {
        for (sum, samples) in sums.iter_mut().zip(block) {
            *sum = self.0.fused(samples, weight, *sum);
        }
        sums
    }
}
