//! `tl convert` of tables, as a user runs it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "test code, helpers included"
)]

use std::fs::{self, File};
use std::io::Cursor;
use std::path::{Path, PathBuf};

use idv_format::{
    Codec, IdvFile, Item, Key, NewColumn, NewMetadata, Number, RowId, Values, Vector, Vectors,
    WriteOptions, Writer,
};
use sha2::{Digest, Sha256};

use crate::support::{Run, files_below, tl, write};

#[cfg(feature = "parquet")]
mod parquet;

type Table = IdvFile<File>;

fn open(path: &Path) -> Table {
    Table::open(File::open(path).unwrap()).unwrap()
}

fn run(from: &Path, to: &Path, options: &[&str]) -> Run {
    let mut args = vec!["convert".into(), from.to_owned(), "-o".into(), to.to_owned()];
    args.extend(options.iter().chain(&["-q", "--no-sync"]).map(PathBuf::from));
    tl(args)
}

fn convert(from: &Path, to: &Path, options: &[&str]) -> Table {
    run(from, to, options).good();
    open(to)
}

fn hash(values: &Values<'_>) -> Vec<u8> {
    let mut hash = Sha256::new();
    values.canonical(&mut |bytes| hash.update(bytes));
    hash.finalize().to_vec()
}

fn read(table: &Table, name: &str) -> (Codec, Values<'static>) {
    let column = table.column(table.find(name).unwrap()).unwrap();
    (column.codec().clone(), column.read(0..table.row_count()).unwrap())
}

#[track_caller]
fn check(table: &Table, name: &str, codec: &Codec, values: &Values<'_>) {
    let (found_codec, found) = read(table, name);
    assert_eq!((&found_codec, hash(&found)), (codec, hash(values)), "{name}: {found:?}");
}

fn texts(texts: &[Option<&str>]) -> Values<'static> {
    Values::Text(texts.iter().copied().collect())
}

fn key(count: u64) -> Codec {
    Codec::Item(Item::Key(Key { number: Number::UInt32, count, min: 0 }))
}

fn vector(item: Item, length: u32) -> Codec {
    Codec::Vector(Vector { item, dimensions: vec![length] })
}

/// Three rows of every kind of value.
fn columns() -> Vec<(NewColumn, Values<'static>)> {
    let number = |number| Codec::number(number);
    let mut sparse = Vectors::empty(Values::Single(vec![].into()));
    sparse.push(3, None, &Values::Single(vec![1.0, -0.0, 1e-7].into())).unwrap();
    sparse.push(3, Some(&[1]), &Values::Single(vec![0.1].into())).unwrap();
    sparse.push(3, Some(&[]), &Values::Single(vec![].into())).unwrap();
    let mut named = NewColumn::new("label", key(2));
    named.metadata = vec![NewMetadata {
        kind: "KeyValues".to_owned(),
        codec: vector(Item::Text, 2),
        value: Values::Vector(Vectors::dense(2, 1, texts(&[Some("cat, big"), Some("dog")]))),
    }];
    let ticks = 635_112_576_000_000_001;
    let times = Values::OffsetTime {
        offset_minutes: vec![-90, 0, 0].into(),
        ticks: vec![ticks, 0, i64::MIN].into(),
    };
    let ids = vec![RowId { low: 1, high: 0xabc }, RowId::default(), RowId { low: !0, high: !0 }];
    vec![
        (NewColumn::new("n", number(Number::Int64)), Values::Int64(vec![i64::MIN, 0, 7].into())),
        (
            NewColumn::new("x", number(Number::Double)),
            Values::Double(vec![0.1, f64::NEG_INFINITY, 1e300].into()),
        ),
        (NewColumn::new("f", vector(Item::Number(Number::Single), 3)), Values::Vector(sparse)),
        (named, Values::UInt32(vec![2, 0, 1].into())),
        (NewColumn::new("id", key(9)), Values::UInt32(vec![9, 1, 0].into())),
        (
            NewColumn::new("text", Codec::Item(Item::Text)),
            texts(&[Some("a \"b\",\r\nc"), Some(""), Some("é")]),
        ),
        (
            NewColumn::new("flag", Codec::Item(Item::MissingBoolean)),
            Values::Boolean(vec![1, 2, 0].into()),
        ),
        (
            NewColumn::new("time", Codec::Item(Item::DateTime)),
            Values::Int64(vec![ticks, i64::MIN, 0].into()),
        ),
        (
            NewColumn::new("span", Codec::Item(Item::TimeSpan)),
            Values::Int64(vec![-10_000_000, 0, i64::MIN].into()),
        ),
        (NewColumn::new("clock", Codec::Item(Item::DateTimeOffset)), times),
        (NewColumn::new("row", Codec::Item(Item::RowId)), Values::RowId(ids.into())),
    ]
}

