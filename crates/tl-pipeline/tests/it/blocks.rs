//! A cache of blocks changes no batch, and saves what it holds.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use tbl_format::SampleFormat;
use tbl_io::{ByteLocks, NewSample, StreamWriter, WriteOptions};
use tl_pipeline::{
    Blocks, CacheKind, CacheStats, Dataset, Deal, Fields, Loader, LoaderConfig, LoaderNote,
    OnError, PipelineError, Readers, Shard, Shuffle, Tail, Work,
};

use crate::caches::{disk, memory};
use crate::content::{Record, record};
use crate::memory::{config, train};
use crate::store::{MemoryStore, containers, rows, upload};

pub(crate) const URL: &str = "mem://bucket/some.tbl";

/// The bytes of sample `number`: random ones, of a length that differs a little.
fn bytes(number: u32, len: u32) -> Vec<u8> {
    let len = len + number * 37 % (len / 4 + 1);
    let mut state = number.wrapping_mul(0x9E37_79B9) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    };
    (0..len).map(next).collect()
}

/// A store with a TBL file of `count` samples of some `len` bytes, and the bytes of all.
pub(crate) fn stored(count: u32, len: u32, latency: Duration) -> (MemoryStore, u64) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("some.tbl");
    let mut writer = StreamWriter::create(&path, WriteOptions::default()).unwrap();
    let mut all = 0;
    for number in 0..count {
        let bytes = bytes(number, len);
        all += bytes.len() as u64;
        let sample = NewSample { format: SampleFormat::Bmp, ..NewSample::new(&bytes) };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap();
    let store = MemoryStore::with_latency(latency);
    store.upload(&path, URL);
    (store, all)
}

/// A loader without a cache that reads no epoch in advance.
fn plain(shuffle: Shuffle, batch_size: usize) -> LoaderConfig {
    let (sampler, prefetch_next_epoch) = (shuffle.into(), false);
    LoaderConfig { sampler, prefetch_next_epoch, batch_size, ..config(Work::Bytes) }
}

/// How often a test is tried whose requests depend on how busy the disk is. Its bytes never do.
pub(crate) const ATTEMPTS: u32 = 3;

/// One epoch of a new loader.
struct Run {
    batches: Vec<Record>,
    /// The bytes that it received from the store.
    received: u64,
    /// Those at most of samples that come alone, and again with their blocks: of the first batch, and
    /// those that a worker needs before they are requested.
    alone: u64,
    stats: CacheStats,
}

fn epoch(store: &MemoryStore, config: LoaderConfig, epoch: u32) -> Run {
    let batch_size = config.batch_size as u64;
    let dataset = store.open_all(&[URL]);
    store.received();
    let loader = Loader::new(dataset, config).unwrap();
    let batches = record(&loader, epoch);
    let stats = loader.cache_stats();
    let largest = batches.iter().map(|batch| batch.bytes.len() as u64).max().unwrap() / batch_size;
    let alone = (batch_size + loader.stats().readers.late) * largest;
    drop(loader);
    Run { batches, received: store.received(), alone, stats }
}

/// The files of all entries in a cache's folder.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let shelves = fs::read_dir(folder.join("turboloader-cache-1")).unwrap();
    let shelves = shelves.map(|shelf| shelf.unwrap().path());
    let shelves = shelves.filter(|path| path.is_dir() && !path.ends_with("drafts"));
    let files = shelves.flat_map(|shelf| fs::read_dir(shelf).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

/// The bytes that the folder counts for its entries.
pub(crate) fn used(folder: &Path) -> u64 {
    let len = |path: &PathBuf| path.metadata().unwrap().len().next_multiple_of(4096);
    entries(folder).iter().map(len).sum()
}

const SHUFFLES: [Shuffle; 4] = [
    Shuffle::None,
    Shuffle::Full,
    Shuffle::Block { blocks: Blocks::Samples(8), window: 4 },
    Shuffle::Lanes { lanes: 2, blocks: Blocks::Samples(6), window: 3, deal: Deal::Run },
];

#[test]
fn blocks_change_no_batch_of_any_container() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let fields = Fields { keys: true, bytes: vec!["txt".to_owned()], ..Fields::default() };
    for path in containers(root.path()) {
        let url = upload(&store, &path);
        let has_fields = !path.ends_with("v1.tbl");
        let fields = if has_fields { fields.clone() } else { Fields::default() };
        for (number, shuffle) in SHUFFLES.into_iter().enumerate() {
            let work = [Work::Bytes, Work::Views, train(), Work::Bytes][number].clone();
            let sampler = shuffle.into();
            let config = LoaderConfig { fields: fields.clone(), sampler, ..config(work) };
            let expected = rows(Dataset::open(&[&path]).unwrap(), config.clone());
            let root = tempfile::tempdir().unwrap();
            for capacity in [1 << 20, 1 << 20, 16 << 10, 0] {
                let folder = root.path().join(capacity.to_string());
                let cache = disk(CacheKind::Blocks, &folder, capacity);
                let on_error = OnError::Skip;
                let config = LoaderConfig { cache, on_error, ..config.clone() };
                assert!(rows(store.open_all(&[&url]), config) == expected, "{url}, {shuffle}");
                let used = used(&folder);
                assert!(used <= capacity, "{url}, {shuffle}: {used} of {capacity}");
            }
        }
    }
}

