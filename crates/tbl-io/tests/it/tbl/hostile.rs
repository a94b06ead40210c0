//! Damaged and odd files: an error that names the place, or the same samples; never a panic.

use tbl_format::checksum::payload_crc16;
use tbl_format::extension::{ExtensionHeader, ExtensionKind, NameTableBuilder};
use tbl_format::path::PathDefect;
use tbl_format::{FormatError, SampleFormat, v1, v2};
use tbl_io::{
    Compression, Damage, Field, NewSample, ReadError, ReadOptions, SampleSource, SampleSourceExt,
    Source, StreamWriter, TblFile, Verify, WriteError, WriteOptions,
};

use super::{Sample, compressions, read, samples, write};

fn open(bytes: Vec<u8>) -> Result<TblFile, ReadError> {
    TblFile::from_source(Source::from_bytes("t.tbl", bytes), ReadOptions::default())
}

fn open_with(bytes: Vec<u8>, options: ReadOptions) -> Result<TblFile, ReadError> {
    TblFile::from_source(Source::from_bytes("t.tbl", bytes), options)
}

/// Version 2 files with compressed and raw samples, names, labels and fields.
fn whole_files() -> [Vec<u8>; 2] {
    let [_, lz4, zstd] = compressions();
    [lz4, zstd].map(|compression| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.tbl");
        let options = WriteOptions { compression, sync: false, ..Default::default() };
        write(&path, options, &samples());
        std::fs::read(path).unwrap()
    })
}

fn whole_file() -> Vec<u8> {
    let [lz4, _] = whole_files();
    lz4
}

/// The same samples as the original would write them: no extension blocks.
fn plain_file() -> Vec<u8> {
    let payloads: [&[u8]; 3] = [b"first sample", b"", b"third"];
    plain_file_of(&payloads)
}

fn plain_file_of(payloads: &[&[u8]]) -> Vec<u8> {
    let count = payloads.len() as u64;
    let flags = v2::FileFlags::HAS_CHECKSUMS;
    let mut file = v2::FileHeader::new(count, 0..0, flags).unwrap().to_bytes().to_vec();
    let mut offset = v2::index_end(count).unwrap();
    for payload in payloads {
        let size = payload.len() as u32;
        let checksum = payload_crc16(payload);
        let payload = v2::Payload { offset, stored_bytes: size, bytes: size, checksum };
        let flags = v2::EntryFlags::NONE;
        file.extend(v2::IndexEntry::new(payload, (3, 4), SampleFormat::Png, flags).to_bytes());
        offset += u64::from(size);
    }
    file.extend(payloads.concat());
    file
}

/// Sets `bytes` at `offset` of the header and makes its checksum right again.
fn set_header(file: &mut [u8], offset: usize, bytes: &[u8]) {
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
    file[44..48].fill(0);
    let checksum = tbl_format::checksum::header_crc32(&file[..64]);
    file[44..48].copy_from_slice(&checksum.to_le_bytes());
}

fn read_all(file: &TblFile) -> Result<Vec<Sample>, ReadError> {
    let mut bytes = Vec::new();
    (0..file.sample_count())
        .map(|index| {
            file.read_into(index, &mut bytes)?;
            let entry = file.entry(index)?;
            let mut fields = Vec::new();
            file.read_fields(index, &mut fields)?;
            Ok(Sample {
                bytes: bytes.clone(),
                format: entry.format,
                dimensions: (entry.width, entry.height),
                key: entry.key.map(|key| key.into_owned()),
                label: entry.label,
                fields,
            })
        })
        .collect()
}

fn defect(error: ReadError) -> FormatError {
    match error {
        ReadError::Format { source, .. } => source,
        ReadError::Sample { source, .. } => defect(*source),
        other => panic!("{other}"),
    }
}

#[test]
fn every_truncation_of_version_2_is_an_error_at_opening_or_reading() {
    for whole in whole_files().into_iter().chain([plain_file()]) {
        for len in 0..whole.len() {
            let result = open(whole[..len].to_vec()).and_then(|file| read_all(&file));
            assert!(result.unwrap_err().is_damage(), "cut to {len} of {}", whole.len());
        }
    }
}

