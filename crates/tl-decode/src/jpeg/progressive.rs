//! Progressive frames (T.81 annex G).
//!
//! All scans of the file are at hand, so their data is not read one scan after the other into
//! coefficients of the whole image. DC scans are: they fill a plane with one value per block. The
//! AC scans then advance together, a band of MCU rows at a time: each decodes its part of the band
//! where the scan before it has left the same blocks in the cache, and the finished rows go to the
//! sink. That needs no memory in proportion to the image but the DC values, and a region ends every
//! scan at its last row.

mod ac;
mod dc;
mod reading;
mod refinement;
mod rows;
mod script;
mod smooth;
mod table;

use std::ops::Range;

use tl_simd::Level;

use self::ac::Band;
use self::reading::{Fault, Reading};
use self::rows::Component;
use self::script::Progress;
use self::table::{Coding, Table};
use super::scan::{
    Block, BlockSink, Damage, HuffmanSpec, HuffmanSpecs, MAX_COMPONENTS, OnDamaged, Scan, Window,
    words,
};
use crate::error::DecodeError;
use crate::limits::Limits;

const BAD_CODE: Fault = Fault::Content("no such Huffman code");

/// Bytes of coefficients that a scan decodes before the next one has its turn: its tables and these
/// stay in a second-level cache.
const BAND_BYTES: usize = 128 << 10;

/// Data of AC scans that is kept from one image to the next in any case.
const KEPT_BYTES: u64 = 4 << 20;

/// The blocks of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Grid {
    /// Blocks of an MCU of an interleaved scan: the sampling factors, or 1 for an only component.
    pub(super) across: u32,
    pub(super) down: u32,
    /// Blocks that hold samples of the image.
    pub(super) columns: u32,
    pub(super) rows: u32,
    /// Block rows that libjpeg counts to an MCU row for its estimates: the sampling factor.
    pub(super) counted_down: u32,
}

/// An AC scan that is decoded row by row.
#[derive(Debug, Default)]
struct AcScan {
    component: usize,
    band: Band,
    refinement: bool,
    table: Table,
    reading: Reading,
}

/// Decodes progressive frames. Reused, it allocates nothing for an image that is not larger.
#[derive(Debug, Default)]
pub(super) struct Progressive {
    components: Vec<Component>,
    /// MCUs of an interleaved scan.
    mcus: (u32, u32),
    rows: Range<u32>,
    columns: Range<u32>,
    on_damaged: OnDamaged,
    progress: Progress,
    dc: Vec<i16>,
    dc_tables: Vec<Table>,
    dc_reading: Reading,
    scans: Vec<AcScan>,
    scan_count: usize,
    blocks: Vec<Block>,
    maps: Vec<u64>,
    band_rows: u32,
    /// The blocks hold what an image left that ended in an error.
    dirty: bool,
    fixed_bytes: u64,
    damage: Option<Damage>,
}

impl Progressive {
    pub(super) fn kept_bytes(&self) -> usize {
        let read = |scan: &AcScan| size_of::<AcScan>() + scan.reading.kept_bytes();
        self.dc.capacity() * size_of::<i16>()
            + self.blocks.capacity() * size_of::<Block>()
            + self.maps.capacity() * size_of::<u64>()
            + self.dc_reading.kept_bytes()
            + self.scans.iter().map(read).sum::<usize>()
    }

