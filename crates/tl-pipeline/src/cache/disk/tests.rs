use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use tl_handoff::sync::thread;

use super::*;

const LIMIT: u64 = 1 << 20;

/// Entries of `payload` such bytes are counted as.
fn cost_of(payload: usize) -> u64 {
    cost((payload + Trailer::BYTES) as u64)
}

fn key(sample: u64) -> Key {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&sample.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    key[24..].copy_from_slice(&sample.to_le_bytes());
    Key(key)
}

fn payload(sample: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at * 31 + sample * 7).to_le_bytes()[0]).collect()
}

fn insert(disk: &Disk, sample: u64, len: usize, next: NextUse) {
    let payload = payload(sample, len);
    let new = NewEntry { sample, key: key(sample), payload: &payload, size: (3, 4), next };
    disk.insert(new, |sample| Some(key(sample)));
}

/// True if the entry is found, and then checks it.
fn finds(disk: &Disk, sample: u64, len: usize, next: NextUse) -> bool {
    let mut bytes = vec![9; 17];
    let size = disk.get(sample, key(sample), LIMIT, next, &mut bytes);
    assert!(size.is_none() || (size, bytes) == (Some((3, 4)), payload(sample, len)));
    size.is_some()
}

fn stats(disk: &Disk) -> CacheStats {
    let mut stats = CacheStats::default();
    disk.add_stats(&mut stats);
    stats
}

/// The files of all entries.
fn files(root: &Path) -> Vec<PathBuf> {
    let (older, _) = Folder::new(root).older(None, &|| false).unwrap();
    older.into_iter().map(|entry| entry.path).collect()
}

fn ledger_says(disk: &Disk) -> Option<u64> {
    disk.ledger.as_ref().unwrap().lock().unwrap().used()
}

/// Waits for work on the folder.
fn worked(disk: &Disk) {
    assert!(disk.background.wait(Duration::from_secs(60)));
}

/// The cache, once its folder is counted.
fn counted(root: &Path, capacity: u64) -> Arc<Disk> {
    let disk = Disk::open(root, capacity);
    worked(&disk);
    disk
}

/// Writes what another process leaves that dies while it makes an entry.
fn leave_reserved(disk: &Disk, bytes: u64) {
    disk.ledger.as_ref().unwrap().lock().unwrap().reserve(bytes).unwrap();
}