#[test]
fn the_second_epoch_fetches_what_the_cache_does_not_hold() {
    let (store, all) = stored(300, 100_000, Duration::from_millis(2));
    for shuffle in [Shuffle::Full, Shuffle::Block { blocks: Blocks::Samples(16), window: 4 }] {
        let expected = [0, 1].map(|number| epoch(&store, plain(shuffle, 8), number).batches);
        for (tenths, cost) in [(1, 0), (5, 0), (10, 1 << 20)] {
            let capacity = all / 10 * tenths + cost;
            // Blocks that a busy disk does not take in time are counted, and requested again.
            let is_kept = (0..ATTEMPTS).any(|_| {
                let folder = tempfile::tempdir().unwrap();
                let cached = || {
                    let cache = disk(CacheKind::Blocks, folder.path(), capacity);
                    LoaderConfig { cache, ..plain(shuffle, 8) }
                };
                let first = epoch(&store, cached(), 0);
                assert!(first.batches == expected[0]);
                let Run { batches, received, alone, stats } = epoch(&store, cached(), 1);
                assert!(batches == expected[1]);
                assert!(used(folder.path()) <= capacity);
                println!("{shuffle}, {tenths}/10: {received} of {all} in epoch 2, {stats:?}");
                assert_eq!((stats.bad_entries, stats.faults), (0, 0), "{stats:?}");
                assert_eq!(stats.disk.hits + stats.disk.misses, 300);
                // One block may not fit any more.
                let lacking = all / 10 * (10 - tenths) + (2 << 20) + 125_000;
                first.received <= all + first.alone
                    && received <= lacking + alone
                    && stats.dropped_blocks == 0
            });
            assert!(is_kept, "{shuffle}, {tenths}");
        }
    }
}

#[test]
fn ranks_with_one_folder_fetch_every_block_once() {
    let (store, all) = stored(320, 50_000, Duration::from_millis(2));
    let shuffle = Shuffle::Block { blocks: Blocks::Samples(16), window: 4 };
    let of_rank = |rank, folder: Option<&Path>| {
        let cache = folder.map(|folder| disk(CacheKind::Blocks, folder, 64 << 20));
        let shard = Shard { rank, world: 2, tail: Some(Tail::Pad) };
        LoaderConfig { shard, cache: cache.unwrap_or_default(), ..plain(shuffle, 4) }
    };
    let expected = [0, 1].map(|rank| {
        let loader = Loader::new(store.open_all(&[URL]), of_rank(rank, None)).unwrap();
        [0, 1].map(|epoch| record(&loader, epoch))
    });
    let folder = tempfile::tempdir().unwrap();
    let loaders = [0, 1].map(|rank| {
        Loader::new(store.open_all(&[URL]), of_rank(rank, Some(folder.path()))).unwrap()
    });
    for epoch in [0, 1] {
        store.received();
        thread::scope(|scope| {
            for (loader, expected) in loaders.iter().zip(&expected) {
                scope.spawn(move || assert!(record(loader, epoch) == expected[epoch as usize]));
            }
        });
        let received = store.received();
        println!("epoch {epoch}: {received} of {all}");
        // Samples of the first batch come alone, and those whose workers are sooner than requests.
        let late = loaders.iter().map(|loader| loader.stats().readers.late).sum::<u64>();
        println!("{late} late");
        let alone = (8 + late) * 62_500;
        let most = if epoch == 0 { all } else { 0 };
        assert!(received <= most + alone, "epoch {epoch}: {received} of {all}");
    }
}

