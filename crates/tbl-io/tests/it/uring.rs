//! Reads through `io_uring`, against positioned reads. Where the kernel refuses, there is nothing to
//! test but the refusal.

use std::fs::File;
use std::io::Write as _;

use tbl_io::{PageCache, ReadError, Source, StoredBytes, UringReader};

fn file_with(len: usize) -> (tempfile::NamedTempFile, Vec<u8>) {
    let bytes: Vec<u8> = (0..len).map(|at| (at * 31 + at / 251) as u8).collect();
    // Beside the build, since a folder in memory cannot be read around the page cache.
    let mut file = tempfile::Builder::new().tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    file.write_all(&bytes).unwrap();
    (file, bytes)
}

fn reader(depth: u32, page_cache: PageCache) -> Option<UringReader> {
    match UringReader::new(depth, page_cache) {
        Ok(reader) => Some(reader),
        Err(error) => {
            eprintln!("no io_uring here: {error}");
            None
        }
    }
}

#[test]
fn every_range_has_its_bytes() {
    let (file, expected) = file_with(300_000);
    let on_disk = Source::open(file.path()).unwrap();
    let in_memory = Source::from_bytes("memory", expected.clone());
    let ranges = (0..400_u64).map(|at| {
        let offset = at * 7919 % 300_000;
        (offset, [0, 1, 511, 4096, 4097, 70_000][at as usize % 6].min(300_000 - offset))
    });
    let ranges: Vec<(u64, u64)> = ranges.chain([(0, 300_000), (299_999, 1)]).collect();
    for page_cache in [PageCache::Used, PageCache::Bypassed] {
        for depth in [1, 3, 32] {
            for source in [&on_disk, &in_memory] {
                let Some(mut reader) = reader(depth, page_cache) else { return };
                let (mut spare, mut seen) = (vec![Vec::new()], vec![false; ranges.len()]);
                let mut next = ranges.iter().enumerate().peekable();
                while next.peek().is_some() || !reader.is_idle() {
                    while !reader.is_full()
                        && let Some((tag, &(offset, len))) = next.next()
                    {
                        let stored = StoredBytes { source: source.clone(), offset, len };
                        reader.start(tag as u64, stored, spare.pop().unwrap_or_default());
                    }
                    let completed = reader.wait().unwrap().expect("a read is under way");
                    completed.result.unwrap();
                    let tag = completed.tag as usize;
                    let (offset, len) = (ranges[tag].0 as usize, ranges[tag].1 as usize);
                    assert!(completed.bytes == expected[offset..offset + len], "{offset}+{len}");
                    assert!(!std::mem::replace(&mut seen[tag], true), "once");
                    spare.push(completed.bytes);
                }
                assert!(seen.iter().all(|&seen| seen));
                assert!(reader.wait().unwrap().is_none());
            }
        }
    }
}

#[test]
fn a_file_cut_short_and_a_range_beyond_it_are_errors() {
    let (file, _) = file_with(100_000);
    let source = Source::open(file.path()).unwrap();
    File::options().write(true).open(file.path()).unwrap().set_len(50_000).unwrap();
    for page_cache in [PageCache::Used, PageCache::Bypassed] {
        let Some(mut reader) = reader(4, page_cache) else { return };
        for (offset, len) in [(49_000, 1_001), (60_000, 10), (99_000, 2_000), (u64::MAX, 1)] {
            let stored = StoredBytes { source: source.clone(), offset, len };
            reader.start(7, stored, Vec::new());
            let completed = reader.wait().unwrap().expect("a read is under way");
            let error = completed.result.unwrap_err();
            assert!(matches!(error, ReadError::ChangedWhileOpen { .. }), "{error}");
        }
        let stored = StoredBytes { source: source.clone(), offset: 49_000, len: 1_000 };
        reader.start(8, stored, Vec::new());
        reader.wait().unwrap().expect("a read is under way").result.unwrap();
    }
}

#[test]
fn a_reader_can_be_dropped_with_reads_under_way() {
    let (file, _) = file_with(1_000_000);
    let source = Source::open(file.path()).unwrap();
    for _ in 0..100 {
        source.dont_need(0, source.len()).unwrap();
        let Some(mut reader) = reader(16, PageCache::Used) else { return };
        for tag in 0..16 {
            let stored = StoredBytes { source: source.clone(), offset: tag * 50_000, len: 50_000 };
            reader.start(tag, stored, Vec::new());
        }
        reader.wait().unwrap().expect("a read is under way").result.unwrap();
    }
}
