//! Memory for what sources unpack and several samples need, such as the pages of Parquet files.

use std::any::Any;
use std::fmt;
use std::ptr;

use tbl_io::{BlockMemory, ReadError, SampleBlocks, SampleSource};

use crate::config::LoaderConfig;
use crate::dataset::Dataset;
use crate::fields::Fields;
use crate::note::LoaderNote;
use crate::order::{Blocks, Shuffle};
use crate::work::Work;

/// The most bytes for a shuffle without a memory budget; with one it is a quarter of that.
const MOST: u64 = 1 << 30;

/// The part of a budget that is used if no shuffle needs blocks.
const USUAL_PART: u64 = 8;

/// Blocks from this size on are worth a note, if they have several samples.
const LARGE: u64 = 256 << 10;

/// The memory that a loader has reserved in its sources.
pub(crate) struct SourceMemory {
    /// Bytes that the budget counts.
    pub(crate) bytes: u64,
    /// Dropped with the loader.
    reserved: Vec<Box<dyn Any + Send + Sync>>,
}

impl fmt::Debug for SourceMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, reserved } = self;
        let reserved = &reserved.len();
        f.debug_struct("SourceMemory").field("bytes", bytes).field("reserved", reserved).finish()
    }
}

impl SourceMemory {
    /// Reserves memory for the blocks of a window; notes if there is not enough.
    pub(crate) fn reserve(
        dataset: &Dataset,
        config: &LoaderConfig,
        notes: &mut Vec<LoaderNote>,
    ) -> Result<Self, ReadError> {
        notes.extend(packed_blocks(dataset, config));
        let is_of_source = config.sampler.shuffle.source_window().is_some();
        let stored = match Stored::of(dataset, is_of_source) {
            // Otherwise a defect is an error of the samples.
            Err(error) if is_of_source => return Err(error),
            stored => stored.ok().flatten(),
        };
        let window = stored.map_or(0, |stored| window_bytes(stored, dataset, config));
        let memories = memories(dataset, config);
        let usual = memories.iter().map(|memory| memory.usual_bytes()).max().unwrap_or(0);
        let kept = kept_bytes(window, usual, config.memory_budget);
        notes.extend(
            (kept < window).then_some(LoaderNote::FewBlocks { bytes: kept, wanted: window }),
        );
        // One more is unpacked by each worker.
        let block = stored.map_or(0, |stored| stored.bytes);
        let unpacking = block.saturating_mul(config.workers as u64);
        let bytes = kept.saturating_add(unpacking).saturating_mul(memories.len() as u64);
        let reserved = memories.iter().map(|memory| memory.reserve(kept)).collect();
        Ok(Self { bytes, reserved })
    }
}

/// The bytes of blocks that are kept where a window has `window`.
fn kept_bytes(window: u64, usual: u64, memory_budget: Option<u64>) -> u64 {
    let most = memory_budget.map_or(MOST, |budget| MOST.min(budget / 4));
    let usual = memory_budget.map_or(usual, |budget| usual.min(budget / USUAL_PART));
    window.min(most).max(usual)
}

/// The memories that samples of this data set are unpacked into, each once.
fn memories(dataset: &Dataset, config: &LoaderConfig) -> Vec<&'static dyn BlockMemory> {
    // Reading rows of a table, or fields, always unpacks.
    let always = matches!(config.work, Work::Columns(_)) || config.fields != Fields::default();
    let mut found: Vec<&'static dyn BlockMemory> = Vec::new();
    for source in kinds(dataset) {
        let Some(memory) = source.block_memory() else { continue };
        let is_found = found.iter().any(|&known| ptr::addr_eq(known, memory));
        if !is_found && (always || unpacks(source)) {
            found.push(memory);
        }
    }
    found
}

/// The first source of each memory and compression, which stands for all of its kind.
fn kinds(dataset: &Dataset) -> Vec<&dyn SampleSource> {
    let mut found: Vec<(&dyn SampleSource, Vec<&str>)> = Vec::new();
    for source in dataset.shards().iter().filter(|source| source.sample_count() > 0) {
        if source.blocks().is_none() && source.block_memory().is_none() {
            continue;
        }
        let compressions = source.blocks().map(SampleBlocks::compressions).unwrap_or_default();
        let memory = |source: &dyn SampleSource| {
            source.block_memory().map_or(ptr::null(), |memory| ptr::from_ref(memory).cast::<()>())
        };
        let is_like = |(known, names): &(&dyn SampleSource, _)| {
            *names == compressions && memory(*known) == memory(&**source)
        };
        if !found.iter().any(is_like) {
            found.push((&**source, compressions));
        }
    }
    found.into_iter().map(|(source, _)| source).collect()
}

