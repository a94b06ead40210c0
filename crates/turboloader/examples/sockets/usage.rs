//! The threads, open files and memory of this process.

use std::fs;
use std::time::{Duration, Instant};

use crate::Outcome;

/// The time for threads and sockets of loaders that have gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// Threads, open files and resident memory, without that of files.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    threads: usize,
    files: usize,
    pub(crate) memory_kib: u64,
}

impl Usage {
    /// Nothing where there is no `/proc`.
    pub(crate) fn now() -> Outcome<Self> {
        let Ok(status) = fs::read_to_string("/proc/self/status") else {
            return Ok(Self::default());
        };
        let memory = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let memory = memory.and_then(|line| line.split_whitespace().next()).unwrap_or("0");
        let threads = fs::read_dir("/proc/self/task")?.count();
        let files = fs::read_dir("/proc/self/fd")?.count();
        Ok(Self { threads, files, memory_kib: memory.parse()? })
    }

    /// The usage once threads and sockets have ended.
    ///
    /// # Errors
    /// If threads or files are left over after [`PATIENCE`].
    pub(crate) fn settled(before: Self) -> Outcome<Self> {
        let begun = Instant::now();
        loop {
            let now = Self::now()?;
            if now.threads == before.threads && now.files == before.files {
                return Ok(now);
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("threads and files were {before:?}, are {now:?}").into());
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }
}
