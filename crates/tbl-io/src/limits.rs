//! Limits that a reader checks before it allocates.

use crate::error::ReadError;
use crate::location::Location;
use crate::source::Source;

/// Upper bounds for single allocations, against files that claim absurd sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadLimits {
    /// Largest sample or field, uncompressed, and most metadata of a sample or file. 1 GiB: far
    /// above any photograph, and what a loader with a few workers can still hold.
    pub sample_bytes: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { sample_bytes: 1 << 30 }
    }
}

impl ReadLimits {
    /// A size over one reader's limit is an error there, so it must not come from another's cache.
    pub(crate) fn push_id(&self, id: &mut Vec<u8>) {
        id.extend_from_slice(&self.sample_bytes.to_le_bytes());
    }

    /// Replaces `bytes` with a whole file, if it has no more bytes than a sample may.
    pub(crate) fn read_whole(&self, source: &Source, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.check_sample_bytes(source.location(), source.len())?;
        source.read_range_into(0, source.len(), bytes)
    }

    pub(crate) fn check_sample_bytes(
        &self,
        location: &Location,
        need: u64,
    ) -> Result<(), ReadError> {
        if need <= self.sample_bytes {
            return Ok(());
        }
        let location = location.clone();
        let limit = self.sample_bytes;
        Err(ReadError::Limit { location, what: "sample bytes", limit, need })
    }
}
