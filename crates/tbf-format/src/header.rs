//! The first 128 bytes of a segment: counts, offsets of the regions, and a checksum.

use core::mem::{offset_of, size_of};
use core::ops::BitOr;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::crc32c;
use crate::embedding::Dtype;
use crate::error::FormatError;
use crate::region::{Dialect, Region};

/// The header as it stands in a file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct FileHeader {
    magic: [u8; 4],
    version: [u8; 4],
    segment_id: U64,
    created_at: U64,
    node_count: U64,
    edge_count: U64,
    embedding_dim: U32,
    embedding_dtype: u8,
    compression: u8,
    flags: U16,
    node_region_offset: U64,
    embed_region_offset: U64,
    edge_region_offset: U64,
    string_table_offset: U64,
    bloom_offset: U64,
    index_offset: U64,
    footer_offset: U64,
    checksum: U32,
    reserved: [u8; 20],
}

const _: () = assert!(size_of::<FileHeader>() == FileHeader::SIZE);
const _: () = assert!(offset_of!(FileHeader, node_region_offset) == 48);
const _: () = assert!(offset_of!(FileHeader, checksum) == FileHeader::CHECKED_BYTES);

impl FileHeader {
    /// The header's size in bytes.
    pub const SIZE: usize = 128;
    /// The first four bytes of a segment.
    pub const MAGIC: [u8; 4] = *b"TALB";
    /// How many bytes from the first one on the checksum covers. The same bytes are the associated
    /// data of encrypted regions.
    pub const CHECKED_BYTES: usize = 104;

    /// Reads the header at the front of `bytes`, and checks everything about it that takes no
    /// other part of the segment.
    ///
    /// # Errors
    /// [`FormatError::Truncated`], [`FormatError::BadMagic`], [`FormatError::BadVersion`],
    /// [`FormatError::HeaderChecksum`], [`FormatError::NotZero`] for a reserved byte, and
    /// [`FormatError::UnknownCode`] for an embedding type, a compression or a flag that this
    /// version does not know.
    pub fn parse(bytes: &[u8]) -> Result<&Self, FormatError> {
        let (header, _) = Self::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
            region: Region::Header,
            need: Self::SIZE as u64,
            have: bytes.len() as u64,
        })?;
        if header.magic != Self::MAGIC {
            return Err(FormatError::BadMagic {
                region: Region::Header,
                found: header.magic,
                expected: Self::MAGIC,
            });
        }
        let dialect = Dialect::from_version(header.version)
            .ok_or(FormatError::BadVersion { found: header.version })?;
        let stored = header.checksum.get();
        let computed = header.computed_checksum();
        let absent = dialect == Dialect::Reference && stored == 0;
        if stored != computed && !absent {
            return Err(FormatError::HeaderChecksum { stored, computed });
        }
        header.check_codes(dialect)?;
        Ok(header)
    }

    /// A header with its checksum.
    pub(crate) fn new(fields: &Fields) -> Self {
        let offset = |region: Region| {
            let slot = region.slot().and_then(|slot| fields.offsets.get(slot));
            U64::new(slot.copied().unwrap_or(0))
        };
        let mut header = Self {
            magic: Self::MAGIC,
            version: Dialect::PUBLISHED_VERSION,
            segment_id: U64::new(fields.segment_id),
            created_at: U64::new(fields.created_at),
            node_count: U64::new(fields.node_count),
            edge_count: U64::new(fields.edge_count),
            embedding_dim: U32::new(fields.embedding_dim),
            embedding_dtype: fields.embedding_dtype.code(),
            compression: fields.compression.code(),
            flags: U16::new(fields.flags.bits()),
            node_region_offset: offset(Region::Nodes),
            embed_region_offset: offset(Region::Embeddings),
            edge_region_offset: offset(Region::Edges),
            string_table_offset: offset(Region::Strings),
            bloom_offset: offset(Region::Bloom),
            index_offset: offset(Region::Index),
            footer_offset: U64::new(fields.footer_offset),
            checksum: U32::new(0),
            reserved: [0; 20],
        };
        header.checksum = U32::new(header.computed_checksum());
        header
    }

    /// The header of the same segment while it is being written.
    #[cfg(feature = "std")]
    pub(crate) fn partial(&self) -> Self {
        let mut header = *self;
        header.flags = U16::new((self.flags() | Flags::IS_PARTIAL).bits());
        header.checksum = U32::new(header.computed_checksum());
        header
    }

    /// The header as it stands in a file.
    pub(crate) fn to_bytes(self) -> [u8; Self::SIZE] {
        zerocopy::transmute!(self)
    }

    fn check_codes(&self, dialect: Dialect) -> Result<(), FormatError> {
        if let Some(at) = self.reserved.iter().position(|&byte| byte != 0) {
            let offset = (offset_of!(Self, reserved) + at) as u64;
            return Err(FormatError::NotZero { region: Region::Header, offset });
        }
        let unknown = |field, found| FormatError::UnknownCode { field, found };
        Dtype::from_code(self.embedding_dtype)
            .ok_or(unknown("embedding_dtype", self.embedding_dtype.into()))?;
        Compression::from_code(self.compression)
            .ok_or(unknown("compression", self.compression.into()))?;
        let flags = self.flags.get();
        if dialect == Dialect::Published && flags & !Flags::KNOWN != 0 {
            return Err(unknown("flags", flags.into()));
        }
        Ok(())
    }

    fn computed_checksum(&self) -> u32 {
        crc32c(self.checked_bytes())
    }

    /// The bytes that the checksum covers.
    pub fn checked_bytes(&self) -> &[u8] {
        self.as_bytes().get(..Self::CHECKED_BYTES).unwrap_or_default()
    }

    /// The writer of the segment.
    pub fn dialect(&self) -> Dialect {
        Dialect::from_version(self.version).unwrap_or(Dialect::Published)
    }

    /// Whether the header has a checksum: always, but in files of the reference's writer.
    pub fn has_checksum(&self) -> bool {
        self.dialect() == Dialect::Published || self.checksum.get() != 0
    }

    /// The writer's number for the segment.
    pub fn segment_id(&self) -> u64 {
        self.segment_id.get()
    }

    /// The time of creation, in nanoseconds since 1970.
    pub fn created_at(&self) -> u64 {
        self.created_at.get()
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> u64 {
        self.node_count.get()
    }

    /// How many edges the writer counted. In files of the reference's writer that can be more than
    /// are stored.
    pub fn edge_count(&self) -> u64 {
        self.edge_count.get()
    }

    /// Components of each vector.
    pub fn embedding_dim(&self) -> u32 {
        self.embedding_dim.get()
    }

    /// The type of the stored vectors' components.
    pub fn embedding_dtype(&self) -> Dtype {
        Dtype::from_code(self.embedding_dtype).unwrap_or(Dtype::F32)
    }

    /// The compression of those regions that are compressed.
    pub fn compression(&self) -> Compression {
        Compression::from_code(self.compression).unwrap_or(Compression::None)
    }

    /// The flags. The reference's writer leaves them zero whatever the segment holds.
    pub fn flags(&self) -> Flags {
        Flags(self.flags.get())
    }

    /// Whether the segment has vectors: by its flag, or in files of the reference's writer by
    /// having nodes and components.
    pub fn has_embeddings(&self) -> bool {
        match self.dialect() {
            Dialect::Published => self.flags().contains(Flags::HAS_EMBEDDINGS),
            Dialect::Reference => self.node_count() > 0 && self.embedding_dim() > 0,
        }
    }

    /// Whether the edge region ends in a reverse index.
    pub fn has_reverse(&self) -> bool {
        self.dialect() == Dialect::Published && self.flags().contains(Flags::HAS_REVERSE)
    }

    /// The offset of a region in the segment; 0 for a region that is missing.
    pub fn offset(&self, region: Region) -> u64 {
        match region {
            Region::Header => 0,
            Region::Nodes => self.node_region_offset.get(),
            Region::Embeddings => self.embed_region_offset.get(),
            Region::Edges => self.edge_region_offset.get(),
            Region::Bloom => self.bloom_offset.get(),
            Region::Strings => self.string_table_offset.get(),
            Region::Index => self.index_offset.get(),
            Region::Footer => self.footer_offset.get(),
        }
    }
}

