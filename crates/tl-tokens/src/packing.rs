//! Packing: documents of one window into rows.

use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Rows of documents: a function of the lengths alone.
///
/// Rows are numbered in the order in which they are begun. A row's documents are in their order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Bins {
    /// The start of each row's documents in `items`, and the number of all.
    pub(crate) starts: Box<[u32]>,
    pub(crate) items: Box<[u32]>,
}

impl Bins {
    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The documents of row `row`.
    pub(crate) fn get(&self, row: usize) -> Option<&[u32]> {
        let [start, end] = *self.starts.get(row..)?.first_chunk()?;
        self.items.get(start as usize..end as usize)
    }

    /// The rows of items, each of which has a number and the row it is in; items stand in their
    /// order.
    fn collect(items: &[(u32, u32)], rows: usize) -> Self {
        let mut starts = vec![0u32; rows + 1];
        for &(_, row) in items {
            starts[row as usize + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut sorted = vec![0; items.len()];
        for &(item, row) in items {
            let place = &mut next[row as usize];
            sorted[*place as usize] = item;
            *place += 1;
        }
        Self { starts: starts.into(), items: sorted.into() }
    }
}

/// Each document of `lengths` into the first row of `capacity` tokens that has room for it. No length
/// is 0 or more than the capacity.
pub(crate) fn first_fit(lengths: &[(u32, u32)], capacity: u32) -> Bins {
    // A tree of the largest room below each node; rows that are not begun have all of it.
    let leaves = lengths.len().next_power_of_two();
    let mut room = vec![capacity; 2 * leaves];
    let mut items = Vec::with_capacity(lengths.len());
    let mut rows = 0;
    for &(document, length) in lengths {
        let mut node = 1;
        while node < leaves {
            node *= 2;
            node += usize::from(room[node] < length);
        }
        let row = node - leaves;
        room[node] -= length;
        while node > 1 {
            node /= 2;
            room[node] = room[2 * node].max(room[2 * node + 1]);
        }
        rows = rows.max(row + 1);
        items.push((document, u32::try_from(row).expect("at most one row a document")));
    }
    Bins::collect(&items, rows)
}

/// The longest document first, and of equal ones the first; each into the row of `capacity` tokens
/// with the least room that suffices, and of equal ones into the first.
pub(crate) fn best_fit(lengths: &[(u32, u32)], capacity: u32) -> Bins {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&place| Reverse(lengths[place].1));
    // Rows with room, by their room.
    let mut open: BTreeSet<(u32, u32)> = BTreeSet::new();
    let mut items: Vec<(u32, u32)> = lengths.iter().map(|&(document, _)| (document, 0)).collect();
    let mut rows = 0;
    for place in order {
        let length = lengths[place].1;
        let fitting = open.range((length, 0)..).next().copied();
        let (room, row) = fitting.unwrap_or((capacity, rows));
        if !open.remove(&(room, row)) {
            rows += 1;
        }
        if room > length {
            open.insert((room - length, row));
        }
        items[place].1 = row;
    }
    Bins::collect(&items, rows as usize)
}

/// Each document in a row of its own.
pub(crate) fn alone(lengths: &[(u32, u32)]) -> Bins {
    let items: Vec<(u32, u32)> =
        (0..).zip(lengths).map(|(row, &(document, _))| (document, row)).collect();
    Bins::collect(&items, items.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbered(lengths: &[u32]) -> Vec<(u32, u32)> {
        (0..).zip(lengths.iter().copied()).collect()
    }

    fn rows(bins: &Bins) -> Vec<Vec<u32>> {
        (0..bins.len()).map(|row| bins.get(row).unwrap().to_vec()).collect()
    }

    #[test]
    fn documents_go_where_the_strategy_says() {
        let lengths = numbered(&[4, 8, 1, 4, 2, 1, 7]);
        assert_eq!(rows(&first_fit(&lengths, 10)), [vec![0, 2, 3, 5], vec![1, 4], vec![6]],);
        // 8, 7, 4 and 4 begin rows or join them; the row of 8, which is before that of 4 and 4, has
        // room for 2, and then that of 4 and 4 has the least room for 1.
        assert_eq!(rows(&best_fit(&lengths, 10)), [vec![1, 4], vec![6], vec![0, 2, 3, 5]]);
        assert_eq!(rows(&alone(&lengths[..2])), [vec![0], vec![1]]);
        for pack in [first_fit, best_fit] {
            assert_eq!(pack(&[], 5).len(), 0);
            assert_eq!(rows(&pack(&numbered(&[5, 5]), 5)), [[0], [1]]);
        }
    }

    /// The first row that has room, looked for in every row.
    fn first_fit_slowly(lengths: &[(u32, u32)], capacity: u32) -> Vec<Vec<u32>> {
        let mut rows: Vec<(u32, Vec<u32>)> = Vec::new();
        for &(document, length) in lengths {
            match rows.iter_mut().find(|(used, _)| used + length <= capacity) {
                Some((used, documents)) => {
                    *used += length;
                    documents.push(document);
                }
                None => rows.push((length, vec![document])),
            }
        }
        rows.into_iter().map(|(_, documents)| documents).collect()
    }

    proptest! {
        #[test]
        fn every_document_is_in_one_row_and_rows_do_not_overflow(
            lengths in prop::collection::vec(1u32..40, 0..300),
            more in 0u32..30,
        ) {
            let capacity = 39 + more;
            let numbered = numbered(&lengths);
            prop_assert_eq!(
                rows(&first_fit(&numbered, capacity)),
                first_fit_slowly(&numbered, capacity)
            );
            let total: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
            for bins in [first_fit(&numbered, capacity), best_fit(&numbered, capacity)] {
                let mut seen = rows(&bins).concat();
                for row in rows(&bins) {
                    let used: u32 = row.iter().map(|&document| lengths[document as usize]).sum();
                    prop_assert!(used <= capacity && !row.is_empty());
                    prop_assert!(row.is_sorted());
                }
                seen.sort_unstable();
                prop_assert_eq!(seen, (0..).take(lengths.len()).collect::<Vec<u32>>());
                // Two rows that are less than half full would be one.
                let least = total.div_ceil(u64::from(capacity));
                prop_assert!((bins.len() as u64) <= 2 * least + 1);
            }
        }
    }
}
