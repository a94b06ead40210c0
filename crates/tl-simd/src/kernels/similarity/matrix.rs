//! Rows of numbers in memory, as a file has them.

use crate::kernels::streams::STREAMS;

/// The type of a row's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Element {
    /// Single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// bfloat16, the upper half of an `f32`.
    Bf16,
    /// Signed bytes after a scale and a zero point of `f32`; a number is
    /// `scale * (byte - zero point)`.
    I8,
}

impl Element {
    /// Bytes of a row of `dim` numbers, without what pads it to the stride. A row of no numbers has
    /// none.
    ///
    /// # Panics
    ///
    /// When they do not fit the address space.
    #[must_use]
    pub const fn row_bytes(self, dim: usize) -> usize {
        let bytes = match self {
            Self::I8 if dim == 0 => Some(0),
            Self::I8 => dim.checked_add(2 * size_of::<f32>()),
            Self::F16 | Self::Bf16 => dim.checked_mul(2),
            Self::F32 => dim.checked_mul(4),
        };
        bytes.expect("a row fits into the address space")
    }
}

/// Rows of one dimension at a fixed distance, in little-endian bytes.
///
/// Every alignment is allowed. Rows that begin at multiples of 64 bytes are read fastest.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    bytes: &'a [u8],
    element: Element,
    dim: usize,
    stride: usize,
    row_bytes: usize,
    rows: usize,
    squared_lengths: Option<&'a [f32]>,
}

impl<'a> Matrix<'a> {
    /// `rows` rows of `dim` numbers, the first at the start of `bytes` and each `stride` bytes
    /// after the one before.
    ///
    /// # Panics
    ///
    /// When a row is longer than the stride or leaves `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8], element: Element, dim: usize, stride: usize, rows: usize) -> Self {
        let row_bytes = element.row_bytes(dim);
        assert!(row_bytes <= stride, "rows of {row_bytes} bytes every {stride}");
        let end = rows
            .checked_sub(1)
            .map_or(Some(0), |last| last.checked_mul(stride)?.checked_add(row_bytes));
        let have = bytes.len();
        assert!(end.is_some_and(|end| end <= have), "{rows} rows every {stride} bytes in {have}");
        Self { bytes, element, dim, stride, row_bytes, rows, squared_lengths: None }
    }

    /// The same rows with their squared lengths, which [`Metric::Cosine`](super::Metric::Cosine)
    /// then does not add up again. The scores have the same bits.
    ///
    /// # Panics
    ///
    /// When there is not one length per row.
    #[must_use]
    pub fn with_squared_lengths(mut self, lengths: &'a [f32]) -> Self {
        assert_eq!(lengths.len(), self.rows, "one length per row");
        self.squared_lengths = Some(lengths);
        self
    }

    /// The type of the numbers.
    #[must_use]
    pub const fn element(&self) -> Element {
        self.element
    }

    /// Numbers in a row.
    #[must_use]
    pub const fn dim(&self) -> usize {
        self.dim
    }

    /// How many rows there are.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    pub(super) const fn squared_lengths(&self) -> Option<&'a [f32]> {
        self.squared_lengths
    }

    /// The bytes of a row, without padding.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.stride..][..self.row_bytes]
    }

    /// The bytes of the rows, where a row beyond the end is the last one.
    #[inline(always)]
    pub(super) fn group(&self, places: [usize; STREAMS]) -> [&[u8]; STREAMS] {
        let last = self.rows - 1;
        let [a, b, c, d] = places;
        [self.row(a), self.row(b.min(last)), self.row(c.min(last)), self.row(d.min(last))]
    }
}
