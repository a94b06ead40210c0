//! Entropy coding of all scans (ITU-T T.81, F.1.2 and G.1.2).

use super::tables::Huffman;
use super::{Component, Shape, segment};

/// One scan: its components, band and bit positions.
#[derive(Debug)]
struct Scan {
    components: Vec<usize>,
    band: (u8, u8),
    high: u8,
    low: u8,
}

/// The scans of a file.
#[derive(Debug)]
pub(super) struct Script(Vec<Scan>);

impl Script {
    /// One scan for all components or one each; progressive files refine two bits.
    pub(super) fn of(shape: &Shape) -> Self {
        let all: Vec<usize> = (0..shape.components.len()).collect();
        let together = if shape.interleaved {
            vec![all.clone()]
        } else {
            all.iter().map(|&i| vec![i]).collect()
        };
        let scans = |groups: &[Vec<usize>], band, high, low| -> Vec<Scan> {
            let scan = |group: &Vec<usize>| Scan { components: group.clone(), band, high, low };
            groups.iter().map(scan).collect()
        };
        if !shape.progressive {
            return Self(scans(&together, (0, 63), 0, 0));
        }
        let alone: Vec<Vec<usize>> = all.iter().map(|&i| vec![i]).collect();
        let parts = [
            scans(&together, (0, 0), 0, 1),
            scans(&alone, (1, 5), 0, 2),
            scans(&alone, (6, 63), 0, 2),
            scans(&alone, (1, 63), 2, 1),
            scans(&together, (0, 0), 1, 0),
            scans(&alone, (1, 63), 1, 0),
        ];
        Self(parts.into_iter().flatten().collect())
    }
}

/// Appends every scan of `script` with its header.
pub(super) fn encode_scans(
    shape: &Shape,
    script: &Script,
    tables: [&Huffman; 2],
    file: &mut Vec<u8>,
) {
    for scan in &script.0 {
        let mut header = vec![scan.components.len() as u8];
        for &component in &scan.components {
            header.extend([component as u8 + 1, 0]);
        }
        header.extend([scan.band.0, scan.band.1, scan.high << 4 | scan.low]);
        segment(file, 0xDA, &header);
        let mut coder = Coder { tables, file, bits: 0, count: 0, run: 0, predictors: [0; 4] };
        coder.scan(shape, scan);
    }
}

/// Writes codes into the file.
struct Coder<'a> {
    /// DC, AC.
    tables: [&'a Huffman; 2],
    file: &'a mut Vec<u8>,
    bits: u64,
    count: u32,
    /// Blocks whose rest of the band is zero and not yet written.
    run: u32,
    predictors: [i16; 4],
}

