//! Random damage to good files: the commands agree about what is good, and a repair keeps only
//! samples that are.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;
use tbl_format::checksum::payload_crc16;
use tbl_format::{SampleFormat, v2};
use tbl_io::{
    AsStored, Compression, ConvertError, Labels, NewSample, RepairOptions, RepairSummary,
    Selection, Stores, StreamWriter, Target, TblFile, WriteOptions, ZstdLevel, repair, verify,
};

use super::{borrow, convert, labelled, quick, write_tar};

/// A change of a file's bytes.
#[derive(Clone, Debug)]
enum Mutation {
    Flip(Index, u8),
    Set(Index, Vec<u8>),
    Cut(Index),
    Grow(Vec<u8>),
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Flip(at, bit) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
            Self::Set(at, new) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                for (byte, new) in bytes[at..].iter_mut().zip(new) {
                    *byte = *new;
                }
            }
            Self::Cut(at) => bytes.truncate(at.index(bytes.len() + 1)),
            Self::Grow(more) => bytes.extend(more),
            Self::Flip(..) | Self::Set(..) => {}
        }
    }
}

/// Changes, of which most fall into header and index: the front of a file.
fn mutations() -> impl Strategy<Value = (Vec<Mutation>, bool)> {
    let number = prop_oneof![
        Just(vec![0; 4]),
        Just(vec![0xff; 8]),
        Just(vec![1, 0, 0, 0]),
        Just(vec![0xff, 0xff, 0xff, 0x7f]),
        prop::collection::vec(any::<u8>(), 1..9),
    ];
    let one = prop_oneof![
        4 => (any::<Index>(), 0_u8..8).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        4 => (any::<Index>(), number).prop_map(|(at, new)| Mutation::Set(at, new)),
        1 => any::<Index>().prop_map(Mutation::Cut),
        1 => prop::collection::vec(any::<u8>(), 0..600).prop_map(Mutation::Grow),
    ];
    (prop::collection::vec(one, 1..4), any::<bool>())
}

/// A good file of each kind, and how many of its bytes are header and index.
struct Kind {
    name: &'static str,
    bytes: Vec<u8>,
    front: usize,
    /// Whether every sample has a checksum of 32 bits.
    is_checked: bool,
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut members = labelled();
    members.truncate(24);
    for (_, bytes) in &mut members {
        bytes.truncate(300);
    }
    write_tar(&at("tar"), &borrow(&members));
    convert(&[at("tar")], &at("v1"), &quick(Target::Tbl1));
    convert(&[at("tar")], &at("v2"), &quick(Target::Tbl2(Compression::None)));
    convert(&[at("tar")], &at("lz4"), &quick(Target::Tbl2(Compression::Lz4)));
    convert(&[at("tar")], &at("zstd"), &quick(Target::Tbl2(Compression::Zstd(ZstdLevel::DEFAULT))));
    write_raw(&at("raw"));
    std::fs::write(at("foreign"), foreign()).unwrap();
    let count = 6;
    let front = [
        ("tar", 1024, false),
        ("v1", 32 + 16 * count, false),
        ("v2", 64 + 24 * count, true),
        ("lz4", 64 + 24 * count, true),
        ("zstd", 64 + 24 * count, true),
        ("raw", 64 + 24 * 4, true),
        ("foreign", 64 + 24 * 3, false),
    ];
    let read = |name| std::fs::read(folder.path().join(name)).unwrap();
    front
        .map(|(name, front, is_checked)| Kind { name, bytes: read(name), front, is_checked })
        .into()
});

