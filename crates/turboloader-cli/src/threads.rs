//! Threads of commands that divide their own work.

use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::failure::Failure;

/// Starts worker `worker` of `workers`.
///
/// # Errors
/// If the system gives no more threads, which [`Scope::spawn`] answers with a panic.
pub(crate) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    worker: usize,
    workers: usize,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Failure> {
    let started = Builder::new().spawn_scoped(scope, work);
    started.map_err(|error| {
        let sentence = format_args!("worker {worker} of {workers} cannot be started: {error}");
        Failure::system(sentence)
    })
}
