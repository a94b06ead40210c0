//! The identity of a table in a saved state.

use sha2::{Digest, Sha256};

use crate::error::TableError;
use crate::table::layout::describe;
use crate::table::{ColumnType, ColumnValues, Content, Table};

/// Rows above this size are known by their shape: a sparse vector can be 2 GB long in twelve bytes.
const MOST_BYTES: usize = 1 << 24;

/// Feeds `hash` with a table: its rows, its columns, and the numbers in its first and last row.
///
/// How they are stored does not matter. What is damaged for good is known by that.
pub(crate) fn hash_table(table: &dyn Table, hash: &mut Sha256) -> Result<(), TableError> {
    let rows = table.row_count();
    hash.update(b"turboloader table 1\n");
    hash.update(rows.to_le_bytes());
    let mut stored = Vec::new();
    for (place, column) in table.columns().iter().enumerate() {
        let is_unreadable = matches!(column.content, Content::Unreadable { .. });
        // The reason differs between versions.
        let content = if is_unreadable { String::new() } else { describe(&column.content) };
        for text in [&column.name, &content] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        let Content::Numbers { number, shape, .. } = &column.content else { continue };
        let bytes = shape.iter().try_fold(number.bytes(), |bytes, &size| bytes.checked_mul(size));
        let Some(bytes) = bytes.filter(|&bytes| bytes <= MOST_BYTES) else { continue };
        stored.resize(bytes, 0);
        for row in [0, rows.saturating_sub(1)].into_iter().take(usize::from(rows > 0) * 2) {
            match write(table, place, row, &mut stored) {
                Ok(()) => {
                    little_endian(*number, &mut stored);
                    hash.update(&stored);
                }
                Err(error) if error.is_lasting() => hash.update(b"damaged"),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn write(table: &dyn Table, column: usize, row: u64, out: &mut [u8]) -> Result<(), TableError> {
    match table.values(column)? {
        ColumnValues::Whole(values) => values.write(row, out)?,
        ColumnValues::Blocks { rows, .. } => {
            let rows = rows.max(1);
            table.load(column, row / rows)?.write(row % rows, out)?;
        }
    }
    Ok(table.check()?)
}

/// The same on every machine.
fn little_endian(number: ColumnType, bytes: &mut [u8]) {
    super::number::from_little_endian(bytes, number.bytes());
}
