//! Shuffles by the pages of Parquet files: what they read, and the sources that have no blocks.

use std::path::PathBuf;

use tbl_io::{IndexOptions, index_shards};
use tl_pipeline::{
    Blocks, Dataset, Deal, Fields, Loader, LoaderConfig, LoaderNote, PipelineError, Readers,
    Sampler, Shard, Shuffle, ShuffleQuality, Tail, Together, Work,
};

use crate::memory::{bmps, config};
use crate::parquet_files::{Form, SAMPLES, block_ends, write_samples};
use crate::store::{MemoryStore, rows, upload};

const ROWS: usize = SAMPLES as usize;

fn of_source(window: u64) -> Sampler {
    Shuffle::Block { blocks: Blocks::Source, window }.into()
}

#[test]
fn the_blocks_of_a_file_are_its_pages_or_row_groups() {
    let root = tempfile::tempdir().unwrap();
    for form in Form::ALL {
        let dataset = Dataset::open(&[write_samples(root.path(), form)]).unwrap();
        let blocks = dataset.shards()[0].blocks().unwrap();
        assert_eq!(blocks.ends().unwrap(), block_ends(form, &[ROWS]), "{form:?}");
        let is_unpacked = [Form::Packed, Form::Gzip].contains(&form);
        assert_eq!(blocks.unpacked_bytes().unwrap() > 0, is_unpacked, "{form:?}");
        let quality = ShuffleQuality::measure(&of_source(1), &dataset, 1, 4).unwrap();
        assert_eq!(quality.together, Together::SourceBlock);
        assert!(quality.order.neighbours_together > 0.7, "{quality}");
        assert!(quality.to_string().contains("from the same block of the source"), "{quality}");
    }
}

#[test]
fn sources_without_blocks_are_refused_by_name() {
    let config = LoaderConfig { sampler: of_source(8), ..config(Work::Bytes) };
    let error = Loader::new(bmps(9), config).unwrap_err();
    assert_eq!(
        error.to_string(),
        "in memory has no blocks for `block:sourcex8`; state their samples, as in block:1024x8"
    );
    assert!(matches!(error, PipelineError::Sampler(_)), "{error:?}");
}

#[test]
fn memory_for_blocks_is_within_the_budget() {
    let root = tempfile::tempdir().unwrap();
    let path = write_samples(root.path(), Form::Gzip);
    let kept = |window, memory_budget| {
        let config =
            LoaderConfig { sampler: of_source(window), memory_budget, ..config(Work::Bytes) };
        let loader = Loader::new(Dataset::open(&[&path]).unwrap(), config).unwrap();
        let is_note = |note: &LoaderNote| matches!(note, LoaderNote::FewBlocks { .. });
        (loader.memory().caches, loader.notes().iter().any(is_note))
    };
    let (usual, has_note) = kept(2, Some(1 << 30));
    // Otherwise it is the usual memory, and the page that a worker unpacks.
    assert!((64 << 20..65 << 20).contains(&usual), "{usual}");
    assert!(!has_note);
    let (all, has_note) = kept(1 << 40, Some(1 << 30));
    assert!((64 << 20..65 << 20).contains(&all), "as much as the data have: {all}");
    assert!(!has_note);
}

/// The usual memory, or an eighth of the budget.
#[test]
fn memory_is_reserved_for_other_shuffles_too() {
    let root = tempfile::tempdir().unwrap();
    let gzip = write_samples(root.path(), Form::Gzip);
    let plain = write_samples(root.path(), Form::Plain);
    let caches = |paths: &[&PathBuf], shuffle: Shuffle, memory_budget, keys| {
        let fields = Fields { bytes: keys, ..Fields::default() };
        let sampler = shuffle.into();
        let config = LoaderConfig { sampler, memory_budget, fields, ..config(Work::Bytes) };
        let loader = Loader::new(Dataset::open(paths).unwrap(), config).unwrap();
        loader.memory().caches
    };
    let none = Vec::new();
    let usual = |paths: &[&PathBuf]| caches(paths, Shuffle::Full, Some(2 << 30), Vec::new());
    let of_one = usual(&[&gzip]);
    assert!((64 << 20..65 << 20).contains(&of_one), "{of_one}");
    assert_eq!(usual(&[&gzip, &gzip, &gzip]), of_one, "all files share it");
    assert_eq!(usual(&[&plain, &gzip]), of_one, "whichever is the first");
    let small = caches(&[&gzip], Shuffle::Full, Some(256 << 20), none.clone());
    assert!((32 << 20..33 << 20).contains(&small), "{small}");
    assert_eq!(caches(&[&plain], Shuffle::Full, Some(1 << 30), none), 0);
    let captions = caches(&[&plain], Shuffle::Full, Some(1 << 30), vec!["txt".to_owned()]);
    assert_eq!(captions, 64 << 20);
}

