//! The inner loops: coefficients of blocks, blocks of MCUs. Nearly all of the time is spent here.
//!
//! A look-up needs the bits that the last one left, so that the chain from table to shift to table
//! bounds the speed; everything else fits next to it.

#![expect(clippy::cast_possible_truncation, reason = "casts cut bit fields out of words")]

use tl_simd::jpeg::Block;

use super::layout::{BUFFER_BLOCKS, Slot};
use crate::jpeg::bits::BitReader;
use crate::jpeg::huffman::{COEFFICIENTS, Entry, Tables, distance, lengths_of, overruns};
use crate::jpeg::scan::MAX_COMPONENTS;
use crate::jpeg::zigzag::NATURAL;

/// The buffer of a run of MCUs, all zero between runs.
#[derive(Debug)]
pub(super) struct Blocks(Box<[Block; BUFFER_BLOCKS]>);

impl Default for Blocks {
    fn default() -> Self {
        Self(Box::new([Block::ZERO; BUFFER_BLOCKS]))
    }
}

impl Blocks {
    pub(super) fn run(&mut self, places: std::ops::Range<usize>) -> &mut [Block] {
        &mut self.0[places]
    }

    #[inline(always)]
    pub(super) fn block(&mut self, place: usize) -> &mut Block {
        &mut self.0[place % BUFFER_BLOCKS]
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(Block::ZERO);
    }
}

/// The last DC coefficient of each component of the scan; wraps as the coefficients do.
pub(super) type Predictors = [i16; MAX_COMPONENTS];

/// Block positions are below 64, a block's end is at 64 or beyond, and this is neither.
const FAULT: u32 = 0x100;

/// The reason why a run of MCUs ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// No code has these bits.
    Code,
    /// The data ended.
    Short,
}

/// Decodes `mcus` MCUs; how many were, and why no more.
#[inline(always)]
pub(super) fn decode(
    bits: &mut BitReader<'_>,
    slots: &[Slot],
    tables: &[&Tables; MAX_COMPONENTS],
    predictors: &mut Predictors,
    blocks: &mut Blocks,
    mcus: u32,
) -> (u32, Option<Fault>) {
    let mut reader = *bits;
    for mcu in 0..mcus {
        for slot in slots {
            let block = blocks.block(slot.place(mcu as usize));
            let component = slot.component % MAX_COMPONENTS;
            let end = decode_block(&mut reader, tables[component], block);
            if end == FAULT {
                *bits = reader;
                let fault = if reader.is_past_end() { Fault::Short } else { Fault::Code };
                return (mcu, Some(fault));
            }
            let dc = predictors[component].wrapping_add(block.0[0]);
            predictors[component] = dc;
            block.0[0] = dc;
        }
        if reader.is_past_end() {
            *bits = reader;
            return (mcu, Some(Fault::Short));
        }
    }
    *bits = reader;
    (mcus, None)
}

/// Decodes the coefficients of a block, the difference of the first among them; the position
/// after them or [`FAULT`].
#[inline(always)]
fn decode_block(bits: &mut BitReader<'_>, tables: &Tables, block: &mut Block) -> u32 {
    bits.refill();
    let mut at = step(bits, tables.dc(bits.bits()), 0, tables, block);
    // Two entries fit into what is refilled.
    while at < COEFFICIENTS {
        at = step(bits, tables.ac(bits.bits()), at, tables, block);
        if at >= COEFFICIENTS {
            break;
        }
        bits.refill();
        at = step(bits, tables.ac(bits.bits()), at, tables, block);
    }
    at
}

/// Passes over `mcus` MCUs, of which only the DC coefficients matter; how many were, and why no
/// more.
#[inline(always)]
pub(super) fn skip(
    bits: &mut BitReader<'_>,
    slots: &[Slot],
    tables: &[&Tables; MAX_COMPONENTS],
    predictors: &mut Predictors,
    mcus: u32,
) -> (u32, Option<Fault>) {
    let mut reader = *bits;
    for mcu in 0..mcus {
        for slot in slots {
            let component = slot.component % MAX_COMPONENTS;
            let (end, difference) = skip_block(&mut reader, tables[component]);
            if end == FAULT {
                *bits = reader;
                let fault = if reader.is_past_end() { Fault::Short } else { Fault::Code };
                return (mcu, Some(fault));
            }
            predictors[component] = predictors[component].wrapping_add(difference);
        }
        if reader.is_past_end() {
            *bits = reader;
            return (mcu, Some(Fault::Short));
        }
    }
    *bits = reader;
    (mcus, None)
}

/// The position after a block's coefficients or [`FAULT`], and the difference of the first one.
#[inline(always)]
fn skip_block(bits: &mut BitReader<'_>, tables: &Tables) -> (u32, i16) {
    bits.refill();
    let mut block = Block::ZERO;
    let mut at = step(bits, tables.dc(bits.bits()), 0, tables, &mut block);
    while at < COEFFICIENTS {
        at = skip_step(bits, at, tables);
        if at >= COEFFICIENTS {
            break;
        }
        bits.refill();
        at = skip_step(bits, at, tables);
    }
    (at, block.0[0])
}

/// Passes over one entry at `at`; the position after it.
#[inline(always)]
fn skip_step(bits: &mut BitReader<'_>, at: u32, tables: &Tables) -> u32 {
    let mut lengths = u32::from(tables.ac_lengths(bits.bits()));
    let mut next = at + (lengths >> 8);
    if overruns(next) {
        bits.refill();
        let entry = tables.one_symbol(bits.bits(), at);
        if entry == 0 {
            return FAULT;
        }
        lengths = lengths_of(entry).into();
        next = at + (lengths >> 8);
        bits.consume(lengths & 0xFF);
        bits.refill();
        return next;
    }
    bits.consume(lengths & 0xFF);
    next
}

/// Stores what `entry` stands for at `at`; the position after it.
#[inline(always)]
fn step(
    bits: &mut BitReader<'_>,
    entry: Entry,
    at: u32,
    tables: &Tables,
    block: &mut Block,
) -> u32 {
    let next = at + distance(entry);
    if !overruns(next) {
        store(bits.bits(), entry, at, block);
        bits.consume(entry as u32);
        return next;
    }
    bits.refill();
    let entry = tables.one_symbol(bits.bits(), at);
    if entry == 0 {
        return FAULT;
    }
    store(bits.bits(), entry, at, block);
    bits.consume(entry as u32);
    bits.refill();
    at + distance(entry)
}

/// Stores the two coefficients of an entry, or one of them twice.
#[inline(always)]
pub(super) fn store(bits: u64, entry: Entry, at: u32, block: &mut Block) {
    let place = |distance: u64| {
        let zigzag = (at + (distance as u32 & 0xFF)) as usize % ZIGZAG.len();
        usize::from(ZIGZAG[zigzag]) % block.0.len()
    };
    let first = place(entry >> 16);
    let last = place(entry >> 24);
    // The bits of the last coefficient that the index of the entry did not hold.
    let extra = (entry >> 8) as u32 & 0xFF;
    let low = bits.wrapping_shr((entry as u32).wrapping_neg()) & !(u64::MAX << extra);
    block.0[first] = i16::from((entry >> 40) as i8);
    block.0[last] = ((entry >> 48) as i16).wrapping_add(low as i16);
}

/// Zigzag to natural order (T.81 figure A.6), filled up so that no position needs a check.
const ZIGZAG: [u8; 128] = {
    let mut padded = [63; 128];
    let mut i = 0;
    while i < NATURAL.len() {
        padded[i] = NATURAL[i];
        i += 1;
    }
    padded
};
