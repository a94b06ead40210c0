//! Work without the interpreter.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;

use crate::error::Error;

/// Calls `work` while other threads of Python run, and returns its result.
///
/// # Errors
/// `InternalError` if it panics: what PyO3 raises for a panic is no `Exception`, so that Python
/// code would not catch it. The message on standard error tells where it was.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Error> {
    py.detach(|| caught(work))
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