impl Coder<'_> {
    fn scan(&mut self, shape: &Shape, scan: &Scan) {
        let (across, down) = match scan.components[..] {
            [alone] => shape.components[alone].own,
            _ => shape.mcus,
        };
        for mcu in 0..across * down {
            if shape.restart_interval != 0 && mcu != 0 && mcu % shape.restart_interval == 0 {
                self.finish();
                self.file.extend([0xFF, 0xD0 | (mcu / shape.restart_interval - 1) as u8 & 7]);
                self.predictors = [0; 4];
            }
            let (column, row) = (mcu % across, mcu / across);
            for &i in &scan.components {
                let Component { across, down, stride, ref blocks, .. } = shape.components[i];
                let (h, v) = if scan.components.len() == 1 { (1, 1) } else { (across, down) };
                for (y, x) in (0..v).flat_map(|y| (0..h).map(move |x| (y, x))) {
                    let block = &blocks[(row * v + y) * stride + column * h + x];
                    self.block(block, i, scan, shape.progressive);
                }
            }
        }
        self.finish();
    }

    fn block(&mut self, block: &[i16; 64], component: usize, scan: &Scan, progressive: bool) {
        match (progressive, scan.band.0, scan.high) {
            (false, ..) => {
                self.dc(block[0], component);
                self.band(block, (1, 63), 0, false);
            }
            (true, 0, 0) => self.dc(block[0] >> scan.low, component),
            (true, 0, _) => self.put(u32::from(block[0].cast_unsigned() >> scan.low & 1), 1),
            (true, _, 0) => self.band(block, scan.band, scan.low, true),
            (true, ..) => self.refine(block, scan),
        }
    }

    fn dc(&mut self, value: i16, component: usize) {
        let difference = value - self.predictors[component];
        self.predictors[component] = value;
        let size = size(difference);
        self.symbol(0, size);
        self.value(difference, size);
    }

    /// The coefficients of a band the first time, and the zeros behind them.
    fn band(&mut self, block: &[i16; 64], band: (u8, u8), low: u8, runs: bool) {
        let mut zeros = 0;
        for &coefficient in &block[band.0.into()..=band.1.into()] {
            let value = coefficient.signum() * (coefficient.abs() >> low);
            if value == 0 {
                zeros += 1;
                continue;
            }
            self.end_run();
            while zeros > 15 {
                self.symbol(1, 0xF0);
                zeros -= 16;
            }
            let size = size(value);
            self.symbol(1, zeros << 4 | size);
            self.value(value, size);
            zeros = 0;
        }
        match (zeros, runs) {
            (0, _) => {}
            (_, false) => self.symbol(1, 0),
            (_, true) => {
                self.run += 1;
                if self.run == 0x7FFF {
                    self.end_run();
                }
            }
        }
    }

    /// One more bit of the coefficients of a band, each block with an end of its own.
    fn refine(&mut self, block: &[i16; 64], scan: &Scan) {
        let band = &block[scan.band.0.into()..=scan.band.1.into()];
        let magnitude = |value: &i16| value.unsigned_abs() >> scan.low;
        let last_new = band.iter().rposition(|value| magnitude(value) == 1);
        let (mut zeros, mut corrections) = (0, Vec::new());
        for (i, value) in band.iter().enumerate() {
            let magnitude = magnitude(value);
            if magnitude == 0 {
                zeros += 1;
                continue;
            }
            while zeros > 15 && last_new.is_some_and(|last| i <= last) {
                self.symbol(1, 0xF0);
                self.corrections(&mut corrections);
                zeros -= 16;
            }
            if magnitude > 1 {
                corrections.push(magnitude & 1);
                continue;
            }
            self.symbol(1, zeros << 4 | 1);
            self.put(u32::from(*value > 0), 1);
            self.corrections(&mut corrections);
            zeros = 0;
        }
        if zeros > 0 || !corrections.is_empty() {
            self.symbol(1, 0);
            self.corrections(&mut corrections);
        }
    }

    fn corrections(&mut self, bits: &mut Vec<u16>) {
        for bit in bits.drain(..) {
            self.put(bit.into(), 1);
        }
    }

    /// The run of ended blocks, if there is one.
    fn end_run(&mut self) {
        if self.run != 0 {
            let size = self.run.ilog2();
            self.symbol(1, (size << 4) as u8);
            self.put(self.run - (1 << size), size);
            self.run = 0;
        }
    }

    fn symbol(&mut self, table: usize, symbol: u8) {
        let (length, code) = self.tables[table].code(symbol);
        self.put(code.into(), length.into());
    }

    /// The bits of a coefficient behind its size.
    fn value(&mut self, value: i16, size: u8) {
        let bits = if value < 0 { value - 1 } else { value };
        self.put(u32::from(bits.cast_unsigned()) & ((1 << size) - 1), size.into());
    }

    fn put(&mut self, bits: u32, count: u32) {
        self.bits = self.bits << count | u64::from(bits);
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.bits >> self.count) as u8;
            self.file.push(byte);
            if byte == 0xFF {
                self.file.push(0);
            }
        }
    }

    /// Ends the entropy-coded segment with ones.
    fn finish(&mut self) {
        self.end_run();
        if self.count != 0 {
            let missing = 8 - self.count;
            self.put((1 << missing) - 1, missing);
        }
    }
}

/// Bits of a coefficient.
fn size(value: i16) -> u8 {
    (16 - value.unsigned_abs().leading_zeros()) as u8
}
