//! The operations that the kernels of colours need from a vector unit.

use super::Simd;

/// A level's bytes looked up in tables, and as floats.
pub(crate) trait ColorSimd: Simd {
    /// Whether preparing a table takes no more than loading it.
    const CHEAP_TABLES: bool;

    /// A table of 256 bytes in the form the level looks up in.
    type Table: Copy;

    /// Prepares a table.
    fn table(self, entries: &[u8; 256]) -> Self::Table;

    /// The entry of each byte.
    fn lookup(self, table: &Self::Table, bytes: Self::Bytes) -> Self::Bytes;

    /// Bytes as floats, in an order of the level's own.
    fn to_floats(self, bytes: Self::Bytes) -> [Self::Floats; 4];

    /// Floats truncated and clipped to bytes, NaN to 0: undoes
    /// [`ColorSimd::to_floats`].
    fn truncate(self, floats: [Self::Floats; 4]) -> Self::Bytes;

    /// The same number everywhere.
    fn splat_float(self, value: f32) -> Self::Floats;

    /// `a + b`.
    fn add_floats(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// `a - b`.
    fn sub_floats(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// `a * b`.
    fn mul_floats(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// `a * b + c`, rounded once.
    fn fused(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;

    /// The whole numbers below or at `values`.
    fn floor(self, values: Self::Floats) -> Self::Floats;
}
