//! Dequantisation and the inverse DCT, whole or reduced, of runs of blocks.

mod definition;

use super::{Block, SIDE, Scale};
use crate::Level;

/// Dequantises and transforms a run of horizontal neighbours, and leaves the blocks all zero.
///
/// Block `i` becomes the `side` columns from `i * side` on of `side` rows that begin `stride` bytes
/// apart in `out`, where `side` is [`Scale::block_side`]. The coefficients of `quantizer` are row by
/// row, as those of the blocks.
///
/// # Panics
///
/// When the rows overlap or `out` ends before the last one.
pub fn idct(
    level: Level,
    scale: Scale,
    quantizer: &[u16; SIDE * SIDE],
    blocks: &mut [Block],
    out: &mut [u8],
    stride: usize,
) {
    let side = scale.block_side();
    let row = blocks.len() * side;
    assert!(row <= stride, "rows of {row} samples, {stride} apart, overlap");
    assert!((side - 1) * stride + row <= out.len(), "the last row leaves the output");
    _ = level;
    definition::idct(scale, quantizer, blocks, out, stride);
}
