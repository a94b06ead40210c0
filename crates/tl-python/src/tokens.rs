//! Files of tokens, as Python opens them.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

use std::num::NonZeroU32;
use std::path::PathBuf;

use pyo3::prelude::*;
use tl_pipeline::Dataset;
use tl_tokens::{EpochOffset, TokenOptions, TokenType, Windows};

use crate::dataset::PyDataset;
use crate::detached::interruptible;
use crate::error::Error;
use crate::remote::{DataStores, StoreSettings};

/// The type of tokens in files and the windows that they are cut into.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TokenSettings {
    dtype: Option<String>,
    tensor: Option<String>,
    length: u32,
    targets: bool,
    stride: Option<u32>,
    offset: String,
}

impl TokenSettings {
    fn options(&self) -> Result<TokenOptions, Error> {
        let number = |name: &String| {
            TokenType::named(name).ok_or_else(|| {
                let known: Vec<&str> = TokenType::ALL.into_iter().map(TokenType::name).collect();
                let known = known.join(", ");
                Error::setting(&format!("dtype is {name:?}, expected one of integers: {known}"))
            })
        };
        let number = self.dtype.as_ref().map(number).transpose()?;
        Ok(TokenOptions { number, tensor: self.tensor.clone() })
    }

    fn windows(&self) -> Result<Windows, Error> {
        let positive = |name: &str, value: u32| {
            let none = || Error::setting(&format!("{name} is 0, expected at least 1"));
            NonZeroU32::new(value).ok_or_else(none)
        };
        let offset = match self.offset.as_str() {
            "none" => EpochOffset::None,
            "random" => EpochOffset::Random,
            other => {
                let text = format!("offset is {other:?}, expected \"none\" or \"random\"");
                return Err(Error::setting(&text));
            }
        };
        let stride = self.stride.map(|stride| positive("stride", stride)).transpose()?;
        let length = positive("length", self.length)?;
        Ok(Windows { targets: self.targets, stride, offset, ..Windows::new(length) })
    }
}

/// Opens files of tokens, whose windows are the samples.
#[pyfunction]
#[pyo3(signature = (
    paths: "list[str]", settings: "dict[str, Any]", stores: "Store | None" = None
))]
pub(crate) fn tokens(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    settings: TokenSettings,
    stores: Option<StoreSettings>,
) -> PyResult<PyDataset> {
    let stores = DataStores::new(&stores.unwrap_or_default())?;
    let options = settings.options()?;
    let windows = settings.windows()?;
    let open = || Dataset::open_tokens(&stores.stores(), &paths, &options, windows);
    let dataset = interruptible(py, open)?.map_err(Error::from)?;
    Ok(PyDataset::new(dataset.into(), stores))
}
