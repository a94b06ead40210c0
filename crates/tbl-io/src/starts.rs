//! The samples of several sources as one sequence.

use crate::convert::ConvertError;
use crate::sample::SampleSource;

/// The number of each source's first sample, counted over all sources.
#[derive(Clone, Debug)]
pub(crate) struct Starts {
    of_sources: Vec<u64>,
    pub(crate) sample_count: u64,
}

impl Starts {
    /// # Errors
    /// [`ConvertError::TooManySamples`] past 64 bits.
    pub(crate) fn new<S: AsRef<dyn SampleSource>>(sources: &[S]) -> Result<Self, ConvertError> {
        let mut of_sources = Vec::with_capacity(sources.len());
        let mut sample_count = 0_u64;
        for source in sources {
            of_sources.push(sample_count);
            sample_count = sample_count
                .checked_add(source.as_ref().sample_count())
                .ok_or(ConvertError::TooManySamples { sample_count })?;
        }
        Ok(Self { of_sources, sample_count })
    }

    /// The number of a source's first sample.
    pub(crate) fn of_source(&self, source: usize) -> u64 {
        self.of_sources.get(source).copied().unwrap_or(0)
    }

    /// The source of a sample, and the sample's number there.
    pub(crate) fn place(&self, sample: u64) -> (usize, u64) {
        // The last source that starts at or before it; empty sources start where the next does.
        let source = self.of_sources.partition_point(|&start| start <= sample).saturating_sub(1);
        (source, sample.saturating_sub(self.of_source(source)))
    }
}
