//! The footer: for each region its lengths, checksums, compression and encryption.
//!
//! Version 1 of it also settles what the published format leaves open: string table, index,
//! reverse index and the number of bytes that a segment has.

use core::mem::{offset_of, size_of};

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::crc32c;
use crate::error::FormatError;
use crate::header::Compression;
use crate::region::Region;

/// The header of the entries.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct FooterHeader {
    magic: [u8; 4],
    version: U16,
    entry_count: U16,
    footer_bytes: U32,
    checksum: U32,
    segment_bytes: U64,
    block_bytes: U32,
    encryption: u8,
    reserved: [u8; 3],
    key_id: [u8; 16],
    reserved_end: [u8; 16],
}

const _: () = assert!(size_of::<FooterHeader>() == 64);

/// A region in the footer.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct RegionEntry {
    pub(crate) region: u8,
    pub(crate) compression: u8,
    pub(crate) is_encrypted: u8,
    pub(crate) reserved: u8,
    pub(crate) stored_checksum: U32,
    pub(crate) offset: U64,
    pub(crate) stored_bytes: U64,
    pub(crate) raw_bytes: U64,
    pub(crate) raw_checksum: U32,
    pub(crate) nonce: [u8; 12],
    pub(crate) tag: [u8; 16],
}

const _: () = assert!(size_of::<RegionEntry>() == 64);

/// The fields of a footer that concern the whole segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The segment's length, footer included.
    pub(crate) segment_bytes: u64,
    /// How much of a compressed region one block holds; 0 where nothing is compressed.
    pub(crate) block_bytes: u32,
    /// Whether regions are encrypted with AES-256-GCM.
    pub(crate) is_encrypted: bool,
    /// The caller's name for the key.
    pub(crate) key_id: [u8; 16],
}

/// A footer that has been checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footer {
    pub(crate) summary: Summary,
    entries: [Option<RegionEntry>; Region::DATA.len()],
}

/// Sizes of blocks are powers of two in this range.
pub(crate) const BLOCK_BYTES: core::ops::RangeInclusive<u32> = 4 << 10..=16 << 20;

impl Footer {
    const MAGIC: [u8; 4] = *b"TBFF";
    const VERSION: u16 = 1;

    /// Reads the footer that is all of `bytes`.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let have = bytes.len() as u64;
        let truncated = |need: usize| FormatError::Truncated {
            region: Region::Footer,
            need: need as u64,
            have,
        };
        let (header, rest) = FooterHeader::ref_from_prefix(bytes)
            .map_err(|_| truncated(size_of::<FooterHeader>()))?;
        if header.magic != Self::MAGIC {
            return Err(FormatError::BadMagic {
                region: Region::Footer,
                found: header.magic,
                expected: Self::MAGIC,
            });
        }
        let count = usize::from(header.entry_count.get());
        if count > Region::DATA.len() {
            let limit = Region::DATA.len() as u64;
            return Err(FormatError::TooMany { what: "regions", count: count as u64, limit });
        }
        let need = size_of::<FooterHeader>() + count * size_of::<RegionEntry>();
        let entries =
            <[RegionEntry]>::ref_from_bytes_with_elems(rest, count).map_err(|_| truncated(need))?;
        let stored = header.checksum.get();
        let computed = footer_checksum(header, entries);
        if stored != computed {
            return Err(FormatError::RegionChecksum { region: Region::Footer, stored, computed });
        }
        let version = header.version.get();
        if version != Self::VERSION {
            return Err(FormatError::FooterVersion { found: version, known: Self::VERSION });
        }
        let summary = header.check(bytes.len())?;
        let mut footer = Self { summary, entries: [None; Region::DATA.len()] };
        for (number, entry) in entries.iter().enumerate() {
            let offset = size_of::<FooterHeader>() + number * size_of::<RegionEntry>();
            let region = entry.check(&summary, offset as u64)?;
            let place = region.slot().and_then(|slot| footer.entries.get_mut(slot));
            let earlier = place.and_then(|place| place.replace(*entry));
            if earlier.is_some() {
                let found = u64::from(entry.region);
                return Err(FormatError::UnknownCode { field: "region listed twice", found });
            }
        }
        Ok(footer)
    }

    /// The entry of a region.
    pub(crate) fn entry(&self, region: Region) -> Option<&RegionEntry> {
        self.entries.get(region.slot()?)?.as_ref()
    }

    /// The bytes of a footer with `entries`.
    pub(crate) fn to_bytes(summary: Summary, entries: &[RegionEntry]) -> alloc::vec::Vec<u8> {
        let footer_bytes = size_of::<FooterHeader>() + size_of_val(entries);
        let mut header = FooterHeader {
            magic: Self::MAGIC,
            version: U16::new(Self::VERSION),
            // A segment has at most six regions, so both numbers are small.
            entry_count: U16::new(u16::try_from(entries.len()).unwrap_or(u16::MAX)),
            footer_bytes: U32::new(u32::try_from(footer_bytes).unwrap_or(u32::MAX)),
            checksum: U32::new(0),
            segment_bytes: U64::new(summary.segment_bytes),
            block_bytes: U32::new(summary.block_bytes),
            encryption: summary.is_encrypted.into(),
            reserved: [0; 3],
            key_id: summary.key_id,
            reserved_end: [0; 16],
        };
        header.checksum = U32::new(footer_checksum(&header, entries));
        [header.as_bytes(), entries.as_bytes()].concat()
    }
}