fn age(path: &Path, hours: u64) {
    let time = SystemTime::now() - Duration::from_secs(hours * 3600);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn an_entry_is_found_by_others_and_after_the_end() {
    let root = tempfile::tempdir().unwrap();
    let one = Disk::open(root.path(), LIMIT);
    let other = Disk::open(root.path(), LIMIT);
    for (sample, len) in [(1, 0), (2, 1), (3, 10_000)] {
        assert!(!finds(&other, sample, len, None));
        insert(&one, sample, len, None);
        assert!(finds(&one, sample, len, None) && finds(&other, sample, len, None));
    }
    // An existing entry is not written again, and counted once.
    insert(&other, 3, 10_000, None);
    assert_eq!(ledger_says(&one), Some(cost_of(0) + cost_of(1) + cost_of(10_000)));
    drop((one, other));
    let later = Disk::open(root.path(), LIMIT);
    assert!(finds(&later, 3, 10_000, None));
    let stats = stats(&later);
    assert_eq!((stats.disk.hits, stats.disk.misses, stats.faults), (1, 0, 0));
    assert_eq!(stats.disk.bytes, 5 * 4096);
}

#[test]
fn what_is_needed_last_leaves_and_takes_no_room() {
    let root = tempfile::tempdir().unwrap();
    let disk = Disk::open(root.path(), 3 * 4096);
    for (sample, next) in [(1, 10), (2, 30), (3, 20)] {
        insert(&disk, sample, 100, Some(next));
    }
    insert(&disk, 4, 100, Some(40));
    insert(&disk, 5, 5_000, Some(5));
    assert_eq!(files(root.path()).len(), 2);
    assert!(finds(&disk, 1, 100, Some(50)) && finds(&disk, 5, 5_000, Some(51)));
    let LevelStats { inserted, refused, evicted, entries, bytes, .. } = stats(&disk).disk;
    assert_eq!((inserted, refused, evicted, entries, bytes), (4, 1, 2, 2, 3 * 4096));
    // Larger than all.
    insert(&disk, 6, 20_000, Some(1));
    assert!(finds(&disk, 1, 100, Some(60)));
}

#[test]
fn no_number_of_writers_exceeds_the_capacity() {
    const CAPACITY: u64 = 20 * 4096;
    let root = tempfile::tempdir().unwrap();
    let disks = [Disk::open(root.path(), CAPACITY), Disk::open(root.path(), CAPACITY)];
    let folder = Folder::new(root.path());
    thread::scope(|scope| {
        for (writer, disk) in (0..6u64).zip(disks.iter().cycle()) {
            let folder = &folder;
            scope.spawn(move || {
                for step in 0..60 {
                    let sample = (writer / 2 * 17 + step * 5) % 40;
                    let len = sample as usize * 400;
                    let next = Some(1_000 - step);
                    if !finds(disk, sample, len, next) {
                        insert(disk, sample, len, next);
                    }
                    // Nothing leaves and nothing is renamed while it is counted.
                    let page = disk.ledger.as_ref().unwrap().lock().unwrap();
                    let used = folder.used(&|| false).unwrap();
                    assert!(used <= page.used().unwrap(), "{used}");
                    assert!(page.used().unwrap() <= CAPACITY, "{page:?}");
                }
            });
        }
    });
    let [one, other] = [stats(&disks[0]), stats(&disks[1])];
    assert_eq!((one.faults, other.faults, one.bad_entries), (0, 0, 0), "{:?}", one.first_fault);
    assert!(one.disk.evicted > 0 && other.disk.evicted > 0);
    let used = folder.used(&|| false).unwrap();
    drop(disks);
    assert_eq!(ledger_says(&Disk::open(root.path(), CAPACITY)), Some(used));
}

#[test]
fn a_damaged_entry_is_removed_and_made_again() {
    let root = tempfile::tempdir().unwrap();
    let disk = Disk::open(root.path(), LIMIT);
    let damages: [fn(&mut Vec<u8>); 6] = [
        |file| file.clear(),
        |file| file.truncate(50),
        |file| file.fill(0),
        |file| file[1_000] ^= 4,
        |file| file.truncate(file.len() - 1),
        |file| file.resize(3 << 20, 1),
    ];
    for (number, damage) in (1..).zip(damages) {
        insert(&disk, 1, 2_000, None);
        insert(&disk, 2, 2_000, None);
        let path = disk.folder.entry(key(1));
        let mut file = fs::read(&path).unwrap();
        damage(&mut file);
        fs::write(&path, file).unwrap();
        assert!(!finds(&disk, 1, 2_000, None));
        assert!(!path.exists() && finds(&disk, 2, 2_000, None));
        assert_eq!(stats(&disk).bad_entries, number);
    }
    // An entry in another's place.
    fs::copy(disk.folder.entry(key(2)), disk.folder.entry(key(1))).unwrap();
    assert!(!finds(&disk, 1, 2_000, None));
    assert_eq!((stats(&disk).bad_entries, stats(&disk).faults), (7, 0));
}

#[test]
fn what_the_dead_left_is_cleared_when_nobody_else_is_there() {
    let root = tempfile::tempdir().unwrap();
    let disk = Disk::open(root.path(), LIMIT);
    insert(&disk, 1, 100, None);
    // Died while writing: a draft, and bytes that were reserved.
    let draft = disk.folder.drafts().join("draft-of-the-dead");
    fs::write(&draft, [1; 5_000]).unwrap();
    leave_reserved(&disk, 98 * 4096);
    let other = counted(root.path(), LIMIT);
    assert!(draft.exists(), "it may be being written");
    assert_eq!(ledger_says(&other), Some(99 * 4096));
    drop((disk, other));
    let later = counted(root.path(), LIMIT);
    assert!(!draft.exists());
    assert_eq!(ledger_says(&later), Some(4096));
    assert!(finds(&later, 1, 100, None));
}

#[test]
fn a_lost_number_is_counted_when_nobody_else_is_there() {
    let root = tempfile::tempdir().unwrap();
    for lost in [&b""[..], b"garbage that is long"] {
        let disk = counted(root.path(), 3 * 4096);
        insert(&disk, 1, 100, None);
        fs::write(disk.folder.usage(), lost).unwrap();
        insert(&disk, 2, 100, None);
        assert_eq!((ledger_says(&disk), files(root.path()).len()), (None, 1));
        assert!(finds(&disk, 1, 100, None));
        assert_eq!(stats(&disk).faults, 0);
    }
    let disk = counted(root.path(), 3 * 4096);
    assert_eq!(ledger_says(&disk), Some(4096));
    for sample in 2..5 {
        insert(&disk, sample, 100, None);
    }
    assert_eq!((ledger_says(&disk), files(root.path()).len()), (Some(3 * 4096), 3));
}

#[test]
fn opening_waits_neither_for_a_count_nor_for_one_who_counts() {
    let root = tempfile::tempdir().unwrap();
    let disk = Disk::open(root.path(), LIMIT);
    insert(&disk, 1, 100, None);
    leave_reserved(&disk, 4096);
    drop(disk);
    let disk = Disk::open(root.path(), LIMIT);
    // The thread has the folder, or has counted it.
    assert!(disk.background.is_started());
    worked(&disk);
    assert_eq!(ledger_says(&disk), Some(4096));
    drop(disk);
    // Another process counts.
    let users = File::open(Folder::new(root.path()).users()).unwrap();
    users.lock().unwrap();
    let disk = Disk::open(root.path(), LIMIT);
    assert!(finds(&disk, 1, 100, None), "entries are read meanwhile");
    insert(&disk, 2, 100, None);
    assert_eq!(files(root.path()).len(), 1, "and none is written");
    users.unlock().unwrap();
    insert(&disk, 2, 100, None);
    assert_eq!((files(root.path()).len(), stats(&disk).faults), (2, 0));
}

#[test]
fn a_folder_that_was_left_in_order_is_not_counted() {
    let root = tempfile::tempdir().unwrap();
    let disk = Disk::open(root.path(), LIMIT);
    insert(&disk, 1, 100, None);
    insert(&disk, 2, 100, None);
    // Deleted by hand.
    fs::remove_file(disk.folder.entry(key(2))).unwrap();
    disk.leave();
    drop(disk);
    let disk = counted(root.path(), LIMIT);
    assert_eq!((ledger_says(&disk), stats(&disk).disk.bytes), (Some(2 * 4096), 2 * 4096));
    drop(disk);
    // It is counted once there is no room.
    let disk = counted(root.path(), 2 * 4096);
    insert(&disk, 3, 100, None);
    worked(&disk);
    insert(&disk, 3, 100, None);
    assert_eq!((ledger_says(&disk), files(root.path()).len()), (Some(2 * 4096), 2));
}

#[test]
fn entries_that_end_after_the_loader_are_settled() {
    let root = tempfile::tempdir().unwrap();
    let disk = Disk::open(root.path(), LIMIT);
    assert!(disk.begin(4096, LOCK_WAIT, None, |_| None).unwrap());
    assert!(disk.begin(8192, LOCK_WAIT, None, |_| None).unwrap());
    disk.leave();
    let other = Disk::open(root.path(), LIMIT);
    worked(&other);
    assert_eq!(ledger_says(&other), Some(3 * 4096), "it is still used");
    disk.abandon(4096);
    disk.abandon(8192);
    assert_eq!(ledger_says(&other), Some(0));
    drop(other);
    let users = File::open(disk.folder.users()).unwrap();
    users.try_lock().unwrap();
}

#[test]
fn a_smaller_capacity_cuts_the_folder_down_to_the_newest() {
    let root = tempfile::tempdir().unwrap();
    let disk = Disk::open(root.path(), LIMIT);
    for sample in 0..10 {
        insert(&disk, sample, 100, None);
        age(&disk.folder.entry(key(sample)), 11 - sample);
    }
    drop(disk);
    let disk = counted(root.path(), 4 * 4096);
    assert_eq!(ledger_says(&disk), Some(4 * 4096));
    for sample in 0..10 {
        assert_eq!(finds(&disk, sample, 100, None), sample >= 6);
    }
}

#[test]
fn only_what_nobody_uses_makes_room_for_strangers() {
    let root = tempfile::tempdir().unwrap();
    let disk = Disk::open(root.path(), 4 * 4096);
    for sample in 0..4 {
        insert(&disk, sample, 100, None);
    }
    age(&disk.folder.entry(key(1)), 25);
    age(&disk.folder.entry(key(2)), 25);
    drop(disk);
    let disk = Disk::open(root.path(), 4 * 4096);
    // Found, and so not to be evicted any more.
    assert!(finds(&disk, 2, 100, None));
    disk.start_sweep();
    worked(&disk);
    for sample in 4..7 {
        insert(&disk, sample, 100, Some(sample));
    }
    let found: Vec<u64> = (0..7).filter(|&sample| finds(&disk, sample, 100, Some(9))).collect();
    assert_eq!(found, [0, 2, 3, 4]);
}

#[test]
fn an_entry_that_cannot_be_read_nor_removed_is_tried_once() {
    let root = tempfile::tempdir().unwrap();
    let disk = Disk::open(root.path(), LIMIT);
    // A folder is not read, and not removed as a file.
    fs::create_dir_all(disk.folder.entry(key(1))).unwrap();
    for _ in 0..40 {
        assert!(!finds(&disk, 1, 100, None));
        insert(&disk, 1, 100, None);
        assert!(!disk.contains(key(1)));
    }
    let once = stats(&disk);
    assert_eq!((once.faults, once.disk.misses, once.disk.refused), (2, 40, 40));
    assert!(once.first_fault.unwrap().to_string().contains("cannot be read"));
    insert(&disk, 2, 100, None);
    assert!(finds(&disk, 2, 100, None), "others are kept");
    // Damage in a folder that cannot be changed now.
    let path = disk.folder.entry(key(2));
    fs::write(&path, b"damage").unwrap();
    disk.users.as_ref().unwrap().pause();
    assert!(!finds(&disk, 2, 100, None) && !finds(&disk, 2, 100, None));
    assert_eq!(stats(&disk).bad_entries, 1);
}

#[test]
fn an_entry_that_another_process_made_anew_stays() {
    let root = tempfile::tempdir().unwrap();
    let disk = Disk::open(root.path(), LIMIT);
    let path = disk.folder.entry(key(1));
    for is_paused in [false, true] {
        insert(&disk, 1, 100, None);
        let damaged = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        disk.discard(1, key(1), &damaged);
        assert!(!disk.is_unusable(key(1)), "it has left");
        let sound = root.path().join("sound");
        fs::write(&sound, b"").unwrap();
        insert(&disk, 2, 100, None);
        fs::copy(disk.folder.entry(key(2)), &sound).unwrap();
        fs::rename(&sound, &path).unwrap();
        if is_paused {
            disk.users.as_ref().unwrap().pause();
        }
        disk.discard(1, key(1), &damaged);
        assert!(path.exists() && !disk.is_unusable(key(1)));
        disk.discard(1, key(1), &File::open(&path).unwrap());
        assert_eq!((path.exists(), disk.is_unusable(key(1))), (is_paused, is_paused));
    }
}

#[test]
fn files_of_others_are_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let disk = Disk::open(root.path(), LIMIT);
    insert(&disk, 1, 100, None);
    let inside = disk.folder.path().to_path_buf();
    let shelf = files(root.path())[0].parent().unwrap().to_path_buf();
    drop(disk);
    let strangers =
        [root.path().join("notes"), inside.join("notes"), shelf.join("notes"), inside.join("zz")];
    for stranger in &strangers {
        fs::write(stranger, [0; 9_000]).unwrap();
        age(stranger, 1_000);
    }
    let disk = counted(root.path(), 4096);
    assert_eq!(ledger_says(&disk), Some(4096));
    insert(&disk, 2, 100, Some(1));
    worked(&disk);
    drop(counted(root.path(), 0));
    drop(disk);
    drop(counted(root.path(), 0));
    assert_eq!(files(root.path()).len(), 0);
    assert!(strangers.iter().all(|stranger| stranger.exists()));
}

