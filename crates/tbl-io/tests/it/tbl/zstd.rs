//! Zstandard frames: what readers refuse, and dictionaries.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use tbl_format::v2::{self, Codec, FileFlags};
use tbl_format::{FormatError, SampleFormat};
use tbl_io::{
    AsStored, Compression, CompressionError, ConvertOptions, Labels, NewSample, ReadError,
    ReadLimits, ReadOptions, RepairOptions, SampleSource, SampleSourceExt, Selection, Source,
    StreamWriter, Target, TblFile, WriteOptions, ZstdLevel, repair,
};

use super::target;

const ZSTD: Compression = Compression::Zstd(ZstdLevel::DEFAULT);

/// The file of these samples, with the frames at the end of the index.
fn file_of(samples: &[&[u8]]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let sample_count = Some(samples.len() as u64);
    let options = WriteOptions { compression: ZSTD, sample_count, ..Default::default() };
    let mut writer = StreamWriter::create(&target(&folder), options).unwrap();
    for bytes in samples {
        writer.write_sample(&NewSample::new(bytes)).unwrap();
    }
    writer.finish().unwrap();
    std::fs::read(target(&folder)).unwrap()
}

fn read_first(file: Vec<u8>, options: ReadOptions) -> Result<Vec<u8>, ReadError> {
    let file = TblFile::from_source(Source::from_bytes("t.tbl", file), options)?;
    let mut bytes = Vec::new();
    file.read_into(0, &mut bytes).map(|()| bytes)
}

fn defect(error: ReadError) -> FormatError {
    match error {
        ReadError::Format { source, .. } => source,
        ReadError::Sample { source, .. } => defect(*source),
        other => panic!("{other}"),
    }
}

#[test]
fn files_with_a_frame_have_the_version_that_the_original_refuses() {
    // The original's reader takes 2 alone and says "Invalid TBL v2 header (magic/version mismatch)".
    let check = |sample: &[u8], version: u32, flags: FileFlags| {
        let file = file_of(&[sample]);
        assert_eq!(file[..8], [b"TBL\x02", &version.to_le_bytes()[..]].concat());
        let (header, _) = v2::FileHeader::parse(&file).unwrap();
        assert_eq!(header.flags(), flags | FileFlags::HAS_CHECKSUMS | FileFlags::HAS_METADATA);
        assert_eq!(read_first(file, ReadOptions::default()).unwrap(), sample);
    };
    check(&[5; 1000], 3, FileFlags::ZSTD);
    check(b"no repeats", 2, FileFlags::NONE);
}

#[test]
fn a_frame_must_give_exactly_the_declared_size() {
    let whole = file_of(&[&[5; 1000]]);
    let stored_bytes = u32::from_le_bytes(whole[72..76].try_into().unwrap());
    let check = |change: &dyn Fn(&mut [u8]), expected: FormatError| {
        let mut file = whole.clone();
        change(&mut file);
        assert_eq!(defect(read_first(file, ReadOptions::default()).unwrap_err()), expected);
    };
    let declare =
        |bytes: u32| move |file: &mut [u8]| file[76..80].copy_from_slice(&bytes.to_le_bytes());
    check(&declare(0), FormatError::ZstdSize { stored_bytes, bytes: 0 });
    check(&declare(stored_bytes), FormatError::ZstdSize { stored_bytes, bytes: stored_bytes });
    let most = stored_bytes << 15;
    check(&declare(most + 1), FormatError::ZstdSize { stored_bytes, bytes: most + 1 });
    for expected in [999, 1001, most] {
        check(&declare(expected), FormatError::ZstdContent { expected, found: 1000 });
    }
    check(&|file| file[64 + 21] |= 1, FormatError::TwoCodecs);
    let frame = v2::index_end(1).unwrap() as usize;
    let damaged = FormatError::ZstdDamaged { stored_bytes };
    // The magic, a window that single-segment frames do not have, and the type of the block.
    check(&|file| file[frame] ^= 1, damaged.clone());
    check(&|file| file[frame + 7] |= 6, damaged);
}

#[test]
fn a_frame_beyond_the_limit_takes_no_memory() {
    let mut limits = ReadLimits::default();
    limits.sample_bytes = 999;
    let options = ReadOptions { limits, ..ReadOptions::default() };
    let error = read_first(file_of(&[&[5; 1000]]), options).unwrap_err();
    assert!(error.to_string().contains("999"), "{error}");
}

#[test]
fn a_compression_is_read_from_text() {
    let level = |level| ZstdLevel::new(level).map(Compression::Zstd);
    assert_eq!("none".parse(), Ok(Compression::None));
    assert_eq!("lz4".parse(), Ok(Compression::Lz4));
    assert_eq!("zstd".parse().ok(), level(3));
    assert_eq!("zstd:22".parse().ok(), level(22));
    for text in ["", "gzip", "zstd:", "zstd:0", "zstd:23", "zstd:1.5", "ZSTD", "lz4\n"] {
        let error: CompressionError = text.parse::<Compression>().unwrap_err();
        assert!(!error.to_string().contains('\n'));
        assert!(
            error
                .to_string()
                .ends_with("expected lz4, zstd, or zstd:LEVEL with a level of 1 to 22")
        );
    }
}

/// Short texts that have much in common with each other and little in themselves.
fn text(number: usize) -> Vec<u8> {
    let place = ["garden", "street", "harbour", "forest"][number * 7 % 4];
    let what = ["a small bird", "two bicycles", "an old bridge", "some children"][number / 3 % 4];
    let id = number * 7919 % 100_003;
    format!("{{\"identifier\": {id}, \"caption\": \"{what} in the {place}\", \"licence\": null}}")
        .into_bytes()
}

