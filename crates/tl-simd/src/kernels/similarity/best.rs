//! The rows with the best scores so far.

use super::{Match, Metric};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// At most `k` rows, whatever the order in which they are offered.
pub(super) struct Best {
    k: usize,
    /// -1 where the smallest score is the best.
    sign: f32,
    /// The worst is on top.
    heap: BinaryHeap<Ranked>,
    /// The score that a row has to reach.
    bar: f32,
}

/// A row by its rank: the smallest is the best.
#[derive(Clone, Copy, PartialEq)]
struct Ranked {
    /// The larger the better; a number.
    merit: f32,
    row: usize,
}

impl Eq for Ranked {}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        other.merit.total_cmp(&self.merit).then(self.row.cmp(&other.row))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Best {
    pub(super) fn new(metric: Metric, k: usize) -> Self {
        let sign = match metric {
            Metric::Dot | Metric::Cosine => 1.0,
            Metric::SquaredL2 => -1.0,
        };
        let bar = if k == 0 { f32::NAN } else { f32::NEG_INFINITY };
        Self { k, sign, heap: BinaryHeap::with_capacity(k), bar }
    }

    /// Takes the row if it is one of the best; a score that is not a number never is.
    #[inline(always)]
    pub(super) fn offer(&mut self, row: usize, score: f32) {
        if score * self.sign >= self.bar {
            self.take(Ranked { merit: score * self.sign, row });
        }
    }

    #[cold]
    fn take(&mut self, new: Ranked) {
        if self.heap.len() < self.k {
            self.heap.push(new);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && new < *worst
        {
            *worst = new;
        }
        if self.heap.len() == self.k
            && let Some(worst) = self.heap.peek()
        {
            self.bar = worst.merit;
        }
    }

    /// The best first.
    pub(super) fn into_matches(self) -> Vec<Match> {
        let sign = self.sign;
        let ranked = self.heap.into_sorted_vec().into_iter();
        ranked.map(|ranked| Match { row: ranked.row, score: ranked.merit * sign }).collect()
    }
}
