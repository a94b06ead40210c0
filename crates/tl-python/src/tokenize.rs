//! Texts into files of tokens.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::thread::available_parallelism;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tbl_io::{Location, Placement, Source};
use tl_tokens::{OnBadText, TextOptions, TokenTarget, Tokenize, TokenizeEvent, Tokenizer};

use crate::convert::{Heard, warn_each};
use crate::detached::detached;
use crate::error::Error;
use crate::remote::{DataStores, StoreSettings};

/// Messages of texts that are left out; the others are counted.
const MAX_LISTED: usize = 10;

/// The texts and their tokenizer, as Python describes them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TextSettings {
    tokenizer: PathBuf,
    field: String,
    end_token: Option<String>,
    special_tokens: bool,
    document_bytes: u64,
}

impl TextSettings {
    pub(crate) fn tokenizer(&self) -> Result<Tokenizer, Error> {
        Ok(Tokenizer::open(&Source::open(&self.tokenizer)?)?)
    }

    pub(crate) fn options(&self, tokenizer: &Tokenizer) -> Result<TextOptions, Error> {
        Ok(TextOptions {
            field: self.field.clone(),
            special_tokens: self.special_tokens,
            end_token: self.end_token.as_ref().map(|name| tokenizer.token(name)).transpose()?,
            document_bytes: self.document_bytes,
        })
    }
}

/// The work, as Python describes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TokenizeSettings {
    text: TextSettings,
    to: String,
    skip: bool,
    num_workers: usize,
    overwrite: bool,
    sync: bool,
}

impl TokenizeSettings {
    fn job<'t>(&self, tokenizer: &'t Tokenizer) -> Result<Tokenize<'t>, Error> {
        let to = match self.to.as_str() {
            "megatron" => TokenTarget::Megatron,
            "raw" => TokenTarget::Raw,
            other => {
                let message = format!("to is {other}, expected one of megatron, raw");
                return Err(Error::setting(&message));
            }
        };
        let workers = NonZeroUsize::new(self.num_workers).or_else(|| available_parallelism().ok());
        Ok(Tokenize {
            text: self.text.options(tokenizer)?,
            to,
            on_bad: if self.skip { OnBadText::Skip } else { OnBadText::Raise },
            workers: workers.unwrap_or(NonZeroUsize::MIN),
            placement: Placement { overwrite: self.overwrite, sync: self.sync },
            ..Tokenize::new(tokenizer)
        })
    }
}

/// Tokenizes texts into a file of tokens, and returns a dict of ``documents``, ``tokens``, ``dtype``
/// and ``skipped``.
#[pyfunction]
#[pyo3(signature = (
    sources: "list[str]", destination, settings: "dict[str, Any]", *,
    progress_callback: "Callable[[int, int], Any] | None" = None, stores: "Store | None" = None
) -> "dict[str, Any]")]
pub(crate) fn tokenize<'py>(
    py: Python<'py>,
    sources: Vec<PathBuf>,
    destination: PathBuf,
    settings: TokenizeSettings,
    progress_callback: Option<Py<PyAny>>,
    stores: Option<StoreSettings>,
) -> PyResult<Bound<'py, PyDict>> {
    let stores = DataStores::new(&stores.unwrap_or_default())?.stores();
    let inputs: Vec<Location> = sources.iter().map(Location::new).collect();
    let mut heard = Heard::new(progress_callback);
    let mut skipped = Vec::new();
    let summary = detached(py, || -> Result<_, Error> {
        let tokenizer = settings.text.tokenizer()?;
        let job = settings.job(&tokenizer)?;
        Ok(job.run(&stores, &inputs, &destination, &mut |event| match event {
            TokenizeEvent::Progress { bytes, of } => heard.tell(bytes, of),
            TokenizeEvent::Skipped(error) => {
                if skipped.len() < MAX_LISTED {
                    skipped.push(format!("left out: {error}"));
                }
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        })?)
    })?;
    let summary = heard.unless_raised(summary)?;
    if summary.left_out > 0 {
        let count = summary.left_out;
        skipped.push(format!("{count} files without a name of texts were not read"));
    }
    warn_each(py, &skipped)?;
    let result = PyDict::new(py);
    result.set_item("documents", summary.documents)?;
    result.set_item("tokens", summary.tokens)?;
    result.set_item("dtype", summary.number.name())?;
    result.set_item("skipped", summary.skipped)?;
    Ok(result)
}
