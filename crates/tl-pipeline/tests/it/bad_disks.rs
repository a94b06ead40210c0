//! Disks that are full, slow or stuck, and folders of other users: batches are right, and a counter says
//! why less is kept.
//!
//! Some need the rights of root. Without them they are skipped, and say so.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tl_pipeline::{
    Blocks, CacheConfig, CacheKind, CacheStats, Loader, LoaderConfig, Shuffle, Work,
};

use crate::blocks::{URL, entries, stored, used};
use crate::caches::disk;
use crate::content::{Record, record};
use crate::memory::config;
use crate::store::MemoryStore;

/// Set for a process that runs as another user: the folder of the cache.
const STRANGER: &str = "TL_PIPELINE_STRANGER";

/// Far longer than anything here takes, on a machine however busy.
const PATIENCE: Duration = Duration::from_secs(120);

fn settings(cache: CacheConfig) -> LoaderConfig {
    let shuffle = Shuffle::Block { blocks: Blocks::Samples(8), window: 4 };
    let (sampler, prefetch_next_epoch) = (shuffle.into(), false);
    LoaderConfig { sampler, prefetch_next_epoch, batch_size: 4, cache, ..config(Work::Bytes) }
}

fn data() -> (MemoryStore, u64) {
    stored(320, 20_000, Duration::from_millis(1))
}

fn plain(store: &MemoryStore, epochs: u32) -> Vec<Vec<Record>> {
    let loader = Loader::new(store.open_all(&[URL]), settings(CacheConfig::default())).unwrap();
    (0..epochs).map(|epoch| record(&loader, epoch)).collect()
}

/// Runs a command; false if it fails.
fn succeeds(command: &str, args: &[&str]) -> bool {
    let mut run = Command::new(command);
    let run = run.args(args).stdout(Stdio::null()).stderr(Stdio::null());
    run.status().is_ok_and(|status| status.success())
}

/// A mounted file system, which leaves with this.
struct Mount(PathBuf);

impl Mount {
    /// `None` without the rights for it.
    fn new(args: &[&str], at: &Path) -> Option<Self> {
        let path = at.to_str().unwrap();
        succeeds("mount", &[args, &[path]].concat()).then(|| Self(at.to_path_buf()))
    }

    fn freeze(&self, action: &str) -> bool {
        succeeds("fsfreeze", &[action, self.0.to_str().unwrap()])
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.freeze("--unfreeze");
        succeeds("umount", &["--lazy", self.0.to_str().unwrap()]);
    }
}

#[test]
fn a_full_disk_changes_no_batch() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::new(&["-t", "tmpfs", "-o", "size=2m", "tmpfs"], folder.path()) else {
        return eprintln!("SKIPPED: nothing can be mounted here");
    };
    let (store, all) = data();
    let expected = plain(&store, 2);
    let cache = disk(CacheKind::Blocks, &mount.0, 64 << 20);
    let loader = Loader::new(store.open_all(&[URL]), settings(cache)).unwrap();
    for (number, expected) in (0..).zip(&expected) {
        assert!(record(&loader, number) == *expected);
    }
    let stats = loader.cache_stats();
    let fault = stats.first_fault.as_ref().unwrap().to_string();
    assert!(fault.contains("cannot take an entry: No space left on device"), "{fault}");
    // A block is tried once in an epoch.
    assert!(stats.faults <= 80 && stats.disk.inserted > 0 && stats.bad_entries == 0, "{stats:?}");
    drop(loader);
    let used = used(&mount.0);
    assert!(used > 1 << 20 && used < all, "{used}");
    assert_eq!(fs::read_dir(mount.0.join("turboloader-cache-1/drafts")).unwrap().count(), 0);
}

#[test]
fn a_disk_that_stops_answering_holds_up_no_batch() {
    let root = tempfile::tempdir().unwrap();
    let (image, folder) = (root.path().join("image"), root.path().join("mounted"));
    fs::create_dir(&folder).unwrap();
    File::create(&image).unwrap().set_len(32 << 20).unwrap();
    let image = image.to_str().unwrap();
    if !succeeds("mkfs.ext4", &["-q", image]) {
        return eprintln!("SKIPPED: mkfs.ext4 is not there");
    }
    let Some(mount) = Mount::new(&["-o", "loop", image], &folder) else {
        return eprintln!("SKIPPED: nothing can be mounted here");
    };
    let (store, _) = data();
    let expected = plain(&store, 3);
    let cache = disk(CacheKind::Blocks, &mount.0, 24 << 20);
    let config = LoaderConfig { read_ahead_bytes: 1 << 20, ..settings(cache) };
    let loader = Loader::new(store.open_all(&[URL]), config).unwrap();
    let mut batches = loader.epoch(0);
    batches.next().unwrap().unwrap();
    let begun = Instant::now();
    if !mount.freeze("--freeze") {
        return eprintln!("SKIPPED: fsfreeze is not there");
    }
    for batch in batches {
        batch.unwrap();
    }
    assert!(record(&loader, 1) == expected[1]);
    let stats = loader.cache_stats();
    assert!(stats.dropped_blocks > 0, "{stats:?}");
    drop(loader);
    assert!(begun.elapsed() < PATIENCE);
    assert!(mount.freeze("--unfreeze"));
    // What was stuck ends, and the next loader finds an orderly folder.
    let cache = disk(CacheKind::Blocks, &mount.0, 24 << 20);
    let is_orderly = || {
        let loader = Loader::new(store.open_all(&[URL]), settings(cache.clone())).unwrap();
        assert!(record(&loader, 2) == expected[2]);
        drop(loader);
        let ledger = fs::read(mount.0.join("turboloader-cache-1/usage")).unwrap();
        u64::from_le_bytes(ledger[..8].try_into().unwrap()) == used(&mount.0)
            && entries(&mount.0).len() == 40
    };
    while !is_orderly() {
        assert!(begun.elapsed() < PATIENCE);
    }
}

