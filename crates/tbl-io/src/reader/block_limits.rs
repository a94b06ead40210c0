//! The number of metadata blocks that readers accept, and that writers keep to.

/// Whole-file blocks, and blocks of samples, that a section may have besides those allowed for each
/// sample. A section of empty blocks costs 16 bytes each to store and as much memory to map.
pub(super) const SPARE_BLOCKS: u64 = 1024;

/// Blocks allowed for each sample on average: one with key and label, and one per field.
pub(super) const BLOCKS_PER_SAMPLE: u64 = 256;

/// Places allowed for each sample on average where blocks of it stand side by side.
pub(super) const RUNS_PER_SAMPLE: u64 = 8;

/// Blocks that readers accept of a file, those at its front left out.
pub(crate) fn max_blocks(sample_count: u64) -> u64 {
    sample_count.saturating_mul(BLOCKS_PER_SAMPLE).saturating_add(SPARE_BLOCKS)
}

/// Blocks of the whole file that a writer may add to its own.
pub(crate) fn max_file_blocks(sample_count: u64) -> u64 {
    (sample_count / 2).saturating_add(SPARE_BLOCKS / 2)
}

/// Blocks of samples that a writer may add to those that samples come with.
pub(crate) fn max_late_blocks(sample_count: u64) -> u64 {
    sample_count.saturating_mul(BLOCKS_PER_SAMPLE / 2).saturating_add(SPARE_BLOCKS / 2)
}

/// Places where a writer may go from the added blocks of one sample to those of another. Blocks
/// that samples come with make one more for each sample.
pub(crate) fn max_late_runs(sample_count: u64) -> u64 {
    sample_count.saturating_mul(RUNS_PER_SAMPLE - 1).saturating_add(SPARE_BLOCKS / 2)
}
