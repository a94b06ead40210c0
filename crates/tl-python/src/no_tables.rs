//! Stands for tables in a build without them: their names in Python, and the reason for their
//! absence.

use pyo3::prelude::*;
use pyo3::types::PyCFunction;

use crate::error::Error;

/// The error of opening a file of this kind.
pub(crate) fn error(kind: &str) -> Error {
    Error::setting(&format_args!("{kind} needs the feature `tables`, which this build lacks"))
}

/// Adds the names that tables have in Python, as functions that raise this error.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for name in ["IdvFile", "TbfSegment", "convert_table"] {
        let refuse = PyCFunction::new_closure(module.py(), None, None, move |_, _| {
            Err::<(), PyErr>(error(name).into())
        });
        module.add(name, refuse?)?;
    }
    Ok(())
}
