//! Threads, locks and atomics: the only module that names `std::sync` and `std::thread`.
//!
//! With the feature `shuttle` they are shuttle's, whose scheduler explores interleavings. With the
//! feature `loom` locks and atomics are loom's, which also explores the values that each load may
//! return under its memory ordering; only the model tests run then.

use std::sync::TryLockError;
use std::time::Duration;

#[cfg(not(any(feature = "shuttle", feature = "loom")))]
pub use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

#[cfg(feature = "shuttle")]
pub use shuttle::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};
#[cfg(feature = "shuttle")]
pub use std::sync::PoisonError;

#[cfg(feature = "loom")]
pub use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};
// Loom's `Arc` has no weak references; what is modelled needs none.
#[cfg(feature = "loom")]
pub use std::sync::{Arc, PoisonError, Weak};
#[cfg(feature = "loom")]
pub mod thread {
    //! Threads of loom.

    pub use loom::thread::{Builder, JoinHandle, current, spawn};
    // Not modelled.
    pub use std::thread::{panicking, sleep};
}

/// Locks, whether or not a thread panicked while it held the lock: use it only for data that every
/// critical section leaves whole at each step.
#[inline]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks if nobody has the lock, as [`lock`] whether or not a thread panicked.
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Sleeps until notified; like every condition variable, sometimes for no reason.
#[inline]
pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until notified, or for about that long.
pub fn wait_timeout<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner).0
}

/// The number of this process.
pub fn process_id() -> u32 {
    std::process::id()
}

/// Logical cores this process may run on.
pub fn available_parallelism() -> usize {
    use std::thread::available_parallelism as cores;
    cores().map_or(1, usize::from)
}

/// Calls `work` on up to `threads` threads at once, of which one is this thread, and returns the
/// results. If a thread cannot be started, fewer do the work.
#[cfg(not(any(feature = "shuttle", feature = "loom")))]
pub fn on_threads<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, &work).ok();
        let started: Vec<_> = (1..threads).map_while(start).collect();
        let own = work();
        let join = |thread: thread::ScopedJoinHandle<'_, T>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        started.into_iter().map(join).chain([own]).collect()
    })
}

/// Calls `work` on this thread: the models have no scoped threads.
#[cfg(any(feature = "shuttle", feature = "loom"))]
pub fn on_threads<T: Send>(_threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    vec![work()]
}

/// Runs `scenario` under 20 000 random schedules of its threads, and as many that shift priorities
/// at three points (PCT). The variable `TURBOLOADER_SCHEDULES` sets another number.
///
/// # Panics
/// If the scenario does under one of them, or the variable is not a number.
#[cfg(feature = "shuttle")]
pub fn explore(scenario: impl Fn() + Clone + Send + Sync + 'static) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};
    use shuttle::{Config, Runner};

    let schedules = std::env::var("TURBOLOADER_SCHEDULES");
    let schedules = schedules.map_or(20_000, |text| text.parse().expect("a number of schedules"));
    let mut config = Config::new();
    // The default of 32 KiB is too small: without optimisation, the frames that build a worker's
    // scratch memory (35 KB) hold several copies of it.
    config.stack_size = 1 << 20;
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(scenario.clone());
    Runner::new(PctScheduler::new(3, schedules), config).run(scenario);
}
