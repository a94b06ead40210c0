use std::path::{Path, PathBuf};

use tl_simd::Level;
use tl_simd::jpeg::Block;

use super::reference::{Grid, Header};
use super::{Request, STRAY_BYTES, SequentialDecoder};
use crate::jpeg::index::RowIndex;
use crate::jpeg::scan::{BlockSink, Damage, OnDamaged, ScanEnd, Window};

#[derive(Default)]
pub(super) struct Collector {
    pub(super) grid: Grid,
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
    decode_with(decoder, file, header, window, on_damaged, None)
}

fn decode_with(
    decoder: &mut SequentialDecoder,
    file: &[u8],
    header: &Header,
    window: &Window,
    on_damaged: OnDamaged,
    index: Option<RowIndex<'_>>,
) -> Result<(ScanEnd, Collector), Damage> {
    let mut sink = Collector::default();
    let scan = &header.scan;
    let specs = &header.specs();
    let request = Request { file, scan, specs, window, on_damaged, index };
    let end = decoder.decode(Level::detect(), &request, &mut sink)?;
    assert_eq!(sink.rows, window.rows.clone().collect::<Vec<_>>());
    Ok((end, sink))
}

fn files() -> Vec<PathBuf> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = ["420", "422", "444", "cmyk", "grey", "restart", "rgb", "scans"];
    let mut files =
        names.map(|name| crate_folder.join(format!("testdata/jpeg/{name}.jpg"))).to_vec();
    let mut folders = vec![tl_testdata::shipped!("photos")];
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
    files
}

/// Every tenth of the photographs in the data folder.
fn more_files() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(tl_testdata::path!("imagenet")).unwrap();
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().step_by(10).collect()
}

struct Photo {
    path: PathBuf,
    file: Vec<u8>,
    header: Header,
    /// The blocks that the reference decodes.
    grid: Grid,
}

fn photo(path: PathBuf) -> Option<Photo> {
    let file = std::fs::read(&path).unwrap();
    let header = Header::read(&file).unwrap();
    header.sequential.then(|| Photo { grid: header.decode(&file).unwrap(), path, file, header })
}

fn photos() -> Vec<Photo> {
    let photos: Vec<Photo> = files().into_iter().filter_map(photo).collect();
    assert!(photos.len() > 10);
    photos
}

pub(super) fn part(grid: &Grid, header: &Header, window: &Window) -> Grid {
    let parts = header.scan.components();
    let wanted = |(component, row, column): &(usize, u32, u32)| {
        let part = parts.iter().find(|part| part.component == *component).unwrap();
        window.rows.contains(&(row / part.down)) && window.columns.contains(&(column / part.across))
    };
    grid.iter().filter(|(place, _)| wanted(place)).map(|(&place, &block)| (place, block)).collect()
}

fn row_index(decoder: &mut SequentialDecoder, photo: &Photo) -> Vec<u8> {
    let mut index = vec![];
    let Photo { file, header, .. } = photo;
    let scan = &header.scan;
    let specs = &header.specs();
    assert!(decoder.row_index(Level::detect(), file, scan, specs, &mut index).unwrap().is_some());
    index
}

#[test]
fn photographs_have_the_coefficients_of_the_reference() {
    compare_with_the_reference(photos());
}

#[tl_testdata::needs("imagenet")]
#[test]
fn more_photographs_have_the_coefficients_of_the_reference() {
    compare_with_the_reference(more_files().into_iter().filter_map(photo));
}

fn compare_with_the_reference(photos: impl IntoIterator<Item = Photo>) {
    let mut decoder = SequentialDecoder::default();
    for Photo { path, file, header, grid } in photos {
        let file = &file;
        let header = &header;
        let whole = header.scan.whole();
        let (end, sink) = decode(&mut decoder, file, header, &whole, OnDamaged::Error).unwrap();
        assert!(sink.grid == grid, "{}", path.display());
        let at = end.at.unwrap();
        assert!(file[at] == 0xFF && end.damage.is_none(), "{}", path.display());
    }
}

#[test]
fn a_window_is_the_same_part_of_the_whole() {
    let mut decoder = SequentialDecoder::default();
    for photo in &photos() {
        let Photo { path, file, header, grid } = photo;
        let rows = header.scan.mcu_rows;
        let columns = header.scan.mcus_per_row;
        let index = row_index(&mut decoder, photo);
        for (rows, columns) in [
            (0..rows, 0..columns),
            (0..1, 0..1),
            (rows / 2..rows / 2 + 1, 0..columns),
            (1..rows.max(3) - 1, columns / 3..columns - 1),
            (rows - 1..rows, columns - 1..columns),
            (0..rows, 1..columns.min(3)),
        ] {
            if rows.is_empty() || columns.is_empty() || rows.end > header.scan.mcu_rows {
                continue;
            }
            let window = Window { rows, columns };
            let expected = part(grid, header, &window);
            for index in [None, Some(RowIndex::parse(&index).unwrap())] {
                let (_, sink) =
                    decode_with(&mut decoder, file, header, &window, OnDamaged::Error, index)
                        .unwrap();
                assert!(sink.grid == expected, "{} {window:?} {index:?}", path.display());
            }
        }
    }
}

