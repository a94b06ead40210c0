//! The command line, for `python -m turboloader` and the script `tl`.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the `tl` command with these arguments, the program's name first, and returns its exit code.
/// Help and version end the process.
#[pyfunction]
#[pyo3(signature = (arguments: "list[str]"))]
pub(crate) fn tl(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| turboloader_cli::tl_with(arguments))
}
