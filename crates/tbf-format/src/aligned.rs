//! Bytes in memory of our own, at addresses that are multiples of 64.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The format's alignment: of regions, columns and vectors.
pub const ALIGNMENT: usize = 64;

/// The next multiple of 64, unless that takes more than 64 bits.
pub(crate) fn align_up(offset: u64) -> Option<u64> {
    offset.checked_next_multiple_of(ALIGNMENT as u64)
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C, align(64))]
struct Block([u8; 64]);

/// Bytes whose first one lies at a multiple of 64, so that columns and vectors of a segment held
/// in them can be lent as slices of numbers.
///
/// ```
/// let file = vec![0u8; 100];
/// let aligned = tbf_format::AlignedBytes::copy_of(&file);
/// assert_eq!(aligned.as_bytes(), file);
/// assert_eq!(aligned.as_bytes().as_ptr() as usize % 64, 0);
/// ```
#[derive(Clone)]
pub struct AlignedBytes {
    blocks: Vec<Block>,
    len: usize,
}

impl AlignedBytes {
    /// `len` zero bytes.
    pub fn zeroed(len: usize) -> Self {
        Self { blocks: vec![Block([0; 64]); len.div_ceil(64)], len }
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut copy = Self::zeroed(bytes.len());
        copy.as_mut_bytes().copy_from_slice(bytes);
        copy
    }

    /// Appends `more` zero bytes and lends them. The bytes before them end at a multiple of 64.
    pub(crate) fn grow(&mut self, more: usize) -> &mut [u8] {
        let start = self.len;
        self.len += more;
        self.blocks.resize(self.len.div_ceil(64), Block([0; 64]));
        self.as_mut_bytes().get_mut(start..).unwrap_or_default()
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.blocks.as_bytes().get(..self.len).unwrap_or_default()
    }

    /// The bytes, to be changed.
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        self.blocks.as_mut_bytes().get_mut(..self.len).unwrap_or_default()
    }
}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBytes").field("len", &self.len).finish_non_exhaustive()
    }
}
