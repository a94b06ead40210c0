//! Reading the source around a place, and rows on their way out.

use super::PIECE;
use crate::Level;
use crate::kernels::interleave::interleave;
use crate::kernels::resample::ImageView;
use crate::vector::RGB;
use crate::vector::gather::{GatherSimd, Reachable};

/// Rows of pixels, `stride` bytes apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    data: &'a [u8],
    /// The same, where 32-bit offsets are enough.
    near: Option<Reachable<'a>>,
    stride: usize,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// A number for each pixel of a piece.
pub(super) type Words = [u32; PIECE];

impl<'a> Source<'a> {
    /// The source of a warp of 8-bit samples whose output of `size` fills `out`.
    pub(super) fn of_bytes(src: ImageView<'a>, size: (u32, u32), out: &[u8]) -> Self {
        assert!(matches!(src.channels, 1 | RGB), "{} channels; 1 or 3 are warped", src.channels);
        Self::new(src, size, out)
    }

    /// The same of pixels of any size.
    pub(super) fn new(src: ImageView<'a>, size: (u32, u32), out: &[u8]) -> Self {
        let need = (size.0 as usize).checked_mul(size.1 as usize);
        let need = need.and_then(|pixels| pixels.checked_mul(src.channels));
        assert_eq!(need, Some(out.len()), "the output is {} by {} pixels", size.0, size.1);
        let ImageView { data, width, height, row_bytes: stride, .. } = src;
        Self { data, near: Reachable::new(data), stride, width, height }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// `N` bytes from pixel `column` of `row` on; zeros after the end of the data, and for places
    /// outside.
    #[inline(always)]
    pub(super) fn load<const N: usize, const C: usize>(&self, column: u32, row: u32) -> [u8; N] {
        let at = (row as usize).wrapping_mul(self.stride).wrapping_add(column as usize * C);
        let rest = self.data.get(at..).unwrap_or_default();
        rest.first_chunk().copied().unwrap_or_else(
            #[cold]
            || {
                let mut bytes = [0; N];
                let held = rest.iter().take(N);
                bytes.iter_mut().zip(held).for_each(|(byte, held)| *byte = *held);
                bytes
            },
        )
    }

    /// The `bytes` from pixel `column` of `row` on.
    pub(super) fn pixels<const C: usize>(&self, column: u32, row: u32, bytes: usize) -> &'a [u8] {
        &self.data[row as usize * self.stride + column as usize * C..][..bytes]
    }

    /// The `count` bytes from byte `first` of pixel `column` of `row` on, for pixels of `size` bytes.
    #[inline(always)]
    pub(super) fn bytes(
        &self,
        size: usize,
        column: u32,
        row: u32,
        first: usize,
        count: usize,
    ) -> &'a [u8] {
        let at = row as usize * self.stride + column as usize * size + first;
        &self.data[at..at + count]
    }

    /// The offsets of pixels, with the data that they are of.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the data, and so its rows, has 31 bits")]
    fn offsets<const C: usize>(
        &self,
        columns: &Words,
        rows: &Words,
    ) -> Option<(Reachable<'a>, Words)> {
        let near = self.near?;
        let stride = self.stride as u32;
        let channels = C as u32;
        let mut offsets = [0; PIECE];
        for ((offset, column), row) in offsets.iter_mut().zip(columns).zip(rows) {
            *offset = row.wrapping_mul(stride).wrapping_add(column.wrapping_mul(channels));
        }
        Some((near, offsets))
    }

    /// Pixels as words with the first channel lowest, and anything above the last one. Those
    /// outside are anything.
    #[inline(always)]
    pub(super) fn words<G: GatherSimd, const C: usize>(
        &self,
        gather: G,
        columns: &Words,
        rows: &Words,
        out: &mut Words,
    ) {
        if let Some((data, offsets)) = self.offsets::<C>(columns, rows) {
            for (offsets, out) in offsets.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
                gather.words(data, offsets, out);
            }
        } else {
            for ((&column, &row), out) in columns.iter().zip(rows).zip(out) {
                *out = u32::from_le_bytes(self.load::<4, C>(column, row));
            }
        }
    }

    /// The same of each pixel and of the one to its right.
    #[inline(always)]
    pub(super) fn pairs<G: GatherSimd, const C: usize>(
        &self,
        gather: G,
        columns: &Words,
        rows: &Words,
        [left, right]: &mut [Words; 2],
    ) {
        if let Some((data, offsets)) = self.offsets::<C>(columns, rows) {
            let outs = left.as_chunks_mut().0.iter_mut().zip(right.as_chunks_mut().0);
            for (offsets, (left, right)) in offsets.as_chunks().0.iter().zip(outs) {
                gather.pairs::<C>(data, offsets, [left, right]);
            }
        } else {
            for (lane, (&column, &row)) in columns.iter().zip(rows).enumerate() {
                left[lane] = u32::from_le_bytes(self.load::<4, C>(column, row));
                right[lane] = u32::from_le_bytes(self.load::<4, C>(column + 1, row));
            }
        }
    }
}

/// One channel of a pixel as a word.
#[inline(always)]
pub(super) fn sample(word: u32, channel: usize) -> i32 {
    const BITS: [u32; RGB] = [0, 8, 16];
    ((word >> BITS[channel]) & 0xFF).cast_signed()
}

/// Rows of an output, each made in planes of whole pieces.
#[derive(Debug)]
pub(super) struct Rows<'a, const C: usize> {
    level: Level,
    planes: [&'a mut [u8]; C],
    out: &'a mut [u8],
    pub(super) width: u32,
}

impl<'a, const C: usize> Rows<'a, C> {
    /// Rows of `width` pixels into `out`, with `scratch` for the planes.
    pub(super) fn new(
        scratch: &'a mut Vec<u8>,
        level: Level,
        width: u32,
        out: &'a mut [u8],
    ) -> Self {
        let stride = (width as usize).next_multiple_of(PIECE);
        if scratch.len() < C * stride {
            scratch.resize(C * stride, 0);
        }
        let mut planes = scratch.chunks_exact_mut(stride);
        let planes = [(); C].map(|()| planes.next().expect("as many planes as channels"));
        Self { level, planes, out, width }
    }

    /// The number of rows.
    pub(super) fn height(&self) -> u32 {
        let rows = self.out.len() / (self.width as usize * C);
        u32::try_from(rows).expect("as many rows as the output has")
    }

    /// The piece of `channel` that begins at column `x`.
    #[inline(always)]
    pub(super) fn piece(&mut self, channel: usize, x: u32) -> &mut [u8; PIECE] {
        let piece = self.planes[channel].get_mut(x as usize..).and_then(<[u8]>::first_chunk_mut);
        piece.expect("planes consist of whole pieces")
    }

    /// Puts the planes into row `y`.
    pub(super) fn finish(&mut self, y: u32) {
        let row_bytes = self.width as usize * C;
        let out = &mut self.out[y as usize * row_bytes..][..row_bytes];
        let width = self.width as usize;
        let planes = self.planes.each_ref().map(|plane| &plane[..width]);
        match planes.as_slice() {
            [red, green, blue] => interleave(self.level, [red, green, blue], out),
            [grey] => out.copy_from_slice(grey),
            _ => unreachable!("1 or 3 channels"),
        }
    }
}
