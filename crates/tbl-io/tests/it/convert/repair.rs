//! The samples that a repair saves of damaged files.

use std::path::{Path, PathBuf};

use tbl_format::SampleFormat;
use tbl_io::{
    AsStored, Compression, NewSample, RepairEvent, RepairOptions, RepairSummary, StreamWriter,
    Target, WriteOptions, repair,
};

use crate::tar_bytes::Archive;

use super::{Seen, borrow, compressible, convert, labelled, open, quick, read_tar, see, write_tar};

const HEADER: usize = 64;
const ENTRY: usize = 24;

struct Damaged {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
    whole: Vec<Seen>,
}

impl Damaged {
    /// A TBL file of 20 samples with names, labels and fields.
    fn tbl(compression: Compression) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write_tar(&at("in.tar"), &borrow(&labelled()));
        convert(&[at("in.tar")], &at("a.tbl"), &quick(Target::Tbl2(compression)));
        let whole = see(&open(&[at("a.tbl")]));
        Self { bytes: std::fs::read(at("a.tbl")).unwrap(), whole, folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn entry_offset(&self, index: usize) -> usize {
        let entry = &self.bytes[HEADER + ENTRY * index..];
        u64::from_le_bytes(*entry.first_chunk().unwrap()) as usize
    }

    /// Repairs the bytes; the numbers of the lost samples and the summary.
    fn repair(&self) -> (Vec<u64>, RepairSummary) {
        std::fs::write(self.at("bad"), &self.bytes).unwrap();
        repair_file(&self.at("bad"), &self.at("good"))
    }

    /// The samples of the new file, if there is one.
    fn saved(&self) -> Vec<Seen> {
        let path = self.at("good");
        if path.exists() { see(&open(&[path])) } else { Vec::new() }
    }
}

pub(super) fn repair_file(from: &Path, to: &Path) -> (Vec<u64>, RepairSummary) {
    let mut lost = Vec::new();
    let options = RepairOptions { sync: false, overwrite: true };
    let summary = repair(from, to, options, AsStored, &mut |event| match event {
        RepairEvent::Lost { index, .. } => lost.push(index),
        RepairEvent::LostRun { first, count, .. } => lost.extend(first..first + count),
        RepairEvent::Damage { .. } | _ => {}
    });
    (lost, summary.unwrap())
}

#[test]
fn a_sound_file_loses_nothing() {
    for compression in crate::tbl::compressions() {
        let file = Damaged::tbl(compression);
        let (lost, summary) = file.repair();
        assert_eq!(lost, [0; 0]);
        assert_eq!((summary.kept, summary.damaged_structures), (20, 0));
        assert_eq!(file.saved(), file.whole);
        assert_eq!(std::fs::read(file.at("good")).unwrap(), file.bytes);
    }
}

#[test]
fn a_flipped_bit_anywhere_in_the_header_loses_nothing() {
    let file = Damaged::tbl(Compression::Lz4);
    for position in 0..HEADER {
        for bit in [0, 3, 6] {
            let mut damaged = Damaged { folder: tempfile::tempdir().unwrap(), ..file_like(&file) };
            damaged.bytes[position] ^= 1 << bit;
            let (lost, summary) = damaged.repair();
            assert_eq!(lost, [0; 0], "byte {position} bit {bit}");
            assert!(summary.damaged_structures > 0, "byte {position} bit {bit}");
            assert!(summary.is_complete(), "byte {position} bit {bit}");
            assert_eq!(damaged.saved(), file.whole, "byte {position} bit {bit}");
        }
    }
}

fn file_like(file: &Damaged) -> Damaged {
    let folder = tempfile::tempdir().unwrap();
    Damaged { folder, bytes: file.bytes.clone(), whole: file.whole.clone() }
}

#[test]
fn a_damaged_sample_is_left_out_and_listed() {
    for compression in crate::tbl::compressions() {
        let mut file = Damaged::tbl(compression);
        let offset = file.entry_offset(7);
        file.bytes[offset + 9] ^= 0x40;
        let (lost, summary) = file.repair();
        assert_eq!(lost, [7]);
        assert_eq!((summary.kept, summary.lost, summary.is_complete()), (19, 1, false));
        let mut expected = file.whole.clone();
        expected.remove(7);
        assert_eq!(file.saved(), expected);
    }
}

#[test]
fn a_wrong_place_or_size_in_the_index_is_worked_out() {
    for compression in crate::tbl::compressions() {
        // Offset, stored size, size: bytes of entry 5.
        for byte in [0, 1, 6, 8, 9, 11, 12, 13] {
            let mut file = Damaged::tbl(compression);
            file.bytes[HEADER + ENTRY * 5 + byte] ^= 0x20;
            let (lost, summary) = file.repair();
            // The size of a compressed sample cannot be worked out.
            let expected: &[u64] =
                if compression != Compression::None && byte >= 12 { &[5] } else { &[] };
            assert_eq!(lost, expected, "{compression:?} byte {byte}");
            if expected.is_empty() {
                assert_eq!(summary.restored, 1, "{compression:?} byte {byte}");
                assert_eq!(file.saved(), file.whole, "{compression:?} byte {byte}");
            }
        }
    }
}

#[test]
fn what_is_left_of_a_cut_file_is_saved() {
    let whole = Damaged::tbl(Compression::None);
    let cut_in = |index| whole.entry_offset(index) + 1;
    for (cut, kept) in [(cut_in(0), 0), (cut_in(1), 1), (cut_in(12), 12), (cut_in(19), 19)] {
        let mut file = file_like(&whole);
        file.bytes.truncate(cut);
        let (lost, summary) = file.repair();
        assert_eq!(summary.kept, kept);
        assert_eq!(lost, (kept..20).collect::<Vec<_>>());
        let bytes =
            |seen: Vec<Seen>| seen.into_iter().map(|sample| sample.bytes).collect::<Vec<_>>();
        let mut expected = bytes(whole.whole.clone());
        expected.truncate(kept as usize);
        assert_eq!(bytes(file.saved()), expected);
    }
    // Inside the index, and inside the header.
    for cut in [HEADER + 3 * ENTRY + 1, HEADER] {
        let mut file = file_like(&whole);
        file.bytes.truncate(cut);
        let (lost, summary) = file.repair();
        assert_eq!((summary.kept, lost.len()), (0, 20), "cut at {cut}");
    }
}

#[test]
fn metadata_may_be_wrong_anywhere_and_no_sample_is_lost() {
    let whole = Damaged::tbl(Compression::None);
    let metadata = whole.entry_offset(19) + compressible(19).len();
    // The reserved bytes of the first block's header mean nothing.
    let reserved = [metadata + 14, metadata + 15];
    let positions = (metadata..whole.bytes.len()).step_by(5);
    for position in positions.filter(|position| !reserved.contains(position)) {
        let mut file = file_like(&whole);
        file.bytes[position] ^= 0x04;
        let (lost, summary) = file.repair();
        assert_eq!(lost, [0; 0], "byte {position}");
        assert_eq!(summary.kept, 20);
        assert!(summary.damaged_structures > 0 && !summary.is_complete(), "byte {position}");
    }
}

#[test]
fn version_1_counts_are_worked_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_tar(&at("in.tar"), &borrow(&labelled()));
    convert(&[at("in.tar")], &at("a.tbl"), &quick(Target::Tbl1));
    let whole = std::fs::read(at("a.tbl")).unwrap();
    let samples = see(&open(&[at("a.tbl")]));
    for position in [0, 1, 4, 9, 10, 13] {
        let mut bytes = whole.clone();
        bytes[position] ^= 0x11;
        std::fs::write(at("bad"), bytes).unwrap();
        let (_, summary) = repair_file(&at("bad"), &at("good"));
        assert_eq!(summary.kept, 20, "byte {position}");
        assert_eq!(see(&open(&[at("good")])), samples, "byte {position}");
    }
}

