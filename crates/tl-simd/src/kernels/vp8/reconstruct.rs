//! Rows of macroblocks: prediction, and the residue added to it.

mod definition;
mod vectors;

use super::{BLOCK_LEN, BLOCKS, CHROMA, LUMA, Macroblock, PlanesMut, Residues};
use crate::Level;
use crate::vector::dispatch;
use std::ops::Range;

/// The samples above the first row.
const ABOVE_IMAGE: u8 = 127;
/// The samples to the left of the first column, and the corners there below the first row.
const LEFT_OF_IMAGE: u8 = 129;

/// The last row of samples of a macroblock.
#[derive(Clone, Copy, Debug)]
struct LastRow {
    y: [u8; LUMA],
    uv: [[u8; CHROMA]; 2],
}

/// The samples above a row of macroblocks, which the filters have not changed.
#[derive(Clone, Debug, Default)]
pub struct Above {
    rows: Vec<LastRow>,
    first_row: bool,
}

impl Above {
    /// Prepares for the first row of an image, this many macroblocks wide.
    pub fn reset(&mut self, macroblocks: usize) {
        let outside = LastRow { y: [ABOVE_IMAGE; LUMA], uv: [[ABOVE_IMAGE; CHROMA]; 2] };
        self.rows.clear();
        self.rows.resize(macroblocks, outside);
        self.first_row = true;
    }
}

/// Predicts a row of macroblocks and adds its residues. Leaves all coefficients and residues zero.
///
/// Macroblocks `store` of the row are written to `planes`, from column 0 of macroblock row
/// `row` on. The next call continues with the row below.
/// A row may end before the image does where the rows below it are shorter by a macroblock or more each:
/// they need nothing to its right.
///
/// # Panics
///
/// If the row is wider than [`Above::reset`] was told, or the planes are too small.
pub fn reconstruct(
    level: Level,
    macroblocks: &mut [Macroblock],
    above: &mut Above,
    store: Range<usize>,
    planes: &mut PlanesMut<'_>,
    row: usize,
) {
    assert!(macroblocks.len() <= above.rows.len(), "a row no wider than the image");
    assert!(store.start <= store.end && store.end <= macroblocks.len(), "columns of the row");
    planes.check(store.len(), row);
    dispatch!(
        level,
        scalar => definition::reconstruct(macroblocks, above, store, planes, row),
        simd => vectors::reconstruct(simd, macroblocks, above, store, planes, row),
    );
    above.first_row = false;
}

impl Macroblock {
    /// Leaves the coefficients zero.
    #[inline(always)]
    fn clear(&mut self) {
        if self.residues != Residues::NONE {
            self.coefficients = [0; BLOCKS * BLOCK_LEN];
            self.residues = Residues::NONE;
        }
    }
}
