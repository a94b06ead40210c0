//! Inflating and deflating blocks.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};

use crate::error::FormatError;
use crate::toc::Compression;

/// DEFLATE spends at least two bits on 258 bytes: nothing inflates to more than this many times
/// its size.
const MAX_RATIO: u64 = 1032;

/// The first buffer for inflating a block of unknown size.
const FIRST_BYTES: u64 = 4 << 10;

/// Room for the end of a stream.
const FIRST_ROOM: usize = 64;

/// Inflates one stream after the other, in the same memory.
#[derive(Default)]
pub(crate) struct Inflater(Option<Box<Decompress>>);

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflater").finish_non_exhaustive()
    }
}

impl Inflater {
    /// Inflates `stored` into `bytes`, which have room for more than the `expected` ones.
    pub(crate) fn inflate_exact(
        &mut self,
        compression: Compression,
        stored: &[u8],
        expected: usize,
        bytes: &mut [u8],
    ) -> Result<(), FormatError> {
        let found = self.inflate(compression, stored, bytes)?;
        // A buffer that is full may not have been large enough.
        if found == Some(expected as u64) {
            return Ok(());
        }
        let found = found.unwrap_or(bytes.len() as u64);
        Err(FormatError::BlockSize { found, expected: expected as u64 })
    }

    /// Inflates `stored` to as many bytes as there are, up to `limit`.
    pub(crate) fn inflate_all(
        &mut self,
        compression: Compression,
        stored: &[u8],
        limit: u64,
    ) -> Result<Vec<u8>, FormatError> {
        let most = limit.min(max_inflated(stored.len() as u64));
        let mut len = FIRST_BYTES.min(most);
        loop {
            // One more byte tells a full buffer from one that is too small.
            let room = usize::try_from(len).unwrap_or(usize::MAX).saturating_add(1);
            let mut bytes = std::vec![0; room];
            if let Some(found) = self.inflate(compression, stored, &mut bytes)?
                && found <= len
            {
                bytes.truncate(usize::try_from(found).unwrap_or(usize::MAX));
                return Ok(bytes);
            }
            if len == most {
                let what = "uncompressed bytes of a block";
                return Err(FormatError::Limit { what, need: len + 1, limit: most });
            }
            len = len.saturating_mul(4).min(most);
        }
    }

    /// The number of inflated bytes, `None` when `bytes` has no room for more.
    fn inflate(
        &mut self,
        compression: Compression,
        stored: &[u8],
        bytes: &mut [u8],
    ) -> Result<Option<u64>, FormatError> {
        let has_header = compression == Compression::Zlib;
        let stream = self.0.get_or_insert_with(|| Box::new(Decompress::new(has_header)));
        stream.reset(has_header);
        let status = stream.decompress(stored, bytes, FlushDecompress::Finish);
        let stored_bytes = stored.len() as u64;
        let inflated = stream.total_out();
        match status {
            Ok(Status::StreamEnd) => match stored_bytes.saturating_sub(stream.total_in()) {
                0 => Ok(Some(inflated)),
                bytes => Err(FormatError::Trailing { compression, stored: stored_bytes, bytes }),
            },
            Ok(Status::Ok | Status::BufError) if inflated == bytes.len() as u64 => Ok(None),
            Ok(Status::Ok | Status::BufError) => {
                Err(FormatError::Unended { compression, stored: stored_bytes, inflated })
            }
            Err(_) => Err(FormatError::Damaged { compression, stored: stored_bytes, inflated }),
        }
    }
}

/// Deflates one block after the other, in the same memory.
#[derive(Default)]
pub(crate) struct Deflater(Option<Box<Compress>>);

impl fmt::Debug for Deflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deflater").finish_non_exhaustive()
    }
}

impl Deflater {
    /// Appends `plain` as DEFLATE to `deflated`.
    pub(crate) fn deflate(&mut self, plain: &[u8], deflated: &mut Vec<u8>) {
        let level = flate2::Compression::default();
        let stream = self.0.get_or_insert_with(|| Box::new(Compress::new(level, false)));
        stream.reset();
        // What does not shrink grows by five bytes in 16 KiB.
        deflated.reserve(plain.len() + plain.len() / 1024 + FIRST_ROOM);
        loop {
            let read = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
            let rest = plain.get(read..).unwrap_or_default();
            let status = stream.compress_vec(rest, deflated, FlushCompress::Finish);
            // It takes any bytes; all that it can ask for is more room.
            if matches!(status, Ok(Status::StreamEnd)) {
                return;
            }
            deflated.reserve(deflated.capacity().max(FIRST_ROOM));
        }
    }
}

/// The most bytes that can come out of `stored` ones.
pub(crate) fn max_inflated(stored: u64) -> u64 {
    stored.saturating_mul(MAX_RATIO)
}
