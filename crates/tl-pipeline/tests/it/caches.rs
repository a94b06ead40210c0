//! Loaders with caches make the batches of loaders without, whatever the caches hold.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tbl_format::SampleFormat;
use tbl_io::{Field, NewSample, PageCache, SampleSource, StreamWriter, WriteOptions};
use tl_decode::{DecodeOptions, Limits, OnDamaged};
use tl_pipeline::{
    CacheConfig, CacheKind, CacheStats, Dataset, DiskCache, ErrorBudget, Loader, LoaderConfig,
    MemoryCache, OnError, PipelineError, Readers, Shard, Work,
};
use tl_transform::{DecodeMode, Recipe};

use crate::content::{Record, record};
use crate::memory::{bmps, config, loader, pixels, sample, watched};

const KINDS: [CacheKind; 2] = [CacheKind::Encoded, CacheKind::Decoded];

pub(crate) fn memory(kind: CacheKind, bytes: u64) -> CacheConfig {
    CacheConfig { memory: Some(MemoryCache { kind, bytes }), disk: None }
}

pub(crate) fn disk(kind: CacheKind, folder: &Path, bytes: u64) -> CacheConfig {
    let folder = folder.to_path_buf();
    CacheConfig { memory: None, disk: Some(DiskCache { kind, folder, bytes }) }
}

pub(crate) fn exact() -> Work {
    let recipe = Recipe::imagenet_train(16).unwrap();
    Work::Images(recipe.with_decode(DecodeMode::Exact).unwrap())
}

/// A TBL file of `count` raw images or BMP files.
pub(crate) fn tbl(path: &Path, count: u32, format: SampleFormat) {
    tbl_with_fields(path, count, format, &[]);
}

/// A TBL file of `count` raw images or BMP files with these fields each.
pub(crate) fn tbl_with_fields(path: &Path, count: u32, format: SampleFormat, fields: &[Field]) {
    let mut writer = StreamWriter::create(path, WriteOptions::default()).unwrap();
    for number in 0..count {
        let stored = sample(number, format);
        let (width, height) = stored.size;
        let sample = NewSample { format, width, height, fields, ..NewSample::new(&stored.bytes) };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap();
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap().path();
        if file.is_file() {
            fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
        }
    }
}