    /// Starts an image, charging `limits` for what this takes in addition to `other_bytes`: planes,
    /// and the data of all scans.
    pub(super) fn begin(
        &mut self,
        grids: &[Grid],
        mcus: (u32, u32),
        window: &Window,
        on_damaged: OnDamaged,
        other_bytes: u64,
        limits: &Limits,
    ) -> Result<(), DecodeError> {
        self.free_data(other_bytes);
        self.components.clear();
        self.mcus = mcus;
        (self.rows, self.columns) = (window.rows.clone(), window.columns.clone());
        self.on_damaged = on_damaged;
        self.progress = Progress::default();
        self.scan_count = 0;
        self.damage = None;

        let mcu_row_blocks: u64 =
            grids.iter().map(|grid| u64::from(grid.columns) * u64::from(grid.down)).sum();
        let mcu_row_bytes = mcu_row_blocks * size_of::<Block>() as u64;
        let wanted = (BAND_BYTES as u64 / mcu_row_bytes.max(1)).clamp(1, u64::from(mcus.1.max(1)));
        self.band_rows = u32::try_from(wanted).unwrap_or(1);

        let mut dc_count = 0usize;
        let mut block_count = 0usize;
        for grid in grids.iter().take(MAX_COMPONENTS) {
            let stride = count(mcus.0, grid.across);
            self.components.push(Component {
                grid: *grid,
                dc_at: dc_count,
                dc_stride: stride,
                blocks_at: block_count,
            });
            // Estimates look at blocks below the image too.
            let rows = grid.rows.next_multiple_of(grid.counted_down.max(1));
            dc_count += stride * rows as usize;
            block_count += count(grid.columns, grid.down * self.band_rows);
        }
        self.fixed_bytes = other_bytes
            + dc_count as u64 * size_of::<i16>() as u64
            + block_count as u64 * (size_of::<Block>() + size_of::<u64>()) as u64;
        limits.charge_working(self.fixed_bytes)?;
        self.dc.clear();
        self.dc.resize(dc_count, 0);
        self.maps.clear();
        self.maps.resize(block_count, 0);
        if self.dirty {
            self.blocks.clear();
        }
        self.blocks.resize(block_count, Block::ZERO);
        self.dirty = true;
        Ok(())
    }

    /// Gives the data of scans back if more is kept than an image needs that takes `wanted` bytes:
    /// each scan keeps what the longest one in its place needed.
    fn free_data(&mut self, wanted: u64) {
        let kept: usize = self.scans.iter().map(|scan| scan.reading.kept_bytes()).sum();
        if kept as u64 > wanted.max(KEPT_BYTES) {
            self.scans.iter_mut().for_each(|scan| scan.reading.free());
        }
    }

    /// Takes in a scan whose header has been read and whose data begins at `scan.data_at` in
    /// `file`. DC scans are decoded here.
    pub(super) fn add_scan(
        &mut self,
        level: Level,
        file: &[u8],
        scan: &Scan,
        specs: &HuffmanSpecs<'_>,
        limits: &Limits,
    ) -> Result<(), DecodeError> {
        if let Some(misfit) = self.progress.enter(scan)? {
            self.note(misfit)?;
        }
        if scan.spectral.0 == 0 {
            return self.decode_dc(level, file, scan, specs);
        }
        let scan_bytes = (self.scan_count + 1) * size_of::<AcScan>();
        limits.charge_working(self.fixed_bytes + scan_bytes as u64)?;
        self.keep_ac(scan, specs)
    }

    fn keep_ac(&mut self, scan: &Scan, specs: &HuffmanSpecs<'_>) -> Result<(), DecodeError> {
        let part = scan.components[0];
        let spec = specs.ac.get(usize::from(part.ac)).copied().flatten();
        if self.scans.len() == self.scan_count {
            self.scans.push(AcScan::default());
        }
        let kept = &mut self.scans[self.scan_count];
        self.scan_count += 1;
        kept.component = part.component;
        kept.band = Band {
            first: scan.spectral.0.into(),
            last: scan.spectral.1.into(),
            low: scan.approximation.1,
        };
        kept.refinement = scan.approximation.0 != 0;
        let coding = if kept.refinement { Coding::Refinement } else { Coding::First };
        build(&mut kept.table, spec, coding, scan)?;
        kept.reading.restart(scan);
        Ok(())
    }

