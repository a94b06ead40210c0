//! How many rows make a block.

use crate::values::Values;

/// ML.NET's most rows in a block.
const MAX_ROWS: usize = 1 << 13;

/// The limit below which ML.NET keeps the blocks of all columns together.
const MAX_BYTES: u64 = 80 << 20;

/// The state of rows while their number per block is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// There is room for more.
    More,
    /// With this many of them a block is full.
    Block {
        /// How many.
        added: usize,
    },
}

/// Looks at the rows that are `pending` and at `count` new ones.
pub(super) fn fitting(pending: &[&Values<'_>], rows: &[Values<'_>], count: usize) -> Fit {
    let pending_rows = pending.first().map_or(0, |values| values.len());
    let pending_bytes: u64 = pending.iter().map(|values| block_bytes(values)).sum();
    let fits = |added: usize| {
        let bytes: u64 = rows.iter().map(|values| block_bytes(&values.slice(0..added))).sum();
        pending_rows + added <= MAX_ROWS && pending_bytes + bytes <= MAX_BYTES
    };
    if fits(count) && pending_rows + count < MAX_ROWS {
        return Fit::More;
    }
    // The largest number that fits: `low` does, `high` does not.
    let mut low = 0;
    let mut high = count + 1;
    while high - low > 1 {
        let middle = low.midpoint(high);
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    // A row that is too large becomes a separate block.
    Fit::Block { added: low.max(usize::from(pending_rows == 0)) }
}

/// About the size of a block, as far as it grows with the rows.
fn block_bytes(values: &Values<'_>) -> u64 {
    let count = values.len() as u64;
    match values {
        Values::SByte(_) | Values::Byte(_) => count,
        Values::Int16(_) | Values::UInt16(_) => 2 * count,
        Values::Int32(_) | Values::UInt32(_) | Values::Single(_) => 4 * count,
        Values::Int64(_) | Values::UInt64(_) | Values::Double(_) => 8 * count,
        Values::Boolean(_) => count.div_ceil(8),
        Values::OffsetTime { .. } => 10 * count,
        Values::RowId(_) => 16 * count,
        Values::Text(text) => {
            let offsets = text.offsets();
            let bounds = offsets.first().zip(offsets.last());
            4 * count + bounds.map_or(0, |(start, end)| u64::from(end - start))
        }
        Values::Vector(vectors) => {
            4 * (count + vectors.index_count()) + block_bytes(&vectors.items())
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::values::Vectors;

    fn check(pending: usize, count: usize, row_items: u32, expected: Fit) {
        let vectors = |rows: usize| {
            let items = vec![0; rows * row_items as usize];
            Values::Vector(Vectors::dense(row_items, rows, Values::Byte(items.into())))
        };
        assert_eq!(fitting(&[&vectors(pending)], &[vectors(count)], count), expected);
    }

    #[test]
    fn a_block_has_8192_rows_or_80_mebibytes() {
        check(0, 8191, 1, Fit::More);
        check(0, 8192, 1, Fit::Block { added: 8192 });
        check(8000, 1000, 1, Fit::Block { added: 192 });
        // A row is 1 MiB here, with its count of 4 bytes.
        let row = (1 << 20) - 4;
        check(0, 80, row, Fit::More);
        check(0, 81, row, Fit::Block { added: 80 });
        check(79, 3, row, Fit::Block { added: 1 });
        check(80, 1, row, Fit::Block { added: 0 });
        // One row alone is too large.
        check(0, 2, 81 << 20, Fit::Block { added: 1 });
    }
}
