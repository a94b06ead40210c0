//! Arrays in files, as NumPy and zarr-python write them (`testdata/arrays`): the same batches from every
//! format, on a disk and in a store.

use std::path::{Path, PathBuf};

use tl_pipeline::{
    Batch, ColumnValues, Columns, Content, Dataset, Loader, LoaderConfig, PipelineError, Shuffle,
    Table, TableError, Work,
};

use super::array_files::Written;
use crate::memory::config;
use crate::store::MemoryStore;

pub(super) fn folder() -> PathBuf {
    tl_testdata::shipped!("arrays")
}

/// The rows of a column as the table has them.
pub(super) fn rows(table: &dyn Table, name: &str) -> Result<Vec<Vec<u8>>, TableError> {
    let place = table.columns().iter().position(|column| column.name == name).unwrap();
    let Content::Numbers { number, shape, .. } = &table.columns()[place].content else {
        unreachable!("{name}: {:?}", table.columns()[place].content)
    };
    let mut out = vec![0; number.bytes() * shape.iter().product::<usize>()];
    let values = table.values(place)?;
    let mut block = None;
    let row = |row| {
        match &values {
            ColumnValues::Whole(values) => values.write(row, &mut out)?,
            ColumnValues::Blocks { rows, .. } => {
                let known = block.take().filter(|(number, _)| *number == row / rows);
                let known = match known {
                    Some(known) => known,
                    None => (row / rows, table.load(place, row / rows)?),
                };
                block.insert(known).1.write(row % rows, &mut out)?;
            }
            other => unreachable!("{other:?}"),
        }
        Ok(out.clone())
    };
    (0..table.row_count()).map(row).collect()
}

fn dataset(path: &Path) -> Dataset {
    Dataset::open(&[path]).unwrap()
}

/// The rows of the array that NumPy saved.
pub(super) fn saved(name: &str) -> Vec<Vec<u8>> {
    let dataset = dataset(&folder().join(format!("{name}.npy")));
    rows(dataset.tables().next().unwrap(), "array").unwrap()
}

const TYPES: [&str; 12] = [
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
    "float32", "float64",
];

#[test]
fn members_and_arrays_of_groups_are_columns_of_all_types() {
    for file in
        ["stored.npz", "deflated.npz", "big_endian.npz", "types.zarr", "types.zarr/zarr.json"]
    {
        let dataset = dataset(&folder().join(file));
        let table = dataset.tables().next().unwrap();
        assert_eq!(table.row_count(), 11, "{file}");
        for name in TYPES {
            assert_eq!(rows(table, name).unwrap(), saved(name), "{file} {name}");
        }
        let others: Vec<_> = table.columns().iter().skip(TYPES.len()).collect();
        let reasons: Vec<_> = others.iter().map(|column| &column.content).collect();
        if file == "stored.npz" {
            let unreadable = |reason: &str| Content::Unreadable { reason: reason.to_owned() };
            let words = "array of dtype `<U1`, expected bool, integers of up to 64 bits, float16, \
                         float32 or float64";
            let scalar = unreadable("an array without dimensions has no rows");
            assert_eq!(reasons, [&scalar, &unreadable(words)]);
        } else {
            assert!(reasons.is_empty(), "{file}: {reasons:?}");
        }
        for column in 0..TYPES.len() {
            table.verify(column).unwrap();
        }
    }
    let listed = dataset(&folder().join("listed.zarr"));
    let listed = listed.tables().next().unwrap();
    let names: Vec<_> = listed.columns().iter().map(|column| &*column.name).collect();
    assert_eq!(names, ["float32", "int16"]);
    assert_eq!(rows(listed, "int16").unwrap(), saved("int16"));
}

