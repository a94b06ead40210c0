//! Requests and bytes of a store over sockets, with a cache of blocks.

use std::path::Path;
use std::thread;
use std::time::Duration;

use tbl_io::{NewSample, Stores, StreamWriter, WriteOptions};
use tl_pipeline::{CacheConfig, CacheKind, DiskCache, Shard};
use tl_store_server::Dialect;
use turboloader::{Blocks, Dataset, Loader, LoaderConfig, Shuffle, StoreOptions, Work};

use crate::remote::{Server, config, rows, served};

const SAMPLES: u32 = 480;

/// A TBL file of samples of 40 to 80 KB, and the bytes of all.
fn write(path: &Path) -> u64 {
    let mut writer = StreamWriter::create(path, WriteOptions::default()).unwrap();
    let mut all = 0;
    let mut state = 7u64;
    for number in 0..SAMPLES {
        let len = 40_000 + number * 7_919 % 40_000;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        };
        let bytes: Vec<u8> = (0..len).map(next).collect();
        all += u64::from(len);
        let format = tbl_format::SampleFormat::Bmp;
        writer.write_sample(&NewSample { format, ..NewSample::new(&bytes) }).unwrap();
    }
    writer.finish().unwrap();
    all
}

/// The requests and bytes of two epochs of all ranks together, whose rows are checked.
fn epochs(
    server: &Server,
    shuffle: Shuffle,
    world: u32,
    cache: &CacheConfig,
    expected: &[Vec<Vec<Vec<u8>>>],
) -> ([u64; 2], [u64; 2], u64) {
    let settings = |rank| LoaderConfig {
        sampler: shuffle.into(),
        shard: Shard { rank, world, ..Shard::default() },
        cache: cache.clone(),
        prefetch_next_epoch: false,
        batch_size: 8,
        ..config(Work::Bytes)
    };
    // On a busy machine requests are late, and sent twice.
    let mut options = StoreOptions::default();
    options.hedge = false;
    let stores = server.stores_with(options).add_to(Stores::new());
    let dataset = || Dataset::open_in(&stores, &[server.url("a.tbl")]).unwrap();
    let open = |rank| Loader::new(dataset(), settings(rank)).unwrap();
    let loaders: Vec<Loader> = (0..world).map(open).collect();
    let [mut gets, mut bytes] = [[0; 2]; 2];
    for epoch in 0..2 {
        let before = server.service.counts();
        thread::scope(|scope| {
            for (loader, expected) in loaders.iter().zip(&expected[epoch]) {
                let number = u32::try_from(epoch).unwrap();
                scope.spawn(move || {
                    let found = rows(loader.epoch(number));
                    assert!(expected.is_empty() || found == *expected);
                });
            }
        });
        // Blocks that arrive after the last row.
        thread::sleep(Duration::from_millis(300));
        let after = server.service.counts();
        gets[epoch] = after.gets - before.gets;
        bytes[epoch] = after.bytes - before.bytes;
    }
    let late = loaders.iter().map(|loader| loader.stats().readers.late).sum();
    (gets, bytes, late)
}

#[test]
fn later_epochs_receive_what_the_cache_lacks() {
    let root = tempfile::tempdir().unwrap();
    let all = write(&root.path().join("a.tbl"));
    let server = served(root.path(), Dialect::S3, |service| {
        service.speed.first_byte = Duration::from_millis(5);
    });
    let block = Shuffle::Block { blocks: Blocks::Samples(16), window: 8 };
    for shuffle in [Shuffle::Full, block] {
        for world in [1, 2] {
            let of_rank = |rank| {
                let shard = Shard { rank, world, ..Shard::default() };
                let sampler = shuffle.into();
                let dataset = Dataset::open(&[root.path().join("a.tbl")]).unwrap();
                let settings =
                    LoaderConfig { sampler, shard, batch_size: 8, ..config(Work::Bytes) };
                Loader::new(dataset, settings).unwrap()
            };
            let loaders: Vec<Loader> = (0..world).map(of_rank).collect();
            let of_epoch = |epoch| loaders.iter().map(|loader| rows(loader.epoch(epoch))).collect();
            let expected: Vec<Vec<Vec<Vec<u8>>>> = (0..2).map(of_epoch).collect();
            for tenths in [0, 1, 5, 10] {
                let folder = tempfile::tempdir().unwrap();
                let disk = DiskCache {
                    kind: CacheKind::Blocks,
                    folder: folder.path().to_path_buf(),
                    bytes: all / 10 * tenths + if tenths == 10 { 4 << 20 } else { 0 },
                };
                let disk = (tenths > 0).then_some(disk);
                let cache = CacheConfig { memory: None, disk };
                let (gets, bytes, late) = epochs(&server, shuffle, world, &cache, &expected);
                println!(
                    "{shuffle}, {world} ranks, cache of {tenths}/10: {gets:?} requests, {bytes:?} of \
                     {all} bytes, {late} late"
                );
                // Samples of first batches, and those that workers need before they are requested,
                // come alone. One block may not fit.
                let alone = (u64::from(world) * 8 + late) * 80_000;
                let lacking = all / 10 * (10 - tenths) + if tenths == 10 { 0 } else { 2 << 20 };
                assert!(bytes[0] <= all + all / 50 + alone, "{bytes:?} of {all}");
                assert!(bytes[1] <= lacking + all / 50 + alone, "{bytes:?} of {all}");
            }
        }
    }
}