#[test]
fn every_truncation_of_version_1_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tbl");
    let version = tbl_io::TblVersion::V1;
    write(&path, WriteOptions { version, ..Default::default() }, &samples()[..3]);
    let whole = std::fs::read(path).unwrap();
    for len in 0..whole.len() {
        let result = open(whole[..len].to_vec()).and_then(|file| read_all(&file));
        assert!(result.unwrap_err().is_damage(), "cut to {len} of {}", whole.len());
    }
}

#[test]
fn every_flipped_header_bit_of_version_2_is_refused() {
    for whole in whole_files().into_iter().chain([plain_file()]) {
        for bit in 0..64 * 8 {
            let mut file = whole.clone();
            file[bit / 8] ^= 1 << (bit % 8);
            assert!(open(file).is_err(), "bit {bit}");
        }
    }
}

#[test]
fn every_flipped_bit_of_our_files_is_found_by_a_full_check_or_changes_nothing() {
    whole_files().into_iter().for_each(check_flipped_bits);
}

fn check_flipped_bits(whole: Vec<u8>) {
    let expected = read(&open(whole.clone()).unwrap());
    let options = ReadOptions { verify: Verify::All, ..Default::default() };
    for bit in 0..whole.len() * 8 {
        let mut file = whole.clone();
        file[bit / 8] ^= 1 << (bit % 8);
        let checked = open_with(file, options).and_then(|file| {
            file.verify_structure()?;
            read_all(&file)
        });
        if let Ok(found) = checked {
            assert!(found == expected, "bit {bit} of byte {}", bit / 8);
            assert!(says_nothing(&whole, bit / 8), "bit {bit} of byte {}", bit / 8);
        }
    }
}

/// Whether a byte of such a file may change without anything else changing: in a compressed sample, where
/// a run of equal bytes is the same at another distance, and in the reserved bytes of the metadata
/// section's first header, in front of the checksums.
fn says_nothing(whole: &[u8], position: usize) -> bool {
    // Only the first sample shrinks.
    let entry = v2::IndexEntry::parse(&whole[64..]).unwrap();
    let block = entry.payload(0, whole.len() as u64).unwrap();
    let (header, _) = v2::FileHeader::parse(whole).unwrap();
    let section = header.metadata_range(whole.len() as u64).unwrap().unwrap().start;
    let position = position as u64;
    block.contains(&position) || (section + 14..section + 16).contains(&position)
}

#[test]
fn every_flipped_payload_bit_is_found_by_reading() {
    let whole = plain_file();
    for bit in v2::index_end(3).unwrap() as usize * 8..whole.len() * 8 {
        let mut file = whole.clone();
        file[bit / 8] ^= 1 << (bit % 8);
        let error = open(file).and_then(|file| read_all(&file)).unwrap_err();
        assert!(matches!(defect(error), FormatError::PayloadChecksum { .. }), "bit {bit}");
    }
}

#[test]
fn numbers_that_wrap_are_refused() {
    let file_bytes = plain_file().len() as u64;
    // 64 + 24 * count wraps to a small number.
    for sample_count in [u64::MAX, (u64::MAX - 40) / 24 + 1, 1 << 61, 4] {
        let mut file = plain_file();
        set_header(&mut file, 8, &sample_count.to_le_bytes());
        let expected = FormatError::IndexBeyondEnd { sample_count, file_bytes };
        assert_eq!(defect(open(file).unwrap_err()), expected);
    }
    for (offset, bytes) in [(u64::MAX, 12), (file_bytes, 12), (u64::MAX - 11, 12)] {
        let mut file = plain_file();
        file[64..72].copy_from_slice(&offset.to_le_bytes());
        let error = open(file).and_then(|file| read_all(&file)).unwrap_err();
        assert_eq!(error.sample_index(), Some(0));
        let what = "sample payload";
        assert_eq!(defect(error), FormatError::BeyondEnd { what, offset, bytes, file_bytes });
    }
    for (offset, bytes) in [(u64::MAX, 1), (1, u64::MAX), (file_bytes, 1)] {
        let mut file = plain_file();
        set_header(&mut file, 24, &offset.to_le_bytes());
        set_header(&mut file, 32, &bytes.to_le_bytes());
        let what = "metadata section";
        let expected = FormatError::BeyondEnd { what, offset, bytes, file_bytes };
        assert_eq!(defect(open(file).unwrap_err()), expected);
    }
}

