//! Annex G as the standard's flow charts have it: a bit at a time, whole image, one scan after the
//! other. It believes everything and panics where a file is damaged.

use super::{Coefficients, File};
use crate::jpeg::scan::{HuffmanSpec, Scan};

const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    bit: u32,
}

impl Bits<'_> {
    fn next(&mut self) -> i32 {
        let bit = self.bytes[self.at] >> (7 - self.bit) & 1;
        self.bit += 1;
        if self.bit == 8 {
            self.at += if self.bytes[self.at] == 0xFF { 2 } else { 1 };
            self.bit = 0;
        }
        bit.into()
    }

    fn receive(&mut self, count: u32) -> i32 {
        (0..count).fold(0, |value, _| value << 1 | self.next())
    }

    fn extended(&mut self, size: u32) -> i32 {
        let value = self.receive(size);
        if size > 0 && value < 1 << (size - 1) { value - (1 << size) + 1 } else { value }
    }

    fn symbol(&mut self, spec: &HuffmanSpec<'_>) -> u8 {
        let mut code = 0;
        let mut first = 0;
        let mut index = 0;
        for &count in spec.counts {
            code = code << 1 | self.next();
            first <<= 1;
            if code < first + i32::from(count) {
                return spec.values[usize::try_from(index + code - first).unwrap()];
            }
            first += i32::from(count);
            index += i32::from(count);
        }
        panic!("no such code");
    }

    fn restart(&mut self) {
        if self.bit > 0 {
            self.at += if self.bytes[self.at] == 0xFF { 2 } else { 1 };
            self.bit = 0;
        }
        while self.bytes[self.at + 1] == 0xFF {
            self.at += 1;
        }
        assert!(matches!(self.bytes[self.at..], [0xFF, 0xD0..=0xD7, ..]));
        self.at += 2;
    }
}

/// The coefficients of a file, as far as its scans go.
pub(super) fn decode(file: &File<'_>) -> Coefficients {
    let mut planes: Coefficients = file
        .grids
        .iter()
        .map(|g| vec![[0; 64]; (file.mcus.0 * g.across * file.mcus.1 * g.down) as usize])
        .collect();
    for (scan, specs) in &file.scans {
        let mut bits = Bits { bytes: file.bytes, at: scan.data_at, bit: 0 };
        let mut predictors = [0; 4];
        let mut run = 0;
        for mcu in 0..scan.mcus_per_row * scan.mcu_rows {
            if scan.restart_interval > 0 && mcu > 0 && mcu % scan.restart_interval == 0 {
                bits.restart();
                (predictors, run) = ([0; 4], 0);
            }
            for (part, predictor) in scan.components().iter().zip(&mut predictors) {
                let stride = file.mcus.0 * file.grids[part.component].across;
                let x = mcu % scan.mcus_per_row;
                let y = mcu / scan.mcus_per_row;
                for block in 0..part.across * part.down {
                    let column = x * part.across + block % part.across;
                    let row = y * part.down + block / part.across;
                    let block = &mut planes[part.component][(row * stride + column) as usize];
                    let ac = specs.ac[usize::from(part.ac)];
                    match (scan.spectral.0, scan.approximation) {
                        (0, (0, low)) => {
                            let size = bits.symbol(&specs.dc[usize::from(part.dc)].unwrap());
                            *predictor += bits.extended(size.into());
                            block[0] = i16::try_from(*predictor << low).unwrap();
                        }
                        (0, (_, low)) => block[0] |= i16::try_from(bits.next() << low).unwrap(),
                        (_, (0, _)) => first(&mut bits, scan, &ac.unwrap(), block, &mut run),
                        _ => refine(&mut bits, scan, &ac.unwrap(), block, &mut run),
                    }
                }
            }
        }
    }
    let real = |(plane, grid): (Vec<[i16; 64]>, &super::Grid)| {
        let stride = (file.mcus.0 * grid.across) as usize;
        let rows = plane.chunks_exact(stride).take(grid.rows as usize);
        rows.flat_map(|row| row[..grid.columns as usize].to_vec()).collect()
    };
    planes.into_iter().zip(&file.grids).map(real).collect()
}

/// Figure G.3.
fn first(
    bits: &mut Bits<'_>,
    scan: &Scan,
    spec: &HuffmanSpec<'_>,
    block: &mut [i16; 64],
    run: &mut i32,
) {
    if *run > 0 {
        *run -= 1;
        return;
    }
    let mut k = usize::from(scan.spectral.0);
    while k <= scan.spectral.1.into() {
        let symbol = bits.symbol(spec);
        let zeros = symbol >> 4;
        let size = symbol & 15;
        if size == 0 && zeros < 15 {
            *run = (1 << zeros) + bits.receive(zeros.into()) - 1;
            return;
        }
        k += usize::from(zeros);
        if size > 0 {
            let value = bits.extended(size.into()) << scan.approximation.1;
            block[ZIGZAG[k]] = i16::try_from(value).unwrap();
        }
        k += 1;
    }
}

/// Figures G.7 to G.10.
fn refine(
    bits: &mut Bits<'_>,
    scan: &Scan,
    spec: &HuffmanSpec<'_>,
    block: &mut [i16; 64],
    run: &mut i32,
) {
    let step = 1i16 << scan.approximation.1;
    let last = usize::from(scan.spectral.1);
    let mut k = usize::from(scan.spectral.0);
    let correct = |bits: &mut Bits<'_>, value: &mut i16| {
        if bits.next() == 1 {
            *value += step * value.signum();
        }
    };
    while *run == 0 && k <= last {
        let symbol = bits.symbol(spec);
        let mut zeros = symbol >> 4;
        let size = symbol & 15;
        if size == 0 && zeros < 15 {
            *run = (1 << zeros) + bits.receive(zeros.into());
            break;
        }
        let fresh = match size {
            0 => 0,
            _ if bits.next() == 1 => step,
            _ => -step,
        };
        loop {
            let value = &mut block[ZIGZAG[k]];
            if *value != 0 {
                correct(bits, value);
            } else if zeros > 0 {
                zeros -= 1;
            } else {
                *value = fresh;
                break;
            }
            k += 1;
        }
        k += 1;
    }
    if *run > 0 {
        for &place in &ZIGZAG[k..=last] {
            if block[place] != 0 {
                correct(bits, &mut block[place]);
            }
        }
        *run -= 1;
    }
}
