//! Block shuffle: blocks of neighbouring samples in random order, the samples of a few blocks
//! shuffled among each other.
//!
//! What is read together stays together, at a known price in randomness
//! ([`ShuffleQuality`](crate::ShuffleQuality)). Like the full shuffle it has no buffer: every place
//! is computed. Only the last block of the data can be short, so where windows start follows from
//! where that block went.

use super::permutation::{Keys, Network, derive};
use super::source_blocks::{Extent, SourceBlocks};

/// The purposes for which keys are derived.
const ORDER_OF_BLOCKS: u64 = 0;
const WINDOWS: u64 = 1;

/// A block shuffle of all places, or of the blocks that one lane has.
#[derive(Clone, Debug)]
pub(super) enum BlockShuffle {
    Equal(EqualBlocks),
    Source(SourceBlocks),
}

impl BlockShuffle {
    /// The shuffle of an extent in blocks of `block`, or of the source.
    pub(super) fn new(extent: &Extent, block: u64, window: u64, keys: Keys) -> Self {
        match extent.ends() {
            None => Self::Equal(EqualBlocks::new(extent.count(), block, window, keys)),
            Some(ends) => {
                let blocks = ends.len() as u64;
                let order = BlockOrder::of_all(order_of_blocks(blocks, &keys));
                Self::Source(SourceBlocks::new(order, blocks, ends.clone(), window, keys))
            }
        }
    }

    /// The number of samples.
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Equal(blocks) => blocks.count,
            Self::Source(blocks) => blocks.count(),
        }
    }

    pub(super) fn at(&self, place: u64) -> u64 {
        match self {
            Self::Equal(blocks) => blocks.at(place),
            Self::Source(blocks) => blocks.at(place),
        }
    }

    pub(super) fn place_of(&self, value: u64) -> u64 {
        match self {
            Self::Equal(blocks) => blocks.place_of(value),
            Self::Source(blocks) => blocks.place_of(value),
        }
    }
}

/// The order of `blocks` blocks.
pub(super) fn order_of_blocks(blocks: u64, keys: &Keys) -> Network {
    Network::new(blocks, derive(keys, ORDER_OF_BLOCKS, 0))
}

/// The order of the `size` samples of a window.
pub(super) fn order_of_window(size: u64, window: u64, keys: &Keys) -> Network {
    Network::new(size, derive(keys, WINDOWS, window))
}

/// Blocks of equally many samples.
#[derive(Clone, Debug)]
pub(super) struct EqualBlocks {
    count: u64,
    /// Samples in a block, except the last block of the data.
    block: u64,
    /// Blocks in a window, except the last window.
    window: u64,
    order: BlockOrder,
    keys: Keys,
    /// Any place without a missing sample, where the last block is whole or in another lane.
    short: Short,
}

/// The place of the data's last block, and the samples that it lacks of a whole block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Short {
    pub(super) place: u64,
    pub(super) missing: u64,
}

/// The order of blocks.
#[derive(Clone, Debug)]
pub(super) struct BlockOrder {
    /// The order of all blocks of the data.
    all: Network,
    /// For a lane: the number of its first block in that order, and the order of its own.
    lane: Option<(u64, Network)>,
}

impl BlockOrder {
    pub(super) const fn of_all(all: Network) -> Self {
        Self { all, lane: None }
    }

    /// The order `own` of the blocks from `first` on in the order `all`.
    pub(super) const fn of_lane(all: Network, first: u64, own: Network) -> Self {
        Self { all, lane: Some((first, own)) }
    }

    pub(super) fn at(&self, place: u64) -> u64 {
        let place = self.lane.as_ref().map_or(place, |(first, own)| first + own.at(place));
        self.all.at(place)
    }

    pub(super) fn place_of(&self, block: u64) -> u64 {
        let place = self.all.place_of(block);
        self.lane.as_ref().map_or(place, |(first, own)| own.place_of(place - first))
    }
}

impl EqualBlocks {
    /// `count` is below 2^63, so that sums of two numbers below it are numbers.
    fn new(count: u64, block: u64, window: u64, keys: Keys) -> Self {
        // A block is at most as large as the data.
        let block = block.clamp(1, count.max(1));
        let blocks = count.div_ceil(block).max(1);
        let order = BlockOrder::of_all(order_of_blocks(blocks, &keys));
        let short = Short { place: order.place_of(blocks - 1), missing: blocks * block - count };
        Self::of(order, blocks, block, short, window, keys)
    }

    /// A shuffle of so many blocks in an order.
    pub(super) fn of(
        order: BlockOrder,
        blocks: u64,
        block: u64,
        short: Short,
        window: u64,
        keys: Keys,
    ) -> Self {
        // A window is at most as large as all blocks.
        let window = window.clamp(1, blocks.max(1));
        let count = blocks * block - short.missing;
        Self { count, block, window, order, keys, short }
    }

    fn at(&self, place: u64) -> u64 {
        let window = self.window_at(place);
        let mut within = self.shuffle(window).at(place - self.start(window));
        let first = window * self.window;
        if window == self.short_window() && within >= self.end_of_short_block() {
            within += self.short.missing;
        }
        self.order.at(first + within / self.block) * self.block + within % self.block
    }

    fn place_of(&self, value: u64) -> u64 {
        let place = self.order.place_of(value / self.block);
        let window = place / self.window;
        let mut within = (place - window * self.window) * self.block + value % self.block;
        if window == self.short_window() && place > self.short.place {
            within -= self.short.missing;
        }
        self.start(window) + self.shuffle(window).place_of(within)
    }

    fn shuffle(&self, window: u64) -> Network {
        order_of_window(self.size(window), window, &self.keys)
    }

    /// The window that `place` lies in.
    fn window_at(&self, place: u64) -> u64 {
        let short = self.short_window();
        let span = self.window * self.block;
        if place < self.start(short) + self.size(short) {
            (place / span).min(short)
        } else {
            (place + self.short.missing) / span
        }
    }

    const fn short_window(&self) -> u64 {
        self.short.place / self.window
    }

    /// The end of the short block within its window.
    const fn end_of_short_block(&self) -> u64 {
        (self.short.place % self.window + 1) * self.block - self.short.missing
    }

    const fn start(&self, window: u64) -> u64 {
        let missing = if window > self.short_window() { self.short.missing } else { 0 };
        window * self.window * self.block - missing
    }

    fn size(&self, window: u64) -> u64 {
        let missing = if window == self.short_window() { self.short.missing } else { 0 };
        (self.window * self.block - missing).min(self.count - self.start(window))
    }
}
