//! CCITT bilevel coding: modified Huffman, Group 3 in one and two dimensions, Group 4 (ITU-T T.4
//! and T.6). The code tables are those of the `fax` crate, whose own decoders know neither
//! two-dimensional Group 3 nor rows without end-of-line codes.

use fax::BitReader;
use fax::maps::{Mode, black, mode, white};

use super::chunk::short_output;
use crate::error::DecodeError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fax {
    ModifiedHuffman,
    Group3,
    Group3TwoDimensional,
    Group4,
}

/// Decodes rows of `width` pixels until `out` is full; 1 bits are black.
pub(super) fn decode(
    kind: Fax,
    data: &[u8],
    width: u32,
    row_bytes: usize,
    out: &mut [u8],
) -> Result<(), DecodeError> {
    let mut bits = Bits { data, at: 0 };
    let mut reference = Vec::new();
    let mut row = Vec::new();
    let rows = out.len() / row_bytes.max(1);
    for (y, out) in out.chunks_exact_mut(row_bytes.max(1)).enumerate() {
        row.clear();
        let whole = match kind {
            Fax::ModifiedHuffman => {
                bits.align();
                read_runs(&mut bits, width, &mut row)
            }
            Fax::Group3 => {
                bits.skip_end_of_line();
                read_runs(&mut bits, width, &mut row)
            }
            Fax::Group3TwoDimensional => {
                bits.skip_end_of_line();
                if bits.take_bit() {
                    read_runs(&mut bits, width, &mut row)
                } else {
                    read_changes(&mut bits, width, &reference, &mut row)
                }
            }
            Fax::Group4 => read_changes(&mut bits, width, &reference, &mut row),
        };
        whole.ok_or_else(|| short_output("rows of CCITT data", rows, y))?;
        paint(&row, width, out);
        std::mem::swap(&mut reference, &mut row);
    }
    Ok(())
}

/// One-dimensional coding: runs of white and black in turn. `row` gets the columns where the
/// colour changes.
fn read_runs(bits: &mut Bits<'_>, width: u32, row: &mut Vec<u32>) -> Option<()> {
    let mut at = 0;
    let mut is_black = false;
    while at < width {
        at = at.saturating_add(bits.run(is_black)?).min(width);
        row.push(at);
        is_black = !is_black;
    }
    Some(())
}

/// Two-dimensional coding (T.4 section 4.2): changes relative to those of the row above.
fn read_changes(
    bits: &mut Bits<'_>,
    width: u32,
    reference: &[u32],
    row: &mut Vec<u32>,
) -> Option<()> {
    // The position before the first pixel counts as "before column 0" only until a0 is set.
    let mut a0 = None;
    let mut is_black = false;
    let mut b1_index = 0;
    while a0.unwrap_or(0) < width {
        // b1: the first change right of a0 to the opposite of the current colour. Changes to
        // black have even indexes.
        b1_index = (b1_index & !1usize).saturating_sub(2) + usize::from(is_black);
        while reference.get(b1_index).is_some_and(|&b| a0.is_some_and(|a0| b <= a0)) {
            b1_index += 2;
        }
        let change = |index: usize| reference.get(index).copied().unwrap_or(width);
        match mode::decode(bits)? {
            Mode::Pass => a0 = Some(change(b1_index + 1)),
            Mode::Vertical(delta) => {
                let a1 = change(b1_index).checked_add_signed(delta.into())?.min(width);
                if a1 < a0.unwrap_or(0) {
                    return None;
                }
                row.push(a1);
                a0 = Some(a1);
                is_black = !is_black;
            }
            Mode::Horizontal => {
                let a1 = a0.unwrap_or(0).saturating_add(bits.run(is_black)?).min(width);
                let a2 = a1.saturating_add(bits.run(!is_black)?).min(width);
                row.extend([a1, a2]);
                a0 = Some(a2);
            }
            Mode::Extension | Mode::EOF => return None,
        }
    }
    Some(())
}

/// Sets the black pixels of a row given by its colour changes.
fn paint(changes: &[u32], width: u32, out: &mut [u8]) {
    out.fill(0);
    for pair in changes.chunks(2) {
        let from = pair[0].min(width);
        let to = pair.get(1).copied().unwrap_or(width).min(width);
        for x in from..to {
            out[(x / 8) as usize] |= 0x80 >> (x % 8);
        }
    }
}

/// Bits from the most significant on. After the end there are as many zero bits as a code can
/// look ahead, then nothing.
struct Bits<'a> {
    data: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    const LOOK_AHEAD: usize = 16;

    fn align(&mut self) {
        self.at = self.at.next_multiple_of(8);
    }

    fn take_bit(&mut self) -> bool {
        let bit = self.peek(1) == Some(1);
        self.at += 1;
        bit
    }

    /// Skips fill bits and end-of-line codes where there is one: no run begins with 11 zeros.
    fn skip_end_of_line(&mut self) {
        if self.peek(11) != Some(0) {
            return;
        }
        while self.peek(1) == Some(0) {
            self.at += 1;
        }
        self.at += 1;
    }

    /// A run: any number of make-up codes of 64 and more, then a code below 64.
    fn run(&mut self, is_black: bool) -> Option<u32> {
        let mut length = 0u32;
        loop {
            let part = if is_black { black::decode(self) } else { white::decode(self) }?;
            length = length.saturating_add(part.into());
            if part < 64 {
                return Some(length);
            }
        }
    }
}

impl BitReader for Bits<'_> {
    type Error = ();

    fn peek(&self, bits: u8) -> Option<u16> {
        if usize::from(bits) > Self::LOOK_AHEAD || self.at > self.data.len() * 8 {
            return None;
        }
        let first = self.at / 8;
        let window = (first..first + 3).fold(0u32, |window, i| {
            window << 8 | u32::from(self.data.get(i).copied().unwrap_or(0))
        });
        let aligned = window << (8 + self.at % 8);
        u16::try_from(u64::from(aligned) >> (32 - u32::from(bits))).ok()
    }

    fn consume(&mut self, bits: u8) -> Result<(), ()> {
        self.at += usize::from(bits);
        Ok(())
    }

    fn bits_to_byte_boundary(&self) -> u8 {
        u8::try_from((8 - self.at % 8) % 8).unwrap_or(0)
    }
}