/// Whether reading a sample without its fields may unpack something.
fn unpacks(source: &dyn SampleSource) -> bool {
    let is_plain = |bytes| matches!(bytes, Ok(0));
    source.blocks().is_none_or(|blocks| !is_plain(blocks.unpacked_bytes()))
}

/// The blocks of a data set.
#[derive(Clone, Copy, Debug)]
struct Stored {
    count: u64,
    samples: u64,
    /// Bytes of a block in memory.
    bytes: u64,
}

impl Stored {
    /// All blocks where a shuffle is of these; otherwise a file of each kind stands for all.
    fn of(dataset: &Dataset, is_of_source: bool) -> Result<Option<Self>, ReadError> {
        let mut found = Self { count: 0, samples: 0, bytes: 0 };
        let sources = match is_of_source {
            true => dataset.shards().iter().map(|source| &**source).collect(),
            false => kinds(dataset),
        };
        for source in sources.into_iter().filter(|source| source.sample_count() > 0) {
            let Some(blocks) = source.blocks() else { continue };
            found.count += blocks.ends()?.len() as u64;
            found.samples += source.sample_count();
            found.bytes = found.bytes.max(blocks.unpacked_bytes()?);
        }
        Ok((found.count > 0).then_some(found))
    }

    /// The mean number of samples in a block.
    fn rows(self) -> u64 {
        self.samples.div_ceil(self.count).max(1)
    }
}

/// The bytes of the unpacked blocks of a window, 0 where all samples are shuffled together or none.
fn window_bytes(stored: Stored, dataset: &Dataset, config: &LoaderConfig) -> u64 {
    let rows = stored.rows();
    let window = window_blocks(config.sampler.shuffle, rows, config.shard.world);
    let Some(window) = window else { return 0 };
    // Workers go from one window to the next one after the other.
    let blocks = window.saturating_add(config.workers as u64);
    let blocks = blocks.min(dataset.len().div_ceil(rows));
    // Blocks differ in size.
    blocks.saturating_mul(stored.bytes.saturating_add(stored.bytes / 4))
}

/// The blocks of the source, of `rows` samples each, that a window of a shuffle uses on one of `world`
/// ranks; `None` for shuffles without windows.
fn window_blocks(shuffle: Shuffle, rows: u64, world: u32) -> Option<u64> {
    let (blocks, window) = match shuffle {
        Shuffle::None | Shuffle::Full => return None,
        Shuffle::Block { blocks, window } => (blocks, window),
        Shuffle::Lanes { lanes, blocks, window, .. } => {
            (blocks, window.saturating_mul(lanes.div_ceil(u64::from(world.max(1)))))
        }
    };
    let of_source = match blocks {
        Blocks::Source => 1,
        // Their borders are others.
        Blocks::Samples(samples) => samples.div_ceil(rows).saturating_add(1),
    };
    Some(of_source.saturating_mul(window))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_take_a_quarter_of_a_budget_and_others_an_eighth() {
        let usual = 64 << 20;
        assert_eq!(kept_bytes(0, usual, None), usual);
        assert_eq!(kept_bytes(0, usual, Some(256 << 20)), 32 << 20);
        assert_eq!(kept_bytes(100 << 20, usual, None), 100 << 20);
        assert_eq!(kept_bytes(100 << 20, usual, Some(1 << 30)), 100 << 20);
        assert_eq!(kept_bytes(100 << 20, usual, Some(200 << 20)), 50 << 20);
        assert_eq!(kept_bytes(1 << 40, usual, None), MOST);
    }

    /// The blocks of the source with the samples of a window, where a block has 100.
    #[test]
    fn windows_have_the_blocks_of_their_samples() {
        let blocks = |shuffle| window_blocks(shuffle, 100, 2);
        let of = |blocks, window| Shuffle::Block { blocks, window };
        assert_eq!(blocks(Shuffle::Full), None);
        assert_eq!(blocks(Shuffle::None), None);
        assert_eq!(blocks(of(Blocks::Source, 8)), Some(8));
        assert_eq!(blocks(of(Blocks::Samples(100), 8)), Some(16), "at other borders");
        assert_eq!(blocks(of(Blocks::Samples(10), 8)), Some(16));
        assert_eq!(blocks(of(Blocks::Samples(1000), 8)), Some(88));
        let deal = crate::Deal::Run;
        let lanes = Shuffle::Lanes { lanes: 4, blocks: Blocks::Source, window: 8, deal };
        assert_eq!(blocks(lanes), Some(16), "those of the two lanes of a rank");
    }
}