#[test]
fn version_1_numbers_that_wrap_are_refused() {
    let mut file = v1::FileHeader::new(1).unwrap().to_bytes().to_vec();
    file.extend(v1::IndexEntry::new(u64::MAX, 5, SampleFormat::Png).to_bytes());
    let error = open(file.clone()).and_then(|file| read_all(&file)).unwrap_err();
    assert!(matches!(defect(error), FormatError::BeyondEnd { .. }));
    file[8..16].copy_from_slice(&(1u64 << 60).to_le_bytes());
    assert!(matches!(defect(open(file).unwrap_err()), FormatError::IndexBeyondEnd { .. }));
}

/// The variants that the original's reader was probed with, as far as opening decides them.
#[test]
fn odd_but_valid_files_open_and_read() {
    let expected = read(&open(plain_file()).unwrap());
    let check = |what: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut file = plain_file();
        change(&mut file);
        let file = open(file).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = read_all(&file).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.bytes, expected.bytes, "{what}");
        }
        assert_eq!(found.len(), expected.len(), "{what}");
    };
    check("reserved byte set", &|file| set_header(file, 50, &[7]));
    check("header_size 1", &|file| set_header(file, 16, &[1, 0, 0, 0]));
    check("padding set", &|file| set_header(file, 20, &[9, 9, 9, 9]));
    check("COMPRESSED without compressed samples", &|file| set_header(file, 40, &[5]));
    check("unknown file flags", &|file| set_header(file, 40, &[4, 0, 0, 0x80]));
    check("unknown sample flag", &|file| file[64 + 21] |= 0x80);
    check("unknown format", &|file| file[64 + 20] = 200);
    check("trailing bytes", &|file| file.extend([0; 100]));
    check("raw sample with uncompressed size 0", &|file| file[64 + 12..64 + 16].fill(0));
    check("metadata flag without metadata", &|file| set_header(file, 40, &[6]));
}

#[test]
fn odd_and_damaged_files_are_refused_by_name() {
    let check = |change: &dyn Fn(&mut Vec<u8>), expected: &dyn Fn(&FormatError) -> bool| {
        let mut file = plain_file();
        change(&mut file);
        let error = defect(open(file).and_then(|file| read_all(&file)).unwrap_err());
        assert!(expected(&error), "{error}");
    };
    check(&|file| file[50] = 7, &|e| matches!(e, FormatError::HeaderChecksum { .. }));
    check(&|file| set_header(file, 4, &[4]), &|e| {
        *e == FormatError::BadVersion { found: 4, expected: 2 }
    });
    check(&|file| file[3] = 1, &|e| *e == FormatError::BadVersion { found: 2, expected: 1 });
    check(&|file| file[0] = b'X', &|e| matches!(e, FormatError::BadMagic { .. }));
    check(&|file| file[64 + 22] ^= 1, &|e| matches!(e, FormatError::PayloadChecksum { .. }));
    check(&|file| file[64 + 12] += 1, &|e| matches!(e, FormatError::RawSize { .. }));
    check(&|file| file[64..72].fill(0), &|e| matches!(e, FormatError::InsideIndex { .. }));
    check(&|file| file.truncate(0), &|e| matches!(e, FormatError::Truncated { have: 0, .. }));
    check(&|file| file[64 + 21] |= 1, &|e| matches!(e, FormatError::Lz4Damaged { .. }));
}

