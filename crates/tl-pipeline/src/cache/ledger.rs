//! The number of bytes in a cache folder, shared by all processes in one file.
//!
//! A change holds a lock of the system, which frees the locks of a process that dies. The number
//! rises before a file is created and falls after one is deleted, so a process that dies in between
//! leaves it too high, never too low: the bound on the folder holds. A second number tells that: the
//! bytes of changes that were begun and have not ended.

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

/// The numbers as they are stored.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Record {
    used: U64,
    unsettled: U64,
    /// The checksum of the fields above.
    crc32c: U32,
}

impl Record {
    fn new(Usage { used, unsettled }: Usage) -> Self {
        let mut record = Self { used: used.into(), unsettled: unsettled.into(), crc32c: 0.into() };
        record.crc32c = record.own_crc32c().into();
        record
    }

    fn own_crc32c(&self) -> u32 {
        let bytes = self.as_bytes();
        crc32c(&bytes[..bytes.len() - size_of::<U32>()])
    }

    /// The numbers, if they are sound.
    fn usage(&self) -> Option<Usage> {
        let usage = Usage { used: self.used.get(), unsettled: self.unsettled.get() };
        (self.crc32c.get() == self.own_crc32c()).then_some(usage)
    }
}

/// The bytes of a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Those in use, or reserved.
    pub(crate) used: u64,
    /// Those of entries that are being made or removed.
    pub(crate) unsettled: u64,
}

/// The file with the numbers.
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
    /// `None` when the file holds no numbers: it is new, or the machine went down.
    usage: Option<Usage>,
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
        let mut page = Page { file, usage: None };
        let mut record = [0; size_of::<Record>()];
        page.usage = match page.file.read_exact_at(&mut record, 0) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            Err(_) => None,
            Ok(()) => Record::read_from_bytes(&record).ok().and_then(|record| record.usage()),
        };
        let owed = self.owed.swap(0, Ordering::Relaxed);
        if owed > 0 {
            page.release(owed)?;
        }
        Ok(page)
    }

    /// Releases the bytes reserved for a file that was not written when the lock is taken next.
    pub(crate) fn owe(&self, bytes: u64) {
        self.owed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// True if bytes are to be released.
    pub(crate) fn has_debts(&self) -> bool {
        self.owed.load(Ordering::Relaxed) > 0
    }

    /// Releases the bytes reserved for a file that was not written, and returns the bytes in use.
    /// If the lock is not available, they are released at the next chance.
    pub(crate) fn give_back(&self, bytes: u64) -> io::Result<Option<u64>> {
        self.owe(bytes);
        self.lock().map(|page| page.used())
    }
}

impl Page<'_> {
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    pub(crate) fn used(&self) -> Option<u64> {
        self.usage.map(|usage| usage.used)
    }

    /// Notes bytes of an entry that is going to be made.
    pub(crate) fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        self.change(|Usage { used, unsettled }| Usage {
            used: used.saturating_add(bytes),
            unsettled: unsettled.saturating_add(bytes),
        })
    }

    /// Notes that an entry was made of bytes that were reserved.
    pub(crate) fn settle(&mut self, bytes: u64) -> io::Result<()> {
        self.change(|usage| Usage { unsettled: usage.unsettled.saturating_sub(bytes), ..usage })
    }

    /// Notes that no entry is made of bytes that were reserved.
    pub(crate) fn release(&mut self, bytes: u64) -> io::Result<()> {
        self.change(|Usage { used, unsettled }| Usage {
            used: used.saturating_sub(bytes),
            unsettled: unsettled.saturating_sub(bytes),
        })
    }

    /// Notes that entries are removed, whose bytes `remove` returns.
    pub(crate) fn removing(&mut self, remove: impl FnOnce() -> io::Result<u64>) -> io::Result<()> {
        self.change(|usage| Usage { unsettled: usage.unsettled.saturating_add(1), ..usage })?;
        let removed = remove()?;
        self.change(|Usage { used, unsettled }| Usage {
            used: used.saturating_sub(removed),
            unsettled: unsettled.saturating_sub(1),
        })
    }

    fn change(&mut self, change: impl FnOnce(Usage) -> Usage) -> io::Result<()> {
        match self.usage {
            Some(usage) => self.set(change(usage)),
            // The next count finds what is there.
            None => Ok(()),
        }
    }

    pub(crate) fn set(&mut self, usage: Usage) -> io::Result<()> {
        self.file.write_all_at(Record::new(usage).as_bytes(), 0)?;
        self.usage = Some(usage);
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
        ledgers[0].lock().unwrap().set(Usage::default()).unwrap();
        thread::scope(|scope| {
            for ledger in &ledgers {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for _ in 0..200 {
                            ledger.lock().unwrap().reserve(5).unwrap();
                        }
                    });
                }
            }
        });
        ledgers[1].give_back(1_000).unwrap();
        ledgers[0].lock().unwrap().settle(2_000).unwrap();
        let usage = Some(Usage { used: 5_000, unsettled: 3_000 });
        assert_eq!(ledgers[0].lock().unwrap().usage(), usage);
        assert_eq!(ledgers[1].lock().unwrap().usage(), usage);
    }

    #[test]
    fn a_holder_that_never_lets_go_stops_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage");
        let ledgers = [Ledger::open(&path).unwrap(), Ledger::open(&path).unwrap()];
        let mut held = ledgers[0].lock().unwrap();
        assert_eq!(ledgers[1].lock().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(ledgers[1].give_back(3).unwrap_err().kind(), io::ErrorKind::TimedOut);
        held.set(Usage { used: 10, unsettled: 0 }).unwrap();
        drop(held);
        assert_eq!(ledgers[1].lock().unwrap().used(), Some(7));
    }

    #[test]
    fn a_removal_that_does_not_end_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&folder.path().join("usage")).unwrap();
        let mut page = ledger.lock().unwrap();
        page.set(Usage { used: 90, unsettled: 0 }).unwrap();
        page.removing(|| Ok(30)).unwrap();
        assert_eq!(page.usage(), Some(Usage { used: 60, unsettled: 0 }));
        let refused = || Err(io::ErrorKind::PermissionDenied.into());
        assert!(page.removing(refused).is_err());
        assert_eq!(page.usage(), Some(Usage { used: 60, unsettled: 1 }));
    }

    #[test]
    fn a_damaged_number_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage");
        let ledger = Ledger::open(&path).unwrap();
        ledger.lock().unwrap().set(Usage { used: 77, unsettled: 5 }).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(ledger.lock().unwrap().used(), None, "bit {bit}");
        }
        // The file of an earlier version, and that after a power cut.
        std::fs::write(&path, &whole[..12]).unwrap();
        assert_eq!(ledger.lock().unwrap().used(), None);
        std::fs::write(&path, vec![0; whole.len()]).unwrap();
        assert_eq!(ledger.lock().unwrap().used(), None);
    }
}
