//! Resizing 8-bit images with the bits of Pillow's `Image.resize`, or of torch's `interpolate`.
//!
//! The algorithm is that of `Resample.c` in Pillow 13: separable, coefficients in fixed point with
//! 22 fraction bits, sums in 32 bits, 8-bit rows in between, horizontal first unless the height
//! shrinks by more than twice as many pixels as the width.
//! torch's coefficients have fewer bits, and are extended to these with zeros, which changes no sum.
//! [`Resampler`] takes samples as they are; Pillow multiplies RGBA by alpha first ([`premultiply`]).
//! [`WideResampler`] is that for samples of 16 bits and floats.

mod alpha;
mod axis;
mod filter;
mod geometry;
mod horizontal;
mod pick;
mod program;
mod ring;
mod vertical;
mod weights;
mod wide;

use crate::Level;
use crate::vector::ROWS;
pub use alpha::{premultiply, unpremultiply};
use axis::Axis;
pub(crate) use axis::{PRECISION_BITS, ROUND};
use core::array;
pub use filter::{Filter, TensorFilter};
pub use geometry::{Area, ImageView, Rect, Resize, ResizeArea};
use horizontal::Horizontal;
use pick::Picker;
use ring::Ring;
use vertical::Column;
pub use weights::{WeightedSum, Weights};
pub use wide::WideResampler;

/// Coefficients and scratch rows, reused from one image to the next.
///
/// Nothing is allocated when an image needs no more room than an earlier one did, and the
/// coefficients of an axis are kept while its sizes stay the same.
#[derive(Debug, Default)]
pub struct Resampler {
    horizontal: Horizontal,
    picker: Picker,
    vertical: Axis,
    column: Column,
    /// Rows between the passes.
    between: Vec<u8>,
    out: Vec<u8>,
}

impl Resampler {
    /// A resampler without any memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Hands each row of the window, counted from 0, to `sink`, in order.
    ///
    /// # Panics
    ///
    /// As [`Resize::source`], and when `src` does not hold all of it.
    pub fn run(
        &mut self,
        level: Level,
        src: ImageView<'_>,
        resize: &Resize,
        sink: impl FnMut(u32, &[u8]),
    ) {
        self.run_area(level, src, &(*resize).into(), sink);
    }

    /// [`Resampler::run`] for an area whose edges may lie within pixels.
    ///
    /// # Panics
    ///
    /// As [`ResizeArea::source`], and when `src` does not hold all of it, or does not have 1, 3 or 4
    /// channels.
    pub fn run_area(
        &mut self,
        level: Level,
        src: ImageView<'_>,
        resize: &ResizeArea,
        sink: impl FnMut(u32, &[u8]),
    ) {
        let channels = src.channels;
        assert!(matches!(channels, 1 | 3 | 4), "{channels} channels; 1, 3 or 4 are supported");
        let Some([columns, rows]) = resize.axes() else { return };
        let rect = resize.source();
        let source = Source {
            data: src.from(&rect),
            stride: src.row_bytes,
            len: rect.width as usize * src.channels,
            channels: src.channels,
        };
        let columns = columns.key;
        let rows = rows.key;
        self.vertical.prepare(rows);
        if columns.is_identity() {
            self.vertical_only(level, source, sink);
            return;
        }
        if columns.filter.copies() {
            self.picker.prepare(level, columns, source.channels, source.len);
            self.pick(level, source, columns.count as usize * source.channels, sink);
            return;
        }
        self.horizontal.axis.prepare(columns);
        if resize.vertical_first() {
            self.vertical_then_horizontal(level, source, sink);
        } else {
            self.horizontal_then_vertical(level, source, sink);
        }
    }

    fn vertical_only(
        &mut self,
        level: Level,
        source: Source<'_>,
        mut sink: impl FnMut(u32, &[u8]),
    ) {
        let out = grown(&mut self.out, source.len);
        for (y, taps) in (0..).zip(self.vertical.iter()) {
            if let Some(row) = taps.copied() {
                sink(y, source.row(row));
            } else {
                let offsets = (taps.start..).map(|row| row * source.stride);
                self.column.combine(level, source.data, offsets, taps.weights, out);
                sink(y, out);
            }
        }
    }

