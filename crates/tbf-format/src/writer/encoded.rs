//! A segment ready to be written.

use alloc::vec::Vec;
#[cfg(feature = "std")]
use std::io::{self, Seek, SeekFrom, Write};

use zerocopy::little_endian::{U32, U64};

use super::BuildOptions;
use crate::aligned::ALIGNMENT;
use crate::build_error::BuildError;
#[cfg(feature = "std")]
use crate::checksum::RunningCrc;
use crate::checksum::crc32c;
use crate::codec;
use crate::encryption::Encryption;
#[cfg(feature = "encryption")]
use crate::encryption::encrypt;
use crate::footer::{Footer, RegionEntry, Summary};
use crate::header::{Compression, Fields, FileHeader, Flags};
use crate::region::Region;

/// A whole segment in memory: as bytes, or to be written to a file in two steps.
///
/// A file that is not replaced atomically gets [`write_draft`](Self::write_draft), then its data
/// are synced, then [`complete`](Self::complete), then it is synced once more. Whatever happens in
/// between, readers see a partial segment or the whole one.
#[derive(Clone, Debug)]
pub struct EncodedSegment {
    header: FileHeader,
    /// With their offsets, the footer included.
    regions: Vec<(u64, Vec<u8>)>,
    byte_len: u64,
}

/// The counts in the header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub(super) node_count: u64,
    pub(super) edge_count: u64,
    pub(super) flags: Flags,
}

impl EncodedSegment {
    /// Packs `regions` and lays them out in their order, after the one that is `written`.
    pub(super) fn new(
        options: &BuildOptions,
        counts: Counts,
        written: Option<Part>,
        regions: Vec<(Region, Vec<u8>)>,
    ) -> Result<Self, BuildError> {
        if let Some(feature) = codec::missing_feature(options.compression) {
            return Err(BuildError::Unsupported { feature });
        }
        let regions = regions.into_iter().map(|(region, raw)| Part::new(region, raw, options));
        let mut parts: Vec<Part> = written.into_iter().chain(regions).collect();
        let end = lay_out(&mut parts);
        let mut offsets = [0; Region::DATA.len()];
        let of_vectors = parts.iter().find_map(Part::place_of_no_vectors);
        let places = parts.iter().map(|part| (part.region, part.offset));
        for (region, offset) in of_vectors.into_iter().chain(places) {
            if let Some(place) = region.slot().and_then(|slot| offsets.get_mut(slot)) {
                *place = offset;
            }
        }
        let footer_offset = end.next_multiple_of(ALIGNMENT as u64);
        let header = FileHeader::new(&Fields {
            segment_id: options.segment_id,
            created_at: options.created_at,
            node_count: counts.node_count,
            edge_count: counts.edge_count,
            embedding_dim: options.dim,
            embedding_dtype: options.dtype,
            compression: options.compression,
            flags: counts.flags,
            offsets,
            footer_offset,
        });
        if let Some(encryption) = &options.encryption {
            parts.iter_mut().try_for_each(|part| part.encrypt(encryption, &header))?;
        }
        let entries: Vec<RegionEntry> = parts.iter().map(Part::entry).collect();
        let is_compressed = parts.iter().any(|part| part.compression != Compression::None);
        let footer = |segment_bytes| {
            let summary = Summary {
                segment_bytes,
                block_bytes: if is_compressed { codec::BLOCK_BYTES } else { 0 },
                is_encrypted: options.encryption.is_some(),
                key_id: options.encryption.as_ref().map_or([0; 16], |e| e.key_id),
            };
            Footer::to_bytes(summary, &entries)
        };
        let byte_len = footer_offset + footer(0).len() as u64;
        let in_memory = parts.into_iter().filter(|part| part.written.is_none());
        let mut regions: Vec<(u64, Vec<u8>)> =
            in_memory.map(|part| (part.offset, part.stored)).collect();
        regions.push((footer_offset, footer(byte_len)));
        Ok(Self { header, regions, byte_len })
    }

