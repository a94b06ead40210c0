//! First AC scans (T.81 G.1.2.2), one stretch of blocks of one component at a time, and what they
//! share with refinements.
//!
//! Beside its coefficients each block has a map of those that are not zero, a bit for each in
//! zigzag order, which refinements need.

use super::reading::{Fault, Stretch};
use super::table::{Table, take};
use super::{BAD_CODE, low_half};
use crate::jpeg::bits::BitReader;
use crate::jpeg::huffman::extend;
use crate::jpeg::scan::Block;
use crate::jpeg::zigzag::NATURAL;

/// The last coefficient of a block.
pub(super) const LAST: u32 = 63;

/// An AC scan's parameters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Band {
    /// First and last coefficient, 1..=63.
    pub(super) first: u32,
    pub(super) last: u32,
    /// The bit that is coded last.
    pub(super) low: u8,
}

impl Band {
    /// Its coefficients, as bits.
    pub(super) fn mask(self) -> u64 {
        (!0 << self.first) & (!0 >> (63 - self.last))
    }
}

/// A symbol that is not in the table as a whole.
pub(super) enum Symbol {
    /// A value after some zeros.
    Value { zeros: u32, value: i32 },
    /// Sixteen zeros.
    Zeros,
    /// This and this many further blocks end here.
    End { run: u32 },
}

/// Reads what `entry` did not say; the first bit of `position` is the symbol's.
#[inline(always)]
pub(super) fn symbol(
    bits: &mut BitReader<'_>,
    table: &Table,
    middle: u8,
    length: u32,
    low: u8,
) -> Result<Symbol, Fault> {
    let (symbol, length) = match length {
        0 => table.any_symbol(bits.bits()).ok_or(BAD_CODE)?,
        _ => (middle, length),
    };
    bits.consume(length);
    let high = u32::from(symbol >> 4);
    let size = u32::from(symbol & 15);
    if size > 0 {
        let value = extend(take(bits, size), size) << low;
        return Ok(Symbol::Value { zeros: high, value });
    }
    if high == 15 {
        return Ok(Symbol::Zeros);
    }
    let more = take(bits, high);
    Ok(Symbol::End { run: (1 << high) - 1 + more })
}

/// Decodes first values for `blocks`.
#[inline(always)]
pub(super) fn first(
    table: &Table,
    band: Band,
    stretch: &mut Stretch<'_>,
    blocks: &mut [Block],
    maps: &mut [u64],
) -> Result<(), Fault> {
    let mut pairs = blocks.iter_mut().zip(maps);
    loop {
        let skipped = pairs.len().min(stretch.run as usize);
        let Some((block, map)) = pairs.nth(skipped) else {
            stretch.run -= u32::try_from(skipped).unwrap_or(stretch.run);
            return Ok(());
        };
        stretch.run = first_block(table, band, &mut stretch.bits, block, map)?;
        if stretch.bits.is_past_end() {
            return Err(Fault::Short);
        }
    }
}

/// Decodes one block. Returns how many blocks after it have no symbols.
///
/// As in libjpeg, a coefficient after the band ends the block and is stored where it says, or in
/// the last place if that is after the block.
#[inline(always)]
fn first_block(
    table: &Table,
    band: Band,
    bits: &mut BitReader<'_>,
    block: &mut Block,
    map: &mut u64,
) -> Result<u32, Fault> {
    let mut next = band.first;
    let mut seen = *map;
    let run = loop {
        bits.refill();
        let mut entry = table.entry(bits);
        let mut zeros = u32::from(entry.middle());
        let mut value = entry.value();
        // Two coefficients that are in the table fit into one refill with room for a long one.
        if value != 0 {
            bits.consume(entry.bits());
            next = (next + zeros).min(LAST);
            seen |= 1 << next;
            *place(block, next) = value;
            next += 1;
            if next > band.last {
                break 0;
            }
            entry = table.entry(bits);
            (zeros, value) = (u32::from(entry.middle()), entry.value());
        }
        if value != 0 {
            bits.consume(entry.bits());
        } else {
            match symbol(bits, table, entry.middle(), entry.bits(), band.low)? {
                Symbol::Value { zeros: before, value: long } => {
                    (zeros, value) = (before, low_half(long));
                    // A value that is too large must leave nothing.
                    if value == 0 {
                        next = (next + zeros).min(LAST);
                        seen &= !(1 << next);
                        *place(block, next) = 0;
                        next += 1;
                        if next > band.last {
                            break 0;
                        }
                        continue;
                    }
                }
                Symbol::Zeros => {
                    next += 16;
                    if next > band.last {
                        break 0;
                    }
                    continue;
                }
                Symbol::End { run } => break run,
            }
        }
        next = (next + zeros).min(LAST);
        seen |= 1 << next;
        *place(block, next) = value;
        next += 1;
        if next > band.last {
            break 0;
        }
    };
    *map = seen;
    Ok(run)
}

/// The coefficient with `number` in zigzag order.
#[inline(always)]
pub(super) fn place(block: &mut Block, number: u32) -> &mut i16 {
    &mut block.0[usize::from(NATURAL[number as usize & 63]) & 63]
}
