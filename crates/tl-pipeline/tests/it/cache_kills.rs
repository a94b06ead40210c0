//! Processes that are killed while they write to a cache leave only sound entries.
//!
//! `TL_KILLS` is their number; 20 by default.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tbl_format::SampleFormat;
use tbl_io::{NewSample, StreamWriter, WriteOptions};
use tl_pipeline::{CacheKind, Dataset, LoaderConfig, Shard, Tail};

use crate::caches::{disk, exact};
use crate::content::record;
use crate::memory::{config, loader};

/// Set for the process that is to be killed: the folder with everything in it.
const VICTIM: &str = "TL_PIPELINE_CACHE_VICTIM";

const SAMPLES: u32 = 40;
const SIDE: u32 = 600;

/// Room for about half of the images.
const CAPACITY: u64 = 20 * 1_081_344;

fn settings(root: &Path) -> LoaderConfig {
    let cache = disk(CacheKind::Decoded, &root.join("cache"), CAPACITY);
    LoaderConfig { workers: 3, cache, ..config(exact()) }
}

fn data(root: &Path) -> Dataset {
    Dataset::open(&[root.join("some.tbl")]).unwrap()
}

fn write_data(root: &Path) {
    let mut writer = StreamWriter::create(&root.join("some.tbl"), WriteOptions::default()).unwrap();
    for number in 0..SAMPLES {
        let pixels: Vec<u8> =
            (0..SIDE * SIDE * 3).map(|at| ((at * (number + 3)) >> 5).to_le_bytes()[0]).collect();
        let (format, width, height) = (SampleFormat::RawU8, SIDE, SIDE);
        writer
            .write_sample(&NewSample { format, width, height, ..NewSample::new(&pixels) })
            .unwrap();
    }
    writer.finish().unwrap();
}

/// Fills the cache, over and over, and says so after each batch. Five samples of each epoch are
/// left over for its last batch, so that the next epoch is known not to need them: they leave.
fn be_the_victim(root: &Path) {
    let shard = Shard { tail: Some(Tail::Drop), ..Shard::default() };
    for epoch in 0.. {
        let config = LoaderConfig { batch_size: 7, shard, ..settings(root) };
        let loader = loader(data(root), config);
        for batch in loader.epoch(epoch) {
            batch.unwrap();
            std::io::stdout().write_all(b"#").unwrap();
            std::io::stdout().flush().unwrap();
        }
    }
}

fn victim(root: &Path) -> Child {
    child("cache_kills::the_next_run_is_right_after_every_kill", VICTIM, root)
}

/// A process that runs one test, with a variable set.
pub(crate) fn child(test: &str, variable: &str, value: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(variable, value)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills the process a little after this many batches, preferably in the middle of an entry.
pub(crate) fn kill(mut child: Child, batches: u32, drafts: &Path, looks: u32) {
    let stdout = child.stdout.as_mut().unwrap();
    let mut seen = 0;
    while seen < batches {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        seen += u32::from(byte == *b"#");
    }
    for _ in 0..looks {
        if fs::read_dir(drafts).is_ok_and(|mut drafts| drafts.next().is_some()) {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Every file below `folder` with its length.
pub(crate) fn files(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            files.extend(self::files(&entry.path()));
        } else {
            files.push((entry.path(), entry.metadata().unwrap().len()));
        }
    }
    files
}

/// How often two processes are killed.
pub(crate) fn kills() -> u32 {
    std::env::var("TL_KILLS").map_or(20, |kills| kills.parse().unwrap())
}

/// Numbers below the given ones.
pub(crate) fn random() -> impl FnMut(u32) -> u32 {
    let mut state = 1u32;
    move |below| {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        (state >> 16) % below
    }
}

#[test]
fn the_next_run_is_right_after_every_kill() {
    if let Some(root) = std::env::var_os(VICTIM) {
        return be_the_victim(Path::new(&root));
    }
    let kills = kills();
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write_data(root);
    fs::create_dir(root.join("cache")).unwrap();
    let expected = record(&loader(data(root), config(exact())), 7);
    let mut random = random();
    let (mut drafts, mut hits) = (0, 0);
    for _ in 0..kills {
        let is_entry = |path: &Path| path.file_name().unwrap().len() == 62;
        for (path, _) in files(&root.join("cache")) {
            // Deleted, so that an entry has to be written.
            if is_entry(&path) && random(4) > 0 {
                fs::remove_file(path).unwrap();
            }
        }
        // The number of their bytes is lost with them.
        drop(fs::remove_file(root.join("cache/turboloader-cache-1/usage")));
        // Two at once, so that one also dies while the other works.
        let (one, other) = (victim(root), victim(root));
        let folder = root.join("cache/turboloader-cache-1/drafts");
        kill(one, random(3), &folder, 5_000 + random(20_000));
        kill(other, 0, &folder, 5_000 + random(20_000));
        drafts += fs::read_dir(folder).map_or(0, Iterator::count);

        let loader = loader(data(root), settings(root));
        assert!(record(&loader, 7) == expected);
        let used = || -> u64 {
            let files = files(&root.join("cache"));
            let entries = files.iter().filter(|(path, _)| is_entry(path));
            entries.map(|(_, len)| len.next_multiple_of(4096)).sum()
        };
        // A thread counts what the dead left, while samples are used without the cache.
        while used() <= CAPACITY / 2 {
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
        assert!(used() <= CAPACITY, "{}", used());
        // The dead left drafts, and the run above removed them.
        let files = files(&root.join("cache"));
        assert!(!files.iter().any(|(path, _)| path.parent().unwrap().ends_with("drafts")));
    }
    assert!(hits > 0);
    println!("{} kills, {drafts} half-written entries, {hits} entries found and right", 2 * kills);
}