fn idv(columns: &[(NewColumn, Values<'static>)]) -> Vec<u8> {
    let new = columns.iter().map(|(column, _)| column.clone()).collect();
    let mut writer = Writer::new(Cursor::new(Vec::new()), new, WriteOptions::default()).unwrap();
    let values: Vec<Values<'_>> =
        columns.iter().map(|(_, values)| values.slice(0..values.len())).collect();
    writer.write(&values).unwrap();
    writer.finish().unwrap().0.into_inner()
}

const CSV: &str = "\
n,x,f.0,f.1,f.2,label,id,text,flag,time,span,clock,row\r
-9223372036854775808,0.1,1.0,-0.0,1e-7,dog,9,\"a \"\"b\"\",\r\nc\",true,\
2013-08-05T00:00:00.0000001,-00:00:01,2013-08-05T00:00:00.0000001-01:30,\
0000000000000abc0000000000000001\r
0,-inf,0.0,0.1,0.0,,1,,,,00:00:00,0001-01-01T00:00:00+00:00,00000000000000000000000000000000\r
7,1e300,0.0,0.0,0.0,\"cat, big\",,é,false,0001-01-01T00:00:00,,,ffffffffffffffffffffffffffffffff\r
";

const SCHEMA: [&str; 2] = [
    "--schema",
    "f=single,label=key,id=key:9,time=datetime,span=timespan,clock=datetimeoffset,row=rowid",
];

#[test]
fn a_table_is_csv_and_a_table_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let columns = columns();
    let source = write(folder.path(), "in.idv", &idv(&columns));
    run(&source, &at("out.csv"), &[]).good();
    assert_eq!(fs::read_to_string(at("out.csv")).unwrap(), CSV);

    let back = convert(&at("out.csv"), &at("back.idv"), &SCHEMA);
    for (column, values) in &columns {
        // Categories are numbered in the order of the rows: `dog` comes first.
        let renumbered = Values::UInt32(vec![1, 0, 2].into());
        let values = if column.name == "label" { &renumbered } else { values };
        check(&back, &column.name, &column.codec, values);
    }
    let label = back.find("label").unwrap();
    let metadata = back.metadata(label).unwrap();
    let Values::Vector(names) = back.metadata_value(&metadata[0]).unwrap() else { panic!() };
    assert_eq!(hash(&names.items()), hash(&texts(&[Some("dog"), Some("cat, big")])));
    // And what was read is written as it was.
    run(&at("back.idv"), &at("again.csv"), &[]).good();
    assert_eq!(fs::read_to_string(at("again.csv")).unwrap(), CSV);
}

#[test]
fn a_name_that_starts_with_a_byte_order_mark_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let csv = "\u{feff}\u{feff}a\r\n1\r\n";
    run(&write(folder.path(), "in.csv", csv.as_bytes()), &at("t.idv"), &[]).good();
    run(&at("t.idv"), &at("out.csv"), &[]).good();
    assert_eq!(fs::read_to_string(at("out.csv")).unwrap(), csv);
}

#[test]
fn types_are_found_where_none_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let csv = "i,d,b,m,t,v.0,v.1,e\n1,1.5,true,True,007,1,2.5,\n-2,,false,,x,3,,\n";
    let source = write(folder.path(), "in.csv", csv.as_bytes());
    let table = convert(&source, &folder.path().join("out.idv"), &[]);
    check(&table, "i", &Codec::number(Number::Int64), &Values::Int64(vec![1, -2].into()));
    let doubles = Values::Double(vec![1.5, f64::NAN].into());
    check(&table, "d", &Codec::number(Number::Double), &doubles);
    check(&table, "b", &Codec::Item(Item::Boolean), &Values::Boolean(vec![1, 0].into()));
    check(&table, "m", &Codec::Item(Item::MissingBoolean), &Values::Boolean(vec![1, 2].into()));
    check(&table, "t", &Codec::Item(Item::Text), &texts(&[Some("007"), Some("x")]));
    let items = Values::Double(vec![1.0, 2.5, 3.0, f64::NAN].into());
    let vectors = Values::Vector(Vectors::dense(2, 2, items));
    check(&table, "v", &vector(Item::Number(Number::Double), 2), &vectors);
    check(&table, "e", &Codec::Item(Item::Text), &texts(&[Some(""), Some("")]));
}