/// The fields of a segment that a writer knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub(crate) segment_id: u64,
    pub(crate) created_at: u64,
    pub(crate) node_count: u64,
    pub(crate) edge_count: u64,
    pub(crate) embedding_dim: u32,
    pub(crate) embedding_dtype: Dtype,
    pub(crate) compression: Compression,
    pub(crate) flags: Flags,
    /// The offsets of the regions that hold data, by their codes.
    pub(crate) offsets: [u64; Region::DATA.len()],
    pub(crate) footer_offset: u64,
}

/// The flags of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Some node has an outcome.
    pub const HAS_OUTCOMES: Self = Self(1);
    /// There are vectors.
    pub const HAS_EMBEDDINGS: Self = Self(1 << 1);
    /// The segment was made by merging others.
    pub const IS_COMPACTED: Self = Self(1 << 2);
    /// Regions are encrypted.
    pub const IS_ENCRYPTED: Self = Self(1 << 3);
    /// The segment was not written to its end.
    pub const IS_PARTIAL: Self = Self(1 << 4);
    /// The edge region ends in a reverse index. An addition to the published five.
    pub const HAS_REVERSE: Self = Self(1 << 5);

    const KNOWN: u16 = (1 << 6) - 1;

    /// Whether every flag of `other` is set here.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags as stored.
    pub const fn bits(self) -> u16 {
        self.0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The compression of a region's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all (0).
    #[default]
    None,
    /// LZ4 blocks (1).
    Lz4,
    /// Zstandard frames (2).
    Zstd,
}

impl Compression {
    /// The compression that `code` stands for.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            2 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The code in headers and footers.
    pub const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Lz4 => 1,
            Self::Zstd => 2,
        }
    }
}
