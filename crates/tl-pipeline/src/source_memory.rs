//! Memory for the unpacked blocks of sources that a block shuffle has in use at once.

use tbl_io::ReadError;

use crate::config::LoaderConfig;
use crate::dataset::Dataset;
use crate::note::LoaderNote;
use crate::order::Shuffle;

/// The most bytes without a memory budget; with one it is a quarter of that.
const MOST: u64 = 1 << 30;

/// Blocks from this size on are worth a note, if they have several samples.
const LARGE: u64 = 256 << 10;

/// Makes room for the blocks of a window, and returns its bytes; notes if they are not enough.
pub(crate) fn keep_blocks(
    dataset: &Dataset,
    config: &LoaderConfig,
    notes: &mut Vec<LoaderNote>,
) -> Result<u64, ReadError> {
    let Some(window) = config.sampler.shuffle.source_window() else {
        notes.extend(packed_blocks(dataset, config));
        return Ok(0);
    };
    let mut largest = 0;
    for blocks in dataset.shards().iter().filter_map(|source| source.blocks()) {
        largest = largest.max(blocks.unpacked_bytes()?);
    }
    // Workers go from one window to the next one after the other.
    let blocks = window.saturating_add(config.workers as u64);
    // Blocks differ in size.
    let wanted = blocks.saturating_mul(largest.saturating_add(largest / 4));
    let bytes = wanted.min(config.memory_budget.map_or(MOST, |budget| MOST.min(budget / 4)));
    for blocks in dataset.shards().iter().filter_map(|source| source.blocks()) {
        blocks.keep(bytes);
    }
    notes.extend((bytes < wanted).then_some(LoaderNote::FewBlocks { bytes, wanted }));
    Ok(bytes)
}

/// The note on a full shuffle of samples whose blocks are large. Only the first file is looked at, and
/// none of a store, where a full shuffle has a note of its own.
fn packed_blocks(dataset: &Dataset, config: &LoaderConfig) -> Option<LoaderNote> {
    if config.sampler.shuffle != Shuffle::Full {
        return None;
    }
    let mut files = dataset.shards().iter().filter(|source| source.sample_count() > 0);
    let source = files.find(|source| source.location().url().is_none())?;
    let blocks = source.blocks()?;
    // A defect is an error of the samples.
    let bytes = blocks.unpacked_bytes().ok().filter(|&bytes| bytes >= LARGE)?;
    let has_neighbours =
        blocks.ends().is_ok_and(|ends| 2 * ends.len() as u64 <= source.sample_count());
    has_neighbours.then(|| LoaderNote::PackedBlocks { location: source.location().clone(), bytes })
}
