//! Stands for tokenizers in a build without them.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::Error;

/// Raises the reason why texts cannot be tokenized.
#[pyfunction]
#[pyo3(signature = (*_arguments, **_options))]
pub(crate) fn tokenize(
    _arguments: &Bound<'_, PyTuple>,
    _options: Option<&Bound<'_, PyDict>>,
) -> Result<(), Error> {
    Err(Error::setting(&"tokenize needs the feature `text`, which this build lacks"))
}
