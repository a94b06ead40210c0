//! DC scans (T.81 G.1.2.1), into a plane with one value per block. Only these are interleaved.

use tl_simd::Level;

use super::reading::{Fault, Reading};
use super::rows::SMOOTHING_REACH;
use super::table::{Coding, Table, take};
use super::{BAD_CODE, Progressive, build, low_half};
use crate::error::DecodeError;
use crate::jpeg::bits::BitReader;
use crate::jpeg::huffman::extend;
use crate::jpeg::scan::{Damage, HuffmanSpecs, MAX_BLOCKS_PER_MCU, MAX_COMPONENTS, Scan};

/// One block of an MCU.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Its value in the first MCU of a row.
    at: usize,
    /// From there to the next MCU.
    step: usize,
    /// From there to the next MCU row.
    row_step: usize,
    /// The component of the scan that it belongs to.
    part: usize,
}

/// The MCUs of a scan.
#[derive(Clone, Copy, Debug)]
struct Layout {
    places: [Place; MAX_BLOCKS_PER_MCU as usize],
    count: usize,
    mcus_per_row: usize,
    low: u8,
    refinement: bool,
}

impl Progressive {
    /// Decodes a DC scan down to what the window and the estimates in it need.
    pub(super) fn decode_dc(
        &mut self,
        level: Level,
        file: &[u8],
        scan: &Scan,
        specs: &HuffmanSpecs<'_>,
    ) -> Result<(), DecodeError> {
        let layout = self.layout(scan);
        self.dc_tables.resize_with(MAX_COMPONENTS, Table::default);
        if !layout.refinement {
            for (part, table) in scan.components().iter().zip(&mut self.dc_tables) {
                let spec = specs.dc.get(usize::from(part.dc)).copied().flatten();
                build(table, spec, Coding::Dc, scan)?;
            }
        }
        // In a scan of one component an MCU row is a block row.
        let rows_per_mcu = match scan.components() {
            [part] => self.components[part.component].grid.down,
            _ => 1,
        };
        let wanted = (self.rows.end + SMOOTHING_REACH).saturating_mul(rows_per_mcu);
        let rows = wanted.min(scan.mcu_rows);
        let Self { dc, dc_tables: tables, dc_reading: reading, .. } = self;
        reading.restart(scan);
        let mut damage = level.vectorize(
            #[inline(always)]
            || layout.decode(rows as usize, file, reading, tables, dc),
        );
        if rows == scan.mcu_rows {
            damage = damage.or(reading.check_end(file));
        }
        damage.map_or(Ok(()), |damage| self.note(damage))
    }

    fn layout(&self, scan: &Scan) -> Layout {
        let mut layout = Layout {
            places: [Place::default(); MAX_BLOCKS_PER_MCU as usize],
            count: 0,
            mcus_per_row: scan.mcus_per_row as usize,
            low: scan.approximation.1,
            refinement: scan.approximation.0 != 0,
        };
        for (part, of) in scan.components().iter().enumerate() {
            let component = &self.components[of.component];
            for y in 0..of.down as usize {
                for x in 0..of.across as usize {
                    layout.places[layout.count] = Place {
                        at: component.dc_at + y * component.dc_stride + x,
                        step: of.across as usize,
                        row_step: of.down as usize * component.dc_stride,
                        part,
                    };
                    layout.count += 1;
                }
            }
        }
        layout
    }
}

impl Layout {
    #[inline(always)]
    fn decode(
        &self,
        rows: usize,
        file: &[u8],
        reading: &mut Reading,
        tables: &[Table],
        dc: &mut [i16],
    ) -> Option<Damage> {
        let mut damage = None;
        let mut predictors = [0i32; MAX_COMPONENTS];
        for row in 0..rows {
            let mut done = 0;
            while done < self.mcus_per_row {
                let advance = reading.advance(file, self.mcus_per_row - done);
                damage = damage.or(advance.damage);
                if advance.restarted {
                    predictors = [0; MAX_COMPONENTS];
                }
                let mcus = done..done + advance.count;
                done = mcus.end;
                let Some(mut stretch) = reading.resume() else { continue };
                let bits = &mut stretch.bits;
                let result = if self.refinement {
                    self.refine(row, mcus, bits, dc);
                    Ok(())
                } else {
                    self.first(row, mcus, bits, (tables, &mut predictors), dc)
                };
                let result = if bits.is_past_end() { Err(Fault::Short) } else { result };
                let position = bits.position();
                match result {
                    Ok(()) => reading.pause(position, 0),
                    Err(what) => {
                        let found = reading.give_up(file, what, position);
                        damage = damage.or(Some(found));
                    }
                }
            }
        }
        damage
    }

    #[inline(always)]
    fn first(
        &self,
        row: usize,
        mcus: std::ops::Range<usize>,
        bits: &mut BitReader<'_>,
        coder: (&[Table], &mut [i32; MAX_COMPONENTS]),
        dc: &mut [i16],
    ) -> Result<(), Fault> {
        let (tables, predictors) = coder;
        for mcu in mcus {
            for place in &self.places[..self.count] {
                bits.refill();
                let table = &tables[place.part & 3];
                let entry = table.entry(bits);
                let difference = if entry.middle() == 0 && entry.bits() != 0 {
                    bits.consume(entry.bits());
                    i32::from(entry.value())
                } else {
                    long_difference(bits, table, entry.middle(), entry.bits())?
                };
                let predictor = &mut predictors[place.part & 3];
                *predictor = predictor.wrapping_add(difference);
                dc[place.at + row * place.row_step + mcu * place.step] =
                    low_half(*predictor << self.low);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn refine(
        &self,
        row: usize,
        mcus: std::ops::Range<usize>,
        bits: &mut BitReader<'_>,
        dc: &mut [i16],
    ) {
        const { assert!(MAX_BLOCKS_PER_MCU < BitReader::REFILLED) };
        for mcu in mcus {
            bits.refill();
            for place in &self.places[..self.count] {
                let bit = i16::from(take(bits, 1) != 0);
                dc[place.at + row * place.row_step + mcu * place.step] |= bit << self.low;
            }
        }
    }
}

/// A difference that is not in the table as a whole.
#[cold]
fn long_difference(
    bits: &mut BitReader<'_>,
    table: &Table,
    middle: u8,
    length: u32,
) -> Result<i32, Fault> {
    let (size, length) = match length {
        0 => table.any_symbol(bits.bits()).ok_or(BAD_CODE)?,
        _ => (middle, length),
    };
    bits.consume(length);
    match u32::from(size) {
        0 => Ok(0),
        size @ 1..=15 => Ok(extend(take(bits, size), size)),
        _ => Err(BAD_CODE),
    }
}
