//! Sums of products with and without instructions that round once.

use super::weights::fused;

/// How a level multiplies and adds.
pub(super) trait Arithmetic {
    /// `a * b + c`, rounded once or twice.
    fn roughly(a: f32, b: f32, c: f32) -> f32;
    /// `a * b + c`, rounded once.
    fn exactly(a: f32, b: f32, c: f32) -> f32;
}

/// Without fused instructions.
pub(super) struct Plain;

impl Arithmetic for Plain {
    #[inline(always)]
    fn roughly(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }

    #[inline(always)]
    fn exactly(a: f32, b: f32, c: f32) -> f32 {
        fused(a, b, c)
    }
}

/// With fused instructions, which every vector level has.
pub(super) struct Fused;

impl Arithmetic for Fused {
    #[inline(always)]
    fn roughly(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn exactly(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}
