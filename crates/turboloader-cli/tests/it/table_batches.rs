//! `tl bench` of tables: what batches hold is what the rows hold.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use idv_format::{Codec, Item, NewColumn, Number, Text, Values, WriteOptions, Writer};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Run, json_lines, sha256, tl, write};

const ROWS: i32 = 10;

/// Ten rows in blocks of three.
fn file() -> (TempDir, PathBuf) {
    let number = |number| Codec::number(number);
    let columns = vec![
        NewColumn::new("a", number(Number::Single)),
        NewColumn::new("b", number(Number::Double)),
        NewColumn::new("label", number(Number::Int32)),
        NewColumn::new("text", Codec::Item(Item::Text)),
    ];
    let mut options = WriteOptions::default();
    options.rows_per_block = NonZeroU32::new(3);
    let file = std::io::Cursor::new(Vec::new());
    let mut writer = Writer::new(file, columns, options).expect("the columns are good");
    let texts: Vec<String> = (0..ROWS).map(|row| format!("row {row}")).collect();
    let texts: Text<'_> = texts.iter().map(|text| Some(text.as_str())).collect();
    let single = |row: i32| f32::from(i16::try_from(row).expect("it is small")) + 0.5;
    let values = [
        Values::Single((0..ROWS).map(single).collect()),
        Values::Double((0..ROWS).map(|row| f64::from(row) * 0.25).collect()),
        Values::Int32((0..ROWS).map(|row| row % 3).collect()),
        Values::Text(texts),
    ];
    writer.write(&values).expect("the rows fit");
    let (file, _) = writer.finish().expect("memory is writable");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "table.idv", &file.into_inner());
    (folder, path)
}

fn bench(path: &Path, more: &[&str]) -> Run {
    let path = path.to_str().expect("the path is UTF-8");
    tl(["bench", path, "--seconds", "0"].iter().chain(more))
}

fn json(path: &Path, more: &[&str]) -> Value {
    json_lines(&bench(path, &[more, &["--json"]].concat()).text()).remove(0)
}

/// The digest by its description, of batches of four rows in their order.
#[test]
fn the_digest_of_an_epoch_is_that_of_its_rows() {
    let (_folder, path) = file();
    let mut hashed = Vec::new();
    let rows: Vec<i32> = (0..ROWS).collect();
    for batch in rows.chunks(4) {
        for &row in batch {
            hashed.extend((f64::from(row) * 0.25).to_le_bytes());
            let features = [f64::from(row) + 0.5, f64::from(row % 3)];
            #[expect(clippy::cast_possible_truncation, reason = "halves of small numbers")]
            features.iter().for_each(|feature| hashed.extend((*feature as f32).to_le_bytes()));
        }
        batch.iter().for_each(|row| hashed.extend(i64::from(row % 3).to_le_bytes()));
        batch.iter().for_each(|&row| hashed.extend(i64::from(row).to_le_bytes()));
        for row in batch {
            let text = format!("row {row}");
            hashed.extend((text.len() as u64).to_le_bytes());
            hashed.extend(text.as_bytes());
        }
    }
    let columns = ["--columns", "b,text", "--features", "a,label", "--label", "label"];
    for workers in ["1", "2"] {
        let more = ["--shuffle", "none", "--batch-size", "4", "--digest", "--workers", workers];
        let found = json(&path, &[&columns[..], &more].concat());
        assert_eq!(found["digest"], sha256(&hashed));
        assert_eq!(
            (&found["recipe"], &found["samples_per_epoch"]),
            (&"columns".into(), &10.into())
        );
    }
}

/// Without columns there are all that are numbers; the same rows have the same hashes whatever the
/// order.
#[test]
fn rows_are_written_whatever_their_order() {
    let (folder, path) = file();
    let rows = |name: &str, shuffle: &str| -> Vec<(u64, i64, String)> {
        let out = folder.path().join(name);
        let out = out.to_str().expect("the path is UTF-8");
        let args = ["--recipe", "columns", "--label", "label", "--shuffle", shuffle, "--rows", out];
        bench(&path, &args).good();
        let text = fs::read_to_string(out).expect("it was written");
        let line = |line: &Value| {
            let hash = line["sha256"].as_str().expect("a hash is text").to_owned();
            Some((line["sample"].as_u64()?, line["label"].as_i64()?, hash))
        };
        json_lines(&text).iter().map(|found| line(found).expect("they are numbers")).collect()
    };
    let ordered = rows("ordered", "none");
    let mut shuffled = rows("shuffled", "full");
    assert_ne!(ordered, shuffled);
    shuffled.sort();
    assert_eq!(ordered, shuffled);
    for (row, (sample, label, hash)) in (0..).zip(&ordered) {
        assert_eq!((*sample, *label), (row, i64::try_from(row % 3).expect("it is small")));
        let row = f64::from(u32::try_from(row).expect("it is small"));
        #[expect(clippy::cast_possible_truncation, reason = "a half of a small number")]
        let a = ((row + 0.5) as f32).to_le_bytes();
        assert_eq!(*hash, sha256(&[&a[..], &(row * 0.25).to_le_bytes()].concat()));
    }
}

