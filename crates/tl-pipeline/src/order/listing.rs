//! The samples of an order, as listed before they are shuffled.

use std::ops::Range;

/// Samples of a data set, by their place in a list; ranges of them are not written out.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pieces: Vec<Piece>,
    /// The place at which each piece ends.
    ends: Vec<u64>,
    /// The pieces that are ranges with samples, by the first of these.
    ranges: Vec<usize>,
    /// The numbers of the pieces that are lists.
    lists: Vec<usize>,
    /// True if no two ranges overlap.
    disjoint: bool,
    /// True if it is known that no sample is named twice: in ranges alone, or in one list.
    distinct: bool,
}

/// Samples that are listed in one go.
#[derive(Debug)]
pub(super) enum Piece {
    Range(Range<u64>),
    List {
        samples: Vec<u64>,
        /// Indices of `samples`, in the order of the samples there.
        sorted: Vec<usize>,
    },
}

impl Piece {
    /// A list that is kept together with what it takes to find a sample in it.
    pub(super) fn list(samples: Vec<u64>) -> Self {
        let mut sorted: Vec<usize> = (0..samples.len()).collect();
        sorted.sort_by_key(|&index| samples[index]);
        Self::List { samples, sorted }
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Range(range) => range.end.saturating_sub(range.start),
            Self::List { samples, .. } => samples.len() as u64,
        }
    }

    /// True if it has no sample twice.
    fn is_distinct(&self) -> bool {
        match self {
            Self::Range(_) => true,
            Self::List { samples, sorted } => {
                sorted.windows(2).all(|pair| samples[pair[0]] != samples[pair[1]])
            }
        }
    }

    /// The places of `sample` in it: the first, and their number.
    fn places_of(&self, sample: u64) -> (u64, usize) {
        match self {
            Self::Range(range) if range.contains(&sample) => (sample - range.start, 1),
            Self::Range(_) => (0, 0),
            Self::List { samples, sorted } => {
                let first = sorted.partition_point(|&index| samples[index] < sample);
                let places = sorted[first..].iter().take_while(|&&index| samples[index] == sample);
                (sorted.get(first).map_or(0, |&index| index as u64), places.count())
            }
        }
    }
}

impl Listing {
    /// All samples of a data set.
    pub(super) fn all(sample_count: u64) -> Self {
        let pieces = vec![Piece::Range(0..sample_count)];
        let ends = vec![sample_count];
        Self { pieces, ends, ranges: vec![0], lists: Vec::new(), disjoint: true, distinct: true }
    }

    /// The pieces in this order; `None` for 2^63 samples or more.
    pub(super) fn new(pieces: Vec<Piece>) -> Option<Self> {
        let mut ends = Vec::with_capacity(pieces.len());
        for piece in &pieces {
            let start = ends.last().copied().unwrap_or(0);
            ends.push(piece.len().checked_add(start).filter(|&end| end < 1 << 63)?);
        }
        let mut ranges = Vec::new();
        let mut lists = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Range(range) if range.is_empty() => {}
                Piece::Range(range) => ranges.push((range.start, range.end, index)),
                Piece::List { .. } => lists.push(index),
            }
        }
        ranges.sort_unstable();
        let disjoint = ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        let distinct = match &pieces[..] {
            [piece] => piece.is_distinct(),
            _ => disjoint && lists.is_empty(),
        };
        let ranges = ranges.into_iter().map(|(.., index)| index).collect();
        Some(Self { pieces, ends, ranges, lists, disjoint, distinct })
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// True if every sample is named at most once.
    pub(super) fn is_distinct(&self) -> bool {
        self.distinct
    }

    pub(super) fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The sample at `place`, which is below the length.
    pub(super) fn sample(&self, place: u64) -> u64 {
        let index = self.ends.partition_point(|&end| end <= place);
        let place = place - self.start(index);
        match &self.pieces[index] {
            Piece::Range(range) => range.start + place,
            Piece::List { samples, .. } => {
                samples[usize::try_from(place).expect("a place in a list is a `usize`")]
            }
        }
    }

    /// The place of `sample`, when it has exactly one.
    pub(super) fn place_of(&self, sample: u64) -> Option<u64> {
        let mut found = None;
        let mut count = 0;
        for index in self.pieces_around(sample) {
            let (place, places) = self.pieces[index].places_of(sample);
            if places > 0 {
                found = Some(self.start(index) + place);
                count += places;
            }
        }
        found.filter(|_| count == 1)
    }

    /// True if `sample` is listed, once or several times.
    pub(super) fn has(&self, sample: u64) -> bool {
        self.pieces_around(sample).any(|index| self.pieces[index].places_of(sample).1 > 0)
    }

    /// The numbers of the pieces that may list `sample`.
    fn pieces_around(&self, sample: u64) -> impl Iterator<Item = usize> {
        let near = self.range_of(sample).into_iter();
        let overlapping = if self.disjoint { &[][..] } else { &self.ranges[..] };
        near.chain(overlapping.iter().chain(&self.lists).copied())
    }

    /// The ends of blocks among the places `places`, counted from the first of these. `ends` are the
    /// samples after each block of the data set. Successive samples of one of them are a block.
    pub(super) fn block_ends(&self, places: Range<u64>, ends: &[u64]) -> Vec<u64> {
        let mut found = Vec::new();
        let mut current = None;
        let mut place = places.start;
        while place < places.end {
            let piece = self.ends.partition_point(|&end| end <= place);
            let sample = self.sample(place);
            let block = ends.partition_point(|&end| end <= sample);
            if current.is_some_and(|current| current != block) {
                found.push(place - places.start);
            }
            current = Some(block);
            place = match &self.pieces[piece] {
                Piece::List { .. } => place + 1,
                Piece::Range(range) => {
                    let end = ends.get(block).map_or(range.end, |&end| end.min(range.end));
                    (place + (end - sample)).min(places.end)
                }
            };
        }
        if places.start < places.end {
            found.push(places.end - places.start);
        }
        found
    }

    /// The range that can have `sample`, where ranges are disjoint.
    fn range_of(&self, sample: u64) -> Option<usize> {
        if !self.disjoint {
            return None;
        }
        let begins_behind = |index: &usize| match &self.pieces[*index] {
            Piece::Range(range) => range.start > sample,
            Piece::List { .. } => false,
        };
        let next = self.ranges.partition_point(|index| !begins_behind(index));
        Some(self.ranges[next.checked_sub(1)?])
    }

    fn start(&self, piece: usize) -> u64 {
        piece.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}