    /// The header of the finished segment.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The segment's length in bytes.
    pub fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// The segment as one piece of memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.header.to_bytes().to_vec();
        for (offset, bytes) in &self.regions {
            // What is in memory in pieces may not be in one, but then `resize` says so.
            out.resize(usize::try_from(*offset).unwrap_or(usize::MAX), 0);
            out.extend(bytes);
        }
        out
    }

    /// Writes the segment, marked as partial, to `out`.
    ///
    /// # Errors
    /// What `out` reports.
    #[cfg(feature = "std")]
    pub fn write_draft(&self, mut out: impl Write) -> io::Result<()> {
        out.write_all(&self.header.partial().to_bytes())?;
        self.write_regions(&mut out, FileHeader::SIZE as u64)?;
        out.flush()
    }

    /// Writes the regions that are in memory after the `end` bytes that are written.
    #[cfg(feature = "std")]
    pub(super) fn write_regions(&self, mut out: impl Write, mut end: u64) -> io::Result<()> {
        const ZEROS: [u8; ALIGNMENT] = [0; ALIGNMENT];
        for (offset, bytes) in &self.regions {
            // Regions start less than 64 bytes after the end of the one before.
            let gap = usize::try_from(offset - end).ok().and_then(|gap| ZEROS.get(..gap));
            out.write_all(gap.unwrap_or_default())?;
            out.write_all(bytes)?;
            end = offset + bytes.len() as u64;
        }
        Ok(())
    }

    /// Clears the partial flag of the draft that starts at the first byte of `out`.
    ///
    /// # Errors
    /// What `out` reports.
    #[cfg(feature = "std")]
    pub fn complete(&self, mut out: impl Write + Seek) -> io::Result<()> {
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&self.header.to_bytes())?;
        out.flush()
    }
}

/// Gives every part its offset, and returns where the last one ends.
fn lay_out(parts: &mut [Part]) -> u64 {
    let mut end = FileHeader::SIZE as u64;
    for part in parts {
        part.offset = end.next_multiple_of(ALIGNMENT as u64);
        end = part.offset + part.stored_bytes();
    }
    end
}

/// A region on its way into a segment.
#[derive(Debug)]
pub(super) struct Part {
    region: Region,
    offset: u64,
    stored: Vec<u8>,
    compression: Compression,
    raw_bytes: u64,
    raw_checksum: u32,
    /// With the tag.
    nonce: Option<([u8; 12], [u8; 16])>,
    /// Length and checksum of the stored bytes, when they are not here any more.
    written: Option<(u64, u32)>,
}

impl Part {
    fn new(region: Region, raw: Vec<u8>, options: &BuildOptions) -> Self {
        let raw_bytes = raw.len() as u64;
        let raw_checksum = crc32c(&raw);
        let compressed = codec::compress(&raw, options.compression);
        let (stored, compression) = match compressed {
            Some(compressed) => (compressed, options.compression),
            None => (raw, Compression::None),
        };
        let nonce = None;
        let written = None;
        Self { region, offset: 0, stored, compression, raw_bytes, raw_checksum, nonce, written }
    }

    /// A region that stands in the file, of which this is known before and after compression.
    #[cfg(feature = "std")]
    pub(super) fn written(
        region: Region,
        compression: Compression,
        raw: RunningCrc,
        stored: RunningCrc,
    ) -> Self {
        Self {
            region,
            offset: 0,
            stored: Vec::new(),
            compression,
            raw_bytes: raw.bytes(),
            raw_checksum: raw.checksum(),
            nonce: None,
            written: Some((stored.bytes(), stored.checksum())),
        }
    }

    fn stored_bytes(&self) -> u64 {
        self.written.map_or(self.stored.len() as u64, |(bytes, _)| bytes)
    }

    /// Readers that know no flags look for vectors of no components after the nodes, where
    /// vectors would be.
    fn place_of_no_vectors(&self) -> Option<(Region, u64)> {
        let end = self.offset + self.stored_bytes();
        let place = (Region::Embeddings, end.next_multiple_of(ALIGNMENT as u64));
        (self.region == Region::Nodes).then_some(place)
    }

    #[cfg(feature = "encryption")]
    fn encrypt(&mut self, encryption: &Encryption, header: &FileHeader) -> Result<(), BuildError> {
        let nonce = encryption.region_nonce(self.region);
        let associated = header.checked_bytes();
        let tag = encrypt(&encryption.key, nonce, associated, &mut self.stored);
        let bytes = self.stored.len() as u64;
        let too_long = BuildError::TooLongToEncrypt { region: self.region, bytes };
        self.nonce = Some((nonce, tag.ok_or(too_long)?));
        Ok(())
    }

    #[cfg(not(feature = "encryption"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    fn encrypt(&mut self, _: &Encryption, _: &FileHeader) -> Result<(), BuildError> {
        Err(BuildError::Unsupported { feature: "encryption" })
    }

    fn entry(&self) -> RegionEntry {
        let (nonce, tag) = self.nonce.unwrap_or_default();
        let raw_checksum = if self.nonce.is_some() { 0 } else { self.raw_checksum };
        RegionEntry {
            // Only regions that hold data get here.
            region: self.region.code().unwrap_or(u8::MAX),
            compression: self.compression.code(),
            is_encrypted: self.nonce.is_some().into(),
            reserved: 0,
            stored_checksum: U32::new(
                self.written.map_or_else(|| crc32c(&self.stored), |(_, checksum)| checksum),
            ),
            offset: U64::new(self.offset),
            stored_bytes: U64::new(self.stored_bytes()),
            raw_bytes: U64::new(self.raw_bytes),
            raw_checksum: U32::new(raw_checksum),
            nonce,
            tag,
        }
    }
}
