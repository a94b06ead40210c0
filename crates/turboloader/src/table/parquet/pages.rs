//! The counts of pages, which are checked before the decoder allocates memory for them.

use std::sync::Arc;

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;

use super::checked::Checked;
use super::delta;
use crate::panics::CaughtPanic;

/// The most values of a page, nulls included. Decoders allocate up to 4 bytes for each, for levels
/// and lengths, and a few bytes of the file can state any number. Writers aim at 20,000.
const PAGE_VALUES: u64 = 1 << 25;

/// A defect in the pages of a column of a row group.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// The page cannot be read.
    #[error(transparent)]
    Read(#[from] ParquetError),
    #[error("damaged, the Parquet decoder panicked: {0}")]
    Panic(#[from] CaughtPanic),
    #[error("{values} values in a page, expected at most {PAGE_VALUES}")]
    Values { values: u64 },
    #[error("{bytes} bytes of levels, expected at most the page's {expected} bytes")]
    Levels { bytes: u64, expected: usize },
    #[error("the page's header of {0} is damaged")]
    DeltaHeader(Encoding),
    #[error("{count} values of {encoding} in a page, expected at most {expected}")]
    DeltaCount { count: u64, encoding: Encoding, expected: u64 },
    #[error("dictionary of {values} values in {bytes} bytes, expected at least {expected} bytes")]
    Dictionary { values: u64, bytes: u64, expected: u64 },
    #[error("{rows} rows in the pages, expected {expected} as in the metadata")]
    Rows { rows: u64, expected: u64 },
}

/// Checks all pages of a column of `group`.
pub(super) fn check(
    file: &Arc<Checked>,
    group: &RowGroupMetaData,
    chunk: &ColumnChunkMetaData,
) -> Result<(), PageError> {
    let expected = u64::try_from(group.num_rows()).unwrap_or(0);
    let rows = usize::try_from(expected).unwrap_or(usize::MAX);
    let mut pages = SerializedPageReader::new(Arc::clone(file), chunk, rows, None)?;
    let column = chunk.column_descr();
    let mut rows = 0u64;
    while let Some(page) = pages.get_next_page()? {
        if page.is_dictionary_page() {
            check_dictionary(column, &page)?;
        } else {
            let values = page.num_values().into();
            if values > PAGE_VALUES {
                return Err(PageError::Values { values });
            }
            check_delta(column, &page)?;
            rows = rows.saturating_add(values);
        }
    }
    // Rows of lists have any number of values.
    if column.max_rep_level() == 0 && rows != expected {
        return Err(PageError::Rows { rows, expected });
    }
    Ok(())
}

/// Checks that a dictionary has bytes for its values.
fn check_dictionary(column: &ColumnDescriptor, page: &Page) -> Result<(), PageError> {
    let bits = match column.physical_type() {
        Type::BOOLEAN => 1,
        Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 32,
        Type::INT64 | Type::DOUBLE => 64,
        Type::INT96 => 96,
        Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(column.type_length()).unwrap_or(0) * 8,
    };
    let values = u64::from(page.num_values());
    let bytes = page.buffer().len() as u64;
    let expected = values.saturating_mul(bits.max(1)).div_ceil(8);
    if bytes < expected {
        return Err(PageError::Dictionary { values, bytes, expected });
    }
    Ok(())
}

/// Checks the counts of a page in one of the encodings `DELTA_*`.
fn check_delta(column: &ColumnDescriptor, page: &Page) -> Result<(), PageError> {
    let encoding = page.encoding();
    if !matches!(
        encoding,
        Encoding::DELTA_BINARY_PACKED
            | Encoding::DELTA_LENGTH_BYTE_ARRAY
            | Encoding::DELTA_BYTE_ARRAY
    ) {
        return Ok(());
    }
    let data = values(column, page)?;
    // A page of nulls may have no header.
    if data.is_empty() {
        return Ok(());
    }
    let expected = u64::from(page.num_values());
    let check = |data| match delta::count(data) {
        None => Err(PageError::DeltaHeader(encoding)),
        Some(count) if count > expected => Err(PageError::DeltaCount { count, encoding, expected }),
        Some(_) => Ok(()),
    };
    check(data)?;
    if encoding == Encoding::DELTA_BYTE_ARRAY {
        // The suffixes follow the prefixes.
        check(delta::after_numbers(data).ok_or(PageError::DeltaHeader(encoding))?)?;
    }
    Ok(())
}

/// The bytes of a data page after its levels.
fn values<'p>(column: &ColumnDescriptor, page: &'p Page) -> Result<&'p [u8], PageError> {
    let data: &[u8] = page.buffer();
    match page {
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            after(data, u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len))
        }
        Page::DataPage { def_level_encoding, rep_level_encoding, num_values, .. } => {
            let levels = [
                (column.max_rep_level(), *rep_level_encoding),
                (column.max_def_level(), *def_level_encoding),
            ];
            levels.into_iter().filter(|&(max, _)| max > 0).try_fold(
                data,
                |data, (max, encoding)| {
                    let bytes = match (encoding, data.first_chunk()) {
                        (Encoding::RLE, Some(length)) => u64::from(u32::from_le_bytes(*length)) + 4,
                        (Encoding::RLE, None) => 4,
                        // The obsolete BIT_PACKED has no length.
                        _ => {
                            let bits = u64::from(i16::BITS - max.leading_zeros());
                            (u64::from(*num_values) * bits).div_ceil(8)
                        }
                    };
                    after(data, bytes)
                },
            )
        }
        Page::DictionaryPage { .. } => Ok(&[]),
    }
}

fn after(data: &[u8], bytes: u64) -> Result<&[u8], PageError> {
    let rest = usize::try_from(bytes).ok().and_then(|bytes| data.get(bytes..));
    rest.ok_or(PageError::Levels { bytes, expected: data.len() })
}
