//! Coefficients against a decoder that follows the figures of T.81 annex G bit by bit.

mod reference;

use super::*;
use crate::jpeg::scan::ScanComponent;

/// The headers of a progressive file, as far as these tests need them.
struct File<'a> {
    bytes: &'a [u8],
    grids: Vec<Grid>,
    mcus: (u32, u32),
    scans: Vec<(Scan, HuffmanSpecs<'a>)>,
}

fn be16(bytes: &[u8]) -> u32 {
    u32::from(bytes[0]) << 8 | u32::from(bytes[1])
}

impl<'a> File<'a> {
    fn parse(bytes: &'a [u8]) -> Self {
        let mut file = File { bytes, grids: Vec::new(), mcus: (0, 0), scans: Vec::new() };
        let mut at = 2;
        let mut specs = HuffmanSpecs::default();
        let mut interval = 0;
        let mut ids = Vec::new();
        loop {
            while bytes[at] != 0xFF || matches!(bytes[at + 1], 0 | 0xFF | 0xD0..=0xD7) {
                at += 1;
            }
            let marker = bytes[at + 1];
            if marker == 0xD9 {
                return file;
            }
            let segment = &bytes[at + 4..at + 2 + be16(&bytes[at + 2..]) as usize];
            at += 4 + segment.len();
            match marker {
                0xC2 => file.frame(segment, &mut ids),
                0xC4 => tables(segment, &mut specs),
                0xDD => interval = be16(segment),
                0xDA => {
                    let scan = file.scan(segment, &ids, interval, at);
                    file.scans.push((scan, specs));
                }
                _ => {}
            }
        }
    }

    fn frame(&mut self, segment: &[u8], ids: &mut Vec<u8>) {
        let height = be16(&segment[1..]);
        let width = be16(&segment[3..]);
        let parts = segment[6..].chunks_exact(3);
        let factors: Vec<_> =
            parts.clone().map(|c| (u32::from(c[1] >> 4), u32::from(c[1] & 15))).collect();
        let most = (
            factors.iter().map(|f| f.0).max().unwrap(),
            factors.iter().map(|f| f.1).max().unwrap(),
        );
        self.mcus = (width.div_ceil(most.0 * 8), height.div_ceil(most.1 * 8));
        for ((across, down), part) in factors.into_iter().zip(parts) {
            ids.push(part[0]);
            let columns = (width * across).div_ceil(most.0 * 8);
            let rows = (height * down).div_ceil(most.1 * 8);
            self.grids.push(Grid { across, down, columns, rows, counted_down: down });
        }
    }

    fn scan(&self, segment: &[u8], ids: &[u8], restart_interval: u32, data_at: usize) -> Scan {
        let count = usize::from(segment[0]);
        let tail = &segment[1 + 2 * count..];
        let mut scan = Scan {
            count,
            mcus_per_row: self.mcus.0,
            mcu_rows: self.mcus.1,
            restart_interval,
            spectral: (tail[0], tail[1]),
            approximation: (tail[2] >> 4, tail[2] & 15),
            data_at,
            ..Scan::default()
        };
        for (part, spec) in scan.components.iter_mut().zip(segment[1..].chunks(2)).take(count) {
            let component = ids.iter().position(|id| *id == spec[0]).unwrap();
            let Grid { across, down, .. } = self.grids[component];
            let dc = spec[1] >> 4;
            let ac = spec[1] & 15;
            *part = ScanComponent { component, across, down, dc, ac };
        }
        if count == 1 {
            let part = &mut scan.components[0];
            (part.across, part.down) = (1, 1);
            let grid = self.grids[part.component];
            (scan.mcus_per_row, scan.mcu_rows) = (grid.columns, grid.rows);
        }
        scan
    }

    fn whole(&self) -> Window {
        Window { rows: 0..self.mcus.1, columns: 0..self.mcus.0 }
    }

    fn decode(
        &self,
        decoder: &mut Progressive,
        level: Level,
        window: &Window,
        on_damaged: OnDamaged,
        sink: &mut impl BlockSink,
    ) -> Result<Option<Damage>, DecodeError> {
        let limits = Limits::default();
        decoder.begin(&self.grids, self.mcus, window, on_damaged, 0, &limits)?;
        for (scan, specs) in &self.scans {
            decoder.add_scan(level, self.bytes, scan, specs, &limits)?;
        }
        let quantizers = [&[1; 64]; 4];
        decoder.finish(level, self.bytes, &quantizers[..self.grids.len()], sink)
    }
}

