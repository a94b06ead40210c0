//! Data sets that are opened by a shard index make the batches of their shards, in a store and on the
//! local disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tbl_io::{IndexOptions, IndexSummary, Location, index_shards};
use tl_pipeline::{Blocks, Dataset, Fields, LoaderConfig, Readers, Shuffle, Work};

use crate::memory::{config, train};
use crate::store::{MemoryStore, SAMPLES, containers, rows, upload, write_tar};

const UPDATE: IndexOptions = IndexOptions { sync: false, overwrite: false, update: true };

/// Indexes objects, and puts the index where it belongs.
fn index(store: &MemoryStore, root: &Path, urls: &[String]) -> (String, IndexSummary) {
    let path = root.join("objects.tlidx");
    let summary = index_shards(&store.stores(), urls, &path, UPDATE).unwrap();
    let folder = summary.folder.clone().unwrap();
    let url = format!("{}objects.tlidx", folder.url().unwrap());
    store.upload(&path, &url);
    store.reads();
    (url, summary)
}

fn is_file(path: &&PathBuf) -> bool {
    path.is_file()
}

#[test]
fn an_index_opens_the_samples_of_its_shards() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let paths = containers(root.path());
    let urls: Vec<String> = paths.iter().map(|path| upload(&store, path)).collect();
    let (indexed, summary) = index(&store, root.path(), &urls);
    assert_eq!(indexed, "mem://bucket/objects.tlidx");
    assert_eq!((summary.shards, summary.samples), (5, 5 * u64::from(SAMPLES)));
    let open = || store.open_all(&[&indexed]);
    let expected = || Dataset::open(&paths).unwrap();
    let opened = open();
    assert!(store.reads() <= 4, "magic, header, directory, parts");
    assert_eq!(opened.fingerprint().unwrap(), expected().fingerprint().unwrap());
    assert_eq!(opened.class_names(), expected().class_names());
    for (shard, url) in opened.shards().iter().zip(&urls) {
        assert_eq!(shard.location(), &Location::new(url));
    }
    for (local, stored) in expected().shards().iter().zip(opened.shards()).skip(1) {
        assert_eq!(local.notes(), stored.notes());
        assert_eq!(local.kind(), stored.kind());
    }
    for number in 0..opened.len() {
        assert_eq!(opened.entry(number).unwrap(), expected().entry(number).unwrap());
    }
    for work in [Work::Bytes, train()] {
        for sampler in [Shuffle::Full, Shuffle::Block { blocks: Blocks::Samples(4), window: 2 }] {
            for readers in [Readers::Planned, Readers::Workers] {
                let local = LoaderConfig { sampler: sampler.into(), ..config(work.clone()) };
                let stored = LoaderConfig { readers, ..local.clone() };
                assert!(rows(open(), stored) == rows(expected(), local), "{sampler}, {readers:?}");
            }
        }
    }
}

#[test]
fn labels_and_fields_come_by_an_index() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let fields = Fields { keys: true, bytes: vec!["txt".to_owned()], ..Fields::default() };
    for path in containers(root.path()).iter().filter(|path| !path.ends_with("v1.tbl")) {
        let url = upload(&store, path);
        let (indexed, _) = index(&store, root.path(), std::slice::from_ref(&url));
        let config = || LoaderConfig { fields: fields.clone(), ..config(Work::Bytes) };
        let expected = rows(Dataset::open(&[path]).unwrap(), config());
        assert!(rows(store.open_all(&[&indexed]), config()) == expected, "{url}");
        // The index and a shard beside it are two sources of one data set.
        let joined = store.open_all(&[&indexed, &url]);
        assert_eq!((joined.len(), joined.shards().len()), (2 * u64::from(SAMPLES), 2));
    }
}

#[test]
fn local_shards_are_indexed_by_their_path_below_the_index() {
    let root = tempfile::tempdir().unwrap();
    let paths = containers(root.path());
    let files: Vec<&PathBuf> = paths.iter().filter(is_file).collect();
    let path = root.path().join("a b.tlidx");
    let stores = tbl_io::Stores::new();
    index_shards(&stores, &files, &path, UPDATE).unwrap();
    let expected = || Dataset::open(&files).unwrap();
    assert_eq!(Dataset::open(&[&path]).unwrap().len(), expected().len());
    let opened = Dataset::open(&[&path]).unwrap();
    assert_eq!(opened.fingerprint().unwrap(), expected().fingerprint().unwrap());
    assert!(rows(opened, config(train())) == rows(expected(), config(train())));
    // The folder may move, with the times of its files.
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = elsewhere.path().join("moved");
    fs::rename(root.path(), &moved).unwrap();
    let opened = Dataset::open(&[moved.join("a b.tlidx")]).unwrap();
    assert_eq!(opened.len(), 4 * u64::from(SAMPLES));

    let index = |paths: &[&Path], target: &str| {
        let target = elsewhere.path().join(target);
        index_shards(&stores, paths, &target, UPDATE).map(|_| ()).unwrap_err().to_string()
    };
    fs::create_dir(elsewhere.path().join("sub")).unwrap();
    let outside = index(&[&moved.join("a.tar")], "sub/a.tlidx");
    assert!(outside.contains("a.tar: lies outside of "), "{outside}");
    let folder = index(&[&moved.join("folder")], "a.tlidx");
    assert!(folder.ends_with("is a local folder, expected a file or a folder of a store"));
    assert!(!elsewhere.path().join("a.tlidx").exists());
    assert_eq!(index(&[], "a.tlidx"), "no shards to index");
    // The versions of files mean nothing in a store, nor those of objects here.
    let store = MemoryStore::default();
    store.upload(&moved, "mem://b/moved");
    let error = Dataset::open_in(&store.stores(), &["mem://b/moved/a b.tlidx"]).unwrap_err();
    let elsewhere_now = "a b.tlidx: was made where its shards were, and they are elsewhere now: write \
                         it again with tl index";
    assert!(error.to_string().ends_with(elsewhere_now), "{error}");
    let nested = index(&[&moved.join("a b.tlidx")], "a.tlidx");
    assert!(nested.contains("at byte 0"), "{nested}");
}

