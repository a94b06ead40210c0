//! The coefficients of a perspective.

use super::Perspective;

/// Rows of the system of equations, and its unknowns.
const COUNT: usize = 8;

/// A row of the matrix and its right side.
type Row = [f64; COUNT + 1];

impl Perspective {
    /// The coefficients of the perspective that moves the corners `from` to `to`: torchvision's
    /// `_get_perspective_coeffs`, solved in `f64` and rounded to `f32`.
    ///
    /// None when the corners allow none, as when two of them coincide.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "torchvision rounds to f32")]
    pub fn coefficients(from: [(u32, u32); 4], to: [(u32, u32); 4]) -> Option<[f32; COUNT]> {
        let mut rows = [[0.0; COUNT + 1]; COUNT];
        for ((from, to), rows) in from.into_iter().zip(to).zip(rows.as_chunks_mut::<2>().0) {
            let source_x = f64::from(from.0);
            let source_y = f64::from(from.1);
            let x = f64::from(to.0);
            let y = f64::from(to.1);
            rows[0] = [x, y, 1.0, 0.0, 0.0, 0.0, -source_x * x, -source_x * y, source_x];
            rows[1] = [0.0, 0.0, 0.0, x, y, 1.0, -source_y * x, -source_y * y, source_y];
        }
        let solution = solve(rows)?;
        let coefficients = solution.map(|value| value as f32);
        coefficients.iter().all(|value| value.is_finite()).then_some(coefficients)
    }
}

/// Solves a system of equations, the largest number of each column first.
fn solve(mut rows: [Row; COUNT]) -> Option<[f64; COUNT]> {
    for column in 0..COUNT {
        let size = |row: usize| rows[row][column].abs();
        let pivot = (column..COUNT).max_by(|&a, &b| size(a).total_cmp(&size(b)))?;
        rows.swap(column, pivot);
        let first = rows[column];
        // Coordinates are whole numbers below 2^16: what is smaller is left over by rounding.
        if first[column].abs() < 1e-9 {
            return None;
        }
        for row in rows.iter_mut().skip(column + 1) {
            let factor = row[column] / first[column];
            for (value, first) in row.iter_mut().zip(first) {
                *value -= factor * first;
            }
        }
    }
    let mut solution = [0.0; COUNT];
    for column in (0..COUNT).rev() {
        let known: f64 = (column + 1..COUNT).map(|at| rows[column][at] * solution[at]).sum();
        solution[column] = (rows[column][COUNT] - known) / rows[column][column];
    }
    Some(solution)
}
