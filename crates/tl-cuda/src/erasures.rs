//! Rectangles of converted images that get other numbers.

use tl_simd::resample::Rect;
use zerocopy::{Immutable, IntoBytes};

use crate::conversion::CHANNELS;
use crate::reason::DeviceReason;

/// The alignment of the numbers of a rectangle.
const ALIGNMENT: usize = 4;

/// Bytes of the numbers of a batch, at most: places of rectangles have 32 bits.
pub(crate) const MOST_NUMBERS: u64 = u32::MAX as u64;

/// The rectangles that are erased in the images of a row after their conversion, in order. It is memory
/// for one row after the other.
#[derive(Debug, Default)]
pub struct Erasures {
    parts: Vec<Part>,
    /// The numbers of the parts, in the type of the images.
    numbers: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    /// The number of the image in its row.
    view: usize,
    rect: Rect,
    /// The start of its numbers.
    at: usize,
    is_color: bool,
}

/// The erasures of a row.
#[derive(Clone, Copy, Debug)]
pub struct RowErasures<'a> {
    /// The number of the row's first image in the batch.
    pub first_image: usize,
    /// Its erasures.
    pub erasures: &'a Erasures,
}

impl Erasures {
    /// Adds a rectangle of image `view` whose pixels get one number of `size` bytes for each channel,
    /// which the caller is to write.
    pub fn add_color(&mut self, view: usize, rect: Rect, size: usize) -> &mut [u8] {
        self.add(view, rect, CHANNELS * size, true)
    }

    /// Adds a rectangle of image `view` that gets numbers of `size` bytes each, plane after plane, which
    /// the caller is to write.
    pub fn add_numbers(&mut self, view: usize, rect: Rect, size: usize) -> &mut [u8] {
        let numbers = CHANNELS * rect.width as usize * rect.height as usize;
        self.add(view, rect, numbers * size, false)
    }

    fn add(&mut self, view: usize, rect: Rect, bytes: usize, is_color: bool) -> &mut [u8] {
        let at = self.numbers.len().next_multiple_of(ALIGNMENT);
        self.parts.push(Part { view, rect, at, is_color });
        self.numbers.resize(at + bytes, 0);
        &mut self.numbers[at..]
    }

    /// Images of the row up to the last that something is erased in.
    pub(crate) fn views(&self) -> usize {
        self.parts.iter().map(|part| part.view + 1).max().unwrap_or(0)
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.parts.clear();
        self.numbers.clear();
    }

    /// Whether nothing is erased.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Bytes of the memory that is kept.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.numbers.capacity() + self.parts.capacity() * size_of::<Part>()
    }
}

/// A rectangle as the kernels take it: `Rectangle` of `kernels.cu`.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
struct Rectangle {
    image: u32,
    x: u32,
    y: u32,
    width: u32,
    height: u32,
    numbers: u32,
    is_color: u32,
    unused: u32,
}

/// Rectangles of different images, which are erased at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rank {
    /// The place of the first.
    pub(crate) at: usize,
    pub(crate) count: u32,
    /// Numbers of the largest.
    pub(crate) threads: u32,
}

/// The copy for the erasures of a batch: the rectangles, then their numbers.
#[derive(Debug)]
pub(crate) struct Gathering<'a> {
    rows: &'a [RowErasures<'a>],
    pub(crate) ranks: Vec<Rank>,
    /// The place of the numbers.
    pub(crate) numbers: usize,
    /// Bytes of the copy.
    pub(crate) bytes: usize,
}

impl<'a> Gathering<'a> {
    /// Plans the copy for images of this width and height.
    ///
    /// # Errors
    /// [`DeviceReason::Erasures`] for more than `limit` bytes of numbers.
    ///
    /// # Panics
    /// If a rectangle leaves its image.
    pub(crate) fn new(
        rows: &'a [RowErasures<'a>],
        size: (u32, u32),
        limit: u64,
    ) -> Result<Self, DeviceReason> {
        let most = rows.iter().map(|row| row.erasures.parts.len()).max().unwrap_or(0);
        let mut ranks = Vec::with_capacity(most);
        let mut at = 0;
        for rank in 0..most {
            let parts = rows.iter().filter_map(|row| row.erasures.parts.get(rank));
            let mut made = Rank { at, count: 0, threads: 0 };
            for Part { rect, .. } in parts {
                assert!(rect.fits(size.0, size.1), "{rect:?} in an image of {size:?}");
                let numbers = u64::from(rect.width) * u64::from(rect.height) * CHANNELS as u64;
                let numbers =
                    u32::try_from(numbers).expect("an image has at most a billion numbers");
                made.threads = made.threads.max(numbers);
                made.count += 1;
                at += size_of::<Rectangle>();
            }
            ranks.push(made);
        }
        let bytes = |row: &RowErasures<'_>| row.erasures.numbers.len().next_multiple_of(ALIGNMENT);
        let all = rows.iter().map(bytes).sum::<usize>();
        if all as u64 > limit {
            return Err(DeviceReason::Erasures { need: all as u64, limit });
        }
        Ok(Self { rows, ranks, numbers: at, bytes: at + all })
    }

    /// The place of a rank's rectangle.
    pub(crate) fn place(&self, rank: &Rank, number: u32) -> usize {
        rank.at + number as usize * size_of::<Rectangle>()
    }

    /// Writes the copy to the front of `to`.
    ///
    /// # Panics
    /// If it does not fit.
    pub(crate) fn write(&self, to: &mut [u8]) {
        let (rectangles, numbers) = to.split_at_mut(self.numbers);
        let mut next: Vec<usize> = self.ranks.iter().map(|rank| rank.at).collect();
        let mut at = 0;
        for RowErasures { first_image, erasures } in self.rows {
            for (part, place) in erasures.parts.iter().zip(&mut next) {
                let number = |value: usize| u32::try_from(value).expect("checked in `new`");
                let Rect { x, y, width, height } = part.rect;
                let image = number(first_image + part.view);
                let is_color = part.is_color.into();
                let numbers = number(at + part.at);
                let made = Rectangle { image, x, y, width, height, numbers, is_color, unused: 0 };
                rectangles[*place..][..size_of::<Rectangle>()].copy_from_slice(made.as_bytes());
                *place += size_of::<Rectangle>();
            }
            let bytes = &erasures.numbers;
            numbers[at..][..bytes.len()].copy_from_slice(bytes);
            at += bytes.len().next_multiple_of(ALIGNMENT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_numbers_than_may_be_copied_are_an_error() {
        let mut erasures = Erasures::default();
        erasures.add_numbers(0, Rect::of_size(10, 10), 4);
        let rows = [0, 1].map(|first_image| RowErasures { first_image, erasures: &erasures });
        assert!(Gathering::new(&rows, (10, 10), 2400).is_ok());
        let reason = Gathering::new(&rows, (10, 10), 2399).unwrap_err();
        assert_eq!(reason, DeviceReason::Erasures { need: 2400, limit: 2399 });
    }
}
