//! Huffman coding of blocks, with codes of all lengths.

use tl_decode::HuffmanCodes;

/// Zigzag to natural order.
const NATURAL: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// Bits from the highest of each byte on.
#[derive(Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    len: u32,
}

impl BitWriter {
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn put(&mut self, value: u32, count: u32) {
        for bit in (0..count).rev() {
            if self.len.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let set = u8::from(value >> bit & 1 == 1);
            *self.bytes.last_mut().unwrap() |= set << (7 - self.len % 8);
            self.len += 1;
        }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// A canonical code: symbols and their lengths, which do not decrease.
pub(super) struct Code {
    symbols: Vec<(u8, u32)>,
}

impl Code {
    /// `(code, length)` of each symbol in its order.
    fn assigned(&self) -> impl Iterator<Item = (u8, u32, u32)> {
        let mut code = 0;
        let mut before = self.symbols[0].1;
        self.symbols.iter().map(move |&(symbol, length)| {
            code <<= length - before;
            before = length;
            code += 1;
            (symbol, code - 1, length)
        })
    }

    pub(super) fn put(&self, bits: &mut BitWriter, symbol: u8) {
        let (_, code, length) = self.assigned().find(|(own, ..)| *own == symbol).unwrap();
        bits.put(code, length);
    }

    pub(super) fn codes(&self) -> HuffmanCodes {
        let mut made = HuffmanCodes { limits: [0; 16], offsets: [0; 16], symbols: [0; 256] };
        let mut code = 0_u32;
        let mut index = 0_u32;
        for length in 1..=16 {
            let count = self.symbols.iter().filter(|(_, own)| *own == length).count();
            let count = u32::try_from(count).unwrap();
            made.offsets[length as usize - 1] = index.wrapping_sub(code);
            code += count;
            index += count;
            made.limits[length as usize - 1] = code << (16 - length);
            code <<= 1;
        }
        for (to, (symbol, _)) in made.symbols.iter_mut().zip(&self.symbols) {
            *to = *symbol;
        }
        made
    }
}

pub(super) struct Coder {
    pub(super) dc: Code,
    pub(super) ac: Code,
}

impl Coder {
    pub(super) fn new() -> Self {
        let dc = (0..16).map(|size| (size, if size < 8 { 4 } else { 12 })).collect();
        let others = (0..=255).filter(|symbol| symbol & 15 > 0);
        let ac = [0, 0xF0].into_iter().chain(others).enumerate();
        let length = |place| match place {
            0 => 2,
            1..=4 => 5,
            5..=12 => 8,
            13..=28 => 10,
            29..=60 => 12,
            _ => 16,
        };
        let ac = ac.map(|(place, symbol)| (symbol, length(place))).collect();
        Self { dc: Code { symbols: dc }, ac: Code { symbols: ac } }
    }

    pub(super) fn block(&self, bits: &mut BitWriter, block: &[i16; 64], last: &mut i16) {
        let difference = block[0].wrapping_sub(*last);
        *last = block[0];
        value(bits, &self.dc, 0, difference);
        let mut run = 0;
        for place in 1..64 {
            let coefficient = block[NATURAL[place]];
            if coefficient == 0 {
                run += 1;
                continue;
            }
            while run > 15 {
                self.ac.put(bits, 0xF0);
                run -= 16;
            }
            value(bits, &self.ac, run, coefficient);
            run = 0;
        }
        if run > 0 {
            self.ac.put(bits, 0);
        }
    }
}

/// Writes a coefficient after `run` zeros.
pub(super) fn value(bits: &mut BitWriter, code: &Code, run: u8, value: i16) {
    let magnitude = u32::from(value.unsigned_abs());
    let size = u32::BITS - magnitude.leading_zeros();
    assert!(size < 16, "-32768 has no code");
    code.put(bits, run << 4 | u8::try_from(size).unwrap());
    let low = if value < 0 { magnitude ^ ((1 << size) - 1) } else { magnitude };
    bits.put(low, size);
}
