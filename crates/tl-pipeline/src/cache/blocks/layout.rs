//! The division of a data set into blocks.

use std::ops::Range;

use tl_decode::{DecodeOptions, Decoders};
use tl_handoff::sync::Arc;

use crate::cache::CacheKind;
use crate::cache::key::{self, Key, Namer};
use crate::dataset::Dataset;
use crate::order::{Blocks, Sequence, Shuffle};
use crate::panics::catch_panic;
use crate::placement;

/// The bytes of a block where the shuffle has none.
const BLOCK_BYTES: u64 = 2 << 20;

/// The most bytes of a block on average, as of a request. Larger blocks of a shuffle are kept in
/// pieces.
const MOST_BYTES: u64 = 8 << 20;

/// The most samples of a block: each takes some microseconds to name.
const MOST_SAMPLES: u64 = 512;

/// The blocks of a data set.
#[derive(Debug)]
pub(super) struct Layouts {
    dataset: Arc<Dataset>,
    sequence: Sequence,
    namer: Namer,
    /// The samples of a block of the shuffle, and of the pieces that it is kept in.
    block: u64,
    piece: u64,
    /// The bytes of a sample, on average.
    mean: u64,
}

/// The samples of a block.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The number of its first sample, by which this loader knows it.
    pub(crate) number: u64,
    pub(crate) key: Key,
    /// The number of their source in the data set.
    pub(crate) object: usize,
    /// Those that the order has, by their numbers.
    pub(crate) members: Vec<Member>,
    /// The bytes of all.
    pub(crate) bytes: u64,
}

/// A sample of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) sample: u64,
    /// Its bytes in the object; it may have none.
    pub(crate) range: Range<u64>,
}

impl Layout {
    /// The place of a sample among the members.
    pub(crate) fn place(&self, sample: u64) -> Option<usize> {
        self.members.binary_search_by_key(&sample, |member| member.sample).ok()
    }

    /// The part of the object from the first byte of its samples to the last.
    pub(crate) fn bounds(&self) -> Range<u64> {
        let ranges = || self.members.iter().map(|member| &member.range);
        let start = ranges().map(|range| range.start).min().unwrap_or(0);
        start..ranges().map(|range| range.end).max().unwrap_or(0)
    }
}

impl Layouts {
    pub(super) fn new(dataset: &Arc<Dataset>, sequence: &Sequence, decode: &DecodeOptions) -> Self {
        let mean = placement::mean_bytes(dataset).max(1);
        let filling = |bytes: u64| (bytes / mean).clamp(1, MOST_SAMPLES);
        let (block, piece) = match sequence.shuffle() {
            Shuffle::Block { blocks: Blocks::Samples(samples), .. }
            | Shuffle::Lanes { blocks: Blocks::Samples(samples), .. } => {
                (samples.max(1), filling(MOST_BYTES).min(samples.max(1)))
            }
            Shuffle::None | Shuffle::Full | Shuffle::Block { .. } | Shuffle::Lanes { .. } => {
                (filling(BLOCK_BYTES), filling(BLOCK_BYTES))
            }
        };
        let namer = Namer::new(CacheKind::Blocks, decode, &Decoders::new());
        let dataset = Arc::clone(dataset);
        Self { dataset, sequence: sequence.clone(), namer, block, piece, mean }
    }

    /// The bytes of a block, on average.
    pub(super) fn usual_bytes(&self) -> u64 {
        self.piece.saturating_mul(self.mean)
    }

    /// The number of the block that a sample is in; `None` if it is not requested from a store.
    pub(super) fn number(&self, sample: u64) -> Option<u64> {
        self.range(sample).map(|range| range.start)
    }

    /// The numbers of the samples of a block.
    fn range(&self, sample: u64) -> Option<Range<u64>> {
        let (shard, _) = self.dataset.place(sample).ok()?;
        let source = self.dataset.shards().get(shard)?;
        placement::requested_samples(&**source)?;
        if !placement::has_neighbours(&**source) {
            return Some(sample..sample + 1);
        }
        let of_source = self.dataset.shard_samples(shard)?;
        let block = sample - sample % self.block;
        let start = sample - (sample - block) % self.piece;
        let end = start.saturating_add(self.piece).min(block.saturating_add(self.block));
        Some(start.max(of_source.start)..end.min(of_source.end))
    }

    /// The samples of a block that the order has: others would be fetched for nobody.
    fn listed(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        range.filter(|&sample| self.sequence.has(sample))
    }

    /// How many samples the block has that `sample` is in.
    pub(super) fn samples_of(&self, sample: u64) -> usize {
        self.range(sample).map_or(0, |range| self.listed(range).count())
    }

    /// The place of a sample in its block.
    pub(super) fn place(&self, number: u64, sample: u64) -> usize {
        self.listed(number..sample).count()
    }

    /// The stored bytes of a sample; `None` where its index is wrong.
    pub(super) fn stored_bytes(&self, sample: u64) -> Option<u64> {
        let place = || self.place_in_object(sample).map(|range| range.end - range.start);
        catch_panic(place).ok().flatten()
    }

    fn place_in_object(&self, sample: u64) -> Option<Range<u64>> {
        let (source, local) = self.dataset.locate(sample).ok()?;
        placement::requested_range(source, local)
    }

    /// The part of an object from the first to the last sample of a block, where they are stored in their
    /// order, and at least the sample itself.
    pub(super) fn bounds(&self, sample: u64) -> Option<Range<u64>> {
        let find = || {
            let numbers = self.range(sample)?;
            let own = self.place_in_object(sample)?;
            let first = self.listed(numbers.clone()).next();
            let last = numbers.rev().find(|&number| self.sequence.has(number));
            let ends = first.into_iter().chain(last).filter_map(|end| self.place_in_object(end));
            Some(ends.fold(own, |bounds, end| bounds.start.min(end.start)..bounds.end.max(end.end)))
        };
        catch_panic(find).ok().flatten()
    }

    /// The block that a sample is in. `None` if its bytes have no name, if samples share bytes, or if
    /// something is wrong with one of them, which its own turn tells.
    pub(super) fn layout(&self, sample: u64) -> Option<Layout> {
        catch_panic(|| self.try_layout(sample)).ok().flatten()
    }

    fn try_layout(&self, sample: u64) -> Option<Layout> {
        let range = self.range(sample)?;
        let number = range.start;
        let (object, _) = self.dataset.place(sample).ok()?;
        let mut scratch = Vec::new();
        let mut members = Vec::new();
        let mut keys = Vec::new();
        for sample in self.listed(range) {
            let facts = self.dataset.facts(sample).ok()?;
            keys.push(self.namer.name(&self.dataset, sample, &facts, &mut scratch).ok()??);
            members.push(Member { sample, range: self.place_in_object(sample)? });
        }
        let mut ranges: Vec<_> = members.iter().map(|member| member.range.clone()).collect();
        ranges.sort_by_key(|range| (range.start, range.end));
        let are_apart = ranges.windows(2).all(|pair| pair[0].end <= pair[1].start);
        // Samples that are objects of their own all begin at the first byte.
        let is_usable = are_apart || members.len() == 1;
        let bytes = ranges
            .iter()
            .try_fold(0, |sum: u64, range| sum.checked_add(range.end.checked_sub(range.start)?))?;
        let key = key::of_block(keys.into_iter());
        (is_usable && bytes > 0).then_some(Layout { number, key, object, members, bytes })
    }
}