#[test]
fn bytes_with_fill_bytes_are_shared_by_rows() {
    let mut decoder = SequentialDecoder::default();
    let mut shared = 0;
    for Photo { path, file, header, grid } in photos() {
        if header.scan.restart_interval > 0 {
            continue;
        }
        // A fill byte in front of each stuffed zero.
        let mut filled = file[..header.scan.data_at].to_vec();
        for (at, &byte) in file.iter().enumerate().skip(header.scan.data_at) {
            if (file[at - 1], byte) == (0xFF, 0) {
                filled.push(0xFF);
            }
            filled.push(byte);
        }
        let photo = Photo { path, file: filled, header, grid };
        let index = row_index(&mut decoder, &photo);
        let Photo { path, file, header, grid } = &photo;
        let index = RowIndex::parse(&index).unwrap();
        for row in 0..header.scan.mcu_rows {
            let start = index.row(row).unwrap();
            let is_shared =
                start.bit() > 0 && file[header.scan.data_at + start.byte()..].starts_with(&[0xFF]);
            if !is_shared || row == 0 {
                continue;
            }
            shared += 1;
            let window = Window { rows: row - 1..row + 1, columns: 0..header.scan.mcus_per_row };
            let index = Some(index);
            let (_, sink) =
                decode_with(&mut decoder, file, header, &window, OnDamaged::Error, index).unwrap();
            assert!(sink.grid == part(grid, header, &window), "{} {row}", path.display());
        }
    }
    assert!(shared > 0);
}

/// Puts the checksums of an index right.
fn forge(index: &mut [u8], file: &[u8]) {
    index[12..16].copy_from_slice(&crc32fast::hash(file).to_le_bytes());
    let own = crc32fast::hash(&[&index[..16], &index[20..]].concat());
    index[16..20].copy_from_slice(&own.to_le_bytes());
}

#[test]
fn a_forged_index_gives_pixels_or_an_error() {
    let mut decoder = SequentialDecoder::default();
    let names = ["testdata/jpeg/restart.jpg", "testdata/jpeg/420.jpg"];
    let photos = photos();
    let mut decoded = 0;
    let mut refused = 0;
    for photo in photos.iter().filter(|photo| names.iter().any(|name| photo.path.ends_with(name))) {
        let Photo { file, header, grid, .. } = photo;
        let index = row_index(&mut decoder, photo);
        let entry = 4 + 2 * header.scan.count;
        for (at, bit) in (0..index.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut wrong = index.clone();
            wrong[at] ^= 1 << bit;
            forge(&mut wrong, file);
            let Ok(parsed) = RowIndex::parse(&wrong) else { continue };
            let row = u32::try_from(at.saturating_sub(20) / entry).unwrap();
            let rows = row.saturating_sub(1)..row + 1;
            let across = header.scan.mcus_per_row;
            let whole = header.scan.whole();
            for window in [whole, Window { rows, columns: across / 2..across - 1 }] {
                let parsed = Some(parsed);
                let result =
                    decode_with(&mut decoder, file, header, &window, OnDamaged::Error, parsed);
                match result {
                    Err(_) => refused += 1,
                    Ok((_, sink)) => {
                        let places = part(grid, header, &window);
                        assert!(sink.grid.keys().eq(places.keys()), "{window:?} {at} {bit}");
                        decoded += 1;
                    }
                }
            }
        }
    }
    assert!(decoded > 100 && refused > 100, "{decoded} {refused}");
}

#[test]
fn data_that_is_cut_is_found_out() {
    let mut decoder = SequentialDecoder::default();
    for Photo { file, header, grid, .. } in photos().iter().filter(|photo| photo.file.len() < 5000)
    {
        let whole = header.scan.whole();
        let (end, _) = decode(&mut decoder, file, header, &whole, OnDamaged::Error).unwrap();
        for end in (header.scan.data_at..end.at.unwrap()).rev().step_by(7) {
            let cut = &file[..end];
            let damage = decode(&mut decoder, cut, header, &whole, OnDamaged::Error).err().unwrap();
            // The damage may be at the first byte of half a marker.
            assert!(damage.offset >= end as u64 - 1, "{end}: {damage:?}");
            let (end, sink) = decode(&mut decoder, cut, header, &whole, OnDamaged::Keep).unwrap();
            assert_eq!(end.damage, Some(damage));
            assert!(sink.grid.len() < grid.len());
            assert!(sink.grid.iter().all(|(place, block)| grid[place] == *block));
        }
    }
}

/// A photograph with a restart marker after every MCU row, and where its markers are.
fn restarts() -> (Photo, Vec<usize>) {
    let is_it = |photo: &Photo| photo.path.ends_with("testdata/jpeg/restart.jpg");
    let photo = photos().into_iter().find(is_it).unwrap();
    let from = photo.header.scan.data_at;
    let markers = (from..photo.file.len() - 1)
        .filter(|&at| photo.file[at] == 0xFF && matches!(photo.file[at + 1], 0xD0..=0xD7))
        .collect();
    (photo, markers)
}