#[test]
fn a_block_of_a_process_that_died_is_fetched_whole() {
    let (store, all) = stored(96, 20_000, Duration::from_millis(1));
    let shuffle = Shuffle::Block { blocks: Blocks::Samples(8), window: 4 };
    let expected = epoch(&store, plain(shuffle, 4), 0).batches;
    let folder = tempfile::tempdir().unwrap();
    let cache = disk(CacheKind::Blocks, folder.path(), 8 << 20);
    let loader =
        Loader::new(store.open_all(&[URL]), LoaderConfig { cache, ..plain(shuffle, 4) }).unwrap();
    // Another process fetches all blocks, and dies.
    let claims = ByteLocks::open(&folder.path().join("turboloader-cache-1/claims")).unwrap();
    assert!((0..=u16::MAX).all(|byte| claims.try_lock(byte).unwrap()));
    store.received();
    thread::scope(|scope| {
        let run = scope.spawn(|| record(&loader, 0));
        thread::sleep(Duration::from_millis(200));
        drop(claims);
        assert!(run.join().unwrap() == expected);
    });
    drop(loader);
    let received = store.received();
    assert!(received <= all + all / 50, "{received} of {all}");
    // A busy machine may be too slow for one.
    assert!(entries(folder.path()).len() >= 10);
}

#[test]
fn a_full_cache_takes_no_more_requests_than_none() {
    let (store, _) = stored(300, 20_000, Duration::from_millis(2));
    for shuffle in [Shuffle::Full, Shuffle::Block { blocks: Blocks::Samples(16), window: 8 }] {
        let requests = |config| {
            let loader = Loader::new(store.open_all(&[URL]), config).unwrap();
            let before = store.reads();
            let batches = record(&loader, 0);
            let late = loader.stats().readers.late;
            drop(loader);
            (batches, store.reads() - before, late)
        };
        let (expected, without, _) = requests(plain(shuffle, 8));
        let folder = tempfile::tempdir().unwrap();
        let cached = || {
            let cache = disk(CacheKind::Blocks, folder.path(), 1 << 20);
            LoaderConfig { cache, ..plain(shuffle, 8) }
        };
        requests(cached());
        let (found, with, late) = requests(cached());
        assert!(found == expected);
        // On a busy machine workers read rows before they are requested.
        let with = with - late;
        println!("{shuffle}: {with} requests with a full cache, {without} without one");
        assert!(with <= without + without / 5 + 3, "{shuffle}: {with}, {without} without a cache");
    }
}

#[test]
fn a_damaged_block_is_fetched_again() {
    let (store, all) = stored(64, 3_000, Duration::from_millis(1));
    let shuffle = Shuffle::Block { blocks: Blocks::Samples(8), window: 2 };
    let folder = tempfile::tempdir().unwrap();
    let cached = || {
        let cache = disk(CacheKind::Blocks, folder.path(), 8 << 20);
        LoaderConfig { cache, ..plain(shuffle, 2) }
    };
    let expected = epoch(&store, plain(shuffle, 2), 1).batches;
    let fill = || {
        while entries(folder.path()).len() < 8 {
            epoch(&store, cached(), 0);
        }
    };
    epoch(&store, cached(), 0);
    fill();
    let damages: [fn(&mut Vec<u8>); 5] = [
        |bytes| bytes[100] ^= 4,
        |bytes| bytes.truncate(bytes.len() - 1),
        |bytes| bytes.clear(),
        |bytes| bytes.fill(0),
        |bytes| {
            let at = bytes.len() - 100;
            bytes[at] ^= 1;
        },
    ];
    for damage in damages {
        let path = &entries(folder.path())[3];
        let mut bytes = fs::read(path).unwrap();
        damage(&mut bytes);
        fs::write(path, bytes).unwrap();
        let Run { batches, received, alone, stats } = epoch(&store, cached(), 1);
        assert!(batches == expected);
        assert_eq!((stats.bad_entries, stats.faults), (1, 0), "{stats:?}");
        assert!(
            received > 0 && received <= all / 4 + alone,
            "{received} of {all}, {alone} {stats:?}"
        );
        fill();
    }
}