fn tables<'a>(mut segment: &'a [u8], specs: &mut HuffmanSpecs<'a>) {
    while let Some((&head, rest)) = segment.split_first() {
        let (counts, rest) = rest.split_first_chunk::<16>().unwrap();
        let (values, rest) = rest.split_at(counts.iter().map(|&n| usize::from(n)).sum());
        let class = if head >> 4 == 0 { &mut specs.dc } else { &mut specs.ac };
        class[usize::from(head & 15)] = Some(HuffmanSpec { counts, values });
        segment = rest;
    }
}

/// Coefficients of all components.
type Coefficients = Vec<Vec<[i16; 64]>>;

struct Collect<'a> {
    grids: &'a [Grid],
    out: Coefficients,
    rows: Vec<u32>,
}

impl<'a> Collect<'a> {
    fn new(grids: &'a [Grid]) -> Self {
        let out = grids.iter().map(|g| vec![[0; 64]; (g.columns * g.rows) as usize]).collect();
        Self { grids, out, rows: Vec::new() }
    }
}

impl BlockSink for Collect<'_> {
    fn blocks(&mut self, component: usize, row: u32, column: u32, blocks: &mut [Block]) {
        let at = (row * self.grids[component].columns + column) as usize;
        for (to, block) in self.out[component][at..].iter_mut().zip(blocks) {
            *to = std::mem::replace(block, Block::ZERO).0;
        }
    }

    fn mcu_row_done(&mut self, mcu_row: u32) {
        self.rows.push(mcu_row);
    }
}

/// Small files with scan scripts of every kind.
const FILES: [&[u8]; 3] = [
    tl_testdata::shipped_bytes!("jpeg/progressive_bands_restart.jpg"),
    tl_testdata::shipped_bytes!("jpeg/progressive_deep_420.jpg"),
    tl_testdata::shipped_bytes!("jpeg/progressive_default_grey.jpg"),
];

fn levels() -> impl Iterator<Item = Level> {
    Level::available()
}

