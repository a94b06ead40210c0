//! Threads, locks and atomics: the only module that names `std::sync` and `std::thread`.
//!
//! Under `--cfg shuttle` they are shuttle's, whose scheduler explores interleavings.

use std::time::Duration;

#[cfg(not(shuttle))]
pub(crate) use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

#[cfg(shuttle)]
pub(crate) use shuttle::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};
#[cfg(shuttle)]
pub(crate) use std::sync::PoisonError;

/// Locks, whether or not a thread panicked while it held the lock: every critical section of this
/// crate leaves its data whole at each step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until notified; like every condition variable, sometimes for no reason.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until notified, or for about that long.
pub(crate) fn wait_timeout<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner).0
}

/// The number of this process.
pub(crate) fn process_id() -> u32 {
    std::process::id()
}

/// Logical cores this process may run on.
pub(crate) fn available_parallelism() -> usize {
    use std::thread::available_parallelism as cores;
    cores().map_or(1, usize::from)
}
