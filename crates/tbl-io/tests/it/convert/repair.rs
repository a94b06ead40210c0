//! What a repair saves of damaged files.

use std::path::{Path, PathBuf};

use tbl_io::{AsStored, Compression, RepairEvent, RepairOptions, RepairSummary, Target, repair};

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

    fn saved(&self) -> Vec<Seen> {
        see(&open(&[self.at("good")]))
    }
}

fn repair_file(from: &Path, to: &Path) -> (Vec<u64>, RepairSummary) {
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
    for compression in [Compression::None, Compression::Lz4] {
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
    for compression in [Compression::None, Compression::Lz4] {
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
    for compression in [Compression::None, Compression::Lz4] {
        // Offset, stored size, size: bytes of entry 5.
        for byte in [0, 1, 6, 8, 9, 11, 12, 13] {
            let mut file = Damaged::tbl(compression);
            file.bytes[HEADER + ENTRY * 5 + byte] ^= 0x20;
            let (lost, summary) = file.repair();
            // The size of a compressed sample cannot be worked out.
            let expected: &[u64] =
                if compression == Compression::Lz4 && byte >= 12 { &[5] } else { &[] };
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
    for position in (metadata..whole.bytes.len()).step_by(5) {
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
