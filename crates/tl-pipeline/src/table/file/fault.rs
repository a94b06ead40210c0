//! Kinds and places of the errors of the formats, whose crates know no other of this workspace.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the last arm has what most variants are, and will be"
)]

use tbf_format::{FormatError, Region};
use tbl_io::{ErrorKind, ErrorPlace, ReadError};
use tl_handoff::sync::Arc;

use crate::error::TableError;
use crate::fault::Fault;

impl Fault for idv_format::ReadError {
    /// A column that cannot be understood is the file's fault, as damage is.
    fn kind(&self) -> ErrorKind {
        match self {
            error if error.is_damage() => ErrorKind::Data,
            Self::Io { .. } => ErrorKind::System,
            Self::NoColumn { .. } | Self::NoBlock { .. } | Self::NoRows { .. } => {
                ErrorKind::NotFound
            }
            _ => ErrorKind::Data,
        }
    }

    fn place(&self) -> ErrorPlace {
        let offset = match self {
            Self::Io { offset, .. }
            | Self::Block { offset, .. }
            | Self::Metadata { offset, .. } => Some(*offset),
            _ => None,
        };
        ErrorPlace { offset, ..ErrorPlace::default() }
    }
}

impl Fault for idv_format::WriteError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { .. } | Self::Spawn { .. } => ErrorKind::System,
            _ => ErrorKind::Setting,
        }
    }

    fn place(&self) -> ErrorPlace {
        let offset = if let Self::Io { offset, .. } = self { Some(*offset) } else { None };
        ErrorPlace { offset, ..ErrorPlace::default() }
    }
}

impl Fault for FormatError {
    /// Asking for what is not there, or without a key, is not the segment's fault.
    fn kind(&self) -> ErrorKind {
        const NEEDED: [Region; 3] = [Region::Nodes, Region::Edges, Region::Footer];
        match self {
            Self::Absent { region } if NEEDED.contains(region) => ErrorKind::Data,
            Self::NoRow { .. } => ErrorKind::NotFound,
            Self::Absent { .. }
            | Self::Packed { .. }
            | Self::KeyNeeded { .. }
            | Self::Unsupported { .. } => ErrorKind::Setting,
            _ => ErrorKind::Data,
        }
    }
}

/// A damaged block of an IDV column; the caller adds the column's name.
#[derive(Debug, thiserror::Error)]
#[error("block {block} at {offset}: {source}")]
struct DamagedBlock {
    block: u64,
    offset: u64,
    source: idv_format::FormatError,
}

impl Fault for DamagedBlock {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Data
    }

    fn place(&self) -> ErrorPlace {
        ErrorPlace { offset: Some(self.offset), ..ErrorPlace::default() }
    }
}

impl From<idv_format::ReadError> for TableError {
    fn from(error: idv_format::ReadError) -> Self {
        let is_lasting = error.is_damage();
        let source: Arc<dyn Fault + Send + Sync> = match error {
            idv_format::ReadError::Block { block, offset, source, .. } => {
                return Self::File {
                    source: Arc::new(DamagedBlock { block, offset, source }),
                    is_lasting: true,
                };
            }
            idv_format::ReadError::Io { offset, bytes, source } => {
                // `IdvBytes` hands the errors of stores through.
                match source.downcast::<ReadError>() {
                    Ok(error) => return error.into(),
                    Err(source) => Arc::new(idv_format::ReadError::Io { offset, bytes, source }),
                }
            }
            error => Arc::new(error),
        };
        Self::File { source, is_lasting }
    }
}

impl From<FormatError> for TableError {
    fn from(error: FormatError) -> Self {
        Self::File { source: Arc::new(error), is_lasting: true }
    }
}
