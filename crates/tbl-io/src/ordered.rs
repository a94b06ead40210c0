//! Work on numbered items on several threads, with the results handed over in order and the
//! memory of everything in flight bounded.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Results may run this many items per worker ahead of the one that is handed over next.
const ITEMS_PER_WORKER: usize = 8;

/// The next action of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Items are numbered from zero.
    pub(crate) item_count: u64,
    /// Threads that work; with one, everything happens on the calling thread.
    pub(crate) workers: NonZeroUsize,
    /// Items whose costs add up to more are not in flight together. A single item that costs
    /// more is in flight alone.
    pub(crate) budget_bytes: u64,
}

/// A worker panicked at this item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked(pub(crate) u64);

/// The system refused to start a thread.
#[derive(Debug)]
pub(crate) struct NotStarted {
    /// The thread's number, from 0.
    pub(crate) worker: usize,
    /// How many were to be started.
    pub(crate) workers: usize,
    pub(crate) source: io::Error,
}

/// Makes one worker per thread with `new_worker`, has each item worked on once, and gives the
/// results to `consume` on the calling thread, in order. The first error of `consume` stops the
/// work and is returned.
///
/// `cost` estimates, once for each item, the bytes it holds until it has been worked on; what its
/// result then holds until it has been consumed, the worker returns with it.
///
/// # Errors
/// The error of `consume`, or a panic on a thread converted to `E`: of `new_worker` (at the item
/// that
/// the worker was for), of `cost` or of the worker, or of a thread that cannot be started.
pub(crate) fn in_order<W, T, E>(
    plan: Plan,
    cost: impl Fn(u64) -> u64 + Sync,
    new_worker: impl Fn() -> W + Sync,
    mut consume: impl FnMut(u64, T) -> Result<(), E>,
) -> Result<(), E>
where
    W: FnMut(u64) -> (T, u64),
    T: Send,
    E: From<Panicked> + From<NotStarted>,
{
    let threads = plan.workers.get().min(usize::try_from(plan.item_count).unwrap_or(usize::MAX));
    if threads <= 1 {
        let mut work = new_worker();
        return (0..plan.item_count).try_for_each(|item| consume(item, work(item).0));
    }
    let line = Line::new(plan, threads);
    thread::scope(|scope| {
        // Whatever way this closure is left, the threads must end, or the scope never would.
        let stop = StopOnDrop(&line);
        for worker in 0..threads {
            let work = || line.work(&cost, &new_worker);
            thread::Builder::new().spawn_scoped(scope, work).map_err(|source| NotStarted {
                worker,
                workers: threads,
                source,
            })?;
        }
        for item in 0..plan.item_count {
            let result = line.take().ok_or(Panicked(item))?;
            consume(item, result)?;
            line.release();
        }
        drop(stop);
        Ok(())
    })
}

/// The items between being drawn and being consumed.
///
/// A thread draws the next item, estimates it without holding the lock, waits until it is
/// admitted, and works on it. Items are admitted in the order they were drawn, so the one that is
/// consumed next never waits for room that later ones have taken.
#[derive(Debug)]
struct Line<T> {
    plan: Plan,
    max_items: usize,
    state: Mutex<State<T>>,
    /// Signalled when the front result is ready.
    front_ready: Condvar,
    /// Signalled when items may be drawn or admitted again.
    room: Condvar,
}

#[derive(Debug)]
struct State<T> {
    next_drawn: u64,
    next_admitted: u64,
    held_bytes: u64,
    stopped: bool,
    /// Drawn items that are not yet consumed, oldest first.
    slots: VecDeque<Slot<T>>,
}

#[derive(Debug)]
struct Slot<T> {
    item: u64,
    bytes: u64,
    result: Progress<T>,
}

#[derive(Debug)]
enum Progress<T> {
    Working,
    Done(T),
    Panicked,
    Taken,
}

