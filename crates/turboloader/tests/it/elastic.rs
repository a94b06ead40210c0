//! Ranks of two nodes that come and go within an epoch, and read a store that fails now and then.
#![expect(clippy::cast_possible_truncation, reason = "small numbers")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tbl_format::SampleFormat;
use tbl_io::{NewSample, Stores, StreamWriter, WriteOptions};
use tl_pipeline::{Batch, CacheConfig, CacheKind, Deal, DiskCache, Epoch, LoaderState, Shard};
use tl_store_server::{Dialect, Fault, Faults};
use turboloader::{Blocks, Dataset, Loader, LoaderConfig, Shuffle, Work};

use crate::remote::{Server, config, served};

const SHARDS: usize = 3;
const SHARD_SAMPLES: u64 = 400;
const NODES: usize = 2;

/// Rows of all ranks together in a step.
const GLOBAL_BATCH: usize = 48;

/// The numbers of ranks, and the steps that these make; the last go on to the end of the epoch.
const CREWS: [(usize, usize); 3] = [(8, 7), (6, 9), (8, usize::MAX)];

fn write(folder: &Path) -> u64 {
    let mut all = 0;
    for shard in 0..SHARDS {
        let path = folder.join(format!("{shard}.tbl"));
        let mut writer = StreamWriter::create(&path, WriteOptions::default()).unwrap();
        for number in 0..SHARD_SAMPLES {
            let value = number * SHARDS as u64 + shard as u64;
            let len = 2_000 + value as usize * 7_919 % 6_000;
            let bytes: Vec<u8> = value.to_le_bytes().into_iter().cycle().take(len).collect();
            all += len as u64;
            let format = SampleFormat::Bmp;
            writer.write_sample(&NewSample { format, ..NewSample::new(&bytes) }).unwrap();
        }
        writer.finish().unwrap();
    }
    all
}

/// Samples, and their bytes.
type Rows = Vec<(u64, Vec<u8>)>;

/// The rows of a batch.
fn rows(batch: &Batch) -> Rows {
    let row = |row| (batch.indices()[row], batch.sample(row).unwrap().bytes.to_vec());
    (0..batch.len()).filter(|&row| batch.valid()[row]).map(row).collect()
}

/// The rows of each step, and the state after the last one.
fn steps(mut epoch: Epoch, count: usize) -> (Vec<Rows>, LoaderState) {
    let batches = epoch.by_ref().take(count);
    let found = batches.map(|batch| rows(&batch.unwrap())).collect();
    (found, epoch.state().unwrap())
}

/// The folders of the nodes' caches, which may be one, and the bytes of each.
struct Disk<'a> {
    folders: &'a [PathBuf],
    bytes: u64,
}

/// An epoch of crews that follow each other, each from the state of the one before.
fn trained(
    server: &Server,
    shuffle: Shuffle,
    epoch: u32,
    disk: &Disk<'_>,
    retries: &AtomicU64,
) -> Vec<Rows> {
    let urls: Vec<String> = (0..SHARDS).map(|shard| server.url(&format!("{shard}.tbl"))).collect();
    let mut state = None;
    let mut all = Vec::new();
    for (ranks, count) in CREWS {
        let crew = |rank: usize| {
            let node = rank * NODES / ranks;
            let folder = disk.folders[node % disk.folders.len()].clone();
            let disk = DiskCache { kind: CacheKind::Blocks, folder, bytes: disk.bytes };
            let settings = LoaderConfig {
                sampler: shuffle.into(),
                shard: Shard { rank: rank as u32, world: ranks as u32, tail: None },
                batch_size: GLOBAL_BATCH / ranks,
                cache: CacheConfig { memory: None, disk: Some(disk) },
                prefetch_next_epoch: false,
                ..config(Work::Bytes)
            };
            let stores = server.stores();
            let dataset = Dataset::open_in(&stores.add_to(Stores::new()), &urls).unwrap();
            let loader = Loader::new(dataset, settings).unwrap();
            let epoch = match &state {
                Some(state) => loader.resume(state).unwrap(),
                None => loader.epoch(epoch),
            };
            let found = steps(epoch, count);
            retries.fetch_add(stores.stats().retries, Ordering::Relaxed);
            found
        };
        let of_ranks: Vec<_> = thread::scope(|scope| {
            let started: Vec<_> = (0..ranks)
                .map(|rank| {
                    scope.spawn({
                        let crew = &crew;
                        move || crew(rank)
                    })
                })
                .collect();
            started.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        let states: Vec<&LoaderState> = of_ranks.iter().map(|(_, state)| state).collect();
        assert!(states.iter().all(|other| *other == states[0]), "any rank's state is that of all");
        let count = of_ranks.iter().map(|(steps, _)| steps.len()).max().unwrap();
        for step in 0..count {
            all.push(of_ranks.iter().flat_map(|(steps, _)| steps[step].clone()).collect());
        }
        state = Some(*states[0]);
    }
    all
}

/// One process with the files gets the same rows in the same steps.
#[test]
fn ranks_that_come_and_go_get_the_rows_of_one_process() {
    let root = tempfile::tempdir().unwrap();
    let all = write(root.path());
    let server = served(root.path(), Dialect::S3, |service| {
        let chances = vec![(Fault::SlowDown, 0.005), (Fault::Reset, 0.003), (Fault::Short, 0.002)];
        service.faults = Faults::Random { seed: 3, chances };
    });
    let paths: Vec<PathBuf> =
        (0..SHARDS).map(|shard| root.path().join(format!("{shard}.tbl"))).collect();
    let lanes =
        Shuffle::Lanes { lanes: 24, blocks: Blocks::Samples(8), window: 4, deal: Deal::Run };
    let block = Shuffle::Block { blocks: Blocks::Samples(16), window: 8 };
    let retries = AtomicU64::new(0);
    for shuffle in [lanes, block, Shuffle::Full] {
        let folders: Vec<_> = (0..NODES).map(|_| tempfile::tempdir().unwrap()).collect();
        let folders: Vec<PathBuf> =
            folders.iter().map(|folder| folder.path().to_path_buf()).collect();
        for epoch in 0..2 {
            let settings = LoaderConfig {
                sampler: shuffle.into(),
                batch_size: GLOBAL_BATCH,
                ..config(Work::Bytes)
            };
            let alone = Loader::new(Dataset::open(&paths).unwrap(), settings).unwrap();
            let (expected, _) = steps(alone.epoch(epoch), usize::MAX);
            // With a folder of each node, and with one that they share.
            for folders in [&folders[..], &folders[..1]] {
                let found =
                    trained(&server, shuffle, epoch, &Disk { folders, bytes: all / 10 }, &retries);
                assert!(found == expected, "{shuffle}, epoch {epoch}, {} folders", folders.len());
            }
        }
    }
    assert!(retries.into_inner() > 10, "the store failed now and then");
}
