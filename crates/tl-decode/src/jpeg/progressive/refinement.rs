//! Refinements of AC coefficients (T.81 G.1.2.3), one stretch of blocks of one component at a time.
//!
//! The map of the coefficients that are not zero says which get a correction bit, how many of them
//! a symbol passes and where its new coefficient goes, without looking at the block.

use super::ac::{Band, LAST, Symbol, place, symbol};
use super::low_half;
use super::reading::{Fault, Stretch};
use super::table::{Table, take};
use crate::jpeg::bits::BitReader;
use crate::jpeg::scan::Block;

const BAD_REFINEMENT: Fault = Fault::Content("refinement by more than one bit");

/// The most bits that are taken at once between two refills: what a code and a sign leave.
const CORRECTIONS_AT_ONCE: u32 = 32;

/// Stands for a run that is longer than the band's zeros before a new coefficient. One more if the
/// coefficient is negative.
const AFTER_BAND: u32 = 1 << 31;

/// Decodes one more bit for `blocks`.
#[inline(always)]
pub(super) fn decode(
    table: &Table,
    band: Band,
    stretch: &mut Stretch<'_>,
    blocks: &mut [Block],
    maps: &mut [u64],
) -> Result<(), Fault> {
    let mut run = stretch.run;
    let inside = band.mask();
    let mut places = Places::default();
    for (block, map) in blocks.iter_mut().zip(maps) {
        let known = *map & inside;
        let mut corrections = Corrections { bits: 0, count: 0 };
        if run == 0 {
            let zeros = inside & !known;
            places.list(zeros);
            let symbols = Symbols { table, band, places: &places, zeros: zeros.count_ones() };
            let (fresh, end) = symbols.decode(&mut stretch.bits, block, &mut corrections)?;
            *map |= fresh;
            run = end;
        } else {
            run -= 1;
        }
        if known != 0 {
            stretch.bits.refill();
            corrections.take(known.count_ones() - corrections.count, &mut stretch.bits);
            correct(block, known, corrections.bits, band.low, &mut places);
        }
        if run >= AFTER_BAND {
            // libjpeg stores it after the band or in the last place, once all is corrected.
            let number = (band.last + 1).min(LAST);
            let step = 1 << band.low;
            *place(block, number) = if run == AFTER_BAND { step } else { -step };
            *map |= 1 << number;
            run = 0;
        }
        if stretch.bits.is_past_end() {
            return Err(Fault::Short);
        }
    }
    stretch.run = run;
    Ok(())
}

/// The numbers of coefficients in ascending order.
///
/// The list is made once per block, off the path from one symbol to the next: where a symbol goes
/// depends on those before it by an addition and a load, whatever the number of zeros it passes.
struct Places([u8; 64 + 8]);

impl Default for Places {
    fn default() -> Self {
        Self([0; 72])
    }
}

impl Places {
    /// The numbers of the set bits of each byte, packed.
    const OF_BYTE: [u64; 256] = {
        let mut all = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut bit = 0;
            let mut at = 0;
            while bit < 8 {
                if byte >> bit & 1 == 1 {
                    all[byte] |= bit << at;
                    at += 8;
                }
                bit += 1;
            }
            byte += 1;
        }
        all
    };

    /// Lists the set bits of `map`.
    #[inline(always)]
    fn list(&mut self, map: u64) {
        const EACH_BYTE: u64 = u64::MAX / 255;
        let mut at = 0;
        for (first, byte) in (0..8).map(|i| i * 8).zip(map.to_le_bytes()) {
            let packed = Self::OF_BYTE[usize::from(byte)] + first * EACH_BYTE;
            let start = at & 63;
            self.0[start..start + 8].copy_from_slice(&packed.to_le_bytes());
            at += byte.count_ones() as usize;
        }
    }
}

/// The correction bits of a block, for its known coefficients in zigzag order.
struct Corrections {
    /// The last one is the lowest bit.
    bits: u64,
    count: u32,
}

impl Corrections {
    /// Takes `count` more, 63 in all at the most. [`CORRECTIONS_AT_ONCE`] have to be loaded.
    #[inline(always)]
    fn take(&mut self, count: u32, bits: &mut BitReader<'_>) {
        self.count += count;
        let mut count = count;
        while count > CORRECTIONS_AT_ONCE {
            let taken = take(bits, CORRECTIONS_AT_ONCE);
            self.bits = self.bits << CORRECTIONS_AT_ONCE | u64::from(taken);
            bits.refill();
            count -= CORRECTIONS_AT_ONCE;
        }
        self.bits = self.bits << count | u64::from(take(bits, count));
    }
}

/// The source of a block's symbols in a refinement.
struct Symbols<'a> {
    table: &'a Table,
    band: Band,
    /// The coefficients of the band that are zero, of which there are `zeros`.
    places: &'a Places,
    zeros: u32,
}

impl Symbols<'_> {
    /// Decodes a block's new coefficients, and the corrections between them. Returns the new ones,
    /// and how many blocks after this one have no symbols.
    #[inline(always)]
    fn decode(
        &self,
        bits: &mut BitReader<'_>,
        block: &mut Block,
        corrections: &mut Corrections,
    ) -> Result<(u64, u32), Fault> {
        let mut fresh = 0;
        let mut zero = 0;
        loop {
            bits.refill();
            let entry = self.table.entry(bits);
            let mut passed = u32::from(entry.middle());
            let mut value = entry.value();
            if value != 0 {
                bits.consume(entry.bits());
            } else {
                let low = self.band.low;
                match symbol(bits, self.table, entry.middle(), entry.bits(), low)? {
                    Symbol::Value { zeros, value: long } => {
                        // The table holds the sizes of 1 that are not after a long code.
                        if long.unsigned_abs() >> low != 1 {
                            return Err(BAD_REFINEMENT);
                        }
                        (passed, value) = (zeros, low_half(long));
                    }
                    Symbol::Zeros => passed = 15,
                    Symbol::End { run } => return Ok((fresh, run)),
                }
            }
            zero += passed;
            if zero >= self.zeros {
                let end = match value {
                    0 => 0,
                    value => AFTER_BAND + u32::from(value < 0),
                };
                return Ok((fresh, end));
            }
            let number = u32::from(self.places.0[zero as usize & 63]);
            // All in front of it are zeros that were passed and coefficients with a correction.
            let known = (number - self.band.first).wrapping_sub(zero);
            corrections.take(known.wrapping_sub(corrections.count), bits);
            if value != 0 {
                fresh |= 1 << number;
                *place(block, number) = value;
            }
            zero += 1;
            if number == self.band.last {
                return Ok((fresh, 0));
            }
        }
    }
}

/// Moves the coefficients of `known` whose bit in `corrections` is set away from zero: about half
/// of them, so that listing them first is cheaper than looking at each. `places` is scratch.
#[inline(always)]
fn correct(block: &mut Block, known: u64, corrections: u64, low: u8, places: &mut Places) {
    places.list(known);
    let mut corrections = corrections << (64 - known.count_ones());
    while corrections != 0 {
        let first = corrections.leading_zeros();
        corrections ^= 1 << (63 - first);
        let coefficient = place(block, u32::from(places.0[first as usize & 63]));
        let step = ((*coefficient >> 15) | 1) << low;
        // Values beyond 16 bits wrap, as in libjpeg; no image has them.
        *coefficient = coefficient.wrapping_add(step);
    }
}
