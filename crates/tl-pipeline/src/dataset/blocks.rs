//! The blocks of a data set's sources.

use crate::dataset::Dataset;
use crate::error::{PipelineError, SamplerError};
use crate::order::Shuffle;

impl Dataset {
    /// For each block of the sources in order, the number of the sample after its last one.
    pub(crate) fn block_ends(&self, shuffle: Shuffle) -> Result<Vec<u64>, PipelineError> {
        let mut ends = Vec::new();
        for (source, &start) in self.shards.iter().zip(&self.starts) {
            let count = source.sample_count();
            if count == 0 {
                continue;
            }
            let Some(blocks) = source.blocks() else {
                let location = source.location().clone();
                return Err(SamplerError::NoBlocks { location, shuffle }.into());
            };
            // Whatever a source says, its blocks are all of its samples.
            let mut last = 0;
            for end in blocks.ends()?.into_iter().chain([count]) {
                if end > last && end <= count {
                    ends.push(start + end);
                    last = end;
                }
            }
        }
        Ok(ends)
    }
}
