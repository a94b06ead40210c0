//! One pass over all names and sizes: what the entries say, also of damaged files.

use std::ops::{ControlFlow, Range};

use tbl_io::{
    Compression, ReadError, ReadOptions, SampleSource, SampleSourceExt, Source, TblFile,
    TblVersion, WriteOptions,
};

use super::{Sample, samples, target, write};

/// Name and size of every sample, or that it is damaged.
type Scanned = Vec<Option<(Option<Vec<u8>>, u64)>>;

fn scanned(file: &TblFile) -> Option<Scanned> {
    scanned_part(file, 0..file.sample_count())
}

fn scanned_part(file: &TblFile, samples: Range<u64>) -> Option<Scanned> {
    let mut found = Vec::new();
    let is_scanned = file.scan(samples, &mut |sample| {
        found.push(sample.ok().map(|sample| (sample.key.map(<[u8]>::to_vec), sample.bytes)));
        ControlFlow::Continue(())
    });
    is_scanned.unwrap().then_some(found)
}

fn by_entry(file: &TblFile) -> Scanned {
    let entry = |index| {
        let entry = file.entry(index).ok()?;
        Some((entry.key.map(|key| key.into_owned()), entry.bytes))
    };
    (0..file.sample_count()).map(entry).collect()
}

fn written(options: WriteOptions, samples: &[Sample]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    write(&target(&folder), WriteOptions { sync: false, ..options }, samples);
    std::fs::read(target(&folder)).unwrap()
}

fn open(bytes: Vec<u8>) -> Result<TblFile, ReadError> {
    TblFile::from_source(Source::from_bytes("t.tbl", bytes), ReadOptions::default())
}

#[test]
fn a_scan_finds_what_the_entries_say() {
    let v1 = WriteOptions { version: TblVersion::V1, ..WriteOptions::default() };
    let unlabelled = samples().into_iter().map(|sample| Sample { label: None, ..sample });
    let unlabelled: Vec<Sample> = unlabelled.collect();
    let bare = |sample: &Sample| Sample { fields: vec![], ..sample.clone() };
    let bare: Vec<Sample> = unlabelled.iter().map(bare).collect();
    let unnamed = |sample: &Sample| Sample { key: None, ..sample.clone() };
    let unnamed: Vec<Sample> = bare.iter().map(unnamed).collect();
    let labelled = |sample: &Sample| Sample { label: Some(-7), ..sample.clone() };
    let labelled: Vec<Sample> = unnamed.iter().map(labelled).collect();
    for (options, samples) in [
        (WriteOptions::default(), &samples()),
        (WriteOptions { compression: Compression::Lz4, ..WriteOptions::default() }, &samples()),
        (WriteOptions::default(), &bare),
        (WriteOptions::default(), &unnamed),
        (WriteOptions::default(), &labelled),
        (WriteOptions::default(), &unlabelled),
        (v1, &bare[..3].to_vec()),
        (WriteOptions::default(), &Vec::new()),
    ] {
        let file = open(written(options, samples)).unwrap();
        let expected = by_entry(&file);
        assert_eq!(scanned(&file).as_ref(), Some(&expected));
        for start in 0..=expected.len() {
            for end in start..=expected.len() {
                let part = scanned_part(&file, start as u64..end as u64);
                assert_eq!(part.as_deref(), Some(&expected[start..end]));
            }
        }
    }
}

#[test]
fn a_scan_can_be_ended() {
    let file = open(written(WriteOptions::default(), &samples())).unwrap();
    let mut count = 0;
    let scan = file.scan(0..file.sample_count(), &mut |_| {
        count += 1;
        if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((scan.unwrap(), count), (true, 2));
}

#[test]
fn a_scan_of_a_changed_file_finds_what_its_entries_say() {
    let unlabelled = samples().into_iter().map(|sample| Sample { label: None, ..sample });
    for samples in [samples(), unlabelled.collect()] {
        check_changes(&written(WriteOptions::default(), &samples));
    }
}

fn check_changes(whole: &[u8]) {
    let mut scans = 0;
    for place in 0..whole.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = whole.to_vec();
            bytes[place] ^= change;
            let Ok(file) = open(bytes) else { continue };
            if let Some(found) = scanned(&file) {
                assert_eq!(found, by_entry(&file), "byte {place} ^ {change:#x}");
                scans += 1;
            }
        }
    }
    assert!(scans > whole.len(), "{scans}");
}
