//! Look-ups of bytes in a table of 256, for the vector levels.

use super::Simd;

/// What a level needs to replace bytes by those of a table.
pub(crate) trait LookupSimd: Simd {
    /// A table of 256 bytes in the form the level looks up in.
    type Table: Copy;

    /// Prepares a table.
    fn table(self, entries: &[u8; 256]) -> Self::Table;

    /// The entry of each byte.
    fn lookup(self, table: &Self::Table, bytes: Self::Bytes) -> Self::Bytes;
}
