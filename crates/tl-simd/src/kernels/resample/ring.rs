//! The rows between a horizontal pass and the vertical one after it.

use super::axis::{Axis, Taps, Weight};
use core::array;

/// The places of rows in a ring, which keeps those that an output row is made of.
///
/// Rows are made in groups. Row `r` of the source is in slot `(r - origin) % slots`; rows before
/// `next` were made.
pub(super) struct Ring<const GROUP: usize> {
    slots: usize,
    /// Bytes from one slot to the next.
    stride: usize,
    /// The last source row.
    last: usize,
    origin: usize,
    next: usize,
}

impl<const GROUP: usize> Ring<GROUP> {
    /// A ring without any rows yet, for the vertical pass of `axis`.
    pub(super) fn new<W: Weight>(axis: &Axis<W>, stride: usize) -> Self {
        let most_taps = axis.iter().map(|taps| taps.weights.len()).max().unwrap_or(0);
        let slots = (most_taps + GROUP - 1).next_multiple_of(GROUP);
        let last = axis.taps(axis.len() - 1).end() - 1;
        Self { slots, stride, last, origin: 0, next: 0 }
    }

    /// The size of the ring in bytes.
    pub(super) fn len(&self) -> usize {
        self.slots * self.stride
    }

    /// The source rows to make next for an output row, and the offset of the first one's slot, until
    /// all its rows were made. The slots of a group have no gap.
    pub(super) fn next_group<W: Weight>(
        &mut self,
        taps: Taps<'_, W>,
    ) -> Option<([usize; GROUP], usize)> {
        if self.next < taps.start {
            (self.origin, self.next) = (taps.start, taps.start);
        }
        if self.next >= taps.end() {
            return None;
        }
        let first = self.next;
        self.next += GROUP;
        Some((array::from_fn(|row| (first + row).min(self.last)), self.offset(first)))
    }

    /// The offset of a source row that was made.
    pub(super) fn offset(&self, row: usize) -> usize {
        (row - self.origin) % self.slots * self.stride
    }
}