#[test]
fn columns_are_chosen_and_ordered() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let source = write(folder.path(), "in.idv", &idv(&columns()));
    run(&source, &at("out.csv"), &["--columns", "span,n"]).good();
    let csv = fs::read_to_string(at("out.csv")).unwrap();
    assert_eq!(csv, "span,n\r\n-00:00:01,-9223372036854775808\r\n00:00:00,0\r\n,7\r\n");
    let back = convert(&at("out.csv"), &at("back.idv"), &["--columns", "n"]);
    assert_eq!(back.columns().len(), 1);
    let error = run(&source, &at("no.csv"), &["--columns", "n,nobody"]).error(2);
    assert!(error.ends_with("in.idv: no column \"nobody\""), "{error}");
    assert!(!at("no.csv").exists());
}

#[test]
fn what_is_wrong_with_a_csv_file_is_said_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let check = |csv: &str, options: &[&str], code, expected: &str| {
        let source = write(folder.path(), "in.csv", csv.as_bytes());
        let output = folder.path().join("out.idv");
        let error = run(&source, &output, options).error(code);
        let expected = format!("tl: {}: {expected}", source.display());
        assert_eq!(error, expected);
        assert!(!output.exists());
    };
    let no_byte = "column \"a\", row 2: invalid value `256`: expected Byte";
    check("a\n1\n255\n256\n", &["--schema", "a=byte"], 1, no_byte);
    let no_key = "column \"k\", row 1: invalid value `4`: expected Key<UInt32, 1-3>";
    check("k\n3\n4\n", &["--schema", "k=key:3"], 1, no_key);
    let no_time = "column \"t\", row 0: invalid value `2013-02-29`: expected DateTime";
    check("t\n2013-02-29\n", &["--schema", "t=datetime"], 1, no_time);
    check("", &[], 1, "the header is missing");
    let unequal = "line 2, byte 4: row of 3 cells, expected 2 as in the header";
    check("a,b\n1,2,3\n", &[], 1, unequal);
    check("\na\n", &[], 1, "the header is missing");
    let unclosed = "line 2, byte 7: the quote that opens this cell is never closed";
    check("a,b\r\n1,\"x\r\n2,y\r\n", &[], 1, unclosed);
    let after = "line 2, byte 10: text after the closing quote of a cell, expected a comma or the \
                 end of the line (write a quote within a cell as two)";
    check("a,b\r\n1,\"x\"y\r\n", &[], 1, after);
    let blank = "line 3, byte 8: empty line, expected 2 cells as in the header";
    check("a,b\n1,2\n\n3,4\n", &[], 1, blank);
    let same = "columns 1 and 3 are both named \"a\" (rename one, or choose other columns)";
    check("a,b,a\n1,2,3\n", &[], 1, same);
    check("a,b,a\n1,2,3\n", &["--columns", "b,a"], 1, same);
    let twice = "column \"b\" is chosen twice";
    check("a,b,a\n1,2,3\n", &["--columns", "b,b"], 2, twice);
    let unnamed = same.replace("1 and 3", "1 and 2").replace("\"a\"", "\"\"");
    check(",,,\n", &[], 1, &unnamed);
    let apart = "column \"v.1\" is apart from the vector \"v\": slots must follow each other in \
                 order, from .0 on (reorder or rename the columns)";
    check("v.1,v.0\n1,2\n", &[], 1, apart);
    let wide = "line 1, byte 0: row of more than 262144 cells";
    check(&",".repeat(5_000_000), &[], 1, wide);
    check("a\n", &["--schema", "b=text"], 2, "schema: no column \"b\"");
    for (schema, expected) in [
        ("a", "--schema: `a` is not NAME=TYPE"),
        ("a=int", "--schema: column \"a\": unknown type `int`"),
    ] {
        let (source, output) = (folder.path().join("in.csv"), folder.path().join("out.idv"));
        let error = run(&source, &output, &["--schema", schema]).error(2);
        assert_eq!(error, format!("tl: {expected}"));
    }
}

