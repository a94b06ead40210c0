//! Counting the entries of a folder and removing old ones, on a thread: it takes as long as there are
//! entries.

use std::io;
use std::time::{Duration, SystemTime};

use tl_handoff::sync::{Arc, Ordering, thread};

use super::Disk;
use crate::cache::folder::{Removable, remove, remove_older};
use crate::cache::ledger::{Ledger, Usage};

/// Entries of which this loader knows nothing may go when nobody has used them for this long.
const STALE_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Files removed while others wait.
const REMOVE_AT_ONCE: usize = 16;

/// The part of the capacity that is worth some work, one in so many.
const PART: u64 = 16;

/// The time between two looks whether entries that were begun have ended, and between two removals.
const TICK: Duration = Duration::from_millis(20);

impl Disk {
    /// Begins to use the folder. If nobody else does, and others have left something behind, its entries
    /// are counted first; until then nothing is written.
    pub(super) fn enter(self: &Arc<Self>) {
        let Some((ledger, users)) = self.ledger.as_ref().zip(self.users.as_ref()) else { return };
        if users.lock_out() {
            match self.is_settled(ledger) {
                Ok(false) if self.start(Self::count_alone) => return,
                Ok(_) => {}
                Err(error) => self.faults.add(self.folder.path(), "be counted", error),
            }
        }
        users.join();
    }

    /// True if the number of bytes is right when nobody uses the folder.
    fn is_settled(&self, ledger: &Ledger) -> io::Result<bool> {
        let mut page = ledger.lock()?;
        if let Some(Usage { used, unsettled: 0 }) = page.usage() {
            self.counters.bytes.store(used, Ordering::Relaxed);
            return Ok(used <= self.capacity);
        }
        let is_new = self.folder.is_new()?;
        if is_new {
            page.set(Usage::default())?;
        }
        Ok(is_new)
    }

    /// Clears the folder of entries that are not used, and counts it if that may make room.
    /// False if it cannot be begun now.
    pub(super) fn start_sweep(&self) -> bool {
        self.start(|disk| {
            let swept = disk.sweep();
            let unseen = disk.unless_over("be cleared of old entries", swept).unwrap_or_default();
            if unseen > disk.capacity / PART {
                disk.count_if_alone();
            }
        })
    }

    /// Settles what is owed when the loader has ended, on the thread, which is waited for at most this
    /// long.
    pub(super) fn settle_on_thread(&self, at_most: Duration) {
        let Some(disk) = self.own.upgrade() else { return self.settle_if_over() };
        if self.background.start_last(move || disk.settle_if_over()).is_ok() {
            self.background.end(at_most);
        }
    }

    /// Does work on the thread; false if it cannot be started, or is at work.
    fn start(&self, work: impl FnOnce(&Self) + Send + 'static) -> bool {
        let Some(disk) = self.own.upgrade() else { return false };
        let started = self.background.start(move || {
            work(&disk);
            disk.settle_if_over();
        });
        self.unless_over("start a thread", started).unwrap_or_default()
    }

    /// Counts the folder once no other process uses it and this loader writes nothing.
    fn count_if_alone(&self) {
        let Some((ledger, users)) = self.ledger.as_ref().zip(self.users.as_ref()) else { return };
        users.pause();
        // Entries that were begun before that are in the ledger, once those that begin one are done.
        if self.unless_over("be counted", ledger.lock().map(drop)).is_none() {
            return users.join();
        }
        while self.reserved.load(Ordering::Relaxed) > 0 && !self.background.has_to_end() {
            thread::sleep(TICK);
        }
        if !self.background.has_to_end() && users.lock_out() {
            return self.count_alone();
        }
        users.join();
    }

    /// Counts the entries while all others are locked out, and evicts down to the capacity.
    fn count_alone(&self) {
        let Some((ledger, users)) = self.ledger.as_ref().zip(self.users.as_ref()) else { return };
        let counted = self.count_anew(ledger);
        self.unless_over("be counted", counted);
        users.join();
    }

    fn count_anew(&self, ledger: &Ledger) -> io::Result<()> {
        let is_over = || self.background.has_to_end();
        self.folder.remove_drafts()?;
        let mut used = self.folder.used(&is_over)?;
        if used > self.capacity {
            for Removable { path, .. } in self.folder.older(None, &is_over)?.0 {
                used = used.saturating_sub(remove(&path)?);
                if used <= self.capacity {
                    break;
                }
            }
        }
        let mut page = ledger.lock()?;
        // What was begun meanwhile would be missing in the number. It is right as it is, or too high.
        if self.reserved.load(Ordering::Relaxed) > 0 {
            return Ok(());
        }
        self.counters.bytes.store(used, Ordering::Relaxed);
        page.set(Usage { used, unsettled: 0 })
    }

    /// Removes entries that nobody has used for long, of other data sets or older files, until a
    /// sixteenth of the capacity is free. Returns the bytes in use that no file has.
    fn sweep(&self) -> io::Result<u64> {
        let Some(ledger) = &self.ledger else { return Ok(0) };
        let Some(before) = SystemTime::now().checked_sub(STALE_AFTER) else { return Ok(0) };
        let enough = self.capacity - self.capacity / PART;
        let (older, seen) = self.folder.older(Some(before), &|| self.background.has_to_end())?;
        let Usage { used, unsettled } = ledger.lock()?.usage().unwrap_or_default();
        let unseen = used.saturating_sub(unsettled).saturating_sub(seen);
        for (number, some) in older.chunks(REMOVE_AT_ONCE).enumerate() {
            if number > 0 {
                // Those that wait for the lock get it.
                thread::sleep(TICK);
            }
            let mut page = ledger.lock()?;
            if page.used().is_none_or(|used| used <= enough) || self.background.has_to_end() {
                break;
            }
            page.removing(|| {
                let mut removed = 0;
                for entry in some {
                    // It may have been used since it was listed.
                    let bytes = remove_older(&entry.path, before)?;
                    removed += bytes;
                    self.counters.evicted.fetch_add(u64::from(bytes > 0), Ordering::Relaxed);
                }
                Ok(removed)
            })?;
            self.note(&page);
        }
        Ok(unseen)
    }

    /// Notes a failure, unless the work ended because its loader did.
    fn unless_over<T>(&self, action: &'static str, result: io::Result<T>) -> Option<T> {
        match result {
            Ok(value) => return Some(value),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Others have the folder.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
            Err(error) => self.faults.add(self.folder.path(), action, error),
        }
        None
    }
}
