//! Images, rectangles, and what part of an image becomes what.

use super::Filter;

/// Interleaved 8-bit pixels in memory.
#[derive(Clone, Copy, Debug)]
pub struct ImageView<'a> {
    pub(super) data: &'a [u8],
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) row_bytes: usize,
    pub(super) channels: usize,
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
        let row = (width as usize).checked_mul(channels);
        let row = row.filter(|&row| row <= row_bytes).expect("a row fits into `row_bytes`");
        assert!(u32::try_from(row).is_ok(), "a row of {row} bytes is longer than 4 GiB");
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

impl Resize {
    /// Whether Pillow (13 and later) runs the vertical pass first, which changes the rounding: when
    /// it takes away rows, and more than twice as many as the other pass takes away columns.
    pub(super) const fn vertical_first(&self) -> bool {
        let rows = self.region.height as i64 - self.resized.1 as i64;
        let columns = self.region.width as i64 - self.resized.0 as i64;
        rows > 0 && rows > 2 * columns
    }
}