    /// Decodes the AC scans and hands everything inside the window to `sink`. `quantizers` are
    /// those of the components.
    pub(super) fn finish(
        &mut self,
        level: Level,
        file: &[u8],
        quantizers: &[&[u16; 64]],
        sink: &mut impl BlockSink,
    ) -> Result<Option<Damage>, DecodeError> {
        let smoothing = self.progress.wants_smoothing(self.components.len())
            && quantizers.iter().all(|table| smooth::can_divide(table));
        let end = self.rows.end.min(self.mcus.1);
        let mut row = 0;
        while row < end {
            let rows = row..(row + self.band_rows).min(end);
            row = rows.end;
            self.decode_band(level, file, rows.clone())?;
            for row in rows {
                self.hand_over(row, smoothing.then_some(quantizers), sink);
            }
            self.maps.fill(0);
        }
        self.dirty = false;
        Ok(self.damage)
    }

    /// Decodes all AC scans of some MCU rows.
    fn decode_band(
        &mut self,
        level: Level,
        file: &[u8],
        rows: Range<u32>,
    ) -> Result<(), DecodeError> {
        for index in 0..self.scan_count {
            let scan = &mut self.scans[index];
            let component = &self.components[scan.component];
            let grid = component.grid;
            let count =
                (rows.end * grid.down).min(grid.rows).saturating_sub(rows.start * grid.down);
            let blocks = count as usize * grid.columns as usize;
            let place = component.blocks_at..component.blocks_at + blocks;
            let blocks = &mut self.blocks[place.clone()];
            let maps = &mut self.maps[place];
            let damage = level.vectorize(
                #[inline(always)]
                || scan.decode(file, blocks, maps),
            );
            if let Some(damage) = damage {
                self.note(damage)?;
            }
            if rows.end * grid.down >= grid.rows {
                self.scans[index]
                    .reading
                    .check_end(file)
                    .map_or(Ok(()), |damage| self.note(damage))?;
            }
        }
        Ok(())
    }

    /// Fails, or keeps the first damage in the file.
    fn note(&mut self, damage: Damage) -> Result<(), DecodeError> {
        match self.on_damaged {
            OnDamaged::Error => Err(damage.into()),
            OnDamaged::Keep => {
                if self.damage.is_none_or(|first| damage.offset < first.offset) {
                    self.damage = Some(damage);
                }
                Ok(())
            }
        }
    }
}

impl AcScan {
    /// Decodes the next blocks of the component.
    #[inline(always)]
    fn decode(&mut self, file: &[u8], blocks: &mut [Block], maps: &mut [u64]) -> Option<Damage> {
        let mut damage = None;
        let mut done = 0;
        while done < blocks.len() {
            let advance = self.reading.advance(file, blocks.len() - done);
            damage = damage.or(advance.damage);
            let part = done..done + advance.count;
            done = part.end;
            let Some(mut stretch) = self.reading.resume() else { continue };
            let blocks = &mut blocks[part.clone()];
            let maps = &mut maps[part];
            let result = if self.refinement {
                refinement::decode(&self.table, self.band, &mut stretch, blocks, maps)
            } else {
                ac::first(&self.table, self.band, &mut stretch, blocks, maps)
            };
            let position = stretch.bits.position();
            let run = stretch.run;
            match result {
                Ok(()) => self.reading.pause(position, run),
                Err(what) => {
                    let found = self.reading.give_up(file, what, position);
                    damage = damage.or(Some(found));
                }
            }
        }
        damage
    }
}

/// Items in a rectangle whose sides come from 16-bit numbers.
fn count(across: u32, down: u32) -> usize {
    across as usize * down as usize
}

/// The part of a value that libjpeg keeps, where the value may be more than any image has.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "that is the purpose")]
fn low_half(value: i32) -> i16 {
    value as i16
}

/// Lays out the table of a scan.
fn build(
    table: &mut Table,
    spec: Option<HuffmanSpec<'_>>,
    coding: Coding,
    scan: &Scan,
) -> Result<(), Damage> {
    let Some(spec) = spec else {
        return Err(Damage::at(words::NO_TABLE, scan.data_at));
    };
    let low = if coding == Coding::Dc { 0 } else { scan.approximation.1 };
    let built = table.build(&spec, coding, low);
    built.ok_or(Damage::at(words::BAD_TABLE, scan.data_at))
}

#[cfg(test)]
mod tests;
