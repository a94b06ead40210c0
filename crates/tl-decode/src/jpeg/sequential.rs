//! Sequential scans (T.81 F.2): the blocks of a window of a scan, in runs of neighbours.
//!
//! What libjpeg warns about is a fault here. Nothing is dequantised.

mod layout;
mod mcus;
mod restarts;
mod segment;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use tl_simd::Level;
use tl_simd::jpeg::Block;

use super::entropy_data::{EntropyData, STRAY_BYTES, SegmentEnd};
use super::huffman::TableCache;
use super::index::{RowIndex, RowIndexBuilder, RowStart};
use super::scan::{
    BlockSink, Damage, HuffmanSpecs, MAX_COMPONENTS, OnDamaged, Scan, ScanEnd, Window,
};
use layout::Layout;
use mcus::{Blocks, Fault};
use restarts::Segments;
use segment::{AtRows, SegmentStop, Walk};

/// What to decode.
#[derive(Debug)]
pub(super) struct Request<'a> {
    /// The whole file.
    pub(super) file: &'a [u8],
    pub(super) scan: &'a Scan,
    /// The tables that are defined where the scan begins.
    pub(super) specs: &'a HuffmanSpecs<'a>,
    pub(super) window: &'a Window,
    pub(super) on_damaged: OnDamaged,
    /// Used for undamaged data only: what is left of damaged data does not depend on an index.
    pub(super) index: Option<RowIndex<'a>>,
}

/// Decodes sequential scans, and keeps what it needs for that.
#[derive(Debug, Default)]
pub(super) struct SequentialDecoder {
    data: EntropyData,
    tables: TableCache,
    blocks: Blocks,
}

impl SequentialDecoder {
    /// Decodes the window of a scan into `sink`.
    pub(super) fn decode(
        &mut self,
        level: Level,
        request: &Request<'_>,
        sink: &mut impl BlockSink,
    ) -> Result<ScanEnd, Damage> {
        let mut at_rows = match request.index {
            Some(index) if request.on_damaged == OnDamaged::Error => AtRows::Check(index),
            _ => AtRows::Nothing,
        };
        self.walk(level, request, &mut at_rows, sink)
    }

