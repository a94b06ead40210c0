//! Errors of the formats of tables.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what else there is, or will be, belongs to the last class"
)]

use std::error::Error as StdError;

use tbl_io::Location;
use turboloader::TableConversionError;

use crate::error::{Class, Error};

/// The error of a file, if it is one of its format.
pub(crate) fn error_of(location: &Location, error: &(dyn StdError + 'static)) -> Option<Error> {
    let idv = error.downcast_ref().map(|error| Error::idv(location, error));
    idv.or_else(|| error.downcast_ref().map(|error| Error::tbf(location, error)))
}

impl From<TableConversionError> for Error {
    fn from(error: TableConversionError) -> Self {
        Self::of(&error, Class::Format, Class::Setting)
    }
}

impl Error {
    /// The error of reading an IDV file. A column of an unknown type is the fault of who asks for it.
    pub(crate) fn idv(location: &Location, error: &idv_format::ReadError) -> Self {
        let data = if error.is_damage() { Class::Format } else { Class::Setting };
        let mut found = Self::of(error, data, Class::Setting).in_file(location);
        if found.class == Class::SampleIndex {
            found.class = Class::Setting;
        }
        found
    }

    /// The error of converting columns of an IDV file into arrays.
    pub(crate) fn arrow(location: &Location, error: &idv_format::ArrowError) -> Self {
        match error {
            idv_format::ArrowError::Read(error) => Self::idv(location, error),
            _ => Self::new(Class::Format, error).in_file(location),
        }
    }

    /// The error of a TBF segment.
    pub(crate) fn tbf(location: &Location, error: &tbf_format::FormatError) -> Self {
        let class = match error {
            tbf_format::FormatError::NoRow { .. } => Class::SampleIndex,
            tbf_format::FormatError::Absent { .. } | tbf_format::FormatError::KeyNeeded { .. } => {
                Class::Setting
            }
            _ => Class::Format,
        };
        Self::new(class, error).in_file(location)
    }
}
