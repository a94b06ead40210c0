//! The queue of a thread that waits for a device.

use std::collections::VecDeque;

use tl_handoff::sync::{Arc, Condvar, Mutex, lock, wait};

use crate::driver::Event;
use crate::uploader::{HostBytes, Images, Verdict};

/// A copy, with what it needs until it is complete.
pub(crate) struct Copy {
    pub(crate) start: Event,
    pub(crate) end: Arc<Event>,
    pub(crate) source: Arc<dyn HostBytes>,
    pub(crate) _images: Option<Images>,
    pub(crate) verdict: Option<Arc<Verdict>>,
}

/// A reason to wait for the device.
pub(crate) enum Job {
    /// The copy ends, and needs nothing from then on.
    Copy(Box<Copy>),
    /// Memory was dropped that has to be waited for.
    Retired,
}

/// Jobs, oldest first.
pub(crate) struct Jobs<T = Job> {
    queue: Mutex<Queue<T>>,
    changed: Condvar,
}

struct Queue<T> {
    jobs: VecDeque<T>,
    is_closed: bool,
}

impl<T> Default for Jobs<T> {
    fn default() -> Self {
        let queue = Queue { jobs: VecDeque::new(), is_closed: false };
        Self { queue: Mutex::new(queue), changed: Condvar::default() }
    }
}

impl<T> Jobs<T> {
    /// Returns the job if nobody takes jobs.
    pub(crate) fn push(&self, job: T) -> Result<(), T> {
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return Err(job);
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.changed.notify_all();
        Ok(())
    }

    /// The next job, once there is one; `None` after the last.
    pub(crate) fn next(&self) -> Option<T> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.is_closed {
                return None;
            }
            queue = wait(&self.changed, queue);
        }
    }

    pub(crate) fn close(&self) {
        lock(&self.queue).is_closed = true;
        self.changed.notify_all();
    }
}
