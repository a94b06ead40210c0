//! Frames of VP8 to samples, row by row.

use tl_simd::Level;
use tl_simd::vp8::{Above, FilterKind, LUMA, filter, reconstruct};

use super::header::Frame;
use super::parse::MacroblockRow;
use super::samples::{RowSink, Samples, Wanted};
use crate::error::DecodeError;

/// The buffers of a decoder.
#[derive(Clone, Debug, Default)]
pub(super) struct LossyBuffers {
    row: MacroblockRow,
    above: Above,
    samples: Samples,
}

/// Rows and columns of luma that a filter changes on the near side of an edge between macroblocks: up
/// to three of chroma are six of luma.
fn reach(kind: Option<FilterKind>) -> usize {
    match kind {
        None => 0,
        Some(FilterKind::Simple) => 2,
        Some(FilterKind::Normal) => 6,
    }
}

/// The macroblocks along a side from the image's edge to the last that samples before `end` need,
/// of `length` samples with a filter of this reach.
fn needed(end: usize, length: usize, reach: usize) -> usize {
    // Upsampling reads the next sample of chroma as well.
    let with_chroma = 2 * (end / 2 + 1).min(length.div_ceil(2));
    (with_chroma + reach).min(length).div_ceil(LUMA)
}

impl LossyBuffers {
    /// Bytes of memory for frames of this width.
    pub(super) fn bytes(width: usize) -> usize {
        let columns = width.div_ceil(LUMA);
        MacroblockRow::bytes(columns) + Samples::bytes(columns)
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.row.kept_bytes() + self.samples.kept_bytes()
    }

    /// Decodes what is wanted of `frame`, and what that depends on.
    ///
    /// # Errors
    /// If a partition ends before its macroblocks do, or `limits` are too small.
    pub(super) fn decode(
        &mut self,
        level: Level,
        frame: &mut Frame<'_>,
        wanted: &Wanted,
        sink: &mut impl RowSink,
    ) -> Result<(), DecodeError> {
        let (width, height) = wanted.size;
        let columns = width.div_ceil(LUMA);
        let reach = reach(frame.filter);
        let filtered = needed(wanted.columns.end, width, reach);
        let rows = needed(wanted.rows.end, height, reach);
        self.row.reset(columns);
        self.above.reset(columns);
        self.samples.reset(columns);
        for row in 0..rows {
            // The prediction of a macroblock needs the one above and to the right.
            let kept = (filtered + rows - 1 - row).min(columns);
            self.row.read(level, frame, row, kept)?;
            let slot = self.samples.begin(row);
            let mut planes = self.samples.planes();
            let macroblocks = &mut self.row.macroblocks[..kept];
            reconstruct(level, macroblocks, &mut self.above, 0..kept, &mut planes, slot);
            if let Some(kind) = frame.filter {
                filter(level, kind, &self.row.filters, 0..filtered, &mut planes, slot);
            }
            let (luma_end, chroma_end) = if (row + 1) * LUMA >= height {
                (height, height.div_ceil(2))
            } else {
                let end = (row + 1) * LUMA - reach;
                (end, end / 2)
            };
            sink.rows(&self.samples, luma_end, chroma_end);
        }
        Ok(())
    }
}