impl<T> Line<T> {
    fn new(plan: Plan, threads: usize) -> Self {
        let state = State {
            next_drawn: 0,
            next_admitted: 0,
            held_bytes: 0,
            stopped: false,
            slots: VecDeque::new(),
        };
        Self {
            plan,
            max_items: threads.saturating_mul(ITEMS_PER_WORKER),
            state: Mutex::new(state),
            front_ready: Condvar::new(),
            room: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing panics while it holds the lock, and every state is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of each thread. Whatever panics, the item it happened at gets a result, for the
    /// consumer waits for it.
    fn work<W>(&self, cost: &impl Fn(u64) -> u64, new_worker: &impl Fn() -> W)
    where
        W: FnMut(u64) -> (T, u64),
    {
        let mut worker = None;
        while let Some(item) = self.draw() {
            let result = catch_unwind(AssertUnwindSafe(|| {
                let admitted = self.admit(item, cost(item));
                admitted.then(|| worker.get_or_insert_with(new_worker)(item))
            }));
            match result {
                Ok(Some(result)) => self.deliver(item, Some(result)),
                Ok(None) => return,
                Err(_) => return self.deliver(item, None),
            }
        }
    }

    /// The next item, once there are few enough before it; `None` when no work is left.
    fn draw(&self) -> Option<u64> {
        let mut state = self.lock();
        loop {
            if state.stopped || state.next_drawn == self.plan.item_count {
                return None;
            }
            if state.slots.len() < self.max_items {
                let item = state.next_drawn;
                state.next_drawn += 1;
                state.slots.push_back(Slot { item, bytes: 0, result: Progress::Working });
                return Some(item);
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until `item`, which holds `bytes`, may be worked on; `false` when no more work is
    /// wanted.
    fn admit(&self, item: u64, bytes: u64) -> bool {
        let mut guard = self.lock();
        loop {
            let state = &mut *guard;
            if state.stopped {
                return false;
            }
            let held_bytes = state.held_bytes.saturating_add(bytes);
            let is_front = state.slots.front().is_some_and(|slot| slot.item == item);
            let fits = is_front || held_bytes <= self.plan.budget_bytes;
            if state.next_admitted == item && fits {
                state.next_admitted += 1;
                state.held_bytes = held_bytes;
                if let Some(slot) = state.slots.iter_mut().find(|slot| slot.item == item) {
                    slot.bytes = bytes;
                }
                // The next item may be due.
                self.room.notify_all();
                return true;
            }
            guard = self.room.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Files a result; `None` for a panic.
    fn deliver(&self, item: u64, result: Option<(T, u64)>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(position) = state.slots.iter().position(|slot| slot.item == item) else { return };
        let Some(slot) = state.slots.get_mut(position) else { return };
        let bytes = result.as_ref().map_or(0, |(_, bytes)| *bytes);
        state.held_bytes = state.held_bytes.saturating_sub(slot.bytes).saturating_add(bytes);
        slot.bytes = bytes;
        slot.result = result.map_or(Progress::Panicked, |(result, _)| Progress::Done(result));
        if position == 0 {
            self.front_ready.notify_one();
        }
        // The result may hold less than was feared.
        self.room.notify_all();
    }

    /// Waits for the oldest item's result; `None` when its worker panicked. The item keeps its
    /// place and its bytes until it is released.
    fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(slot) = state.slots.front_mut() {
                match std::mem::replace(&mut slot.result, Progress::Taken) {
                    Progress::Done(result) => return Some(result),
                    Progress::Panicked | Progress::Taken => return None,
                    Progress::Working => slot.result = Progress::Working,
                }
            }
            state = self.front_ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn release(&self) {
        let mut state = self.lock();
        if let Some(slot) = state.slots.pop_front() {
            state.held_bytes = state.held_bytes.saturating_sub(slot.bytes);
        }
        self.room.notify_all();
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.room.notify_all();
    }
}

struct StopOnDrop<'a, T>(&'a Line<T>);

impl<T> Drop for StopOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug, PartialEq, Eq)]
    enum Stop {
        At(u64),
        Panic(u64),
        NotStarted(usize),
    }

    impl From<Panicked> for Stop {
        fn from(Panicked(item): Panicked) -> Self {
            Self::Panic(item)
        }
    }

    impl From<NotStarted> for Stop {
        fn from(NotStarted { worker, .. }: NotStarted) -> Self {
            Self::NotStarted(worker)
        }
    }

    fn plan(item_count: u64, workers: usize, budget_bytes: u64) -> Plan {
        Plan { item_count, workers: NonZeroUsize::new(workers).unwrap(), budget_bytes }
    }

    /// Uneven work, so that later items finish before earlier ones.
    fn uneven(item: u64) -> u64 {
        (0..(item * 7919) % 4001).fold(item, |sum, step| std::hint::black_box(sum + step % 2));
        item * item
    }

    #[test]
    fn results_come_in_order_for_any_number_of_workers() {
        for (items, workers) in [(0, 2), (1, 3), (500, 1), (500, 2), (500, 7)] {
            let mut seen = Vec::new();
            let end: Result<(), Stop> = in_order(
                plan(items, workers, 1 << 20),
                |_| 1,
                || |item| (uneven(item), 1),
                |item, result| {
                    assert_eq!(result, item * item);
                    seen.push(item);
                    Ok(())
                },
            );
            assert_eq!(end, Ok(()));
            assert_eq!(seen, (0..items).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_in_flight_stays_within_the_budget() {
        // Item 40 alone costs more than the budget, and must still get through.
        let cost = |item: u64| if item == 40 { 500 } else { 10 + item % 30 };
        let held = AtomicU64::new(0);
        let peak = AtomicU64::new(0);
        let end: Result<(), Stop> = in_order(
            plan(200, 4, 100),
            cost,
            || {
                |item| {
                    let now = held.fetch_add(cost(item), Ordering::SeqCst) + cost(item);
                    if now > cost(40) {
                        peak.fetch_max(u64::MAX, Ordering::SeqCst);
                    } else if item != 40 {
                        peak.fetch_max(now, Ordering::SeqCst);
                    }
                    (uneven(item), cost(item))
                }
            },
            |item, _| {
                held.fetch_sub(cost(item), Ordering::SeqCst);
                Ok(())
            },
        );
        assert_eq!(end, Ok(()));
        assert!(peak.into_inner() <= 100);
    }

    #[test]
    fn an_error_of_the_consumer_stops_the_work() {
        let worked = AtomicU64::new(0);
        let end = in_order(
            plan(1_000_000, 3, 1 << 20),
            |_| 1,
            || |item| (worked.fetch_max(item, Ordering::SeqCst), 1),
            |item, _| if item == 10 { Err(Stop::At(item)) } else { Ok(()) },
        );
        assert_eq!(end, Err(Stop::At(10)));
        assert!(worked.into_inner() < 1000);
    }

    #[test]
    fn a_panic_is_an_error_that_names_the_item() {
        let end: Result<(), Stop> = in_order(
            plan(100, 3, 1 << 20),
            |_| 1,
            || |item| (assert_ne!(item, 60, "injected"), 1),
            |_, ()| Ok(()),
        );
        assert_eq!(end, Err(Stop::Panic(60)));
    }

    #[test]
    fn a_panic_of_the_estimate_or_of_a_new_worker_is_an_error_too() {
        let estimate: Result<(), Stop> = in_order(
            plan(100, 3, 1 << 20),
            |item| if item == 60 { panic!("injected") } else { 1 },
            || |_| ((), 1),
            |_, ()| Ok(()),
        );
        assert_eq!(estimate, Err(Stop::Panic(60)));
        let made = AtomicU64::new(0);
        let new_worker = || {
            assert!(made.fetch_add(1, Ordering::SeqCst) == 0, "injected");
            |_| ((), 1)
        };
        let plan = plan(1_000_000, 3, 1 << 20);
        let end: Result<(), Stop> = in_order(
            plan,
            |_| 1,
            new_worker,
            |_, ()| {
                thread::yield_now();
                Ok(())
            },
        );
        assert!(matches!(end, Err(Stop::Panic(_))), "{end:?}");
    }

    #[test]
    fn each_item_is_estimated_once_and_without_the_lock() {
        let asked = AtomicU64::new(0);
        let inside = AtomicU64::new(0);
        let overlapped = AtomicU64::new(0);
        let cost = |_| {
            asked.fetch_add(1, Ordering::SeqCst);
            if inside.fetch_add(1, Ordering::SeqCst) > 0 {
                overlapped.fetch_add(1, Ordering::SeqCst);
            }
            thread::sleep(std::time::Duration::from_micros(200));
            inside.fetch_sub(1, Ordering::SeqCst);
            // Two items fill the budget, so that others have to wait for room.
            50
        };
        let end: Result<(), Stop> =
            in_order(plan(300, 4, 100), cost, || |item| (uneven(item), 50), |_, _| Ok(()));
        assert_eq!(end, Ok(()));
        assert_eq!(asked.into_inner(), 300);
        assert!(overlapped.into_inner() > 0);
    }
}
