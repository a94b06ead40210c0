//! Look-up tables that give up to two coefficients and the end of the block at once.

#![expect(clippy::cast_possible_truncation, reason = "casts cut bit fields out of words")]

use tl_simd::Level;

use super::entries::{self, Following};
use super::{Codes, extend, symbols};
use crate::jpeg::scan::HuffmanSpec;

/// The meaning of the bits of an index of a look-up table.
///
/// Byte 0 is the number of bits in all, byte 1 how many of them lie after the index and are to be
/// added to the last coefficient. Bytes 2 and 3 are the distances to the first and to the last
/// coefficient in zigzag order, equal where there is one, and byte 4 is the distance to the next;
/// a block's end adds [`END`] to it. Byte 5 is the first of two coefficients and bytes 6 and 7
/// are the last, both signed.
///
/// [`overruns`] tells whether an entry applies at a position.
pub(in crate::jpeg) type Entry = u64;

/// The distance over which a block's end goes beyond the coefficients in front of it. Together
/// with a position below 64 it has bit 7 set, and its low bits are at most 64 inside a block.
pub(in crate::jpeg) const END: u32 = 129;

/// Coefficients of a block.
pub(in crate::jpeg) const COEFFICIENTS: u32 = 64;

/// Index bits of the tables that begin with an AC coefficient.
const AC_BITS: u32 = 11;
/// Index bits of the tables that begin with a DC coefficient.
const DC_BITS: u32 = 9;

/// Whether the position `next` after an entry is invalid: neither inside the block or at its end,
/// nor [`END`] after such a position.
#[inline(always)]
pub(in crate::jpeg) fn overruns(next: u32) -> bool {
    next & 127 > 64
}

#[inline(always)]
pub(in crate::jpeg) fn distance(entry: Entry) -> u32 {
    (entry >> 32) as u32 & 0xFF
}

/// The bits of an entry, and its distance in the upper byte: what it takes to pass over it.
#[inline(always)]
pub(in crate::jpeg) fn lengths_of(entry: Entry) -> u16 {
    (entry >> 24) as u16 & 0xFF00 | entry as u16 & 0xFF
}

fn entry(bits: u32, extra: u32, at: [u32; 2], distance: u32, values: [i32; 2]) -> Entry {
    let low = bits | extra << 8 | at[0] << 16 | at[1] << 24;
    let high = distance | (values[0].cast_unsigned() & 0xFF) << 8 | values[1].cast_unsigned() << 16;
    u64::from(high) << 32 | u64::from(low)
}

/// The tables of a component: those of its DC and of its AC coefficients.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(in crate::jpeg) struct Tables {
    ac: [Entry; 1 << AC_BITS],
    dc: [Entry; 1 << DC_BITS],
    /// The bits of each entry of `ac`, and above them the distance.
    ac_lengths: [u16; 1 << AC_BITS],
    ac_codes: Codes,
    dc_codes: Codes,
}

impl Tables {
    pub(super) fn empty() -> Box<Self> {
        Box::new(Self {
            ac: [0; 1 << AC_BITS],
            dc: [0; 1 << DC_BITS],
            ac_lengths: [0; 1 << AC_BITS],
            ac_codes: Codes::default(),
            dc_codes: Codes::default(),
        })
    }

    /// Makes the tables; `false` for codes or symbols that are not allowed.
    pub(super) fn build(
        &mut self,
        level: Level,
        dc: &HuffmanSpec<'_>,
        ac: &HuffmanSpec<'_>,
    ) -> bool {
        let (Some(dc_codes), Some(ac_codes)) = (Codes::of_dc(dc), Codes::new(ac)) else {
            return false;
        };
        (self.dc_codes, self.ac_codes) = (dc_codes, ac_codes);
        level.vectorize(
            #[inline(always)]
            || {
                let symbols = symbols(ac);
                entries::fill(&Following::new(ac, &symbols), None, &mut self.ac);
                for (lengths, &entry) in self.ac_lengths.iter_mut().zip(&self.ac) {
                    *lengths = lengths_of(entry);
                }
                let first = super::symbols(dc);
                let symbols = super::symbols(ac);
                entries::fill(&Following::new(ac, &symbols), Some(&first), &mut self.dc);
            },
        );
        true
    }

    /// The entry of the next `bits` where a block begins.
    #[inline(always)]
    pub(in crate::jpeg) fn dc(&self, bits: u64) -> Entry {
        self.dc[(bits >> (64 - DC_BITS)) as usize]
    }

    /// The entry of the next `bits` inside a block.
    #[inline(always)]
    pub(in crate::jpeg) fn ac(&self, bits: u64) -> Entry {
        self.ac[(bits >> (64 - AC_BITS)) as usize]
    }

    /// The [`lengths_of`] the entry of the next `bits` inside a block.
    #[inline(always)]
    pub(in crate::jpeg) fn ac_lengths(&self, bits: u64) -> u16 {
        self.ac_lengths[(bits >> (64 - AC_BITS)) as usize]
    }

    /// The entry of the one symbol that comes next at position `at` of a block, of up to 31 bits; 0
    /// when the bits are not a symbol. As in libjpeg, a coefficient after the block is stored in the
    /// last place and ends it.
    #[cold]
    #[inline(never)]
    pub(in crate::jpeg) fn one_symbol(&self, bits: u64, at: u32) -> Entry {
        let codes = if at == 0 { &self.dc_codes } else { &self.ac_codes };
        let Some(symbol) = codes.symbol(bits) else { return 0 };
        let run = u32::from(symbol.value >> 4);
        let size = u32::from(symbol.value & 15);
        let room = COEFFICIENTS.saturating_sub(at + 1);
        let after = match size {
            0 if at == 0 => 1,
            0 if run == 15 => (room + 1).min(16),
            0 => END,
            _ => run.min(room) + 1,
        };
        let mut place = 0;
        let mut value = 0;
        if size > 0 {
            place = run.min(room);
            value = extend(((bits << symbol.bits) >> (64 - size)) as u32, size);
        }
        entry(symbol.bits + size, 0, [place; 2], after, [0, value])
    }
}
