//! An open local file that is opened again when a network file system has lost it.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::ReadError;
use crate::source::open_with_metadata;

/// An open file, and what tells it from another one under its path.
#[derive(Debug)]
pub(crate) struct LocalFile {
    file: Arc<File>,
    opened: Stamp,
    is_reopened: AtomicBool,
    reopened: Mutex<Option<Arc<File>>>,
}

/// Number, length and time of the last change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    len: u64,
    /// Seconds and nanoseconds.
    changed: [i64; 2],
}

impl Stamp {
    fn new(metadata: &Metadata) -> Self {
        let changed = [metadata.mtime(), metadata.mtime_nsec()];
        Self { inode: metadata.ino(), len: metadata.len(), changed }
    }
}

impl LocalFile {
    pub(crate) fn new(file: File, metadata: &Metadata) -> Self {
        let opened = Stamp::new(metadata);
        let is_reopened = AtomicBool::new(false);
        Self { file: Arc::new(file), opened, is_reopened, reopened: Mutex::new(None) }
    }

    /// The file as it is open now.
    pub(crate) fn current(&self) -> Arc<File> {
        // A thread that still has the stale file opens it again as another did.
        if self.is_reopened.load(Ordering::Acquire) {
            let reopened = self.reopened.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(file) = &*reopened {
                return Arc::clone(file);
            }
        }
        Arc::clone(&self.file)
    }

    /// Fills `bytes` from the file, starting at `offset`. A stale handle is replaced, once, by that of
    /// the file at `path`.
    ///
    /// # Errors
    /// Those of the system, and an error without a number for a file that is another one by now.
    pub(crate) fn read_exact_at(
        &self,
        path: &Path,
        offset: u64,
        bytes: &mut [u8],
    ) -> io::Result<()> {
        match read(&self.current(), offset, bytes) {
            Err(error) if error.raw_os_error() == Some(libc::ESTALE) => {
                let file = self.reopen(path)?;
                read(&file, offset, bytes)
            }
            result => result,
        }
    }

    /// Opens the file at `path` in place of the one that is open, if it is the same.
    fn reopen(&self, path: &Path) -> io::Result<Arc<File>> {
        let opened = open_with_metadata(path).map_err(|error| {
            // The caller names the file.
            if let ReadError::Io { source, .. } = error { source } else { io::Error::other(error) }
        })?;
        self.check(&opened.metadata)?;
        let file = Arc::new(opened.file);
        *self.reopened.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&file));
        self.is_reopened.store(true, Ordering::Release);
        Ok(file)
    }

    /// Whether the open file has the length and the time of change that it was opened with.
    pub(crate) fn is_unchanged(&self) -> io::Result<bool> {
        Ok(Stamp::new(&self.current().metadata()?) == self.opened)
    }

    fn check(&self, metadata: &Metadata) -> io::Result<()> {
        let found = Stamp::new(metadata);
        if found == self.opened {
            return Ok(());
        }
        let Stamp { len, changed: [seconds, _], .. } = self.opened;
        let Stamp { len: found_len, changed: [found_seconds, _], .. } = found;
        Err(io::Error::other(format!(
            "the file was replaced while it was open: expected {len} bytes of time {seconds}, found \
             {found_len} bytes of time {found_seconds}"
        )))
    }
}

#[cfg(not(test))]
fn read(file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    file.read_exact_at(bytes, offset)
}

#[cfg(test)]
use tests::read;

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::fs;

    use super::*;
    use crate::retry::is_transient;
    use crate::source::Source;

    thread_local! {
        /// The errors of the reads to come of this thread, 0 for none.
        static SCRIPT: RefCell<VecDeque<i32>> = const { RefCell::new(VecDeque::new()) };
    }

    pub(super) fn read(file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        match SCRIPT.with_borrow_mut(VecDeque::pop_front) {
            Some(number) if number != 0 => Err(io::Error::from_raw_os_error(number)),
            Some(_) | None => file.read_exact_at(bytes, offset),
        }
    }

    fn script(errors: &[i32]) {
        SCRIPT.set(errors.iter().copied().collect());
    }

    #[test]
    fn a_stale_file_is_opened_again_if_it_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "abcdef").unwrap();
        let source = Source::open(&path).unwrap();
        let mut bytes = [0; 3];
        script(&[libc::ESTALE]);
        source.read_exact_at(1, &mut bytes).unwrap();
        assert_eq!(&bytes, b"bcd");
        script(&[libc::ESTALE, libc::ESTALE]);
        let error = source.read_exact_at(1, &mut bytes).unwrap_err();
        assert!(is_transient(&error), "{error}");
        script(&[libc::EIO]);
        let error = source.read_exact_at(1, &mut bytes).unwrap_err();
        assert!(is_transient(&error), "{error}");
        source.read_exact_at(3, &mut bytes).unwrap();
        assert_eq!(&bytes, b"def");
    }

    #[test]
    fn a_file_that_was_replaced_is_not_read_in_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "abcdef").unwrap();
        let source = Source::open(&path).unwrap();
        let other = folder.path().join("b");
        fs::write(&other, "ABCDEF").unwrap();
        fs::rename(&other, &path).unwrap();
        let mut bytes = [0; 3];
        script(&[libc::ESTALE]);
        let error = source.read_exact_at(0, &mut bytes).unwrap_err();
        assert!(!is_transient(&error), "{error}");
        assert!(error.to_string().contains("was replaced while it was open"), "{error}");
        source.read_exact_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"abc", "the file that is open is still that of before");
    }
}