fn write_texts(path: &Path, numbers: std::ops::Range<usize>) {
    let mut writer = StreamWriter::create(path, WriteOptions::default()).unwrap();
    for number in numbers {
        let bytes = text(number);
        let format = SampleFormat::Unknown;
        writer.write_sample(&NewSample { format, ..NewSample::new(&bytes) }).unwrap();
    }
    writer.finish().unwrap();
}

fn convert(from: &[&Path], to: &Path, compression: Compression, workers: usize) {
    let sources: Vec<_> = from.iter().map(|path| tbl_io::open(path).unwrap()).collect();
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    let mut options = ConvertOptions::new(Target::Tbl2(compression));
    options.workers = NonZeroUsize::new(workers).unwrap();
    options.sync = false;
    options.overwrite = true;
    let on_event = &mut |_: tbl_io::ConvertEvent<'_>| ControlFlow::Continue(());
    tbl_io::convert(&selection, to, &options, AsStored::default, on_event).unwrap();
}

fn check_texts(path: &Path, numbers: impl Iterator<Item = usize>) -> TblFile {
    let file = TblFile::open(path).unwrap();
    file.verify_structure().unwrap();
    let mut bytes = Vec::new();
    for (index, number) in numbers.enumerate() {
        file.read_into(index as u64, &mut bytes).unwrap();
        assert_eq!(bytes, text(number), "{index}");
    }
    file
}

fn has_dictionary(path: &Path) -> bool {
    let block = [b"TBLX".as_slice(), &[1, 0, 7, 0]].concat();
    std::fs::read(path).unwrap().windows(8).any(|window| window == block)
}

#[test]
fn a_dictionary_is_made_where_it_pays_and_the_same_by_any_number_of_workers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_texts(&at("plain"), 0..3000);
    convert(&[&at("plain")], &at("zstd"), ZSTD, 1);
    convert(&[&at("plain")], &at("three"), ZSTD, 3);
    assert_eq!(std::fs::read(at("zstd")).unwrap(), std::fs::read(at("three")).unwrap());
    assert!(has_dictionary(&at("zstd")));
    let file = check_texts(&at("zstd"), 0..3000);
    assert!((0..3000).all(|index| file.codec(index).unwrap() == Some(Codec::Zstd)));
    let stored: u64 = (0..3000).map(|index| file.facts(index).unwrap().stored_bytes).sum();
    let bytes: u64 = (0..3000).map(|index| file.facts(index).unwrap().bytes).sum();
    assert!(stored * 2 < bytes, "{stored} of {bytes}");
    // Too few texts pay for no dictionary.
    write_texts(&at("few"), 0..40);
    convert(&[&at("few")], &at("few.zstd"), ZSTD, 2);
    assert!(!has_dictionary(&at("few.zstd")));
}

#[test]
fn copies_keep_the_frames_of_one_dictionary_and_make_new_ones_of_several() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_texts(&at("plain"), 0..3000);
    convert(&[&at("plain")], &at("a"), ZSTD, 1);
    write_texts(&at("plain2"), 3000..5000);
    convert(&[&at("plain2")], &at("b"), ZSTD, 1);
    convert(&[&at("a")], &at("copy"), Compression::AsStored, 1);
    assert_eq!(std::fs::read(at("copy")).unwrap(), std::fs::read(at("a")).unwrap());
    convert(&[&at("a"), &at("plain2")], &at("mixed"), Compression::AsStored, 1);
    let mixed = TblFile::open(at("mixed")).unwrap();
    let codecs = [0, 2999, 3000].map(|index| mixed.codec(index).unwrap());
    assert_eq!(codecs, [Some(Codec::Zstd), Some(Codec::Zstd), None]);
    assert!(has_dictionary(&at("mixed")));

    convert(&[&at("a"), &at("b")], &at("joined"), Compression::AsStored, 2);
    assert!(has_dictionary(&at("b")) && !has_dictionary(&at("joined")));
    check_texts(&at("joined"), 0..5000);
    let options = RepairOptions { sync: false, overwrite: false };
    let summary = repair(&at("a"), &at("saved"), options, AsStored, &mut |_| {}).unwrap();
    assert_eq!((summary.kept, summary.lost), (3000, 0));
    assert_eq!(std::fs::read(at("saved")).unwrap(), std::fs::read(at("a")).unwrap());
}

#[test]
fn frames_without_their_dictionary_are_refused_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_texts(&at("plain"), 0..3000);
    convert(&[&at("plain")], &at("a"), ZSTD, 1);
    let mut file = std::fs::read(at("a")).unwrap();
    let frame = v2::index_end(3000).unwrap() as usize;
    // The number of the dictionary has four bytes after the magic and the descriptor.
    file[frame + 5] ^= 1;
    let needed = u32::from_le_bytes(file[frame + 5..frame + 9].try_into().unwrap());
    let found = defect(read_first(file.clone(), ReadOptions::default()).unwrap_err());
    assert_eq!(found, FormatError::ZstdDictionary { needed });
    file[frame + 5] ^= 1;
    // The dictionary's own block is damaged.
    let block = [b"TBLX".as_slice(), &[1, 0, 7, 0]].concat();
    let at_block = file.windows(8).position(|window| window == block).unwrap();
    file[at_block + 100] ^= 1;
    let found = defect(read_first(file, ReadOptions::default()).unwrap_err());
    assert!(matches!(found, FormatError::Crc32c { what: "dictionary", .. }), "{found}");
}
