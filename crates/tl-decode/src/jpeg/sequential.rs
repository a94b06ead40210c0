//! Sequential scans (T.81 F.2): the blocks of a window of a scan, in runs of neighbours.
//!
//! What libjpeg warns about is a fault here. Nothing is dequantised.

mod layout;
mod mcus;
mod segment;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use tl_simd::Level;

use super::entropy_data::{EntropyData, SegmentEnd};
use super::huffman::TableCache;
use super::marker::{RST0, RST7};
use super::scan::{
    BlockSink, Damage, HuffmanSpecs, MAX_COMPONENTS, OnDamaged, Scan, ScanEnd, Window,
};
use layout::Layout;
use mcus::{Blocks, Fault};
use segment::{SegmentStop, Walk};

/// Restart markers are numbered from 0 to 7, over and over.
const RESTART_NUMBERS: u64 = 8;

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
        let layout = Layout::new(request.scan)?;
        let numbers = find_tables(&mut self.tables, request)?;
        let tables = numbers.map(|number| self.tables.get(number));
        let mut walk = Walk { request, layout: &layout, tables, sink, row: 0, column: 0 };
        let mut segments = Segments::new(request);
        let mut end = self.data.load(request.file, request.scan.data_at);
        loop {
            let mcus = segments.last_mcu().saturating_sub(walk.mcus_done());
            let stop = level.vectorize(|| walk.segment(&self.data, &mut self.blocks, mcus));
            if stop == SegmentStop::BehindWindow {
                walk.advance(segments.all_mcus);
                return Ok(ScanEnd { at: None, damage: segments.damage });
            }
            if let Some(fault) = fault(stop, &self.data, end) {
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

/// The tables of each component of the scan, by their numbers in the cache.
fn find_tables(
    cache: &mut TableCache,
    request: &Request<'_>,
) -> Result<[usize; MAX_COMPONENTS], Damage> {
    let mut numbers = [0; MAX_COMPONENTS];
    for (number, part) in numbers.iter_mut().zip(request.scan.components()) {
        let spec = |tables: &[Option<_>; 4], id: u8| tables.get(usize::from(id)).copied().flatten();
        let (dc, ac) = (spec(&request.specs.dc, part.dc), spec(&request.specs.ac, part.ac));
        let (Some(dc), Some(ac)) = (dc, ac) else {
            return Err(Damage::at("Huffman table that is not defined", request.scan.data_at));
        };
        let Some(found) = cache.find(&dc, &ac) else {
            return Err(Damage::at("Huffman table with impossible codes", request.scan.data_at));
        };
        *number = found;
    }
    Ok(numbers)
}

/// What is wrong with a segment that was decoded up to `stop`.
fn fault(stop: SegmentStop, data: &EntropyData, end: SegmentEnd) -> Option<Damage> {
    match stop {
        SegmentStop::Complete { left_over: 0 } | SegmentStop::BehindWindow => None,
        SegmentStop::Complete { left_over } => {
            let offset = data.file_offset(data.len() - left_over);
            Some(Damage::at("entropy-coded data behind the last MCU", offset))
        }
        SegmentStop::Fault(Fault::Short, _) => {
            Some(Damage::at("entropy-coded data ends before its last MCU", end.at))
        }
        SegmentStop::Fault(Fault::Code, byte) => {
            let what = "no Huffman code, or a coefficient outside its block";
            Some(Damage::at(what, data.file_offset(byte)))
        }
    }
}

/// Goes from one restart segment to the next.
struct Segments<'a> {
    request: &'a Request<'a>,
    /// MCUs of the scan.
    all_mcus: u64,
    /// MCUs of a segment.
    interval: u64,
    /// The segment that is being decoded.
    number: u64,
    /// The first damage.
    damage: Option<Damage>,
}

impl<'a> Segments<'a> {
    fn new(request: &'a Request<'a>) -> Self {
        let scan = request.scan;
        let all_mcus = u64::from(scan.mcus_per_row) * u64::from(scan.mcu_rows);
        let interval = match scan.restart_interval {
            0 => all_mcus,
            interval => interval.into(),
        };
        Self { request, all_mcus, interval, number: 0, damage: None }
    }

    /// MCUs in front of the segment.
    fn first_mcu(&self) -> u64 {
        (self.number * self.interval).min(self.all_mcus)
    }

    /// MCUs up to the segment's end.
    fn last_mcu(&self) -> u64 {
        ((self.number + 1) * self.interval).min(self.all_mcus)
    }

    /// Keeps the first damage, or makes it the error.
    fn note(&mut self, damage: Damage) -> Result<(), Damage> {
        match self.request.on_damaged {
            OnDamaged::Error => return Err(damage),
            OnDamaged::Keep => self.damage.get_or_insert(damage),
        };
        Ok(())
    }

    /// Loads the next segment, given the `end` of the last; `false` where there is none.
    ///
    /// A marker that is one or two ahead of its turn follows lost segments, one that is as much
    /// behind is a leftover, and any other is taken for the right one, as libjpeg does.
    fn find_next(&mut self, data: &mut EntropyData, end: &mut SegmentEnd) -> Result<bool, Damage> {
        const FIRST_FRAME_MARKER: u8 = 0xC0;
        loop {
            let found = match end.marker {
                Some(marker @ RST0..=RST7) => u64::from(marker - RST0),
                Some(marker) if marker < FIRST_FRAME_MARKER => {
                    self.note(Damage::at("marker inside entropy-coded data", end.at))?;
                    *end = data.load(self.request.file, end.after);
                    continue;
                }
                _ => {
                    self.note(Damage::at("restart marker is missing", end.at))?;
                    return Ok(false);
                }
            };
            let ahead = (found + RESTART_NUMBERS - self.number % RESTART_NUMBERS) % RESTART_NUMBERS;
            if ahead != 0 {
                self.note(Damage::at("restart marker out of turn", end.at))?;
            }
            *end = data.load(self.request.file, end.after);
            match ahead {
                6 | 7 => {}
                lost => {
                    self.number += 1 + if lost <= 2 { lost } else { 0 };
                    return Ok(self.first_mcu() < self.all_mcus);
                }
            }
        }
    }
}
