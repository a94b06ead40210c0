use std::path::{Path, PathBuf};

use tl_simd::Level;
use tl_simd::jpeg::Block;

use super::reference::{Grid, Header};
use super::{Request, SequentialDecoder};
use crate::jpeg::scan::{BlockSink, Damage, OnDamaged, ScanEnd, Window};

#[derive(Default)]
struct Collector {
    grid: Grid,
    rows: Vec<u32>,
}

impl BlockSink for Collector {
    fn blocks(&mut self, component: usize, row: u32, column: u32, blocks: &mut [Block]) {
        for (column, block) in (column..).zip(blocks) {
            let old = self.grid.insert((component, row, column), block.0);
            assert_eq!(old, None, "component {component}, row {row}, column {column} came before");
            *block = Block::ZERO;
        }
    }

    fn mcu_row_done(&mut self, mcu_row: u32) {
        self.rows.push(mcu_row);
    }
}

fn decode(
    decoder: &mut SequentialDecoder,
    file: &[u8],
    header: &Header,
    window: &Window,
    on_damaged: OnDamaged,
) -> Result<(ScanEnd, Collector), Damage> {
    let mut sink = Collector::default();
    let (scan, specs) = (&header.scan, &header.specs());
    let request = Request { file, scan, specs, window, on_damaged };
    let end = decoder.decode(Level::detect(), &request, &mut sink)?;
    assert_eq!(sink.rows, window.rows.clone().collect::<Vec<_>>());
    Ok((end, sink))
}

fn photos() -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/photos")];
    let mut files = vec![];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jpg") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn sequential_photos() -> Vec<(PathBuf, Vec<u8>, Header)> {
    photos()
        .into_iter()
        .filter_map(|path| {
            let file = std::fs::read(&path).unwrap();
            let header = Header::read(&file).unwrap();
            header.sequential.then_some((path, file, header))
        })
        .collect()
}

fn part(grid: &Grid, header: &Header, window: &Window) -> Grid {
    let parts = header.scan.components();
    let wanted = |(component, row, column): &(usize, u32, u32)| {
        let part = parts.iter().find(|part| part.component == *component).unwrap();
        window.rows.contains(&(row / part.down)) && window.columns.contains(&(column / part.across))
    };
    grid.iter().filter(|(place, _)| wanted(place)).map(|(&place, &block)| (place, block)).collect()
}

#[test]
fn photographs_have_the_coefficients_of_the_reference() {
    let mut decoder = SequentialDecoder::default();
    for (path, file, header) in sequential_photos() {
        let whole = header.scan.whole();
        let (end, sink) = decode(&mut decoder, &file, &header, &whole, OnDamaged::Error).unwrap();
        let expected = header.decode(&file).unwrap();
        assert!(sink.grid == expected, "{}", path.display());
        assert_eq!((end.at, end.damage), (Some(file.len() - 2), None), "{}", path.display());
    }
}

#[test]
fn a_window_is_the_same_part_of_the_whole() {
    let mut decoder = SequentialDecoder::default();
    for (path, file, header) in sequential_photos() {
        let expected = header.decode(&file).unwrap();
        let (rows, columns) = (header.scan.mcu_rows, header.scan.mcus_per_row);
        for (rows, columns) in [
            (0..1, 0..1),
            (rows / 2..rows / 2 + 1, 0..columns),
            (1..rows - 1, columns / 3..columns - 1),
            (rows - 1..rows, columns - 1..columns),
            (0..rows, 2..3),
        ] {
            let window = Window { rows, columns };
            let (_, sink) =
                decode(&mut decoder, &file, &header, &window, OnDamaged::Error).unwrap();
            assert!(
                sink.grid == part(&expected, &header, &window),
                "{} {window:?}",
                path.display()
            );
        }
    }
}

#[test]
fn data_that_is_cut_is_found_out() {
    let mut decoder = SequentialDecoder::default();
    let (_, file, header) = sequential_photos().swap_remove(0);
    let from = header.scan.data_at;
    let whole = header.scan.whole();
    for end in (from..file.len() - 2).rev().step_by(997) {
        let cut = &file[..end];
        let damage = decode(&mut decoder, cut, &header, &whole, OnDamaged::Error).err().unwrap();
        // A byte of 0xFF at the end is half a marker.
        assert!(damage.offset >= end as u64 - 1, "{end}: {damage:?}");
        let (_, sink) = decode(&mut decoder, cut, &header, &whole, OnDamaged::Keep).unwrap();
        let expected = header.decode(&file).unwrap();
        assert!(sink.grid.len() < expected.len());
        assert!(sink.grid.iter().all(|(place, block)| expected[place] == *block));
    }
}