#[test]
fn a_file_without_checksums_is_read_without_them() {
    let mut file = plain_file();
    set_header(&mut file, 40, &[0]);
    let last = file.len() - 1;
    file[last] ^= 1;
    assert_eq!(read_all(&open(file).unwrap()).unwrap()[2].bytes, b"thire");
}

#[test]
fn checksums_are_not_looked_at_when_that_is_asked_for() {
    let mut file = plain_file();
    file[64 + 22] ^= 1;
    let options = ReadOptions { verify: Verify::Nothing, ..Default::default() };
    assert_eq!(read_all(&open_with(file, options).unwrap()).unwrap()[0].bytes, b"first sample");
}

#[test]
fn an_lz4_block_must_give_exactly_the_declared_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tbl");
    let mut writer = StreamWriter::create(
        &path,
        WriteOptions { compression: Compression::Lz4, ..Default::default() },
    )
    .unwrap();
    writer.write_sample(&NewSample::new(&[5; 1000])).unwrap();
    writer.finish().unwrap();
    let whole = std::fs::read(path).unwrap();
    let stored_bytes = u32::from_le_bytes(whole[72..76].try_into().unwrap());
    let check = |declared: u32, expected: FormatError| {
        let mut file = whole.clone();
        file[76..80].copy_from_slice(&declared.to_le_bytes());
        let error = open(file).and_then(|file| read_all(&file)).unwrap_err();
        assert_eq!(defect(error), expected);
    };
    check(0, FormatError::Lz4Size { stored_bytes, bytes: 0 });
    check(1001, FormatError::Lz4Short { expected: 1001, found: 1000 });
    check(999, FormatError::Lz4Damaged { stored_bytes });
    let bomb = stored_bytes * 255 + 1;
    check(bomb, FormatError::Lz4Size { stored_bytes, bytes: bomb });
}

#[test]
fn an_lz4_block_longer_than_any_of_its_sample_is_refused() {
    let (stored_bytes, bytes) = (1000 + 1000 / 255 + 17, 1000u32);
    let block = vec![0; stored_bytes as usize];
    let mut file = plain_file_of(&[&block]);
    file[64 + 12..64 + 16].copy_from_slice(&bytes.to_le_bytes());
    file[64 + 21] |= 1;
    let error = open(file.clone()).and_then(|file| read_all(&file)).unwrap_err();
    assert_eq!(defect(error), FormatError::Lz4Size { stored_bytes, bytes });
    // One byte less is possible, if not good.
    file[64 + 8..64 + 12].copy_from_slice(&(stored_bytes - 1).to_le_bytes());
    let error = open(file).and_then(|file| read_all(&file)).unwrap_err();
    assert!(matches!(defect(error), FormatError::Lz4Damaged { .. }));
}

#[test]
fn a_sample_over_the_limit_is_refused_before_memory_is_asked_for() {
    let mut options = ReadOptions::default();
    options.limits.sample_bytes = 11;
    let file = open_with(plain_file(), options).unwrap();
    let error = file.read_into(0, &mut Vec::new()).unwrap_err();
    assert_eq!(error.sample_index(), Some(0));
    assert_eq!(error.to_string(), "t.tbl: sample 0: sample bytes is 12, expected at most 11");
    file.read_into(2, &mut Vec::new()).unwrap();
}

#[test]
fn a_damaged_file_gives_up_its_whole_samples_when_asked() {
    let options = ReadOptions { damage: Damage::LeaveOut, ..Default::default() };
    let whole = whole_file();
    let expected = read(&open(whole.clone()).unwrap());

    // The metadata is cut off and the header's checksum is wrong.
    let mut cut = whole[..whole.len() - 1].to_vec();
    cut[45] ^= 1;
    let file = open_with(cut, options).unwrap();
    assert_eq!(file.defects().len(), 2);
    let mut bytes = Vec::new();
    for (index, sample) in expected.iter().enumerate() {
        file.read_into(index as u64, &mut bytes).unwrap();
        assert_eq!(bytes, sample.bytes);
    }

    // The index is cut inside its third entry.
    let file = open_with(whole[..64 + 2 * 24 + 23].to_vec(), options).unwrap();
    assert_eq!(file.sample_count(), 2);
    assert!(matches!(file.defects()[0], FormatError::IndexBeyondEnd { sample_count: 4, .. }));
}

