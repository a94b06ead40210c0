//! The places of samples in objects of stores, as far as their bytes can be requested in the
//! background. No object is opened for them.

use std::ops::Range;

use tbl_io::{SampleSource, StoredSamples};

use crate::dataset::Dataset;

/// Samples that are asked for their size.
const ASKED: u64 = 64;

/// The samples of a source, if they can be requested in the background.
pub(crate) fn requested_samples(source: &dyn SampleSource) -> Option<&dyn StoredSamples> {
    source.stored_samples().filter(|samples| samples.in_background())
}

/// Whether samples of a source lie side by side in one object, so that they can come together.
pub(crate) fn has_neighbours(source: &dyn SampleSource) -> bool {
    requested_samples(source).is_some_and(|samples| samples.source().is_some())
}

/// Whether a source is read with credentials, by its first sample.
pub(crate) fn is_secret(source: &dyn SampleSource) -> bool {
    let Some(samples) = source.stored_samples() else { return false };
    match samples.source() {
        Some(object) => object.is_secret(),
        None => samples.stored(0).ok().flatten().is_some_and(|stored| stored.source.is_secret()),
    }
}

/// The place of a sample: in the object that has all samples of its source, or the whole of its own.
pub(crate) fn requested_range(source: &dyn SampleSource, index: u64) -> Option<Range<u64>> {
    let samples = requested_samples(source)?;
    let Some(object) = samples.source() else { return Some(0..source.facts(index).ok()?.bytes) };
    let stored = samples.stored(index).ok()??;
    let end = stored.offset.checked_add(stored.len)?;
    // An index that is wrong is the worker's to find.
    (end <= object.len()).then_some(stored.offset..end)
}

/// The mean size of samples, by some that are evenly spaced.
pub(crate) fn mean_bytes(dataset: &Dataset) -> u64 {
    let asked = ASKED.min(dataset.len()).max(1);
    let size = |number: u64| {
        let sample = u128::from(number) * u128::from(dataset.len()) / u128::from(asked);
        let (object, local) = dataset.place(u64::try_from(sample).ok()?).ok()?;
        let source = dataset.shards().get(object)?;
        let range = requested_range(&**source, local)?;
        Some(range.end - range.start)
    };
    let sizes: Vec<u64> = (0..asked).filter_map(size).collect();
    let sum = sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
    sum / (sizes.len() as u64).max(1)
}
