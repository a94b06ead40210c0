//! The defects of files with arrays.

use tbl_io::{ErrorKind, Location, NpyError};
use tl_handoff::sync::Arc;

use crate::error::TableError;
use crate::fault::Fault;

/// A defect of a file with arrays, or an array whose rows are not in sequence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArrayDefect {
    #[error("{0}")]
    Npy(NpyError),
    #[error("array `{name}`: {source}")]
    Member { name: String, source: NpyError },
    #[error("the array is in Fortran order, expected C order: save numpy.ascontiguousarray(array)")]
    Fortran,
    #[error("an array without dimensions has no rows")]
    Scalar,
    #[error("{what} ends at byte {need}, the file has {have} bytes")]
    Length { what: &'static str, need: u64, have: u64 },
    #[error("the array has {found} bytes, expected {expected} by its shape")]
    Size { found: u64, expected: u64 },
    #[error("the header of the safetensors file: {reason}")]
    Header { reason: String },
    #[error(
        "array `{name}` has {found} rows, array `{first}` has {rows}: expected the same number"
    )]
    Rows { name: String, found: u64, first: String, rows: u64 },
    #[error("no arrays")]
    NoArrays,
    #[error("the metadata of the Zarr array: {reason}")]
    Metadata { reason: String },
    #[error("chunk {chunk}: {reason}")]
    Chunk { chunk: Location, reason: String },
}

impl Fault for ArrayDefect {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Data
    }
}

impl From<ArrayDefect> for TableError {
    fn from(defect: ArrayDefect) -> Self {
        Self::File { source: Arc::new(defect), is_lasting: true }
    }
}

impl From<NpyError> for TableError {
    fn from(error: NpyError) -> Self {
        ArrayDefect::Npy(error).into()
    }
}