#[test]
fn a_block_of_another_version_has_another_name() {
    let (store, all) = stored(32, 3_000, Duration::from_millis(1));
    let folder = tempfile::tempdir().unwrap();
    let cached = || {
        let cache = disk(CacheKind::Blocks, folder.path(), 8 << 20);
        LoaderConfig { cache, ..plain(Shuffle::None, 2) }
    };
    epoch(&store, cached(), 0);
    let Run { received, alone, .. } = epoch(&store, cached(), 0);
    assert!(received <= alone && alone < all);
    let (other, all) = stored(33, 3_000, Duration::from_millis(1));
    let expected = epoch(&other, plain(Shuffle::None, 2), 0).batches;
    // The same URL, and bytes that the first ones begin with.
    store.put(URL, other.get(URL));
    let Run { batches, received, .. } = epoch(&store, cached(), 0);
    assert!(batches == expected);
    assert!(received >= all, "{received} of {all}");
}

#[test]
fn a_folder_that_cannot_be_used_changes_nothing() {
    let (store, all) = stored(32, 3_000, Duration::ZERO);
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    let cache = disk(CacheKind::Blocks, &file, 8 << 20);
    let expected = epoch(&store, plain(Shuffle::Full, 4), 0).batches;
    let config = LoaderConfig { cache, ..plain(Shuffle::Full, 4) };
    let Run { batches, received, stats, .. } = epoch(&store, config, 0);
    assert!(batches == expected);
    assert_eq!(received, all);
    assert!(stats.faults > 0 && stats.first_fault.is_some());
}

#[test]
fn a_disk_that_refuses_blocks_changes_nothing() {
    let (store, all) = stored(320, 3_000, Duration::from_millis(1));
    let shuffle = Shuffle::Block { blocks: Blocks::Samples(8), window: 2 };
    let expected = epoch(&store, plain(shuffle, 4), 1).batches;
    let folder = tempfile::tempdir().unwrap();
    let cache = disk(CacheKind::Blocks, folder.path(), 8 << 20);
    let config = LoaderConfig { cache, ..plain(shuffle, 4) };
    let loader = Loader::new(store.open_all(&[URL]), config).unwrap();
    // Nothing can be written any more, as on a full disk.
    fs::remove_dir(folder.path().join("turboloader-cache-1/drafts")).unwrap();
    store.received();
    assert!(record(&loader, 1) == expected);
    let late = loader.stats().readers.late;
    let faults = loader.cache_stats().faults;
    drop(loader);
    let received = store.received();
    // Samples of a block that is not written may come once more.
    assert!((1..=40).contains(&faults), "{faults}");
    let again = 4 + late + faults * 8;
    assert!(received <= all + again * 3_750, "{received} of {all}, {faults} faults");
    assert!(entries(folder.path()).is_empty());
    let ledger = fs::read(folder.path().join("turboloader-cache-1/usage")).unwrap();
    assert_eq!(ledger[..8], [0; 8], "nothing is reserved");
}

#[test]
fn blocks_are_on_disk_and_requested() {
    let (store, _) = stored(4, 100, Duration::ZERO);
    let message = |config: LoaderConfig| {
        let error = Loader::new(store.open_all(&[URL]), config).unwrap_err();
        assert!(matches!(error, PipelineError::Unusable(_)));
        error.to_string()
    };
    let in_memory =
        LoaderConfig { cache: memory(CacheKind::Blocks, 1 << 20), ..config(Work::Bytes) };
    assert_eq!(
        message(in_memory),
        "a cache of blocks is on disk: keep encoded or decoded samples in memory"
    );
    let folder = tempfile::tempdir().unwrap();
    let cache = disk(CacheKind::Blocks, folder.path(), 1 << 20);
    let readers = Readers::Threads(2);
    let error = message(LoaderConfig { cache, readers, ..config(Work::Bytes) });
    assert!(error.starts_with("a cache of blocks keeps what is requested from stores"), "{error}");
}

