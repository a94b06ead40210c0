//! Block shuffle: blocks of neighbouring samples in random order, the samples of a few blocks
//! shuffled among each other.
//!
//! What is read together stays together, at a known price in randomness
//! ([`ShuffleQuality`](crate::ShuffleQuality)). Like the full shuffle it has no buffer: every place
//! is computed. Only the last block of the data can be short, so where windows start follows from
//! where that block went.

use super::permutation::{Keys, Network, derive};

/// The purposes for which keys are derived.
const ORDER_OF_BLOCKS: u64 = 0;
const WINDOWS: u64 = 1;

/// A block shuffle of `0..count`.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    count: u64,
    /// Samples in a block, except the last block of the data.
    block: u64,
    /// Blocks in a window, except the last window.
    window: u64,
    order: Network,
    keys: Keys,
    /// The place of the data's last block among the shuffled blocks.
    short_place: u64,
    /// The number of samples that it lacks of a whole block.
    missing: u64,
}

impl Blocks {
    /// `count` is below 2^63, so that sums of two numbers below it are numbers.
    pub(super) fn new(count: u64, block: u64, window: u64, keys: Keys) -> Self {
        // A block is at most as large as the data, and a window at most as large as all blocks.
        let block = block.clamp(1, count.max(1));
        let blocks = count.div_ceil(block).max(1);
        let window = window.clamp(1, blocks);
        let order = Network::new(blocks, derive(&keys, ORDER_OF_BLOCKS, 0));
        let short_place = order.place_of(blocks - 1);
        let missing = blocks * block - count;
        Self { count, block, window, order, keys, short_place, missing }
    }

    pub(super) fn at(&self, place: u64) -> u64 {
        let window = self.window_at(place);
        let mut within = self.shuffle(window).at(place - self.start(window));
        let first = window * self.window;
        if window == self.short_window() && within >= self.end_of_short_block() {
            within += self.missing;
        }
        self.order.at(first + within / self.block) * self.block + within % self.block
    }

    pub(super) fn place_of(&self, value: u64) -> u64 {
        let place = self.order.place_of(value / self.block);
        let window = place / self.window;
        let mut within = (place - window * self.window) * self.block + value % self.block;
        if window == self.short_window() && place > self.short_place {
            within -= self.missing;
        }
        self.start(window) + self.shuffle(window).place_of(within)
    }

    fn shuffle(&self, window: u64) -> Network {
        Network::new(self.size(window), derive(&self.keys, WINDOWS, window))
    }

    /// The window that `place` lies in.
    fn window_at(&self, place: u64) -> u64 {
        let short = self.short_window();
        let span = self.window * self.block;
        if place < self.start(short) + self.size(short) {
            (place / span).min(short)
        } else {
            (place + self.missing) / span
        }
    }

    const fn short_window(&self) -> u64 {
        self.short_place / self.window
    }

    /// The end of the short block within its window.
    const fn end_of_short_block(&self) -> u64 {
        (self.short_place % self.window + 1) * self.block - self.missing
    }

    const fn start(&self, window: u64) -> u64 {
        let missing = if window > self.short_window() { self.missing } else { 0 };
        window * self.window * self.block - missing
    }

    fn size(&self, window: u64) -> u64 {
        let missing = if window == self.short_window() { self.missing } else { 0 };
        (self.window * self.block - missing).min(self.count - self.start(window))
    }
}
