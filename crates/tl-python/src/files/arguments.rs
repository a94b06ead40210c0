//! The arguments of readers and writers of files, checked and in their own types.

use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping, PyMemoryView, PyString};
use tbl_io::{Compression, CompressionError, Field};

use crate::error::Error;
use crate::names::name_bytes;

/// The samples of one of several workers: parts that follow each other, with as many samples each
/// as the others, or one more.
pub(super) fn part(worker: u32, workers: u32, samples: u64) -> Result<Range<u64>, Error> {
    if worker >= workers {
        return Err(Error::setting(&format_args!(
            "worker_id is {worker}, expected less than num_workers ({workers})"
        )));
    }
    let start = |worker: u32| {
        let start = u128::from(samples) * u128::from(worker) / u128::from(workers);
        u64::try_from(start).unwrap_or(samples)
    };
    Ok(start(worker)..start(worker + 1))
}

/// The compression that arguments ask for.
pub(crate) fn compression_of(text: Option<&str>, lz4: bool) -> Result<Compression, Error> {
    let conflicting = "conflicting settings: compression and lz4; pass only one";
    let parsed: Result<Option<Compression>, CompressionError> = text.map(str::parse).transpose();
    match parsed {
        Ok(None) if lz4 => Ok(Compression::Lz4),
        Ok(Some(_)) if lz4 => Err(Error::setting(&conflicting)),
        Ok(compression) => Ok(compression.unwrap_or(Compression::None)),
        Err(error) => Err(Error::setting(&error)),
    }
}

/// The fields of a sample, in the order of the mapping.
pub(super) fn fields_of(fields: &Bound<'_, PyMapping>) -> PyResult<Vec<Field>> {
    let items = fields.items()?;
    let field = |item: Bound<'_, PyAny>| {
        let (name, data): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let bytes = text_or_bytes(&data)?.as_bytes().to_vec();
        Ok(Field { extension: name_bytes(&name)?, bytes })
    };
    items.iter().map(field).collect()
}

/// Text as UTF-8, or the bytes of an object that has some.
pub(super) fn text_or_bytes<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    match data.cast::<PyString>() {
        Ok(text) => Ok(PyBytes::new(data.py(), text.to_str()?.as_bytes())),
        Err(_) => bytes_of(data),
    }
}

/// The bytes of an object that has some, copied where they might change.
pub(super) fn bytes_of<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    Ok(match data.cast::<PyBytes>() {
        Ok(data) => data.clone(),
        Err(_) => PyMemoryView::from(data)?.call_method0("tobytes")?.cast_into()?,
    })
}
