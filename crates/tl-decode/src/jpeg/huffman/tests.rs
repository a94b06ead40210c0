#![expect(clippy::cast_possible_truncation, reason = "casts cut bit fields out of words")]

use tl_simd::Level;

use super::*;

/// xorshift64: tests need the same numbers everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Codes that are not over-subscribed, for symbols made by `symbol`.
    fn table(&mut self, symbols: usize, symbol: impl Fn(u64) -> u8) -> ([u8; 16], Vec<u8>) {
        let mut counts = [0; 16];
        let mut free = 1u64;
        let mut values = vec![];
        for count in &mut counts {
            free *= 2;
            // One code stays free for longer ones, the last of all being ones only.
            let left = (symbols - values.len()) as u64;
            let taken = (self.next() % (free / 2 + 1)).min(free - 1).min(left);
            free -= taken;
            *count = u8::try_from(taken.min(255)).unwrap();
            for _ in 0..taken {
                values.push(symbol(self.next()));
            }
        }
        (counts, values)
    }
}

#[test]
fn entries_say_what_their_symbols_say_one_by_one() {
    let mut random = Random(7);
    for level in Level::available() {
        let mut tables = Tables::empty();
        for _ in 0..40 {
            let dc = random.table(12, |bits| (bits % 16).to_le_bytes()[0]);
            let ac = random.table(160, |bits| bits.to_le_bytes()[0]);
            let spec = |table: &'_ ([u8; 16], Vec<u8>)| (table.0, table.1.clone());
            let ((dc_counts, dc_values), (ac_counts, ac_values)) = (spec(&dc), spec(&ac));
            let dc = HuffmanSpec { counts: &dc_counts, values: &dc_values };
            let ac = HuffmanSpec { counts: &ac_counts, values: &ac_values };
            assert!(tables.build(level, &dc, &ac));
            for _ in 0..5000 {
                let bits = random.next();
                let at = if bits.is_multiple_of(3) { 0 } else { random.next() as u32 % 63 + 1 };
                let entry = if at == 0 { tables.dc(bits) } else { tables.ac(bits) };
                if !overruns(at + distance(entry)) {
                    check(&tables, bits, at, entry);
                }
            }
        }
    }
}

/// Compares an entry with the symbols that its bits hold.
fn check(tables: &Tables, bits: u64, at: u32, entry: Entry) {
    let len = entry as u32 & 0xFF;
    let extra = (entry >> 8) as u32 & 0xFF;
    let low = if extra == 0 { 0 } else { (bits << (len - extra)) >> (64 - extra) };
    let mut found = [0i16; 128];
    let place = |shift: u32| (at + ((entry >> shift) as u32 & 0xFF)) as usize;
    found[place(16)] = i16::from((entry >> 40) as i8);
    found[place(24)] = ((entry >> 48) as i16).wrapping_add(low as i16);

    let mut expected = [0i16; 128];
    let mut next = at;
    let mut used = 0;
    while used < len {
        let single = tables.one_symbol(bits << used, next);
        assert_ne!(single, 0, "{bits:064b} at {at}");
        expected[(next + ((single >> 24) as u32 & 0xFF)) as usize] = (single >> 48) as i16;
        used += single as u32 & 0xFF;
        next += distance(single);
    }
    assert_eq!((len, at + distance(entry)), (used, next), "{bits:064b} at {at}");
    assert!(found == expected, "{bits:064b} at {at}");
    assert_eq!(lengths_of(entry), (distance(entry) << 8 | len) as u16);
}

#[test]
fn impossible_codes_are_refused() {
    let spec = |counts: [u8; 16], values: &[u8]| {
        Codes::new(&HuffmanSpec { counts: &counts, values }).is_some()
    };
    let counts = |pairs: &[(usize, u8)]| {
        let mut counts = [0; 16];
        pairs.iter().for_each(|&(bits, count)| counts[bits - 1] = count);
        counts
    };
    assert!(spec(counts(&[(1, 1)]), &[0]));
    assert!(spec(counts(&[(1, 1), (2, 1), (16, 1)]), &[0, 1, 2]));
    // A code of ones only is not allowed.
    assert!(!spec(counts(&[(1, 2)]), &[0, 1]));
    assert!(!spec(counts(&[(1, 1), (2, 2)]), &[0, 1, 2]));
    assert!(!spec(counts(&[(2, 5)]), &[0, 1, 2, 3, 4]));
    // A symbol is missing.
    assert!(!spec(counts(&[(1, 1), (2, 1)]), &[0]));
}
