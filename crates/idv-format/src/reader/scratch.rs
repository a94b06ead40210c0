//! Memory that reading one block after the other uses again.

use alloc::vec::Vec;

use zerocopy::IntoBytes;

use crate::compression::{Inflater, max_inflated};
use crate::error::FormatError;
use crate::read_error::ReadError;
use crate::reader::{Limits, read_exact_at};
use crate::source::ReadAt;
use crate::toc::{Block, Compression, MetadataEntry};

/// Memory for reading blocks, to be used for many of them: what is read can borrow from it.
#[derive(Debug, Default)]
pub struct Scratch {
    stored: AlignedBytes,
    inflated: AlignedBytes,
    metadata: Vec<u8>,
    inflater: Inflater,
}

impl Scratch {
    /// Nothing yet; the memory is taken when it is needed.
    pub fn new() -> Self {
        Self::default()
    }

    /// The uncompressed bytes of a block, in place where they are in memory already. The outer
    /// error is that of the source, the inner one that of the block.
    pub(super) fn read_block<'s, R: ReadAt>(
        &'s mut self,
        source: &'s R,
        block: &Block,
        compression: Compression,
        limits: Limits,
    ) -> Result<Result<&'s [u8], FormatError>, ReadError> {
        let stored_bytes = u64::from(block.stored_bytes);
        let bytes = u64::from(block.bytes);
        if let Err(error) = check_sizes(stored_bytes, bytes, compression, limits) {
            return Ok(Err(error));
        }
        let stored = self.stored.read(source, block.offset, block.stored_bytes as usize)?;
        if compression == Compression::None {
            return Ok(Ok(stored));
        }
        let len = block.bytes as usize;
        // One more byte tells a stream that is too long.
        let room = self.inflated.resize(len + 1);
        let inflated = self.inflater.inflate_exact(compression, stored, len, room);
        let bytes = room.get(..len).unwrap_or_default();
        Ok(inflated.map(|()| bytes))
    }

    /// The same for metadata, whose size is only known when it is inflated.
    pub(super) fn inflate_metadata<'s, R: ReadAt>(
        &'s mut self,
        source: &'s R,
        entry: &MetadataEntry,
        compression: Compression,
        limits: Limits,
    ) -> Result<Result<&'s [u8], FormatError>, ReadError> {
        const WHAT: &str = "bytes of metadata";
        if let Err(error) = Limits::check(WHAT, entry.stored_bytes, limits.block_bytes) {
            return Ok(Err(error));
        }
        let len = usize::try_from(entry.stored_bytes).unwrap_or(usize::MAX);
        let stored = self.stored.read(source, entry.offset, len)?;
        if compression == Compression::None {
            return Ok(Ok(stored));
        }
        let inflated = self.inflater.inflate_all(compression, stored, limits.block_bytes);
        Ok(inflated.map(|bytes| {
            self.metadata = bytes;
            self.metadata.as_slice()
        }))
    }
}

/// Before anything is allocated for the block.
fn check_sizes(
    stored: u64,
    bytes: u64,
    compression: Compression,
    limits: Limits,
) -> Result<(), FormatError> {
    const WHAT: &str = "uncompressed bytes of a block";
    Limits::check(WHAT, bytes, limits.block_bytes)?;
    Limits::check("stored bytes of a block", stored, limits.block_bytes)?;
    match compression {
        Compression::None if stored != bytes => {
            Err(FormatError::BlockSize { found: stored, expected: bytes })
        }
        Compression::None => Ok(()),
        Compression::Deflate | Compression::Zlib => {
            Limits::check(WHAT, bytes, max_inflated(stored))
        }
    }
}

/// Bytes at an address that suits numbers of up to 64 bits, so that they need no copying.
#[derive(Debug, Default)]
struct AlignedBytes(Vec<u64>);

impl AlignedBytes {
    /// `len` bytes with any content.
    fn resize(&mut self, len: usize) -> &mut [u8] {
        let words = len.div_ceil(size_of::<u64>());
        if self.0.len() < words {
            self.0.resize(words, 0);
        }
        self.0.as_mut_bytes().get_mut(..len).unwrap_or_default()
    }

    /// `len` bytes of `source` from `offset` on.
    fn read<'s, R: ReadAt>(
        &'s mut self,
        source: &'s R,
        offset: u64,
        len: usize,
    ) -> Result<&'s [u8], ReadError> {
        if let Some(bytes) = source.slice(offset, len) {
            return Ok(bytes);
        }
        let bytes = self.resize(len);
        read_exact_at(source, offset, bytes)?;
        Ok(bytes)
    }
}
