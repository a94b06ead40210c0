//! Names that need not be UTF-8.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// A name as Python has those of files.
pub(crate) fn text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "surrogateescape"))
}

/// The bytes of such a name, or of one that is given as bytes.
pub(crate) fn name_bytes(name: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if !name.is_instance_of::<PyString>() {
        return name.extract();
    }
    name.call_method1("encode", ("utf-8", "surrogateescape"))?.extract()
}
