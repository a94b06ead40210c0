//! The setting that decides who reads samples.

use tbl_io::PageCache;

/// The threads that read samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Readers {
    /// The workers, each when it needs a sample. The system gets hints 32 samples ahead. A data set
    /// in stores gets [`Planned`](Self::Planned) instead.
    #[default]
    Workers,
    /// One thread that requests the samples of objects in stores in the background, ahead of the
    /// workers: neighbours in an object that are needed soon come with one request. 32 threads read
    /// what is not requested, if any is: files, and objects whose version the store does not list.
    Planned,
    /// This many separate threads, ahead of the workers.
    Threads(usize),
    /// One thread that keeps `depth` reads in flight through `io_uring`. Without it (the feature
    /// `io-uring` is not built in, or the kernel refuses) four threads read instead, with a note in
    /// [`Loader::notes`](crate::Loader::notes).
    Uring {
        /// Reads under way at once.
        depth: u32,
        /// The use of the page cache.
        page_cache: PageCache,
    },
}

/// Threads that read where `io_uring` is refused.
pub(crate) const THREADS_INSTEAD: usize = 4;

/// The lead of hints to the system, in rows: enough to keep a disk busy while a few samples are
/// decoded, and at 100 KB a sample a few megabytes of page cache.
pub(crate) const READ_AHEAD: u64 = 32;

/// Threads that read what cannot be requested in the background: with 30 ms to the first byte they
/// get 1 000 samples a second.
pub(crate) const REMOTE_READERS: usize = 32;

/// More readers, or reads under way, than this are a mistake in the caller's arithmetic.
pub(crate) const MAX_READERS: usize = 1024;

impl Readers {
    /// Whether samples are read before a worker asks for them.
    pub(crate) fn read_ahead(self) -> bool {
        self != Self::Workers
    }
}