#[test]
fn every_level_gives_the_coefficients_of_the_standard() {
    for bytes in FILES {
        let file = File::parse(bytes);
        let expected = reference::decode(&file);
        for level in levels() {
            let mut sink = Collect::new(&file.grids);
            let mut decoder = Progressive::default();
            let window = file.whole();
            let damage =
                file.decode(&mut decoder, level, &window, OnDamaged::Error, &mut sink).unwrap();
            assert_eq!(damage, None);
            assert!(sink.out == expected);
            assert_eq!(sink.rows, window.rows.collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_window_hands_over_its_blocks_only() {
    for bytes in FILES {
        let file = File::parse(bytes);
        let expected = reference::decode(&file);
        let mut decoder = Progressive::default();
        for rows in [0..1, 1..file.mcus.1, file.mcus.1 / 2..file.mcus.1] {
            let window = Window { rows, columns: file.mcus.0 / 3..file.mcus.0.div_ceil(2) };
            let mut sink = Collect::new(&file.grids);
            let level = Level::detect();
            file.decode(&mut decoder, level, &window, OnDamaged::Error, &mut sink).unwrap();
            let mut left_out = expected.clone();
            for (grid, plane) in file.grids.iter().zip(&mut left_out) {
                for (at, block) in plane.iter_mut().enumerate() {
                    let at = u32::try_from(at).unwrap();
                    let column = at % grid.columns / grid.across;
                    let row = at / grid.columns;
                    if !window.columns.contains(&column)
                        || !window.rows.contains(&(row / grid.down))
                    {
                        *block = [0; 64];
                    }
                }
            }
            assert!(sink.out == left_out, "{window:?}");
        }
    }
}

#[test]
fn cut_and_changed_data_is_reported_and_does_not_panic() {
    for bytes in FILES {
        let whole = File::parse(bytes);
        let mut decoder = Progressive::default();
        let first = whole.scans[0].0.data_at;
        let mut refused = 0;
        let mut tried = 0;
        for at in (first..bytes.len() - 2).step_by(3) {
            let mut changed = bytes.to_vec();
            changed[at] ^= 1 << (at % 8);
            let file = File { bytes: &changed, ..File::parse(bytes) };
            for on_damaged in [OnDamaged::Error, OnDamaged::Keep] {
                let mut sink = Collect::new(&file.grids);
                let level = Level::detect();
                let result = file.decode(&mut decoder, level, &file.whole(), on_damaged, &mut sink);
                match (on_damaged, result) {
                    (OnDamaged::Error, result) => {
                        tried += 1;
                        refused += usize::from(result.is_err());
                    }
                    (OnDamaged::Keep, result) => {
                        result.unwrap();
                        assert_eq!(sink.rows.len(), file.mcus.1 as usize);
                    }
                }
            }
        }
        // Most bits say nothing that the others contradict, and tables between the scans are among them.
        assert!(refused * 5 > tried, "{refused} of {tried}");
        // The blocks are clean again afterwards.
        let mut sink = Collect::new(&whole.grids);
        let level = Level::detect();
        whole.decode(&mut decoder, level, &whole.whole(), OnDamaged::Error, &mut sink).unwrap();
        assert!(sink.out == reference::decode(&whole));
    }
}

/// Decodes the scans of a file after `change`, and expects `expected` in the error.
fn check_scans(change: impl Fn(&mut Vec<(Scan, HuffmanSpecs<'_>)>), expected: &str) {
    let mut file = File::parse(FILES[1]);
    change(&mut file.scans);
    let mut decoder = Progressive::default();
    let level = Level::detect();
    let window = file.whole();
    let result = file.decode(&mut decoder, level, &window, OnDamaged::Error, &mut Clear);
    let error = result.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

struct Clear;

impl BlockSink for Clear {
    fn blocks(&mut self, _: usize, _: u32, _: u32, blocks: &mut [Block]) {
        blocks.fill(Block::ZERO);
    }

    fn mcu_row_done(&mut self, _: u32) {}
}

#[test]
fn scans_that_do_not_fit_are_refused() {
    check_scans(|scans| scans[1].0.spectral = (5, 64), "spectral selection");
    check_scans(|scans| scans[1].0.spectral = (5, 4), "spectral selection");
    check_scans(|scans| scans[0].0.spectral = (0, 1), "spectral selection");
    check_scans(|scans| scans[0].0.spectral = (1, 5), "components in an AC scan");
    check_scans(|scans| scans[0].0.approximation = (0, 14), "successive approximation");
    check_scans(|scans| scans[5].0.approximation = (3, 1), "successive approximation");
    check_scans(
        |scans| {
            scans.remove(0);
        },
        "AC scan before any DC scan",
    );
    check_scans(
        |scans| {
            scans.remove(1);
        },
        "bits that do not follow the last ones",
    );
    check_scans(|scans| scans.insert(1, scans[0]), "bits that do not follow the last ones");
    check_scans(|scans| scans[1].1.ac = [None; 4], "table that is not defined");
    check_scans(|scans| scans[0].1.dc = [None; 4], "table that is not defined");
    check_scans(|scans| scans[1].0.restart_interval = 1, "data after the last MCU");
}

#[test]
fn memory_is_charged_before_it_is_taken() {
    let mut decoder = Progressive::default();
    let side = 8192;
    let grid = Grid { across: 1, down: 1, columns: side, rows: side, counted_down: 1 };
    let window = Window { rows: 0..side, columns: 0..side };
    let limits = Limits { max_working_bytes: 1 << 20, ..Limits::default() };
    let result = decoder.begin(&[grid], (side, side), &window, OnDamaged::Error, 0, &limits);
    assert!(matches!(result, Err(DecodeError::LimitExceeded { .. })));
    assert_eq!((decoder.dc.capacity(), decoder.blocks.capacity()), (0, 0));
}

#[test]
fn data_of_larger_images_is_given_back() {
    let file = vec![0x55; 3 << 20];
    let grid = Grid { across: 1, down: 1, columns: 1, rows: 1, counted_down: 1 };
    let window = Window { rows: 0..1, columns: 0..1 };
    let limits = Limits::default();
    let mut decoder = Progressive::default();
    let mut begin = |scans: usize, other_bytes: u64| {
        decoder.scans.resize_with(scans, AcScan::default);
        for scan in &mut decoder.scans {
            scan.reading.restart(&Scan::default());
            scan.reading.advance(&file, 1);
        }
        decoder.begin(&[grid], (1, 1), &window, OnDamaged::Error, other_bytes, &limits).unwrap();
        decoder.scans.iter().map(|scan| scan.reading.kept_bytes()).sum::<usize>()
    };
    assert!(begin(1, 0) > file.len());
    assert!(begin(2, 7 << 20) > 2 * file.len());
    assert_eq!(begin(2, 0), 0);
}
