//! Stands for tables in a build without them: their names in Python, and the reason for their
//! absence.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::Error;

/// The error of opening a file of this kind.
pub(crate) fn error(kind: &str) -> Error {
    Error::setting(&format_args!("{kind} needs the feature `tables`, which this build lacks"))
}

/// Functions that raise this error under the names that tables have in Python.
macro_rules! absent {
    ($($function:ident: $name:literal,)+) => {
        $(#[pyfunction(name = $name)]
        #[pyo3(signature = (*_arguments, **_options))]
        pub(crate) fn $function(
            _arguments: &Bound<'_, PyTuple>,
            _options: Option<&Bound<'_, PyDict>>,
        ) -> Result<(), Error> {
            Err(error($name))
        })+
    };
}

absent! {
    idv_file: "IdvFile",
    tbf_segment: "TbfSegment",
    tbf_writer: "TbfWriter",
    find_tbf: "find_tbf",
    convert_table: "convert_table",
}
