//! Fields that batches have as lists of values: files of samples, and columns of bytes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use serde_json::Value;
use tl_pipeline::LoaderConfig;

use crate::settings::Settings;

/// A field of bytes, as Python gets it.
#[derive(Debug)]
pub(super) struct StoredField {
    pub(super) name: String,
    pub(super) kind: StoredKind,
}

#[derive(Debug)]
pub(super) enum StoredKind {
    Bytes,
    Text,
    /// The value at this pointer.
    Json(String),
}

impl StoredField {
    /// The fields of bytes: columns by their own names, then those that were given one.
    pub(super) fn all(config: &LoaderConfig, settings: &Settings<'_>) -> Vec<Self> {
        let named = &settings.stored;
        let plain = config.fields.columns.len() - named.len().min(config.fields.columns.len());
        let plain = config.fields.columns[..plain].iter();
        let plain = plain.map(|name| Self { name: name.clone(), kind: StoredKind::Bytes });
        let named = named.iter().map(|(name, _, kind, place)| {
            let kind = match kind.as_str() {
                "text" => StoredKind::Text,
                "json" => StoredKind::Json(place.clone()),
                _ => StoredKind::Bytes,
            };
            Self { name: name.clone(), kind }
        });
        plain.chain(named).collect()
    }
}

impl StoredKind {
    /// The value of a field in these bytes; none for JSON without it.
    pub(super) fn value(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<Option<Py<PyAny>>> {
        match self {
            Self::Bytes => Ok(Some(PyBytes::new(py, bytes).into_any().unbind())),
            Self::Text => {
                let text = PyString::from_bytes(py, bytes)?;
                Ok(Some(text.into_any().unbind()))
            }
            Self::Json(pointer) => {
                let value = match serde_json::from_slice::<Value>(bytes) {
                    Ok(document) => document.pointer(pointer).cloned(),
                    Err(error) => return Err(PyValueError::new_err(error.to_string())),
                };
                let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
                let value = py.import("json")?.call_method1("loads", (value.to_string(),))?;
                Ok(Some(value.unbind()))
            }
        }
    }
}
