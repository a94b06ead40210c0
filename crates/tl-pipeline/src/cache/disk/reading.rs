//! Reading entries, and what becomes of those that are of no use.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use tl_handoff::sync::lock;

use super::{Disk, RENEW_AFTER, count};
use crate::cache::entry::{self, Trailer};
use crate::cache::folder::{cost, remove};
use crate::cache::key::Key;
use crate::cache::planner::NextUse;

impl Disk {
    /// Replaces `bytes` by the entry of `sample`, of at most `limit` bytes, and returns the size of
    /// its image.
    pub(crate) fn get(
        &self,
        sample: u64,
        key: Key,
        limit: u64,
        next: NextUse,
        bytes: &mut Vec<u8>,
    ) -> Option<(u32, u32)> {
        if self.is_unusable(key) {
            count(&self.counters.misses);
            return None;
        }
        let file = match File::open(self.folder.entry(key)) {
            Ok(file) => file,
            Err(error) => {
                count(&self.counters.misses);
                self.not_read(sample, key, None, error);
                return None;
            }
        };
        let found = match read(&file, limit, bytes) {
            Ok(()) => entry::check(bytes, key),
            Err(error) => {
                count(&self.counters.misses);
                self.not_read(sample, key, Some(&file), error);
                return None;
            }
        };
        let Some((payload, size)) = found else {
            count(&self.counters.misses);
            self.discard(sample, key, &file);
            return None;
        };
        count(&self.counters.hits);
        let mut planner = lock(&self.planner);
        if planner.touch(sample, next).is_none() {
            planner.insert(sample, (), cost(bytes.len() as u64), next);
        }
        drop(planner);
        bytes.truncate(payload);
        Some(size)
    }

    /// True if an entry of this name is there for good, of no use.
    pub(crate) fn is_unusable(&self, key: Key) -> bool {
        lock(&self.unusable).contains(&key)
    }

    /// Removes a damaged entry, which `file` is, and counts it.
    pub(crate) fn discard(&self, number: u64, key: Key, file: &File) {
        count(&self.counters.bad);
        self.remove_bad(key, Some(file));
        self.forget(number);
    }

    /// Notes that an entry could not be read: it has left, or it is removed. `file` is the entry, if it
    /// could be opened.
    pub(crate) fn not_read(&self, number: u64, key: Key, file: Option<&File>, error: io::Error) {
        self.forget(number);
        if is_missing(&error) {
            return;
        }
        let is_of_process = is_of_process(&error);
        self.faults.add_read(&self.folder.entry(key), error);
        if !is_of_process {
            self.remove_bad(key, file);
        }
    }

    fn remove_bad(&self, key: Key, file: Option<&File>) {
        let path = self.folder.entry(key);
        let is_gone = match self.writable() {
            None => is_replaced(&path, file),
            Some(ledger) => {
                let removed = ledger.lock().and_then(|mut page| {
                    if !is_replaced(&path, file) {
                        page.removing(|| remove(&path))?;
                        self.note(&page);
                    }
                    Ok(())
                });
                let is_gone = removed.is_ok();
                self.fallible("be rid of a damaged entry", removed);
                is_gone
            }
        };
        if !is_gone {
            lock(&self.unusable).insert(key);
        }
    }
}

/// True if the name of an entry has another file now, which another process made, or none.
fn is_replaced(path: &Path, file: Option<&File>) -> bool {
    // The number of a file that is open is not given to another.
    let Some(read) = file.and_then(|file| file.metadata().ok()) else { return false };
    match path.symlink_metadata() {
        Ok(named) => (named.dev(), named.ino()) != (read.dev(), read.ino()),
        Err(error) => is_missing(&error),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// True if the process has too many files or too little memory: the file may be sound.
fn is_of_process(error: &io::Error) -> bool {
    const TOO_MANY_FILES: [i32; 2] = [23, 24];
    error.kind() == io::ErrorKind::OutOfMemory
        || error.raw_os_error().is_some_and(|code| TOO_MANY_FILES.contains(&code))
}

/// Replaces `bytes` by an entry of at most `limit` bytes and a trailer. More than that is cut off,
/// and then no entry.
fn read(mut file: &File, limit: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let metadata = file.metadata()?;
    let len = metadata.len().min(limit.saturating_add(Trailer::BYTES as u64));
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
    bytes.try_reserve(len.saturating_sub(bytes.len()))?;
    // No `clear` first: only bytes beyond the previous length need zeroing.
    bytes.resize(len, 0);
    file.read_exact(bytes)?;
    renew(file, &metadata);
    Ok(())
}

/// Notes the use of an entry in its time of change.
pub(crate) fn renew(file: &File, metadata: &Metadata) {
    let age = metadata.modified().ok().and_then(|modified| modified.elapsed().ok());
    if age.is_some_and(|age| age > RENEW_AFTER) {
        note_use(file);
    }
}

/// Notes that an entry is in use now.
pub(crate) fn note_use(file: &File) {
    // A user without write permission cannot keep entries from becoming stale either.
    drop(file.set_modified(SystemTime::now()));
}