#[test]
fn a_shard_that_changed_is_an_error_and_alone_is_indexed_again() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let tar = write_tar(root.path());
    let urls = ["mem://b/x/0.tar", "mem://b/x/y/1.tar"].map(str::to_owned);
    urls.iter().for_each(|url| store.upload(&tar, url));
    let (indexed, summary) = index(&store, root.path(), &urls);
    assert_eq!((indexed.as_str(), summary.unchanged), ("mem://b/x/objects.tlidx", 0));
    store.upload(&tar, &urls[1]);
    let opened = store.open_all(&[&indexed]);
    let mut bytes = Vec::new();
    opened.read_into(0, &mut bytes).unwrap();
    let error = opened.read_into(opened.len() - 1, &mut bytes).unwrap_err().to_string();
    assert_eq!(
        error,
        "mem://b/x/y/1.tar: sample 13 (bee/013.bmp): changed since it was indexed: expected \
         version `1`, found `2`; make mem://b/x/objects.tlidx anew with tl index"
    );
    let (_, summary) = index(&store, root.path(), &urls);
    assert_eq!((summary.shards, summary.unchanged), (2, 1));
    let opened = store.open_all(&[&indexed]);
    opened.read_into(opened.len() - 1, &mut bytes).unwrap();

    let local = root.path().join("local.tlidx");
    let options = IndexOptions { sync: false, ..IndexOptions::default() };
    index_shards(&tbl_io::Stores::new(), &[&tar], &local, options).unwrap();
    let exists = index_shards(&tbl_io::Stores::new(), &[&tar], &local, options).unwrap_err();
    assert!(exists.to_string().ends_with("the file exists already"), "{exists}");
    thread::sleep(Duration::from_millis(20));
    let content = fs::read(&tar).unwrap();
    fs::write(&tar, content).unwrap();
    let error = Dataset::open(&[&local]).unwrap_err().to_string();
    assert!(
        error.contains("a.tar: changed since it was indexed: expected version weak `"),
        "{error}"
    );
    let summary = index_shards(&tbl_io::Stores::new(), &[&tar], &local, UPDATE).unwrap();
    assert_eq!(summary.unchanged, 0);
    assert!(Dataset::open(&[&local]).is_ok());
}

#[test]
fn damage_of_an_index_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let paths = containers(root.path());
    let urls: Vec<String> = paths.iter().map(|path| upload(&store, path)).collect();
    let (indexed, _) = index(&store, root.path(), &urls);
    let good = fs::read(root.path().join("objects.tlidx")).unwrap();
    let open = |bytes: Vec<u8>| {
        store.put(&indexed, bytes);
        Dataset::open_in(&store.stores(), &[&indexed])
    };
    for len in (0..good.len()).step_by(7) {
        let error = open(good[..len].to_vec()).unwrap_err().to_string();
        assert!(error.starts_with("mem://bucket/objects.tlidx: at byte "), "{len}: {error}");
    }
    for at in (0..good.len()).step_by(3) {
        let mut damaged = good.clone();
        damaged[at] ^= 0x10;
        let error = open(damaged).unwrap_err().to_string();
        assert!(error.starts_with("mem://bucket/objects.tlidx: at byte "), "{at}: {error}");
    }
    assert!(open(good).is_ok());
}

#[test]
fn a_single_data_set_is_one_shard() {
    let root = tempfile::tempdir().unwrap();
    let tar = write_tar(root.path());
    let index = root.path().join("a.tlidx");
    let stores = tbl_io::Stores::new();
    index_shards(&stores, &[&tar], &index, UPDATE).unwrap();
    let opened = tbl_io::open(&index).unwrap();
    assert_eq!((opened.sample_count(), opened.location()), (14, &Location::new(&tar)));
    index_shards(&stores, &[&tar, &tar], &index, UPDATE).unwrap();
    let error = tbl_io::open(&index).unwrap_err().to_string();
    assert!(error.ends_with("a.tlidx: stands for 2 data sets, expected one"), "{error}");
}