/// Images of every format, good ones and bad ones, and two photographs that lack their ends: some
/// crops of them are good.
fn mixed_bag(root: &Path) -> PathBuf {
    let root = root.join("mixed bag");
    copy_files(&tl_testdata::shipped!("jpeg"), &root.join("jpeg"));
    for format in ["png", "webp", "bmp", "tiff"] {
        copy_files(&tl_testdata::shipped!("images").join(format), &root.join(format));
    }
    copy_files(&tl_testdata::shipped!("photos"), &root.join("photos"));
    let mut jpegs: Vec<_> = fs::read_dir(root.join("photos"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jpg"))
        .collect();
    jpegs.sort();
    for (number, path) in jpegs.iter().enumerate() {
        if number < 3 {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() * (number + 2) / 5]).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
    settle(&root);
    root
}

/// Waits until the files below `root` can be kept on disk: what was just changed is not.
fn settle(root: &Path) {
    let made = SystemTime::now();
    let folder = tbl_io::Folder::open(root).unwrap();
    let is_settled = |index| SampleSource::content_id(&folder, index, &mut Vec::new()).unwrap();
    let count = SampleSource::sample_count(&folder);
    while !(0..count).all(is_settled) {
        assert!(made.elapsed().unwrap() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The records that the consumer of three epochs receives, with the faults of samples.
fn run(dataset: Dataset, config: LoaderConfig) -> (Vec<Vec<Record>>, Vec<String>, CacheStats) {
    let loader = loader(dataset, config);
    let epochs = (0..3).map(|epoch| record(&loader, epoch)).collect();
    let said = loader.audit().iter().map(ToString::to_string).collect();
    (epochs, said, loader.cache_stats())
}

#[test]
fn no_cache_changes_a_byte_or_an_error() {
    let root = tempfile::tempdir().unwrap();
    let folder = mixed_bag(root.path());
    let open = || Dataset::open(std::slice::from_ref(&folder)).unwrap();
    for (number, on_damaged) in [OnDamaged::Error, OnDamaged::Keep].into_iter().enumerate() {
        let decode = DecodeOptions { on_damaged, ..DecodeOptions::default() };
        let settings = LoaderConfig { on_error: OnError::Skip, decode, ..config(exact()) };
        let (expected, said, _) = run(open(), settings.clone());
        assert!(!said.is_empty());
        for kind in KINDS {
            let on_disk = root.path().join(format!("{kind:?} {number}"));
            let everywhere = |bytes| CacheConfig {
                memory: memory(kind, bytes).memory,
                ..disk(kind, &on_disk, 1 << 30)
            };
            let other = if kind == CacheKind::Encoded { CacheKind::Decoded } else { kind };
            let split = CacheConfig { memory: memory(other, 1 << 30).memory, ..everywhere(0) };
            let small = disk(kind, &root.path().join(format!("small {kind:?} {number}")), 300_000);
            for cache in
                [memory(kind, 1 << 30), memory(kind, 200_000), everywhere(100_000), split, small]
            {
                let settings =
                    LoaderConfig { cache: cache.clone(), workers: 3, ..settings.clone() };
                let (found, found_said, stats) = run(open(), settings);
                assert!(found == expected, "{cache:?}");
                assert_eq!(found_said, said, "{cache:?}");
                assert!(stats.memory.hits + stats.disk.hits > 0, "{stats:?}");
                assert_eq!((stats.bad_entries, stats.faults), (0, 0), "{stats:?}");
                let room = cache.memory.map_or(0, |memory| memory.bytes);
                assert!(stats.memory.bytes <= room);
            }
        }
    }
}

#[test]
fn whole_images_and_stored_bytes_are_the_same_from_caches() {
    let root = tempfile::tempdir().unwrap();
    for format in [SampleFormat::Bmp, SampleFormat::RawU8] {
        let path = root.path().join(format!("{format:?}.tbl"));
        tbl(&path, 23, format);
        let open = || Dataset::open(&[&path]).unwrap();
        for (work, kinds) in [(Work::Bytes, &KINDS[..1]), (Work::Images(Recipe::decode()), &KINDS)]
        {
            let (expected, ..) = run(open(), config(work.clone()));
            for &kind in kinds {
                let on_disk = root.path().join(format!("{format:?} {kind:?}"));
                for cache in [memory(kind, 1 << 20), disk(kind, &on_disk, 1 << 20)] {
                    for workers in [1, 3] {
                        let cache = cache.clone();
                        let settings = LoaderConfig { cache, workers, ..config(work.clone()) };
                        assert!(run(open(), settings).0 == expected, "{kind:?}, {work:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_cached_is_not_read_again() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("some.tbl");
    tbl(&path, 23, SampleFormat::Bmp);
    for kind in KINDS {
        let on_disk = root.path().join(format!("{kind:?}"));
        for cache in [memory(kind, 1 << 20), disk(kind, &on_disk, 1 << 20)] {
            let dataset = Dataset::open(&[&path]).unwrap();
            // Batches prepared for the epoch after the last one would be counted too.
            let settings = LoaderConfig { prefetch_next_epoch: false, cache, ..config(exact()) };
            let loader = loader(dataset, settings);
            record(&loader, 0);
            let read = loader.stats().bytes_read;
            record(&loader, 1);
            assert_eq!(loader.stats().bytes_read, read);
            let CacheStats { memory, disk, .. } = loader.cache_stats();
            assert_eq!(memory.hits + disk.hits, 23);
            assert_eq!(memory.misses + disk.misses, 23);
        }
        // The next run finds all of it.
        let dataset = Dataset::open(&[&path]).unwrap();
        let cache = disk(kind, &on_disk, 1 << 20);
        let settings = LoaderConfig { prefetch_next_epoch: false, cache, ..config(exact()) };
        let loader = loader(dataset, settings);
        record(&loader, 0);
        assert_eq!((loader.stats().bytes_read, loader.cache_stats().disk.hits), (0, 23));
    }
}

/// A loader that knows no entry yet finds those of others, also newer ones than the loader.
#[test]
fn what_others_have_cached_is_neither_announced_nor_read_ahead() {
    let root = tempfile::tempdir().unwrap();
    let open = || {
        let asked = Arc::new(AtomicU64::new(0));
        let samples = (0..90).map(|number| sample(number, SampleFormat::Bmp)).collect();
        let count = || {
            let asked = Arc::clone(&asked);
            move || {
                asked.fetch_add(1, Ordering::Relaxed);
            }
        };
        (watched(samples, count(), count()), asked)
    };
    let uring = Readers::Uring { depth: 4, page_cache: PageCache::Used };
    for kind in KINDS {
        for (number, readers) in
            [Readers::Workers, Readers::Threads(2), uring].into_iter().enumerate()
        {
            let cache = disk(kind, &root.path().join(format!("{kind:?} {number}")), 1 << 20);
            let settings = LoaderConfig { readers, cache, ..config(exact()) };
            let (dataset, asked) = open();
            let next = loader(dataset, settings.clone());
            let expected = record(&loader(open().0, settings), 0);
            assert!(record(&next, 0) == expected);
            assert_eq!(asked.load(Ordering::Relaxed), 0, "{kind:?} {readers:?}");
        }
    }
}

/// No choice could do better, and none is made twice: what came first stays.
#[test]
fn half_the_room_saves_half_of_the_reads() {
    const SAMPLES: u32 = 400;
    let size = |number| u64::from(pixels(number).0 * pixels(number).1 * 3);
    let all: u64 = (0..SAMPLES).map(|number| size(number) + 192).sum();
    let cache = memory(CacheKind::Decoded, all / 2);
    let settings =
        LoaderConfig { workers: 1, prefetch_next_epoch: false, cache, ..config(exact()) };
    let loader = loader(bmps(SAMPLES), settings);
    for epoch in 0..6 {
        record(&loader, epoch);
    }
    let stats = loader.cache_stats().memory;
    assert_eq!((stats.hits, stats.evicted), (5 * stats.entries, 0));
    assert!(stats.bytes <= all / 2 && stats.bytes > all * 49 / 100);
}

/// A rank keeps what it will get itself in the next epoch and nothing else, when room is scarce.
#[test]
fn ranks_keep_what_they_will_need() {
    const SAMPLES: u32 = 96;
    let size = |number| u64::from(pixels(number).0 * pixels(number).1 * 3);
    let all: u64 = (0..SAMPLES).map(|number| size(number) + 192).sum();
    let (mut found, mut could) = (0, 0);
    for rank in 0..3 {
        let shard = Shard { rank, world: 3, tail: None };
        let cache = memory(CacheKind::Decoded, all / 5);
        let settings = LoaderConfig {
            shard,
            workers: 1,
            prefetch_next_epoch: false,
            cache,
            ..config(exact())
        };
        let loader = loader(bmps(SAMPLES), settings);
        let epochs: Vec<Vec<u64>> = (0..6)
            .map(|epoch| {
                record(&loader, epoch).into_iter().flat_map(|batch| batch.indices).collect()
            })
            .collect();
        found += loader.cache_stats().memory.hits;
        for pair in epochs.windows(2) {
            could += pair[1].iter().filter(|sample| pair[0].contains(sample)).count() as u64;
        }
    }
    assert!(found >= could, "{found} of {could}");
}

#[test]
fn damaged_entries_are_made_again() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("some.tbl");
    tbl(&path, 23, SampleFormat::Bmp);
    let open = || Dataset::open(&[&path]).unwrap();
    let on_disk = root.path().join("cache");
    let settings =
        LoaderConfig { cache: disk(CacheKind::Decoded, &on_disk, 1 << 20), ..config(exact()) };
    let (expected, ..) = run(open(), settings.clone());
    let mut entries = Vec::new();
    let mut folders = vec![on_disk];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if entry.file_name().len() == 62 {
                entries.push(entry.path());
            }
        }
    }
    assert_eq!(entries.len(), 23);
    entries.sort();
    for (number, entry) in entries.iter().enumerate().take(20) {
        let mut bytes = fs::read(entry).unwrap();
        match number % 3 {
            0 => bytes.truncate(number * 20),
            1 => bytes[number * 10] ^= 1,
            _ => bytes.fill(0),
        }
        fs::write(entry, bytes).unwrap();
    }
    let (found, _, stats) = run(open(), settings);
    assert!(found == expected);
    assert_eq!((stats.bad_entries, stats.disk.inserted, stats.faults), (20, 20, 0));
}

#[test]
fn a_data_set_that_was_written_anew_is_read_anew() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("some.tbl");
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    let write = |first: u32| {
        let mut writer = StreamWriter::create(&path, WriteOptions::default()).unwrap();
        for number in 0..9 {
            let pixels = vec![u8::try_from(first + number).unwrap(); 300];
            let format = SampleFormat::RawU8;
            let sample = NewSample { format, width: 10, height: 10, ..NewSample::new(&pixels) };
            writer.write_sample(&sample).unwrap();
        }
        writer.finish().unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    };
    let open = || Dataset::open(&[&path]).unwrap();
    for kind in KINDS {
        let cache = disk(kind, &root.path().join("cache"), 1 << 20);
        let settings = LoaderConfig { cache, ..config(exact()) };
        write(0);
        let (before, ..) = run(open(), settings.clone());
        fs::remove_file(&path).unwrap();
        write(100);
        let (after, ..) = run(open(), settings);
        assert!(before != after);
        assert!(after == run(open(), config(exact())).0);
        fs::remove_file(&path).unwrap();
    }
}

/// The file is overwritten in place before the file system's clock ticks: all its attributes are
/// the same.
#[test]
fn a_file_that_was_written_over_at_once_is_read_anew() {
    let root = tempfile::tempdir().unwrap();
    let images = root.path().join("images");
    fs::create_dir(&images).unwrap();
    let path = images.join("a.bmp");
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    // Only some rounds are quick enough to get both into one tick.
    for round in 0..40 {
        let cache = disk(CacheKind::Encoded, &root.path().join("cache"), 1 << 20);
        let settings =
            LoaderConfig { cache, prefetch_next_epoch: false, workers: 1, ..config(Work::Bytes) };
        let first = |bytes: &[u8]| {
            // `fs::write` would cut the file first, which would change its time.
            let file = fs::File::options().write(true).create(true).truncate(false).open(&path);
            let mut file = file.unwrap();
            std::io::Write::write_all(&mut file, bytes).unwrap();
            file.set_modified(time).unwrap();
            let loader = loader(Dataset::open(&[&images]).unwrap(), settings.clone());
            let batch = loader.epoch(0).next().unwrap().unwrap();
            batch.sample(0).unwrap().bytes.to_vec()
        };
        for bytes in [[round; 100], [round + 100; 100]] {
            assert_eq!(first(&bytes), bytes, "round {round}");
        }
    }
}

#[test]
fn a_limit_is_one_also_for_what_another_run_has_cached() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("some.tbl");
    tbl(&path, 9, SampleFormat::Bmp);
    let open = || Dataset::open(&[&path]).unwrap();
    let limits = Limits { max_pixels: 700, ..Limits::default() };
    let strict = DecodeOptions { limits, ..DecodeOptions::default() };
    let error_budget = ErrorBudget::UNLIMITED;
    let settings = LoaderConfig { on_error: OnError::Skip, error_budget, ..config(exact()) };
    let expected = run(open(), LoaderConfig { decode: strict, ..settings.clone() });
    assert!(!expected.1.is_empty());
    let settings = LoaderConfig {
        cache: disk(CacheKind::Decoded, &root.path().join("c"), 1 << 20),
        ..settings
    };
    run(open(), settings.clone());
    let found = run(open(), LoaderConfig { decode: strict, ..settings });
    assert!((found.0, found.1) == (expected.0, expected.1));
}

#[test]
fn a_cache_that_cannot_be_written_costs_nothing_but_time() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("some.tbl");
    tbl(&path, 23, SampleFormat::Bmp);
    let open = || Dataset::open(&[&path]).unwrap();
    let (expected, ..) = run(open(), config(exact()));
    for kind in KINDS {
        // A folder below a file.
        let settings =
            LoaderConfig { cache: disk(kind, &path.join("c"), 1 << 20), ..config(exact()) };
        let (found, _, stats) = run(open(), settings);
        assert!(found == expected);
        assert_eq!(stats.faults, 1);
        let fault = stats.first_fault.unwrap().to_string();
        assert!(fault.contains("some.tbl/c") && fault.contains("Not a directory"), "{fault}");
    }
}

#[test]
fn decoded_images_are_refused_where_nothing_or_less_is_decoded() {
    let refused = |work| {
        let settings = LoaderConfig { cache: memory(CacheKind::Decoded, 1 << 20), ..config(work) };
        let error = Loader::new(bmps(1), settings).unwrap_err();
        assert!(matches!(error, PipelineError::Unusable(_)), "{error}");
        error.to_string()
    };
    let fast = Recipe::imagenet_train(16).unwrap();
    let fast = fast.with_decode(DecodeMode::Fast { decode_margin: 1.0 }).unwrap();
    assert!(refused(Work::Images(fast)).contains("decodes exactly; this recipe decodes fast: `"));
    assert!(refused(Work::Bytes).ends_with("exactly, and stored bytes are not decoded"));
}
