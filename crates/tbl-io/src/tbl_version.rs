//! The two versions of TBL, and the sizes in which they differ.

use tbl_format::{FormatError, v1, v2};

/// A version of the TBL format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TblVersion {
    /// Version 1: no checksums, names, labels or dimensions.
    V1,
    /// Version 2.
    V2,
}

impl TblVersion {
    pub(crate) fn header_bytes(self) -> u64 {
        match self {
            Self::V1 => v1::FileHeader::SIZE as u64,
            Self::V2 => v2::FileHeader::SIZE as u64,
        }
    }

    pub(crate) fn entry_bytes(self) -> usize {
        match self {
            Self::V1 => v1::IndexEntry::SIZE,
            Self::V2 => v2::IndexEntry::SIZE,
        }
    }

    /// The most samples that a file should have.
    pub(crate) fn max_samples(self) -> u64 {
        match self {
            Self::V1 => v1::FileHeader::MAX_SAMPLES,
            Self::V2 => v2::FileHeader::MAX_SAMPLES,
        }
    }

    /// The end of the index of `sample_count` samples, if a file may have this many.
    pub(crate) fn index_end(self, sample_count: u64) -> Result<u64, FormatError> {
        let limit = self.max_samples();
        if sample_count > limit {
            return Err(FormatError::TooManySamples { sample_count, limit });
        }
        // The limit keeps this below 2^32.
        Ok(self.header_bytes() + sample_count * self.entry_bytes() as u64)
    }
}
