//! The gate: how many batches of memory there may be at once, and who waits for one.
//!
//! Without a budget it counts and lets everybody through. With one, a batch may be begun when fewer
//! than `most` lie between it and the last one that the consumer let go of, so that the batch the
//! consumer waits for always has its memory: no later batch can have taken it. A worker that the
//! system has suspended just behind its last row holds a batch for a moment longer; whoever needs
//! that memory waits for it here.

use std::time::{Duration, Instant};

use crate::error::PipelineError;
use crate::sync::{
    Arc, AtomicBool, AtomicU64, Condvar, Mutex, Ordering, lock, process_id, wait, wait_timeout,
};

/// Counts batches, in the hands of workers and of the consumer.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Batches that there may be at once.
    most: u64,
    /// Bytes that may be prepared ahead, where batches differ.
    bytes: u64,
    state: Mutex<State>,
    /// Signalled when a batch is received or let go of, and when a run is over.
    changed: Condvar,
    /// The process that the gate is used in.
    process: u32,
}

#[derive(Debug, Default)]
struct State {
    /// Batches that there are.
    live: u64,
    /// Batches that were ready, and those of them that the consumer received, ever.
    published: u64,
    received: u64,
    /// Batches that were ready and that everybody but their workers has let go of, ever.
    released: u64,
    /// Batches that the consumer has received and not let go of.
    held: u64,
    /// Runs that are going on.
    runs: u64,
    /// Bytes that are prepared ahead, where there is a bound on them.
    ahead: u64,
}

/// One run's place at the gate.
#[derive(Debug)]
pub(crate) struct Turn {
    gate: Arc<Gate>,
    /// The run's first batch.
    start: u64,
    /// Batches of earlier runs that somebody held when the run began.
    held: u64,
    /// Batches that the consumer had received and let go of by then.
    received: u64,
    released: u64,
    /// Whether nobody is to wait any more; changed under the gate's lock.
    closed: AtomicBool,
}

/// Leave to have one batch in memory, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
    /// Bytes of its rows, where those grow, and of its images, where it is padded. A row's are added
    /// before it is finished, and looked at behind the last finish, which orders them.
    charged: AtomicU64,
    /// Bytes of memory that the batch has beside them.
    beside: u64,
    /// Whether the consumer has received it.
    is_received: AtomicBool,
}

/// A batch is ready or with the consumer, or the user's code has kept it, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    gate: Arc<Gate>,
    /// Whether the consumer has received it.
    is_received: AtomicBool,
}

impl Gate {
    /// A gate for `most` batches at once, and `bytes` of growing rows ahead of the consumer.
    pub(crate) fn new(most: u64, bytes: u64) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Self { most, bytes, state, changed, process: process_id() })
    }

    /// Begins a run at batch `start`; `None` while there is another and memory is bounded, because
    /// two runs would wait for each other's batches.
    pub(crate) fn turn(self: &Arc<Self>, start: u64) -> Option<Turn> {
        let mut state = lock(&self.state);
        if state.runs > 0 && self.most < u64::MAX {
            return None;
        }
        state.runs += 1;
        let State { published, received, released, .. } = *state;
        let (gate, closed) = (Arc::clone(self), AtomicBool::new(false));
        Some(Turn { gate, start, held: published - released, received, released, closed })
    }

    /// How many batches there are, and how many of them the consumer holds.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let state = lock(&self.state);
        (state.live, state.held)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        if self.process != process_id() {
            // A fork, where a worker may have held the lock and is not there to release it.
            return;
        }
        let mut state = lock(&self.state);
        change(&mut state);
        drop(state);
        self.changed.notify_all();
    }
}

impl Turn {
    /// Sleeps until batch `batch` of the run may be begun; says how long that took when it meant
    /// sleeping.
    pub(crate) fn wait(&self, batch: u64) -> Duration {
        let mut state = lock(&self.gate.state);
        if self.admits(batch, &state) {
            return Duration::ZERO;
        }
        let start = Instant::now();
        while !self.admits(batch, &state) {
            state = wait(&self.gate.changed, state);
        }
        start.elapsed()
    }

