//! Fields that batches have as lists of values: files of samples, and columns of bytes.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
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
        let plain = config.fields.bytes.len() - named.len().min(config.fields.bytes.len());
        let plain = config.fields.bytes[..plain].iter();
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
                // Python's parser keeps whole numbers of any size, and the order of keys.
                let bytes = PyBytes::new(py, bytes);
                let mut value = py.import("json")?.call_method1("loads", (bytes,))?;
                for token in pointer.split('/').skip(1) {
                    match element(&value, token)? {
                        Some(element) => value = element,
                        None => return Ok(None),
                    }
                }
                Ok((!value.is_none()).then(|| value.unbind()))
            }
        }
    }
}

/// The element of a dict or a list that a token of a JSON pointer names.
fn element<'py>(value: &Bound<'py, PyAny>, token: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Ok(dict) = value.cast::<PyDict>() {
        return dict.get_item(token.replace("~1", "/").replace("~0", "~"));
    }
    let Ok(list) = value.cast::<PyList>() else { return Ok(None) };
    let is_number = token == "0" || !token.starts_with(['0', '+']);
    let place = token.parse().ok().filter(|&place| is_number && place < list.len());
    place.map(|place: usize| list.get_item(place)).transpose()
}
