//! The weights of a resize, for callers that carry it out elsewhere, such as on a GPU.

use super::axis::{Axis, Taps};
use super::geometry::{Rect, ResizeArea};

/// The numbers that a resize consists of: a first pass over rows or columns makes 8-bit samples, and a
/// second over the others makes those of the result. [`WeightedSum`] describes a sample.
///
/// ```
/// use tl_simd::resample::{Filter, Rect, Resize, Weights};
///
/// let region = Rect::of_size(4, 2);
/// let window = Rect::of_size(2, 2);
/// let resize = Resize { region, resized: (2, 2), window, filter: Filter::Box };
/// let mut weights = Weights::default();
/// weights.prepare(&resize.into());
/// let sums: Vec<_> = weights.columns().collect();
/// assert_eq!((sums[1].start, sums[1].weights), (2, &[1 << 21, 1 << 21][..]));
/// ```
#[derive(Debug, Default)]
pub struct Weights {
    columns: Axis,
    rows: Axis,
    source: Rect,
    is_vertical_first: bool,
}

/// A sample of one pass: `(sum of weights times samples + 2^21) >> 22`, limited to 0..=255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightedSum<'a> {
    /// The first sample that counts, from the start of [`Weights::source`].
    pub start: usize,
    /// The weights of this sample and the following ones, with 22 fraction bits: one or more.
    pub weights: &'a [i32],
}

impl Weights {
    /// Computes the weights of `resize`, if they are not those of the last call.
    ///
    /// # Panics
    /// If the window is empty or leaves the resized image, or the area is empty.
    pub fn prepare(&mut self, resize: &ResizeArea) {
        let axes = resize.axes();
        let [columns, rows] = axes.expect("the window has pixels");
        self.source = columns.source(&rows);
        self.is_vertical_first = !columns.key.is_identity() && resize.vertical_first();
        self.columns.prepare(columns.key);
        self.rows.prepare(rows.key);
    }

    /// The samples of the image that count.
    #[must_use]
    pub fn source(&self) -> Rect {
        self.source
    }

    /// Whether the first pass makes rows, and the second columns.
    #[must_use]
    pub fn is_vertical_first(&self) -> bool {
        self.is_vertical_first
    }

    /// The columns of the window, from left to right.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = WeightedSum<'_>> {
        sums(&self.columns)
    }

    /// The rows of the window, from top to bottom.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = WeightedSum<'_>> {
        sums(&self.rows)
    }
}

fn sums(axis: &Axis) -> impl ExactSizeIterator<Item = WeightedSum<'_>> {
    (0..axis.len()).map(|index| {
        let Taps { start, weights } = axis.taps(index);
        WeightedSum { start, weights }
    })
}