    fn admits(&self, batch: u64, state: &State) -> bool {
        if self.closed.load(Ordering::Relaxed) {
            return true;
        }
        // The batch that is received next is always let in: the consumer waits for it.
        let is_next = batch - self.start <= state.received - self.received;
        self.between(batch, state) < self.gate.most && (is_next || state.ahead < self.gate.bytes)
    }

    /// Batches before `batch` that somebody has, or that are still to come.
    fn between(&self, batch: u64, state: &State) -> u64 {
        let before = (batch - self.start).saturating_add(self.held);
        before.saturating_sub(state.released - self.released)
    }

    /// Sleeps for at most `timeout` while batch `batch`, which the consumer is to receive next,
    /// cannot be made because those before it are kept; says how long that took when it meant
    /// sleeping.
    ///
    /// # Errors
    /// [`PipelineError::BatchesHeld`] when they are still kept then.
    pub(crate) fn check_held(
        &self,
        batch: u64,
        timeout: Duration,
    ) -> Result<Duration, PipelineError> {
        let most = self.gate.most;
        let mut state = lock(&self.gate.state);
        let mut start = None;
        loop {
            let held = self.between(batch, &state);
            if held < most {
                return Ok(start.map_or(Duration::ZERO, |start: Instant| start.elapsed()));
            }
            let left = timeout.saturating_sub(start.get_or_insert_with(Instant::now).elapsed());
            if left.is_zero() {
                return Err(PipelineError::BatchesHeld { held, most });
            }
            state = wait_timeout(&self.gate.changed, state, left);
        }
    }

    /// Leave to have a batch that was waited for. A worker that still has one the consumer let go of
    /// is waited for, which needs nobody else.
    pub(crate) fn permit(&self) -> Permit {
        let mut state = lock(&self.gate.state);
        while state.live >= self.gate.most {
            state = wait(&self.gate.changed, state);
        }
        state.live += 1;
        let (charged, is_received) = (AtomicU64::new(0), AtomicBool::new(false));
        Permit { gate: Arc::clone(&self.gate), charged, beside: 0, is_received }
    }

    /// Lets everybody through, because the run is over.
    pub(crate) fn close(&self) {
        self.gate.change(|_| self.closed.store(true, Ordering::Relaxed));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.gate.change(|state| state.runs -= 1);
    }
}

impl Permit {
    /// Adds `bytes` to those of the batch and returns the sum. Without a bound on what is prepared
    /// ahead that takes no lock.
    pub(crate) fn charge(&self, bytes: u64) -> u64 {
        if bytes > 0 && self.gate.bytes < u64::MAX {
            lock(&self.gate.state).ahead += bytes;
        }
        self.charged.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes)
    }

    /// The same with `bytes` of memory that the batch has and does not need, because it was another's.
    pub(crate) fn with_beside(mut self, bytes: u64) -> Self {
        if self.gate.bytes < u64::MAX {
            lock(&self.gate.state).ahead += bytes;
            self.beside += bytes;
        }
        self
    }

    /// Notes that the batch is ready. Who drops what this returns makes others wait for the permit,
    /// with the ring locked, and must not need that lock to let go of it.
    pub(crate) fn publish(&self) -> Held {
        self.gate.change(|state| state.published += 1);
        Held { gate: Arc::clone(&self.gate), is_received: AtomicBool::new(false) }
    }

    /// Notes that the consumer has received the batch.
    pub(crate) fn receive(&self, held: &Held) {
        self.gate.change(|state| {
            state.received += 1;
            state.held += 1;
            state.ahead -= self.ahead();
            self.is_received.store(true, Ordering::Relaxed);
            held.is_received.store(true, Ordering::Relaxed);
        });
    }

    /// Those of its bytes that count as prepared ahead.
    fn ahead(&self) -> u64 {
        if self.gate.bytes < u64::MAX { self.charged() + self.beside } else { 0 }
    }

    /// Bytes so far.
    pub(crate) fn charged(&self) -> u64 {
        self.charged.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.change(|state| {
            state.live -= 1;
            if !self.is_received.load(Ordering::Relaxed) {
                state.ahead -= self.ahead();
            }
        });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.gate.change(|state| {
            state.released += 1;
            state.held -= u64::from(self.is_received.load(Ordering::Relaxed));
        });
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests;

#[cfg(test)]
#[cfg(shuttle)]
mod schedules;

#[cfg(test)]
#[cfg(loom)]
mod orderings;
