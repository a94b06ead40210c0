//! Look-up tables that give up to two coefficients and the end of the block at once.

#![expect(clippy::cast_possible_truncation, reason = "casts cut bit fields out of words")]

use super::{Codes, Symbols, fill_symbols};
use crate::jpeg::scan::HuffmanSpec;

/// What the bits of an index of a look-up table stand for.
///
/// Byte 0 is the number of bits in all, byte 1 how many of them lie behind the index and are to be
/// added to the last coefficient. Bytes 2 and 3 are the distances to the first and to the last
/// coefficient in zigzag order, equal where there is one, and byte 4 is the distance to the next;
/// a block's end adds [`END`] to it. Byte 5 is the first of two coefficients and bytes 6 and 7
/// are the last, both signed.
///
/// Whether an entry applies at a position is told by [`overruns`].
pub(in crate::jpeg) type Entry = u64;

/// The distance over which a block's end goes beyond the coefficients in front of it. Together
/// with a position below 64 it has bit 7 set, and its low bits are at most 64 inside a block.
pub(in crate::jpeg) const END: u32 = 129;

/// Bits that an [`Entry`] of a look-up table has at most.
const MAX_ENTRY_BITS: u32 = 25;

/// Index bits of the tables that begin with an AC coefficient.
const AC_BITS: u32 = 11;
/// Index bits of the tables that begin with a DC coefficient.
const DC_BITS: u32 = 9;

/// Distance of an entry that stands for nothing, as one that overruns at any AC position.
const NO_AC: u32 = 64;
/// The same at position 0.
const NO_DC: u32 = 100;

/// Whether the position `next` behind an entry is none: neither inside the block or at its end,
/// nor [`END`] behind such a one.
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

/// The coefficient of `size` bits (F.2.2.1, EXTEND).
#[inline(always)]
fn extend(bits: u32, size: u32) -> i32 {
    let negative = bits >> (size - 1) == 0;
    bits.cast_signed() - if negative { (1 << size) - 1 } else { 0 }
}

/// The tables of a component: those of its DC and of its AC coefficients.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(in crate::jpeg) struct Tables {
    ac: [Entry; 1 << AC_BITS],
    dc: [Entry; 1 << DC_BITS],
    /// Of each entry of `ac` the bits, and above them the distance.
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
    pub(super) fn build(&mut self, dc: &HuffmanSpec<'_>, ac: &HuffmanSpec<'_>) -> bool {
        let (Some(dc_codes), Some(ac_codes)) = (Codes::new(dc), Codes::new(ac)) else {
            return false;
        };
        // As libjpeg: no category beyond 15.
        if dc.values.iter().any(|&size| size > 15) {
            return false;
        }
        (self.dc_codes, self.ac_codes) = (dc_codes, ac_codes);
        let mut symbols = [0; 1 << AC_BITS];
        fill_symbols(ac, &mut symbols);
        for (index, entry) in (0..).zip(&mut self.ac) {
            *entry = ac_entry(index, &symbols);
        }
        for (lengths, &entry) in self.ac_lengths.iter_mut().zip(&self.ac) {
            *lengths = lengths_of(entry);
        }
        let (mut dc_symbols, mut symbols) = ([0; 1 << DC_BITS], [0; 1 << DC_BITS]);
        fill_symbols(dc, &mut dc_symbols);
        fill_symbols(ac, &mut symbols);
        for (index, entry) in (0..).zip(&mut self.dc) {
            *entry = dc_entry(index, &dc_symbols, &symbols);
        }
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

    /// The entry of the one symbol that comes next at position `at` of a block, of up
    /// to 31 bits; 0 where there is none or its coefficient is outside the block.
    #[cold]
    #[inline(never)]
    pub(in crate::jpeg) fn one_symbol(&self, bits: u64, at: u32) -> Entry {
        let codes = if at == 0 { &self.dc_codes } else { &self.ac_codes };
        let Some(symbol) = codes.symbol(bits) else { return 0 };
        let (run, size) = (u32::from(symbol.value >> 4), u32::from(symbol.value & 15));
        let behind = match size {
            0 if at == 0 => 1,
            0 if run == 15 => 16,
            0 => END,
            _ => run + 1,
        };
        if overruns(at + behind) {
            return 0;
        }
        let (mut place, mut value) = (0, 0);
        if size > 0 {
            place = run;
            value = extend(((bits << symbol.bits) >> (64 - size)) as u32, size);
        }
        entry(symbol.bits + size, 0, [place; 2], behind, [0, value])
    }
}

