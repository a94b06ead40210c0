//! Permits for batches: how many may be in memory at once, and who waits for one.
//!
//! Without a bound, permits are counted and nobody waits. With one, a worker may begin a batch when
//! fewer than `most` lie between it and the last batch that the consumer released. The batch that
//! the consumer waits for therefore always has its memory: no later batch can have taken it. A
//! worker that the system suspends right after its last row holds a batch for a moment longer; the
//! thread that needs that memory waits for it here.

use std::error::Error;
use std::fmt;
use std::time::{Duration, Instant};

use crate::sync::{
    Arc, AtomicBool, AtomicU64, Condvar, Mutex, Ordering, lock, process_id, wait, wait_timeout,
};

/// Counts batches, in the hands of workers and of the consumer.
#[derive(Debug)]
pub struct BatchPermits {
    /// Batches that there may be at once.
    most: u64,
    /// Bytes that may be prepared ahead, where batches differ.
    bytes: u64,
    state: Mutex<State>,
    /// Signalled when a batch is received or released, and when a run ends.
    changed: Condvar,
    /// The process that uses the permits.
    process: u32,
}

#[derive(Debug, Default)]
struct State {
    /// Batches that have a permit.
    live: u64,
    /// Batches that were ready so far, and those of them that the consumer received.
    published: u64,
    received: u64,
    /// Batches that were ready and that all but their workers have released so far.
    released: u64,
    /// Batches that the consumer has received and not released.
    held: u64,
    /// Runs that have not ended.
    runs: u64,
    /// Bytes of batches prepared ahead, if these are bounded.
    ahead: u64,
}

/// One run's place among those that ask for permits.
#[derive(Debug)]
pub struct RunTicket {
    permits: Arc<BatchPermits>,
    /// The run's first batch.
    start: u64,
    /// Batches of earlier runs that somebody held when the run began.
    held: u64,
    /// Batches that the consumer had received and released by then.
    received: u64,
    released: u64,
    /// True once no thread may wait; changed under the permits' lock.
    closed: AtomicBool,
}

/// The right to hold one batch in memory, returned when the permit is dropped.
#[derive(Debug)]
pub struct Permit {
    permits: Arc<BatchPermits>,
    /// Bytes of its rows if they own buffers, and of its images if it is padded. Those of a row are
    /// added before it is finished and read after the last finish, which orders them.
    charged: AtomicU64,
    /// Further bytes of the batch that count as prepared ahead.
    beside: u64,
    /// True once the consumer has received it.
    is_received: AtomicBool,
}

/// A batch is ready or with the consumer, or the user's code has kept it, until this is dropped.
#[derive(Debug)]
pub struct HeldBatch {
    permits: Arc<BatchPermits>,
    /// True once the consumer has received it.
    is_received: AtomicBool,
}

/// The consumer holds too many batches for the next one to fit the memory budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchesHeld {
    /// Batches that are kept.
    pub held: u64,
    /// Batches that memory has room for.
    pub most: u64,
}

impl fmt::Display for BatchesHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { held, most } = self;
        write!(f, "{held} batches are kept, and memory has room for {most}")
    }
}

impl Error for BatchesHeld {}

impl BatchPermits {
    /// Permits for `most` batches at once, and `bytes` of growing rows ahead of the consumer.
    pub fn new(most: u64, bytes: u64) -> Arc<Self> {
        let state = Mutex::default();
        let changed = Condvar::new();
        Arc::new(Self { most, bytes, state, changed, process: process_id() })
    }

    /// Begins a run at batch `start`; `None` while another run exists and memory is bounded,
    /// because each would wait for the other's batches.
    pub fn begin(self: &Arc<Self>, start: u64) -> Option<RunTicket> {
        let mut state = lock(&self.state);
        if state.runs > 0 && self.most < u64::MAX {
            return None;
        }
        state.runs += 1;
        let State { published, received, released, .. } = *state;
        let permits = Arc::clone(self);
        let closed = AtomicBool::new(false);
        Some(RunTicket { permits, start, held: published - released, received, released, closed })
    }

