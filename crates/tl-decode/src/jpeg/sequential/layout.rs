//! The places of an MCU's blocks in the buffer of a run of MCUs: those of a component's block row
//! side by side.

use std::ops::Range;

use crate::jpeg::scan::{Damage, MAX_BLOCKS_PER_MCU, Scan};

/// Blocks of a run of MCUs: few enough to stay in the first-level cache next to the tables.
const RUN_BLOCKS: u32 = 48;

/// Blocks in the buffer, a power of two.
pub(super) const BUFFER_BLOCKS: usize = 64;

const SLOTS: usize = MAX_BLOCKS_PER_MCU as usize;

/// A block of an MCU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    /// The place of the first MCU's block.
    first: usize,
    /// Blocks from there to the next MCU's.
    step: usize,
    /// The component's number in the scan.
    pub(super) component: usize,
}

impl Slot {
    /// The place of the block of MCU `mcu` of a run.
    #[inline(always)]
    pub(super) fn place(&self, mcu: usize) -> usize {
        (self.first + mcu * self.step) % BUFFER_BLOCKS
    }
}

/// Blocks that are neighbours in a block row of a component.
#[derive(Clone, Debug)]
pub(super) struct BlockRun {
    /// The component's number in the frame.
    pub(super) component: usize,
    pub(super) row: u32,
    pub(super) column: u32,
    /// Their places in the buffer.
    pub(super) places: Range<usize>,
}

/// The blocks of an MCU in the order of the data.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    scan: &'a Scan,
    slots: [Slot; SLOTS],
    count: usize,
    /// MCUs whose blocks fit into the buffer.
    pub(super) run_mcus: u32,
}

impl<'a> Layout<'a> {
    pub(super) fn new(scan: &'a Scan) -> Result<Self, Damage> {
        let components = scan.components();
        let blocks: u32 = components.iter().map(|part| part.across * part.down).sum();
        if !(1..=MAX_BLOCKS_PER_MCU).contains(&blocks) {
            return Err(Damage::at("blocks in an MCU, more than 10", scan.data_at));
        }
        let count = blocks as usize;
        let run_mcus = RUN_BLOCKS / blocks;
        let mut layout = Self { scan, slots: [Slot::default(); SLOTS], count, run_mcus };
        let mut slot = 0;
        let mut first = 0;
        for (component, part) in components.iter().enumerate() {
            let step = part.across as usize;
            for _ in 0..part.down {
                for column in 0..step {
                    layout.slots[slot] = Slot { first: first + column, step, component };
                    slot += 1;
                }
                first += step * run_mcus as usize;
            }
        }
        Ok(layout)
    }

    /// The blocks of an MCU.
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots[..self.count]
    }

    /// The block rows of `mcus` MCUs of MCU row `row` from `column` on.
    pub(super) fn block_runs(
        &self,
        row: u32,
        column: u32,
        mcus: u32,
    ) -> impl Iterator<Item = BlockRun> {
        let mut first = 0;
        self.scan
            .components()
            .iter()
            .flat_map(move |part| (0..part.down).map(move |down| (part, down)))
            .map(move |(part, down)| {
                let places = first..first + (part.across * mcus) as usize;
                first += (part.across * self.run_mcus) as usize;
                BlockRun {
                    component: part.component,
                    row: row * part.down + down,
                    column: column * part.across,
                    places,
                }
            })
    }
}
