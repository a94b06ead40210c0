//! A failed operation of a cache on disk. It never fails a run: the sample is used without it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tbl_io::Escaped;
use tl_handoff::sync::{Arc, AtomicU64, Mutex, Ordering, lock};

/// After this many failures in sequence no more entries are written: a full disk stays full, and
/// trying costs as much as writing.
const PATIENCE: u64 = 16;

/// Something that the system refused.
#[derive(Debug)]
pub struct CacheFault {
    /// The cache's folder, or a file in it.
    pub path: PathBuf,
    /// The operation, such as "write an entry".
    pub action: &'static str,
    /// The error of the system.
    pub source: io::Error,
}

impl fmt::Display for CacheFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = Escaped(self.path.as_os_str().as_encoded_bytes());
        write!(f, "cache {path}: cannot {}: {}", self.action, self.source)
    }
}

/// Counts faults and keeps the first.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    count: AtomicU64,
    in_a_row: AtomicU64,
    first: Mutex<Option<Arc<CacheFault>>>,
}

impl Faults {
    pub(crate) fn add(&self, path: &Path, action: &'static str, source: io::Error) {
        self.in_a_row.fetch_add(1, Ordering::Relaxed);
        self.keep(path, action, source);
    }

    /// Adds the fault of an entry that was to be read, which tells nothing of others.
    pub(crate) fn add_read(&self, path: &Path, source: io::Error) {
        self.keep(path, "be read", source);
    }

    fn keep(&self, path: &Path, action: &'static str, source: io::Error) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut first = lock(&self.first);
        first.get_or_insert_with(|| {
            Arc::new(CacheFault { path: path.to_path_buf(), action, source })
        });
    }

    pub(crate) fn wrote(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
    }

    /// True if further tries are pointless.
    pub(crate) fn hopeless(&self) -> bool {
        self.in_a_row.load(Ordering::Relaxed) >= PATIENCE
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn first(&self) -> Option<Arc<CacheFault>> {
        lock(&self.first).clone()
    }
}