#[test]
fn no_row_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.idv");
    let single = Codec::number(Number::Single);
    // Blank lines of one column are empty cells.
    let source = write(folder.path(), "blank.csv", b"a\n1\n\n2\n");
    let table = convert(&source, &output, &["--schema", "a=single", "-f"]);
    check(&table, "a", &single, &Values::Single(vec![1.0, f32::NAN, 2.0].into()));
    // A conversion can have one of two columns with the same name.
    let source = write(folder.path(), "same.csv", b"a,b,a\n1,2,3\n");
    let table = convert(&source, &output, &["--schema", "b=single", "--columns", "b", "-f"]);
    check(&table, "b", &single, &Values::Single(vec![2.0].into()));
}

/// In a time that is linear in their number.
#[test]
fn many_columns_go_over() {
    const COLUMNS: usize = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let names: Vec<String> = (0..COLUMNS).map(|column| format!("c{column}")).collect();
    let csv = format!("{}\r\n{}\r\n", names.join(","), vec!["1"; COLUMNS].join(","));
    let source = write(folder.path(), "in.csv", csv.as_bytes());
    assert_eq!(convert(&source, &at("out.idv"), &[]).columns().len(), COLUMNS);
    run(&at("out.idv"), &at("out.csv"), &[]).good();
    assert_eq!(fs::read_to_string(at("out.csv")).unwrap(), csv);
}

#[test]
fn values_without_a_cell_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let check = |column: (NewColumn, Values<'static>), code, expected: &str| {
        let source = write(folder.path(), "in.idv", &idv(&[column]));
        let output = folder.path().join("out.csv");
        let error = run(&source, &output, &[]).error(code);
        assert_eq!(error, format!("tl: {}: {expected}", source.display()));
        assert!(!output.exists());
    };
    let codec = Codec::Vector(Vector { item: Item::Text, dimensions: vec![0] });
    let vectors = Values::Vector(Vectors::dense(1, 1, texts(&[Some("")])));
    let expected = "column \"v\": CSV cannot store vectors of different lengths (choose other \
                    columns)";
    check((NewColumn::new("v", codec), vectors), 2, expected);
    let time = NewColumn::new("t", Codec::Item(Item::DateTime));
    let expected = "column \"t\", row 1: -1 ticks of 100 ns are not within the years 1 to 9999";
    check((time, Values::Int64(vec![0, -1].into())), 1, expected);
}

/// Metadata, sparse vectors and all codecs go over.
#[test]
fn an_idv_file_written_again_is_the_same_table() {
    let folder = tempfile::tempdir().unwrap();
    let columns = columns();
    let bytes = idv(&columns);
    let source = write(folder.path(), "in.idv", &bytes);
    let output = folder.path().join("out.idv");
    convert(&source, &output, &[]);
    assert_eq!(fs::read(&output).unwrap(), bytes);
    let error = run(&source, &output, &[]).error(2);
    assert!(error.ends_with("out.idv: exists already (-f replaces it)"), "{error}");
    convert(&source, &output, &["-f"]);
}

#[test]
fn tables_are_not_mixed_with_samples() {
    let folder = tempfile::tempdir().unwrap();
    let idv = write(folder.path(), "in.idv", &idv(&columns()));
    let tar = write(folder.path(), "in.tar", &crate::support::tar(&[(b"a.txt", b"text")]));
    let at = |name: &str| folder.path().join(name);
    let error = run(&idv, &at("out.tbl"), &[]).error(2);
    assert_eq!(error, "tl: a table converts only to .idv, .csv, .parquet or .tbf");
    let error = run(&tar, &at("out.idv"), &[]).error(2);
    assert_eq!(error, "tl: the source is not a table: expected an IDV, CSV, Parquet or TBF file");
    let error = run(&tar, &at("out.tar"), &["--columns", "a"]).error(2);
    let expected =
        "tl: options of tables are for tables: expected an IDV, CSV, Parquet or TBF file";
    assert_eq!(error, expected);
    let csv = write(folder.path(), "in.csv", b"a\n1\n");
    // A CSV file of samples is a manifest.
    let error = run(&csv, &at("out.parquet"), &[]).error(1);
    let expected = "in.csv: line 2, column `a`: 1 named files do not exist, first `1`";
    assert!(error.ends_with(expected), "{error}");
    assert!(!at("out.parquet").exists());
}

/// Every IDV file there is.
fn samples() -> Vec<PathBuf> {
    let own = tl_testdata::shipped!("idv");
    let mut found = Vec::new();
    for folder in
        [own, tl_testdata::path!("formats/idv")].into_iter().filter(|folder| folder.is_dir())
    {
        let names = files_below(&folder).into_iter();
        let idv = names.filter(|(_, bytes)| bytes.starts_with(b"CML\0DVB\0"));
        found.extend(idv.map(|(name, _)| folder.join(name)));
    }
    found
}

