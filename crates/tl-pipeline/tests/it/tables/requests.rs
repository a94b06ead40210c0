//! Batches have the requested columns, and impossible requests are refused by name.

use idv_format::Compression;
use tl_pipeline::{
    Batching, Buckets, CacheConfig, CacheKind, ColumnRequest, ColumnType, Columns, ColumnsError,
    Dataset, Fields, Loader, LoaderConfig, MemoryCache, PipelineError, Readers, Shuffle, Work,
};
use tl_transform::Recipe;

use super::files::{SLOTS, columns_of, dense, key, loader_with, sparse, text, write_idv, x};
use crate::memory::{bmps, config};

const ROWS: u64 = 23;

fn idv(root: &tempfile::TempDir, name: &str, compression: Compression) -> std::path::PathBuf {
    let path = root.path().join(name);
    write_idv(&path, 0..ROWS, compression);
    path
}

#[test]
fn every_column_has_its_type_its_shape_and_its_values() {
    let root = tempfile::tempdir().unwrap();
    for compression in [Compression::None, Compression::Deflate] {
        let path = idv(&root, "a.idv", compression);
        let loader = columns_of(&[&path], Columns::default());
        let mut rows = 0;
        for batch in loader.epoch(0) {
            let batch = batch.unwrap();
            let found: Vec<_> = batch.columns().map(|column| column.spec.clone()).collect();
            let names: Vec<&str> = found.iter().map(|spec| &*spec.name).collect();
            assert_eq!(names, ["id", "x", "flag", "key", "dense", "sparse"]);
            use ColumnType::{Bool, F32, I16, I64, U8};
            let types: Vec<_> = found.iter().map(|spec| spec.number).collect();
            assert_eq!(types, [I64, F32, Bool, U8, F32, I16]);
            let named = |name| batch.column_named(name).unwrap();
            assert_eq!(named("dense").shape(), [batch.len(), 2, 2]);
            assert_eq!(named("id").shape(), [batch.len()]);
            let vectors = named("dense").numbers::<f32>().unwrap();
            let sparse_vectors = named("sparse").numbers::<i16>().unwrap();
            for (row, &index) in batch.indices().iter().enumerate() {
                assert_eq!(named("id").numbers::<i64>().unwrap()[row], index as i64 - 2);
                assert_eq!(named("x").numbers::<f32>().unwrap()[row], x(index));
                assert_eq!(named("flag").numbers::<u8>().unwrap()[row], u8::from(index % 3 == 0));
                assert_eq!(named("key").numbers::<u8>().unwrap()[row], key(index));
                let slots = SLOTS as usize;
                assert_eq!(vectors[row * slots..][..slots], dense(index));
                assert_eq!(sparse_vectors[row * slots..][..slots], sparse(index));
                rows += 1;
            }
            assert!(named("x").numbers::<i64>().is_none() && batch.column_named("text").is_none());
            assert!(batch.columns().all(|column| column.bytes.as_ptr().addr() % 64 == 0));
            assert!(batch.labels().iter().all(|&label| label == -1));
        }
        assert_eq!(rows, ROWS);
    }
}

#[test]
fn features_are_one_matrix_and_labels_count_from_zero() {
    let root = tempfile::tempdir().unwrap();
    let path = idv(&root, "a.idv", Compression::Deflate);
    let features = ["x", "dense", "flag", "key", "sparse"].map(String::from).to_vec();
    let columns = Columns { features, label: Some("key".into()), ..Columns::default() };
    let loader = columns_of(&[&path], columns);
    for batch in loader.epoch(1) {
        let batch = batch.unwrap();
        let names: Vec<_> = batch.columns().map(|column| column.spec.name.clone()).collect();
        assert_eq!(names, ["id", "features"]);
        let matrix = batch.column_named("features").unwrap();
        assert_eq!(matrix.shape(), [batch.len(), 11]);
        for (row, &index) in batch.indices().iter().enumerate() {
            let found = &matrix.numbers::<f32>().unwrap()[row * 11..][..11];
            assert_eq!((found[0], &found[1..5]), (x(index), &dense(index)[..]));
            assert_eq!(found[5], if index % 3 == 0 { 1.0 } else { 0.0 });
            let expected = key(index);
            assert!(if expected == 0 {
                found[6].is_nan()
            } else {
                found[6] == f32::from(expected - 1)
            });
            assert_eq!(found[7..], sparse(index).map(f32::from));
            assert_eq!(batch.labels()[row], i64::from(expected) - 1);
        }
    }
}