#[test]
fn kept_damage_ends_with_its_segment() {
    let (Photo { mut file, header, grid, .. }, markers) = restarts();
    let mut decoder = SequentialDecoder::default();
    let whole = header.scan.whole();
    let interval = header.scan.restart_interval;
    assert!(markers.len() > 2);
    // The second segment loses a byte: what is before and after it stays.
    file.remove(markers[1] - 1);
    let strict = decode(&mut decoder, &file, &header, &whole, OnDamaged::Error).err().unwrap();
    let (end, sink) = decode(&mut decoder, &file, &header, &whole, OnDamaged::Keep).unwrap();
    assert_eq!(end.damage, Some(strict));
    let lost: Vec<_> =
        grid.iter().filter(|(place, block)| sink.grid.get(place) != Some(block)).collect();
    assert!(!lost.is_empty());
    for (&(component, row, column), _) in lost {
        let part = header.scan.components().iter().find(|part| part.component == component);
        let part = part.unwrap();
        let mcu = row / part.down * header.scan.mcus_per_row + column / part.across;
        assert_eq!(mcu / interval, 1, "component {component}, row {row}, column {column}");
    }
}

#[test]
fn kept_segments_find_their_place_by_their_numbers() {
    let (Photo { mut file, header, grid, .. }, markers) = restarts();
    let mut decoder = SequentialDecoder::default();
    let whole = header.scan.whole();
    let interval = header.scan.restart_interval;
    // The second segment is gone, with its marker.
    file.drain(markers[0]..markers[1]);
    let strict = decode(&mut decoder, &file, &header, &whole, OnDamaged::Error).err().unwrap();
    assert_eq!((strict.what, strict.offset), ("restart marker out of turn", markers[0] as u64));
    let (_, sink) = decode(&mut decoder, &file, &header, &whole, OnDamaged::Keep).unwrap();
    for (&(component, row, column), block) in &grid {
        let parts = header.scan.components();
        let part = parts.iter().find(|part| part.component == component).unwrap();
        let mcu = row / part.down * header.scan.mcus_per_row + column / part.across;
        let expected = (mcu / interval != 1).then_some(block);
        assert_eq!(sink.grid.get(&(component, row, column)), expected);
    }
}

#[test]
fn what_libjpeg_warns_about_is_a_fault() {
    let (Photo { file, header, .. }, markers) = restarts();
    let whole = header.scan.whole();
    let check = |change: &dyn Fn(&mut Vec<u8>), expected: &str| {
        let mut file = file.clone();
        change(&mut file);
        let mut decoder = SequentialDecoder::default();
        let result = decode(&mut decoder, &file, &header, &whole, OnDamaged::Error);
        assert_eq!(result.err().map(|damage| damage.what), Some(expected));
    };
    let at = markers[1];
    let end = file.len() - 2;
    check(&|file| file.truncate(at - 1), "entropy-coded data ends before its last MCU");
    check(&|file| file.truncate(at), "restart marker is missing");
    let stray = [0x55; STRAY_BYTES + 1];
    let insert = |file: &mut Vec<u8>, at: usize| drop(file.splice(at..at, stray));
    check(&|file| insert(file, at), "entropy-coded data after the last MCU");
    check(&|file| insert(file, end), "entropy-coded data after the last MCU");
    check(&|file| file[at + 1] = 0xD7, "restart marker out of turn");
    check(&|file| file[at + 1] = 0xD9, "restart marker is missing");
}

#[test]
fn changed_bytes_are_survived() {
    let mut decoder = SequentialDecoder::default();
    let mut state = 11u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % below
    };
    for photo in photos().iter().filter(|photo| photo.file.len() < 5000) {
        let index = row_index(&mut decoder, photo);
        let rows = photo.header.scan.mcu_rows;
        let columns = photo.header.scan.mcus_per_row;
        for _ in 0..400 {
            let mut file = photo.file.clone();
            let mut index = index.clone();
            let from = photo.header.scan.data_at;
            for _ in 0..=random(3) {
                let at = from + random(file.len() - from);
                match random(4) {
                    0 => file[at] = 0xFF,
                    1 => file.truncate(at.max(from + 1)),
                    2 => drop(file.remove(at)),
                    _ => file[at] ^= 1 << random(8),
                }
                let at = random(index.len());
                index[at] ^= u8::from(random(100) == 0);
            }
            let window = Window {
                rows: u32::try_from(random(rows as usize)).unwrap()..rows,
                columns: u32::try_from(random(columns as usize)).unwrap()..columns,
            };
            let header = &photo.header;
            let kept = decode(&mut decoder, &file, header, &window, OnDamaged::Keep).unwrap();
            let strict = decode(&mut decoder, &file, header, &window, OnDamaged::Error);
            assert_eq!(strict.err(), kept.0.damage);
            // An index of the file as it was, which somebody says is one of this file.
            forge(&mut index, &file);
            let index = RowIndex::parse(&index).ok();
            drop(decode_with(&mut decoder, &file, header, &window, OnDamaged::Error, index));
            assert!(decoder.blocks.run(0..64).iter().all(|block| *block == Block::ZERO));
        }
    }
}
