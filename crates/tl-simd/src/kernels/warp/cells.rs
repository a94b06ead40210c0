//! Reading the source around a place, and rows on their way out.

use super::PIECE;
use crate::Level;
use crate::kernels::interleave::interleave;
use crate::kernels::resample::ImageView;
use crate::vector::RGB;

/// Rows of pixels, `stride` bytes apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    data: &'a [u8],
    stride: usize,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl<'a> Source<'a> {
    /// The source of a warp whose output of `size` fills `out`.
    pub(super) fn new(src: ImageView<'a>, size: (u32, u32), out: &[u8]) -> Self {
        assert!(matches!(src.channels, 1 | RGB), "{} channels; 1 or 3 are warped", src.channels);
        let need = (size.0 as usize).checked_mul(size.1 as usize);
        let need = need.and_then(|pixels| pixels.checked_mul(src.channels));
        assert_eq!(need, Some(out.len()), "the output is {} by {} pixels", size.0, size.1);
        Self { data: src.data, stride: src.row_bytes, width: src.width, height: src.height }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// `N` bytes from pixel `column` of `row` on; zeros after the end of the data.
    #[inline(always)]
    pub(super) fn load<const N: usize, const C: usize>(&self, column: u32, row: u32) -> [u8; N] {
        let at = row as usize * self.stride + column as usize * C;
        match self.data.get(at..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => *bytes,
            None => self.load_end(at),
        }
    }

    #[cold]
    fn load_end<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        for (byte, &held) in bytes.iter_mut().zip(self.data.get(at..).unwrap_or_default()) {
            *byte = held;
        }
        bytes
    }

    /// The `width` pixels from `column` of `row` on.
    pub(super) fn pixels(&self, column: u32, row: u32, bytes: usize, channels: usize) -> &'a [u8] {
        &self.data[row as usize * self.stride + column as usize * channels..][..bytes]
    }

    /// Pixels `column` and `column + 1` of `row`, a word each with the first channel lowest.
    #[inline(always)]
    pub(super) fn pair<const C: usize>(&self, column: u32, row: u32) -> [u32; 2] {
        if C == 1 {
            let [left, right] = self.load::<2, C>(column, row);
            [u32::from(left), u32::from(right)]
        } else {
            let [a, b, c, d, e, f, g, _] = self.load::<8, C>(column, row);
            [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([d, e, f, g])]
        }
    }

    /// One pixel as a word with the first channel lowest.
    #[inline(always)]
    pub(super) fn pixel<const C: usize>(&self, column: u32, row: u32) -> u32 {
        if C == 1 {
            u32::from(self.load::<1, C>(column, row)[0])
        } else {
            u32::from_le_bytes(self.load::<4, C>(column, row))
        }
    }
}

/// One channel of words made by [`Source::pair`].
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
        piece.expect("planes are made of whole pieces")
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
