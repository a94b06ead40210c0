//! Headers and index entries of both versions as one.

use tbl_format::v2::{Codec, EntryFlags, FileFlags};
use tbl_format::{FormatError, SampleFormat, v1, v2};

use crate::tbl_version::TblVersion;

/// The part of either header that is needed after opening.
#[derive(Clone, Copy, Debug)]
pub(super) enum Header {
    V1 { custom: Option<v1::CustomMetadata> },
    V2 { flags: FileFlags },
}

/// An index entry of either version, as far as it is consistent in itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexEntry {
    pub(super) offset: u64,
    pub(super) stored_bytes: u32,
    pub(super) bytes: u32,
    pub(super) width: u16,
    pub(super) height: u16,
    pub(super) format: SampleFormat,
    pub(super) flags: EntryFlags,
    /// `None` for a sample that is stored as it is.
    pub(super) codec: Option<Codec>,
    /// `None` where the file has no checksums.
    pub(super) checksum: Option<u16>,
}

impl Header {
    pub(super) fn version(self) -> TblVersion {
        match self {
            Self::V1 { .. } => TblVersion::V1,
            Self::V2 { .. } => TblVersion::V2,
        }
    }

    pub(super) fn flags(self) -> FileFlags {
        match self {
            Self::V1 { .. } => FileFlags::NONE,
            Self::V2 { flags } => flags,
        }
    }

    pub(super) fn parse_entry(self, bytes: &[u8]) -> Result<IndexEntry, FormatError> {
        match self {
            Self::V1 { .. } => {
                let entry = v1::IndexEntry::parse(bytes)?;
                Ok(IndexEntry {
                    offset: entry.offset(),
                    stored_bytes: entry.stored_bytes(),
                    bytes: entry.stored_bytes(),
                    width: 0,
                    height: 0,
                    format: entry.checked_format()?,
                    flags: EntryFlags::NONE,
                    codec: None,
                    checksum: None,
                })
            }
            Self::V2 { flags } => {
                let entry = v2::IndexEntry::parse(bytes)?;
                let has_checksums = flags.contains(FileFlags::HAS_CHECKSUMS);
                Ok(IndexEntry {
                    offset: entry.offset(),
                    stored_bytes: entry.stored_bytes(),
                    bytes: entry.sample_bytes()?,
                    width: entry.width(),
                    height: entry.height(),
                    format: entry.format(),
                    flags: entry.flags(),
                    codec: entry.codec()?,
                    checksum: has_checksums.then_some(entry.checksum()),
                })
            }
        }
    }
}

impl IndexEntry {
    pub(super) fn is_compressed(&self) -> bool {
        self.codec.is_some()
    }

    pub(super) fn has_metadata(&self) -> bool {
        self.flags.contains(EntryFlags::HAS_METADATA)
    }
}
