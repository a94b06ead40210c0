//! Lines of texts by the index next to them, and in compressed files with a seek table.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use tbl_io::{IndexOptions, IndexSummary, ReadError, SampleSource, Stores, TokensDefect};
use tl_tokens::{
    DocumentRows, Fill, Long, Sequences, TextInput, TextOptions, TokenOptions, TokenSource,
    index_texts_in, open_all_in,
};

use crate::text::{data, tokenizer};

fn open(path: &Path) -> Result<Vec<Box<dyn SampleSource>>, ReadError> {
    let tokenizer = Arc::new(tokenizer("bpe"));
    let text = Some(TextInput { tokenizer, options: TextOptions::default() });
    let options = TokenOptions { text, ..TokenOptions::default() };
    let length = 50.try_into().unwrap();
    let fill = Fill::default();
    let rows = DocumentRows { length, targets: true, long: Long::Truncate, fill };
    open_all_in(&Stores::new(), &[path], &options, Sequences::Documents(rows), |_, _| Ok(None))
}

fn index(paths: &[&Path], target: &Path) -> IndexSummary {
    let options = IndexOptions { sync: false, overwrite: true, update: true };
    tbl_io::index_shards(&index_texts_in(Stores::new()), paths, target, options).unwrap()
}

/// The tokens of all documents, and the number of each file in a state.
fn rows(sources: &[Box<dyn SampleSource>]) -> (Vec<Vec<u8>>, Vec<u64>) {
    let mut rows = Vec::new();
    let mut ids = Vec::new();
    for source in sources {
        ids.push(TokenSource::of(&**source).unwrap().packing_id());
        for row in 0..source.sample_count() {
            let mut bytes = Vec::new();
            source.read_into(row, &mut bytes).unwrap();
            rows.push(bytes);
        }
    }
    (rows, ids)
}

/// A file of frames of `size` plain bytes with a seek table, as `zstd_seekable` writes it.
fn seekable(plain: &[u8], size: usize) -> Vec<u8> {
    let mut file = Vec::new();
    let mut table = Vec::new();
    for part in plain.chunks(size) {
        let frame = zstd::bulk::compress(part, 3).unwrap();
        table.extend((frame.len() as u32).to_le_bytes());
        table.extend((part.len() as u32).to_le_bytes());
        file.extend(frame);
    }
    table.extend((table.len() as u32 / 8).to_le_bytes());
    table.push(0);
    table.extend(0x8f92_eab1_u32.to_le_bytes());
    file.extend(0x184d_2a5e_u32.to_le_bytes());
    file.extend((table.len() as u32).to_le_bytes());
    file.extend(table);
    file
}

#[test]
fn indexed_and_compressed_lines_have_the_tokens_of_plain_ones() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read(data("texts.jsonl")).unwrap();
    let spaced = [b"\n", &text[..], b"  \n\n"].concat();
    for (name, text) in [("a.jsonl", &text), ("b.ndjson", &spaced)] {
        let plain = folder.path().join(name);
        fs::write(&plain, text).unwrap();
        let expected = rows(&open(&plain).unwrap());
        assert_eq!(expected.0.len(), 101);
        let compressed = folder.path().join(format!("{name}.zst"));
        fs::write(&compressed, seekable(text, 1000)).unwrap();
        for path in [&plain, &compressed] {
            assert!(rows(&open(path).unwrap()) == expected, "{}", path.display());
            let beside = folder.path().join(format!("{}.tlidx", path.display()));
            let summary = index(&[path], &beside);
            assert_eq!((summary.shards, summary.samples), (1, 101));
            assert_eq!(index(&[path], &beside).unchanged, 1);
            assert!(rows(&open(path).unwrap()) == expected, "{}", path.display());
            assert!(rows(&open(&beside).unwrap()) == expected, "{}", path.display());
        }
    }
    let plain = rows(&open(&data("texts.jsonl")).unwrap());
    assert!(rows(&open(&data("texts.jsonl.zst")).unwrap()) == plain, "frames of pyzstd");
    let [a, b] = ["a.jsonl", "b.ndjson.zst"].map(|name| folder.path().join(name));
    let both = folder.path().join("both.tlidx");
    assert_eq!(index(&[&a, &b], &both).samples, 202);
    let (found, ids) = rows(&open(&both).unwrap());
    assert_eq!((found.len(), ids.len()), (202, 2));
    assert!(found[..101] == found[101..]);
}

#[test]
fn an_index_spares_the_pass_and_notices_other_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let beside = folder.path().join("a.jsonl.tlidx");
    let time = |modified| {
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    };
    fs::write(&path, "{\"text\": \"one\"}\n{\"text\": \"two\"}\n").unwrap();
    time(SystemTime::UNIX_EPOCH);
    index(&[&path], &beside);
    // Lines that a pass would find elsewhere: the index is believed while length and time are equal.
    fs::write(&path, "{\"text\": \"longer\"}\n{\"text\":\"\"}\n\n").unwrap();
    time(SystemTime::UNIX_EPOCH);
    let sources = open(&path).unwrap();
    assert_eq!(sources[0].facts(1).unwrap().offset, 16);
    time(SystemTime::now());
    let error = open(&path).unwrap_err();
    assert!(matches!(error, ReadError::ObjectChanged { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("changed since it was indexed"), "{message}");
    assert!(message.ends_with("a.jsonl.tlidx anew with tl index"), "{message}");
    assert_eq!(index(&[&path], &beside).unchanged, 0);
    assert_eq!(open(&path).unwrap()[0].facts(1).unwrap().offset, 19);
    let other = folder.path().join("other.jsonl");
    fs::rename(&path, &other).unwrap();
    fs::rename(&beside, folder.path().join("other.jsonl.tlidx")).unwrap();
    let message = open(&other).unwrap_err().to_string();
    assert!(message.contains("does not list other.jsonl"), "{message}");
}

#[test]
fn damaged_parts_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let beside = folder.path().join("a.jsonl.tlidx");
    fs::write(&path, "{\"text\": \"one\"}\n{\"text\": \"two\"}\n").unwrap();
    index(&[&path], &beside);
    let whole = fs::read(&beside).unwrap();
    for at in 0..whole.len() {
        for byte in [1, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] ^= byte;
            fs::write(&beside, damaged).unwrap();
            assert!(open(&path).is_err(), "byte {at} ^ {byte}");
        }
        fs::write(&beside, &whole[..at]).unwrap();
        assert!(open(&path).is_err(), "{at} bytes");
    }
}

#[test]
fn texts_that_cannot_be_read_by_position_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plain = b"{\"text\": \"one\"}\n";
    for name in ["a.jsonl.zst", "a.txt.zst"] {
        let path = folder.path().join(name);
        fs::write(&path, zstd::bulk::compress(plain, 3).unwrap()).unwrap();
        let error = open(&path).unwrap_err();
        let ReadError::Tokens { source, .. } = &error else { panic!("{error}") };
        assert!(matches!(source, TokensDefect::CompressedText), "{error}");
    }
    let archive = folder.path().join("a.tar");
    let mut builder = vec![0; 1024];
    builder.resize(10_240, 0);
    fs::write(&archive, builder).unwrap();
    let shards = folder.path().join("a.tlidx");
    index(&[&archive], &shards);
    let error = open(&shards).unwrap_err().to_string();
    assert!(error.contains("not lines of texts"), "{error}");
    let lines = folder.path().join("b.jsonl");
    fs::write(&lines, plain).unwrap();
    index(&[&lines], &shards);
    let error = tbl_io::open(&shards).unwrap_err().to_string();
    assert!(error.contains("has texts, which are read with `--tokens auto"), "{error}");
}
