//! The definition, sample by sample.

use super::{ABOVE_IMAGE, Above, LEFT_OF_IMAGE, LastRow};
use crate::kernels::vp8::predict::{Surroundings, edge, predict_block};
use crate::kernels::vp8::residue::transform;
use crate::kernels::vp8::{
    BLOCK, BLOCK_LEN, BLOCKS, BlockPrediction, CHROMA_BLOCKS, LUMA, LUMA_BLOCKS, Luma, Macroblock,
    PlanesMut, Residue, clip,
};
use std::ops::Range;

/// A plane of a macroblock and the samples to the left of the next.
#[derive(Clone, Copy, Debug)]
struct Left<const SIDE: usize> {
    samples: [u8; SIDE],
    corner: u8,
}

impl<const SIDE: usize> Left<SIDE> {
    const fn of_image(first_row: bool) -> Self {
        let corner = if first_row { ABOVE_IMAGE } else { LEFT_OF_IMAGE };
        Self { samples: [LEFT_OF_IMAGE; SIDE], corner }
    }
}

pub(super) fn reconstruct(
    macroblocks: &mut [Macroblock],
    above: &mut Above,
    store: Range<usize>,
    planes: &mut PlanesMut<'_>,
    row: usize,
) {
    let first_row = above.first_row;
    let mut left_y = Left::of_image(first_row);
    let mut left_u = Left::of_image(first_row);
    let mut left_v = Left::of_image(first_row);
    for (column, macroblock) in macroblocks.iter_mut().enumerate() {
        let first_column = column == 0;
        let next = above.rows.get(column + 1).map(|next| next.y);
        let LastRow { y: above_y, uv: [above_u, above_v] } = &mut above.rows[column];
        let right =
            next.map_or([above_y[LUMA - 1]; BLOCK], |next| [next[0], next[1], next[2], next[3]]);
        let residue = residues(macroblock);
        let around = surround(&mut left_y, above_y, first_row, first_column);
        let y = match macroblock.luma {
            Luma::Whole(mode) => add_plane(&around.predict(mode), &residue[..LUMA_BLOCKS]),
            Luma::Blocks(modes) => predict_blocks(&around, right, &modes, &residue[..LUMA_BLOCKS]),
        };
        let [residue_u, residue_v] = [16, 20].map(|first| &residue[first..][..CHROMA_BLOCKS]);
        let around = surround(&mut left_u, above_u, first_row, first_column);
        let u = add_plane(&around.predict(macroblock.chroma), residue_u);
        let around = surround(&mut left_v, above_v, first_row, first_column);
        let v = add_plane(&around.predict(macroblock.chroma), residue_v);
        keep(&y, &mut left_y, above_y);
        keep(&u, &mut left_u, above_u);
        keep(&v, &mut left_v, above_v);
        macroblock.clear();
        if store.contains(&column) {
            let at = column - store.start;
            put(&y, planes.y, planes.y_stride, row, at);
            put(&u, planes.u, planes.uv_stride, row, at);
            put(&v, planes.v, planes.uv_stride, row, at);
        }
    }
}

/// The differences that the coefficients of each block make.
pub(super) fn residues(macroblock: &Macroblock) -> [[i16; BLOCK_LEN]; BLOCKS] {
    let coefficients = macroblock.coefficients.as_chunks::<BLOCK_LEN>().0;
    let any_beyond_dc = |first: usize| {
        let mut blocks = first..first + CHROMA_BLOCKS;
        blocks.any(|block| matches!(macroblock.residues.of(block), Residue::Few | Residue::Full))
    };
    let [whole_u, whole_v] = [16, 20].map(any_beyond_dc);
    std::array::from_fn(|block| {
        let residue = match block {
            16..20 if whole_u => Residue::Full,
            20..24 if whole_v => Residue::Full,
            _ => macroblock.residues.of(block),
        };
        transform(&coefficients[block], residue)
    })
}

/// The samples around a plane; the corner becomes that of the next macroblock.
fn surround<const SIDE: usize>(
    left: &mut Left<SIDE>,
    above: &[u8; SIDE],
    first_row: bool,
    first_column: bool,
) -> Surroundings<SIDE> {
    let corner = std::mem::replace(&mut left.corner, above[SIDE - 1]);
    Surroundings { above: *above, left: left.samples, corner, first_row, first_column }
}

/// Keeps the last column and the last row of a plane.
fn keep<const SIDE: usize>(
    samples: &[[u8; SIDE]; SIDE],
    left: &mut Left<SIDE>,
    above: &mut [u8; SIDE],
) {
    left.samples = samples.map(|row| row[SIDE - 1]);
    *above = samples[SIDE - 1];
}

fn add(sample: u8, residue: i16) -> u8 {
    clip(i32::from(sample) + i32::from(residue))
}

fn add_plane<const SIDE: usize>(
    predicted: &[[u8; SIDE]; SIDE],
    residue: &[[i16; BLOCK_LEN]],
) -> [[u8; SIDE]; SIDE] {
    std::array::from_fn(|y| {
        std::array::from_fn(|x| {
            let block = y / BLOCK * (SIDE / BLOCK) + x / BLOCK;
            add(predicted[y][x], residue[block][y % BLOCK * BLOCK + x % BLOCK])
        })
    })
}

/// Predicts block by block, each from the blocks before; `right` are the samples above and to the
/// right of the macroblock, which the lower blocks of the last column take as well.
fn predict_blocks(
    around: &Surroundings<LUMA>,
    right: [u8; BLOCK],
    modes: &[BlockPrediction; LUMA_BLOCKS],
    residue: &[[i16; BLOCK_LEN]],
) -> [[u8; LUMA]; LUMA] {
    let mut samples = [[0; LUMA]; LUMA];
    for (block, (&mode, residue)) in modes.iter().zip(residue).enumerate() {
        let x = block % BLOCK * BLOCK;
        let y = block / BLOCK * BLOCK;
        let row_above = if y == 0 { &around.above } else { &samples[y - 1] };
        let left =
            std::array::from_fn(
                |i| if x == 0 { around.left[y + i] } else { samples[y + i][x - 1] },
            );
        let corner = match [x, y] {
            [0, 0] => around.corner,
            [0, _] => around.left[y - 1],
            _ => row_above[x - 1],
        };
        let above = std::array::from_fn(|i| match x + i {
            at @ 0..LUMA => row_above[at],
            at => right[at - LUMA],
        });
        let predicted = predict_block(mode, &edge(left, corner, above));
        for (i, (&sample, &residue)) in predicted.iter().zip(residue).enumerate() {
            samples[y + i / BLOCK][x + i % BLOCK] = add(sample, residue);
        }
    }
    samples
}

/// Writes a plane of the macroblock at a row and a column.
fn put<const SIDE: usize>(
    samples: &[[u8; SIDE]; SIDE],
    plane: &mut [u8],
    stride: usize,
    row: usize,
    column: usize,
) {
    for (i, samples) in samples.iter().enumerate() {
        plane[(row * SIDE + i) * stride + column * SIDE..][..SIDE].copy_from_slice(samples);
    }
}
