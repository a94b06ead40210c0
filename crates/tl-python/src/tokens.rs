//! Files of tokens, as Python opens them.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tl_pipeline::Dataset;
use tl_tokens::{
    DocumentRows, EpochOffset, Fill, Long, PackedRows, Packing, Sequences, TokenOptions, TokenType,
    Windows,
};

use crate::dataset::PyDataset;
use crate::detached::interruptible;
use crate::error::Error;
use crate::remote::{DataStores, StoreSettings};

/// The type of tokens in files and the sequences that they are cut into.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TokenSettings {
    dtype: Option<String>,
    tensor: Option<String>,
    column: Option<String>,
    end_token: Option<i64>,
    order: Option<String>,
    length: u32,
    targets: bool,
    stride: Option<u32>,
    offset: String,
    documents: Option<String>,
    window: u32,
    long: String,
    pad: i64,
    ignore: i64,
    text: Option<Py<PyDict>>,
}

impl TokenSettings {
    fn options(&self, py: Python<'_>) -> PyResult<TokenOptions> {
        let number = |name: &String| {
            TokenType::named(name).ok_or_else(|| {
                let known: Vec<&str> = TokenType::ALL.into_iter().map(TokenType::name).collect();
                let known = known.join(", ");
                Error::setting(&format!("dtype is {name:?}, expected one of integers: {known}"))
            })
        };
        let number = self.dtype.as_ref().map(number).transpose()?;
        let mut options =
            TokenOptions { number, end_token: self.end_token, ..TokenOptions::default() };
        options.tensor.clone_from(&self.tensor);
        options.column.clone_from(&self.column);
        options.order = self.order.as_ref().map(OsString::from);
        if let Some(text) = &self.text {
            set_text(&mut options, text.bind(py))?;
        }
        Ok(options)
    }

    fn sequences(&self) -> Result<Sequences, Error> {
        let length = positive("length", self.length)?;
        let targets = self.targets;
        let long = match self.long.as_str() {
            "truncate" => Long::Truncate,
            "split" => Long::Split,
            "error" => Long::Error,
            other => return Err(none_of("long", other, "truncate, split and error")),
        };
        let fill = Fill { pad: self.pad, ignore: self.ignore };
        let strategy = match self.documents.as_deref() {
            None => return Ok(Sequences::Windows(self.windows(length)?)),
            Some("pad") => {
                return Ok(Sequences::Documents(DocumentRows { length, targets, long, fill }));
            }
            Some("best_fit") => Packing::BestFit,
            Some("first_fit") => Packing::FirstFit,
            Some("split") => Packing::Split,
            Some(other) => {
                return Err(none_of("documents", other, "pad, best_fit, first_fit and split"));
            }
        };
        let window = positive("window", self.window)?;
        Ok(Sequences::Packed(PackedRows { length, targets, window, strategy, long, fill }))
    }

    fn windows(&self, length: NonZeroU32) -> Result<Windows, Error> {
        let offset = match self.offset.as_str() {
            "none" => EpochOffset::None,
            "random" => EpochOffset::Random,
            other => return Err(none_of("offset", other, "none and random")),
        };
        let stride = self.stride.map(|stride| positive("stride", stride)).transpose()?;
        Ok(Windows { targets: self.targets, stride, offset, ..Windows::new(length) })
    }
}

/// Sets the tokenizer, for files of texts.
#[cfg(feature = "text")]
fn set_text(options: &mut TokenOptions, settings: &Bound<'_, PyDict>) -> PyResult<()> {
    let settings: crate::tokenize::TextSettings = settings.extract()?;
    let tokenizer = settings.tokenizer()?;
    let text = settings.options(&tokenizer)?;
    let tokenizer = std::sync::Arc::new(tokenizer);
    options.text = Some(tl_tokens::TextInput { tokenizer, options: text });
    Ok(())
}

#[cfg(not(feature = "text"))]
fn set_text(_: &mut TokenOptions, _: &Bound<'_, PyDict>) -> PyResult<()> {
    Err(Error::setting(&"tokenizer needs the feature `text`, which this build lacks").into())
}

fn positive(name: &str, value: u32) -> Result<NonZeroU32, Error> {
    let none = || Error::setting(&format!("{name} is 0, expected at least 1"));
    NonZeroU32::new(value).ok_or_else(none)
}

fn none_of(setting: &str, value: &str, expected: &str) -> Error {
    Error::setting(&format!("{setting} is {value}, expected one of {expected}"))
}

/// Opens files of tokens, whose sequences are the samples.
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
    let options = settings.options(py)?;
    let sequences = settings.sequences()?;
    let open = || Dataset::open_tokens(&stores.stores(), &paths, &options, sequences);
    let dataset = interruptible(py, open)?.map_err(Error::from)?;
    Ok(PyDataset::new(dataset.into(), stores))
}
