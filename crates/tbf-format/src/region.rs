//! The parts of a segment, and which dialect of the format it is written in.

use core::fmt;

use crate::header::Compression;

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Region {
    /// The first 128 bytes.
    Header,
    /// The five columns.
    Nodes,
    /// One vector for each node.
    Embeddings,
    /// Row pointers and edge entries, and the same transposed where there is a reverse index.
    Edges,
    /// The filter over node ids.
    Bloom,
    /// One text for each node.
    Strings,
    /// The trees over ids and timestamps.
    Index,
    /// Lengths, checksums, compression and encryption of the other regions.
    Footer,
}

impl Region {
    /// The regions that hold data, in the order in which they are written.
    pub const DATA: [Self; 6] =
        [Self::Nodes, Self::Embeddings, Self::Edges, Self::Bloom, Self::Strings, Self::Index];

    /// The region's number in a footer; `None` for header and footer themselves.
    pub const fn code(self) -> Option<u8> {
        match self {
            Self::Nodes => Some(0),
            Self::Embeddings => Some(1),
            Self::Edges => Some(2),
            Self::Bloom => Some(3),
            Self::Strings => Some(4),
            Self::Index => Some(5),
            Self::Header | Self::Footer => None,
        }
    }

    /// The region that `code` stands for in a footer.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::DATA.get(usize::from(code)).copied()
    }

    /// The region's place in a list of those that hold data.
    pub(crate) fn slot(self) -> Option<usize> {
        self.code().map(usize::from)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::Nodes => "node region",
            Self::Embeddings => "embedding region",
            Self::Edges => "edge region",
            Self::Bloom => "bloom filter",
            Self::Strings => "string table",
            Self::Index => "index",
            Self::Footer => "footer",
        })
    }
}

/// The storage of a region in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// The offset of its start.
    pub offset: u64,
    /// Its bytes there.
    pub stored_bytes: u64,
    /// Its bytes without compression.
    pub bytes: u64,
    /// The compression.
    pub compression: Compression,
    /// Whether it is encrypted.
    pub is_encrypted: bool,
}

/// The writer of a segment, as its version field tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// The published format: the major version comes first, and the header has a checksum.
    Published,
    /// TALA's own writer: the minor version comes first, and checksum and flags are zero.
    Reference,
}

impl Dialect {
    /// The version field of the published dialect.
    pub(crate) const PUBLISHED_VERSION: [u8; 4] = [1, 0, 0, 0];

    /// The dialect whose version 1.0 has these four bytes.
    pub(crate) const fn from_version(version: [u8; 4]) -> Option<Self> {
        match version {
            Self::PUBLISHED_VERSION => Some(Self::Published),
            [0, 0, 1, 0] => Some(Self::Reference),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_regions_count_from_zero() {
        for (code, region) in (0u8..).zip(Region::DATA) {
            assert_eq!(region.code(), Some(code));
            assert_eq!(Region::from_code(code), Some(region));
        }
        assert_eq!(Region::from_code(6), None);
    }
}
