//! The ring of batches in flight: it assigns rows to workers, bounds their lead, and returns
//! batches in order.
//!
//! Workers claim rows from one counter, so the earliest batch is always worked on first. At most
//! `depth` batches are in flight: a worker whose row belongs to a later one sleeps until the
//! consumer takes a batch, or, if memory is bounded, until it gets a permit. No queue of samples
//! exists. Batches come out in order, in whatever order they are finished. Closing the ring wakes
//! every sleeper.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex, Ordering, lock, wait, wait_timeout};

/// The batches in flight. `F` is a batch being filled, `R` a batch that is ready, `E` the reason of
/// an early end.
#[derive(Debug)]
pub struct Ring<F, R, E> {
    /// The number of rows.
    rows: u64,
    /// The number of batches.
    batches: u64,
    depth: usize,
    next_row: AtomicU64,
    closed: AtomicBool,
    state: Mutex<State<F, R, E>>,
    /// Signalled when a batch is taken, or the ring is closed.
    space: Condvar,
    /// Signalled when the next batch in order is ready, or the ring is closed.
    ready: Condvar,
}

#[derive(Debug)]
struct State<F, R, E> {
    /// The number of the front slot's batch, which the consumer takes next.
    taken: u64,
    slots: VecDeque<Slot<F, R>>,
    /// Batches from here on are not made: the end, or where it was closed.
    end: u64,
    /// The failure that ended the run, if one did.
    failure: Option<E>,
}

#[derive(Debug)]
enum Slot<F, R> {
    Empty,
    Filling(F),
    Ready(R),
}

/// The answer to a consumer that asks for the next batch.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken<R, E> {
    /// The next batch in order.
    Ready(R),
    /// The ring ended early for this reason. Returned once.
    Failed(E),
    /// All batches were taken, or the ring was closed.
    Ended,
    /// The next batch was not ready in time.
    TimedOut,
}

impl<F: Clone, R, E> Ring<F, R, E> {
    /// A ring for the rows and batches with these numbers, `depth` batches in flight, and one at
    /// least.
    pub fn new(rows: Range<u64>, batches: Range<u64>, depth: usize) -> Self {
        let depth = depth.max(1);
        let slots = VecDeque::with_capacity(depth);
        Self {
            rows: rows.end,
            batches: batches.end,
            depth,
            next_row: AtomicU64::new(rows.start),
            closed: AtomicBool::new(false),
            state: Mutex::new(State {
                taken: batches.start,
                slots,
                end: batches.end,
                failure: None,
            }),
            space: Condvar::new(),
            ready: Condvar::new(),
        }
    }

    /// The next row to work on, or `None` if no work is left.
    #[inline]
    pub fn claim(&self) -> Option<u64> {
        if self.closed.load(Ordering::Relaxed) {
            return None;
        }
        // The counter passes the end by at most one per worker.
        let row = self.next_row.fetch_add(1, Ordering::Relaxed);
        (row < self.rows).then_some(row)
    }