/// However a data set is opened, damage ends with 1 and what the system refuses with 2.
#[test]
fn damage_is_told_from_what_the_system_refuses() {
    let (folder, path) = file();
    let mut bytes = fs::read(&path).expect("the file is readable");
    let columns = ["--recipe", "columns"];
    let cut = write(folder.path(), "cut.idv", &bytes[..300]);
    assert!(bench(&cut, &columns).error(1).contains("tail signature"));
    let cut = write(folder.path(), "cut.tbf", b"TALB");
    assert!(bench(&cut, &columns).error(1).contains("header needs 128 bytes, found 4"));
    let cut = write(folder.path(), "cut.tbl", b"TBL\x02");
    assert!(bench(&cut, &["--recipe", "raw"]).error(1).contains("needs 64 bytes, found 4"));
    bench(&folder.path().join("missing.idv"), &columns).error(2);

    let idv = idv_format::IdvFile::open(bytes.clone()).expect("it opens");
    let offset = idv.column(0).expect("it is there").blocks()[1].offset;
    let at = usize::try_from(offset).expect("it is small");
    bytes[at..at + 2].fill(0xff);
    let damaged = write(folder.path(), "damaged.idv", &bytes);
    let line = bench(&damaged, &columns).error(1);
    assert!(line.contains(&format!("block 1 at {offset}")), "{line}");
}

#[test]
fn what_a_table_does_not_have_is_named() {
    let (_folder, path) = file();
    let text = bench(&path, &["--recipe", "columns"]).text();
    assert!(text.contains(" rows/s (median of "), "{text}");
    let line = bench(&path, &["--recipe", "columns", "--columns", "nix"]).error(2);
    assert!(line.contains("no column `nix`; the columns are "), "{line}");
    let line = bench(&path, &["--recipe", "raw", "--features", "a"]).error(2);
    assert!(line.contains("--features and --label need --recipe columns"), "{line}");
    let line = bench(&path, &["--recipe", "columns", "--fields", "text"]).error(2);
    assert!(line.ends_with("--fields is for samples: tables have --columns"), "{line}");
    let line = bench(&path, &["--recipe", "raw"]).error(2);
    assert!(line.contains("table.idv: a table has columns, not "), "{line}");
    let line = bench(&crate::support::photos(), &["--recipe", "columns"]).error(2);
    assert!(
        line.contains(
            "not a table; IDV, TBF, Parquet, Arrow, .npy, .npz, safetensors and Zarr files have"
        ),
        "{line}"
    );
    let line = bench(&path, &[]).error(2);
    assert!(line.contains("--recipe"), "{line}");
}

/// Four rows of label 0, three of each other one: an epoch has four of each.
#[test]
fn classes_of_a_table_are_balanced() {
    let (folder, path) = file();
    let rows = folder.path().join("rows.jsonl");
    let rows = rows.to_str().expect("the path is UTF-8");
    let balanced = ["--label", "label", "--balance", "--length", "all-used-up"];
    let result = json(&path, &[&balanced[..], &["--shuffle", "full", "--rows", rows]].concat());
    let entropy = &result["shuffle"]["order"]["class_entropy"];
    assert!(entropy.as_f64().is_some_and(|bits| bits > 1.0), "{result}");
    let lines = json_lines(&fs::read_to_string(rows).expect("it was written"));
    for label in 0..3 {
        assert_eq!(lines.iter().filter(|line| line["label"] == label).count(), 4, "{label}");
    }
    let unlabelled = bench(&path, &["--recipe", "columns", "--balance"]).error(2);
    assert_eq!(unlabelled, "tl: sample 0 has no label to balance classes by");
}

#[test]
fn doctor_sends_tables_elsewhere() {
    let (_folder, path) = file();
    let message = tl(["doctor".as_ref(), path.as_os_str()]).error(2);
    assert!(message.starts_with("tl: doctor examines samples; of a table `tl bench"), "{message}");
}
