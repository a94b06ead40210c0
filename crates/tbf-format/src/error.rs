//! The errors of the bytes of a segment.

use crate::region::Region;

/// The reason why bytes are not a segment, or not one that can be read this way.
///
/// Offsets count from the first byte of the named region, unless the field says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum FormatError {
    /// A region ends before its contents do.
    #[error("{region} needs {need} bytes, found {have}")]
    Truncated { region: Region, need: u64, have: u64 },
    /// A region that starts with a magic starts with something else.
    #[error("magic of the {region} is {found:02x?}, expected {expected:02x?}")]
    BadMagic { region: Region, found: [u8; 4], expected: [u8; 4] },
    /// The version field is neither 1.0 nor the value that the reference's writer stores for 1.0.
    #[error("version field is {found:02x?}, expected 01 00 00 00 or 00 00 01 00")]
    BadVersion { found: [u8; 4] },
    /// A footer of a later version.
    #[error("footer has version {found}, expected at most {known}")]
    FooterVersion { found: u16, known: u16 },
    /// The header's checksum does not match its bytes.
    #[error("header checksum is {stored:08x}, the bytes give {computed:08x}")]
    HeaderChecksum {
        stored: u32,
        /// CRC-32C of the first 104 bytes.
        computed: u32,
    },
    /// A region's checksum does not match its bytes.
    #[error("checksum of the {region} is {stored:08x}, the bytes give {computed:08x}")]
    RegionChecksum { region: Region, stored: u32, computed: u32 },
    /// A byte that is reserved, or pads, is not zero. In the gap after a region the offset goes
    /// past the region's end.
    #[error("byte {offset} of the {region} is reserved or padding and not zero")]
    NotZero { region: Region, offset: u64 },
    /// A code that this version gives no meaning.
    #[error("{field} is {found}, which has no meaning")]
    UnknownCode { field: &'static str, found: u64 },
    /// A region does not start at a multiple of 64.
    #[error("{region} starts at {offset}, expected a multiple of 64")]
    Misaligned { region: Region, offset: u64 },
    /// A region reaches beyond the end of the segment.
    #[error("{region} at {offset} of {bytes} bytes reaches beyond the end at {segment_bytes}")]
    BeyondEnd { region: Region, offset: u64, bytes: u64, segment_bytes: u64 },
    /// Two regions share bytes.
    #[error("{second} at {offset} starts before the end of the {first}")]
    Overlap {
        first: Region,
        /// The one that starts inside it.
        second: Region,
        offset: u64,
    },
    /// A count that no segment can have.
    #[error("{count} {what} are over the limit of {limit}")]
    TooMany { what: &'static str, count: u64, limit: u64 },
    /// Two places state the same thing differently.
    #[error("{what} is stated as {stated}, but is {found}")]
    Contradiction { what: &'static str, stated: u64, found: u64 },
    /// A row's edges end before they start, or after the last edge.
    #[error("invalid edge range {start}..{end} of row {row}: the segment has {edge_count} edges")]
    RowPointers { row: u64, start: u64, end: u64, edge_count: u64 },
    /// An edge leads to a node that is not there.
    #[error("edge {edge} leads to node {target} of {node_count}")]
    EdgeTarget { edge: u64, target: u32, node_count: u64 },
    /// The reverse index does not hold the edges, transposed.
    #[error("reverse edge {edge} is not an edge")]
    ReverseEdge { edge: u64 },
    /// A node's id is not in the filter, so that nobody would find it.
    #[error("the bloom filter lacks the id of row {row}")]
    NotInBloom { row: u64 },
    /// A text ends before it starts, or after the last byte of the table.
    #[error("text of row {row} is {start}..{end} of {bytes} bytes")]
    StringExtent { row: u64, start: u64, end: u64, bytes: u64 },
    /// A text that is not UTF-8.
    #[error("text of row {row} is not UTF-8")]
    StringUtf8 { row: u64 },
    /// An entry of an index is not what the columns say, or not in order.
    #[error("entry {entry} of the index over {key} is out of order or differs from its column")]
    IndexEntry {
        key: &'static str,
        /// The entry's place in the order of keys.
        entry: u64,
    },
    /// The caller asked for a row that the segment does not have.
    #[error("row {row} does not exist, the segment has {node_count}")]
    NoRow { row: u64, node_count: u64 },
    /// The segment has no such region.
    #[error("the segment has no {region}")]
    Absent { region: Region },
    /// The region is compressed or encrypted and has not been unpacked.
    #[error("{region} is compressed or encrypted and has not been unpacked")]
    Packed { region: Region },
    /// The region takes more memory than the caller allows.
    #[error("{region} takes {need} bytes, {limit} are allowed")]
    Limit { region: Region, need: u64, limit: u64 },
    /// The region is packed in a way that this build cannot undo.
    #[error("{region} needs the feature `{feature}`, which this build lacks")]
    Unsupported { region: Region, feature: &'static str },
    /// A block of a compressed region that cannot be decoded to its size.
    #[error("block {block} of the {region}, at {offset} of its stored bytes, is damaged")]
    Block { region: Region, block: u64, offset: u64 },
    /// The region is encrypted and no key was given.
    #[error("{region} is encrypted and needs a key")]
    KeyNeeded { region: Region },
    /// The region is not what was encrypted with this key in this segment.
    #[error("{region} cannot be decrypted: the key is wrong or the bytes are damaged")]
    Decryption { region: Region },
    /// The segment was not written to its end. Recovery discards it.
    #[error("the segment was not written to its end")]
    Partial,
}

impl FormatError {
    /// The region at fault, where it is one. Other offsets than those of regions themselves count
    /// from its first byte.
    pub fn region(&self) -> Option<Region> {
        match *self {
            Self::Truncated { region, .. }
            | Self::BadMagic { region, .. }
            | Self::RegionChecksum { region, .. }
            | Self::NotZero { region, .. }
            | Self::Misaligned { region, .. }
            | Self::BeyondEnd { region, .. }
            | Self::Absent { region }
            | Self::Packed { region }
            | Self::Limit { region, .. }
            | Self::Unsupported { region, .. }
            | Self::Block { region, .. }
            | Self::KeyNeeded { region }
            | Self::Decryption { region }
            | Self::Overlap { second: region, .. } => Some(region),
            Self::BadVersion { .. } | Self::HeaderChecksum { .. } => Some(Region::Header),
            Self::FooterVersion { .. } => Some(Region::Footer),
            Self::RowPointers { .. } | Self::EdgeTarget { .. } | Self::ReverseEdge { .. } => {
                Some(Region::Edges)
            }
            Self::NotInBloom { .. } => Some(Region::Bloom),
            Self::StringExtent { .. } | Self::StringUtf8 { .. } => Some(Region::Strings),
            Self::IndexEntry { .. } => Some(Region::Index),
            Self::UnknownCode { .. }
            | Self::TooMany { .. }
            | Self::Contradiction { .. }
            | Self::NoRow { .. }
            | Self::Partial => None,
        }
    }
}
