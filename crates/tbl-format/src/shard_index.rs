//! Shard indexes (`.tlidx`): what opening many shards reads of them, in one file.
//!
//! A header of 64 bytes, a directory with the name, length and version of each shard, and a part
//! for each shard, which the reader of its container understands. `docs/shard-index.md` describes
//! the format.

mod part;

use alloc::vec::Vec;
use core::mem::{offset_of, size_of};
use core::ops::Range;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::crc32c;
use crate::error::FormatError;
use crate::path::check_name;

pub use part::{PartReader, push_number, push_signed, push_strings};

/// The first 64 bytes of a shard index.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    magic: [u8; 8],
    shard_count: U64,
    sample_count: U64,
    directory_bytes: U64,
    directory_crc32c: U32,
    reserved: [u8; 24],
    checksum: U32,
}

const _: () = assert!(size_of::<Header>() == Header::SIZE);
const _: () = assert!(offset_of!(Header, checksum) == 60);

impl Header {
    /// The header's size in bytes. The directory follows it.
    pub const SIZE: usize = 64;
    /// The first eight bytes; the last of them is the version.
    pub const MAGIC: [u8; 8] = *b"TLIDX\0\0\x01";

    /// A header, checksummed, for a directory of this many shards and samples.
    pub fn new(shard_count: u64, sample_count: u64, directory: &[u8]) -> Self {
        let mut header = Self {
            magic: Self::MAGIC,
            shard_count: U64::new(shard_count),
            sample_count: U64::new(sample_count),
            directory_bytes: U64::new(directory.len() as u64),
            directory_crc32c: U32::new(crc32c(directory)),
            reserved: [0; 24],
            checksum: U32::new(0),
        };
        header.checksum = U32::new(header.computed_checksum());
        header
    }

    /// Reads the header at the front of `bytes` and checks it.
    ///
    /// # Errors
    /// [`FormatError::Truncated`], [`FormatError::BadMagic`], [`FormatError::BadVersion`] or
    /// [`FormatError::HeaderChecksum`].
    pub fn parse(bytes: &[u8]) -> Result<&Self, FormatError> {
        let (header, _) = Self::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
            what: "header of a shard index",
            need: Self::SIZE as u64,
            have: bytes.len() as u64,
        })?;
        let first_four = |magic: [u8; 8]| [magic[0], magic[1], magic[2], magic[3]];
        if !is_shard_index(&header.magic) {
            let expected = first_four(Self::MAGIC);
            return Err(FormatError::BadMagic { found: first_four(header.magic), expected });
        }
        let version = |magic: [u8; 8]| u32::from_be_bytes([0, magic[5], magic[6], magic[7]]);
        if header.magic != Self::MAGIC {
            let expected = version(Self::MAGIC);
            return Err(FormatError::BadVersion { found: version(header.magic), expected });
        }
        let stored = header.checksum.get();
        let computed = header.computed_checksum();
        if stored != computed {
            return Err(FormatError::HeaderChecksum { stored, computed });
        }
        Ok(header)
    }

    /// CRC-32C of the bytes before the checksum.
    fn computed_checksum(&self) -> u32 {
        crc32c(&self.as_bytes()[..offset_of!(Self, checksum)])
    }

    /// The number of samples in all shards.
    pub fn sample_count(&self) -> u64 {
        self.sample_count.get()
    }

    /// The range of the directory in a file of `file_bytes` bytes.
    ///
    /// # Errors
    /// [`FormatError::BeyondEnd`].
    pub fn directory_range(&self, file_bytes: u64) -> Result<Range<u64>, FormatError> {
        let offset = Self::SIZE as u64;
        range("directory of shards", offset, self.directory_bytes.get(), file_bytes)
    }

    /// Reads the directory and checks it. Parts of shards are checked to lie in a file of
    /// `file_bytes` bytes, names to stay inside a folder.
    ///
    /// # Errors
    /// [`FormatError::Crc32c`], [`FormatError::Truncated`], [`FormatError::Count`],
    /// [`FormatError::BeyondEnd`], [`FormatError::UnsafeName`] and [`FormatError::Unreadable`].
    pub fn shards<'a>(
        &self,
        directory: &'a [u8],
        file_bytes: u64,
    ) -> Result<Vec<Shard<'a>>, FormatError> {
        let stored = self.directory_crc32c.get();
        let computed = crc32c(directory);
        if stored != computed {
            let what = "directory of shards";
            return Err(FormatError::Crc32c { what, stored, computed });
        }
        let mut shards = Vec::new();
        let mut rest = directory;
        while !rest.is_empty() {
            let (shard, after) = Shard::parse(rest, file_bytes)?;
            shards.push(shard);
            rest = after;
        }
        let count = |what, expected, found| {
            if expected == found {
                Ok(())
            } else {
                Err(FormatError::Count { what, expected, found })
            }
        };
        count("directory of shards", self.shard_count.get(), shards.len() as u64)?;
        let samples = shards.iter().fold(0_u64, |sum, shard| sum.saturating_add(shard.samples));
        count("list of shards", self.sample_count.get(), samples)?;
        Ok(shards)
    }

    /// The header as it stands in a file.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        zerocopy::transmute!(*self)
    }
}

