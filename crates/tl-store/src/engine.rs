//! The thread that requests run on, for callers that block.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use tbl_io::{RangeFault, is_interrupted};
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

/// The time between two looks at whether a thread's work is over.
pub(crate) const INTERVAL: Duration = Duration::from_millis(20);

/// Runs futures on threads of its own, `tl-net`. Dropping it ends them without waiting for servers.
pub(crate) struct Engine {
    /// Nothing once it is dropped.
    runtime: Option<Runtime>,
    /// The process that has the threads. A fork of it has their memory alone.
    process: u32,
}

/// A future that runs until it ends, or this is dropped.
#[derive(Debug)]
pub(crate) struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Engine {
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tl-net")
            .enable_all()
            .build()?;
        Ok(Self { runtime: Some(runtime), process: std::process::id() })
    }

    /// As a fork of this process sees it.
    #[cfg(test)]
    pub(crate) fn of_another_process(mut self) -> Self {
        self.process = 0;
        self
    }

    /// Whether this process has the threads, and not one that it was forked from.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// Starts a future.
    pub(crate) fn spawn(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Task, RangeFault> {
        match &self.runtime {
            Some(runtime) if self.is_of_this_process() => {
                Ok(Task(runtime.spawn(future).abort_handle()))
            }
            _ => Err(RangeFault::Forked),
        }
    }

    /// Waits for a future.
    pub(crate) fn block_on<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RangeFault> {
        let (_task, result) = self.run(future)?;
        received(&result)
    }

    fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<(Task, mpsc::Receiver<T>), RangeFault> {
        let (sender, result) = mpsc::sync_channel(1);
        // Nobody waits for the result of a caller that is gone.
        let task = self.spawn(async move { drop(sender.send(future.await)) })?;
        Ok((task, result))
    }

    /// Waits for a future whose result must be known, whether the thread's work is over or not. The
    /// future ends by itself.
    pub(crate) fn finish<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RangeFault> {
        let (_task, result) = self.run(future)?;
        // Futures that end without a word were stopped with their thread.
        result.recv().map_err(|_| stopped())
    }

    /// Waits for a future, for this long at most, whether the thread's work is over or not. `None` if that
    /// is too short.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
        at_most: Duration,
    ) -> Option<T> {
        let (_task, done) = self.run(future).ok()?;
        done.recv_timeout(at_most).ok()
    }

    /// As [`block_on`](Self::block_on), but waits a while for the end of a future when the thread's work
    /// is over.
    pub(crate) fn block_on_and_for<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
        then: Duration,
    ) -> Result<T, RangeFault> {
        let (_task, result) = self.run(future)?;
        match received(&result) {
            Err(RangeFault::Interrupted) => {
                result.recv_timeout(then).map_err(|_| RangeFault::Interrupted)
            }
            received => received,
        }
    }
}

/// The next value that a future sends. Ends early where the thread's work is over.
pub(crate) fn received<T>(values: &mpsc::Receiver<T>) -> Result<T, RangeFault> {
    loop {
        match values.recv_timeout(INTERVAL) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Timeout) if is_interrupted() => {
                return Err(RangeFault::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Futures that end without a word were stopped with their thread.
            Err(RecvTimeoutError::Disconnected) => return Err(stopped()),
        }
    }
}

/// The fault of a request that ended with its thread.
pub(crate) fn stopped() -> RangeFault {
    let source = io::Error::new(io::ErrorKind::Interrupted, "the request was stopped");
    RangeFault::NoAnswer { tries: 1, elapsed: Duration::ZERO, source }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if self.is_of_this_process() {
            runtime.shutdown_background();
        } else {
            // Its threads are in the parent: there is nothing to join.
            std::mem::forget(runtime);
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("process", &self.process).finish_non_exhaustive()
    }
}