#[test]
fn texts_and_lists_are_bytes_row_by_row() {
    let root = tempfile::tempdir().unwrap();
    let path = idv(&root, "a.idv", Compression::Deflate);
    let fields = Fields { bytes: vec!["text".into(), "list".into()], ..Fields::default() };
    let columns = Columns { columns: Some(vec![]), ..Columns::default() };
    let loader = loader_with(&[&path], columns, |config| LoaderConfig { fields, ..config });
    for batch in loader.epoch(0) {
        let batch = batch.unwrap();
        assert_eq!(batch.columns().len(), 0);
        for (row, &index) in batch.indices().iter().enumerate() {
            assert_eq!(batch.bytes(0, row), Some(text(index).as_bytes()));
            let list: Vec<u8> = (0..index as u16 % 3).flat_map(u16::to_ne_bytes).collect();
            assert_eq!(batch.bytes(1, row), Some(&list[..]));
        }
    }
}

#[test]
fn numbers_come_as_floats_when_they_are_asked_for() {
    let root = tempfile::tempdir().unwrap();
    let path = idv(&root, "a.idv", Compression::None);
    let request = |name: &str| ColumnRequest { number: Some(ColumnType::F32), ..name.into() };
    let columns = Some(vec![request("sparse"), "x".into(), request("id")]);
    let loader = columns_of(&[&path], Columns { columns, ..Columns::default() });
    for batch in loader.epoch(0) {
        let batch = batch.unwrap();
        let column = |name| batch.column_named(name).unwrap();
        assert_eq!(column("sparse").shape(), [batch.len(), 4]);
        for (row, &index) in batch.indices().iter().enumerate() {
            let expected = sparse(index).map(f32::from);
            assert_eq!(column("sparse").numbers::<f32>().unwrap()[row * 4..][..4], expected);
            assert_eq!(column("id").numbers::<f32>().unwrap()[row], index as f32 - 2.0);
        }
    }
}

#[test]
fn files_stand_side_by_side_when_their_columns_are_the_same() {
    let root = tempfile::tempdir().unwrap();
    let paths = [root.path().join("1"), root.path().join("2"), root.path().join("3")];
    write_idv(&paths[0], 0..10, Compression::None);
    write_idv(&paths[1], 10..10, Compression::Deflate);
    write_idv(&paths[2], 10..ROWS, Compression::Deflate);
    let whole = idv(&root, "whole", Compression::None);
    let rows = |paths: &[std::path::PathBuf]| {
        let loader = columns_of(paths, Columns::default());
        let batches = loader.epoch(3).map(|batch| {
            let batch = batch.unwrap();
            batch.columns().map(|column| column.bytes.to_vec()).collect::<Vec<_>>()
        });
        batches.collect::<Vec<_>>()
    };
    assert_eq!(rows(&paths), rows(&[whole]));
    let other = root.path().join("other.tbf");
    super::files::write_tbf(&other, 3, tbf_format::BuildOptions::default());
    let error = Dataset::open(&[&paths[0], &other]).unwrap_err();
    let PipelineError::Columns(ColumnsError::Mismatch { column: 0, found, expected, .. }) = error
    else {
        panic!("{error}");
    };
    assert_eq!((&*found, &*expected), ("`id`, u8 of shape [16]", "`id`, i64"));
    // The same keys by other names.
    let named = ["x", "y"].map(|name| {
        let path = root.path().join(name);
        super::files::write_keys(&path, &[name, "z"]);
        path
    });
    assert!(Dataset::open(&[&named[0], &named[0]]).is_ok());
    let error = Dataset::open(&named).unwrap_err().to_string();
    assert!(error.contains("column 0 is `key`, keys of 2 categories with the names "), "{error}");
    let error = Dataset::open(&[paths[0].as_path(), root.path()]).unwrap_err();
    assert!(matches!(error, PipelineError::Columns(ColumnsError::NoTable { .. })), "{error}");
}

