//! The checks before anything is written.

use alloc::vec::Vec;

use crate::codec::{Codec, CodecDefinition};
use crate::cursor::Cursor;
use crate::error::FormatError;
use crate::toc::Compression;
use crate::values::Values;
use crate::write_error::WriteError;
use crate::writer::{Column, NewColumn};

/// A column that a reader would refuse, or that is not to be written.
pub(super) fn column(column: &NewColumn) -> Result<(), WriteError> {
    let name = || column.name.clone();
    let codec_error = |source| WriteError::Codec { column: name(), source };
    codec(&column.codec).map_err(codec_error)?;
    if column.compression == Compression::Zlib {
        let compression = column.compression;
        return Err(WriteError::Compression { column: name(), compression });
    }
    for (number, metadata) in column.metadata.iter().enumerate() {
        codec(&metadata.codec).map_err(codec_error)?;
        let before = column.metadata.get(..number).unwrap_or_default();
        let known = before.iter().any(|other| other.kind == metadata.kind);
        let values = metadata.value.len();
        if metadata.kind.is_empty() || known || values != 1 {
            let kind = metadata.kind.clone();
            return Err(WriteError::Metadata { column: name(), kind, values });
        }
    }
    Ok(())
}

/// Checks that a reader accepts a codec.
fn codec(codec: &Codec) -> Result<(), FormatError> {
    let mut bytes = Vec::new();
    CodecDefinition::new(codec.clone()).write(&mut bytes);
    CodecDefinition::parse(&mut Cursor::new(&bytes, 0)).map(|_| ())
}

/// How many rows there are.
pub(super) fn rows(columns: &[Column], rows: &[Values<'_>]) -> Result<usize, WriteError> {
    let expected = columns.len();
    let found = rows.len();
    if expected != found {
        return Err(WriteError::Columns { expected, found });
    }
    let expected = rows.first().map_or(0, Values::len);
    for (column, values) in columns.iter().zip(rows) {
        let found = values.len();
        if found != expected {
            let column = column.new.name.clone();
            return Err(WriteError::Rows { column, expected, found });
        }
    }
    Ok(expected)
}
