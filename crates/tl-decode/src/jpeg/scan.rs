//! The types between the parser of scan headers and the decoders of scans. No bytes are read here.

use std::ops::Range;

pub(super) use tl_simd::jpeg::Block;

use crate::error::{DecodeError, Defect};
use crate::format::Format;

/// Components of a scan (T.81 B.2.3) and of a frame that can be decoded.
pub(super) const MAX_COMPONENTS: usize = 4;

/// Blocks of all components in an MCU (T.81 B.2.3).
pub(super) const MAX_BLOCKS_PER_MCU: u32 = 10;

/// One component's part of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScanComponent {
    /// Its number in the frame, in the order of the frame header.
    pub(super) component: usize,
    /// Blocks of an MCU from left to right; 1 in a scan of one component.
    pub(super) across: u32,
    /// Blocks of an MCU from top to bottom; 1 in a scan of one component.
    pub(super) down: u32,
    /// The table of its DC coefficients. There are four, but a component that uses none may name
    /// any of 16.
    pub(super) dc: u8,
    /// The table of its AC coefficients, likewise.
    pub(super) ac: u8,
}

/// A scan header, with the numbers of the frame that say how many MCUs follow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// The components, of which the first `count` are in the scan.
    pub(super) components: [ScanComponent; MAX_COMPONENTS],
    /// Components in the scan, 1..=4.
    pub(super) count: usize,
    /// MCUs from left to right. In a scan of one component these are the component's own blocks.
    pub(super) mcus_per_row: u32,
    /// MCUs from top to bottom.
    pub(super) mcu_rows: u32,
    /// MCUs from one restart marker to the next; 0 without restart markers.
    pub(super) restart_interval: u32,
    /// First and last coefficient in zigzag order.
    pub(super) spectral: (u8, u8),
    /// Successive approximation: high, low bit.
    pub(super) approximation: (u8, u8),
    /// The offset of the entropy-coded data in the file.
    pub(super) data_at: usize,
}

impl Scan {
    /// The components of the scan.
    pub(super) fn components(&self) -> &[ScanComponent] {
        &self.components[..self.count.min(MAX_COMPONENTS)]
    }

    /// All of the scan.
    #[cfg(test)]
    pub(super) fn whole(&self) -> Window {
        Window { rows: 0..self.mcu_rows, columns: 0..self.mcus_per_row }
    }
}

/// A Huffman table as it lies in the file (B.2.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HuffmanSpec<'a> {
    /// Codes of each length from 1 to 16 bits.
    pub(super) counts: &'a [u8; 16],
    /// The symbols, in the order of their codes; as many as the counts add up to.
    pub(super) values: &'a [u8],
}

/// The Huffman tables that are defined where a scan begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HuffmanSpecs<'a> {
    /// Tables of DC coefficients by number.
    pub(super) dc: [Option<HuffmanSpec<'a>>; 4],
    /// Tables of AC coefficients by number.
    pub(super) ac: [Option<HuffmanSpec<'a>>; 4],
}

impl<'a> HuffmanSpecs<'a> {
    /// The tables of a component's DC and AC coefficients, if both are defined.
    pub(super) fn of(&self, part: &ScanComponent) -> Option<[HuffmanSpec<'a>; 2]> {
        let spec = |tables: &[Option<_>; 4], id: u8| tables.get(usize::from(id)).copied().flatten();
        Some([spec(&self.dc, part.dc)?, spec(&self.ac, part.ac)?])
    }
}

/// Receives decoded blocks.
pub(super) trait BlockSink {
    /// Takes neighbouring blocks of one block row of `component` (its number in the frame), in
    /// natural order and not dequantised. Leaves them all zero.
    ///
    /// In a scan of several components the last block column and row may lie outside the image.
    fn blocks(&mut self, component: usize, block_row: u32, block_column: u32, blocks: &mut [Block]);

    /// The blocks of an MCU row inside the window are complete, or as complete as damage leaves
    /// them. Rows come in order.
    fn mcu_row_done(&mut self, mcu_row: u32);
}

/// The part of a scan that is wanted, in MCUs. Nothing outside is handed over, and decoding stops
/// after the last row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// MCU rows.
    pub(super) rows: Range<u32>,
    /// MCUs of each of these rows.
    pub(super) columns: Range<u32>,
}

/// The first fault in an image's entropy-coded data, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The defect.
    pub what: &'static str,
    /// The offset in the file at which that was noticed, in bytes.
    pub offset: u64,
}

impl Damage {
    pub(super) fn at(what: &'static str, offset: usize) -> Self {
        Self { what, offset: offset as u64 }
    }
}

impl From<Damage> for DecodeError {
    fn from(damage: Damage) -> Self {
        Defect::Stray { format: Format::Jpeg, what: damage.what, offset: damage.offset }.into()
    }
}

/// The defects of entropy-coded data and the markers in it, in the same words for sequential and
/// progressive scans.
pub(super) mod words {
    pub(in crate::jpeg) const UNUSED: &str = "entropy-coded data after the last MCU";
    pub(in crate::jpeg) const OUT_OF_TURN: &str = "restart marker out of turn";
    pub(in crate::jpeg) const MISSING: &str = "restart marker is missing";
    pub(in crate::jpeg) const INSIDE: &str = "marker inside entropy-coded data";
    pub(in crate::jpeg) const ENDS_EARLY: &str = "entropy-coded data ends before its last MCU";
    pub(in crate::jpeg) const NO_TABLE: &str = "Huffman table that is not defined";
    pub(in crate::jpeg) const BAD_TABLE: &str = "Huffman table with impossible codes";
    pub(in crate::jpeg) const WRONG_INDEX: &str = "row index that is not of this file";
}

/// The treatment of an image whose data is damaged or incomplete after the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnDamaged {
    /// The first damage is an error.
    #[default]
    Error,
    /// Keeps the pixels that can be decoded, makes the rest mid grey, and reports the first damage.
    /// Files may lack everything after the header: an image costs what its header says, within
    /// [`Limits`](crate::Limits).
    Keep,
}

/// The end of decoding in a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScanEnd {
    /// The end of the data in the file, at the marker after it or the end of the file; `None` where
    /// decoding stopped after the window.
    pub(super) at: Option<usize>,
    /// The first damage of a scan that was decoded with [`OnDamaged::Keep`].
    pub(super) damage: Option<Damage>,
}
