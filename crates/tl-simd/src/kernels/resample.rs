//! Resizing 8-bit images with the bits of Pillow's `Image.resize`.
//!
//! The algorithm is that of Pillow's `Resample.c`: separable, horizontal first, coefficients in
//! fixed point with 22 fraction bits, sums in 32 bits, 8-bit rows in between.
//! Samples are resampled as they are: Pillow multiplies RGBA by alpha first, this does not.

mod axis;
mod filter;
mod horizontal;
mod vertical;

use crate::Level;
use crate::vector::dispatch;
use axis::{Axis, AxisKey, PRECISION_BITS};
pub use filter::Filter;

/// Interleaved 8-bit pixels in memory.
#[derive(Clone, Copy, Debug)]
pub struct ImageView<'a> {
    data: &'a [u8],
    width: u32,
    height: u32,
    row_bytes: usize,
    channels: usize,
}

impl<'a> ImageView<'a> {
    /// An image of `height` rows that begin `row_bytes` apart in `data`.
    ///
    /// # Panics
    ///
    /// When `channels` is not 1, 3 or 4, when `row_bytes` is less than a row, or when `data` ends
    /// before the last row does.
    #[must_use]
    pub fn new(data: &'a [u8], width: u32, height: u32, row_bytes: usize, channels: usize) -> Self {
        assert!(matches!(channels, 1 | 3 | 4), "{channels} channels; 1, 3 or 4 are supported");
        let row = (width as usize).checked_mul(channels);
        let row = row.filter(|&row| row <= row_bytes).expect("a row fits into `row_bytes`");
        let need = (height as usize).checked_sub(1).map_or(Some(0), |before| {
            before.checked_mul(row_bytes).and_then(|bytes| bytes.checked_add(row))
        });
        let need = need.expect("the image fits into the address space");
        assert!(need <= data.len(), "the image needs {need} bytes, data has {}", data.len());
        Self { data, width, height, row_bytes, channels }
    }

    /// An image whose rows follow each other without gaps.
    ///
    /// # Panics
    ///
    /// As [`ImageView::new`].
    #[must_use]
    pub fn packed(data: &'a [u8], width: u32, height: u32, channels: usize) -> Self {
        Self::new(data, width, height, width as usize * channels, channels)
    }
}

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rect {
    /// The leftmost column.
    pub x: u32,
    /// The topmost row.
    pub y: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Rect {
    /// The rectangle from (0, 0) with this size.
    #[must_use]
    pub const fn of_size(width: u32, height: u32) -> Self {
        Self { x: 0, y: 0, width, height }
    }

    /// Whether the rectangle lies in an image of this size.
    #[must_use]
    pub const fn fits(&self, width: u32, height: u32) -> bool {
        let (right, bottom) = (self.x.checked_add(self.width), self.y.checked_add(self.height));
        matches!((right, bottom), (Some(right), Some(bottom)) if right <= width && bottom <= height)
    }
}

/// What to compute: Pillow's `image.crop(region).resize(resized, filter).crop(window)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resize {
    /// The part of the source that is resized; pixels outside never contribute.
    pub region: Rect,
    /// Width and height that the region is resized to.
    pub resized: (u32, u32),
    /// The part of the resized image that is wanted; nothing else is computed.
    pub window: Rect,
    /// The filter.
    pub filter: Filter,
}

/// Coefficients and scratch rows, reused from one image to the next.
///
/// Nothing is allocated when an image needs no more room than an earlier one did, and the
/// coefficients of an axis are kept while its sizes stay the same.
#[derive(Debug, Default)]
pub struct Resampler {
    horizontal: Axis,
    vertical: Axis,
    /// The last rows out of the horizontal pass; row `r` is slot `(r - origin) % slots`.
    ring: Vec<u8>,
    /// Where the rows of one vertical sum begin.
    offsets: Vec<usize>,
    out: Vec<u8>,
}

