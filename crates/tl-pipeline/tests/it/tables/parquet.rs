//! Parquet files as tables: the same batches in any order, by any number of workers, and from files
//! that have images too.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use tl_pipeline::{Columns, ColumnsError, Dataset, Fields, LoaderConfig, PipelineError, Shuffle};

use super::files::{columns_of, loader_with};

fn table(name: &str) -> PathBuf {
    let folder = tl_testdata::shipped!("parquet/tables");
    folder.join(format!("{name}.parquet"))
}

/// The listed integers of a column; the least number for a null.
fn listed(name: &str, column: &str) -> Vec<i64> {
    let text = std::fs::read(table(name).with_file_name("expected.json")).unwrap();
    let cases: Value = serde_json::from_slice(&text).unwrap();
    let values = cases[name][column].as_array().unwrap();
    let number = |value: &Value| value.as_str().map_or(i64::MIN, |text| text.parse().unwrap());
    values.iter().map(number).collect()
}

#[test]
fn batches_have_the_values_of_their_rows() {
    for name in ["pyarrow_default", "pyarrow_nulls", "polars_nulls", "duckdb_flat", "spark_nulls"] {
        let expected = listed(name, "i64");
        let columns = || Columns {
            columns: Some(vec!["i64".into()]),
            features: ["i32", "f64", "bool"].map(String::from).to_vec(),
            label: Some("i64".into()),
            ..Columns::default()
        };
        let mut seen = BTreeMap::new();
        for (workers, shuffle) in [(1, Shuffle::None), (3, Shuffle::Full)] {
            let fields = Fields { bytes: vec!["text".to_owned()], ..Fields::default() };
            let loader = loader_with(&[table(name)], columns(), |config| LoaderConfig {
                batch_size: 7,
                workers,
                sampler: shuffle.into(),
                fields,
                ..config
            });
            let mut rows = 0;
            for batch in loader.epoch(1) {
                let batch = batch.unwrap();
                let numbers = batch.column_named("i64").unwrap().numbers::<i64>().unwrap().to_vec();
                let features = batch.column_named("features").unwrap();
                assert_eq!(features.shape(), [batch.len(), 3]);
                let features = features.numbers::<f32>().unwrap();
                for (row, &index) in batch.indices().iter().enumerate() {
                    let number = expected[usize::try_from(index).unwrap()];
                    assert_eq!(numbers[row], number, "{name} {index}");
                    let label = if number == i64::MIN { -1 } else { number };
                    assert_eq!(batch.labels()[row], label);
                    // NaN for nulls, so the bits are compared.
                    let bits = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    let found =
                        (bits(&features[row * 3..][..3]), batch.bytes(0, row).map(<[u8]>::to_vec));
                    let first = seen.entry(index).or_insert_with(|| found.clone());
                    assert_eq!(*first, found, "{name} {index}");
                    rows += 1;
                }
            }
            assert_eq!(rows, 60);
        }
        let has_nan = seen.values().any(|(bits, _)| f32::from_bits(bits[0]).is_nan());
        assert_eq!(has_nan, name != "pyarrow_default");
    }
}

#[test]
fn lists_of_one_length_are_arrays() {
    let loader = columns_of(&[table("datasets_lists")], Columns::default());
    let batch = loader.epoch(0).next().unwrap().unwrap();
    assert_eq!(batch.column_named("vector").unwrap().shape(), [batch.len(), 3]);
    assert_eq!(batch.column_named("matrix").unwrap().shape(), [batch.len(), 2, 3]);
}

#[test]
fn the_work_decides_between_samples_and_rows() {
    let file = table("..").with_file_name("../datasets_5_2.parquet");
    let dataset = Dataset::open(&[&file]).unwrap();
    assert!(dataset.tables().next().is_none());
    let rows = dataset.as_tables().unwrap().unwrap();
    let names: Vec<_> = rows.tables().flat_map(|table| table.columns()).map(|c| &*c.name).collect();
    assert_eq!(names, ["image", "label", "caption"]);
    let columns = Columns { label: Some("label".into()), ..Columns::default() };
    let bytes = ["image", "caption"].map(String::from).to_vec();
    let fields = Fields { bytes, ..Fields::default() };
    let loader = loader_with(&[&file], columns, |config| LoaderConfig { fields, ..config });
    let batch = loader.epoch(0).next().unwrap().unwrap();
    for (row, &index) in batch.indices().iter().enumerate() {
        let mut image = Vec::new();
        dataset.read_into(index, &mut image).unwrap();
        assert_eq!(batch.bytes(0, row), Some(&*image));
        assert_eq!(Some(batch.labels()[row]), dataset.label(index));
    }
    // Files with other columns are not one table, and folders are none.
    let error = Dataset::open(&[table("datasets_lists"), table("duckdb_flat")]).unwrap_err();
    assert!(matches!(error, PipelineError::Columns(ColumnsError::Mismatch { .. })), "{error:?}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.jpg"), b"\xff\xd8\xff").unwrap();
    let folder = Dataset::open(&[folder.path()]).unwrap();
    assert!(folder.as_tables().unwrap().is_none());
}
