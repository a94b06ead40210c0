//! The bytes of regions, made from what a builder has collected.

use alloc::vec;
use alloc::vec::Vec;

use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

use crate::aligned::ALIGNMENT;
use crate::bloom::BloomKey;
use crate::edges::Edge;
use crate::index::FANOUT;

/// Zeros up to a multiple of 64.
pub(super) fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}

/// Edges in rows.
#[derive(Debug)]
pub(super) struct Rows {
    pointers: Vec<U64>,
    edges: Vec<Edge>,
}

impl Rows {
    /// Sorts `edges` into `row_count` rows, keeping their order within each. The rows of all edges
    /// are below `row_count`.
    pub(super) fn new(row_count: usize, edges: &[(u32, Edge)]) -> Self {
        let mut ends = vec![0usize; row_count + 1];
        for (row, _) in edges {
            if let Some(end) = ends.get_mut(*row as usize + 1) {
                *end += 1;
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        let pointers = ends.iter().map(|&end| U64::new(end as u64)).collect();
        let mut sorted = vec![Edge::new(0, crate::Relation::Causal, 0.0); edges.len()];
        let mut nexts = ends;
        for (row, edge) in edges {
            let Some(next) = nexts.get_mut(*row as usize) else { continue };
            if let Some(place) = sorted.get_mut(*next) {
                *place = *edge;
            }
            *next += 1;
        }
        Self { pointers, edges: sorted }
    }

    /// The same edges by target.
    pub(super) fn transposed(&self) -> Self {
        let rows = self.pointers.iter().zip(self.pointers.iter().skip(1)).zip(0u32..);
        let mut reversed = Vec::with_capacity(self.edges.len());
        for ((start, end), source) in rows {
            let count = end.get() - start.get();
            for _ in 0..count {
                let Some(edge) = self.edges.get(reversed.len()) else { continue };
                let reverse = Edge::new(source, edge.relation(), edge.weight());
                reversed.push((edge.target(), reverse));
            }
        }
        Self::new(self.pointers.len().saturating_sub(1), &reversed)
    }

    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        out.extend(self.pointers.as_bytes());
        out.extend(self.edges.as_bytes());
    }
}

/// How many bits and hashes a filter for `count` keys has, for one false answer in a hundred.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole numbers between 1 and 10 times the number of keys"
)]
pub(super) fn bloom_size(count: u32) -> (u64, u32) {
    const FALSE_POSITIVES: f64 = 0.01;
    let count = f64::from(count.max(1));
    let bits = libm::ceil(-count * libm::log(FALSE_POSITIVES) / (LN_2 * LN_2)).max(64.0);
    let hashes = libm::ceil(bits / count * LN_2).max(1.0);
    (bits as u64, hashes as u32)
}

const LN_2: f64 = core::f64::consts::LN_2;

/// A filter with all of `keys`, of which there are `count`.
pub(super) fn bloom<'k>(count: u32, keys: impl Iterator<Item = &'k [u8; 16]>) -> Vec<u8> {
    let (num_bits, num_hashes) = bloom_size(count);
    // One key takes less than ten bits, and the keys are in memory.
    let mut words = vec![U64::new(0); usize::try_from(num_bits.div_ceil(64)).unwrap_or(0)];
    for key in keys {
        for bit in BloomKey::new(key).bits(num_hashes, num_bits) {
            let word = usize::try_from(bit / 64).ok().and_then(|word| words.get_mut(word));
            if let Some(word) = word {
                *word |= U64::new(1 << (bit % 64));
            }
        }
    }
    let mut out = num_hashes.to_le_bytes().to_vec();
    out.extend(num_bits.to_le_bytes());
    out.extend(words.as_bytes());
    out
}

/// Appends a tree over `keys`, which are in order, with their rows.
pub(super) fn append_tree<K>(out: &mut Vec<u8>, keys: &[K], rows: &[u32])
where
    K: IntoBytes + zerocopy::Immutable + Copy,
{
    pad(out);
    out.extend(keys.as_bytes());
    pad(out);
    out.extend(rows.iter().flat_map(|&row| U32::new(row).to_bytes()));
    let mut level = keys.to_vec();
    while level.len() > FANOUT {
        level = level.iter().step_by(FANOUT).copied().collect();
        pad(out);
        out.extend(level.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_have_the_references_sizes() {
        let expected = [
            (0, 64, 45),
            (1, 64, 45),
            (2, 64, 23),
            (5, 64, 9),
            (10, 96, 7),
            (67, 643, 7),
            (100, 959, 7),
            (1000, 9586, 7),
            (100_000, 958_506, 7),
        ];
        for (count, bits, hashes) in expected {
            assert_eq!(bloom_size(count), (bits, hashes), "{count} keys");
        }
        let filter = bloom(5, [[0; 16]; 5].iter());
        let word = [37, 33, 29, 25, 21, 17, 13, 9, 5].iter().fold(0u64, |w, bit| w | 1 << bit);
        assert_eq!(filter[..12], [9, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(filter[12..], word.to_le_bytes());
    }
}
