//! A reader of JPEG files for tests: the header in plain steps, and coefficients bit by bit as the
//! flow charts of T.81 F.2.2 have it. It shares no code with what it is compared to.

#![expect(clippy::cast_possible_truncation, reason = "coefficients have 16 bits")]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::jpeg::scan::{HuffmanSpec, HuffmanSpecs, Scan, ScanComponent};

/// Blocks by component, block row and block column.
pub(super) type Grid = BTreeMap<(usize, u32, u32), [i16; 64]>;

type Table = ([u8; 16], Vec<u8>);

/// The first scan of a file.
#[derive(Debug, Default)]
pub(super) struct Header {
    dc: [Option<Table>; 4],
    ac: [Option<Table>; 4],
    pub(super) scan: Scan,
    pub(super) sequential: bool,
}

impl Header {
    /// Reads up to after the first scan header; `None` for what is not that simple.
    pub(super) fn read(file: &[u8]) -> Option<Self> {
        let mut header = Self::default();
        let mut frame = vec![];
        let mut at = 2;
        loop {
            while file.get(at)? == &0xFF && file.get(at + 1)? == &0xFF {
                at += 1;
            }
            let marker = *file.get(at + 1)?;
            let length =
                usize::from(u16::from_be_bytes(file.get(at + 2..at + 4)?.try_into().ok()?));
            let body = file.get(at + 4..at + 2 + length)?;
            match marker {
                0xC0..=0xC2 => (frame, header.sequential) = (body.to_vec(), marker != 0xC2),
                0xC4 => header.read_tables(body)?,
                0xDD => {
                    header.scan.restart_interval = u16::from_be_bytes([body[0], body[1]]).into();
                }
                0xDA => {
                    header.scan.data_at = at + 2 + length;
                    header.read_scan(&frame, body)?;
                    return Some(header);
                }
                _ => {}
            }
            at += 2 + length;
        }
    }

    fn read_tables(&mut self, mut body: &[u8]) -> Option<()> {
        while let Some((&id, rest)) = body.split_first() {
            let counts: [u8; 16] = *rest.first_chunk()?;
            let len = counts.iter().map(|&count| usize::from(count)).sum::<usize>();
            let values = rest.get(16..16 + len)?.to_vec();
            let class = if id >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            class[usize::from(id & 3)] = Some((counts, values));
            body = &rest[16 + len..];
        }
        Some(())
    }

    fn read_scan(&mut self, frame: &[u8], body: &[u8]) -> Option<()> {
        let side =
            |at: usize| Some(u32::from(u16::from_be_bytes([*frame.get(at)?, frame[at + 1]])));
        let height = side(1)?;
        let width = side(3)?;
        let parts: Vec<&[u8]> = frame.get(6..)?.chunks_exact(3).collect();
        let factor = |part: &[u8]| (u32::from(part[1] >> 4), u32::from(part[1] & 15));
        let most = |of: fn((u32, u32)) -> u32| parts.iter().map(|part| of(factor(part))).max();
        let most = (most(|f| f.0)?, most(|f| f.1)?);
        let scan = &mut self.scan;
        scan.count = usize::from(body[0]);
        for (slot, chosen) in scan.components[..scan.count].iter_mut().zip(body[1..].chunks(2)) {
            let component = parts.iter().position(|part| part[0] == chosen[0])?;
            let (across, down) = factor(parts[component]);
            *slot =
                ScanComponent { component, across, down, dc: chosen[1] >> 4, ac: chosen[1] & 15 };
        }
        (scan.mcus_per_row, scan.mcu_rows) =
            (width.div_ceil(8 * most.0), height.div_ceil(8 * most.1));
        if let [only] = &mut scan.components[..scan.count] {
            scan.mcus_per_row = (width * only.across).div_ceil(most.0).div_ceil(8);
            scan.mcu_rows = (height * only.down).div_ceil(most.1).div_ceil(8);
            (only.across, only.down) = (1, 1);
        }
        Some(())
    }

