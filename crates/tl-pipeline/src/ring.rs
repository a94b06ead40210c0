//! The ring of batches in flight: who works on what, how far ahead, and in which order it comes out.
//!
//! Workers claim positions of the epoch from one counter, so the earliest batch is always worked
//! on first. At most `depth` batches are in flight: a worker whose position belongs to a later one
//! sleeps until the consumer takes a batch. That is the only back-pressure, and there is no queue of
//! samples. Batches come out in order whatever order they are finished in. Closing the ring wakes
//! every sleeper.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex, Ordering, lock, wait};

/// `F` is a batch being filled, `R` a batch that is ready, `E` why the epoch ended early.
pub(crate) struct Ring<F, R, E> {
    positions: u64,
    batch_size: u64,
    depth: usize,
    next_position: AtomicU64,
    closed: AtomicBool,
    state: Mutex<State<F, R, E>>,
    /// Signalled when a batch is taken, or the ring is closed.
    space: Condvar,
    /// Signalled when the next batch in order is ready, or the ring is closed.
    ready: Condvar,
}

struct State<F, R, E> {
    /// Batches the consumer has taken; the number of the front slot's batch.
    taken: u64,
    slots: VecDeque<Slot<F, R>>,
    failure: Option<E>,
}

enum Slot<F, R> {
    Empty,
    Filling(F),
    Ready(R),
}

impl<F: Clone, R, E> Ring<F, R, E> {
    /// A ring for `positions` samples in batches of `batch_size`, `depth` of them in flight.
    pub(crate) fn new(positions: u64, batch_size: u64, depth: usize) -> Self {
        let slots = VecDeque::with_capacity(depth);
        Self {
            positions,
            batch_size,
            depth,
            next_position: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            state: Mutex::new(State { taken: 0, slots, failure: None }),
            space: Condvar::new(),
            ready: Condvar::new(),
        }
    }

    /// The next position to work on, or `None` when there is nothing left to do.
    pub(crate) fn claim(&self) -> Option<u64> {
        if self.closed.load(Ordering::Relaxed) {
            return None;
        }
        // The counter passes the end by at most one per worker.
        let position = self.next_position.fetch_add(1, Ordering::Relaxed);
        (position < self.positions).then_some(position)
    }

    /// How many positions batch `batch` has.
    pub(crate) fn rows_of(&self, batch: u64) -> u64 {
        self.batch_size.min(self.positions - batch * self.batch_size)
    }

    pub(crate) fn batch_count(&self) -> u64 {
        self.positions.div_ceil(self.batch_size)
    }

    /// The batch being filled under this number, once it may be worked on; the first to ask makes
    /// it. `None` when the ring was closed. Also says how long that took when it meant sleeping.
    pub(crate) fn enter(
        &self,
        batch: u64,
        make: impl FnOnce() -> Result<F, E>,
    ) -> (Option<F>, Duration) {
        let mut state = lock(&self.state);
        let mut slept = Duration::ZERO;
        if !self.closed.load(Ordering::Relaxed) && batch - state.taken >= self.depth as u64 {
            let start = Instant::now();
            while !self.closed.load(Ordering::Relaxed) && batch - state.taken >= self.depth as u64 {
                state = wait(&self.space, state);
            }
            slept = start.elapsed();
        }
        if self.closed.load(Ordering::Relaxed) {
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
                    self.close_with(state, Some(failure));
                    (None, slept)
                }
            },
        }
    }

    /// Puts a finished batch in its place.
    pub(crate) fn publish(&self, batch: u64, result: R) {
        let mut state = lock(&self.state);
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

    /// The next batch in order, waiting for it; `None` after the last one, or when the ring was
    /// closed without a failure. Also says how long that took when it meant sleeping.
    pub(crate) fn take(&self) -> (Option<Result<R, E>>, Duration) {
        let mut state = lock(&self.state);
        if state.taken == self.batch_count() {
            return (None, Duration::ZERO);
        }
        let mut start = None;
        loop {
            if matches!(state.slots.front(), Some(Slot::Ready(_))) {
                break;
            }
            if self.closed.load(Ordering::Relaxed) {
                return (state.failure.take().map(Err), elapsed(start));
            }
            start.get_or_insert_with(Instant::now);
            state = wait(&self.ready, state);
        }
        state.taken += 1;
        let front = state.slots.pop_front();
        drop(state);
        self.space.notify_all();
        let Some(Slot::Ready(result)) = front else { unreachable!("seen under the same lock") };
        (Some(Ok(result)), elapsed(start))
    }

    /// Ends the epoch: claims and waits return `None` from now on.
    pub(crate) fn close(&self) {
        self.close_with(lock(&self.state), None);
    }

    /// Ends the epoch with a reason, which the consumer gets after the batches before it.
    pub(crate) fn fail(&self, failure: E) {
        self.close_with(lock(&self.state), Some(failure));
    }

    fn close_with(
        &self,
        mut state: crate::sync::MutexGuard<'_, State<F, R, E>>,
        failure: Option<E>,
    ) {
        // The flag is set under the lock, so that no sleeper can miss the signal below.
        self.closed.store(true, Ordering::Relaxed);
        state.failure = state.failure.take().or(failure);
        if state.failure.is_none() {
            state.slots.clear();
        }
        drop(state);
        self.space.notify_all();
        self.ready.notify_all();
    }
}

fn elapsed(start: Option<Instant>) -> Duration {
    start.map_or(Duration::ZERO, |start| start.elapsed())
}

#[cfg(test)]
mod tests;
