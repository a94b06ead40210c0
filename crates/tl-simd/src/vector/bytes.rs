//! The operations that sums over signed bytes need from a vector unit.

use super::Simd;
use crate::kernels::streams::STREAMS;

/// A level's sums over bytes with a sign. All are exact modulo 2^32.
pub(crate) trait ByteSimd: Simd {
    /// Partial sums of products, of bytes and of their squares.
    type ByteSums: Copy;

    /// Sums of nothing.
    fn byte_sums(self) -> Self::ByteSums;

    /// Adds `PIXELS` bytes and their products with as many others.
    fn add_bytes(self, sums: Self::ByteSums, bytes: &[u8], others: &[u8]) -> Self::ByteSums;

    /// The sums of the products, of the bytes and of their squares, for several rows.
    fn total_bytes(self, sums: [Self::ByteSums; STREAMS]) -> [[i32; STREAMS]; 3];
}
