//! Finished MCU rows of a progressive frame, on their way to the sink.

use super::{Grid, Progressive, smooth};
use crate::jpeg::scan::{Block, BlockSink};

/// Block rows above and below one that its estimates need.
pub(super) const SMOOTHING_REACH: u32 = 2;

/// A component's part of the buffers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Component {
    pub(super) grid: Grid,
    /// The start of its DC values, and their number in a block row.
    pub(super) dc_at: usize,
    pub(super) dc_stride: usize,
    /// The start of its blocks of a band.
    pub(super) blocks_at: usize,
}

impl Progressive {
    /// Passes one MCU row on, if it is wanted, and leaves its blocks zero. With `quantizers`,
    /// coefficients that no scan has coded exactly are estimated.
    pub(super) fn hand_over(
        &mut self,
        mcu_row: u32,
        quantizers: Option<&[&[u16; 64]]>,
        sink: &mut impl BlockSink,
    ) {
        let wanted = self.rows.contains(&mcu_row);
        for (index, component) in self.components.iter().enumerate() {
            let Grid { across, down, columns: width, rows, .. } = component.grid;
            let start = (self.columns.start * across).min(width);
            let end = (self.columns.end * across).clamp(start, width);
            let columns = start as usize..end as usize;
            let band_row = mcu_row % self.band_rows * down;
            for (band_row, block_row) in (band_row..band_row + down).zip(mcu_row * down..rows) {
                let at = component.blocks_at + band_row as usize * width as usize;
                let blocks = &mut self.blocks[at..at + width as usize];
                if !wanted || columns.is_empty() {
                    blocks.fill(Block::ZERO);
                    continue;
                }
                let dc = component.dc_row(block_row, &self.dc);
                for (block, &dc) in blocks[columns.clone()].iter_mut().zip(&dc[columns.clone()]) {
                    block.0[0] = dc;
                }
                if let Some(quantizers) = quantizers {
                    let rows = component.rows_around(block_row, &self.dc);
                    let missing = self.progress.of(index);
                    for column in columns.clone() {
                        let around = smooth::neighbourhood(rows, column);
                        smooth::estimate(&mut blocks[column], &around, missing, quantizers[index]);
                    }
                }
                blocks[..columns.start].fill(Block::ZERO);
                blocks[columns.end..].fill(Block::ZERO);
                sink.blocks(index, block_row, start, &mut blocks[columns.clone()]);
            }
        }
        if wanted {
            sink.mcu_row_done(mcu_row);
        }
    }
}

impl Component {
    /// The DC values of the block rows that the estimates of `block_row` are made from.
    ///
    /// libjpeg counts the block rows of the last MCU row as if all MCU rows had as many. Where that
    /// row is cut, the rows above are taken for the image's edge in images of two MCU rows, and the
    /// row before it sees blocks below the image.
    fn rows_around<'a>(&self, block_row: u32, dc: &'a [i16]) -> [&'a [i16]; 5] {
        let Grid { rows, counted_down: down, .. } = self.grid;
        let mcu_row = block_row / down;
        let rows_here = (rows - mcu_row * down).min(down);
        let counted = mcu_row * rows_here + block_row % down;
        let counted_rows = rows_here * rows.div_ceil(down);
        let above = if counted > 0 { block_row - 1 } else { block_row };
        let far_above = if counted > 1 { block_row - SMOOTHING_REACH } else { above };
        let below = if counted + 1 < counted_rows { block_row + 1 } else { block_row };
        let far_below = if counted + SMOOTHING_REACH < counted_rows {
            block_row + SMOOTHING_REACH
        } else {
            below
        };
        [far_above, above, block_row, below, far_below].map(|row| self.dc_row(row, dc))
    }

    /// The DC values of a block row.
    fn dc_row<'a>(&self, block_row: u32, dc: &'a [i16]) -> &'a [i16] {
        let at = self.dc_at + block_row as usize * self.dc_stride;
        &dc[at..at + self.grid.columns as usize]
    }
}
