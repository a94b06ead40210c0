//! From and to Parquet files.

use super::*;

/// Files with counts that once ended the process, for lack of memory, or kept it busy: the decoder
/// believed them.
#[test]
fn counts_are_checked_before_the_decoder_uses_them() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.idv");
    let root = tl_testdata::shipped!("regressions/parquet");
    for (name, expected) in [
        ("booleans_without_bytes", "byte 41: damaged header: 3 booleans, expected no list"),
        ("delta-count-1.parquet", "values of DELTA_BYTE_ARRAY in a page, expected at most"),
        ("delta-count-2.parquet", "values of DELTA_BYTE_ARRAY in a page, expected at most"),
        ("delta-count-3.parquet", "values of DELTA_BYTE_ARRAY in a page, expected at most"),
    ] {
        let error = run(&root.join(name), &output, &[]).error(1);
        assert!(error.contains(expected), "{error}");
    }
}

/// Files that make the decoder panic.
#[tl_testdata::needs("formats/parquet_damaged")]
#[test]
fn a_panic_of_the_decoder_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.idv");
    let damaged = tl_testdata::path!("formats/parquet_damaged");
    for name in ["panic-1.parquet", "panic-2.parquet", "panic-3.parquet"] {
        let error = run(&damaged.join(name), &output, &["-f"]).error(1);
        assert!(error.contains("row group 0, "), "{error}");
    }
}

#[test]
fn a_table_is_parquet_and_a_table_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut columns = columns();
    // The year 1 and a tick of 100 ns have no unit in common.
    for (column, values) in &mut columns {
        let seconds = |ticks: &[i64]| -> Vec<i64> {
            ticks
                .iter()
                .map(|&tick| if tick == i64::MIN { tick } else { tick - tick % 10 })
                .collect()
        };
        *values = match std::mem::replace(values, Values::Byte(vec![].into())) {
            Values::Int64(ticks) if column.name != "n" => Values::Int64(seconds(&ticks).into()),
            Values::OffsetTime { ticks, .. } => Values::OffsetTime {
                offset_minutes: vec![-90, 60, 0].into(),
                ticks: seconds(&ticks).into(),
            },
            other => other,
        };
    }
    let source = write(folder.path(), "in.idv", &idv(&columns));
    run(&source, &at("t.parquet"), &[]).good();
    let back = convert(&at("t.parquet"), &at("back.idv"), &[]);
    for (column, values) in &columns {
        if column.name == "label" {
            let renumbered = Values::UInt32(vec![1, 0, 2].into());
            check(&back, "label", &column.codec, &renumbered);
        } else {
            check(&back, &column.name, &column.codec, values);
        }
    }
    let chosen = convert(&at("t.parquet"), &at("some.idv"), &["--columns", "f"]);
    assert_eq!(chosen.columns().len(), 1);
}

/// The values of keys in sequence, and the lengths of vectors.
fn meanings(table: &Table, name: &str) -> (Vec<u32>, Vec<Option<Vec<u8>>>) {
    let metadata = table.metadata(table.find(name).unwrap()).unwrap();
    let entry = metadata.iter().find(|entry| entry.kind == "KeyValues").unwrap();
    let Values::Vector(meanings) = table.metadata_value(entry).unwrap() else { panic!() };
    let meanings = meanings.dense_items(1 << 30).unwrap();
    let (keys, lengths) = match read(table, name).1 {
        Values::Vector(vectors) => {
            let items = vectors.dense_items(1 << 30).unwrap().into_owned();
            (items, vectors.rows().map(|row| row.length()).collect())
        }
        keys => (keys, Vec::new()),
    };
    let keys: Vec<usize> = match keys {
        Values::Byte(keys) => keys.iter().map(|&key| usize::from(key)).collect(),
        Values::UInt16(keys) => keys.iter().map(|&key| usize::from(key)).collect(),
        Values::UInt32(keys) => keys.iter().map(|&key| key as usize).collect(),
        other => panic!("{other:?}"),
    };
    let meaning = |key: usize| hash(&meanings.slice(key - 1..key));
    (lengths, keys.into_iter().map(|key| (key > 0).then(|| meaning(key))).collect())
}

#[test]
fn every_file_comes_back_from_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let (parquet, back) = (folder.path().join("t.parquet"), folder.path().join("t.idv"));
    let (mut columns, mut refused) = (0, 0);
    for path in samples() {
        let table = open(&path);
        for (name, codec) in visible(&table) {
            if name.contains([',', '=']) || name.is_empty() {
                continue;
            }
            let write =
                |unit| run(&path, &parquet, &["--columns", &name, "-f", "--time-unit", unit]);
            let mut written = write("us");
            if written.code != Some(0) {
                written = write("ns");
            }
            if written.code != Some(0) {
                let is_time = matches!(codec.item(), Item::DateTime | Item::DateTimeOffset);
                assert!(is_time && written.stderr.contains("cannot be stored in"), "{written:?}");
                refused += 1;
                continue;
            }
            let back = convert(&parquet, &back, &["-f"]);
            let (before, after) = (read(&table, &name).1, read(&back, &name).1);
            if matches!(codec.item(), Item::Key(_)) && has_key_values(&table, &name) {
                let [before, after] = [&table, &back].map(|table| meanings(table, &name));
                assert_eq!(before, after, "{}: {name}", path.display());
            } else {
                let expected = match before {
                    before @ Values::OffsetTime { .. } => as_csv_has_them(&before),
                    before => before,
                };
                assert_eq!(hash(&expected), hash(&after), "{}: {name}", path.display());
            }
            columns += 1;
        }
    }
    assert!(columns >= 20 && refused < columns, "{columns} columns, {refused} refused");
}