/// Whether a file that starts with `bytes` is a shard index, of whatever version.
///
/// ```
/// assert!(tbl_format::shard_index::is_shard_index(b"TLIDX\0\0\x01..."));
/// assert!(!tbl_format::shard_index::is_shard_index(b"TLID"));
/// ```
pub fn is_shard_index(bytes: &[u8]) -> bool {
    bytes.starts_with(&Header::MAGIC[..5])
}

/// The containers whose shards have an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ShardKind {
    /// A TAR archive.
    Tar = 1,
    /// A TBL file.
    Tbl = 2,
    /// A folder of a store.
    Folder = 3,
    /// A file of a format that another reader has, such as Parquet.
    Format = 4,
}

/// The way in which a shard's version was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum VersionKind {
    /// There is none.
    Unknown = 0,
    /// The version of an object, which changes with its bytes.
    Strong = 1,
    /// The version of an object, which may stay the same when the bytes change.
    Weak = 2,
    /// The time of the last change of a local file.
    Modified = 3,
}

/// A shard as the directory describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard<'a> {
    /// Its container.
    pub kind: ShardKind,
    /// Its path from the folder of the shard index, with slashes.
    pub name: &'a [u8],
    /// Bytes of the file; 0 for a folder.
    pub bytes: u64,
    /// The way in which its version was found.
    pub version_kind: VersionKind,
    /// Its version.
    pub version: &'a [u8],
    /// How many samples it has.
    pub samples: u64,
    /// The place of its part in the shard index.
    pub part: Range<u64>,
    /// Bytes of the part when it is unpacked; an equal length says that it is stored as it is,
    /// another one that it is an LZ4 block.
    pub unpacked_bytes: u32,
    /// CRC-32C of the part as it is stored.
    pub part_crc32c: u32,
}

/// The fields of a [`Shard`] of fixed length. Name and version follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Fields {
    kind: u8,
    version_kind: u8,
    name_bytes: U16,
    version_bytes: U16,
    reserved: [u8; 2],
    bytes: U64,
    samples: U64,
    part_offset: U64,
    part_bytes: U32,
    unpacked_bytes: U32,
    part_crc32c: U32,
}

/// The most that LZ4 packs into a byte.
const MAX_LZ4_RATIO: u64 = 255;

impl<'a> Shard<'a> {
    /// Appends the shard to a directory.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] for a name or a version of 64 KiB, or a part of 4 GiB.
    pub fn push_to(&self, directory: &mut Vec<u8>) -> Result<(), FormatError> {
        let short = |what, bytes: &[u8]| {
            let too_large =
                |_| FormatError::TooLarge { what, bytes: bytes.len() as u64, limit: 65_535 };
            u16::try_from(bytes.len()).map(U16::new).map_err(too_large)
        };
        let part_bytes = self.part.end - self.part.start;
        let too_large = |_| {
            let limit = u64::from(u32::MAX);
            FormatError::TooLarge { what: "part of a shard", bytes: part_bytes, limit }
        };
        let fields = Fields {
            kind: self.kind as u8,
            version_kind: self.version_kind as u8,
            name_bytes: short("name of a shard", self.name)?,
            version_bytes: short("version of a shard", self.version)?,
            reserved: [0; 2],
            bytes: U64::new(self.bytes),
            samples: U64::new(self.samples),
            part_offset: U64::new(self.part.start),
            part_bytes: U32::new(u32::try_from(part_bytes).map_err(too_large)?),
            unpacked_bytes: U32::new(self.unpacked_bytes),
            part_crc32c: U32::new(self.part_crc32c),
        };
        directory.extend_from_slice(fields.as_bytes());
        directory.extend_from_slice(self.name);
        directory.extend_from_slice(self.version);
        Ok(())
    }