#[test]
fn an_archive_goes_on_after_a_damaged_header() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let members = labelled();
    write_tar(&at("in.tar"), &borrow(&members));
    let whole = std::fs::read(at("in.tar")).unwrap();
    // Each header starts with a name, and the names are known.
    let header = |number: usize| {
        let name = &members[number].0;
        whole.chunks(512).position(|block| block.starts_with(name)).unwrap() * 512
    };
    for (number, byte) in [(0, 3), (5, 0), (8, 130), (8, 150), (40, 99), (79, 257)] {
        let mut bytes = whole.clone();
        bytes[header(number) + byte] ^= 0x02;
        std::fs::write(at("bad.tar"), bytes).unwrap();
        let (lost, summary) = repair_file(&at("bad.tar"), &at("good.tar"));
        assert_eq!(lost, [number as u64], "member {number} byte {byte}");
        assert_eq!(summary.kept, 79);
        let mut expected = members.clone();
        expected.remove(number);
        assert_eq!(read_tar(&at("good.tar")), expected);
    }
    std::fs::write(at("bad.tar"), &whole[..header(60) + 512 + 10]).unwrap();
    let (lost, summary) = repair_file(&at("bad.tar"), &at("good.tar"));
    assert_eq!((lost, summary.kept), (vec![60], 60));
    assert_eq!(read_tar(&at("good.tar")), members[..60]);
}

