//! The processes that use a cache folder: each holds a shared lock on one file, so that one that
//! gets the whole of it knows that all others are gone.

use std::fs::File;
use std::io;
use std::path::Path;

use tl_handoff::sync::{AtomicBool, Mutex, Ordering, lock, try_lock};

use crate::cache::ledger::lock_file;

/// The place of a loader among those that use a folder. It may change the folder while it has one.
#[derive(Debug)]
pub(super) struct Users {
    lock: Mutex<Lock>,
    is_member: AtomicBool,
}

#[derive(Debug)]
struct Lock {
    /// `None` once the loader has left.
    file: Option<File>,
    /// Whether the folder is not to be changed, until the loader joins.
    is_paused: bool,
}

impl Users {
    /// # Errors
    /// The file cannot be opened.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let lock = Lock { file: Some(lock_file(path)?), is_paused: false };
        Ok(Self { lock: Mutex::new(lock), is_member: AtomicBool::new(false) })
    }

    /// True while this loader has a place.
    pub(super) fn is_member(&self) -> bool {
        self.is_member.load(Ordering::Relaxed)
    }

    /// True if this loader may change the folder. Where it was locked out, it looks again.
    pub(super) fn may_write(&self) -> bool {
        self.is_member() || try_lock(&self.lock).is_some_and(|lock| self.enter(&lock))
    }

    /// Locks all others out, if none is there. Nobody may change the folder until this loader
    /// [joins](Self::join).
    pub(super) fn lock_out(&self) -> bool {
        self.pause();
        // Changing a lock releases it first.
        lock(&self.lock).file.as_ref().is_some_and(|file| file.try_lock().is_ok())
    }

    /// Gives up the right to change the folder until this loader [joins](Self::join).
    pub(super) fn pause(&self) {
        let mut lock = lock(&self.lock);
        lock.is_paused = true;
        self.is_member.store(false, Ordering::Relaxed);
    }

    /// Takes a place, in exchange for the whole lock if it has that.
    pub(super) fn join(&self) {
        let mut lock = lock(&self.lock);
        lock.is_paused = false;
        self.enter(&lock);
    }

    fn enter(&self, lock: &Lock) -> bool {
        let file = lock.file.as_ref().filter(|_| !lock.is_paused);
        let is_member = file.is_some_and(|file| file.try_lock_shared().is_ok());
        self.is_member.store(is_member, Ordering::Relaxed);
        is_member
    }

    /// Ends the use of the folder.
    pub(super) fn leave(&self) {
        self.is_member.store(false, Ordering::Relaxed);
        drop(lock(&self.lock).file.take());
    }
}