    /// The shard at the front of `bytes`, and the bytes after it.
    fn parse(bytes: &'a [u8], file_bytes: u64) -> Result<(Self, &'a [u8]), FormatError> {
        let truncated = |need: usize| FormatError::Truncated {
            what: "entry of a shard",
            need: need as u64,
            have: bytes.len() as u64,
        };
        let (fields, rest) =
            Fields::ref_from_prefix(bytes).map_err(|_| truncated(size_of::<Fields>()))?;
        let name_bytes = usize::from(fields.name_bytes.get());
        let version_bytes = usize::from(fields.version_bytes.get());
        let need = size_of::<Fields>() + name_bytes + version_bytes;
        let (name, rest) = rest.split_at_checked(name_bytes).ok_or_else(|| truncated(need))?;
        let (version, rest) =
            rest.split_at_checked(version_bytes).ok_or_else(|| truncated(need))?;
        let kind = match fields.kind {
            1 => ShardKind::Tar,
            2 => ShardKind::Tbl,
            3 => ShardKind::Folder,
            4 => ShardKind::Format,
            _ => return Err(FormatError::Unreadable { what: "kind of a shard" }),
        };
        let version_kind = match fields.version_kind {
            0 => VersionKind::Unknown,
            1 => VersionKind::Strong,
            2 => VersionKind::Weak,
            3 => VersionKind::Modified,
            _ => return Err(FormatError::Unreadable { what: "version of a shard" }),
        };
        let expected = "a relative path without `..`";
        let unsafe_name =
            |defect| FormatError::UnsafeName { what: "name of a shard", expected, defect };
        check_name(name).map_err(unsafe_name)?;
        // The folder of the shard index itself has no name.
        if name.is_empty() && kind != ShardKind::Folder {
            return Err(FormatError::Unreadable { what: "name of a shard" });
        }
        let what = "part of a shard";
        let stored = u64::from(fields.part_bytes.get());
        let unpacked_bytes = fields.unpacked_bytes.get();
        if u64::from(unpacked_bytes) > stored.saturating_mul(MAX_LZ4_RATIO) {
            let stored_bytes = fields.part_bytes.get();
            return Err(FormatError::Lz4Size { stored_bytes, bytes: unpacked_bytes });
        }
        let shard = Self {
            kind,
            name,
            bytes: fields.bytes.get(),
            version_kind,
            version,
            samples: fields.samples.get(),
            part: range(what, fields.part_offset.get(), stored, file_bytes)?,
            unpacked_bytes,
            part_crc32c: fields.part_crc32c.get(),
        };
        Ok((shard, rest))
    }
}

fn range(
    what: &'static str,
    offset: u64,
    bytes: u64,
    file_bytes: u64,
) -> Result<Range<u64>, FormatError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= file_bytes => Ok(offset..end),
        _ => Err(FormatError::BeyondEnd { what, offset, bytes, file_bytes }),
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    fn index() -> Vec<u8> {
        let shard = Shard {
            kind: ShardKind::Tar,
            name: b"a/train-0.tar",
            bytes: 10_240,
            version_kind: VersionKind::Strong,
            version: b"etag",
            samples: 3,
            part: 200..300,
            unpacked_bytes: 25_500,
            part_crc32c: 7,
        };
        let folder = Shard {
            kind: ShardKind::Folder,
            name: b"b",
            part: 300..300,
            unpacked_bytes: 0,
            ..shard.clone()
        };
        let mut directory = Vec::new();
        shard.push_to(&mut directory).unwrap();
        folder.push_to(&mut directory).unwrap();
        let header = Header::new(2, 6, &directory);
        let mut file = header.to_bytes().to_vec();
        file.append(&mut directory);
        let shards = header.shards(&file[Header::SIZE..], 300).unwrap();
        assert_eq!(shards, [shard, folder]);
        file
    }

    fn parse(file: &[u8], file_bytes: u64) -> Result<usize, FormatError> {
        let header = Header::parse(file)?;
        let range = header.directory_range(file.len() as u64)?;
        let directory =
            &file[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
        Ok(header.shards(directory, file_bytes)?.len())
    }

    #[test]
    fn a_directory_reads_back_and_damage_is_an_error() {
        let file = index();
        assert_eq!(parse(&file, 300), Ok(2));
        let beyond = parse(&file, 299).unwrap_err().to_string();
        assert_eq!(beyond, "part of a shard at 200 of 100 bytes reaches beyond the end at 299");
        for len in 0..file.len() {
            assert!(parse(&file[..len], 300).is_err(), "{len}");
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            assert!(parse(&damaged, 300).is_err(), "{at}");
        }
        let mut later = file;
        later[7] = 2;
        let error = parse(&later, 300).unwrap_err();
        assert_eq!(error.to_string(), "version field is 2, expected 1");
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_refused() {
        for name in [&b"../a.tar"[..], b"/etc/a", b"a/../../b", b""] {
            let shard = Shard {
                kind: ShardKind::Tbl,
                name,
                bytes: 1,
                version_kind: VersionKind::Unknown,
                version: b"",
                samples: 0,
                part: 0..0,
                unpacked_bytes: 0,
                part_crc32c: 0,
            };
            let mut directory = Vec::new();
            shard.push_to(&mut directory).unwrap();
            let header = Header::new(1, 0, &directory);
            let found = header.shards(&directory, 0);
            let error = found.unwrap_err().to_string();
            assert!(error.contains("name of a shard"), "{name:?}: {error}");
        }
    }
}