    /// True if the consumer has taken all batches.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.taken() == self.batches
    }

    /// The number of the batch that the consumer takes next.
    #[inline]
    pub fn taken(&self) -> u64 {
        lock(&self.state).taken
    }

    /// The number of batches that are ready to be taken.
    pub fn ready(&self) -> u64 {
        let state = lock(&self.state);
        let ready = state.slots.iter().take_while(|slot| matches!(slot, Slot::Ready(_)));
        ready.count() as u64
    }

    /// The batch being filled under this number, once it may be worked on; the first to ask makes
    /// it, and what it cannot make [ends](Self::fail_at) the ring there. `None` when the ring ends
    /// before it. Also says how long that took when it meant sleeping.
    ///
    /// # Panics
    /// If the batch was published before.
    pub fn enter(&self, batch: u64, make: impl FnOnce() -> Result<F, E>) -> (Option<F>, Duration) {
        let mut state = lock(&self.state);
        assert!(batch >= state.taken, "batch {batch} was taken before batch {}", state.taken);
        let mut slept = Duration::ZERO;
        let depth = self.depth as u64;
        if batch < state.end && batch - state.taken >= depth {
            let start = Instant::now();
            while batch < state.end && batch - state.taken >= depth {
                state = wait(&self.space, state);
            }
            slept = start.elapsed();
        }
        if batch >= state.end {
            return (None, slept);
        }
        let place = usize::try_from(batch - state.taken).expect("below the depth, seen above");
        while state.slots.len() <= place {
            state.slots.push_back(Slot::Empty);
        }
        match &state.slots[place] {
            Slot::Filling(filling) => (Some(filling.clone()), slept),
            Slot::Ready(_) => unreachable!("a batch with a position still to fill is not ready"),
            Slot::Empty => match make() {
                Ok(filling) => {
                    state.slots[place] = Slot::Filling(filling.clone());
                    (Some(filling), slept)
                }
                Err(failure) => {
                    self.end_at(state, batch, Some(failure));
                    (None, slept)
                }
            },
        }
    }

    /// Puts a finished batch in its place; it is dropped if the ring was closed meanwhile.
    ///
    /// # Panics
    /// If the batch was taken before.
    pub fn publish(&self, batch: u64, result: R) {
        let mut state = lock(&self.state);
        assert!(batch >= state.taken, "batch {batch} was taken before batch {}", state.taken);
        let next = batch == state.taken;
        let place = usize::try_from(batch - state.taken).expect("below the depth since `enter`");
        // A ring that was closed in between has no slots any more.
        if let Some(slot) = state.slots.get_mut(place) {
            *slot = Slot::Ready(result);
            drop(state);
            if next {
                self.ready.notify_one();
            }
        }
    }

    /// Waits for the next batch in order, for at most `timeout` if given. Also returns the time
    /// that it slept.
    pub fn take(&self, timeout: Option<Duration>) -> (Taken<R, E>, Duration) {
        let mut state = lock(&self.state);
        if state.taken == self.batches {
            return (Taken::Ended, Duration::ZERO);
        }
        let mut start = None;
        while !matches!(state.slots.front(), Some(Slot::Ready(_))) {
            if state.taken >= state.end {
                let taken = state.failure.take().map_or(Taken::Ended, Taken::Failed);
                return (taken, elapsed(start));
            }
            let waited = start.get_or_insert_with(Instant::now).elapsed();
            state = match timeout.map(|timeout| timeout.checked_sub(waited)) {
                None => wait(&self.ready, state),
                Some(Some(left)) => wait_timeout(&self.ready, state, left),
                Some(None) => return (Taken::TimedOut, elapsed(start)),
            };
        }
        state.taken += 1;
        let front = state.slots.pop_front();
        drop(state);
        self.space.notify_all();
        let Some(Slot::Ready(result)) = front else { unreachable!("seen under the same lock") };
        (Taken::Ready(result), elapsed(start))
    }

    /// Ends the run: nothing can be claimed from now on, and all sleepers wake.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        if state.failure.is_none() {
            state.slots.clear();
        }
        self.end_at(state, 0, None);
    }

    /// Ends it with a reason, which the consumer gets after the batches that are ready. What is still
    /// being filled is given up.
    pub fn fail(&self, failure: E) {
        self.end_at(lock(&self.state), 0, Some(failure));
    }

    /// Ends it before batch `batch` with a reason, which the consumer gets after all batches before:
    /// their rows are claimed already, and are still worked on.
    pub fn fail_at(&self, batch: u64, failure: E) {
        self.end_at(lock(&self.state), batch, Some(failure));
    }

    /// The first of several failures in the order of batches counts.
    fn end_at(
        &self,
        mut state: crate::sync::MutexGuard<'_, State<F, R, E>>,
        batch: u64,
        failure: Option<E>,
    ) {
        self.closed.store(true, Ordering::Relaxed);
        if batch < state.end || state.failure.is_none() {
            state.failure = failure.or(state.failure.take());
        }
        state.end = state.end.min(batch);
        drop(state);
        self.space.notify_all();
        self.ready.notify_all();
    }
}

fn elapsed(start: Option<Instant>) -> Duration {
    start.map_or(Duration::ZERO, |start| start.elapsed())
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests;

#[cfg(test)]
#[cfg(feature = "loom")]
mod orderings;
