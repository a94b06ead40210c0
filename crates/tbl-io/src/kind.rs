//! The kind of an error and its place, which callers act on.

use crate::location::Location;

/// The party at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Damaged data, or data that readers refuse.
    Data,
    /// A setting or an argument of the caller.
    Setting,
    /// A sample, row or column that does not exist.
    NotFound,
    /// The operating system, a store, or a file that cannot be used.
    System,
    /// A limit of memory or time.
    Limit,
    /// A defect of this library, or a panic of code that it calls.
    Internal,
}

/// The place that an error is about, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPlace {
    /// The file, folder or object.
    pub location: Option<Location>,
    /// The sample's number.
    pub sample: Option<u64>,
    /// The sample's name.
    pub key: Option<Vec<u8>>,
    /// The offset in bytes.
    pub offset: Option<u64>,
}

impl ErrorPlace {
    /// A whole file, folder or object.
    pub fn at(location: impl Into<Location>) -> Self {
        Self { location: Some(location.into()), ..Self::default() }
    }
}
