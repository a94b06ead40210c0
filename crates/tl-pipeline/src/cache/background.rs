//! A thread for work that takes as long as a cache folder has entries: nobody waits for it.

use std::io;
use std::time::{Duration, Instant};

use tl_handoff::sync::{
    Arc, AtomicBool, Condvar, Mutex, Ordering, lock, process_id, thread, wait_timeout,
};

/// The time between two looks at whether the work is over.
const TICK: Duration = Duration::from_millis(20);

/// A thread that is there while there is work.
#[derive(Debug)]
pub(super) struct Background {
    shared: Arc<Shared>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
    /// The process that has the thread.
    process: u32,
}

#[derive(Debug, Default)]
struct Shared {
    is_busy: Mutex<bool>,
    /// Signalled when the work is over.
    changed: Condvar,
    ends: AtomicBool,
}

/// Tells that the work is over, however it ends.
struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        *lock(&self.0.is_busy) = false;
        self.0.changed.notify_all();
    }
}

impl Background {
    pub(super) fn new() -> Self {
        Self { shared: Arc::default(), thread: Mutex::default(), process: process_id() }
    }

    /// Starts the thread, unless it is at work or nothing should be started any more: then this is false.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(&self, work: impl FnOnce() + Send + 'static) -> io::Result<bool> {
        if self.has_to_end() {
            return Ok(false);
        }
        self.start_last(work)
    }

    /// As [`start`](Self::start), also when the work should end: for what ends it.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start_last(&self, work: impl FnOnce() + Send + 'static) -> io::Result<bool> {
        let mut thread = lock(&self.thread);
        let mut is_busy = lock(&self.shared.is_busy);
        if *is_busy || process_id() != self.process {
            return Ok(false);
        }
        *is_busy = true;
        drop(is_busy);
        let busy = Busy(Arc::clone(&self.shared));
        let started = thread::Builder::new().name("tl-cache-1".into()).spawn(move || {
            let _busy = busy;
            work();
        });
        *thread = Some(started?);
        Ok(true)
    }

    /// True if the work should stop as soon as it can.
    pub(super) fn has_to_end(&self) -> bool {
        self.shared.ends.load(Ordering::Relaxed)
    }

    /// Ends the work, and does not wait for it.
    pub(super) fn stop(&self) {
        self.shared.ends.store(true, Ordering::Relaxed);
    }

    /// Ends the work, and waits for it for at most this long, as a disk may not answer. True if it is
    /// over.
    pub(super) fn end(&self, at_most: Duration) -> bool {
        self.stop();
        let is_over = self.wait(at_most);
        if is_over {
            drop(lock(&self.thread).take().map(thread::JoinHandle::join));
        }
        is_over
    }

    /// True if there is, or was, work.
    #[cfg(test)]
    pub(super) fn is_started(&self) -> bool {
        lock(&self.thread).is_some()
    }

    /// Waits until the work is over, for at most this long.
    pub(super) fn wait(&self, at_most: Duration) -> bool {
        let since = Instant::now();
        let mut is_busy = lock(&self.shared.is_busy);
        while *is_busy && since.elapsed() < at_most {
            is_busy = wait_timeout(&self.shared.changed, is_busy, TICK);
        }
        !*is_busy
    }
}