    /// The number of batches with a permit, and of those that the consumer holds.
    pub fn counts(&self) -> (u64, u64) {
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

impl RunTicket {
    /// Sleeps until batch `batch` of the run may be begun; says how long that took when it meant
    /// sleeping.
    pub fn wait(&self, batch: u64) -> Duration {
        let mut state = lock(&self.permits.state);
        if self.admits(batch, &state) {
            return Duration::ZERO;
        }
        let start = Instant::now();
        while !self.admits(batch, &state) {
            state = wait(&self.permits.changed, state);
        }
        start.elapsed()
    }

    fn admits(&self, batch: u64, state: &State) -> bool {
        if self.closed.load(Ordering::Relaxed) {
            return true;
        }
        // The batch that is received next is always let in: the consumer waits for it.
        let is_next = batch - self.start <= state.received - self.received;
        self.between(batch, state) < self.permits.most
            && (is_next || state.ahead < self.permits.bytes)
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
    /// When they are still kept then.
    pub fn check_held(&self, batch: u64, timeout: Duration) -> Result<Duration, BatchesHeld> {
        let most = self.permits.most;
        let mut state = lock(&self.permits.state);
        let mut start = None;
        loop {
            let held = self.between(batch, &state);
            if held < most {
                return Ok(start.map_or(Duration::ZERO, |start: Instant| start.elapsed()));
            }
            let left = timeout.saturating_sub(start.get_or_insert_with(Instant::now).elapsed());
            if left.is_zero() {
                return Err(BatchesHeld { held, most });
            }
            state = wait_timeout(&self.permits.changed, state, left);
        }
    }

    /// The permit for a batch that was admitted. Waits for a worker that still has one that the
    /// consumer released; that worker depends on no other thread.
    pub fn permit(&self) -> Permit {
        let mut state = lock(&self.permits.state);
        while state.live >= self.permits.most {
            state = wait(&self.permits.changed, state);
        }
        state.live += 1;
        let charged = AtomicU64::new(0);
        let is_received = AtomicBool::new(false);
        Permit { permits: Arc::clone(&self.permits), charged, beside: 0, is_received }
    }

    /// Lets everybody through, because the run is over.
    pub fn close(&self) {
        self.permits.change(|_| self.closed.store(true, Ordering::Relaxed));
    }
}

impl Drop for RunTicket {
    fn drop(&mut self) {
        self.permits.change(|state| state.runs -= 1);
    }
}

impl Permit {
    /// Adds `bytes` to those of the batch and returns the sum. It takes no lock unless the bytes
    /// prepared ahead are bounded.
    #[inline]
    pub fn charge(&self, bytes: u64) -> u64 {
        if bytes > 0 && self.permits.bytes < u64::MAX {
            lock(&self.permits.state).ahead += bytes;
        }
        self.charged.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes)
    }

    /// Takes back what was charged, for a batch that is made again.
    pub fn discharge(&self) {
        let charged = self.charged.swap(0, Ordering::Relaxed);
        if charged > 0 && self.permits.bytes < u64::MAX {
            lock(&self.permits.state).ahead -= charged;
        }
    }

    /// Also counts `bytes` as prepared ahead that are not charged.
    pub fn with_beside(mut self, bytes: u64) -> Self {
        if self.permits.bytes < u64::MAX {
            lock(&self.permits.state).ahead += bytes;
            self.beside += bytes;
        }
        self
    }

    /// Marks the batch as ready. Others may wait for the permit with the ring locked, so dropping
    /// the returned value must not need that lock.
    pub fn publish(&self) -> HeldBatch {
        self.permits.change(|state| state.published += 1);
        HeldBatch { permits: Arc::clone(&self.permits), is_received: AtomicBool::new(false) }
    }

    /// Notes that the consumer has received the batch.
    pub fn receive(&self, held: &HeldBatch) {
        self.permits.change(|state| {
            state.received += 1;
            state.held += 1;
            state.ahead -= self.ahead();
            self.is_received.store(true, Ordering::Relaxed);
            held.is_received.store(true, Ordering::Relaxed);
        });
    }

    /// Those of its bytes that count as prepared ahead.
    fn ahead(&self) -> u64 {
        if self.permits.bytes < u64::MAX { self.charged() + self.beside } else { 0 }
    }

    /// Bytes charged so far.
    #[inline]
    pub fn charged(&self) -> u64 {
        self.charged.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.permits.change(|state| {
            state.live -= 1;
            if !self.is_received.load(Ordering::Relaxed) {
                state.ahead -= self.ahead();
            }
        });
    }
}

impl Drop for HeldBatch {
    fn drop(&mut self) {
        self.permits.change(|state| {
            state.released += 1;
            state.held -= u64::from(self.is_received.load(Ordering::Relaxed));
        });
    }
}

#[cfg(test)]
#[cfg(not(any(feature = "shuttle", feature = "loom")))]
mod tests;

#[cfg(test)]
#[cfg(feature = "shuttle")]
mod schedules;

#[cfg(test)]
#[cfg(feature = "loom")]
mod orderings;
