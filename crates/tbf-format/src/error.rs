//! What can be wrong with the bytes of a segment.

use crate::region::Region;

/// Why bytes are not a segment, or not one that can be read this way.
///
/// Offsets count from the first byte of the named region, unless the field says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// A region ends before its contents do.
    #[error("{region} needs {need} bytes, {have} are there")]
    Truncated {
        /// The region.
        region: Region,
        /// What it takes.
        need: u64,
        /// What is there.
        have: u64,
    },
    /// A region that starts with a magic starts with something else.
    #[error("magic of the {region} is {found:02x?}, expected {expected:02x?}")]
    BadMagic {
        /// Header or footer.
        region: Region,
        /// What is there.
        found: [u8; 4],
        /// The magic.
        expected: [u8; 4],
    },
    /// The version field is neither 1.0 nor what the reference's writer makes of it.
    #[error("version field is {found:02x?}, expected 01 00 00 00 or 00 00 01 00")]
    BadVersion {
        /// The four bytes.
        found: [u8; 4],
    },
    /// A footer of a later version.
    #[error("footer has version {found}, known up to {known}")]
    FooterVersion {
        /// As stored.
        found: u16,
        /// The latest known here.
        known: u16,
    },
    /// The header's checksum does not match its bytes.
    #[error("header checksum is {stored:08x}, the bytes give {computed:08x}")]
    HeaderChecksum {
        /// As stored.
        stored: u32,
        /// CRC-32C of the first 104 bytes.
        computed: u32,
    },
    /// A region's checksum does not match its bytes.
    #[error("checksum of the {region} is {stored:08x}, the bytes give {computed:08x}")]
    RegionChecksum {
        /// The region.
        region: Region,
        /// As stored.
        stored: u32,
        /// CRC-32C of the bytes.
        computed: u32,
    },
    /// A byte that is reserved, or pads, is not zero. In the gap behind a region the offset goes
    /// past the region's end.
    #[error("byte {offset} of the {region} is reserved or padding and not zero")]
    NotZero {
        /// The region.
        region: Region,
        /// The byte.
        offset: u64,
    },
    /// A code that this version gives no meaning.
    #[error("{field} is {found}, which has no meaning")]
    UnknownCode {
        /// The field.
        field: &'static str,
        /// As stored.
        found: u64,
    },
    /// A region does not start at a multiple of 64.
    #[error("{region} starts at {offset}, which is no multiple of 64")]
    Misaligned {
        /// The region.
        region: Region,
        /// From the segment's first byte.
        offset: u64,
    },
    /// A region reaches beyond the end of the segment.
    #[error("{region} at {offset} of {bytes} bytes reaches beyond the end at {segment_bytes}")]
    BeyondEnd {
        /// The region.
        region: Region,
        /// From the segment's first byte.
        offset: u64,
        /// Its size.
        bytes: u64,
        /// The segment's length.
        segment_bytes: u64,
    },
    /// Two regions share bytes.
    #[error("{second} at {offset} starts before the end of the {first}")]
    Overlap {
        /// The one that starts earlier.
        first: Region,
        /// The one that starts inside it.
        second: Region,
        /// Where the second starts, from the segment's first byte.
        offset: u64,
    },
    /// A count that no segment can have.
    #[error("{count} {what} are over the limit of {limit}")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// As stored.
        count: u64,
        /// The largest possible.
        limit: u64,
    },
    /// Two places state the same thing differently.
    #[error("{what} is stated as {stated}, but is {found}")]
    Contradiction {
        /// What they state.
        what: &'static str,
        /// The statement.
        stated: u64,
        /// What the rest of the segment says.
        found: u64,
    },
    /// A row's edges end before they start, or behind the last edge.
    #[error("edges of row {row} are {start}..{end} of {edge_count}")]
    RowPointers {
        /// The row.
        row: u64,
        /// Its row pointer.
        start: u64,
        /// The next row's.
        end: u64,
        /// How many edges are stored.
        edge_count: u64,
    },
    /// An edge leads to a node that is not there.
    #[error("edge {edge} leads to node {target} of {node_count}")]
    EdgeTarget {
        /// The edge's number.
        edge: u64,
        /// Where it leads.
        target: u32,
        /// How many nodes there are.
        node_count: u64,
    },
    /// The reverse index does not hold the edges, transposed.
    #[error("reverse edge {edge} is not an edge")]
    ReverseEdge {
        /// The reverse edge's number.
        edge: u64,
    },
    /// A node's id is not in the filter, so that nobody would find it.
    #[error("the bloom filter lacks the id of row {row}")]
    NotInBloom {
        /// The row.
        row: u64,
    },
    /// A text ends before it starts, or behind the last byte of the table.
    #[error("text of row {row} is {start}..{end} of {bytes} bytes")]
    StringExtent {
        /// The row.
        row: u64,
        /// Where it starts among the texts' bytes.
        start: u64,
        /// Where it ends.
        end: u64,
        /// How many bytes there are.
        bytes: u64,
    },
    /// A text that is not UTF-8.
    #[error("text of row {row} is not UTF-8")]
    StringUtf8 {
        /// The row.
        row: u64,
    },
    /// An entry of an index is not what the columns say, or not in order.
    #[error("entry {entry} of the index over {key} does not belong there")]
    IndexEntry {
        /// `id` or `timestamp`.
        key: &'static str,
        /// The entry's place in the order of keys.
        entry: u64,
    },
    /// A row was asked for that is not there. The caller's mistake, not the segment's.
    #[error("row {row} of {node_count} was asked for")]
    NoRow {
        /// The row.
        row: u64,
        /// How many there are.
        node_count: u64,
    },
    /// The segment has no such region.
    #[error("the segment has no {region}")]
    Absent {
        /// The region.
        region: Region,
    },
    /// The region is compressed or encrypted and has not been unpacked.
    #[error("{region} is compressed or encrypted and has not been unpacked")]
    Packed {
        /// The region.
        region: Region,
    },
    /// The region takes more memory than the caller allows.
    #[error("{region} takes {need} bytes, {limit} are allowed")]
    Limit {
        /// The region.
        region: Region,
        /// Its size.
        need: u64,
        /// The caller's limit.
        limit: u64,
    },
    /// The region is packed in a way that this build cannot undo.
    #[error("{region} takes the feature `{feature}`")]
    Unsupported {
        /// The region.
        region: Region,
        /// The crate's feature.
        feature: &'static str,
    },
    /// A block of a compressed region that cannot be decoded to its size.
    #[error("block {block} of the {region}, at {offset} of its stored bytes, is damaged")]
    Block {
        /// The region.
        region: Region,
        /// The block.
        block: u64,
        /// Where it starts.
        offset: u64,
    },
    /// The region is encrypted and no key was given.
    #[error("{region} is encrypted, and there is no key")]
    KeyNeeded {
        /// The region.
        region: Region,
    },
    /// The region is not what was encrypted with this key in this segment.
    #[error("{region} cannot be decrypted: another key, or other bytes")]
    Decryption {
        /// The region.
        region: Region,
    },
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
