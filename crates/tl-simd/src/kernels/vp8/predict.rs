//! Prediction of blocks from the samples around them: RFC 6386, section 12.

use super::{BLOCK, BLOCK_LEN, BlockPrediction, Prediction, clip, low_byte};

/// The samples around a block, from the bottom left up to the corner and on to the right above it.
///
/// The first left sample and the last two above are repeated: `L L K J I X A B C D E F G H H H` in
/// the letters of RFC 6386.
pub(super) type Edge = [u8; 16];

/// The place of the corner in an [`Edge`].
const CORNER: usize = 5;

/// The edge of a block: `left` from top to bottom, `above` with four samples to the right.
#[inline(always)]
pub(super) fn edge(left: [u8; BLOCK], corner: u8, above: [u8; 2 * BLOCK]) -> Edge {
    let [i, j, k, l] = left;
    let [a, b, c, d, e, f, g, h] = above;
    [l, l, k, j, i, corner, a, b, c, d, e, f, g, h, h, h]
}

/// The means of neighbours that make the samples of a block in each directional mode, by the
/// place of the first in the edge: of three below 16, of two from 16 on.
pub(super) const MEANS: [[u8; BLOCK_LEN]; 10] = {
    let mut all = [[0; BLOCK_LEN]; 10];
    let mut at = 0;
    while at < BLOCK_LEN {
        let x = (at % BLOCK).to_le_bytes()[0];
        let y = (at / BLOCK).to_le_bytes()[0];
        all[BlockPrediction::Vertical as usize][at] = 5 + x;
        all[BlockPrediction::Horizontal as usize][at] = 3 - y;
        all[BlockPrediction::LeftDown as usize][at] = 6 + x + y;
        all[BlockPrediction::RightDown as usize][at] = 4 + x - y;
        all[BlockPrediction::VerticalRight as usize][at] = steep(x, y);
        all[BlockPrediction::VerticalLeft as usize][at] = match 4 * y + x {
            11 => 10,
            15 => 11,
            _ => 6 + x + y / 2 + if y.is_multiple_of(2) { TWO } else { 0 },
        };
        all[BlockPrediction::HorizontalDown as usize][at] = gentle(x, y);
        all[BlockPrediction::HorizontalUp as usize][at] = match x + 2 * y {
            0 => TWO + 3,
            1 => 2,
            2 => TWO + 2,
            3 => 1,
            4 => TWO + 1,
            5 => 0,
            _ => TWO,
        };
        at += 1;
    }
    all
};

/// The place of the first mean of two.
const TWO: u8 = 16;

/// Steeply down to the right.
const fn steep(x: u8, y: u8) -> u8 {
    match (x >= y / 2, y.is_multiple_of(2)) {
        (true, true) => TWO + 5 + x - y / 2,
        (true, false) => 4 + x - y / 2,
        (false, _) => 5 - y,
    }
}

/// Gently down to the right.
const fn gentle(x: u8, y: u8) -> u8 {
    match (y >= x / 2, x.is_multiple_of(2)) {
        (true, true) => TWO + 4 + x / 2 - y,
        (true, false) => 4 + x / 2 - y,
        (false, _) => 3 + x,
    }
}

/// The samples of a block, row by row.
pub(super) fn predict_block(mode: BlockPrediction, edge: &Edge) -> [u8; BLOCK_LEN] {
    let wide = |at: usize| u32::from(edge[at]);
    match mode {
        BlockPrediction::Dc => {
            let sum: u32 = (1..=BLOCK).map(|i| wide(CORNER - i) + wide(CORNER + i)).sum();
            [low_byte((sum + 4) >> 3); BLOCK_LEN]
        }
        BlockPrediction::TrueMotion => std::array::from_fn(|i| {
            let above = i32::from(edge[CORNER + 1 + i % BLOCK]);
            let left = i32::from(edge[CORNER - 1 - i / BLOCK]);
            clip(above + left - i32::from(edge[CORNER]))
        }),
        BlockPrediction::Vertical
        | BlockPrediction::Horizontal
        | BlockPrediction::LeftDown
        | BlockPrediction::RightDown
        | BlockPrediction::VerticalRight
        | BlockPrediction::VerticalLeft
        | BlockPrediction::HorizontalDown
        | BlockPrediction::HorizontalUp => MEANS[mode as usize].map(|mean| {
            let at = usize::from(mean % TWO);
            low_byte(if mean < TWO {
                (wide(at) + 2 * wide(at + 1) + wide(at + 2) + 2) >> 2
            } else {
                (wide(at) + wide(at + 1) + 1) >> 1
            })
        }),
    }
}

/// The samples around a macroblock's plane of `SIDE` samples a side, and the plane's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<const SIDE: usize> {
    pub(super) above: [u8; SIDE],
    pub(super) left: [u8; SIDE],
    pub(super) corner: u8,
    pub(super) first_row: bool,
    pub(super) first_column: bool,
}

impl<const SIDE: usize> Surroundings<SIDE> {
    /// The mean of the neighbours inside the image, 128 if there are none.
    pub(super) fn mean(&self) -> u8 {
        let sum = |samples: &[u8; SIDE]| samples.iter().map(|&sample| u32::from(sample)).sum();
        let above: u32 = if self.first_row { 0 } else { sum(&self.above) };
        let left: u32 = if self.first_column { 0 } else { sum(&self.left) };
        let bits = SIDE.ilog2();
        match (self.first_row, self.first_column) {
            (true, true) => 128,
            (false, false) => low_byte((above + left + (1 << bits)) >> (bits + 1)),
            _ => low_byte((above + left + (1 << (bits - 1))) >> bits),
        }
    }

    pub(super) fn predict(&self, mode: Prediction) -> [[u8; SIDE]; SIDE] {
        match mode {
            Prediction::Dc => [[self.mean(); SIDE]; SIDE],
            Prediction::Vertical => [self.above; SIDE],
            Prediction::Horizontal => self.left.map(|sample| [sample; SIDE]),
            Prediction::TrueMotion => self.left.map(|left| {
                let slope = i32::from(left) - i32::from(self.corner);
                self.above.map(|above| clip(i32::from(above) + slope))
            }),
        }
    }
}
