//! A cache on disk: a file for each entry, shared by processes, bounded, and safe to be killed.
//!
//! An entry is written under another name and renamed, so a reader finds it whole or not at all.
//! Nothing is synced: after a power cut an entry may be there without its bytes, which its trailer
//! tells, and then it is made again. Waiting for the disk would protect what can be made anew.

use std::collections::HashSet;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use tempfile::Builder;
use tl_handoff::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, Weak, lock, process_id};
use zerocopy::IntoBytes;

use crate::cache::background::Background;
use crate::cache::entry::Trailer;
use crate::cache::fault::Faults;
use crate::cache::folder::{Folder, cost, remove};
use crate::cache::key::Key;
use crate::cache::ledger::{LOCK_WAIT, Ledger, Page};
use crate::cache::planner::{NextUse, Planner};
use crate::cache::stats::{CacheStats, LevelStats};
use crate::cache::users::Users;

mod reading;
mod upkeep;

pub(crate) use self::reading::{note_use, renew};

/// An entry found says that it is in use by its time of change, which is renewed after this long.
pub(crate) const RENEW_AFTER: Duration = Duration::from_secs(12 * 3600);

/// The time that work on the folder may take to end with its loader.
const LAST_WORK: Duration = Duration::from_secs(1);

/// A folder of entries.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: Folder,
    capacity: u64,
    /// `None` where nothing can be written.
    ledger: Option<Ledger>,
    /// The place among those that write; `None` as the ledger.
    users: Option<Users>,
    /// Bytes of entries that were begun and have not ended.
    reserved: AtomicU64,
    background: Background,
    /// This, for the thread of `background`.
    own: Weak<Self>,
    /// The process that opened it.
    process: u32,
    /// The entries that this loader has met.
    planner: Mutex<Planner<()>>,
    swept: AtomicBool,
    counters: Counters,
    faults: Faults,
    /// Entries that cannot be read and not be removed either. They are not tried again.
    unusable: Mutex<HashSet<Key>>,
}

#[derive(Debug, Default)]
struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    inserted: AtomicU64,
    refused: AtomicU64,
    evicted: AtomicU64,
    bad: AtomicU64,
    /// Bytes of the folder when they were last looked at.
    bytes: AtomicU64,
}

/// The entry to store for a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewEntry<'a> {
    pub(crate) sample: u64,
    pub(crate) key: Key,
    pub(crate) payload: &'a [u8],
    /// Width and height of pixels.
    pub(crate) size: (u32, u32),
    pub(crate) next: NextUse,
}

/// The file of an entry that was begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryFile {
    /// The number by which this loader knows the entry.
    pub(crate) number: u64,
    pub(crate) key: Key,
    /// The bytes that are reserved for it.
    pub(crate) cost: u64,
}

impl Disk {
    /// The cache in `folder`, which may grow to `capacity` bytes. If there cannot be one, or it can
    /// only be read, that is a fault and no failure. Takes no longer for many entries than for few.
    pub(crate) fn open(folder: &Path, capacity: u64) -> Arc<Self> {
        let folder = Folder::new(folder);
        let faults = Faults::default();
        let open = || {
            folder.create()?;
            Ok((Users::open(&folder.users())?, Ledger::open(&folder.usage())?))
        };
        let (users, ledger) = match open() {
            Ok((users, ledger)) => (Some(users), Some(ledger)),
            Err(error) => {
                faults.add(folder.path(), "be written to", error);
                (None, None)
            }
        };
        let disk = Arc::new_cyclic(|own| Self {
            folder,
            capacity,
            ledger,
            users,
            reserved: AtomicU64::new(0),
            background: Background::new(),
            own: own.clone(),
            process: process_id(),
            planner: Mutex::new(Planner::new()),
            swept: AtomicBool::new(false),
            counters: Counters::default(),
            faults,
            unusable: Mutex::default(),
        });
        disk.enter();
        disk
    }

    /// True if this loader has found or written the entry of `sample`. Another process may have
    /// deleted it since.
    pub(crate) fn has_met(&self, sample: u64) -> bool {
        lock(&self.planner).contains(sample)
    }

    /// True if an entry of this name exists now, sound or not.
    pub(crate) fn contains(&self, key: Key) -> bool {
        self.folder.entry(key).exists() && !self.is_unusable(key)
    }

    /// True if an entry of usual size would be stored, as far as this loader knows.
    pub(crate) fn may_take(&self, next: NextUse) -> bool {
        let foreign = self.counters.bytes.load(Ordering::Relaxed);
        let mut planner = lock(&self.planner);
        let foreign = foreign.saturating_sub(planner.bytes());
        self.ledger.is_some()
            && !self.faults.hopeless()
            && (planner.may_take(self.capacity.saturating_sub(foreign), next)
                || !self.swept.load(Ordering::Relaxed))
    }