/// The columns that can be read and are the last of their name.
fn visible(table: &Table) -> Vec<(String, Codec)> {
    let readable = (0..table.columns().len()).filter_map(|index| {
        let column = table.column(index).ok()?;
        let name = column.entry().name.clone();
        (table.find(&name) == Some(index)).then(|| (name, column.codec().clone()))
    });
    readable.collect()
}

/// The name of a codec's items in `--schema`. Keys with values become categories.
fn type_name(table: &Table, name: &str, item: &Item) -> String {
    match item {
        Item::Number(number) => number.name().to_ascii_lowercase(),
        Item::Key(_) if has_key_values(table, name) => "key".to_owned(),
        Item::Key(key) => format!("key:{}", key.count),
        Item::Boolean | Item::MissingBoolean => "boolean".to_owned(),
        Item::Text => "text".to_owned(),
        Item::TimeSpan => "timespan".to_owned(),
        Item::DateTime => "datetime".to_owned(),
        Item::DateTimeOffset => "datetimeoffset".to_owned(),
        Item::RowId => "rowid".to_owned(),
    }
}

fn has_key_values(table: &Table, name: &str) -> bool {
    let metadata = table.metadata(table.find(name).unwrap()).unwrap();
    metadata.iter().any(|entry| entry.kind == "KeyValues")
}

/// The values after a round trip: one NaN, missing texts as empty ones, vectors in full.
fn as_csv_has_them(values: &Values<'static>) -> Values<'static> {
    match values {
        Values::Single(numbers) => {
            let nan = |number: &f32| if number.is_nan() { f32::NAN } else { *number };
            Values::Single(numbers.iter().map(nan).collect())
        }
        Values::Double(numbers) => {
            let nan = |number: &f64| if number.is_nan() { f64::NAN } else { *number };
            Values::Double(numbers.iter().map(nan).collect())
        }
        Values::Text(text) => {
            Values::Text(text.iter().map(|text| Some(text.unwrap_or_default())).collect())
        }
        Values::OffsetTime { offset_minutes, ticks } => {
            let both = ticks.iter().zip(offset_minutes.iter());
            let minutes = both.map(|(&tick, &by)| if tick == i64::MIN { 0 } else { by });
            Values::OffsetTime { offset_minutes: minutes.collect(), ticks: ticks.clone() }
        }
        Values::Vector(vectors) => {
            let length = vectors.row(0).map_or(0, |row| row.length());
            let items = as_csv_has_them(&vectors.dense_items(1 << 30).unwrap().into_owned());
            Values::Vector(Vectors::dense(length, vectors.len(), items))
        }
        other => other.slice(0..other.len()).into_owned(),
    }
}

#[test]
fn every_file_comes_back_from_csv() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, back) = (folder.path().join("t.csv"), folder.path().join("t.idv"));
    let (mut columns, mut refused) = (0, 0);
    for path in samples() {
        let table = open(&path);
        for (name, codec) in visible(&table) {
            let item = codec.item();
            // Names that lists of names cannot say.
            if name.contains([',', '=']) || name.is_empty() {
                continue;
            }
            let written = run(&path, &csv, &["--columns", &name, "-f"]);
            if written.code != Some(0) {
                let error = written.stderr;
                let is_variable = matches!(&codec, Codec::Vector(v) if v.length().is_none());
                let is_year = error.contains("are not within the years 1 to 9999");
                assert!(is_variable || is_year || error.contains("within a day"), "{error}");
                refused += 1;
                continue;
            }
            let schema = format!("{name}={}", type_name(&table, &name, item));
            let back = convert(&csv, &back, &["--schema", &schema, "-f"]);
            let (before, after) = (read(&table, &name).1, read(&back, &name).1);
            let is_key = matches!(item, Item::Key(_));
            if !is_key {
                let expected = as_csv_has_them(&before);
                assert_eq!(hash(&expected), hash(&after), "{}: {name}", path.display());
            }
            // Keys have other numbers, but the same texts.
            let first = fs::read(&csv).unwrap();
            run(&folder.path().join("t.idv"), &csv, &["-f"]).good();
            assert_eq!(first, fs::read(&csv).unwrap(), "{}: {name}", path.display());
            columns += 1;
        }
    }
    assert!(columns >= 20 && refused < columns, "{columns} columns, {refused} refused");
}