    /// Makes each source row once, however often it is repeated.
    fn pick(
        &mut self,
        level: Level,
        source: Source<'_>,
        out_bytes: usize,
        mut sink: impl FnMut(u32, &[u8]),
    ) {
        let out = grown(&mut self.out, out_bytes);
        let mut made = None;
        for (y, taps) in (0..).zip(self.vertical.iter()) {
            if made != Some(taps.start) {
                self.picker.run(level, source.channels, source.row(taps.start), out);
                made = Some(taps.start);
            }
            sink(y, out);
        }
    }

    /// Keeps the last rows out of the horizontal pass in a ring for the vertical one.
    fn horizontal_then_vertical(
        &mut self,
        level: Level,
        source: Source<'_>,
        mut sink: impl FnMut(u32, &[u8]),
    ) {
        let stride = self.horizontal.stride(source.channels);
        let mut ring = Ring::new(&self.vertical, stride);
        let between = grown(&mut self.between, ring.len());
        let out = grown(&mut self.out, self.horizontal.axis.len() * source.channels);
        self.horizontal.prepare(level, source.channels, source.len);
        for (y, taps) in (0..).zip(self.vertical.iter()) {
            while let Some((rows, offset)) = ring.next_group(taps) {
                let rows = rows.map(|row| source.row(row));
                let out = split_rows(&mut between[offset..], stride);
                self.horizontal.narrow(level, source.channels, rows, out);
            }
            if let Some(row) = taps.copied() {
                sink(y, &between[ring.offset(row)..][..out.len()]);
            } else {
                let offsets = (taps.start..).map(|row| ring.offset(row));
                self.column.combine(level, between, offsets, taps.weights, out);
                sink(y, out);
            }
        }
    }

    /// Makes a few whole rows by the vertical pass and narrows them.
    fn vertical_then_horizontal(
        &mut self,
        level: Level,
        source: Source<'_>,
        mut sink: impl FnMut(u32, &[u8]),
    ) {
        let stride = self.horizontal.stride(source.channels);
        let row_len = self.horizontal.axis.len() * source.channels;
        let rows = grown(&mut self.between, ROWS * source.len);
        let out = grown(&mut self.out, ROWS * stride);
        self.horizontal.prepare(level, source.channels, source.len);
        let mut next = 0;
        for y in (0..self.vertical.len()).step_by(ROWS) {
            let count = ROWS.min(self.vertical.len() - y);
            for (row, y) in rows.chunks_exact_mut(source.len).zip(y..y + count) {
                let taps = self.vertical.taps(y);
                let offsets = (taps.start..).map(|row| row * source.stride);
                self.column.combine(level, source.data, offsets, taps.weights, row);
            }
            let rows = array::from_fn(|row| &rows[row.min(count - 1) * source.len..][..source.len]);
            self.horizontal.narrow(level, source.channels, rows, split_rows(out, stride));
            for row in out.chunks_exact(stride).take(count) {
                sink(next, &row[..row_len]);
                next += 1;
            }
        }
    }
}

/// The first `len` bytes of `buffer`, which grows to have them.
fn grown(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}

/// The first four rows of `len` bytes.
fn split_rows(rows: &mut [u8], len: usize) -> [&mut [u8]; ROWS] {
    let (a, rest) = rows.split_at_mut(len);
    let (b, rest) = rest.split_at_mut(len);
    let (c, rest) = rest.split_at_mut(len);
    [a, b, c, &mut rest[..len]]
}

/// Rows of pixels, `stride` bytes apart.
#[derive(Clone, Copy)]
struct Source<'a> {
    data: &'a [u8],
    stride: usize,
    len: usize,
    channels: usize,
}

impl<'a> Source<'a> {
    fn row(&self, index: usize) -> &'a [u8] {
        &self.data[index * self.stride..][..self.len]
    }
}

/// Drops the fraction of a sum and limits it to 8 bits.
fn clip(sum: i32) -> u8 {
    u8::try_from((sum >> PRECISION_BITS).clamp(0, 255)).unwrap_or(u8::MAX)
}