/// A page that has to be unpacked is received once in an epoch, whatever the workers do.
#[test]
fn every_page_is_read_once_in_an_epoch() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    for form in [Form::Plain, Form::Snappy, Form::Gzip, Form::Packed] {
        let path = write_samples(root.path(), form);
        let url = upload(&store, &path);
        let expected = rows(
            Dataset::open(&[&path]).unwrap(),
            LoaderConfig { sampler: of_source(3), ..config(Work::Bytes) },
        );
        for workers in [1, 4] {
            let config = LoaderConfig { sampler: of_source(3), workers, ..config(Work::Bytes) };
            let loader = Loader::new(store.open_all(&[&url]), config.clone()).unwrap();
            store.reads();
            assert_eq!(loader.epoch(0).map(|batch| batch.unwrap().len()).sum::<usize>(), ROWS);
            // The first page was read to see that it has images.
            let pages = block_ends(Form::Plain, &[ROWS]).len() as u64 - 1;
            // A dictionary is two more reads of its row group, of the header and of all.
            let dictionaries = if form == Form::Packed { 2 * 6 } else { 0 };
            assert_eq!(store.reads(), pages + dictionaries, "{form:?}, {workers} workers");
            assert!(rows(store.open_all(&[&url]), config) == expected, "{form:?}");
        }
    }
}

/// In every order that keeps neighbours together.
#[test]
fn every_local_page_is_unpacked_once_in_an_epoch() {
    let root = tempfile::tempdir().unwrap();
    let of_samples = Shuffle::Block { blocks: Blocks::Samples(8), window: 2 };
    let unpacked = |form, sampler: &Sampler, workers| {
        let dataset = Dataset::open(&[write_samples(root.path(), form)]).unwrap();
        let sampler = sampler.clone();
        let config = LoaderConfig { sampler, workers, ..config(Work::Bytes) };
        let loader = Loader::new(dataset, config).unwrap();
        loader.epoch(0).for_each(|batch| drop(batch.unwrap()));
        loader.dataset().shards()[0].blocks().unwrap().unpack_count()
    };
    let pages = block_ends(Form::Plain, &[ROWS]).len() as u64;
    for sampler in [of_source(3), Shuffle::None.into(), of_samples.into()] {
        for form in [Form::Gzip, Form::Packed] {
            for workers in [1, 4] {
                let found = unpacked(form, &sampler, workers);
                assert_eq!(found, pages, "{form:?}, {:?}, {workers} workers", sampler.shuffle);
            }
        }
        // The first page was looked at to see that it has images.
        assert_eq!(unpacked(Form::Plain, &sampler, 2), 1);
        assert_eq!(unpacked(Form::Snappy, &sampler, 2), 1);
    }
}

#[test]
fn lanes_of_blocks_are_read_by_one_rank_each() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let url = upload(&store, &write_samples(root.path(), Form::Gzip));
    let shuffle = Shuffle::Lanes { lanes: 2, blocks: Blocks::Source, window: 2, deal: Deal::Run };
    let reads = [0, 1].map(|rank| {
        let shard = Shard { rank, world: 2, tail: Some(Tail::Drop) };
        let config = LoaderConfig { sampler: shuffle.into(), shard, ..config(Work::Bytes) };
        let loader = Loader::new(store.open_all(&[&url]), config).unwrap();
        store.reads();
        loader.epoch(0).for_each(|batch| drop(batch.unwrap()));
        store.reads()
    });
    let pages = block_ends(Form::Gzip, &[ROWS]).len() as u64;
    // The first page is read when the file is opened.
    assert!((pages - 4..=pages).contains(&reads.iter().sum()), "{reads:?} of {pages}");
}

