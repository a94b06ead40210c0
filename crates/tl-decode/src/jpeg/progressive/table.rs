//! Look-up tables of progressive scans: an entry holds a whole coefficient, shifted to its place,
//! where code and value fit into the index.

use crate::jpeg::bits::BitReader;
use crate::jpeg::huffman::{Codes, Symbol, extend};
use crate::jpeg::scan::HuffmanSpec;

/// Bits of the index.
const INDEX_BITS: u32 = 10;

/// The meaning of a scan's next bits.
///
/// A coefficient: its value in the high half, then a byte with the zeros before it, then a byte with
/// all its bits. Anything else has value 0: the byte in the middle is the symbol, the low byte the
/// length of its code, and a length of 0 says that the code is longer than the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry(u32);

impl Entry {
    fn coefficient(value: i16, zeros: u8, bits: u32) -> Self {
        Self(u32::from(value.cast_unsigned()) << 16 | u32::from(zeros) << 8 | bits)
    }

    fn symbol(symbol: u8, length: u32) -> Self {
        Self(u32::from(symbol) << 8 | length)
    }

    /// The coefficient, or 0 when this is something else.
    #[inline(always)]
    pub(super) fn value(self) -> i16 {
        ((self.0 >> 16) as u16).cast_signed()
    }

    /// The zeros before the coefficient, or the symbol.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the byte is what is wanted")]
    pub(super) fn middle(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// The bits of the coefficient, or of the symbol's code.
    #[inline(always)]
    pub(super) fn bits(self) -> u32 {
        self.0 & 0xFF
    }
}

/// The coding of a scan's symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// A size; values follow.
    Dc,
    /// Zeros and a size; values follow.
    First,
    /// Zeros and a size, which is 1; one sign bit follows.
    Refinement,
}

/// One Huffman table, laid out for one scan.
#[derive(Clone, Debug)]
pub(super) struct Table {
    entries: [Entry; 1 << INDEX_BITS],
    codes: Codes,
}

impl Default for Table {
    fn default() -> Self {
        Self { entries: [Entry::default(); 1 << INDEX_BITS], codes: Codes::default() }
    }
}

impl Table {
    /// Lays out `spec` for a scan whose lowest bit is `low`; `None` for impossible codes.
    pub(super) fn build(&mut self, spec: &HuffmanSpec<'_>, coding: Coding, low: u8) -> Option<()> {
        // As libjpeg: no size beyond 15.
        if coding == Coding::Dc && spec.values.iter().any(|&size| size > 15) {
            return None;
        }
        self.codes = Codes::new(spec)?;
        let mut filled = 0;
        let mut values = spec.values.iter();
        for (length, &count) in (1..=INDEX_BITS).zip(spec.counts) {
            let span = 1usize << (INDEX_BITS - length);
            for &symbol in values.by_ref().take(count.into()) {
                let entries = self.entries.get_mut(filled..filled + span)?;
                fill(entries, symbol, length, coding, low);
                filled += span;
            }
        }
        self.entries[filled..].fill(Entry::default());
        Some(())
    }

    /// The entry for the next bits.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the mask cuts off less")]
    pub(super) fn entry(&self, bits: &BitReader<'_>) -> Entry {
        self.entries[bits.peek(INDEX_BITS) as usize & ((1 << INDEX_BITS) - 1)]
    }

    /// The symbol that starts `bits`, if there is one, whatever the length of its code.
    #[cold]
    pub(super) fn any_symbol(&self, bits: u64) -> Option<(u8, u32)> {
        self.codes.symbol(bits).map(|Symbol { bits, value }| (value, bits))
    }
}

/// The entries of one code: with the value where its bits are inside the index as well.
fn fill(entries: &mut [Entry], symbol: u8, length: u32, coding: Coding, low: u8) {
    let (zeros, size) = match coding {
        Coding::Dc => (0, u32::from(symbol)),
        Coding::First | Coding::Refinement => (symbol >> 4, u32::from(symbol & 15)),
    };
    let values = if size < 16 { 1usize << size } else { 0 };
    let fits = (1..=entries.len()).contains(&values)
        && size > 0
        && (coding != Coding::Refinement || size == 1);
    if !fits {
        entries.fill(Entry::symbol(symbol, length));
        return;
    }
    let span = entries.len() / values;
    for (bits, entries) in (0..).zip(entries.chunks_exact_mut(span)) {
        let value = extend(bits, size) << low;
        // A value of that many bits in that place is not one of an 8-bit image.
        let entry = match i16::try_from(value) {
            Ok(value) => Entry::coefficient(value, zeros, length + size),
            Err(_) => Entry::symbol(symbol, length),
        };
        entries.fill(entry);
    }
}

/// Takes `count` bits, 0..=32, that a refill has loaded.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "no more than 32 bits are left")]
pub(super) fn take(bits: &mut BitReader<'_>, count: u32) -> u32 {
    let taken = (bits.bits() >> 1) >> (63 - count);
    bits.consume(count);
    taken as u32
}
