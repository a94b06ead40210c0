//! Work without the interpreter.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::{Class, Error};

/// The time of a wait before it asks the interpreter whether a signal has arrived.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// Calls `work` while other threads of Python run, and returns its result.
///
/// # Errors
/// `InternalError` if it panics. The default of `PyO3` is `PanicException`, which is not an
/// `Exception`, so that Python code does not catch it. Standard error names the place of the panic.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Error> {
    py.detach(|| caught(work))
}

/// As [`detached`], for work on this thread that may wait for stores: a wait ends when the handler of a
/// signal raises an exception, as Ctrl-C does.
///
/// # Errors
/// Those of [`detached`], and that exception.
pub(crate) fn attentive<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let raised = Arc::new(Mutex::new(None));
    let take = || raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    let raised_in_wait = Arc::clone(&raised);
    let is_over = move || {
        let Err(error) = Python::attach(|py| py.check_signals()) else { return false };
        *raised_in_wait.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        true
    };
    let done = detached(py, || tbl_io::interruptible(is_over, work))?;
    take().map_or(Ok(done), Err)
}

/// As [`detached`], for work that may read stores for long. The work has a thread of its own, and
/// its reads end when the handler of a signal raises an exception, as Ctrl-C does.
///
/// # Errors
/// Those of [`detached`], and that exception.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let is_over = Arc::new(AtomicBool::new(false));
    let result = Mutex::new(None);
    let take = || result.lock().unwrap_or_else(PoisonError::into_inner).take();
    let caller = thread::current();
    thread::scope(|scope| {
        let is_over_of_work = Arc::clone(&is_over);
        let work = || {
            let is_over = move || is_over_of_work.load(Ordering::Relaxed);
            let done = caught(|| tbl_io::interruptible(is_over, work));
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            caller.unpark();
        };
        let started = thread::Builder::new().name("tl-open".to_owned()).spawn_scoped(scope, work);
        started.map_err(|error| {
            Error::new(Class::OutOfMemory, &format_args!("no thread could be started: {error}"))
        })?;
        loop {
            if let Some(done) = take() {
                return Ok(done?);
            }
            py.detach(|| thread::park_timeout(PATIENCE));
            if let Err(raised) = py.check_signals() {
                is_over.store(true, Ordering::Relaxed);
                py.detach(|| {
                    while take().is_none() {
                        thread::park_timeout(PATIENCE);
                    }
                });
                return Err(raised);
            }
        }
    })
}

/// Calls `work`; a panic is an error.
///
/// # Errors
/// `InternalError` if it panics.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Error::panic(message(&*payload)))
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
