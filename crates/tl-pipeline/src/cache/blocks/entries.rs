//! Entries of blocks that are open, so that a sample costs one read.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use tl_handoff::sync::{Arc, Mutex, lock};

use crate::cache::disk::{self, Disk};
use crate::cache::entry::{self, Slot};
use crate::cache::key::Key;

/// The most entries that stay open.
const MOST_OPEN: usize = 1024;

/// The part of the process's descriptors that they may have, one in so many.
const PART: u64 = 4;

/// The entries that are open.
#[derive(Debug)]
pub(super) struct Entries {
    open: Mutex<Open>,
    most: usize,
    /// The time after which the use of an entry that stays open is noted again.
    note_after: Duration,
}

#[derive(Debug, Default)]
struct Open {
    by_number: HashMap<u64, Used>,
    /// The number of uses so far.
    uses: u64,
}

/// An open entry, and its last use.
#[derive(Debug)]
struct Used {
    entry: Arc<Entry>,
    last: u64,
    /// The time at which its use was last noted in the folder.
    noted: Instant,
}

/// The entry of a block.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) file: File,
    slots: Vec<Slot>,
}

/// The end of an entry.
struct End {
    file_bytes: u64,
    slots: Vec<Slot>,
}

impl Entry {
    /// Replaces `bytes` by those of the sample at `place`, which has `len`. False if they are
    /// damaged.
    pub(super) fn read(
        &self,
        place: usize,
        len: Option<u64>,
        bytes: &mut Vec<u8>,
    ) -> io::Result<bool> {
        let Some(slot) = self.slots.get(place).filter(|slot| Some(slot.len()) == len) else {
            return Ok(false);
        };
        let len = usize::try_from(slot.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.try_reserve(len.saturating_sub(bytes.len()))?;
        // No `clear` first: only bytes beyond the previous length need zeroing.
        bytes.resize(len, 0);
        match self.file.read_exact_at(bytes, slot.offset()) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
            Ok(()) => Ok(slot.holds(bytes)),
        }
    }
}

impl Entries {
    pub(super) fn new() -> Self {
        let part = usize::try_from(most_descriptors() / PART).unwrap_or(MOST_OPEN);
        let most = part.clamp(1, MOST_OPEN);
        Self { open: Mutex::default(), most, note_after: disk::RENEW_AFTER }
    }

    /// The entry of a block of `samples` samples, if it is on disk and sound.
    pub(super) fn get(
        &self,
        disk: &Disk,
        number: u64,
        key: Key,
        samples: impl FnOnce() -> usize,
    ) -> Option<Arc<Entry>> {
        if let Some(entry) = self.opened(number) {
            return Some(entry);
        }
        if disk.is_unusable(key) {
            return None;
        }
        let file = match File::open(disk.folder().entry(key)) {
            Ok(file) => file,
            Err(error) => {
                disk.not_read(number, key, None, error);
                return None;
            }
        };
        match read_end(&file, key, samples()) {
            Ok(Some(End { file_bytes, slots })) => {
                disk.met(number, file_bytes);
                Some(self.keep(number, Arc::new(Entry { file, slots })))
            }
            Ok(None) => {
                disk.discard(number, key, &file);
                None
            }
            Err(error) => {
                disk.not_read(number, key, Some(&file), error);
                None
            }
        }
    }

    fn opened(&self, number: u64) -> Option<Arc<Entry>> {
        let mut open = lock(&self.open);
        open.uses += 1;
        let last = open.uses;
        let used = open.by_number.get_mut(&number)?;
        used.last = last;
        let is_due = used.noted.elapsed() >= self.note_after;
        if is_due {
            used.noted = Instant::now();
        }
        let entry = Arc::clone(&used.entry);
        drop(open);
        if is_due {
            disk::note_use(&entry.file);
        }
        Some(entry)
    }

    fn keep(&self, number: u64, entry: Arc<Entry>) -> Arc<Entry> {
        let mut open = lock(&self.open);
        if open.by_number.len() >= self.most {
            let oldest = open.by_number.iter().min_by_key(|(_, used)| used.last);
            if let Some(oldest) = oldest.map(|(&number, _)| number) {
                open.by_number.remove(&oldest);
            }
        }
        let last = open.uses;
        let used = Used { entry: Arc::clone(&entry), last, noted: Instant::now() };
        open.by_number.insert(number, used);
        entry
    }

    /// Closes the entry of a block.
    pub(super) fn close(&self, number: u64) {
        lock(&self.open).by_number.remove(&number);
    }
}

/// Reads the table of an entry; `None` if it is damaged.
fn read_end(file: &File, key: Key, samples: usize) -> io::Result<Option<End>> {
    let metadata = file.metadata()?;
    let file_bytes = metadata.len();
    let mut end = vec![0; entry::block_end(samples)];
    let Some(start) = file_bytes.checked_sub(end.len() as u64) else { return Ok(None) };
    file.read_exact_at(&mut end, start)?;
    let slots = entry::check_block(&end, file_bytes, key, samples);
    disk::renew(file, &metadata);
    Ok(slots.map(|slots| End { file_bytes, slots }))
}

#[cfg(target_os = "linux")]
fn most_descriptors() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.unwrap_or(u64::MAX)
}

#[cfg(not(target_os = "linux"))]
fn most_descriptors() -> u64 {
    // The usual limit of macOS.
    256
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use zerocopy::IntoBytes;

    use super::*;
    use crate::cache::entry::Trailer;

    #[test]
    fn an_entry_that_stays_open_stays_in_use() {
        let root = tempfile::tempdir().unwrap();
        let disk = Disk::open(root.path(), 1 << 20);
        let key = Key([7; 32]);
        let path = disk.folder().entry(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let table = [Slot::new(0, b"sample")];
        let trailer = Trailer::of_block(key, 6, &table);
        std::fs::write(&path, [b"sample", table.as_bytes(), trailer.as_bytes()].concat()).unwrap();
        let entries = Entries { note_after: Duration::ZERO, ..Entries::new() };
        let age = || path.metadata().unwrap().modified().unwrap().elapsed().unwrap_or_default();
        entries.get(&disk, 0, key, || 1).unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(30 * 3600);
        File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        assert!(age() > Duration::from_secs(24 * 3600));
        entries.get(&disk, 0, key, || 1).unwrap();
        assert!(age() < Duration::from_secs(3600));
    }
}
