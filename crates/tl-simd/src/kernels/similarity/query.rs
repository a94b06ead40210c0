//! The vector that rows are compared with.

use super::floats::{Bf16, Block, F16, F32, LANES, Number, squared_length};
use super::integers::Quantized;
use super::matrix::{Element, Matrix};

/// The vector that rows are compared with, in the forms that their types ask for.
///
/// Rows of floats are compared with the numbers as they are. Rows of [`Element::I8`] are compared
/// with the nearest bytes times one scale: the largest magnitude is 127, the zero point 0.
#[derive(Clone, Debug)]
pub struct Query {
    dim: usize,
    floats: Vec<Block>,
    squared_length: f32,
    integers: Quantized,
}

impl Query {
    /// A query of these numbers.
    ///
    /// When one of them is not finite, scores of rows of [`Element::I8`] are not numbers.
    #[must_use]
    pub fn new(values: &[f32]) -> Self {
        Self::with_integers(values, Quantized::nearest(values))
    }

    /// A row of a matrix. With rows of [`Element::I8`] its bytes are used as they are.
    ///
    /// # Panics
    ///
    /// When the matrix has no such row.
    #[must_use]
    pub fn from_row(matrix: &Matrix<'_>, row: usize) -> Self {
        assert!(row < matrix.rows(), "row {row} of {}", matrix.rows());
        let bytes = matrix.row(row);
        match matrix.element() {
            Element::F32 => Self::new(&decode::<F32, 64>(bytes)),
            Element::F16 => Self::new(&decode::<F16, 32>(bytes)),
            Element::Bf16 => Self::new(&decode::<Bf16, 32>(bytes)),
            Element::I8 => {
                let integers = Quantized::from_row(bytes);
                let values: Vec<f32> = integers.decode().collect();
                Self::with_integers(&values, integers)
            }
        }
    }

    fn with_integers(values: &[f32], integers: Quantized) -> Self {
        let mut floats = vec![[0.0; LANES]; values.len().div_ceil(LANES)];
        floats.as_flattened_mut()[..values.len()].copy_from_slice(values);
        let squared_length = squared_length(&floats);
        Self { dim: values.len(), floats, squared_length, integers }
    }

    /// How many numbers it has.
    #[must_use]
    pub const fn dim(&self) -> usize {
        self.dim
    }

    /// The numbers, and zeros to the end of the last block.
    pub(super) fn floats(&self) -> &[Block] {
        &self.floats
    }

    pub(super) const fn integers(&self) -> &Quantized {
        &self.integers
    }

    /// The squared length of the form that rows of `element` are compared with.
    pub(super) fn squared_length(&self, element: Element) -> f32 {
        match element {
            Element::F32 | Element::F16 | Element::Bf16 => self.squared_length,
            Element::I8 => self.integers.squared_length(),
        }
    }
}

fn decode<N: Number<BYTES>, const BYTES: usize>(row: &[u8]) -> Vec<f32> {
    row.chunks_exact(BYTES / LANES).map(N::decode).collect()
}