/// CRC-32C of a footer with its checksum taken as zero.
fn footer_checksum(header: &FooterHeader, entries: &[RegionEntry]) -> u32 {
    let mut zeroed = *header;
    zeroed.checksum = U32::new(0);
    let mut all = [0; size_of::<FooterHeader>() + Region::DATA.len() * size_of::<RegionEntry>()];
    let bytes = zeroed.as_bytes().iter().chain(entries.as_bytes());
    let len = size_of::<FooterHeader>() + size_of_val(entries);
    all.iter_mut().zip(bytes).for_each(|(place, &byte)| *place = byte);
    // A footer has at most one entry for each region.
    crc32c(all.get(..len).unwrap_or(&all))
}

fn not_zero(offset: u64) -> FormatError {
    FormatError::NotZero { region: Region::Footer, offset }
}

impl FooterHeader {
    fn check(&self, footer_bytes: usize) -> Result<Summary, FormatError> {
        let found = footer_bytes as u64;
        let stated = u64::from(self.footer_bytes.get());
        if stated != found {
            return Err(FormatError::Contradiction { what: "footer length", stated, found });
        }
        if self.reserved != [0; 3] {
            return Err(not_zero(offset_of!(Self, reserved) as u64));
        }
        if self.reserved_end != [0; 16] {
            return Err(not_zero(offset_of!(Self, reserved_end) as u64));
        }
        let unknown = |field, found| FormatError::UnknownCode { field, found };
        let block_bytes = self.block_bytes.get();
        let is_block = block_bytes.is_power_of_two() && BLOCK_BYTES.contains(&block_bytes);
        if block_bytes != 0 && !is_block {
            return Err(unknown("block_bytes", block_bytes.into()));
        }
        if self.encryption > 1 {
            return Err(unknown("encryption", self.encryption.into()));
        }
        Ok(Summary {
            segment_bytes: self.segment_bytes.get(),
            block_bytes,
            is_encrypted: self.encryption == 1,
            key_id: self.key_id,
        })
    }
}

impl RegionEntry {
    /// Checks the entry by itself; `offset` is its own place in the footer.
    fn check(&self, summary: &Summary, offset: u64) -> Result<Region, FormatError> {
        let unknown = |field, found: u8| FormatError::UnknownCode { field, found: found.into() };
        let region = Region::from_code(self.region).ok_or(unknown("region", self.region))?;
        let compression = Compression::from_code(self.compression)
            .ok_or(unknown("compression of a region", self.compression))?;
        if self.is_encrypted != u8::from(summary.is_encrypted) {
            return Err(unknown("encryption of a region", self.is_encrypted));
        }
        if self.reserved != 0 {
            return Err(not_zero(offset + offset_of!(Self, reserved) as u64));
        }
        let stored_bytes = self.stored_bytes.get();
        let raw_bytes = self.raw_bytes.get();
        if compression == Compression::None && stored_bytes != raw_bytes {
            return Err(FormatError::Contradiction {
                what: "length of a region that is not compressed",
                stated: raw_bytes,
                found: stored_bytes,
            });
        }
        if compression != Compression::None && summary.block_bytes == 0 {
            return Err(unknown("block_bytes", 0));
        }
        if summary.is_encrypted && self.raw_checksum.get() != 0 {
            return Err(not_zero(offset + offset_of!(Self, raw_checksum) as u64));
        }
        if !summary.is_encrypted && (self.nonce, self.tag) != ([0; 12], [0; 16]) {
            return Err(not_zero(offset + offset_of!(Self, nonce) as u64));
        }
        Ok(region)
    }

    pub(crate) fn compression(&self) -> Compression {
        Compression::from_code(self.compression).unwrap_or_default()
    }

    /// Whether the region's bytes are stored as they are.
    pub(crate) fn is_plain(&self) -> bool {
        self.compression() == Compression::None && self.is_encrypted == 0
    }
}
