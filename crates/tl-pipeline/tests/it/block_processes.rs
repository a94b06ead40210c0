//! Processes that share a folder of blocks fetch each block once, and leave nothing half done when they
//! are killed.
//!
//! `TL_KILLS` is how often two of them are; 20 by default.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::Duration;

use tbl_io::ByteLocks;
use tl_pipeline::{Blocks, CacheKind, Loader, LoaderConfig, Shuffle, Work};

use crate::blocks::{ATTEMPTS, URL, entries, stored, used};
use crate::cache_kills::{child, kill, kills, random};
use crate::caches::disk;
use crate::content::record;
use crate::memory::config;
use crate::store::MemoryStore;

/// Set for a process that is to be killed: the folder of the cache.
const VICTIM: &str = "TL_PIPELINE_BLOCKS_VICTIM";

/// Set for a process that runs one epoch.
const PEER: &str = "TL_PIPELINE_BLOCKS_PEER";

/// Room for about half of the blocks.
const CAPACITY: u64 = 1 << 20;

fn settings(folder: &Path, capacity: u64) -> LoaderConfig {
    let cache = disk(CacheKind::Blocks, folder, capacity);
    let shuffle = Shuffle::Block { blocks: Blocks::Samples(8), window: 4 };
    let (sampler, prefetch_next_epoch) = (shuffle.into(), false);
    LoaderConfig { sampler, prefetch_next_epoch, batch_size: 4, cache, ..config(Work::Bytes) }
}

/// Every process has a store of its own, with the same versions of the same objects.
fn data() -> (MemoryStore, u64) {
    stored(96, 20_000, Duration::from_millis(1))
}

/// Fills the cache, over and over, and says so after each batch.
fn be_the_victim(folder: &Path) {
    let (store, _) = data();
    for epoch in 0.. {
        let loader = Loader::new(store.open_all(&[URL]), settings(folder, CAPACITY)).unwrap();
        for batch in loader.epoch(epoch) {
            batch.unwrap();
            std::io::stdout().write_all(b"#").unwrap();
            std::io::stdout().flush().unwrap();
        }
    }
}

#[test]
fn the_next_run_is_right_after_every_kill() {
    if let Some(folder) = std::env::var_os(VICTIM) {
        return be_the_victim(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (store, all) = data();
    let plain = LoaderConfig { cache: tl_pipeline::CacheConfig::default(), ..settings(folder, 0) };
    let expected = record(&Loader::new(store.open_all(&[URL]), plain).unwrap(), 7);
    let mut random = random();
    let (mut drafts, mut hits) = (0, 0);
    let victim =
        || child("block_processes::the_next_run_is_right_after_every_kill", VICTIM, folder);
    let root = folder.join("turboloader-cache-1");
    for _ in 0..kills() {
        if root.exists() {
            // Deleted, so that blocks have to be fetched and written.
            entries(folder).iter().filter(|_| random(4) > 0).for_each(|path| {
                fs::remove_file(path).unwrap();
            });
            // The number of their bytes is lost with them.
            drop(fs::remove_file(root.join("usage")));
        }
        let one = victim();
        let other = victim();
        kill(one, random(20), &root.join("drafts"), 5_000 + random(20_000));
        kill(other, 0, &root.join("drafts"), 5_000 + random(20_000));
        drafts += fs::read_dir(root.join("drafts")).map_or(0, Iterator::count);
        let locks = ByteLocks::open(&root.join("claims")).unwrap();
        assert!((0..=u16::MAX).all(|byte| !locks.is_locked_elsewhere(byte).unwrap()));

        let loader = Loader::new(store.open_all(&[URL]), settings(folder, CAPACITY)).unwrap();
        assert!(record(&loader, 7) == expected);
        // A thread counts what the dead left, while samples are used without the cache.
        while used(folder) <= CAPACITY / 2 {
            assert!(record(&loader, 7) == expected);
        }
        let stats = loader.cache_stats();
        // A process that dies loses nothing it has renamed; only a machine that does could.
        assert_eq!(stats.bad_entries, 0, "{stats:?}");
        // A machine that is busy with much else may hold a lock for half a second.
        let fault = stats.first_fault.as_ref().map(|fault| fault.source.kind());
        assert!(fault.is_none_or(|kind| kind == ErrorKind::TimedOut), "{stats:?}");
        hits += stats.disk.hits;
        drop(loader);
        let used = used(folder);
        assert!(used <= CAPACITY && used > CAPACITY / 2, "{used} of {CAPACITY}, {all} in all");
        let ledger = fs::read(root.join("usage")).unwrap();
        assert_eq!(u64::from_le_bytes(ledger[..8].try_into().unwrap()), used);
        // The dead left drafts, and the run above removed them.
        assert_eq!(fs::read_dir(root.join("drafts")).unwrap().count(), 0);
    }
    assert!(hits > 0);
    println!("{} kills, {drafts} half-written blocks, {hits} samples found and right", 2 * kills());
}

/// Prints the bytes that an epoch received.
fn be_a_peer(folder: &Path) {
    let (store, _) = stored(320, 50_000, Duration::from_millis(2));
    let loader = Loader::new(store.open_all(&[URL]), settings(folder, 64 << 20)).unwrap();
    store.received();
    let batches = record(&loader, 3);
    assert_eq!(batches.len(), 80);
    drop(loader);
    let said = format!("<{}>", store.received());
    std::io::stdout().write_all(said.as_bytes()).unwrap();
}

#[test]
fn four_processes_fetch_the_data_once() {
    if let Some(folder) = std::env::var_os(PEER) {
        return be_a_peer(Path::new(&folder));
    }
    let (_, all) = stored(320, 50_000, Duration::ZERO);
    for processes in [2, 4] {
        // Blocks that a busy disk does not take in time are requested again.
        let is_once = (0..ATTEMPTS).any(|_| {
            let folder = tempfile::tempdir().unwrap();
            let name = "block_processes::four_processes_fetch_the_data_once";
            let peers: Vec<_> = (0..processes).map(|_| child(name, PEER, folder.path())).collect();
            let mut received = 0;
            for mut peer in peers {
                let mut said = String::new();
                peer.stdout.take().unwrap().read_to_string(&mut said).unwrap();
                assert!(peer.wait().unwrap().success(), "{said}");
                received += said.split(['<', '>']).nth(1).unwrap().parse::<u64>().unwrap();
            }
            println!("{processes} processes: {received} of {all} bytes");
            received <= all + all / 50 && used(folder.path()) >= all
        });
        assert!(is_once, "{processes} processes");
    }
}
