//! Warnings of Python.

use pyo3::prelude::*;

/// Raises a `UserWarning`, which names the line of the code that called the package.
///
/// # Errors
/// The warning itself if a filter makes it an exception.
pub(crate) fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    py.import("turboloader._warnings")?.call_method1("warn", (text,)).map(drop)
}
