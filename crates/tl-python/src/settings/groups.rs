//! Groups of settings.

use std::path::PathBuf;

use pyo3::prelude::*;
use tl_pipeline::{DeviceDecode, DeviceOptions, ErrorBudget, OnError};

use super::none_of;
use crate::error::Error;

/// `Errors` of Python.
#[derive(FromPyObject)]
pub(super) struct ErrorSettings {
    policy: String,
    at_most: Option<AtMost>,
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
