//! The number of bytes in a cache folder, shared by all processes in one file.
//!
//! A change holds a lock of the system, which frees the locks of a process that dies. The number
//! rises before a file is created and falls after one is deleted, so a process that dies in between
//! leaves it too high, never too low: the bound on the folder holds.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use tbl_format::checksum::crc32c;
use tl_handoff::sync::{AtomicU64, Mutex, MutexGuard, Ordering, thread, try_lock};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The longest wait for the lock. It is held for a few file operations; a process that holds it
/// longer is stopped, and must not stop others.
pub(crate) const LOCK_WAIT: Duration = Duration::from_millis(500);

/// The number as it is stored.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Record {
    used: U64,
    crc32c: U32,
}

/// The file with the number.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Locks of files are between processes, this one is between threads.
    file: Mutex<File>,
    /// Bytes that were given up when the lock was not to be had.
    owed: AtomicU64,
}

/// The ledger, while nobody else can change it.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    file: MutexGuard<'a, File>,
    /// `None` when the file holds no number: it is new, or the machine went down.
    used: Option<u64>,
}

impl Ledger {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: Mutex::new(lock_file(path)?), owed: AtomicU64::new(0) })
    }

    /// Waits for the lock, but not for long.
    ///
    /// # Errors
    /// `TimedOut`, or what the system says.
    pub(crate) fn lock(&self) -> io::Result<Page<'_>> {
        self.lock_within(LOCK_WAIT)
    }

    /// Waits for the lock for at most `time`, also while another thread has it whose disk does not answer.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub(crate) fn lock_within(&self, time: Duration) -> io::Result<Page<'_>> {
        let since = Instant::now();
        let file = loop {
            match try_lock(&self.file) {
                Some(file) => break file,
                None if since.elapsed() >= time => return Err(io::ErrorKind::TimedOut.into()),
                None => thread::sleep(Duration::from_micros(20)),
            }
        };
        wait_for(time, || file.try_lock())?;
        let mut page = Page { file, used: None };
        let mut record = [0; size_of::<Record>()];
        let read = match page.file.read_exact_at(&mut record, 0) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            Err(_) => None,
            Ok(()) => Record::read_from_bytes(&record).ok(),
        };
        let read = read.filter(|record| record.crc32c.get() == crc32c(record.used.as_bytes()));
        page.used = read.map(|record| record.used.get());
        let owed = self.owed.swap(0, Ordering::Relaxed);
        if let Some(used) = page.used.filter(|_| owed > 0) {
            page.set(used.saturating_sub(owed))?;
        }
        Ok(page)
    }

    /// Releases the bytes reserved for a file that was not written when the lock is taken next.
    pub(crate) fn owe(&self, bytes: u64) {
        self.owed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Releases the bytes reserved for a file that was not written, and returns the bytes in use.
    /// If the lock is not available, they are released at the next chance.
    pub(crate) fn give_back(&self, bytes: u64) -> io::Result<Option<u64>> {
        self.owe(bytes);
        self.lock().map(|page| page.used())
    }
}

impl Page<'_> {
    pub(crate) fn used(&self) -> Option<u64> {
        self.used
    }

    pub(crate) fn set(&mut self, used: u64) -> io::Result<()> {
        let used = U64::new(used);
        let record = Record { used, crc32c: crc32c(used.as_bytes()).into() };
        self.file.write_all_at(record.as_bytes(), 0)?;
        self.used = Some(used.get());
        Ok(())
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        // The lock also ends with the file, so a failure needs no handling.
        drop(self.file.unlock());
    }
}

/// Opens a lock file.
pub(crate) fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Tries to lock until it works or the time is over.
pub(crate) fn wait_for(
    time: Duration,
    attempt: impl Fn() -> Result<(), TryLockError>,
) -> io::Result<()> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(20);
    loop {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if start.elapsed() >= time => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(TryLockError::WouldBlock) => {}
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_addition_of_every_holder_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage");
        let ledgers = [Ledger::open(&path).unwrap(), Ledger::open(&path).unwrap()];
        assert_eq!(ledgers[0].lock().unwrap().used(), None);
        ledgers[0].lock().unwrap().set(0).unwrap();
        thread::scope(|scope| {
            for ledger in &ledgers {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for _ in 0..200 {
                            let mut page = ledger.lock().unwrap();
                            let used = page.used().unwrap();
                            page.set(used + 5).unwrap();
                        }
                    });
                }
            }
        });
        ledgers[1].give_back(1_000).unwrap();
        assert_eq!(ledgers[0].lock().unwrap().used(), Some(5_000));
        assert_eq!(ledgers[1].lock().unwrap().used(), Some(5_000));
    }

    #[test]
    fn a_holder_that_never_lets_go_stops_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage");
        let ledgers = [Ledger::open(&path).unwrap(), Ledger::open(&path).unwrap()];
        let mut held = ledgers[0].lock().unwrap();
        assert_eq!(ledgers[1].lock().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(ledgers[1].give_back(3).unwrap_err().kind(), io::ErrorKind::TimedOut);
        held.set(10).unwrap();
        drop(held);
        assert_eq!(ledgers[1].lock().unwrap().used(), Some(7));
    }

    #[test]
    fn a_damaged_number_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage");
        let ledger = Ledger::open(&path).unwrap();
        ledger.lock().unwrap().set(77).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(ledger.lock().unwrap().used(), None, "bit {bit}");
        }
        // The file after a power cut.
        std::fs::write(&path, vec![0; whole.len()]).unwrap();
        assert_eq!(ledger.lock().unwrap().used(), None);
    }
}