/// The index of a file knows where its values are, so that samples are requested as they are, together
/// with neighbours that are needed soon.
#[test]
fn an_index_spares_the_reads_of_pages() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let fields = Fields { keys: true, bytes: vec!["txt".to_owned()], ..Fields::default() };
    for form in Form::ALL {
        let path = write_samples(root.path(), form);
        let url = upload(&store, &path);
        let target = root.path().join("a.tlidx");
        let options = IndexOptions { sync: false, overwrite: true, update: false };
        let summary = index_shards(&store.stores(), &[&url], &target, options).unwrap();
        assert_eq!((summary.shards, summary.samples), (1, ROWS as u64));
        store.upload(&target, "mem://bucket/a.tlidx");
        let open = || store.open_all(&["mem://bucket/a.tlidx"]);
        let local = || Dataset::open(&[&path]).unwrap();
        store.reads();
        let opened = open();
        assert!(store.reads() <= 4, "magic, header, directory, parts");
        assert_eq!(opened.fingerprint().unwrap(), local().fingerprint().unwrap());
        assert_eq!(opened.class_names(), local().class_names());
        store.reads();
        for number in 0..opened.len() {
            assert_eq!(opened.facts(number).unwrap(), local().facts(number).unwrap(), "{form:?}");
        }
        assert_eq!(store.reads(), 0, "{form:?}");
        for sampler in [Shuffle::Full.into(), Shuffle::None.into(), of_source(2)] {
            let fields = fields.clone();
            let expected = LoaderConfig { sampler, fields, ..config(Work::Bytes) };
            for readers in [Readers::Planned, Readers::Workers] {
                let stored = LoaderConfig { readers, ..expected.clone() };
                assert!(rows(open(), stored) == rows(local(), expected.clone()), "{form:?}");
            }
        }
        // On the local disk, the same index of the same file.
        let summary = index_shards(&tl_pipeline::stores(), &[&path], &target, options).unwrap();
        assert_eq!(summary.samples, ROWS as u64);
        let indexed = Dataset::open(&[&target]).unwrap();
        assert!(rows(indexed, config(Work::Bytes)) == rows(local(), config(Work::Bytes)));
    }
}

#[test]
fn random_samples_cost_a_page_each_and_with_an_index_their_own_bytes() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let url = upload(&store, &write_samples(root.path(), Form::Plain));
    let target = root.path().join("a.tlidx");
    let options = IndexOptions { sync: false, overwrite: true, update: false };
    index_shards(&store.stores(), &[&url], &target, options).unwrap();
    store.upload(&target, "mem://bucket/a.tlidx");
    let local = Dataset::open(&[root.path().join("Plain.parquet")]).unwrap();
    let first_of_pages = [0].into_iter().chain(block_ends(Form::Plain, &[ROWS])).take(10);
    let first_of_pages: Vec<u64> = first_of_pages.collect();
    let bytes_of = |&sample: &u64| local.facts(sample).unwrap().bytes;
    let sizes: u64 = first_of_pages.iter().map(bytes_of).sum();
    let cost = |url: &str| {
        let opened = store.open_all(&[url]);
        let mut bytes = Vec::new();
        store.reads();
        store.received();
        let mut read = |sample| opened.read_into(sample, &mut bytes).unwrap();
        first_of_pages.iter().for_each(|&sample| read(sample));
        let reads = store.reads();
        let received = store.received();
        read(1);
        ([reads, store.reads()], received)
    };
    // The first page was read to see that it has images.
    let (reads, received) = cost(&url);
    assert_eq!(reads, [9, 0], "a page each, which is kept");
    assert!(received > 2 * sizes, "{received} for {sizes}");
    let (reads, received) = cost("mem://bucket/a.tlidx");
    assert_eq!(reads, [10, 1], "a sample each");
    assert_eq!(received, sizes);
}

#[test]
fn a_file_that_was_replaced_is_an_error_that_names_its_index() {
    let root = tempfile::tempdir().unwrap();
    let path = write_samples(root.path(), Form::Plain);
    let target = root.path().join("a.tlidx");
    let options = IndexOptions { sync: false, overwrite: true, update: false };
    index_shards(&tl_pipeline::stores(), &[&path], &target, options).unwrap();
    assert_eq!(Dataset::open(&[&target]).unwrap().len(), ROWS as u64);
    let file = std::fs::File::open(&path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let error = Dataset::open(&[&target]).unwrap_err().to_string();
    assert!(error.contains("Plain.parquet") && error.contains("a.tlidx"), "{error}");
    // As for archives, the file itself opens, and the index is made anew.
    assert_eq!(Dataset::open(&[&path]).unwrap().len(), ROWS as u64);
    let update = IndexOptions { sync: false, overwrite: false, update: true };
    let summary = index_shards(&tl_pipeline::stores(), &[&path], &target, update).unwrap();
    assert_eq!((summary.unchanged, summary.samples), (0, ROWS as u64));
    assert_eq!(Dataset::open(&[&target]).unwrap().len(), ROWS as u64);
}

/// The requests for a file with many row groups and labels in each do not depend on their number.
#[test]
fn a_file_in_a_store_opens_with_few_requests() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let url = upload(&store, &write_samples(root.path(), Form::Plain));
    store.reads();
    let opened = store.open_all(&[&url]);
    let requests = store.reads();
    // Several ask for the first bytes, which sources of `tl-store` keep.
    assert!(opened.class_names().len() == 5 && requests <= 9, "{requests}");
    let config = LoaderConfig { sampler: of_source(2), ..config(Work::Bytes) };
    drop(Loader::new(opened, config).unwrap());
    assert_eq!(store.reads(), 0, "pages are known");
}
