//! Values do not depend on the way they are read.

use std::fs::File;
use std::io::Write;
use std::num::NonZeroUsize;
use std::sync::Mutex;

use idv_format::{IdvFile, ReadAt, ReadError, Scratch, Values};

use crate::data::{all_samples, hash, outcome, read_all};

/// Bytes that are only lent by copying, as those of a file.
struct Copied<'b>(&'b [u8]);

impl ReadAt for Copied<'_> {
    fn size(&self) -> std::io::Result<u64> {
        self.0.size()
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        self.0.read_exact_at(offset, bytes)
    }
}

#[test]
fn any_source_gives_the_same_values() {
    for sample in all_samples() {
        let expected = outcome(sample.bytes.as_slice());
        assert_eq!(outcome(Copied(&sample.bytes)), expected);
        let mut file = tempfile();
        file.write_all(&sample.bytes).unwrap();
        assert_eq!(outcome(file), expected);
        // At every alignment, so that nothing can be borrowed at most of them.
        let mut room = vec![0; sample.bytes.len() + 8];
        for shift in 0..8 {
            let place = &mut room[shift..shift + sample.bytes.len()];
            place.copy_from_slice(&sample.bytes);
            assert_eq!(outcome(&*place), expected, "{} +{shift}", sample.path.display());
        }
    }
}

fn tempfile() -> File {
    let path = std::env::temp_dir().join(format!("idv-format-{}.idv", std::process::id()));
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
    std::fs::remove_file(path).unwrap();
    file.unwrap()
}

#[test]
fn rows_are_the_same_in_any_range() {
    for sample in all_samples() {
        let file = IdvFile::open(sample.bytes).unwrap();
        let rows = file.row_count();
        for index in 0..file.columns().len() {
            let Ok(column) = file.column(index) else { continue };
            let whole = read_all(&column);
            for (start, end) in
                [(0, 0), (0, 1), (rows / 3, rows / 2), (rows / 2, rows), (rows, rows)]
            {
                if start > end || end > rows {
                    continue;
                }
                let part = column.read(start..end).unwrap();
                let [first, last] = [start, end].map(|row| usize::try_from(row).unwrap());
                let expected = whole.slice(first..last);
                assert_eq!(hash(&part), hash(&expected), "{start}..{end}");
                assert_eq!(hash(&expected.into_owned()), hash(&part));
            }
            let error = column.read(0..rows + 1).unwrap_err();
            assert!(matches!(error, ReadError::NoRows { .. }), "{error}");
        }
    }
}

#[test]
fn a_scan_hands_over_every_block_once() {
    for sample in all_samples() {
        let file = IdvFile::open(sample.bytes).unwrap();
        for index in 0..file.columns().len() {
            let Ok(column) = file.column(index) else { continue };
            for threads in [1, 3] {
                let found: Mutex<Vec<(u64, Values<'static>)>> = Mutex::new(Vec::new());
                let threads = NonZeroUsize::new(threads).unwrap();
                column
                    .scan(threads, |block, values| -> Result<(), ReadError> {
                        found.lock().unwrap().push((block, values.into_owned()));
                        Ok(())
                    })
                    .unwrap();
                let mut found = found.into_inner().unwrap();
                found.sort_by_key(|&(block, _)| block);
                let mut whole = column.codec().empty_values();
                for (number, (block, values)) in found.iter().enumerate() {
                    assert_eq!(*block, number as u64);
                    let rows = column.block_rows(*block);
                    assert_eq!(values.len() as u64, rows.end - rows.start);
                    whole.append(values).unwrap();
                }
                assert_eq!(hash(&whole), hash(&read_all(&column)));
            }
        }
    }
}

/// A damaged block is reported whatever else the other threads do.
#[test]
fn a_scan_reports_the_first_damaged_block() {
    let samples = all_samples();
    let sample = samples.iter().find(|sample| sample.path.ends_with("blocks.idv")).unwrap();
    let mut bytes = sample.bytes.clone();
    let damaged = {
        let file = IdvFile::open(&bytes).unwrap();
        let column = file.column(0).unwrap();
        [3, 5].map(|block| usize::try_from(column.blocks()[block].offset).unwrap())
    };
    // A reserved kind of block.
    damaged.iter().for_each(|&at| bytes[at] = 0xff);
    let file = IdvFile::open(bytes).unwrap();
    let column = file.column(0).unwrap();
    for threads in 1..5 {
        let visit = |_, _: Values<'_>| Ok(());
        let error: ReadError = column.scan(NonZeroUsize::new(threads).unwrap(), visit).unwrap_err();
        assert!(matches!(error, ReadError::Block { block: 3, .. }), "{error}");
    }
}

/// Numbers that lie as they lie in memory are not copied.
#[test]
#[cfg(target_endian = "little")]
fn aligned_numbers_are_borrowed() {
    let samples = all_samples();
    let sample = samples.iter().find(|sample| sample.path.ends_with("numbers.idv")).unwrap();
    let mut words = vec![0u64; sample.bytes.len().div_ceil(8)];
    let room: &mut [u8] = zerocopy::IntoBytes::as_mut_bytes(words.as_mut_slice());
    room[..sample.bytes.len()].copy_from_slice(&sample.bytes);
    let bytes = &room[..sample.bytes.len()];
    let file = IdvFile::open(bytes).unwrap();
    let column = file.column(file.find("single").unwrap()).unwrap();
    let mut scratch = Scratch::new();
    let Values::Single(values) = column.read_block(0, &mut scratch).unwrap() else { panic!() };
    let std::borrow::Cow::Borrowed(values) = values else { panic!("copied") };
    assert!(bytes.as_ptr_range().contains(&values.as_ptr().cast()));
}