    /// Keeps an entry, unless it is the one that is needed last. `name` gives the names of others.
    pub(crate) fn insert(&self, new: NewEntry<'_>, name: impl Fn(u64) -> Option<Key>) {
        let bytes = cost(new.payload.len() as u64 + Trailer::BYTES as u64);
        if self.is_unusable(new.key) {
            count(&self.counters.refused);
            return;
        }
        match self.begin(bytes, LOCK_WAIT, new.next, name) {
            Ok(false) => {}
            Ok(true) => {
                let trailer = Trailer::new(new.key, new.payload, new.size);
                let file = EntryFile { number: new.sample, key: new.key, cost: bytes };
                self.finish(file, new.next, |draft| {
                    draft.write_all(new.payload)?;
                    draft.write_all(trailer.as_bytes())
                });
            }
            // A worker has waited, which it does not for ever.
            Err(error) => self.faults.add(self.folder.path(), "be locked", error),
        }
    }

    /// Reserves `bytes` of the capacity for an entry that [`finish`](Self::finish) writes. False if it
    /// should not be made: those there are needed sooner, or nothing can be written.
    ///
    /// # Errors
    /// `TimedOut`: others have the folder for longer than `patience`.
    pub(crate) fn begin(
        &self,
        bytes: u64,
        patience: Duration,
        next: NextUse,
        name: impl Fn(u64) -> Option<Key>,
    ) -> io::Result<bool> {
        let Some(ledger) = self.writable().filter(|_| !self.faults.hopeless()) else {
            count(&self.counters.refused);
            return Ok(false);
        };
        if !self.swept.load(Ordering::Relaxed)
            && self.counters.bytes.load(Ordering::Relaxed).saturating_add(bytes) > self.capacity
            && self.start_sweep()
        {
            self.swept.store(true, Ordering::Relaxed);
        }
        match ledger.lock_within(patience).and_then(|page| self.reserve(page, bytes, next, name)) {
            Ok(true) => Ok(true),
            Ok(false) => {
                count(&self.counters.refused);
                Ok(false)
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(error),
            Err(error) => {
                self.faults.add(self.folder.path(), "be locked", error);
                Ok(false)
            }
        }
    }

    /// Writes an entry whose bytes are reserved. False if there is none then.
    pub(crate) fn finish(
        &self,
        entry: EntryFile,
        next: NextUse,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> bool {
        let Some(ledger) = &self.ledger else { return false };
        let is_there = match self.write(ledger, entry, write) {
            Ok(true) => {
                self.faults.wrote();
                count(&self.counters.inserted);
                true
            }
            // Another process had the same idea.
            Ok(false) => {
                self.give_back(ledger, entry.cost);
                true
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::TimedOut {
                    self.faults.add(self.folder.path(), "take an entry", error);
                }
                self.give_back(ledger, entry.cost);
                false
            }
        };
        if is_there {
            lock(&self.planner).insert(entry.number, (), entry.cost, next);
        }
        self.ended(entry.cost);
        is_there
    }

    /// Releases the bytes of an entry that is not going to be written, at the next chance: this does not
    /// wait for other processes.
    pub(crate) fn abandon(&self, bytes: u64) {
        if let Some(ledger) = &self.ledger {
            ledger.owe(bytes);
            let left = |used: u64| Some(used.saturating_sub(bytes));
            self.counters.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).ok();
            self.ended(bytes);
        }
    }

    /// Notes that an entry that was begun has ended.
    fn ended(&self, bytes: u64) {
        self.reserved.fetch_sub(bytes, Ordering::Relaxed);
        self.settle_if_over();
    }

    /// Ends the use of the folder, once the entries that were begun have ended. Work on the folder is
    /// not waited for long.
    pub(crate) fn leave(&self) {
        if process_id() != self.process || !self.background.end(LAST_WORK) {
            return;
        }
        // The disk may not answer.
        if self.ledger.as_ref().is_some_and(Ledger::has_debts) {
            self.settle_on_thread(LAST_WORK);
        } else {
            self.settle_if_over();
        }
    }

    /// Settles what is owed to the ledger and leaves the list of users, if the loader has ended.
    fn settle_if_over(&self) {
        let Some((ledger, users)) = self.ledger.as_ref().zip(self.users.as_ref()) else { return };
        if self.background.has_to_end() && self.reserved.load(Ordering::Relaxed) == 0 {
            if ledger.has_debts() {
                self.give_back(ledger, 0);
            }
            users.leave();
        }
    }

    /// The ledger, if the folder may be changed now.
    fn writable(&self) -> Option<&Ledger> {
        self.ledger.as_ref().filter(|_| self.users.as_ref().is_some_and(Users::may_write))
    }

    /// Takes `bytes` of the capacity, which others may have to leave for. False when those that
    /// could are needed sooner than `next`.
    fn reserve(
        &self,
        mut page: Page<'_>,
        bytes: u64,
        next: NextUse,
        name: impl Fn(u64) -> Option<Key>,
    ) -> io::Result<bool> {
        // Without a number the folder is counted when somebody opens it alone.
        let Some(used) = page.used().filter(|_| self.users.as_ref().is_some_and(Users::is_member))
        else {
            return Ok(false);
        };
        let over = used.saturating_add(bytes).saturating_sub(self.capacity);
        let evicted = match over {
            0 => Vec::new(),
            over => lock(&self.planner).evict(over, next).unwrap_or_default(),
        };
        if !evicted.is_empty() {
            page.removing(|| {
                let mut removed = 0;
                for key in evicted.iter().filter_map(|(sample, _)| name(*sample)) {
                    removed += remove(&self.folder.entry(key))?;
                    count(&self.counters.evicted);
                }
                Ok(removed)
            })?;
        }
        let fits = page.used().is_some_and(|used| used.saturating_add(bytes) <= self.capacity);
        if fits {
            page.reserve(bytes)?;
            self.reserved.fetch_add(bytes, Ordering::Relaxed);
        }
        self.note(&page);
        Ok(fits)
    }

    /// Writes an entry whose bytes are reserved. False if it exists already.
    fn write(
        &self,
        ledger: &Ledger,
        entry: EntryFile,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<bool> {
        // As the process's mask has it, so that a group can share a cache.
        let mode = Permissions::from_mode(0o666);
        let mut draft = Builder::new().permissions(mode).tempfile_in(self.folder.drafts())?;
        write(draft.as_file_mut())?;
        let target = self.folder.entry(entry.key);
        let draft = draft.into_temp_path();
        // Replacing an entry would leave its bytes counted.
        let mut page = ledger.lock()?;
        if target.exists() {
            return Ok(false);
        }
        if let Err(error) = draft.persist(&target) {
            // The first entry of its shelf, most likely.
            target.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            error.path.persist(&target)?;
        }
        // The entry is there: without this the folder is only counted sooner.
        self.fallible("be counted", page.settle(entry.cost));
        Ok(true)
    }

    /// The folder, for what is kept beside entries.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Whether an entry of so many bytes could be written, as far as this loader knows.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let fits =
            self.counters.bytes.load(Ordering::Relaxed).saturating_add(bytes) <= self.capacity;
        let is_usable = self.ledger.is_some() && !self.faults.hopeless() && bytes <= self.capacity;
        is_usable && (fits || !self.swept.load(Ordering::Relaxed))
    }

    /// Counts a sample that was found.
    pub(crate) fn hit(&self) {
        count(&self.counters.hits);
    }

    /// Notes that an entry of so many bytes is there.
    pub(crate) fn met(&self, number: u64, bytes: u64) {
        let mut planner = lock(&self.planner);
        if !planner.contains(number) {
            planner.insert(number, (), cost(bytes), None);
        }
    }

    /// Counts a sample that was not found.
    pub(crate) fn missed(&self) {
        count(&self.counters.misses);
    }

    /// Notes that an entry has left.
    pub(crate) fn forget(&self, number: u64) {
        lock(&self.planner).remove(number);
    }

    /// Notes a failure.
    pub(crate) fn fault(&self, path: &Path, action: &'static str, error: io::Error) {
        self.faults.add(path, action, error);
    }

    /// Notes the bytes in use.
    fn note(&self, page: &Page<'_>) {
        if let Some(used) = page.used() {
            self.counters.bytes.store(used, Ordering::Relaxed);
        }
    }

    /// Gives back what was taken for an entry that is not there.
    fn give_back(&self, ledger: &Ledger, bytes: u64) {
        match ledger.give_back(bytes) {
            Ok(Some(used)) => self.counters.bytes.store(used, Ordering::Relaxed),
            Ok(None) => {}
            // It is owed.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
            Err(error) => self.faults.add(self.folder.path(), "be locked", error),
        }
    }

    fn fallible(&self, action: &'static str, result: io::Result<()>) {
        if let Err(error) = result {
            self.faults.add(self.folder.path(), action, error);
        }
    }

    pub(crate) fn add_stats(&self, stats: &mut CacheStats) {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        stats.disk = LevelStats {
            hits: value(&counters.hits),
            misses: value(&counters.misses),
            inserted: value(&counters.inserted),
            refused: value(&counters.refused),
            evicted: value(&counters.evicted),
            entries: lock(&self.planner).len() as u64,
            bytes: value(&counters.bytes),
        };
        stats.bad_entries = value(&counters.bad);
        stats.faults = self.faults.count();
        stats.first_fault = self.faults.first();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.background.stop();
        if process_id() == self.process {
            self.settle_if_over();
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