    pub(super) fn specs(&self) -> HuffmanSpecs<'_> {
        fn specs(tables: &[Option<Table>; 4]) -> [Option<HuffmanSpec<'_>>; 4] {
            std::array::from_fn(|id| {
                tables[id].as_ref().map(|(counts, values)| HuffmanSpec { counts, values })
            })
        }
        HuffmanSpecs { dc: specs(&self.dc), ac: specs(&self.ac) }
    }

    /// The scan's blocks; `None` for damaged data.
    pub(super) fn decode(&self, file: &[u8]) -> Option<Grid> {
        let scan = &self.scan;
        let mut grid = Grid::new();
        let mut bits = Bits { file, at: scan.data_at, byte: 0, left: 0 };
        let mut predictors = [0i32; 4];
        for mcu in 0..scan.mcu_rows * scan.mcus_per_row {
            if scan.restart_interval > 0 && mcu > 0 && mcu % scan.restart_interval == 0 {
                bits.restart()?;
                predictors = [0; 4];
            }
            let row = mcu / scan.mcus_per_row;
            let column = mcu % scan.mcus_per_row;
            for (part, predictor) in scan.components().iter().zip(&mut predictors) {
                let dc = self.dc[usize::from(part.dc)].as_ref()?;
                let ac = self.ac[usize::from(part.ac)].as_ref()?;
                for (down, across) in (0..part.down)
                    .flat_map(|down| (0..part.across).map(move |across| (down, across)))
                {
                    let mut block = decode_block(&mut bits, dc, ac)?;
                    *predictor += i32::from(block[0]);
                    block[0] = *predictor as i16;
                    let place = (row * part.down + down, column * part.across + across);
                    grid.insert((part.component, place.0, place.1), block);
                }
            }
        }
        Some(grid)
    }
}

struct Bits<'a> {
    file: &'a [u8],
    at: usize,
    byte: u8,
    left: u32,
}

impl Bits<'_> {
    fn bit(&mut self) -> Option<u32> {
        if self.left == 0 {
            (self.byte, self.left) = (*self.file.get(self.at)?, 8);
            self.at += 1;
            if self.byte == 0xFF {
                (*self.file.get(self.at)? == 0).then_some(())?;
                self.at += 1;
            }
        }
        self.left -= 1;
        Some(u32::from(self.byte) >> self.left & 1)
    }

    fn number(&mut self, size: u8) -> Option<i32> {
        let mut value = 0;
        for _ in 0..size {
            value = value << 1 | self.bit()?.cast_signed();
        }
        Some(if size > 0 && value < 1 << (size - 1) { value - (1 << size) + 1 } else { value })
    }

    fn symbol(&mut self, table: &Table) -> Option<u8> {
        let (counts, values) = table;
        let mut code = 0;
        let mut first = 0;
        let mut index = 0;
        for &count in counts {
            code = code << 1 | self.bit()?;
            if code < first + u32::from(count) {
                return values.get((index + code - first) as usize).copied();
            }
            (index, first) = (index + u32::from(count), (first + u32::from(count)) << 1);
        }
        None
    }

    fn restart(&mut self) -> Option<()> {
        self.left = 0;
        matches!(self.file.get(self.at..self.at + 2)?, [0xFF, 0xD0..=0xD7]).then_some(())?;
        self.at += 2;
        Some(())
    }
}

fn decode_block(bits: &mut Bits<'_>, dc: &Table, ac: &Table) -> Option<[i16; 64]> {
    let mut block = [0; 64];
    let size = bits.symbol(dc)?;
    block[0] = bits.number(size)? as i16;
    let mut k = 1;
    while k < 64 {
        let symbol = bits.symbol(ac)?;
        match (symbol >> 4, symbol & 15) {
            (15, 0) => k += 16,
            (_, 0) => break,
            (run, size) => {
                k += usize::from(run);
                *block.get_mut(natural(k)?)? = bits.number(size)? as i16;
                k += 1;
            }
        }
    }
    (k <= 64).then_some(block)
}

/// The natural place of coefficient `k`: the walk over the diagonals, there and back.
fn natural(k: usize) -> Option<usize> {
    static PLACES: LazyLock<Vec<usize>> = LazyLock::new(|| {
        let mut places = vec![];
        for diagonal in 0..15usize {
            let mut row: Vec<usize> = (0..8)
                .filter(|y| diagonal.checked_sub(*y).is_some_and(|x| x < 8))
                .map(|y| y * 8 + diagonal - y)
                .collect();
            if diagonal % 2 == 0 {
                row.reverse();
            }
            places.extend(row);
        }
        places
    });
    PLACES.get(k).copied()
}
