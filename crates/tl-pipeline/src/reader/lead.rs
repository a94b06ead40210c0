//! The bytes that are requested ahead of the workers where nothing else is said.

use std::fs;

use tbl_io::SampleSource;

use crate::config::LoaderConfig;
use crate::dataset::Dataset;
use crate::note::LoaderNote;
use crate::order::{Blocks, Sampler, Samples, Shuffle};
use crate::placement::{has_neighbours, mean_bytes};

/// Enough for a fast network whatever the order: half a second of 500 MB/s.
pub(super) const LEAST: u64 = 256 << 20;

/// The windows of a block shuffle that are read ahead: while one is used the next one arrives.
const WINDOWS: u64 = 2;

/// If no more than this part of a data set is read ahead, most samples have no neighbour there.
const SPARSE: u64 = 4;

/// The part of the machine's memory, and half of that of a memory budget, that may be read ahead.
const PART: u64 = 4;

/// The bytes to read ahead, and a note if they are less than a shuffle needs to request its blocks
/// whole, or if the shuffle has no blocks. `configured` is what the user says, 0 for nothing.
pub(crate) fn bytes(
    dataset: &Dataset,
    config: &LoaderConfig,
    configured: u64,
) -> (u64, Option<LoaderNote>) {
    let world = u64::from(config.shard.world.max(1));
    let rows = window_rows(config.sampler.shuffle, world, |blocks| samples_of(blocks, dataset));
    let wanted = match rows.min(dataset.len()) {
        0 => 0,
        rows => wanted(rows, mean_bytes(dataset)),
    };
    let bytes = if configured > 0 {
        configured
    } else {
        let of_budget = config.memory_budget.map_or(u64::MAX, |budget| budget / (2 * PART));
        LEAST.max(wanted).min(of_budget).min(memory_bytes() / PART)
    };
    let note = (bytes < wanted).then_some(LoaderNote::ShortReadAhead { bytes, wanted });
    (bytes.max(1), note.or_else(|| full_shuffle(dataset, config, bytes)))
}

/// The rows of a shuffle's window that one of `world` ranks has; 0 without a window.
pub(super) fn window_rows(shuffle: Shuffle, world: u64, samples_of: impl Fn(Blocks) -> u64) -> u64 {
    match shuffle {
        Shuffle::None | Shuffle::Full => 0,
        Shuffle::Block { blocks, window } => samples_of(blocks).saturating_mul(window) / world,
        Shuffle::Lanes { lanes, blocks, window, .. } => {
            lanes.div_ceil(world).saturating_mul(samples_of(blocks)).saturating_mul(window)
        }
    }
}

/// The bytes to read ahead for a window of `rows`.
pub(super) fn wanted(rows: u64, mean_bytes: u64) -> u64 {
    rows.saturating_mul(mean_bytes).saturating_mul(WINDOWS)
}

/// The samples of a block, on average.
fn samples_of(blocks: Blocks, dataset: &Dataset) -> u64 {
    match blocks {
        Blocks::Samples(samples) => samples,
        Blocks::Source => {
            let ends = dataset.shards().iter().filter_map(|source| source.blocks()?.ends().ok());
            let blocks: usize = ends.map(|ends| ends.len()).sum();
            dataset.len().div_ceil((blocks as u64).max(1))
        }
    }
}

/// The note on a full shuffle, if neighbours are rarely read ahead together and blocks would change
/// that: samples of a folder are objects of their own.
fn full_shuffle(dataset: &Dataset, config: &LoaderConfig, bytes: u64) -> Option<LoaderNote> {
    let Sampler { samples: Samples::All, shuffle: Shuffle::Full, repeat: 1 } = config.sampler
    else {
        return None;
    };
    let sources = dataset.shards().iter().map(|source| &**source);
    let in_objects = sources.filter(|source| has_neighbours(*source));
    let count: u64 = in_objects.map(SampleSource::sample_count).sum();
    let is_sparse = count.saturating_mul(mean_bytes(dataset)) / SPARSE > bytes;
    let requests = count.div_ceil(u64::from(config.shard.world.max(1)));
    is_sparse.then_some(LoaderNote::FullShuffle { requests })
}

/// The memory that this process may use, as far as the system says.
fn memory_bytes() -> u64 {
    let of_machine = fs::read_to_string("/proc/meminfo").ok();
    let of_machine = of_machine.and_then(|text| {
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let of_group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let of_group = of_group.and_then(|text| text.trim().parse().ok());
    of_machine.unwrap_or(u64::MAX).min(of_group.unwrap_or(u64::MAX))
}
