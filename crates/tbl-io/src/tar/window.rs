//! A moving view of the file for the header scan: large steps over bodies read one small piece
//! per header, small steps share large pieces.

use super::header::{BLOCK_BYTES, Block, Header, is_zero};
use crate::error::ReadError;
use crate::source::Source;

/// First piece after a jump: a page, so that a header comes with the small body after it.
const MIN_BYTES: u64 = 4 << 10;

/// Largest piece while headers lie close together.
const MAX_BYTES: u64 = 256 << 10;

/// Zeros read before the file system is asked where the hole ends.
const ZEROS_BEFORE_SEEK: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Window<'a> {
    source: &'a Source,
    start: u64,
    buffer: Vec<u8>,
    piece_bytes: u64,
}

impl<'a> Window<'a> {
    pub(crate) fn new(source: &'a Source) -> Self {
        Self { source, start: 0, buffer: Vec::new(), piece_bytes: MIN_BYTES }
    }

    /// `len` bytes from `offset` on.
    pub(crate) fn bytes(&mut self, offset: u64, len: u64) -> Result<&[u8], ReadError> {
        let end = self.start + self.buffer.len() as u64;
        if offset < self.start || offset > end || len > end - offset {
            self.source.check_range(offset, len)?;
            let is_near = offset >= self.start && offset <= end + self.piece_bytes;
            self.piece_bytes =
                if is_near { (2 * self.piece_bytes).min(MAX_BYTES) } else { MIN_BYTES };
            let piece = self.piece_bytes.min(self.source.len() - offset).max(len);
            // A failed read leaves nothing that later calls could take for the file's bytes.
            self.start = 0;
            let mut buffer = std::mem::take(&mut self.buffer);
            self.source.read_range_into(offset, piece, &mut buffer)?;
            self.buffer = buffer;
            self.start = offset;
        }
        // The range is inside the buffer now, and buffers are indexed by `usize`.
        let skip = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        Ok(&self.buffer[skip..][..len])
    }

    pub(crate) fn block(&mut self, offset: u64) -> Result<&Block, ReadError> {
        let bytes = self.bytes(offset, BLOCK_BYTES)?;
        Ok(bytes.first_chunk().expect("bytes() returns as many as asked for"))
    }

    /// Whether bytes of a member stand at `offset`, rather than a header or the zeros at the end:
    /// neither of those can be data by chance.
    pub(crate) fn is_data(&mut self, offset: u64) -> Result<bool, ReadError> {
        if self.source.len().saturating_sub(offset) < BLOCK_BYTES {
            return Ok(true);
        }
        let block = self.block(offset)?;
        Ok(!is_zero(block) && Header::parse(block).is_err())
    }

    /// The offset of the first byte from `offset` on that is not zero, or the file's length.
    pub(crate) fn end_of_zeros(&mut self, offset: u64) -> Result<u64, ReadError> {
        let len = self.source.len();
        let mut at = offset;
        while at < len {
            let piece = (len - at).min(64 << 10);
            let bytes = self.bytes(at, piece)?;
            if let Some(zeros) = bytes.iter().position(|&byte| byte != 0) {
                return Ok(at + zeros as u64);
            }
            at += piece;
            if at - offset > ZEROS_BEFORE_SEEK {
                at = self.source.next_data(at);
            }
        }
        Ok(len)
    }
}