#[test]
fn long_names_stay_with_their_members() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let long = [vec![b'n'; 300], b".jpg".to_vec()].concat();
    write_tar(&at("in.tar"), &[(b"a.jpg", b"1"), (&long, b"2"), (b"c.jpg", b"3")]);
    let mut bytes = std::fs::read(at("in.tar")).unwrap();
    bytes[2] ^= 1;
    std::fs::write(at("bad.tar"), bytes).unwrap();
    let (lost, _) = repair_file(&at("bad.tar"), &at("good.tar"));
    assert_eq!(lost, [0]);
    let expected = [(long, b"2".to_vec()), (b"c.jpg".to_vec(), b"3".to_vec())];
    assert_eq!(read_tar(&at("good.tar")), expected);
}

#[test]
fn a_file_that_is_no_data_set_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let header = tbl_format::v2::FileHeader::new(1, 0..0, tbl_format::v2::FileFlags::NONE);
    let header = header.unwrap().to_bytes();
    let mut files: Vec<Vec<u8>> = (0..header.len()).map(|cut| header[..cut].to_vec()).collect();
    files.push(b"\x89PNG\r\n\x1a\n, and nothing more".to_vec());
    files.push([b"\x89PNG\r\n\x1a\n".as_slice(), &[7; 3000]].concat());
    files.push(b"a line of text\n".repeat(100));
    let options = RepairOptions { sync: false, overwrite: false };
    for bytes in files {
        std::fs::write(at("bad"), &bytes).unwrap();
        let error = repair(&at("bad"), &at("good"), options, AsStored, &mut |_| {}).unwrap_err();
        assert!(error.is_damage(), "{error}");
        let opened = tbl_io::open(at("bad")).unwrap_err();
        assert_eq!(error.to_string(), opened.to_string());
        assert!(!at("good").exists(), "{} bytes", bytes.len());
    }
}

/// A version 1 file that claims `count` samples, with one entry and without the header's second
/// count.
fn version_1(count: u64, offset: u64, stored_bytes: u32) -> Vec<u8> {
    let mut file = tbl_format::v1::FileHeader::new(1).unwrap().to_bytes().to_vec();
    file[8..16].copy_from_slice(&count.to_le_bytes());
    file[16..20].fill(0);
    let entry = tbl_format::v1::IndexEntry::new(offset, stored_bytes, SampleFormat::Png);
    file.extend(entry.to_bytes());
    file.extend(b"four");
    file
}

#[test]
fn nothing_is_written_if_everything_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for count in [1, 1_000_000_000, 1 << 60, u64::MAX] {
        for (offset, stored_bytes) in [(u64::MAX - 1, 4), (0, 4), (48, u32::MAX)] {
            std::fs::write(at("bad"), version_1(count, offset, stored_bytes)).unwrap();
            let (_, summary) = repair_file(&at("bad"), &at("good"));
            assert!(!summary.is_complete(), "{count} samples at {offset}: {summary:?}");
            assert_eq!((summary.kept, summary.file_bytes), (0, 0));
            assert!(!at("good").exists());
        }
    }
    // A sample is found, but the header does not confirm that it is the only one.
    std::fs::write(at("bad"), version_1(1_000_000_000, 48, 4)).unwrap();
    let (_, summary) = repair_file(&at("bad"), &at("good"));
    assert_eq!((summary.kept, summary.lost, summary.guessed_count), (1, 0, true));
    assert!(!summary.is_complete());
}

