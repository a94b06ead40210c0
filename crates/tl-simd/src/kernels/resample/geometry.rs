//! Images, rectangles, and what part of an image becomes what.

use super::Filter;
use super::axis::{AxisKey, SMALL_SIDES, Span};

/// Interleaved 8-bit pixels in memory.
#[derive(Clone, Copy, Debug)]
pub struct ImageView<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) row_bytes: usize,
    pub(crate) channels: usize,
    /// The place of its first pixel in the image it is a part of.
    pub(super) origin: (u32, u32),
}

impl<'a> ImageView<'a> {
    /// An image of `height` rows that begin `row_bytes` apart in `data`.
    ///
    /// # Panics
    ///
    /// When `channels` is not 1, 3 or 4, when a row is longer than `row_bytes` or 4 GiB, or when
    /// `data` ends before the last row does.
    #[must_use]
    pub fn new(data: &'a [u8], width: u32, height: u32, row_bytes: usize, channels: usize) -> Self {
        assert!(matches!(channels, 1 | 3 | 4), "{channels} channels; 1, 3 or 4 are supported");
        Self::of_pixels(data, width, height, row_bytes, channels)
    }

    /// As [`ImageView::new`], of pixels of any size: `channels` is their bytes. Kernels that compute
    /// with 8-bit samples do not take them, but those that move pixels do.
    ///
    /// # Panics
    ///
    /// When `channels` is not 1 to 16; otherwise as [`ImageView::new`].
    #[must_use]
    pub fn of_pixels(
        data: &'a [u8],
        width: u32,
        height: u32,
        row_bytes: usize,
        channels: usize,
    ) -> Self {
        assert!((1..=16).contains(&channels), "pixels of {channels} bytes; 1 to 16 are supported");
        let row = (width as usize).checked_mul(channels);
        let row = row.filter(|&row| row <= row_bytes).expect("a row fits into `row_bytes`");
        assert!(u32::try_from(row).is_ok(), "a row of {row} bytes is longer than 4 GiB");
        let need = (height as usize).checked_sub(1).map_or(Some(0), |before| {
            before.checked_mul(row_bytes).and_then(|bytes| bytes.checked_add(row))
        });
        let need = need.expect("the image fits into the address space");
        assert!(need <= data.len(), "the image needs {need} bytes, data has {}", data.len());
        Self { data, width, height, row_bytes, channels, origin: (0, 0) }
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

    /// The same pixels as the part of a larger image that begins at (`x`, `y`): regions are then
    /// in coordinates of that image.
    #[must_use]
    pub const fn at(self, x: u32, y: u32) -> Self {
        Self { origin: (x, y), ..self }
    }

    /// Width and height in pixels.
    #[must_use]
    pub const fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Bytes of a pixel.
    #[must_use]
    pub const fn channels(&self) -> usize {
        self.channels
    }

    /// A row of pixels, counted from the first one in memory.
    ///
    /// # Panics
    ///
    /// When `y` is not below the height.
    #[must_use]
    pub fn row(&self, y: u32) -> &'a [u8] {
        assert!(y < self.height, "row {y} of {}", self.height);
        &self.data[y as usize * self.row_bytes..][..self.width as usize * self.channels]
    }

    /// The pixels of `rect`.
    ///
    /// # Panics
    ///
    /// When `rect` leaves the image.
    #[must_use]
    pub fn part(&self, rect: Rect) -> Self {
        let data = self.from(&rect);
        Self::of_pixels(data, rect.width, rect.height, self.row_bytes, self.channels)
    }

    /// The bytes from the first pixel of `rect` on; the image must contain all of it.
    pub(super) fn from(&self, rect: &Rect) -> &'a [u8] {
        let left = rect.x.checked_sub(self.origin.0);
        let top = rect.y.checked_sub(self.origin.1);
        let held = left.zip(top).map(|(x, y)| Rect { x, y, ..*rect });
        let held = held.filter(|held| held.fits(self.width, self.height));
        assert!(held.is_some(), "{rect:?} leaves the image");
        let Rect { x, y, .. } = held.unwrap_or_default();
        &self.data[y as usize * self.row_bytes + x as usize * self.channels..]
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
        let right = self.x.checked_add(self.width);
        let bottom = self.y.checked_add(self.height);
        matches!((right, bottom), (Some(right), Some(bottom)) if right <= width && bottom <= height)
    }
}

/// A resize to compute: Pillow's `image.crop(region).resize(resized, filter).crop(window)`.
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