#[test]
fn notes_name_blocks_that_are_too_large_and_folders_that_others_read() {
    let (store, _) = stored(64, 50_000, Duration::ZERO);
    let secret = MemoryStore::with_credentials();
    secret.put(URL, store.get(URL));
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("turboloader-cache-1");
    let notes = |store: &MemoryStore, read_ahead_bytes, mode: u32| {
        // Folders of tests are their user's own.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        let cache = disk(CacheKind::Blocks, folder.path(), 8 << 20);
        let config = LoaderConfig { cache, read_ahead_bytes, ..plain(Shuffle::Full, 4) };
        let loader = Loader::new(store.open_all(&[URL]), config).unwrap();
        let _ = record(&loader, 0);
        (loader.notes(), loader.cache_stats().large_blocks)
    };
    let is_large = |note: &LoaderNote| matches!(note, LoaderNote::LargeBlocks { .. });
    let (found, _) = notes(&store, 64 << 20, 0o755);
    assert!(!found.iter().any(is_large), "{found:?}");
    let (found, large) = notes(&store, 1 << 20, 0o755);
    assert!(found.iter().any(is_large), "{found:?}");
    assert_eq!(large, 0, "none is begun");
    let open = LoaderNote::OpenCache { folder: root.clone() };
    assert!(!notes(&secret, 64 << 20, 0o755).0.contains(&open), "it is the owner's alone");
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!notes(&store, 64 << 20, 0o755).0.contains(&open), "nothing is secret");
    assert!(notes(&secret, 64 << 20, 0o755).0.contains(&open));
    assert!(!notes(&secret, 64 << 20, 0o700).0.contains(&open));
}

#[test]
fn a_view_fetches_only_its_samples() {
    let (store, all) = stored(96, 3_000, Duration::from_millis(3));
    let folder = tempfile::tempdir().unwrap();
    let cached = || {
        let cache = disk(CacheKind::Blocks, folder.path(), 8 << 20);
        LoaderConfig { cache, ..plain(Shuffle::Full, 4) }
    };
    let view = || {
        let view = tl_pipeline::DatasetView::from(store.open_all(&[URL]));
        view.subset((0..96).step_by(8).collect::<Vec<_>>()).unwrap()
    };
    let run = |view: tl_pipeline::DatasetView, config| {
        store.received();
        let loader = Loader::new(view, config).unwrap();
        let batches = record(&loader, 0);
        drop(loader);
        (batches, store.received())
    };
    let (expected, own) = run(view(), plain(Shuffle::Full, 4));
    let kept =
        || folder.path().join("turboloader-cache-1").exists() && !entries(folder.path()).is_empty();
    // On a busy machine workers may read all samples before they are requested.
    while !kept() {
        let (batches, received) = run(view(), cached());
        assert!(batches == expected);
        assert!(received <= 2 * own, "{received} of {own}");
    }
    let (batches, received) = run(view(), cached());
    assert!(batches == expected);
    assert_eq!(received, 0);
    assert!(used(folder.path()) < all / 4);
}