#[test]
fn what_cannot_be_had_is_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    let path = idv(&root, "a.idv", Compression::None);
    let dataset = || Dataset::open(&[&path]).unwrap();
    let refused = |config: LoaderConfig| Loader::new(dataset(), config).unwrap_err().to_string();
    let columns = |columns| refused(config(Work::Columns(columns)));
    let check = |found: String, expected: &str| assert!(found.contains(expected), "{found}");
    let some = |name: &str| Columns { columns: Some(vec![name.into()]), ..Columns::default() };
    check(columns(some("y\n")), r"no column `y\x0a`; the columns are `id`, `x`, `flag`");
    check(columns(some("text")), "column `text` is not an array of numbers: text");
    check(columns(some("list")), "vectors of different lengths");
    let features = Columns { features: vec!["text".into()], ..Columns::default() };
    check(columns(features), "`text` is not an array of numbers");
    let label = |name: &str| Columns { label: Some(name.into()), ..Columns::default() };
    check(columns(label("dense")), "column `dense` cannot be the label, expected one number a row");
    check(columns(label("text")), "`text` is not an array of numbers");
    let request = ColumnRequest { number: Some(ColumnType::I32), ..ColumnRequest::new("id") };
    let typed = Columns { columns: Some(vec![request]), ..Columns::default() };
    check(columns(typed), "column `id` is i64: expected that type or f32, not i32");
    let twice = Columns { columns: Some(vec!["x".into(), "x".into()]), ..Columns::default() };
    check(columns(twice), "duplicate column `x`");
    check(
        columns(Columns { columns: Some(vec![]), ..Columns::default() }),
        "no column was requested",
    );
    let neighbors = Some(tl_pipeline::Neighbors { fanouts: vec![2], ..Default::default() });
    check(columns(Columns { neighbors, ..Columns::default() }), "a.idv: the rows have no edges");

    let all = || config(Work::Columns(Columns::default()));
    let fields = Fields { bytes: vec!["x".into()], ..Fields::default() };
    check(refused(LoaderConfig { fields, ..all() }), "`x` is not a byte column");
    check(refused(LoaderConfig { readers: Readers::Threads(1), ..all() }), "readers");
    let memory = Some(MemoryCache { kind: CacheKind::Encoded, bytes: 1 << 20 });
    let cache = CacheConfig { memory, disk: None };
    check(refused(LoaderConfig { cache, ..all() }), "a.idv: a table has columns, not");
    let batching = Batching::Buckets(Buckets::default());
    check(refused(LoaderConfig { batching, ..all() }), "produces columns");
    let recipe = Recipe::imagenet_train(8).unwrap();
    check(refused(config(Work::Images(recipe))), "a.idv: a table has columns, not images");
    check(refused(config(Work::Views)), "a.idv: a table has columns, not samples");
    let error = Loader::new(bmps(1), all()).unwrap_err();
    assert!(matches!(error, PipelineError::Columns(ColumnsError::NoTable { .. })), "{error}");
}

/// A budget has room for blocks, and changes nothing; one without is refused.
#[test]
fn blocks_are_within_the_memory_budget() {
    let root = tempfile::tempdir().unwrap();
    let path = idv(&root, "a.idv", Compression::Deflate);
    let digest = |block_bytes, memory_budget| {
        let columns = Columns { block_bytes, ..Columns::default() };
        let loader = loader_with(&[&path], columns, |config| LoaderConfig {
            memory_budget,
            sampler: Shuffle::Full.into(),
            ..config
        });
        let bytes = loader.epoch(0).map(|batch| {
            let batch = batch.unwrap();
            batch.columns().map(|column| column.bytes.to_vec()).collect::<Vec<_>>()
        });
        (bytes.collect::<Vec<_>>(), loader.memory().caches)
    };
    let (expected, all) = digest(0, None);
    assert_eq!(all, 1 << 30);
    for (block_bytes, memory_budget, kept) in [
        (1, None, 1),
        (200, None, 200),
        (0, Some(200 << 20), 50 << 20),
        (300, Some(200 << 20), 300),
    ] {
        let (found, caches) = digest(block_bytes, memory_budget);
        assert!(found == expected && caches == kept, "{block_bytes} {memory_budget:?} {caches}");
    }
    let columns = Columns { block_bytes: 1 << 30, ..Columns::default() };
    let memory_budget = Some(500 << 20);
    let config = LoaderConfig { memory_budget, ..config(Work::Columns(columns)) };
    let error = Loader::new(Dataset::open(&[&path]).unwrap(), config).unwrap_err();
    let PipelineError::MemoryBudget { required, .. } = error else { panic!("{error}") };
    assert!(required > 1 << 30, "{required}");
}
