//! The command lines, for `python -m turboloader` and the scripts `tl` and `tar_to_tbl`.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the `tl` command with these arguments, the program's name first, and returns its exit code.
/// Help and version end the process.
#[pyfunction]
#[pyo3(signature = (arguments: "list[str]"))]
pub(crate) fn tl(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| turboloader_cli::tl_with(arguments))
}

/// Runs the `tar_to_tbl` command: as `tl`.
#[pyfunction]
#[pyo3(signature = (arguments: "list[str]"))]
pub(crate) fn tar_to_tbl(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| turboloader_cli::tar_to_tbl_with(arguments))
}