#[test]
fn metadata_of_foreign_files_gives_name_and_label() {
    let mut file = plain_file();
    let start = file.len() as u64;
    let mut block = |index: u64, kind: u16, data: &[u8]| {
        file.extend(index.to_le_bytes());
        file.extend((data.len() as u32).to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend([0, 0]);
        file.extend(data);
    };
    block(2, 3, &[0x81]);
    block(2, 1, br#"{"name": "c.png", "label": 7, "more": [1]}"#);
    block(0, 255, b"not json");
    block(2, 1, br#"{"name": "later"}"#);
    block(99, 1, b"{}");
    let section = file.split_off(start as usize);
    let file = open(with_section(file, &section)).unwrap();
    let entry = file.entry(2).unwrap();
    assert_eq!((entry.key.as_deref(), entry.label), (Some(&b"c.png"[..]), Some(7)));
    let entry = file.entry(0).unwrap();
    assert_eq!((entry.key, entry.label), (None, None));
    let kinds: Vec<u16> = file.metadata(2).unwrap().iter().map(|block| block.kind.code()).collect();
    assert_eq!(kinds, [3, 1, 1]);
    file.verify_structure().unwrap();
}

/// `file` with a metadata section.
fn with_section(mut file: Vec<u8>, section: &[u8]) -> Vec<u8> {
    let start = file.len() as u64;
    set_header(&mut file, 24, &start.to_le_bytes());
    set_header(&mut file, 32, &(section.len() as u64).to_le_bytes());
    file.extend(section);
    file
}

/// `count` times the block that `block` gives for each number.
fn section_of(count: u64, block: impl Fn(u64) -> (u64, u16, Vec<u8>)) -> Vec<u8> {
    let mut section = Vec::new();
    for number in 0..count {
        let (sample, kind, data) = block(number);
        section.extend(sample.to_le_bytes());
        section.extend((data.len() as u32).to_le_bytes());
        section.extend(kind.to_le_bytes());
        section.extend([0, 0]);
        section.extend(data);
    }
    section
}

fn limit(error: &ReadError) -> (&'static str, u64) {
    match error {
        ReadError::Limit { what, limit, .. } => (what, *limit),
        ReadError::Sample { source, .. } => limit(source),
        other => panic!("{other}"),
    }
}

#[test]
fn more_metadata_blocks_than_samples_can_have_are_refused() {
    let check = |section: &[u8], expected: (&'static str, u64)| {
        let file = open(with_section(plain_file(), section));
        let found = file.and_then(|file| file.entry(2).map(drop));
        assert_eq!(limit(&found.unwrap_err()), expected);
    };
    // As zeros in a file are: blocks of sample 0 without data.
    check(&section_of(1 << 20, |_| (0, 0, vec![])), ("metadata blocks", 1024 + 3 * 256));
    check(&section_of(1 << 20, |_| (99, 1, vec![])), ("metadata blocks", 1024 + 3 * 256));
    let alternating = section_of(1500, |number| (number % 2, 1, vec![]));
    check(&alternating, ("runs of metadata blocks", 1024 + 3 * 8));
    let whole_file = section_of(1 << 20, |_| (u64::MAX, 255, vec![]));
    check(&whole_file, ("whole-file metadata blocks", 1024 + 3));
    let names = ExtensionHeader::new(ExtensionKind::SampleNames, &[0; 16]).to_bytes();
    let names = section_of(1 << 16, |_| (u64::MAX, 255, [&names[..], &[0; 16]].concat()));
    check(&names, ("whole-file metadata blocks", 1024 + 3));
    let count = (1u32 << 22) + 1;
    let body = [&count.to_le_bytes()[..], &vec![0; 4 * count as usize]].concat();
    let classes = ExtensionHeader::new(ExtensionKind::ClassNames, &body).to_bytes();
    let classes = section_of(1, |_| (u64::MAX, 255, [&classes[..], &body].concat()));
    check(&classes, ("class names", 1 << 22));
}

#[test]
fn the_first_json_block_is_the_last_one_looked_at() {
    let section = section_of(1700, |number| match number {
        0 => (2, 1, br#"{"key":"a","label":1}"#.to_vec()),
        _ => (2, 1, br#"{"key":"b","label":2}"#.to_vec()),
    });
    let file = open(with_section(plain_file(), &section)).unwrap();
    assert_eq!(file.entry(2).unwrap().key.as_deref(), Some(&b"a"[..]));
    assert_eq!(file.metadata(2).unwrap().len(), 1700);
}

/// A metadata section with one extension payload.
fn extension_section(sample: u64, kind: ExtensionKind, body: &[u8]) -> Vec<u8> {
    let header = ExtensionHeader::new(kind, body).to_bytes();
    section_of(1, |_| (sample, 255, [&header[..], body].concat()))
}

#[test]
fn a_name_that_leaves_its_folder_is_damage_of_its_sample() {
    let unsafe_name = |result: Result<(), ReadError>, what: &str, defect: PathDefect| {
        let error = result.unwrap_err();
        assert!(error.is_damage() && error.sample_index() == Some(1), "{error}");
        let expected = ["unsafe ", &format!("{what}: {defect}, expected ")].concat();
        assert!(error.to_string().contains(&expected), "{error}");
    };
    for (name, defect) in [
        ("../x.jpg", PathDefect::Parent),
        ("a/../../x.jpg", PathDefect::Parent),
        ("/abs.jpg", PathDefect::Absolute),
        ("a\0.jpg", PathDefect::ZeroByte),
    ] {
        let mut table = NameTableBuilder::new();
        table.push(b"good.jpg").unwrap();
        table.push(name.as_bytes()).unwrap();
        let body = table.sample_names_body(0).unwrap();
        let json = serde_json::json!({ "key": name, "label": 1 }).to_string();
        for section in [
            extension_section(u64::MAX, ExtensionKind::SampleNames, &body),
            section_of(1, |_| (1, 1, json.clone().into_bytes())),
        ] {
            let file = open(with_section(plain_file(), &section)).unwrap();
            file.entry(0).unwrap();
            file.read_into(0, &mut Vec::new()).unwrap();
            // Not read without its label, which is lost with the name.
            for result in [
                file.entry(1).map(drop),
                file.read_into(1, &mut Vec::new()),
                file.view(1).map(drop),
                file.stored(1).map(drop),
            ] {
                unsafe_name(result, "sample name", defect);
            }
        }
    }
    for (extension, defect) in [
        (&b"/../../evil"[..], PathDefect::Slash),
        (b"../evil", PathDefect::Slash),
        (b"a\0", PathDefect::ZeroByte),
    ] {
        let length = u16::try_from(extension.len()).unwrap().to_le_bytes();
        let body = [&length[..], extension, b"bytes"].concat();
        let section = extension_section(1, ExtensionKind::Field, &body);
        let file = open(with_section(plain_file(), &section)).unwrap();
        unsafe_name(file.read_fields(1, &mut Vec::new()), "field extension", defect);
    }
}

#[test]
fn names_that_leave_their_folder_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let options = WriteOptions { sync: false, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(&folder.path().join("t.tbl"), options).unwrap();
    let mut refused = |sample: NewSample<'_>| {
        assert!(matches!(writer.write_sample(&sample), Err(WriteError::Sample { index: 0, .. })));
    };
    for key in ["../x.jpg", "/abs.jpg", "a\0"] {
        refused(NewSample { key: Some(key.as_bytes()), ..NewSample::new(b"bytes") });
    }
    for extension in ["/../../evil", "a\0"] {
        let fields = [Field { extension: extension.into(), bytes: Vec::new() }];
        refused(NewSample { key: Some(b"a.jpg"), fields: &fields, ..NewSample::new(b"bytes") });
    }
    assert_eq!(writer.finish().unwrap().samples, 0);
}
