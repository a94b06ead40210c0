//! Work without the interpreter.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;

use crate::error::Error;

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
