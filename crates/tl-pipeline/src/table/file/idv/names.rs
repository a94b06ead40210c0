//! The names of the categories of keys.

use idv_format::{IdvFile, ReadAt, ReadError, Values};

use crate::error::TableError;

/// The most names: a sparse vector can claim 2^31 in twelve bytes.
const MOST_NAMES: u64 = 1 << 24;

/// The names of a column's keys, in their order: texts as they are, and numbers in digits.
pub(super) fn of_keys(
    file: &IdvFile<impl ReadAt>,
    column: usize,
) -> Result<Vec<String>, TableError> {
    let metadata = file.metadata(column)?;
    let Some(entry) = metadata.iter().find(|entry| entry.kind == "KeyValues") else {
        return Ok(Vec::new());
    };
    let Values::Vector(vectors) = file.metadata_value(entry)? else { return Ok(Vec::new()) };
    let slots = vectors.slots();
    if slots > MOST_NAMES {
        let what = "names of classes";
        let limit = MOST_NAMES;
        return Err(TableError::Limit { what, need: slots, limit });
    }
    let items = vectors.dense_items(MOST_NAMES).map_err(|source| {
        let column = entry.kind.clone();
        ReadError::Values { column, source }
    })?;
    Ok(texts(&items))
}

fn texts(values: &Values<'_>) -> Vec<String> {
    fn digits<N: ToString>(numbers: &[N]) -> Vec<String> {
        numbers.iter().map(N::to_string).collect()
    }
    match values {
        Values::Text(text) => {
            (0..text.len()).map(|place| text.get(place).unwrap_or_default().to_owned()).collect()
        }
        Values::SByte(numbers) => digits(numbers),
        Values::Byte(numbers) | Values::Boolean(numbers) => digits(numbers),
        Values::Int16(numbers) => digits(numbers),
        Values::UInt16(numbers) => digits(numbers),
        Values::Int32(numbers) => digits(numbers),
        Values::UInt32(numbers) => digits(numbers),
        Values::Int64(numbers) => digits(numbers),
        Values::UInt64(numbers) => digits(numbers),
        Values::Single(numbers) => digits(numbers),
        Values::Double(numbers) => digits(numbers),
        // No names that anybody would give.
        Values::OffsetTime { .. } | Values::RowId(_) | Values::Vector(_) => Vec::new(),
    }
}
