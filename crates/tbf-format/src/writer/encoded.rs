//! A segment ready to be written.

use alloc::vec::Vec;
#[cfg(feature = "std")]
use std::io::{self, Seek, SeekFrom, Write};

use zerocopy::little_endian::{U32, U64};

use super::BuildOptions;
use crate::aligned::ALIGNMENT;
use crate::checksum::crc32c;
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

/// What the header says of the contents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub(super) node_count: u64,
    pub(super) edge_count: u64,
    pub(super) flags: Flags,
}

impl EncodedSegment {
    /// Lays out `regions` in their order.
    pub(super) fn new(
        options: &BuildOptions,
        counts: Counts,
        regions: Vec<(Region, Vec<u8>)>,
    ) -> Self {
        let mut offsets = [0; Region::DATA.len()];
        let (mut entries, mut placed) = (Vec::new(), Vec::new());
        let mut end = FileHeader::SIZE as u64;
        for (region, bytes) in regions {
            let offset = end.next_multiple_of(ALIGNMENT as u64);
            end = offset + bytes.len() as u64;
            if let Some(place) = region.slot().and_then(|slot| offsets.get_mut(slot)) {
                *place = offset;
            }
            entries.push(entry(region, offset, &bytes));
            placed.push((offset, bytes));
            // Readers that know no flags take vectors of no components from here.
            if region == Region::Nodes
                && let Some(place) =
                    Region::Embeddings.slot().and_then(|slot| offsets.get_mut(slot))
            {
                *place = end.next_multiple_of(ALIGNMENT as u64);
            }
        }
        let footer_offset = end.next_multiple_of(ALIGNMENT as u64);
        let footer = |segment_bytes| {
            let summary =
                Summary { segment_bytes, block_bytes: 0, is_encrypted: false, key_id: [0; 16] };
            Footer::to_bytes(summary, &entries)
        };
        let byte_len = footer_offset + footer(0).len() as u64;
        placed.push((footer_offset, footer(byte_len)));
        let header = FileHeader::new(&Fields {
            segment_id: options.segment_id,
            created_at: options.created_at,
            node_count: counts.node_count,
            edge_count: counts.edge_count,
            embedding_dim: options.dim,
            embedding_dtype: options.dtype,
            compression: Compression::None,
            flags: counts.flags,
            offsets,
            footer_offset,
        });
        Self { header, regions: placed, byte_len }
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
        const ZEROS: [u8; ALIGNMENT] = [0; ALIGNMENT];
        out.write_all(&self.header.partial().to_bytes())?;
        let mut end = FileHeader::SIZE as u64;
        for (offset, bytes) in &self.regions {
            // Regions start less than 64 bytes behind the end of the one before.
            let gap = usize::try_from(offset - end).ok().and_then(|gap| ZEROS.get(..gap));
            out.write_all(gap.unwrap_or_default())?;
            out.write_all(bytes)?;
            end = offset + bytes.len() as u64;
        }
        out.flush()
    }

    /// Takes the mark from the draft that `out` holds from its first byte on.
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

fn entry(region: Region, offset: u64, bytes: &[u8]) -> RegionEntry {
    let checksum = U32::new(crc32c(bytes));
    let length = U64::new(bytes.len() as u64);
    RegionEntry {
        // Only regions that hold data get here.
        region: region.code().unwrap_or(u8::MAX),
        compression: Compression::None.code(),
        is_encrypted: 0,
        reserved: 0,
        stored_checksum: checksum,
        offset: U64::new(offset),
        stored_bytes: length,
        raw_bytes: length,
        raw_checksum: checksum,
        nonce: [0; 12],
        tag: [0; 16],
    }
}