/// How many rows the horizontal pass makes at once.
const BATCH: usize = 4;

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
    /// When the region is empty or not within `src`, or the window is not within `resized`.
    pub fn run(
        &mut self,
        level: Level,
        src: ImageView<'_>,
        resize: &Resize,
        mut sink: impl FnMut(u32, &[u8]),
    ) {
        let Resize { region, resized, window, filter } = *resize;
        assert!(region.fits(src.width, src.height), "{region:?} leaves the image");
        assert!(region.width > 0 && region.height > 0, "the region is empty");
        assert!(window.fits(resized.0, resized.1), "{window:?} leaves the resized image");
        if window.width == 0 || window.height == 0 {
            return;
        }
        let columns = AxisKey {
            filter,
            input: region.width,
            output: resized.0,
            first: window.x,
            count: window.width,
        };
        let rows = AxisKey {
            filter,
            input: region.height,
            output: resized.1,
            first: window.y,
            count: window.height,
        };
        self.vertical.prepare(rows);
        let first = region.y as usize * src.row_bytes + region.x as usize * src.channels;
        let source = Rows {
            data: &src.data[first..],
            stride: src.row_bytes,
            len: region.width as usize * src.channels,
        };
        let row_len = window.width as usize * src.channels;
        self.out.resize(row_len, 0);
        if columns.is_identity() {
            let skip = window.x as usize * src.channels;
            let source = Rows { data: &source.data[skip..], len: row_len, ..source };
            self.combine_source(level, source, sink);
        } else {
            self.horizontal.prepare(columns);
            self.resample_both(level, source, src.channels, &mut sink);
        }
    }

    /// The vertical pass straight from the source.
    fn combine_source(&mut self, level: Level, source: Rows<'_>, mut sink: impl FnMut(u32, &[u8])) {
        for (y, taps) in (0..).zip(self.vertical.iter()) {
            if let Some(row) = taps.copied() {
                sink(y, source.row(row));
                continue;
            }
            self.offsets.clear();
            self.offsets.extend((0..taps.weights.len()).map(|t| (taps.start + t) * source.stride));
            combine(level, source.data, &self.offsets, taps.weights, &mut self.out);
            sink(y, &self.out);
        }
    }

    /// The horizontal pass into the ring, and the vertical pass from there.
    fn resample_both(
        &mut self,
        level: Level,
        source: Rows<'_>,
        channels: usize,
        mut sink: impl FnMut(u32, &[u8]),
    ) {
        let stride = self.out.len();
        let most_taps = self.vertical.iter().map(|taps| taps.weights.len()).max().unwrap_or(0);
        let slots = (most_taps + BATCH - 1).next_multiple_of(BATCH);
        self.ring.resize((slots * stride).max(self.ring.len()), 0);
        let last = self.vertical.taps(self.vertical.len() - 1);
        let end = last.start + last.weights.len();
        let (mut origin, mut next) = (0, 0);
        for (y, taps) in (0..).zip(self.vertical.iter()) {
            if next < taps.start {
                (origin, next) = (taps.start, taps.start);
            }
            while next < taps.start + taps.weights.len() {
                let slot = (next - origin) % slots;
                let count = BATCH.min(end - next);
                for (row, out) in
                    self.ring[slot * stride..].chunks_exact_mut(stride).take(count).enumerate()
                {
                    narrow(level, &self.horizontal, channels, source.row(next + row), out);
                }
                next += count;
            }
            self.offsets.clear();
            let slot = |row| (row - origin) % slots * stride;
            self.offsets.extend((0..taps.weights.len()).map(|t| slot(taps.start + t)));
            if let Some(row) = taps.copied() {
                sink(y, &self.ring[slot(row)..][..stride]);
            } else {
                combine(level, &self.ring, &self.offsets, taps.weights, &mut self.out);
                sink(y, &self.out);
            }
        }
    }
}

/// Rows of bytes, `stride` apart.
#[derive(Clone, Copy)]
struct Rows<'a> {
    data: &'a [u8],
    stride: usize,
    len: usize,
}

impl<'a> Rows<'a> {
    fn row(&self, index: usize) -> &'a [u8] {
        &self.data[index * self.stride..][..self.len]
    }
}

fn narrow(level: Level, axis: &Axis, channels: usize, src: &[u8], out: &mut [u8]) {
    dispatch!(level, scalar => horizontal::define(axis, channels, src, out), simd => ());
}

fn combine(level: Level, data: &[u8], offsets: &[usize], weights: &[i32], out: &mut [u8]) {
    dispatch!(level, scalar => vertical::define(data, offsets, weights, out), simd => ());
}

/// Drops the fraction of a sum and limits it to 8 bits.
fn clip(sum: i32) -> u8 {
    u8::try_from((sum >> PRECISION_BITS).clamp(0, 255)).unwrap_or(u8::MAX)
}
