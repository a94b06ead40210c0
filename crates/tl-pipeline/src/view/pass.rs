//! A pass over the samples of a view on several threads.

use tl_handoff::sync::{AtomicU64, Ordering, available_parallelism, on_threads};

use super::meta::{Reads, SampleMeta};
use super::selection::{Collector, Selection};
use crate::dataset::Dataset;
use crate::error::PipelineError;

/// Samples that one thread looks at before it takes others.
const CHUNK_SAMPLES: u64 = 256;

/// The most threads of a pass.
const MAX_THREADS: usize = 8;

/// The samples of `selection` for which `is_wanted` returns true.
///
/// # Errors
/// That of the first sample which has one.
pub(super) fn filter(
    dataset: &Dataset,
    selection: &Selection,
    reads: &Reads,
    is_wanted: impl Fn(&SampleMeta<'_>) -> Result<bool, PipelineError> + Sync,
) -> Result<Selection, PipelineError> {
    let chunk_count = selection.len().div_ceil(CHUNK_SAMPLES);
    let next = AtomicU64::new(0);
    let look_at = |chunk: u64| {
        let first = chunk * CHUNK_SAMPLES;
        let mut wanted = Vec::new();
        for place in first..selection.len().min(first + CHUNK_SAMPLES) {
            let Some(sample) = selection.sample(place) else { break };
            if is_wanted(&SampleMeta::new(dataset, sample, reads)?)? {
                wanted.push(sample);
            }
        }
        Ok(wanted)
    };
    let work = || {
        let mut chunks = Vec::new();
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunk_count {
                return chunks;
            }
            let wanted: Result<Vec<u64>, PipelineError> = look_at(chunk);
            if wanted.is_err() {
                // Chunks before this one were taken already, so the first error is among them.
                next.fetch_max(chunk_count, Ordering::Relaxed);
            }
            chunks.push((chunk, wanted));
        }
    };
    let threads = usize::try_from(chunk_count).unwrap_or(usize::MAX);
    let threads = threads.min(available_parallelism()).clamp(1, MAX_THREADS);
    let mut chunks: Vec<_> = on_threads(threads, work).into_iter().flatten().collect();
    chunks.sort_by_key(|(chunk, _)| *chunk);
    let mut collector = Collector::default();
    for (_, wanted) in chunks {
        wanted?.into_iter().for_each(|sample| collector.add(sample));
    }
    Ok(collector.finish())
}
