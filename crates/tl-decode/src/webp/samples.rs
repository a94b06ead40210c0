//! The samples of a frame: two rows of macroblocks at a time, and what becomes of complete rows.

use std::ops::Range;

use tl_simd::Level;
use tl_simd::vp8::{CHROMA, Chroma, LUMA, PlanesMut, upsample_rgb};

use crate::options::Color;
use crate::pixel::Layout;

/// Channels of a pixel.
const RGB: usize = 3;
/// Rows of macroblocks that are held: the one that is decoded, and the one above, whose last samples
/// the filter changes.
const HELD: usize = 2;

/// The samples of two rows of macroblocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    y: Vec<u8>,
    u: Vec<u8>,
    v: Vec<u8>,
    /// Macroblocks in a row.
    columns: usize,
    /// The first row of macroblocks that is held.
    first: usize,
}

impl Samples {
    /// Bytes for rows of this many macroblocks.
    pub(super) fn bytes(columns: usize) -> usize {
        HELD * columns * (LUMA * LUMA + 2 * CHROMA * CHROMA)
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.y.capacity() + self.u.capacity() + self.v.capacity()
    }

    /// Prepares for rows of this many macroblocks.
    pub(super) fn reset(&mut self, columns: usize) {
        self.columns = columns;
        self.y.resize(HELD * columns * LUMA * LUMA, 0);
        self.u.resize(HELD * columns * CHROMA * CHROMA, 0);
        self.v.resize(HELD * columns * CHROMA * CHROMA, 0);
    }

    pub(super) fn planes(&mut self) -> PlanesMut<'_> {
        PlanesMut {
            y: &mut self.y,
            u: &mut self.u,
            v: &mut self.v,
            y_stride: self.columns * LUMA,
            uv_stride: self.columns * CHROMA,
        }
    }

    /// Makes room for row `row` of macroblocks, after the one before it, and returns its number among
    /// those held.
    pub(super) fn begin(&mut self, row: usize) -> usize {
        if row < HELD {
            self.first = 0;
            return row;
        }
        for plane in [&mut self.y, &mut self.u, &mut self.v] {
            let half = plane.len() / HELD;
            let (first, second) = plane.split_at_mut(half);
            first.copy_from_slice(second);
        }
        self.first = row + 1 - HELD;
        HELD - 1
    }

    /// A row of luma, by its number in the frame.
    pub(super) fn luma(&self, row: usize) -> &[u8] {
        self.row(&self.y, LUMA, row)
    }

    /// A row of each chroma plane, by its number in the frame.
    pub(super) fn chroma(&self, row: usize) -> [&[u8]; 2] {
        [&self.u, &self.v].map(|plane| self.row(plane, CHROMA, row))
    }

    fn row<'a>(&self, plane: &'a [u8], side: usize, row: usize) -> &'a [u8] {
        let stride = self.columns * side;
        &plane[(row - self.first * side) * stride..][..stride]
    }
}

/// The sides of a frame, and the part of it that is wanted.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Width and height of the frame.
    pub(super) size: (usize, usize),
    pub(super) columns: Range<usize>,
    pub(super) rows: Range<usize>,
}

impl Wanted {
    /// Width and height of the frame's chroma.
    pub(super) fn chroma_size(&self) -> (usize, usize) {
        (self.size.0.div_ceil(2), self.size.1.div_ceil(2))
    }
}

/// Takes complete rows of samples, from top to bottom.
pub(super) trait RowSink {
    /// Rows of luma above `luma_end` and of chroma above `chroma_end` are complete.
    fn rows(&mut self, samples: &Samples, luma_end: usize, chroma_end: usize);
}

/// Makes pixels of rows of samples.
pub(super) struct PixelWriter<'a> {
    level: Level,
    wanted: Wanted,
    color: Color,
    /// A row of RGB, for other colours.
    rgb: &'a mut Vec<u8>,
    image: std::slice::ChunksExactMut<'a, u8>,
    /// The row that is written next.
    next: usize,
}

impl<'a> PixelWriter<'a> {
    /// Writes into `image`, which has room for exactly what is wanted.
    pub(super) fn new(
        level: Level,
        wanted: Wanted,
        color: Color,
        rgb: &'a mut Vec<u8>,
        image: &'a mut [u8],
    ) -> Self {
        let width = wanted.columns.len();
        rgb.resize(width * RGB, 0);
        let next = wanted.rows.start;
        let image = image.chunks_exact_mut(width * usize::from(color.channels()));
        Self { level, wanted, color, rgb, image, next }
    }

    fn write(&mut self, samples: &Samples) {
        let Some(out) = self.image.next() else { return };
        let (chroma_width, chroma_height) = self.wanted.chroma_size();
        let near = self.next / 2;
        let far = if self.next.is_multiple_of(2) { near.saturating_sub(1) } else { near + 1 };
        let far = samples.chroma(far.min(chroma_height - 1));
        let near = samples.chroma(near);
        let [u, v] = [0, 1].map(|plane| Chroma {
            near: &near[plane][..chroma_width],
            far: &far[plane][..chroma_width],
        });
        let luma = samples.luma(self.next);
        let columns = self.wanted.columns.clone();
        if self.color == Color::Rgb {
            upsample_rgb(self.level, luma, u, v, columns, out);
        } else {
            upsample_rgb(self.level, luma, u, v, columns, self.rgb);
            Layout::Rgb.convert(self.rgb, out, self.color);
        }
    }
}

impl RowSink for PixelWriter<'_> {
    fn rows(&mut self, samples: &Samples, luma_end: usize, chroma_end: usize) {
        // An odd row needs the row of chroma below, unless it is the last.
        let is_last = chroma_end >= self.wanted.chroma_size().1;
        let by_chroma = if is_last { usize::MAX } else { (2 * chroma_end).saturating_sub(1) };
        let end = luma_end.min(by_chroma).min(self.wanted.rows.end);
        while self.next < end {
            self.write(samples);
            self.next += 1;
        }
    }
}