fn shuffles() -> impl Strategy<Value = Shuffle> {
    let blocks = |samples: u64| Blocks::Samples(samples);
    prop_oneof![
        Just(Shuffle::None),
        Just(Shuffle::Full),
        (1u64..20, 1u64..6)
            .prop_map(move |(samples, window)| Shuffle::Block { blocks: blocks(samples), window }),
        (1u64..20, 1u64..6).prop_map(move |(samples, window)| Shuffle::Lanes {
            lanes: 2,
            blocks: blocks(samples),
            window,
            deal: Deal::Epoch,
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the order, the ranks, the window and the cache are, the second epoch fetches no more
    /// than the cache lacks, and the folder has no more than it may.
    #[test]
    fn epochs_fetch_what_the_folder_lacks(
        shuffle in shuffles(),
        world in 1u32..4,
        parts in 0u64..12,
        read_ahead in prop_oneof![Just(20_000u64), Just(200_000), Just(0)],
        batch_size in prop_oneof![Just(2usize), Just(4)],
    ) {
        let (store, all) = stored(160, 2_000, Duration::ZERO);
        // The bytes of all blocks are more than those of samples.
        let capacity = (all + 160 * 4_200) * parts / 10;
        // Ranks that begin while another counts the folder do not keep their first blocks.
        let mut last = String::new();
        let is_kept = (0..ATTEMPTS).any(|_| {
            let folder = tempfile::tempdir().unwrap();
            let of_rank = |rank, is_cached: bool| {
                let cache = disk(CacheKind::Blocks, folder.path(), capacity);
                let cache = if is_cached { cache } else { tl_pipeline::CacheConfig::default() };
                let shard = Shard { rank, world, tail: Some(Tail::Pad) };
                let settings = LoaderConfig { shard, cache, ..plain(shuffle, batch_size) };
                LoaderConfig { read_ahead_bytes: read_ahead, ..settings }
            };
            (0..3).all(|epoch| {
                let (expected, own, _) = records(&store, world, epoch, &|rank| of_rank(rank, false));
                let kept: u64 = entries_if_any(folder.path());
                let (found, received, again) =
                    records(&store, world, epoch, &|rank| of_rank(rank, true));
                assert!(found == expected);
                assert!(used_if_any(folder.path()) <= capacity);
                let lacking = all.max(own) - kept.min(all);
                // What is requested for first batches alone may come once more, and padding.
                let first_batches = u64::from(world) * batch_size as u64 * 2_500;
                last = format!("epoch {epoch}: {received} of {all}, {kept} kept, {again} again");
                received <= lacking + 2 * first_batches + again
            })
        });
        prop_assert!(is_kept, "{last}");
    }
}

/// The batches of all ranks of an epoch, the bytes received, and those at most that came again.
fn records(
    store: &MemoryStore,
    world: u32,
    epoch: u32,
    of_rank: &dyn Fn(u32) -> LoaderConfig,
) -> (Vec<Vec<Record>>, u64, u64) {
    let open = |rank| Loader::new(store.open_all(&[URL]), of_rank(rank)).unwrap();
    let loaders: Vec<Loader> = (0..world).map(open).collect();
    store.received();
    let records: Vec<_> = thread::scope(|scope| {
        let run = |loader| scope.spawn(move || record(loader, epoch));
        let runs: Vec<_> = loaders.iter().map(run).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let sum = |of: fn(&Loader) -> u64| loaders.iter().map(of).sum::<u64>();
    assert_eq!(sum(|loader| loader.cache_stats().bad_entries), 0);
    let late = sum(|loader| loader.stats().readers.late);
    let dropped = sum(|loader| loader.cache_stats().dropped_blocks);
    drop(loaders);
    // Samples whose block the disk could not take may come with it later.
    (records, store.received(), late * 2_500 + dropped * 20 * 2_500)
}

/// The bytes of samples in entries.
fn entries_if_any(folder: &Path) -> u64 {
    if !folder.join("turboloader-cache-1").exists() {
        return 0;
    }
    let sample_bytes = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap();
        let trailer = &bytes[bytes.len() - 64..];
        let payload = u64::from_le_bytes(trailer[40..48].try_into().unwrap());
        let samples = u32::from_le_bytes(trailer[48..52].try_into().unwrap());
        payload - u64::from(samples) * 20
    };
    entries(folder).iter().map(sample_bytes).sum()
}

fn used_if_any(folder: &Path) -> u64 {
    if folder.join("turboloader-cache-1").exists() { used(folder) } else { 0 }
}

#[test]
fn epochs_that_end_early_leave_nothing_behind() {
    let (store, _) = stored(128, 20_000, Duration::from_millis(5));
    let folder = tempfile::tempdir().unwrap();
    let shuffle = Shuffle::Full;
    let cached = || {
        let cache = disk(CacheKind::Blocks, folder.path(), 64 << 20);
        LoaderConfig { cache, ..plain(shuffle, 4) }
    };
    for epoch in 0..20 {
        let loader = Loader::new(store.open_all(&[URL]), cached()).unwrap();
        let mut batches = loader.epoch(epoch);
        for _ in 0..epoch % 4 {
            batches.next().unwrap().unwrap();
        }
        drop(batches);
        drop(loader);
    }
    let ledger = fs::read(folder.path().join("turboloader-cache-1/usage")).unwrap();
    assert_eq!(u64::from_le_bytes(ledger[..8].try_into().unwrap()), used(folder.path()));
    let Run { batches, .. } = epoch(&store, cached(), 3);
    assert!(batches == epoch(&store, plain(shuffle, 4), 3).batches);
    assert_eq!(batches.iter().map(|batch| batch.indices.len()).sum::<usize>(), 128);
}
