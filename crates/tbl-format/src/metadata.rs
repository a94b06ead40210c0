//! The metadata section of a version 2 file: blocks back to back, in the order they were added.
//!
//! A sample can have several blocks and their order is free. The section itself has no checksum;
//! see [`extension`](crate::extension) for the blocks that add one.

use core::fmt;
use core::iter::FusedIterator;
use core::mem::size_of;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::FormatError;

/// The 16 bytes in front of a block's data.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct BlockHeader {
    sample_index: U64,
    data_bytes: U32,
    kind: U16,
    reserved: [u8; 2],
}

const _: () = assert!(size_of::<BlockHeader>() == BlockHeader::SIZE);

impl BlockHeader {
    /// The header's size in bytes.
    pub const SIZE: usize = 16;
    /// The sample index of a block that describes the whole file. No sample has this number, so
    /// the original's reader never returns such a block.
    pub const WHOLE_FILE: u64 = u64::MAX;

    /// The header of a block of `data_bytes` bytes.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] past 32 bits.
    pub fn new(
        sample_index: u64,
        kind: MetadataType,
        data_bytes: u64,
    ) -> Result<Self, FormatError> {
        let data_bytes = u32::try_from(data_bytes).map_err(|_| FormatError::TooLarge {
            what: "metadata block",
            bytes: data_bytes,
            limit: u64::from(u32::MAX),
        })?;
        Ok(Self {
            sample_index: U64::new(sample_index),
            data_bytes: U32::new(data_bytes),
            kind: U16::new(kind.code()),
            reserved: [0; 2],
        })
    }

    /// Takes the header at the front of `bytes`.
    ///
    /// # Errors
    /// [`FormatError::Truncated`].
    pub fn parse(bytes: &[u8]) -> Result<&Self, FormatError> {
        let (header, _) = Self::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
            what: "metadata block header",
            need: Self::SIZE as u64,
            have: bytes.len() as u64,
        })?;
        Ok(header)
    }

    /// The header as it stands in a file.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        zerocopy::transmute!(*self)
    }

    /// The sample that the block describes, or [`WHOLE_FILE`](Self::WHOLE_FILE).
    pub fn sample_index(&self) -> u64 {
        self.sample_index.get()
    }

    /// The size of the data after the header.
    pub fn data_bytes(&self) -> u32 {
        self.data_bytes.get()
    }

    /// The encoding of the data.
    pub fn kind(&self) -> MetadataType {
        MetadataType::from_code(self.kind.get())
    }
}

/// The encoding of a metadata block's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetadataType {
    /// No metadata (0).
    None,
    /// JSON text (1).
    Json,
    /// Protocol buffers (2).
    Protobuf,
    /// `MessagePack` (3).
    MsgPack,
    /// Anything else (255).
    Custom,
    /// A code this version does not know; passed through.
    Other(u16),
}

impl MetadataType {
    /// The type that `code` stands for.
    pub const fn from_code(code: u16) -> Self {
        match code {
            0 => Self::None,
            1 => Self::Json,
            2 => Self::Protobuf,
            3 => Self::MsgPack,
            255 => Self::Custom,
            other => Self::Other(other),
        }
    }

    /// The code that block headers store.
    pub const fn code(self) -> u16 {
        match self {
            Self::None => 0,
            Self::Json => 1,
            Self::Protobuf => 2,
            Self::MsgPack => 3,
            Self::Custom => 255,
            Self::Other(code) => code,
        }
    }

    /// The type with this name: the reverse of [`Display`](fmt::Display).
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "none" => Self::None,
            "json" => Self::Json,
            "protobuf" => Self::Protobuf,
            "msgpack" => Self::MsgPack,
            "custom" => Self::Custom,
            other => Self::from_code(other.strip_prefix("type_")?.parse().ok()?),
        })
    }
}

/// `json`, `protobuf`, `msgpack`, `custom`, `none`, or `type_7` for an unknown code.
impl fmt::Display for MetadataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Json => "json",
            Self::Protobuf => "protobuf",
            Self::MsgPack => "msgpack",
            Self::Custom => "custom",
            Self::Other(code) => return write!(f, "type_{code}"),
        })
    }
}

/// One metadata block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The offset of the block's header in the section.
    pub offset: u64,
    /// The sample it describes, or [`BlockHeader::WHOLE_FILE`].
    pub sample_index: u64,
    /// The encoding of the data.
    pub kind: MetadataType,
    /// The data.
    pub data: &'a [u8],
}

/// Walks the blocks of a metadata section. After an error it ends.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    rest: &'a [u8],
    offset: u64,
}

impl<'a> Blocks<'a> {
    /// The blocks of `section`.
    pub fn new(section: &'a [u8]) -> Self {
        Self { rest: section, offset: 0 }
    }

    /// The offset of the next block in the section.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn take(&mut self) -> Result<Block<'a>, FormatError> {
        let header = BlockHeader::parse(self.rest)?;
        let need = BlockHeader::SIZE as u64 + u64::from(header.data_bytes());
        let (block, rest) = usize::try_from(need)
            .ok()
            .and_then(|bytes| self.rest.split_at_checked(bytes))
            .ok_or(FormatError::Truncated {
                what: "metadata block",
                need,
                have: self.rest.len() as u64,
            })?;
        let data = block.get(BlockHeader::SIZE..).unwrap_or_default();
        let block = Block {
            offset: self.offset,
            sample_index: header.sample_index(),
            kind: header.kind(),
            data,
        };
        self.rest = rest;
        self.offset += need;
        Ok(block)
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<Block<'a>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let block = self.take();
        if block.is_err() {
            self.rest = &[];
        }
        Some(block)
    }
}

impl FusedIterator for Blocks<'_> {}