#[test]
fn an_entry_that_no_index_can_have_costs_its_sample_only() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_tar(&at("in.tar"), &borrow(&labelled()));
    convert(&[at("in.tar")], &at("a.tbl"), &quick(Target::Tbl1));
    let whole = std::fs::read(at("a.tbl")).unwrap();
    let samples = see(&open(&[at("a.tbl")]));
    for code in [6, 8, 200, 255] {
        let mut bytes = whole.clone();
        bytes[32 + 16 * 13 + 12] = code;
        std::fs::write(at("bad"), bytes).unwrap();
        let (lost, summary) = repair_file(&at("bad"), &at("good"));
        assert_eq!((lost, summary.kept), (vec![13], 19), "format code {code}");
        let mut expected = samples.clone();
        expected.remove(13);
        assert_eq!(see(&open(&[at("good")])), expected);
    }
    let mut writer = StreamWriter::create(&at("raw.tbl"), WriteOptions::default()).unwrap();
    for number in 0..13 {
        let pixels = [number; 12];
        let format = SampleFormat::RawU8;
        let sample = NewSample { format, width: 2, height: 2, ..NewSample::new(&pixels) };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap();
    for (field, value) in [(16, 3), (16, 0), (18, 0), (17, 1)] {
        let mut bytes = std::fs::read(at("raw.tbl")).unwrap();
        bytes[HEADER + ENTRY * 6 + field] = value;
        std::fs::write(at("bad"), bytes).unwrap();
        let (lost, summary) = repair_file(&at("bad"), &at("good"));
        assert_eq!((lost, summary.kept), (vec![6], 12), "byte {field}");
        assert_eq!(open(&[at("good")])[0].sample_count(), 12);
    }
}

#[test]
fn sound_archives_of_every_archiver_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("good.tar");
    let archives = tl_testdata::shipped!("tar");
    let mut count = 0;
    for item in std::fs::read_dir(archives).unwrap() {
        let path = item.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "tar") {
            continue;
        }
        let (lost, summary) = repair_file(&path, &to);
        assert!(summary.is_complete() && lost.is_empty(), "{}: {summary:?}", path.display());
        assert_eq!(see(&open(std::slice::from_ref(&to))), see(&open(&[path])));
        count += 1;
    }
    assert_eq!(count, 13);
}

/// Repairs an archive of these bytes; the damage outside the members and the summary.
fn repair_archive(bytes: &[u8]) -> (Vec<String>, RepairSummary) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("bad.tar"), bytes).unwrap();
    let mut damage = Vec::new();
    let options = RepairOptions { sync: false, overwrite: true };
    let summary = repair(&at("bad.tar"), &at("good.tar"), options, AsStored, &mut |event| {
        if let RepairEvent::Damage { reason } = event {
            damage.push(reason.to_string());
        }
    });
    (damage, summary.unwrap())
}

#[test]
fn labels_that_cannot_be_read_are_kept_and_reported() {
    let archive = Archive::new()
        .member(b"a.jpg", b"1")
        .member(b"a.cls", b"dog")
        .member(b"b.jpg", b"2")
        .member(b"b.cls", b"7");
    let (damage, summary) = repair_archive(&archive.finish());
    assert_eq!((summary.kept, summary.lost, summary.unreadable_labels), (4, 0, 1));
    assert!(!summary.is_complete());
    let [message] = &damage[..] else { panic!("{damage:?}") };
    let expected = "the label is `dog`, expected an integer";
    assert!(message.starts_with("kept as it is: ") && message.contains(expected), "{message}");
}

#[test]
fn a_cut_in_the_padding_of_the_last_member_loses_nothing_and_is_reported() {
    let bytes = Archive::new().member(b"a.jpg", b"1").member(b"b.jpg", b"2").finish();
    let (damage, summary) = repair_archive(&bytes[..3 * 512 + 7]);
    assert_eq!((summary.kept, summary.lost), (2, 0));
    assert!(summary.is_complete());
    let expected = "the padding of the last member is cut off at byte 1543, its content is whole";
    assert_eq!(damage, [expected]);
}

#[test]
fn a_name_of_the_other_format_is_refused() {
    let file = Damaged::tbl(Compression::None);
    std::fs::write(file.at("bad.tbl"), &file.bytes).unwrap();
    let options = RepairOptions { sync: false, overwrite: true };
    for (from, to, fitting) in
        [("in.tar", "out.tbl", "tar"), ("in.tar", "out.TBL", "tar"), ("bad.tbl", "out.tar", "tbl")]
    {
        let error = repair(&file.at(from), &file.at(to), options, AsStored, &mut |_| ());
        let message = error.map(drop).unwrap_err().to_string();
        let expected = format!("expected a name that ends with .{fitting}; tl convert changes");
        assert!(message.contains(&expected), "{message}");
        assert!(!file.at(to).exists());
    }
}
