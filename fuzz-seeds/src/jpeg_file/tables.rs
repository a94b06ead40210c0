//! Huffman tables that hold every symbol there is, in a shape that the input chooses.

/// Sizes of DC differences.
pub(super) const DC_SYMBOLS: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

/// Run and size of AC coefficients, the ends of blocks and, for progressive scans, of bands.
pub(super) const AC_SYMBOLS: [u8; 176] = {
    let mut symbols = [0; 176];
    let mut i = 0;
    while i < 176 {
        symbols[i] = (((i / 11) << 4) | (i % 11)) as u8;
        i += 1;
    }
    symbols
};

/// A table with the code of each symbol.
#[derive(Debug)]
pub(super) struct Huffman {
    counts: [u8; 16],
    symbols: Vec<u8>,
    /// Length and code, by symbol.
    codes: [(u8, u16); 256],
}

impl Huffman {
    /// Short codes for some of `symbols` and long ones for the rest; `choice` says how many.
    pub(super) fn new(symbols: &[u8], choice: u8) -> Self {
        // So many codes that the longer ones still have room, whatever the choice.
        let (short, long) = if symbols.len() > 16 { (8, 16) } else { (4, 12) };
        let short_count = symbols.len() - usize::from(choice) % symbols.len();
        let mut symbols = symbols.to_vec();
        let turn = usize::from(choice >> 4) % symbols.len();
        symbols.rotate_left(turn);
        let mut table = Self { counts: [0; 16], symbols, codes: [(0, 0); 256] };
        let mut code = 0;
        for (i, &symbol) in table.symbols.iter().enumerate() {
            let length = if i < short_count { short } else { long };
            if i == short_count {
                code <<= long - short;
            }
            table.codes[usize::from(symbol)] = (length, code);
            table.counts[usize::from(length) - 1] += 1;
            code += 1;
        }
        table
    }

    /// Length in bits and code of `symbol`.
    pub(super) fn code(&self, symbol: u8) -> (u8, u16) {
        self.codes[usize::from(symbol)]
    }

    /// The table as a DHT segment holds it.
    pub(super) fn definition(&self, class_and_id: u8) -> Vec<u8> {
        [[class_and_id].as_slice(), &self.counts, &self.symbols].concat()
    }
}
