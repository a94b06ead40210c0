//! Files of LitData and MosaicML Streaming as their own writers made them, against what their own
//! readers found (`testdata/tools/token_files.py`).

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tbl_io::{ErrorKind, ReadError, SampleSource, SampleSourceExt, Stores, TokensDefect};
use tl_tokens::{
    DocumentRows, EpochOffset, Fill, Long, PackedRows, Packing, Piece, Sequences, TokenOptions,
    TokenSource, TokenType, Windows, open_all_in,
};

const WRITTEN: [&str; 7] = [
    "litdata_array",
    "litdata_tensor",
    "mds_bytes",
    "mds_fixed",
    "mds_several",
    "mds_typed",
    "mds_untyped",
];

pub(crate) fn testdata() -> PathBuf {
    tl_testdata::shipped!("tokens")
}

pub(crate) fn expected(name: &str) -> Value {
    let text = fs::read_to_string(testdata().join("expected.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()[name].clone()
}

pub(crate) fn numbers(list: &Value) -> Vec<i64> {
    list.as_array().unwrap().iter().map(|number| number.as_i64().unwrap()).collect()
}

fn lists(list: &Value) -> Vec<Vec<i64>> {
    list.as_array().unwrap().iter().map(numbers).collect()
}

fn length(length: u32) -> NonZeroU32 {
    NonZeroU32::new(length).unwrap()
}

fn rows_of(most: u32) -> Sequences {
    let fill = Fill::default();
    let rows = DocumentRows { length: length(most), targets: false, long: Long::Error, fill };
    Sequences::Documents(rows)
}

/// Opens one location; MDS files of bytes have 64-bit tokens, as those of MosaicML's scripts.
fn open(path: &Path, sequences: Sequences) -> Result<Vec<Box<dyn SampleSource>>, ReadError> {
    let number = path.to_string_lossy().contains("mds_bytes").then_some(TokenType::I64);
    let column = path.to_string_lossy().contains("mds_several").then(|| "tokens".to_owned());
    let options = TokenOptions { number, column, ..TokenOptions::default() };
    open_all_in(&Stores::new(), &[path], &options, sequences, |_, _| Ok(None))
}

/// The tokens of every sample of all sources.
fn samples(sources: &[Box<dyn SampleSource>]) -> Vec<Vec<i64>> {
    let mut found = Vec::new();
    for source in sources {
        let source = TokenSource::of(&**source).unwrap();
        for index in 0..source.sample_count() {
            found.push(tokens_of(source, index).unwrap());
        }
    }
    found
}

pub(crate) fn tokens_of(source: &TokenSource, index: u64) -> Result<Vec<i64>, ReadError> {
    let mut bytes = Vec::new();
    source.read_into(index, &mut bytes)?;
    let number = source.file().number();
    let mut out = vec![0; bytes.len() / number.bytes() * 8];
    number.convert(&bytes, TokenType::I64, &mut out).unwrap();
    Ok(out.as_chunks().0.iter().map(|token| i64::from_ne_bytes(*token)).collect())
}

#[test]
fn documents_are_what_the_writers_readers_find() {
    for name in WRITTEN {
        let documents = lists(&expected(name)["documents"]);
        for location in [testdata().join(name), testdata().join(name).join("index.json")] {
            let sources = open(&location, rows_of(1000)).unwrap();
            assert_eq!(samples(&sources), documents, "{name}");
        }
        // Windows are those of all documents of a file, one after the other.
        for stride in [3, 7] {
            let windows = Windows { stride: Some(length(stride)), ..Windows::new(length(7)) };
            let sources = open(&testdata().join(name), windows.into()).unwrap();
            let per_file = samples(&open(&testdata().join(name), rows_of(1000)).unwrap());
            let mut per_file = per_file.into_iter();
            let mut slices = Vec::new();
            for source in &sources {
                let file = TokenSource::of(&**source).unwrap().file();
                let count = usize::try_from(file.documents().unwrap().len()).unwrap();
                let stream: Vec<i64> = per_file.by_ref().take(count).flatten().collect();
                let starts = (0..stream.len()).step_by(stride as usize);
                slices.extend(starts.filter_map(|at| Some(stream.get(at..at + 8)?.to_vec())));
            }
            assert_eq!(samples(&sources), slices, "{name}");
        }
        let packed = PackedRows { long: Long::Split, ..PackedRows::new(length(32)) };
        for strategy in [Packing::BestFit, Packing::FirstFit, Packing::Split] {
            let packed = Sequences::Packed(PackedRows { strategy, ..packed });
            let sources = open(&testdata().join(name), packed).unwrap();
            let mut tokens = samples(&sources).concat();
            let mut all = documents.concat();
            tokens.sort_unstable();
            all.sort_unstable();
            assert_eq!(tokens, all, "{name}");
        }
    }
}

#[test]
fn windows_of_chunks_are_the_blocks_of_litdatas_loader() {
    for name in ["litdata_array", "litdata_tensor"] {
        let windows = Windows { targets: false, ..Windows::new(length(17)) };
        let sources = open(&testdata().join(name), windows.into()).unwrap();
        assert_eq!(samples(&sources), lists(&expected(name)["blocks"]), "{name}");
        assert!(sources.len() > 1);
        let first = TokenSource::of(&*sources[0]).unwrap();
        assert!(first.view(0).unwrap().is_some(), "chunks are mapped");
    }
}

#[test]
fn an_offset_moves_windows_over_records() {
    let windows = Windows { offset: EpochOffset::Random, ..Windows::new(length(5)) };
    let sources = open(&testdata().join("mds_typed"), windows.into()).unwrap();
    let source = TokenSource::of(&*sources[0]).unwrap();
    let file = source.file();
    let whole = file.read(0, file.len(), &mut Vec::new(), <[u8]>::to_vec).unwrap();
    let mut pieces = Vec::new();
    for offset in 0..5 {
        for index in 0..source.sample_count() {
            source.pieces(index, offset, &mut pieces).unwrap();
            let Piece { first, count, .. } = pieces[0];
            let at = usize::try_from(2 * first).unwrap();
            let bytes = file.read(first, count, &mut Vec::new(), <[u8]>::to_vec).unwrap();
            assert_eq!(bytes, whole[at..at + 12]);
        }
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let check = |result: Result<Vec<Box<dyn SampleSource>>, ReadError>, expected: &str| {
        let error = result.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        error
    };
    let windows = || Windows::new(length(4)).into();
    let open_with = |name: &str, options: TokenOptions| {
        open_all_in(&Stores::new(), &[testdata().join(name)], &options, windows(), |_, _| Ok(None))
    };
    // The shards of the zstd data set exist only compressed.
    let folder = tempfile::tempdir().unwrap();
    let zstd = testdata().join("mds_zstd");
    fs::copy(zstd.join("index.json"), folder.path().join("index.json")).unwrap();
    let shard = zstd.join("shard.00000.mds.zstd");
    fs::copy(shard, folder.path().join("shard.00000.mds.zstd")).unwrap();
    let error = check(open(folder.path(), windows()), "zstd of whole files, which gives no access");
    assert_eq!(error.kind(), ErrorKind::Data);
    check(open_with("mds_bytes", TokenOptions::default()), "for raw tokens pass their type");
    let column =
        "expected exactly one column of tokens, otherwise pass its name; the file has none";
    let index = testdata().join("mds_several").join("index.json");
    let text = fs::read_to_string(&index).unwrap().replace("ndarray:uint16", "str");
    fs::write(folder.path().join("index.json"), text).unwrap();
    for name in ["shard.00000.mds", "shard.00001.mds", "shard.00002.mds"] {
        fs::copy(testdata().join("mds_several").join(name), folder.path().join(name)).unwrap();
    }
    check(open(folder.path(), windows()), column);
    let url = TokenOptions { column: Some("url".to_owned()), ..TokenOptions::default() };
    check(open_with("mds_several", url), "no column `url` of tokens; the file has tokens");
    let number = Some(TokenType::U32);
    let other = TokenOptions { number, ..TokenOptions::default() };
    check(open_with("mds_typed", other.clone()), "tokens are u16, not u32");
    check(open_with("litdata_array", other), "tokens are u16, not u32");
    let end_token = Some(3);
    let ends = TokenOptions { end_token, ..TokenOptions::default() };
    check(open_with("mds_typed", ends), "each sample is a document");
    let images = testdata().join("../photos");
    check(open(&images, windows()), "is a directory, expected a regular file");
}

/// A copy of a data set in which `change` changes a file.
fn changed(name: &str, file: &str, change: impl FnOnce(&mut Vec<u8>)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(testdata().join(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let path = folder.path().join(file);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
    folder
}

/// Reads all that a data set promises: every error is of the file.
fn read(folder: &Path, sequences: Sequences, name: &str) -> Result<(), ReadError> {
    let number = (name == "mds_bytes").then_some(TokenType::I64);
    let column = (name == "mds_several").then(|| "tokens".to_owned());
    let options = TokenOptions { number, column, ..TokenOptions::default() };
    for source in open_all_in(&Stores::new(), &[folder], &options, sequences, |_, _| Ok(None))? {
        let source = TokenSource::of(&*source).unwrap();
        for index in 0..source.sample_count().min(200) {
            let tokens = tokens_of(source, index)?;
            assert!(tokens.len() as u64 <= source.file().len());
        }
    }
    Ok(())
}

fn is_of_the_data(error: &ReadError) -> bool {
    match error {
        // The index may name files that do not exist.
        ReadError::Tokens { .. } | ReadError::Limit { .. } | ReadError::NotAFile { .. } => true,
        // Of the sample that has the defect.
        ReadError::Sample { source, .. } => is_of_the_data(source),
        ReadError::Io { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

#[test]
fn every_truncation_of_a_chunk_or_a_shard_is_an_error() {
    for (name, file) in [("litdata_array", "chunk-0-1.bin"), ("mds_several", "shard.00002.mds")] {
        let length = fs::metadata(testdata().join(name).join(file)).unwrap().len();
        for kept in 0..length {
            let folder = changed(name, file, |bytes| bytes.truncate(kept as usize));
            let error = read(folder.path(), rows_of(1000), name).unwrap_err();
            let ReadError::Tokens { source: TokensDefect::Length { have, .. }, .. } = error else {
                panic!("{error}");
            };
            assert_eq!(have, kept);
        }
    }
}

#[test]
fn every_changed_byte_of_a_front_is_an_error_or_leaves_tokens() {
    let windows: Sequences = Windows::new(length(4)).into();
    for (name, file, most) in [
        ("litdata_array", "chunk-0-1.bin", 40),
        ("mds_several", "shard.00002.mds", 12),
        ("mds_untyped", "shard.00003.mds", 12),
        ("mds_bytes", "shard.00004.mds", 16),
    ] {
        for place in 0..most {
            for bit in 0..8 {
                let folder = changed(name, file, |bytes| bytes[place] ^= 1 << bit);
                for sequences in [rows_of(1000), windows] {
                    if let Err(error) = read(folder.path(), sequences, name) {
                        assert!(is_of_the_data(&error), "{name} {place} {bit}: {error:?}");
                    }
                }
            }
        }
    }
    // The header of an array, behind the configuration.
    let front = |bytes: &[u8]| u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    for at in 5..8 {
        let folder = changed("mds_untyped", "shard.00003.mds", |bytes| {
            let place = front(bytes) + at;
            bytes[place] ^= 1;
        });
        let error = read(folder.path(), rows_of(1000), "mds_untyped").unwrap_err();
        assert!(is_of_the_data(&error), "{at}: {error}");
    }
}

#[test]
fn every_truncation_and_changed_byte_of_an_index_is_an_error_or_leaves_tokens() {
    for name in ["litdata_tensor", "mds_fixed"] {
        let length = fs::metadata(testdata().join(name).join("index.json")).unwrap().len() as usize;
        for kept in 0..length {
            let folder = changed(name, "index.json", |bytes| bytes.truncate(kept));
            let error = read(folder.path(), rows_of(1000), name).unwrap_err();
            let is_index =
                matches!(error, ReadError::Tokens { source: TokensDefect::Index { .. }, .. });
            assert!(is_index, "{error}");
        }
        for place in 0..length {
            for bit in [0, 1, 4] {
                let folder = changed(name, "index.json", |bytes| bytes[place] ^= 1 << bit);
                if let Err(error) = read(folder.path(), rows_of(1000), name) {
                    assert!(is_of_the_data(&error), "{name} {place} {bit}: {error:?}");
                }
            }
        }
    }
}
