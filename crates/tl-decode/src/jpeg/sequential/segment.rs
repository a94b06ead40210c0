//! A walk over the MCUs of restart segments: which of them are decoded, kept, handed over.

use super::Request;
use super::layout::Layout;
use super::mcus::{self, Blocks, Fault, Predictors};
use crate::jpeg::bits::BitReader;
use crate::jpeg::entropy_data::EntropyData;
use crate::jpeg::huffman::Tables;
use crate::jpeg::index::{RowIndexBuilder, RowStart};
use crate::jpeg::scan::{BlockSink, MAX_COMPONENTS};

/// The position of a walk through a segment, and its request.
pub(super) struct Walk<'a, 'b, S> {
    pub(super) request: &'a Request<'a>,
    pub(super) layout: &'a Layout<'a>,
    pub(super) tables: [&'a Tables; MAX_COMPONENTS],
    pub(super) sink: &'a mut S,
    /// Takes the places where rows begin.
    pub(super) index: Option<&'a mut RowIndexBuilder<'b>>,
    /// The next MCU.
    pub(super) row: u32,
    pub(super) column: u32,
}

/// The end of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentStop {
    /// All its MCUs were decoded up to this bit of the data; this many bytes are left over.
    Complete { left_over: usize, position: usize, predictors: Predictors },
    /// The next MCU lies past the end of the window.
    PastWindow,
    /// At this byte of the data.
    Fault(Fault, usize),
}

/// MCUs of one row that are treated alike.
struct Piece {
    mcus: u32,
    wanted: bool,
}

impl<S: BlockSink> Walk<'_, '_, S> {
    /// Decodes `mcus` MCUs of a segment from a place in its first byte on.
    #[inline(always)]
    pub(super) fn segment(
        &mut self,
        data: &EntropyData,
        blocks: &mut Blocks,
        start: &RowStart,
        mut mcus: u64,
    ) -> SegmentStop {
        let mut bits = BitReader::at(data, start.bit());
        let mut predictors = start.predictors;
        while mcus > 0 {
            if self.column == 0 {
                self.record_row(data, bits.position(), &predictors);
            }
            let Some(Piece { mcus: count, wanted }) = self.next_piece() else {
                return SegmentStop::PastWindow;
            };
            let count = u32::try_from(mcus).map_or(count, |left| count.min(left));
            let slots = self.layout.slots();
            let tables = &self.tables;
            let state = (&mut bits, &mut predictors);
            let (done, fault) = if wanted {
                mcus::decode(state.0, slots, tables, state.1, blocks, count)
            } else {
                mcus::skip(state.0, slots, tables, state.1, count)
            };
            if wanted {
                self.hand_over(blocks, done);
            }
            self.advance(done.into());
            if let Some(fault) = fault {
                blocks.clear();
                return SegmentStop::Fault(fault, bits.position() / 8);
            }
            mcus -= u64::from(count);
        }
        let left_over = bits.whole_bytes_left();
        let position = bits.position();
        SegmentStop::Complete { left_over, position, predictors }
    }

    /// The next piece; `None` after the window.
    #[inline(always)]
    fn next_piece(&self) -> Option<Piece> {
        let window = self.request.window;
        let end = self.request.scan.mcus_per_row;
        let rows = &window.rows;
        let columns = &window.columns;
        let last_row = self.row + 1 == rows.end && self.row + 1 < self.request.scan.mcu_rows;
        if self.row >= rows.end || last_row && self.column >= columns.end {
            return None;
        }
        Some(if self.row < rows.start || self.column >= columns.end {
            Piece { mcus: end - self.column, wanted: false }
        } else if self.column < columns.start {
            Piece { mcus: columns.start - self.column, wanted: false }
        } else {
            let mcus = (columns.end - self.column).min(self.layout.run_mcus);
            Piece { mcus, wanted: true }
        })
    }

    /// Tells the index that is being made, if there is one, that a row begins.
    fn record_row(&mut self, data: &EntropyData, position: usize, predictors: &Predictors) {
        if let Some(index) = &mut self.index {
            let byte = data.file_offset(self.request.file, position / 8);
            let byte = byte.saturating_sub(self.request.scan.data_at);
            index.push(byte, position % 8, predictors);
        }
    }

    fn hand_over(&mut self, blocks: &mut Blocks, mcus: u32) {
        if mcus > 0 {
            for run in self.layout.block_runs(self.row, self.column, mcus) {
                self.sink.blocks(run.component, run.row, run.column, blocks.run(run.places));
            }
        }
    }

    /// Goes on by `mcus` MCUs and tells of the rows that ends.
    pub(super) fn advance(&mut self, mcus: u64) {
        let across = u64::from(self.request.scan.mcus_per_row);
        let mut column = u64::from(self.column) + mcus;
        while column >= across && self.row < self.request.scan.mcu_rows {
            if self.request.window.rows.contains(&self.row) {
                self.sink.mcu_row_done(self.row);
            }
            self.row += 1;
            column -= across;
        }
        self.column = u32::try_from(column).unwrap_or(0);
    }

    /// MCUs of the scan in front of the next one.
    pub(super) fn mcus_done(&self) -> u64 {
        u64::from(self.row) * u64::from(self.request.scan.mcus_per_row) + u64::from(self.column)
    }
}
