//! Groups of settings.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use tbl_io::{PageCache, RetryPolicy};
use tl_pipeline::{DeviceDecode, DeviceOptions, ErrorBudget, OnError, Readers};

use super::none_of;
use crate::error::Error;

/// `Errors` of Python.
#[derive(FromPyObject)]
pub(super) struct ErrorSettings {
    policy: String,
    at_most: Option<AtMost>,
}

/// `Retry` of Python, which checks its numbers.
#[derive(FromPyObject)]
pub(super) struct RetrySettings {
    attempts: u32,
    delay: f64,
    deadline: f64,
}

impl RetrySettings {
    pub(super) fn policy(&self) -> Result<RetryPolicy, Error> {
        let seconds = |setting: &str, seconds: f64| {
            let refused = |_| Error::setting(&format!("Retry: {setting} is {seconds}"));
            Duration::try_from_secs_f64(seconds).map_err(refused)
        };
        let first_delay = seconds("delay", self.delay)?;
        let usual = RetryPolicy::default();
        Ok(RetryPolicy {
            attempts: self.attempts,
            first_delay,
            longest_delay: usual.longest_delay.max(first_delay),
            deadline: seconds("deadline", self.deadline)?,
        })
    }
}

#[derive(FromPyObject)]
enum AtMost {
    Count(u64),
    Share(f64),
}

/// `Device` of Python.
#[derive(FromPyObject)]
pub(super) struct DeviceSettings {
    ordinal: Option<u32>,
    required: bool,
    decode: String,
    memory: Option<u64>,
    row_indexes: Option<u64>,
    library: Option<PathBuf>,
    nvjpeg: Option<PathBuf>,
    packages: Option<PathBuf>,
}

/// `Readers` of Python.
#[derive(FromPyObject)]
pub(super) struct ReaderSettings {
    kind: ReaderKind,
    depth: Option<u32>,
    page_cache: Option<String>,
}

#[derive(FromPyObject)]
enum ReaderKind {
    /// Separate threads; 0 leaves the choice to the loader.
    Threads(usize),
    Named(String),
}

/// The reads in flight through `io_uring` where no number is given: the one that was faster than
/// hints in every measurement of cold files (docs/benchmarks.md).
const DEPTH: u32 = 32;

impl ReaderSettings {
    pub(super) fn readers(&self) -> Result<Readers, Error> {
        let name = match &self.kind {
            ReaderKind::Threads(0) => return Ok(Readers::default()),
            ReaderKind::Threads(threads) => return Ok(Readers::Threads(*threads)),
            ReaderKind::Named(name) => name.as_str(),
        };
        let page_cache = match self.page_cache.as_deref() {
            None | Some("used") => PageCache::Used,
            Some("bypassed") => PageCache::Bypassed,
            Some(other) => return Err(none_of("page_cache", other, "used and bypassed")),
        };
        match name {
            "workers" => Ok(Readers::Workers),
            "planned" => Ok(Readers::Planned),
            "uring" => Ok(Readers::Uring { depth: self.depth.unwrap_or(DEPTH), page_cache }),
            other => Err(none_of("readers", other, "workers, planned and uring")),
        }
    }
}

impl ErrorSettings {
    pub(super) fn on_error(&self) -> Result<OnError, Error> {
        Ok(match self.policy.as_str() {
            "raise" => OnError::Raise,
            "skip" => OnError::Skip,
            "replace" => OnError::Replace,
            "fill" => OnError::Fill,
            other => return Err(none_of("policy", other, "raise, skip, replace and fill")),
        })
    }

    pub(super) fn budget(&self) -> ErrorBudget {
        match self.at_most {
            None => ErrorBudget::default(),
            Some(AtMost::Count(count)) => ErrorBudget { count: Some(count), rate: None },
            Some(AtMost::Share(rate)) => ErrorBudget { count: None, rate: Some(rate) },
        }
    }
}

impl DeviceSettings {
    pub(super) fn options(&self) -> Result<DeviceOptions, Error> {
        let Self { ordinal, required, ref decode, memory, row_indexes, .. } = *self;
        let decode = match decode.as_str() {
            "auto" => DeviceDecode::Auto,
            "coefficients" => DeviceDecode::Coefficients,
            "row_index" => DeviceDecode::RowIndex,
            "never" => DeviceDecode::Never,
            other => {
                return Err(none_of("decode", other, "auto, coefficients, row_index and never"));
            }
        };
        let [library, nvjpeg, packages] =
            [&self.library, &self.nvjpeg, &self.packages].map(Option::clone);
        Ok(DeviceOptions {
            ordinal,
            required,
            decode,
            memory,
            row_indexes,
            library,
            nvjpeg,
            packages,
        })
    }
}