#[test]
fn all_forms_of_chunks_have_the_numbers_of_the_array() {
    let expected = saved("photo");
    for form in
        ["plain", "rows", "big", "zstd", "gzip", "one", "shards", "shards_first", "shards_crc"]
    {
        let dataset = dataset(&folder().join(format!("photo_{form}.zarr")));
        let table = dataset.tables().next().unwrap();
        assert_eq!((table.format(), table.bytes()), ("zarr", Some(330)));
        assert_eq!(rows(table, "array").unwrap(), expected, "{form}");
    }
    for fill in ["nan", "inf", "number"] {
        let name = format!("missing_{fill}");
        let dataset = dataset(&folder().join(format!("{name}.zarr")));
        let found = rows(dataset.tables().next().unwrap(), "array").unwrap();
        assert_eq!(found, saved(&name), "{fill}");
    }
}

#[test]
fn codecs_that_are_not_read_are_named() {
    let reason = |form: &str| {
        let dataset = dataset(&folder().join(format!("photo_{form}.zarr")));
        let error = Loader::new(
            dataset,
            config(Work::Columns(Columns {
                columns: Some(vec!["array".into()]),
                ..Columns::default()
            })),
        );
        error.unwrap_err().to_string()
    };
    let expected = |what: &str| format!("column `array` is not an array of numbers: codec {what}");
    assert_eq!(reason("blosc"), expected("`blosc`, expected gzip, zstd or crc32c"));
    let first = "`transpose`, expected bytes or sharding_indexed as the first one";
    assert_eq!(reason("transposed"), expected(first));
}

/// All batches of the columns, as bytes, with the numbers of their rows.
fn batches(dataset: Dataset, workers: usize, block_bytes: u64) -> Vec<(Vec<u64>, Vec<Vec<u8>>)> {
    let columns = Columns { block_bytes, ..Columns::default() };
    let loader = Loader::new(
        dataset,
        LoaderConfig {
            batch_size: 4,
            workers,
            sampler: Shuffle::Full.into(),
            seed: 7,
            ..LoaderConfig::new(Work::Columns(columns))
        },
    );
    let loader = loader.unwrap();
    let batch = |batch: Result<Batch, PipelineError>| {
        let batch = batch.unwrap();
        let columns = batch.columns().map(|column| column.bytes.to_vec()).collect();
        (batch.indices().to_vec(), columns)
    };
    loader.epoch(2).map(batch).collect()
}

#[test]
fn batches_are_the_same_bytes_from_every_format() {
    for case in 0..60 {
        let root = tempfile::tempdir().unwrap();
        let written = Written::random(root.path(), case);
        let expected = batches(dataset(&written.npy), 1, 0);
        let count: usize = expected.iter().map(|(indices, _)| indices.len()).sum();
        assert_eq!(count, written.rows);
        let dense: Vec<u8> = expected
            .iter()
            .flat_map(|(indices, columns)| {
                let row_bytes = written.data.len() / written.rows;
                let row = |&index: &u64| &written.data[index as usize * row_bytes..][..row_bytes];
                let slices: Vec<u8> =
                    indices.iter().flat_map(|index| row(index).to_vec()).collect();
                assert_eq!(columns[0], slices, "case {case}");
                slices
            })
            .collect();
        assert_eq!(dense.len(), written.data.len());
        for path in &written.others {
            for (workers, block_bytes) in [(1, 0), (3, 100)] {
                let found = batches(dataset(path), workers, block_bytes);
                assert_eq!(found, expected, "case {case}: {}", path.display());
            }
        }
    }
}

#[test]
fn arrays_in_a_store_are_those_of_the_disk() {
    let store = MemoryStore::default();
    for name in ["stored.npz", "deflated.npz", "types.zarr", "listed.zarr", "photo_shards.zarr"] {
        store.upload(&folder().join(name), &format!("mem://bucket/{name}"));
        let local = batches(dataset(&folder().join(name)), 1, 0);
        let slash = if name.ends_with("zarr") { "/" } else { "" };
        let remote = store.open_all(&[&format!("mem://bucket/{name}{slash}")]);
        assert_eq!(batches(remote, 2, 0), local, "{name}");
        if name.ends_with("zarr") {
            let remote = store.open_all(&[&format!("mem://bucket/{name}/zarr.json")]);
            assert_eq!(batches(remote, 2, 0), local, "{name}");
        }
    }
}
