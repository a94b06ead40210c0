//! Lanes: the blocks of the data are dealt to lanes, and every global batch has equally many rows of
//! each, so that ranks that together read all lanes read every block once.
//!
//! Within its lane a block is shuffled as in [`BlockShuffle`]. The rows of a global batch depend on the
//! number of lanes and on its size, not on ranks. `docs/order.md` specifies the result.

use tl_handoff::sync::Arc;

use super::block::{BlockOrder, BlockShuffle, EqualBlocks, Short, order_of_blocks};
use super::permutation::{Keys, Network, derive};
use super::source_blocks::{Extent, SourceBlocks, block_of};

/// The purposes for which keys are derived, besides those of blocks.
const ORDER_IN_LANE: u64 = 2;
const LANE: u64 = 3;

/// A shuffle of `0..count` in lanes.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    extent: Extent,
    /// Samples in a block, except the last block of the data and blocks of the source.
    block: u64,
    /// The order in which they are dealt.
    dealt: Network,
    lanes: Vec<Lane>,
    /// The rows of a lane in a global batch.
    rows: u64,
    /// Global batches that have that many rows of each lane.
    turns: u64,
}

#[derive(Clone, Debug)]
struct Lane {
    /// The number of its first block among those dealt.
    first_block: u64,
    blocks: BlockShuffle,
    /// The position of the first sample that it has left after all turns.
    rest_start: u64,
}

/// The parameters of lanes: their number, the rows of each in a global batch, samples in a block,
/// and blocks in a window. Each is at least 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) lanes: u64,
    pub(super) rows: u64,
    pub(super) block: u64,
    pub(super) window: u64,
}

impl Lanes {
    /// The extent has fewer than 2^63 places. `deal` are the keys by which blocks are dealt, `keys`
    /// those of the epoch.
    pub(super) fn new(extent: &Extent, shape: Shape, deal: &Keys, keys: &Keys) -> Self {
        let Shape { lanes, rows, block, window } = shape;
        let count = extent.count();
        let block = block.clamp(1, count.max(1));
        let blocks = extent.ends().map_or(count.div_ceil(block), |ends| ends.len() as u64).max(1);
        let missing = (blocks * block).saturating_sub(count);
        let dealt = order_of_blocks(blocks, deal);
        let short = dealt.place_of(blocks - 1);
        // Products of two numbers below 2^64.
        let start = |lane: u64| {
            let start = u128::from(lane) * u128::from(blocks) / u128::from(lanes);
            u64::try_from(start).unwrap_or(u64::MAX)
        };
        let lane = |number: u64| {
            let own = start(number)..start(number + 1);
            let size = own.end - own.start;
            let inner = Network::new(size, derive(keys, ORDER_IN_LANE, number));
            let short = own
                .contains(&short)
                .then(|| Short { place: inner.place_of(short - own.start), missing });
            let order = BlockOrder::of_lane(dealt.clone(), own.start, inner);
            let keys = derive(keys, LANE, number);
            let blocks = match extent.ends() {
                None => {
                    let short = short.unwrap_or_default();
                    BlockShuffle::Equal(EqualBlocks::of(order, size, block, short, window, keys))
                }
                Some(ends) => {
                    // Without blocks there is a lane with one that has no samples.
                    let size = size.min(ends.len() as u64);
                    let ends = Arc::clone(ends);
                    BlockShuffle::Source(SourceBlocks::new(order, size, ends, window, keys))
                }
            };
            Lane { first_block: own.start, blocks, rest_start: 0 }
        };
        let mut lanes: Vec<Lane> = (0..lanes).map(lane).collect();
        let turns = lanes.iter().map(|lane| lane.blocks.count() / rows).min().unwrap_or(0);
        let mut rest_start = turns * rows * lanes.len() as u64;
        for lane in &mut lanes {
            lane.rest_start = rest_start;
            rest_start += lane.blocks.count() - turns * rows;
        }
        Self { extent: extent.clone(), block, dealt, lanes, rows, turns }
    }

    pub(super) fn at(&self, position: u64) -> u64 {
        let batch = self.batch();
        let (lane, place) = if position < self.turns * batch {
            let within = position % batch;
            (within / self.rows, position / batch * self.rows + within % self.rows)
        } else {
            // A lane that has nothing left starts where the next one does, and is passed over.
            let lane = self.lanes.partition_point(|lane| lane.rest_start <= position) - 1;
            let rest = position - self.lanes[lane].rest_start;
            (lane as u64, self.turns * self.rows + rest)
        };
        self.lane(lane).blocks.at(place)
    }

    pub(super) fn place_of(&self, value: u64) -> u64 {
        let ends = self.extent.ends();
        let block = ends.map_or_else(|| value / self.block, |ends| block_of(ends, value));
        let dealt = self.dealt.place_of(block);
        let lane = self.lanes.partition_point(|lane| lane.first_block <= dealt) - 1;
        // Lanes without blocks start where the next one does.
        let Lane { blocks, rest_start, .. } = &self.lanes[lane];
        let place = blocks.place_of(value);
        if place < self.turns * self.rows {
            let turn = place / self.rows;
            turn * self.batch() + lane as u64 * self.rows + place % self.rows
        } else {
            rest_start + (place - self.turns * self.rows)
        }
    }

    /// Rows of a global batch.
    fn batch(&self) -> u64 {
        self.rows * self.lanes.len() as u64
    }

    fn lane(&self, number: u64) -> &Lane {
        &self.lanes[usize::try_from(number).expect("lanes are in memory")]
    }
}