    /// Adds the row index of a whole scan to `out`. Where the scan's data ends; `None` for a file
    /// that is too large for an index.
    pub(super) fn row_index(
        &mut self,
        level: Level,
        file: &[u8],
        scan: &Scan,
        specs: &HuffmanSpecs<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>, Damage> {
        let window = Window { rows: 0..scan.mcu_rows, columns: 0..0 };
        let on_damaged = OnDamaged::Error;
        let request = Request { file, scan, specs, window: &window, on_damaged, index: None };
        let mut at_rows = AtRows::Record(RowIndexBuilder::new(scan, out));
        let end = self.walk(level, &request, &mut at_rows, &mut Unwanted)?;
        match (at_rows, end.at) {
            (AtRows::Record(index), Some(at)) => Ok(index.finish(at).then_some(at)),
            _ => Ok(None),
        }
    }

    fn walk<S: BlockSink>(
        &mut self,
        level: Level,
        request: &Request<'_>,
        at_rows: &mut AtRows<'_>,
        sink: &mut S,
    ) -> Result<ScanEnd, Damage> {
        let scan = request.scan;
        let layout = Layout::new(scan)?;
        let numbers = find_tables(&mut self.tables, level, request)?;
        let tables = numbers.map(|number| self.tables.get(number));
        let mut segments = Segments::new(request);
        let mut start = RowStart::default();
        let (mut row, mut file, mut data_end) = (0, request.file, None);
        if let AtRows::Check(index) = at_rows {
            index.check(scan, file)?;
            row = segments.provable_row(request.window.rows.start);
            start = index.row(row).unwrap_or_default();
            segments.number = segments.mcus_before(row) / segments.interval;
            if segments.begins_with(row) && !segments.is_start(&start) {
                return Err(Damage::at(WRONG_INDEX, scan.data_at + start.byte()));
            }
            let next = index.row(request.window.rows.end);
            match next.filter(|_| scan.restart_interval == 0) {
                Some(next) => file = &file[..row_end(file, scan, &next)],
                None => data_end = Some(index.data_end()),
            }
        }
        let mut end = self.data.load(file, scan.data_at + start.byte());
        let mut walk = Walk { request, layout: &layout, tables, sink, at_rows, row, column: 0 };
        loop {
            let mcus = segments.last_mcu().saturating_sub(walk.mcus_done());
            let stop = level.vectorize(
                #[inline(always)]
                || walk.segment(&self.data, &mut self.blocks, &start, mcus),
            );
            start = RowStart::default();
            if stop == SegmentStop::BehindWindow {
                walk.advance(segments.all_mcus);
                return Ok(ScanEnd { at: None, damage: segments.damage });
            }
            if let Some(fault) = fault(stop, request.file, &self.data, end) {
                segments.note(fault)?;
            }
            let done = segments.last_mcu();
            walk.advance(done.saturating_sub(walk.mcus_done()));
            if done == segments.all_mcus || !segments.find_next(&mut self.data, &mut end)? {
                if data_end.is_some_and(|data_end| data_end != end.at) {
                    return Err(Damage::at(WRONG_INDEX, end.at));
                }
                walk.advance(segments.all_mcus);
                return Ok(ScanEnd { at: Some(end.at), damage: segments.damage });
            }
            // Segments whose markers are missing.
            walk.advance(segments.first_mcu().saturating_sub(done));
        }
    }
}

const WRONG_INDEX: &str = "row index that is not of this file";

/// Where the last byte of a row ends in the file, given where the next row starts.
fn row_end(file: &[u8], scan: &Scan, next: &RowStart) -> usize {
    let at = scan.data_at + next.byte();
    let shared = match file.get(at) {
        _ if next.bit() == 0 => 0,
        Some(0xFF) => 2,
        _ => 1,
    };
    (at + shared).min(file.len())
}

/// Passes over a scan.
struct Unwanted;

impl BlockSink for Unwanted {
    fn blocks(&mut self, _: usize, _: u32, _: u32, blocks: &mut [Block]) {
        blocks.fill(Block::ZERO);
    }

    fn mcu_row_done(&mut self, _: u32) {}
}

/// The tables of each component of the scan, by their numbers in the cache.
fn find_tables(
    cache: &mut TableCache,
    level: Level,
    request: &Request<'_>,
) -> Result<[usize; MAX_COMPONENTS], Damage> {
    let mut numbers = [0; MAX_COMPONENTS];
    for (number, part) in numbers.iter_mut().zip(request.scan.components()) {
        let spec = |tables: &[Option<_>; 4], id: u8| tables.get(usize::from(id)).copied().flatten();
        let (dc, ac) = (spec(&request.specs.dc, part.dc), spec(&request.specs.ac, part.ac));
        let (Some(dc), Some(ac)) = (dc, ac) else {
            return Err(Damage::at("Huffman table that is not defined", request.scan.data_at));
        };
        let Some(found) = cache.find(level, &dc, &ac) else {
            return Err(Damage::at("Huffman table with impossible codes", request.scan.data_at));
        };
        *number = found;
    }
    Ok(numbers)
}

/// What is wrong with a segment that was decoded up to `stop`.
fn fault(stop: SegmentStop, file: &[u8], data: &EntropyData, end: SegmentEnd) -> Option<Damage> {
    match stop {
        SegmentStop::Complete { left_over: 0..=STRAY_BYTES } | SegmentStop::BehindWindow => None,
        SegmentStop::Complete { left_over } => {
            let offset = data.file_offset(file, data.len() - left_over);
            Some(Damage::at("entropy-coded data behind the last MCU", offset))
        }
        SegmentStop::Fault(Fault::Short, _) => {
            Some(Damage::at("entropy-coded data ends before its last MCU", end.at))
        }
        SegmentStop::Fault(Fault::Index, byte) => {
            Some(Damage::at(WRONG_INDEX, data.file_offset(file, byte)))
        }
        SegmentStop::Fault(Fault::Code, byte) => {
            Some(Damage::at("no such Huffman code", data.file_offset(file, byte)))
        }
    }
}
