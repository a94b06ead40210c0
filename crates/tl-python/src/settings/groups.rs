//! Groups of settings.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use tbl_io::RetryPolicy;
use tl_pipeline::{DeviceDecode, DeviceOptions, ErrorBudget, OnError};

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