impl Resize {
    /// The source pixels of the window, a part of the region: what a decoder has to
    /// make.
    ///
    /// # Panics
    ///
    /// If the region is empty, reaches beyond 2^32 - 1, or the window is not within `resized`.
    #[must_use]
    pub fn source(&self) -> Rect {
        ResizeArea::from(*self).source()
    }
}

/// A part of an image whose edges may lie within pixels: Pillow's `box`.
///
/// A pixel covers one unit, the top left one from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// The left edge.
    pub left: f64,
    /// The upper edge.
    pub top: f64,
    /// The right edge.
    pub right: f64,
    /// The lower edge.
    pub bottom: f64,
}

impl From<Rect> for Area {
    fn from(rect: Rect) -> Self {
        let left = f64::from(rect.x);
        let top = f64::from(rect.y);
        let right = left + f64::from(rect.width);
        let bottom = top + f64::from(rect.height);
        Self { left, top, right, bottom }
    }
}

/// [`Resize`] of an area: Pillow's `image.crop(outer).resize(resized, filter, box=area)`, then
/// `crop(window)`, where `outer` is the pixels that the area touches and `area` counts from there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResizeArea {
    /// The part of the source that is resized; pixels that it does not touch never contribute.
    pub area: Area,
    /// Width and height that the area is resized to.
    pub resized: (u32, u32),
    /// The part of the resized image that is wanted; nothing else is computed.
    pub window: Rect,
    /// The filter.
    pub filter: Filter,
}

impl From<Resize> for ResizeArea {
    fn from(resize: Resize) -> Self {
        let Resize { region, resized, window, filter } = resize;
        Self { area: region.into(), resized, window, filter }
    }
}

impl ResizeArea {
    /// The source pixels of the window.
    ///
    /// # Panics
    ///
    /// When the area is empty, has an edge that is not a number from 0 to 2^32 - 1, or when the
    /// window is not within `resized`.
    #[must_use]
    pub fn source(&self) -> Rect {
        self.axes().map_or_else(Rect::default, |[columns, rows]| columns.source(&rows))
    }

    /// Both axes, or nothing where the window is empty.
    pub(super) fn axes(&self) -> Option<[PlacedAxis; 2]> {
        let Self { area, resized, window, filter } = *self;
        assert!(window.fits(resized.0, resized.1), "{window:?} leaves the resized image");
        let small = u64::from(resized.0) + u64::from(resized.1) <= SMALL_SIDES;
        let axis = |start, end, output, first, count| {
            let (base, span) = place(start, end);
            let multiplies = false;
            PlacedAxis {
                base,
                key: AxisKey { filter, span, output, first, count, small, multiplies },
            }
        };
        let columns = axis(area.left, area.right, resized.0, window.x, window.width);
        let rows = axis(area.top, area.bottom, resized.1, window.y, window.height);
        (window.width > 0 && window.height > 0).then_some([columns, rows])
    }

    /// Whether Pillow (13 and later) runs the vertical pass first, which changes the rounding: when
    /// it takes away rows, and more than twice as many as the other pass takes away columns.
    /// torch never does.
    pub(super) fn vertical_first(&self) -> bool {
        if matches!(self.filter, Filter::Tensor(_)) {
            return false;
        }
        let taken = |start: f64, end: f64, output: u32| {
            f64::from(place(start, end).1.pixels) - f64::from(output)
        };
        let rows = taken(self.area.top, self.area.bottom, self.resized.1);
        let columns = taken(self.area.left, self.area.right, self.resized.0);
        rows > 0.0 && rows > 2.0 * columns
    }
}

/// An axis and where its span begins in the source.
pub(super) struct PlacedAxis {
    pub(super) base: u32,
    pub(super) key: AxisKey,
}

impl PlacedAxis {
    /// The source pixels of this axis, that of columns, and of `rows`.
    pub(super) fn source(&self, rows: &Self) -> Rect {
        let x = self.key.reads();
        let y = rows.key.reads();
        let width = x.end - x.start;
        let height = y.end - y.start;
        Rect { x: self.base + x.start, y: rows.base + y.start, width, height }
    }
}

/// The first pixel from `start` to `end` and the span from there.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the edges are checked to be within the range of u32"
)]
fn place(start: f64, end: f64) -> (u32, Span) {
    assert!(start >= 0.0 && start < end, "the area from {start} to {end} is empty");
    assert!(end <= f64::from(u32::MAX), "the area ends at {end}");
    let base = start.floor();
    let pixels = (end.ceil() - base) as u32;
    (base as u32, Span { offset: start - base, length: end - start, pixels })
}
