//! The samples of a view, by place: ranges where neighbours follow each other, a list otherwise.

use std::ops::Range;

use crate::order::{Samples, Subset};

/// Samples of a data set in the order of a view.
///
/// The form depends on the samples alone, not on how they were selected, so that equal views have
/// equal fingerprints: ranges if they hold two samples on average and none twice, a list otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// Ranges that are not empty and do not overlap, and the place at which each ends.
    Ranges {
        ranges: Vec<Range<u64>>,
        ends: Vec<u64>,
    },
    List(Vec<u64>),
}

impl Selection {
    /// All samples of a data set.
    pub(super) fn all(sample_count: u64) -> Self {
        let mut collector = Collector::default();
        collector.push(0..sample_count);
        collector.finish()
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Ranges { ends, .. } => ends.last().copied().unwrap_or(0),
            Self::List(samples) => samples.len() as u64,
        }
    }

    /// The sample at `place`; `None` past the end.
    pub(super) fn sample(&self, place: u64) -> Option<u64> {
        match self {
            Self::Ranges { ranges, ends } => {
                let number = ends.partition_point(|&end| end <= place);
                let range = ranges.get(number)?;
                Some(range.end - (ends[number] - place))
            }
            Self::List(samples) => samples.get(usize::try_from(place).ok()?).copied(),
        }
    }

    /// The samples in order, as ranges of neighbours.
    pub(super) fn runs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let (ranges, list) = match self {
            Self::Ranges { ranges, .. } => (&ranges[..], &[][..]),
            Self::List(samples) => (&[][..], &samples[..]),
        };
        let list = list.iter().map(|&sample| sample..sample.saturating_add(1));
        ranges.iter().cloned().chain(list)
    }

    /// The samples in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs().flatten()
    }

    /// The samples at `places`, as far as there are any.
    pub(super) fn slice(&self, places: Range<u64>) -> Self {
        let end = places.end.min(self.len());
        let start = places.start.min(end);
        let mut collector = Collector::default();
        match self {
            Self::Ranges { ranges, ends } => {
                let first = ends.partition_point(|&end| end <= start);
                for (range, &range_end) in ranges.iter().zip(ends).skip(first) {
                    let range_start = range_end - (range.end - range.start);
                    if range_start >= end {
                        break;
                    }
                    let skipped = start.saturating_sub(range_start);
                    let left_out = range_end.saturating_sub(end);
                    collector.push(range.start + skipped..range.end - left_out);
                }
            }
            Self::List(samples) => {
                let index = |place| usize::try_from(place).unwrap_or(usize::MAX);
                samples[index(start)..index(end)].iter().for_each(|&sample| collector.add(sample));
            }
        }
        collector.finish()
    }

    /// The bytes that it takes in memory.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Ranges { ranges, .. } => ranges.len() * 24,
            Self::List(samples) => samples.len() * 8,
        };
        bytes as u64
    }

    /// The same samples as a setting of a sampler over a data set of `sample_count` samples.
    pub(super) fn samples(&self, sample_count: u64) -> Samples {
        match self {
            Self::Ranges { ranges, .. } if is_all(ranges, sample_count) => Samples::All,
            Self::Ranges { .. } | Self::List(_) => Samples::Subset(self.subset()),
        }
    }

    pub(super) fn subset(&self) -> Subset {
        match self {
            Self::Ranges { ranges, .. } => Subset::Ranges(ranges.clone()),
            Self::List(samples) => Subset::List(samples.clone()),
        }
    }

    /// A sample that comes more than once, if there is one.
    pub(super) fn repeated(&self) -> Option<u64> {
        let Self::List(samples) = self else { return None };
        let mut sorted = samples.clone();
        sorted.sort_unstable();
        sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }
}

fn is_all(ranges: &[Range<u64>], sample_count: u64) -> bool {
    match ranges {
        [] => sample_count == 0,
        [range] => range.start == 0 && range.end == sample_count,
        _ => false,
    }
}

/// Builds a [`Selection`], one sample or range after the other.
#[derive(Debug, Default)]
pub(super) struct Collector {
    runs: Vec<Range<u64>>,
    len: u64,
}

impl Collector {
    pub(super) fn add(&mut self, sample: u64) {
        self.push(sample..sample.saturating_add(1));
    }

    pub(super) fn push(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.len = self.len.saturating_add(range.end - range.start);
        match self.runs.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.runs.push(range),
        }
    }

    pub(super) fn finish(self) -> Selection {
        let Self { mut runs, len } = self;
        let are_short = (runs.len() as u64).saturating_mul(2) > len;
        if (are_short && runs.len() > 1) || has_overlap(&runs) {
            return Selection::List(runs.into_iter().flatten().collect());
        }
        runs.shrink_to_fit();
        let mut end = 0;
        let ends = runs.iter().map(|range| {
            end += range.end - range.start;
            end
        });
        Selection::Ranges { ends: ends.collect(), ranges: runs }
    }
}

fn has_overlap(runs: &[Range<u64>]) -> bool {
    let overlap = |runs: &[Range<u64>]| runs.windows(2).any(|pair| pair[1].start < pair[0].end);
    if !overlap(runs) {
        return false;
    }
    // Out of order, or in common.
    let mut sorted = runs.to_vec();
    sorted.sort_unstable_by_key(|range| range.start);
    overlap(&sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(samples: &[u64]) -> Selection {
        let mut collector = Collector::default();
        samples.iter().for_each(|&sample| collector.add(sample));
        collector.finish()
    }

    #[test]
    fn neighbours_are_ranges_and_others_a_list() {
        let check = |samples: &[u64], expected: Subset| {
            let selection = collect(samples);
            assert_eq!(selection.subset(), expected, "{samples:?}");
            assert_eq!(selection.iter().collect::<Vec<_>>(), samples);
            let at = |place| selection.sample(place);
            assert_eq!((0..).map_while(at).collect::<Vec<_>>(), samples);
            for start in 0..=samples.len() {
                for end in start..=samples.len() + 1 {
                    let part = selection.slice(start as u64..end as u64);
                    let expected = &samples[start..end.min(samples.len())];
                    assert_eq!(part, collect(expected), "{samples:?}[{start}..{end}]");
                }
            }
        };
        let ranges = |ranges: &[Range<u64>]| Subset::Ranges(ranges.to_vec());
        check(&[], ranges(&[]));
        check(&[4], ranges(std::slice::from_ref(&(4..5))));
        check(&[5, 6, 7, 1, 2], ranges(&[5..8, 1..3]));
        check(&[5, 6, 1], Subset::List(vec![5, 6, 1]));
        check(&[1, 2, 3, 2, 3, 4], Subset::List(vec![1, 2, 3, 2, 3, 4]));
        check(&[9, 7, 5], Subset::List(vec![9, 7, 5]));
    }

    #[test]
    fn a_view_of_a_billion_samples_is_one_range() {
        let all = Selection::all(1 << 30);
        assert_eq!(all.samples(1 << 30), Samples::All);
        let part = all.slice(5..(1 << 30) - 5).slice(1..100_000_000);
        assert_eq!(part.samples(1 << 30), Samples::Subset((6..100_000_005).into()));
        assert_eq!(part.bytes(), 24);
    }
}
