//! Columns of a batch.

use zerocopy::FromBytes;

use crate::table::{ColumnNumber, ColumnType};

/// The description of a column in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnSpec {
    /// The name of the column.
    pub name: String,
    /// The type of its numbers.
    pub number: ColumnType,
    /// The dimensions of one row; none where that is a single number.
    pub shape: Vec<usize>,
}

impl ColumnSpec {
    /// Bytes of one row; `None` past the address space.
    pub(crate) fn row_bytes(&self) -> Option<usize> {
        let numbers =
            self.shape.iter().try_fold(1usize, |numbers, &size| numbers.checked_mul(size));
        numbers?.checked_mul(self.number.bytes())
    }
}

/// A column of a batch, with its numbers.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ColumnView<'a> {
    /// The description of the column.
    pub spec: &'a ColumnSpec,
    /// The rows in order, in the machine's byte order, aligned to 64 bytes.
    pub bytes: &'a [u8],
    pub(crate) rows: usize,
}

impl<'a> ColumnView<'a> {
    /// The dimensions of the column, batch first.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        [self.rows].into_iter().chain(self.spec.shape.iter().copied()).collect()
    }

    /// The numbers, if they are of this type: those of booleans are `u8`, those of `f16` and `bf16`
    /// the `u16` of their bits.
    #[must_use]
    pub fn numbers<N: ColumnNumber>(&self) -> Option<&'a [N]> {
        let fits = N::TYPES.contains(&self.spec.number);
        fits.then(|| <[N]>::ref_from_bytes(self.bytes).expect("a column is aligned and whole"))
    }
}
