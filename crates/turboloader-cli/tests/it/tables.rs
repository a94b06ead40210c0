//! IDV files: what `tl` says about each equals the description next to it, which an independent
//! parser made; rows as JSON; dead columns; damage.

use std::fs;
use std::path::{Path, PathBuf};

use idv_format::{
    Codec, Item, Key, NewColumn, Number, Text, Values, Vector, Vectors, WriteOptions, Writer,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Run, json_lines, tl, write};

/// Runs `tl` on a table.
fn table(command: &str, path: &Path, args: &[&str]) -> Run {
    let path = path.to_str().expect("the path is UTF-8");
    tl([command, path].iter().chain(args))
}

fn json_of(command: &str, path: &Path, args: &[&str]) -> Vec<Value> {
    let run = table(command, path, &[args, &["--json"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    json_lines(str::from_utf8(&run.stdout).expect("the output is UTF-8"))
}

fn own_files() -> PathBuf {
    tl_testdata::shipped!("idv")
}

/// Every file of `folder` and the folders in it that has a description, without what stands in
/// front of the table, and the description.
fn described(folder: &Path, into: &Path) -> Vec<(PathBuf, Value)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            found.extend(described(&path, into));
            continue;
        }
        let Ok(text) = fs::read_to_string(path.with_added_extension("json")) else { continue };
        let description: Value = serde_json::from_str(&text).expect("the description is JSON");
        let start = description["idv_starts_at"].as_u64().unwrap_or(0);
        let path = if start == 0 {
            path
        } else {
            let bytes = fs::read(&path).expect("the file is readable");
            let name = path.file_name().expect("a file has a name").to_string_lossy();
            write(into, &name, &bytes[usize::try_from(start).expect("it is small")..])
        };
        found.push((path, description));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn check(path: &Path, expected: &Value) {
    let at = path.display();
    let info = &json_of("info", path, &[])[0];
    for (ours, theirs) in [
        ("version", "version"),
        ("compatible_version", "compatible_version"),
        ("rows", "row_count"),
        ("trailing_bytes", "trailing_bytes_after_tail"),
    ] {
        let expected = expected.get(theirs).cloned().unwrap_or(json!(0));
        assert_eq!(info[ours], expected, "{at}: {ours}");
    }
    let columns = expected["columns"].as_array().expect("columns is a list");
    let digests = json_of("digest", path, &["--columns"]);
    let found = info["columns"].as_array().expect("columns is a list");
    assert_eq!((found.len(), digests.len()), (columns.len(), columns.len()), "{at}");
    for ((info, digest), expected) in found.iter().zip(&digests).zip(columns) {
        check_column(info, expected);
        assert_eq!(digest["name"], expected["name"], "{at}");
        assert_eq!(digest["codec"], expected["codec"], "{at}");
        assert_eq!(digest.get("sha256"), expected.get("column_sha256"), "{at}: {digest}");
        assert_eq!(digest.get("dead").is_some(), expected["type"].is_null(), "{at}: {digest}");
    }
    let verified = &json_of("verify", path, &[])[0];
    assert_eq!((&verified["good"], &verified["damaged"]), (&json!(true), &json!(0)), "{at}");
    let rows = json_of("ls", path, &[]);
    // Without columns there is nothing to list.
    let count = if columns.is_empty() { json!(0) } else { expected["row_count"].clone() };
    assert_eq!(json!(rows.len()), count, "{at}");
    for expected in columns {
        let name = expected["name"].as_str().expect("a name is text");
        let is_last = columns.iter().rev().find(|column| column["name"] == name) == Some(expected);
        let first_rows = expected["first_rows"].as_array().filter(|_| is_last);
        for (row, expected) in rows.iter().zip(first_rows.into_iter().flatten()) {
            let found = &row["values"][name];
            // Keys are null where they are missing; times, ids and sparse vectors have other forms.
            let is_plain = expected.is_string() || expected.is_boolean() || expected.is_f64();
            if is_plain && !matches!(expected.as_str(), Some("Inf" | "-Inf")) {
                assert!(is_same(found, expected), "{at}: {name}: {found} is not {expected}");
            }
        }
    }
}

fn is_same(found: &Value, expected: &Value) -> bool {
    #[expect(clippy::cast_possible_truncation, reason = "a single was printed as a double")]
    let is_single =
        found.as_f64().zip(expected.as_f64()).is_some_and(|(a, b)| a as f32 == b as f32);
    found == expected || is_single
}

fn check_column(info: &Value, expected: &Value) {
    assert_eq!(info["name"], expected["name"]);
    assert_eq!(info["codec"], expected["codec"]);
    assert_eq!(info["rows_per_block"], expected["rows_per_block"]);
    let compression = match expected["compression"].as_u64() {
        Some(0) => "none".to_owned(),
        Some(1) => "deflate".to_owned(),
        Some(2) => "zlib".to_owned(),
        other => other.map(|code| code.to_string()).expect("a compression is a number"),
    };
    assert_eq!(info["compression"], compression);
    assert_eq!(info["blocks"], expected["blocks"]);
    for (ours, theirs) in [("stored_bytes", "compressed_bytes"), ("bytes", "uncompressed_bytes")] {
        assert_eq!(info[ours], expected.get(theirs).cloned().unwrap_or(json!(0)), "{info}");
    }
    assert_eq!(info["dead"].is_string(), expected["type"].is_null(), "{info}");
    let kinds = |list: &Value| -> Vec<Value> {
        list.as_array().into_iter().flatten().map(|entry| entry["kind"].clone()).collect()
    };
    assert_eq!(kinds(&info["metadata"]), kinds(&expected["metadata"]));
}

#[test]
fn our_files_are_as_described() {
    let into = tempfile::tempdir().expect("a temporary folder");
    let files = described(&own_files(), into.path());
    assert!(files.len() >= 6, "{} files", files.len());
    files.iter().for_each(|(path, expected)| check(path, expected));
}

#[tl_testdata::needs("formats/idv")]
#[test]
fn files_of_mlnet_are_as_described() {
    let folder = tl_testdata::path!("formats/idv");
    let into = tempfile::tempdir().expect("a temporary folder");
    let files = described(&folder, into.path());
    assert_eq!(files.len(), 48);
    files.iter().for_each(|(path, expected)| check(path, expected));
}

/// Four rows in two blocks of numbers, keys, booleans, text and vectors.
fn small() -> (TempDir, PathBuf) {
    let key = Key { number: Number::Byte, count: 3, min: 0 };
    let vector = Vector { item: Item::Number(Number::Single), dimensions: vec![3] };
    let columns = vec![
        NewColumn::new("number", Codec::number(Number::Double)),
        NewColumn::new("key", Codec::Item(Item::Key(key))),
        NewColumn::new("known", Codec::Item(Item::MissingBoolean)),
        NewColumn::new("text", Codec::Item(Item::Text)),
        NewColumn::new("vector", Codec::Vector(vector)),
        NewColumn::new("span", Codec::Item(Item::TimeSpan)),
    ];
    let mut options = WriteOptions::default();
    options.rows_per_block = std::num::NonZeroU32::new(2);
    let mut vectors = Vectors::empty(Values::Single(Vec::new().into()));
    let single = |values: &[f32]| Values::Single(values.to_vec().into());
    vectors.push(3, None, &single(&[0.1, f32::NAN, -2.0])).expect("it fits");
    vectors.push(3, Some(&[1]), &single(&[f32::INFINITY])).expect("it fits");
    vectors.push(3, Some(&[]), &single(&[])).expect("it fits");
    vectors.push(3, None, &single(&[1.0, 2.0, 3.0])).expect("it fits");
    let texts: Text<'_> = [Some("a\t\"b\""), None, Some(""), Some("é")].into_iter().collect();
    let rows = [
        Values::Double(vec![1.5, f64::NAN, f64::NEG_INFINITY, -0.0].into()),
        Values::Byte(vec![0, 1, 2, 3].into()),
        Values::Boolean(vec![0, 1, 2, 1].into()),
        Values::Text(texts),
        Values::Vector(vectors),
        Values::Int64(vec![i64::MIN, -1, 0, 10_000_000].into()),
    ];
    let file = std::io::Cursor::new(Vec::new());
    let mut writer = Writer::new(file, columns, options).expect("the columns are good");
    writer.write(&rows).expect("the rows fit");
    let (file, _) = writer.finish().expect("memory is writable");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "small.idv", &file.into_inner());
    (folder, path)
}

#[test]
fn rows_are_json_with_names_for_what_json_lacks() {
    let (folder, path) = small();
    let cat = |row: &str| -> Value {
        serde_json::from_str(&table("cat", &path, &[row]).text()).expect("a row is JSON")
    };
    assert_eq!(
        table("cat", &path, &["0"]).text(),
        "{\"number\":1.5,\"key\":null,\"known\":false,\"text\":\"a\\t\\\"b\\\"\",\
         \"vector\":[0.1,\"NaN\",-2.0],\"span\":null}\n"
    );
    let sparse =
        |indices: Value, values: Value| json!({"length": 3, "indices": indices, "values": values});
    let second = json!({
        "number": "NaN", "key": 1, "known": true, "text": null,
        "vector": sparse(json!([1]), json!(["Infinity"])), "span": -1,
    });
    assert_eq!(cat("1"), second);
    assert_eq!(cat("2")["number"], "-Infinity");
    assert_eq!(cat("2")["known"], Value::Null);
    assert_eq!(cat("2")["vector"], sparse(json!([]), json!([])));
    let listed = json_of("ls", &path, &[]);
    assert_eq!(listed[1], json!({"row": 1, "values": second}));

    let some = table("cat", &path, &["3", "--columns", "text,key"]).text();
    assert_eq!(some, "{\"text\":\"é\",\"key\":3}\n");
    let out = folder.path().join("row.json");
    table("cat", &path, &["3", "--columns", "key", "-o", out.to_str().expect("it is UTF-8")])
        .good();
    assert_eq!(fs::read(out).expect("it was written"), b"{\"key\":3}\n");
    let text = table("ls", &path, &["--columns", "key,text,vector"]).text();
    let expected = "row\tkey\ttext\tvector\n0\t\ta\\x09\"b\"\t[0.1,\"NaN\",-2.0]\n1\t1\t\t\
                    {\"length\":3,\"indices\":[1],\"values\":[\"Infinity\"]}\n";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn wrong_questions_about_a_table_exit_with_2() {
    let (_folder, path) = small();
    let check = |command: &str, args: &[&str], says: &str| {
        let line = table(command, &path, args).error(2);
        assert!(line.ends_with(says), "{line}");
    };
    check("cat", &["4"], "small.idv: row 4 does not exist, there are 4");
    check("cat", &["0", "--columns", "nix"], "small.idv: no column \"nix\"");
    check("cat", &["0", "--field", "json"], "--field is for samples: tables have --columns");
    let id = "55c14841-a7dc-11c1-74ca-262430a87aa9";
    check("cat", &[id], "only nodes of TBF segments have ids; rows of an IDV file have numbers");
    check("ls", &["--hash"], "--hash is for samples: tl digest hashes tables");
    check("digest", &["--json"], "were not provided: --columns (see --help)");
    check("edges", &["0"], "small.idv: not a TBF segment");
    check("find", &["--similar", "0"], "small.idv: not a TBF segment");
    let no_samples = "small.idv: IDV files have rows, not samples";
    check("extract", &["-o", "x"], no_samples);
    check("merge", &["-o", "x"], no_samples);
    check("split", &["-o", "x", "--shards", "1"], no_samples);
    check("repair", &["-o", "x"], no_samples);
}

/// The whole digest by its description in the help.
#[test]
fn tables_have_the_digest_of_rows_names_types_and_values() {
    let (_folder, path) = small();
    let mut hashed = 4u64.to_le_bytes().to_vec();
    for column in json_of("digest", &path, &["--columns"]) {
        for key in ["name", "type"] {
            let text = column[key].as_str().expect("it is text");
            hashed.extend((text.len() as u64).to_le_bytes());
            hashed.extend(text.as_bytes());
        }
        let digits = column["sha256"].as_str().expect("it is text");
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("they are digits");
        hashed.extend((0..64).step_by(2).map(byte));
    }
    let expected = crate::support::sha256(&hashed);
    assert_eq!(table("digest", &path, &[]).text(), format!("{expected}\n"));
}

#[tl_testdata::needs("formats/idv/synthetic")]
#[test]
fn a_dead_column_is_named_and_the_others_are_read() {
    let folder = tl_testdata::path!("formats/idv/synthetic");
    let path = folder.join("v1.1.1.5_dead_columns.idv");
    let text = table("info", &path, &[]).text();
    assert!(text.contains("columns      6 (2 dead)"), "{text}");
    assert!(text.contains("dead: codec NoSuchCodec is unknown"), "{text}");
    let run = table("cat", &path, &["0"]);
    assert_eq!(run.code, Some(0));
    let notes: Vec<&str> = run.stderr.lines().collect();
    assert!(
        notes.len() == 2 && notes[1].ends_with("\"vunk\" is left out: codec NoSuch is unknown")
    );
    let line = table("cat", &path, &["0", "--columns", "unk"]).error(1);
    assert!(line.ends_with("\"unk\" cannot be read: codec NoSuchCodec is unknown"), "{line}");
    let line = table("digest", &path, &[]).error(1);
    assert!(line.ends_with("\"unk\" cannot be read: codec NoSuchCodec is unknown"), "{line}");
    let text = table("verify", &path, &[]).text();
    assert!(text.ends_with("good: 100 rows, 6 columns, 12 blocks, 3497 bytes, 2 warnings\n"));
}

/// The second block of `key` holds the rows 2 and 3 in two bytes; one less inflates to one.
#[test]
fn a_damaged_block_is_named_and_the_rows_of_others_are_listed() {
    let (folder, path) = small();
    let mut bytes = fs::read(&path).expect("the file is readable");
    let file = idv_format::IdvFile::open(bytes.clone()).expect("it opens");
    let column = file.column(1).expect("it is there");
    let block = column.blocks()[1];
    let at = usize::try_from(block.offset).expect("it is small");
    bytes[at..at + 2].fill(0xff);
    let path = write(folder.path(), "damaged.idv", &bytes);
    let place = format!("column \"key\", block 1 at byte {}", block.offset);

    let run = table("verify", &path, &[]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let found = String::from_utf8(run.stdout).expect("the output is UTF-8");
    assert!(found.starts_with(&format!("damage in {place}: ")) && found.lines().count() == 1);
    let says = format!("damaged.idv: {}", found.trim_end());
    assert!(run.stderr.ends_with(&format!("{says}\n")), "{}", run.stderr);
    let report = &json_lines(
        str::from_utf8(&table("verify", &path, &["--json"]).stdout).expect("it is UTF-8"),
    )[0];
    assert_eq!(report["good"], false);
    let finding = &report["findings"][0];
    assert_eq!((&finding["column"], &finding["block"]), (&json!("key"), &json!(1)));
    assert_eq!(finding["offset"], block.offset);

    let run = table("ls", &path, &["--json"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.starts_with("tl: 2 of 4 rows are damaged, the first: "), "{}", run.stderr);
    let rows = json_lines(str::from_utf8(&run.stdout).expect("it is UTF-8"));
    let is_bad: Vec<bool> = rows.iter().map(|row| row["error"].is_string()).collect();
    assert_eq!(is_bad, [false, false, true]);
    assert_eq!((&rows[2]["row"], &rows[2]["rows"]), (&json!(2), &json!(2)));
    let text = table("ls", &path, &[]).stdout;
    let text = String::from_utf8(text).expect("it is UTF-8");
    assert!(text.lines().nth(3) == Some("2-3\tDAMAGED\t\t\t\t\t"), "{text}");
    table("cat", &path, &["2"]).error(1);
    table("cat", &path, &["1"]).good();
    table("cat", &path, &["2", "--columns", "text"]).good();

    table("digest", &path, &[]).error(1);
    let run = table("digest", &path, &["--columns", "--json"]);
    assert_eq!(run.code, Some(1));
    let columns = json_lines(str::from_utf8(&run.stdout).expect("it is UTF-8"));
    let is_bad: Vec<bool> = columns.iter().map(|column| column["error"].is_string()).collect();
    assert_eq!(is_bad, [false, true, false, false, false, false]);
}

/// Whatever is wrong with a file, each command ends by itself and says at most one line.
fn survives(path: &Path) {
    for args in [
        &["info"][..],
        &["ls", "--json"],
        &["verify", "--json"],
        &["digest", "--columns"],
        &["cat", "1"],
    ] {
        let run = table(args[0], path, &args[1..]);
        let code = run.code.expect("no signal ends it");
        assert!(code <= 2, "{args:?}: {}", run.stderr);
        let errors = run.stderr.lines().filter(|line| !line.contains(" is left out: ")).count();
        assert_eq!(errors > 0, code > 0, "{args:?}: {}", run.stderr);
        assert!(errors <= 1, "{args:?}: {}", run.stderr);
    }
}

#[test]
fn damaged_files_are_survived() {
    let (folder, path) = small();
    let bytes = fs::read(&path).expect("the file is readable");
    for len in (0..bytes.len()).step_by(bytes.len() / 20) {
        let path = write(folder.path(), "cut.idv", &bytes[..len]);
        survives(&path);
        table("info", &path, &[]).error(1);
    }
    // The header, then all the rest.
    for at in (0..56).step_by(5).chain((256..bytes.len()).step_by(bytes.len() / 40)) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x80 >> (at % 8);
        survives(&write(folder.path(), "flipped.idv", &flipped));
    }
}

/// Rows of a file without columns take no place in it, so there can be any number.
#[test]
fn rows_without_columns_are_not_listed() {
    let mut bytes = fs::read(own_files().join("no_columns.idv")).expect("the file is readable");
    bytes[40..48].copy_from_slice(&i64::MAX.to_le_bytes());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "rows.idv", &bytes);
    assert_eq!(json_of("info", &path, &[])[0]["rows"], i64::MAX);
    assert_eq!(json_of("ls", &path, &[]).len(), 0);
    assert_eq!(json_of("verify", &path, &[])[0]["good"], true);
    assert_eq!(table("digest", &path, &[]).text().len(), 65);
}

#[test]
fn a_name_tells_what_a_damaged_file_was() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "empty.idv", b"");
    let line = table("info", &path, &[]).error(1);
    assert!(line.ends_with("empty.idv: header at 0 needs 256 bytes, found 0"), "{line}");
    let report = table("verify", &path, &["--json"]);
    assert_eq!(report.code, Some(1));
    let report = &json_lines(str::from_utf8(&report.stdout).expect("it is UTF-8"))[0];
    assert_eq!((&report["good"], &report["damaged"]), (&json!(false), &json!(1)));
    let path = write(folder.path(), "empty.TBF", b"TALA");
    let line = table("ls", &path, &[]).error(1);
    assert!(line.ends_with("empty.TBF: header needs 128 bytes, found 4"), "{line}");
}
