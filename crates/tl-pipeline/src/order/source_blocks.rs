//! Blocks that a source is stored in, which have any numbers of samples.
//!
//! Their shuffle is that of blocks of equally many samples, but where a window starts depends on the
//! blocks before it, so an order has a table of 8 bytes for each block.

use tl_handoff::sync::Arc;

use super::block::{BlockOrder, order_of_window};
use super::permutation::Keys;

/// Places that are shuffled as one, with the source's blocks among them.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    count: u64,
    /// The place after each block, ascending; `None` where the shuffle does not use them.
    ends: Option<Arc<[u64]>>,
}

impl Extent {
    /// `count` places.
    pub(super) const fn plain(count: u64) -> Self {
        Self { count, ends: None }
    }

    /// The places of blocks that end at `ends`, each with at least one place.
    pub(super) fn of_blocks(ends: Arc<[u64]>) -> Self {
        Self { count: ends.last().copied().unwrap_or(0), ends: Some(ends) }
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) const fn ends(&self) -> Option<&Arc<[u64]>> {
        self.ends.as_ref()
    }
}

/// The block with place `place`, where blocks end at `ends`.
pub(super) fn block_of(ends: &[u64], place: u64) -> u64 {
    ends.partition_point(|&end| end <= place) as u64
}

/// The first place of a block.
fn start_of(ends: &[u64], block: u64) -> u64 {
    block.checked_sub(1).map_or(0, |before| ends[index(before)])
}

/// A shuffle of all blocks, or of those that one lane has.
#[derive(Clone, Debug)]
pub(super) struct SourceBlocks {
    ends: Arc<[u64]>,
    order: BlockOrder,
    /// By place in the order, the samples of the blocks before; those of all at the end.
    starts: Arc<[u64]>,
    /// Blocks in a window, except the last window.
    window: u64,
    keys: Keys,
}

impl SourceBlocks {
    /// A shuffle of `blocks` blocks in this order, which end at `ends`.
    pub(super) fn new(
        order: BlockOrder,
        blocks: u64,
        ends: Arc<[u64]>,
        window: u64,
        keys: Keys,
    ) -> Self {
        let mut start = 0;
        let size = |place| {
            let block = order.at(place);
            start += ends[index(block)] - start_of(&ends, block);
            start
        };
        let starts = std::iter::once(0).chain((0..blocks).map(size)).collect();
        Self { ends, order, starts, window: window.clamp(1, blocks.max(1)), keys }
    }

    pub(super) fn count(&self) -> u64 {
        self.start(self.blocks())
    }

    pub(super) fn at(&self, place: u64) -> u64 {
        let window = self.order_place(place) / self.window;
        let first = self.start(window * self.window);
        let order = order_of_window(self.size(window), window, &self.keys);
        let number = first + order.at(place - first);
        let place = self.order_place(number);
        start_of(&self.ends, self.order.at(place)) + (number - self.start(place))
    }

    pub(super) fn place_of(&self, value: u64) -> u64 {
        let block = block_of(&self.ends, value);
        let place = self.order.place_of(block);
        let number = self.start(place) + (value - start_of(&self.ends, block));
        let window = place / self.window;
        let first = self.start(window * self.window);
        let order = order_of_window(self.size(window), window, &self.keys);
        first + order.place_of(number - first)
    }

    /// The place in the order of the block with sample `number` of the unshuffled windows.
    fn order_place(&self, number: u64) -> u64 {
        self.starts.partition_point(|&start| start <= number) as u64 - 1
    }

    fn size(&self, window: u64) -> u64 {
        let end = self.blocks().min((window + 1) * self.window);
        self.start(end) - self.start(window * self.window)
    }

    fn start(&self, place: u64) -> u64 {
        self.starts[index(place)]
    }

    fn blocks(&self) -> u64 {
        self.starts.len() as u64 - 1
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("blocks are in memory")
}