#[test]
fn a_folder_that_cannot_be_made_is_a_fault_and_no_failure() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("a file");
    fs::write(&file, b"").unwrap();
    let disk = Disk::open(&file.join("cache"), LIMIT);
    insert(&disk, 1, 100, None);
    assert!(!finds(&disk, 1, 100, None));
    let stats = stats(&disk);
    assert_eq!((stats.disk.refused, stats.disk.misses), (1, 1));
    let fault = stats.first_fault.unwrap().to_string();
    assert!(fault.starts_with("cache ") && fault.contains("cannot be written to"), "{fault}");
}

#[test]
fn a_disk_that_refuses_is_not_asked_for_ever() {
    let root = tempfile::tempdir().unwrap();
    let disk = Disk::open(root.path(), LIMIT);
    insert(&disk, 1, 100, None);
    fs::remove_dir(disk.folder.drafts()).unwrap();
    for sample in 2..100 {
        insert(&disk, sample, 100, None);
    }
    let stats = stats(&disk);
    assert_eq!((stats.disk.inserted, stats.faults, stats.disk.refused), (1, 16, 82));
    assert!(stats.first_fault.unwrap().to_string().contains("cannot take an entry"));
    // Nothing was taken for what was not written.
    assert_eq!((ledger_says(&disk), stats.disk.bytes), (Some(4096), 4096));
    assert!(finds(&disk, 1, 100, None));
}
