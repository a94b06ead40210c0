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
    BlockSink, Damage, HuffmanSpecs, MAX_COMPONENTS, OnDamaged, Scan, ScanEnd, Window, words,
};
use layout::Layout;
use mcus::{Blocks, Fault};
use restarts::Segments;
use segment::{SegmentStop, Walk};

/// The request of a scan.
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
    /// The memory that is kept in proportion to an image; tables and one run of blocks are not.
    pub(super) fn kept_bytes(&self) -> usize {
        self.data.kept_bytes()
    }

    /// Decodes the window of a scan into `sink`.
    pub(super) fn decode(
        &mut self,
        level: Level,
        request: &Request<'_>,
        sink: &mut impl BlockSink,
    ) -> Result<ScanEnd, Damage> {
        let index = request.index.filter(|_| request.on_damaged == OnDamaged::Error);
        let Some(index) = index else {
            return self.walk(level, request, 0, RowStart::default(), None, sink);
        };
        index.check(request.scan, request.file)?;
        if request.scan.restart_interval == 0 {
            return self.rows(level, request, &index, sink);
        }
        let row = request.window.rows.start;
        let start = index.row(row).unwrap_or_default();
        self.walk(level, request, row, start, None, sink)
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
        let mut index = RowIndexBuilder::new(scan, out);
        let start = RowStart::default();
        let end = self.walk(level, &request, 0, start, Some(&mut index), &mut Unwanted)?;
        Ok(end.at.filter(|&at| index.finish(file, at)))
    }

    /// Decodes each row of the window from its start in the index, up to the end of the window. The
    /// scan has no restart markers.
    fn rows<S: BlockSink>(
        &mut self,
        level: Level,
        request: &Request<'_>,
        index: &RowIndex<'_>,
        sink: &mut S,
    ) -> Result<ScanEnd, Damage> {
        let Request { file, scan, window, .. } = *request;
        let layout = Layout::new(scan)?;
        let numbers = find_tables(&mut self.tables, level, request)?;
        let tables = numbers.map(|number| self.tables.get(number));
        let row = window.rows.start;
        let mcus = window.columns.end.into();
        let mut walk = Walk { request, layout: &layout, tables, sink, index: None, row, column: 0 };
        for row in window.rows.clone() {
            let start = index.row(row).unwrap_or_default();
            self.data.load(&file[..index.row_end(row, file)], scan.data_at + start.byte());
            let stop = segment(level, &mut walk, &self.data, &mut self.blocks, &start, mcus);
            if let Some(byte) = leaves_row(stop, &self.data, &walk, index) {
                return Err(Damage::at(words::WRONG_INDEX, self.data.file_offset(file, byte)));
            }
            walk.advance(u64::from(scan.mcus_per_row).saturating_sub(mcus));
        }
        Ok(ScanEnd { at: None, damage: None })
    }

    /// Decodes the window from where a row starts, the first one or one above the window or in it.
    fn walk<S: BlockSink>(
        &mut self,
        level: Level,
        request: &Request<'_>,
        row: u32,
        mut start: RowStart,
        index: Option<&mut RowIndexBuilder<'_>>,
        sink: &mut S,
    ) -> Result<ScanEnd, Damage> {
        let Request { file, scan, .. } = *request;
        let layout = Layout::new(scan)?;
        let numbers = find_tables(&mut self.tables, level, request)?;
        let tables = numbers.map(|number| self.tables.get(number));
        let mut segments = Segments::new(request);
        segments.number = segments.mcus_before(row) / segments.interval;
        let mut end = self.data.load(file, scan.data_at + start.byte());
        let mut walk = Walk { request, layout: &layout, tables, sink, index, row, column: 0 };
        loop {
            let mcus = segments.last_mcu().saturating_sub(walk.mcus_done());
            let stop = segment(level, &mut walk, &self.data, &mut self.blocks, &start, mcus);
            start = RowStart::default();
            if stop == SegmentStop::PastWindow {
                walk.advance(segments.all_mcus);
                return Ok(ScanEnd { at: None, damage: segments.damage });
            }
            if let Some(fault) = fault(stop, request.file, &self.data, end) {
                segments.note(fault)?;
            }
            let done = segments.last_mcu();
            walk.advance(done.saturating_sub(walk.mcus_done()));
            if done == segments.all_mcus || !segments.find_next(&mut self.data, &mut end)? {
                walk.advance(segments.all_mcus);
                return Ok(ScanEnd { at: Some(end.at), damage: segments.damage });
            }
            // Segments whose markers are missing.
            walk.advance(segments.first_mcu().saturating_sub(done));
        }
    }
}

/// Decodes MCUs of a segment with the instructions of a level.
fn segment<S: BlockSink>(
    level: Level,
    walk: &mut Walk<'_, '_, S>,
    data: &EntropyData,
    blocks: &mut Blocks,
    start: &RowStart,
    mcus: u64,
) -> SegmentStop {
    level.vectorize(
        #[inline(always)]
        || walk.segment(data, blocks, start, mcus),
    )
}

/// The byte of a row's data at which decoding it proves the index wrong, if it does: at a fault, or
/// where a row that was decoded to its end does not leave off as the index says.
fn leaves_row<S: BlockSink>(
    stop: SegmentStop,
    data: &EntropyData,
    walk: &Walk<'_, '_, S>,
    index: &RowIndex<'_>,
) -> Option<usize> {
    match stop {
        SegmentStop::Fault(_, byte) => Some(byte),
        SegmentStop::Complete { position, predictors, .. } if walk.column == 0 => {
            let next = index.row(walk.row)?;
            // The data ends with the byte in which the next row begins, or in front of it.
            let end = (data.len() * 8).checked_sub((8 - next.bit()) % 8);
            (end != Some(position) || predictors != next.predictors).then_some(position / 8)
        }
        SegmentStop::Complete { .. } | SegmentStop::PastWindow => None,
    }
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
        let data_at = request.scan.data_at;
        let [dc, ac] = request.specs.of(part).ok_or(Damage::at(words::NO_TABLE, data_at))?;
        let found = cache.find(level, &dc, &ac);
        *number = found.ok_or(Damage::at(words::BAD_TABLE, data_at))?;
    }
    Ok(numbers)
}

/// The damage of a segment that was decoded up to `stop`.
fn fault(stop: SegmentStop, file: &[u8], data: &EntropyData, end: SegmentEnd) -> Option<Damage> {
    match stop {
        SegmentStop::Complete { left_over: 0..=STRAY_BYTES, .. } | SegmentStop::PastWindow => None,
        SegmentStop::Complete { left_over, .. } => {
            let offset = data.file_offset(file, data.len() - left_over);
            Some(Damage::at(words::UNUSED, offset))
        }
        SegmentStop::Fault(Fault::Short, _) => Some(Damage::at(words::ENDS_EARLY, end.at)),
        SegmentStop::Fault(Fault::Code, byte) => {
            Some(Damage::at("no such Huffman code", data.file_offset(file, byte)))
        }
    }
}