#[test]
fn a_slow_ledger_drops_blocks_and_no_batch() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = data();
    let expected = plain(&store, 2);
    let cache = disk(CacheKind::Blocks, folder.path(), 64 << 20);
    let loader = Loader::new(store.open_all(&[URL]), settings(cache)).unwrap();
    let is_over = AtomicBool::new(false);
    let path = folder.path().join("turboloader-cache-1/usage");
    let ledger = File::options().write(true).open(path).unwrap();
    ledger.lock().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            // However fast the epochs are, one block meets a lock that outlasts its wait.
            while loader.cache_stats().dropped_blocks == 0 && !is_over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            ledger.unlock().unwrap();
            while !is_over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(5));
                ledger.lock().unwrap();
                thread::sleep(Duration::from_millis(50));
                ledger.unlock().unwrap();
            }
        });
        let begun = Instant::now();
        for (number, expected) in (0..).zip(&expected) {
            assert!(record(&loader, number) == *expected);
        }
        let took = begun.elapsed();
        is_over.store(true, Ordering::Relaxed);
        assert!(took < PATIENCE, "{took:?}");
    });
    let CacheStats { dropped_blocks, faults, bad_entries, .. } = loader.cache_stats();
    println!("{dropped_blocks} blocks dropped, {faults} faults");
    // Locks that others have are not faults, after which nothing would be written.
    assert!(dropped_blocks > 0 && (faults, bad_entries) == (0, 0));
}

/// Runs two epochs as another user, and prints what the cache says.
fn be_a_stranger(folder: &Path) {
    let (store, _) = data();
    let expected = plain(&store, 2);
    let cache = disk(CacheKind::Blocks, folder, 64 << 20);
    let loader = Loader::new(store.open_all(&[URL]), settings(cache)).unwrap();
    for (number, expected) in (0..).zip(&expected) {
        assert!(record(&loader, number) == *expected);
    }
    let CacheStats { disk, faults, first_fault, .. } = loader.cache_stats();
    let fault = first_fault.map(|fault| fault.to_string()).unwrap_or_default();
    let said = format!("<{} {} {faults} {fault}>", disk.hits, disk.inserted);
    std::io::stdout().write_all(said.as_bytes()).unwrap();
}

#[test]
fn a_folder_of_another_user_is_read_at_most() {
    if let Some(folder) = std::env::var_os(STRANGER) {
        return be_a_stranger(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = data();
    let cache = disk(CacheKind::Blocks, folder.path(), 64 << 20);
    let loader = Loader::new(store.open_all(&[URL]), settings(cache)).unwrap();
    for number in 0..2 {
        let _ = record(&loader, number);
    }
    drop(loader);
    let before = entries(folder.path()).len();
    // The test's own program and its folders can be read by all where they are.
    let program = folder.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let as_nobody = |mode: u32| {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let root = folder.path().join("turboloader-cache-1");
        fs::set_permissions(&root, fs::Permissions::from_mode(mode)).unwrap();
        let mut child = Command::new("setpriv");
        child.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        child.args([
            "bad_disks::a_folder_of_another_user_is_read_at_most",
            "--exact",
            "--nocapture",
        ]);
        child.env(STRANGER, folder.path()).env("TMPDIR", "/tmp");
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().ok()?;
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        child.wait().unwrap().success().then(|| said.split(['<', '>']).nth(1).unwrap().to_owned())
    };
    if chown(&program, Some(65534), None).is_err() {
        return eprintln!("SKIPPED: the user cannot be changed");
    }
    let said = as_nobody(0o755).expect("batches are right");
    assert!(
        said.starts_with("640 0 1 cache ") && said.contains("cannot be written to: Permission"),
        "{said}"
    );
    let said = as_nobody(0o700).expect("batches are right");
    assert!(
        said.starts_with("0 0 ") && said.contains("cannot be written to: Permission"),
        "{said}"
    );
    assert_eq!(entries(folder.path()).len(), before);
}