/// A symbol at some place of an index: the bits in front of it are passed over.
struct Part {
    /// Bits up to behind the symbol's code.
    used: u32,
    run: u32,
    size: u32,
}

#[inline(always)]
fn part<const SIZE: usize>(index: u32, used: u32, symbols: &Symbols<SIZE>) -> Option<Part> {
    let symbol = symbols[(index << used) as usize & (SIZE - 1)];
    let bits = u32::from(symbol & 0xFF);
    let value = u32::from(symbol >> 8);
    let whole = bits != 0 && used + bits <= SIZE.trailing_zeros();
    whole.then_some(Part { used: used + bits, run: value >> 4, size: value & 15 })
}

/// A coefficient of `size` bits at bit `used` of the index: its value and its bits that lie
/// behind the index. `None` where not even its sign is there.
#[inline(always)]
fn coefficient(index: u32, index_bits: u32, used: u32, size: u32) -> Option<(i32, u32)> {
    let have = index_bits - used;
    if size <= have {
        let bits = index >> (have - size) & ((1 << size) - 1);
        return Some((extend(bits, size), 0));
    }
    let extra = size - have;
    let bits = (index & ((1 << have) - 1)) << extra;
    (have > 0).then(|| (extend(bits, size), extra))
}

fn ac_entry<const SIZE: usize>(index: u32, symbols: &Symbols<SIZE>) -> Entry {
    let none = entry(0, 0, [0; 2], NO_AC, [0; 2]);
    let Some(first) = part(index, 0, symbols) else { return none };
    match (first.run, first.size) {
        (0, 0) => entry(first.used, 0, [0; 2], END, [0; 2]),
        (15, 0) => entry(first.used, 0, [0; 2], 16, [0; 2]),
        (_, 0) => none,
        (run, size) => {
            let index_bits = SIZE.trailing_zeros();
            match coefficient(index, index_bits, first.used, size) {
                Some((value, extra)) if first.used + size <= MAX_ENTRY_BITS => {
                    let lead = Lead { used: first.used + size, extra, at: run, value };
                    behind(index, &lead, symbols)
                }
                _ => none,
            }
        }
    }
}

fn dc_entry<const SIZE: usize>(
    index: u32,
    dc_symbols: &Symbols<SIZE>,
    symbols: &Symbols<SIZE>,
) -> Entry {
    let none = entry(0, 0, [0; 2], NO_DC, [0; 2]);
    let Some(first) = part(index, 0, dc_symbols) else { return none };
    let mut lead = Lead { used: first.used, extra: 0, at: 0, value: 0 };
    if first.size > 0 {
        let found = coefficient(index, SIZE.trailing_zeros(), first.used, first.size);
        let Some((value, extra)) = found else { return none };
        lead = Lead { used: first.used + first.size, extra, value, ..lead };
        if lead.used > MAX_ENTRY_BITS {
            return none;
        }
    }
    behind(index, &lead, symbols)
}

/// The first coefficient of an entry.
struct Lead {
    /// Bits up to behind it.
    used: u32,
    /// How many of them are behind the index.
    extra: u32,
    /// Its distance.
    at: u32,
    value: i32,
}

/// Adds to a coefficient what else the index holds: one more, and the block's end.
#[inline(always)]
fn behind<const SIZE: usize>(index: u32, lead: &Lead, symbols: &Symbols<SIZE>) -> Entry {
    let Lead { used, extra, at, value } = *lead;
    let alone = entry(used, extra, [at; 2], at + 1, [0, value]);
    if extra > 0 {
        return alone;
    }
    let end_of = |used: u32, at: u32| match part(index, used, symbols) {
        Some(Part { used, run: 0, size: 0 }) => (used, at + 1 + END),
        _ => (used, at + 1),
    };
    let Some(second) = part(index, used, symbols) else { return alone };
    if second.size == 0 || i8::try_from(value).is_err() {
        let (used, distance) = end_of(used, at);
        return entry(used, 0, [at; 2], distance, [0, value]);
    }
    let last = at + 1 + second.run;
    match coefficient(index, SIZE.trailing_zeros(), second.used, second.size) {
        Some((_, extra)) if second.used + second.size > MAX_ENTRY_BITS && extra > 0 => alone,
        Some((last_value, extra)) => {
            let used = second.used + second.size;
            let (used, distance) = if extra > 0 { (used, last + 1) } else { end_of(used, last) };
            entry(used, extra, [at, last], distance, [value, last_value])
        }
        None => alone,
    }
}
