//! Damaged archives, archives that change while they are open, and the `tar` crate as a second
//! opinion on sound ones.

use std::fs::File;

use proptest::prelude::*;
use tbl_io::{ReadError, ReadLimits, SampleSource, SampleSourceExt, Source, TarArchive};

use crate::tar_bytes::{Archive, Header};

type Contents = Vec<(Vec<u8>, Vec<u8>)>;

fn open(bytes: &[u8]) -> Result<TarArchive, ReadError> {
    TarArchive::new(Source::from_bytes("test.tar", bytes.to_vec()), ReadLimits::default())
}

/// All samples with their fields; reading what the index found must not fail.
fn contents(archive: &TarArchive) -> Contents {
    let mut contents = Vec::new();
    for index in 0..archive.sample_count() {
        let (mut bytes, mut fields) = (Vec::new(), Vec::new());
        archive.read_into(index, &mut bytes).unwrap();
        archive.read_fields(index, &mut fields).unwrap();
        contents.push((archive.entry(index).unwrap().key.unwrap().into_owned(), bytes));
        contents.extend(fields.into_iter().map(|field| (field.extension, field.bytes)));
    }
    contents
}

/// One of everything, and where its headers are.
fn rich_archive() -> (Vec<u8>, Vec<usize>) {
    let long = [&[b'l'; 146][..], b".jpg"].concat();
    let bytes = Archive::new()
        .member(b"a.jpg", b"first")
        .member(b"a.cls", b"7")
        .entry(&Header::new(b"././@LongLink", 150).gnu().typed(b'L'), &long)
        .entry(&Header::new(b"cut", 600).gnu(), &[1; 600])
        .pax(b'g', &[("comment", "global")])
        .pax(b'x', &[("path", "p.png"), ("size", "3")])
        .entry(&Header::new(b"x", 0), b"pax")
        .entry(&Header::new(b"link", 0).typed(b'2'), b"")
        .entry(&Header::new(b"sparse", 4).gnu().typed(b'S'), b"data")
        .finish();
    let is_header = |at: &usize| &bytes[at + 257..at + 262] == b"ustar";
    let headers = (0..bytes.len()).step_by(512).filter(is_header).collect();
    (bytes, headers)
}

#[test]
fn every_truncation_is_an_error_or_a_whole_prefix() {
    let (bytes, _) = rich_archive();
    let all = contents(&open(&bytes).unwrap());
    assert_eq!(all.len(), 4);
    let (mut prefixes, mut errors) = (0, 0);
    for len in 0..bytes.len() {
        match open(&bytes[..len]) {
            Ok(archive) => {
                let found = contents(&archive);
                // The last group may have lost its field.
                assert!(found == all[..found.len()], "{len} bytes");
                assert!(!archive.has_end_marker(), "{len} bytes");
                prefixes += 1;
            }
            Err(ReadError::Tar { offset, .. }) => {
                assert!(offset <= len as u64);
                errors += 1;
            }
            Err(other) => panic!("{len} bytes: {other}"),
        }
    }
    // Behind six of the members and global headers, and anywhere in the zeros at the end.
    let whole = 6 + 1024;
    assert_eq!((prefixes, errors), (whole, bytes.len() - whole));
}

#[test]
fn every_flipped_header_bit_is_an_error_or_changes_nothing() {
    let (mut bytes, headers) = rich_archive();
    let all = contents(&open(&bytes).unwrap());
    let mut harmless = 0;
    for start in headers {
        for at in start..start + 512 {
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                match open(&bytes) {
                    Ok(archive) => {
                        assert_eq!(contents(&archive), all, "byte {at} bit {bit}");
                        harmless += 1;
                    }
                    Err(ReadError::Tar { offset, .. }) => assert_eq!(offset, start as u64),
                    Err(other) => panic!("byte {at} bit {bit}: {other}"),
                }
                bytes[at] ^= 1 << bit;
            }
        }
    }
    // In each of the 9 checksum fields, the 8 bits after the NUL, the one that makes the NUL a
    // blank, and the one that makes the leading zero a blank.
    assert_eq!(harmless, 9 * 10);
}

#[test]
fn a_shrinking_archive_gives_bytes_or_errors() {
    let body = vec![5; 3000];
    let mut archive = Archive::new();
    for number in 0..200 {
        archive = archive.member(format!("{number}.jpg").as_bytes(), &body);
    }
    let bytes = archive.finish();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shrinking.tar");
    for round in 0..20 {
        std::fs::write(&path, &bytes).unwrap();
        let archive = TarArchive::open(&path).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let cut = bytes.len() as u64 * round / 20;
        std::thread::scope(|scope| {
            scope.spawn(|| file.set_len(cut).unwrap());
            let mut read = Vec::new();
            for index in 0..archive.sample_count() {
                match archive.read_into(index, &mut read) {
                    Ok(()) => assert_eq!(read, body),
                    Err(ReadError::Sample { index: named, source, .. }) => {
                        assert_eq!(named, index);
                        assert!(matches!(*source, ReadError::ChangedWhileOpen { .. }), "{source}");
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        });
        let last = archive.sample_count() - 1;
        assert!(archive.read_into(last, &mut Vec::new()).is_err(), "cut to {cut}");
        // While it is being indexed: whatever the outcome, it comes back.
        match TarArchive::open(&path) {
            Ok(archive) => assert_eq!(cut % 3584, 0, "{} samples", archive.sample_count()),
            Err(ReadError::Tar { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// Member names as an archiver may meet them, with and without an image extension.
fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}(/[a-z.]{1,8}){0,3}\\.(jpg|PNG|cls|json)",
        "[a-zäöü日本 ._-]{1,40}",
        "[a-z]{90,250}/[a-z]{1,120}\\.jpg",
    ]
    .prop_filter("a directory by its slash, or no relative path", |name| {
        !name.ends_with('/') && !name.split('/').any(|part| matches!(part, "" | "." | ".."))
    })
}

proptest! {
    #[test]
    fn the_tar_crate_and_this_index_agree(
        members in prop::collection::vec((names(), prop::collection::vec(any::<u8>(), 0..1500)), 0..12)
    ) {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, body) in &members {
            let mut header = tar::Header::new_gnu();
            header.set_size(body.len() as u64);
            builder.append_data(&mut header, name, &body[..]).unwrap();
        }
        let bytes = builder.into_inner().unwrap();
        let mut expected: Vec<(Vec<u8>, u64, u64)> = tar::Archive::new(&bytes[..])
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.path_bytes().into_owned(), entry.raw_file_position(), entry.size())
            })
            .collect();
        let archive = open(&bytes).unwrap();
        prop_assert_eq!(archive.member_counts().regular, members.len() as u64);
        let found: Vec<_> = (0..archive.sample_count())
            .map(|index| {
                let entry = archive.entry(index).unwrap();
                (entry.key.unwrap().into_owned(), entry.offset, entry.bytes)
            })
            .collect();
        expected.retain(|member| found.contains(member));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn arbitrary_damage_never_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut bytes, headers) = rich_archive();
        for (at, value, _) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *value;
        }
        // Makes some of the damaged headers good ones again.
        for (start, (_, _, repair)) in headers.iter().zip(&changes) {
            if *repair {
                let mut header = Header::new(b"", 0);
                header.block.copy_from_slice(&bytes[*start..start + 512]);
                bytes[*start..start + 512].copy_from_slice(&header.block());
            }
        }
        bytes.truncate(cut.index(bytes.len() + 1).max(bytes.len() / 2));
        if let Ok(archive) = open(&bytes) {
            contents(&archive);
        }
    }
}