fn write_raw(path: &Path) {
    let mut writer = StreamWriter::create(path, WriteOptions::default()).unwrap();
    for number in 0..4 {
        let pixels = [number; 36];
        let format = SampleFormat::RawU8;
        let sample = NewSample { format, width: 4, height: 3, ..NewSample::new(&pixels) };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap();
}

/// A file as the original writes it: CRC-16 alone, and no metadata.
fn foreign() -> Vec<u8> {
    let payloads: [&[u8]; 3] = [b"first", b"", b"the third sample"];
    let flags = v2::FileFlags::HAS_CHECKSUMS;
    let mut file = v2::FileHeader::new(3, 0..0, flags).unwrap().to_bytes().to_vec();
    let mut offset = v2::index_end(3).unwrap();
    for payload in payloads {
        let bytes = payload.len() as u32;
        let checksum = payload_crc16(payload);
        let payload = v2::Payload { offset, stored_bytes: bytes, bytes, checksum };
        let flags = v2::EntryFlags::NONE;
        file.extend(v2::IndexEntry::new(payload, (3, 4), SampleFormat::Png, flags).to_bytes());
        offset += u64::from(bytes);
    }
    file.extend(payloads.concat());
    file
}

/// Whether `tl verify` would call the file good.
fn is_good(path: &Path) -> bool {
    let go_on = &mut |_: tbl_io::Finding<'_>| ControlFlow::Continue(());
    match verify(&Stores::new(), &[path], NonZeroUsize::MIN, AsStored::default, go_on) {
        Ok(summary) => summary.is_good(),
        Err(error) => {
            assert!(error.is_damage(), "{error}");
            false
        }
    }
}

fn try_repair(from: &Path, to: &Path) -> Result<RepairSummary, ConvertError> {
    let options = RepairOptions { sync: false, overwrite: false };
    repair(from, to, options, AsStored, &mut |_| {})
}

/// The bytes of each sample that can be read.
fn payloads(path: &Path) -> Vec<Vec<u8>> {
    let Ok(source) = tbl_io::open(path) else { return Vec::new() };
    let read = |index| {
        let mut bytes = Vec::new();
        source.read_into(index, &mut bytes).is_ok().then_some(bytes)
    };
    (0..source.sample_count()).filter_map(read).collect()
}

fn check_good(kind: &Kind, path: &Path, folder: &Path) {
    let sources = [tbl_io::open(path).unwrap()];
    let labels = Labels::resolve(&sources).unwrap();
    for index in 0..sources[0].sample_count() {
        sources[0].entry(index).unwrap();
    }
    let selection = Selection::all(&sources, &labels).unwrap();
    let (to, options) = (folder.join("converted"), quick(Target::Tbl2(Compression::None)));
    let go_on = &mut |_: tbl_io::ConvertEvent<'_>| ControlFlow::Continue(());
    tbl_io::convert(&selection, &to, &options, AsStored::default, go_on).unwrap();
    assert!(is_good(&to));
    let summary = try_repair(path, &folder.join("repaired")).unwrap();
    // A version 1 header has no checksum: a smaller count is a good file to its reader, and a
    // repair may find more samples.
    let counts = 8..20;
    if kind.name != "v1" || std::fs::read(path).unwrap()[counts.clone()] == kind.bytes[counts] {
        assert!(summary.is_complete(), "{summary:?}");
    }
}

fn check_repaired(kind: &Kind, path: &Path, folder: &Path) {
    let to: PathBuf = folder.join("saved");
    let summary = match try_repair(path, &to) {
        Ok(summary) => summary,
        Err(error) => {
            assert!(error.is_damage(), "{error}");
            assert!(!to.exists());
            return;
        }
    };
    assert_eq!(to.exists(), summary.file_bytes > 0, "{summary:?}");
    assert!(to.exists() || !summary.is_complete(), "{summary:?}");
    if !to.exists() {
        return;
    }
    // A label that cannot be read is reported and kept as it is.
    assert_eq!(is_good(&to), summary.unreadable_labels == 0, "{summary:?}");
    // If the list of checksums is lost, 16 bits in the index remain, which agree by chance in one
    // damaged sample of 65,536.
    let has_list = |path| TblFile::open(path).is_ok_and(|file| file.metadata_totals().is_ok());
    if kind.is_checked && has_list(path) {
        let whole = folder.join("whole");
        std::fs::write(&whole, &kind.bytes).unwrap();
        let known = payloads(&whole);
        for bytes in payloads(&to) {
            assert!(
                known.contains(&bytes),
                "{}: {} bytes are of no sample",
                kind.name,
                bytes.len()
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn commands_agree_about_damaged_files(
        kind in 0_usize..6,
        (changes, whole) in mutations(),
    ) {
        let kind = &KINDS[kind];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged");
        let mut bytes = kind.bytes.clone();
        if whole {
            changes.iter().for_each(|change| change.apply(&mut bytes));
        } else {
            let rest = bytes.split_off(kind.front);
            let changed = changes.iter().filter(|change| !matches!(change, Mutation::Cut(_)));
            changed.for_each(|change| change.apply(&mut bytes));
            bytes.extend(rest);
        }
        std::fs::write(&path, &bytes).unwrap();
        if is_good(&path) {
            check_good(kind, &path, folder.path());
        }
        check_repaired(kind, &path, folder.path());
    }
}
