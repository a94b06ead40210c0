//! A moving view of the file for the header scan: large steps over bodies read one small piece
//! per header, small steps share large pieces. What is large depends on the cost of a read.

use std::io::ErrorKind;

use super::header::{BLOCK_BYTES, Block, Header, is_zero};
use crate::error::ReadError;
use crate::interrupt::is_interrupted;
use crate::source::Source;

/// The sizes of pieces.
#[derive(Clone, Copy, Debug)]
struct Pieces {
    /// The first piece after a jump: a page, so that a header comes with the small body after it.
    min_bytes: u64,
    /// The largest piece while headers lie close together.
    max_bytes: u64,
    /// A longer step is a jump.
    near_bytes: u64,
    /// The most bytes after the piece that are announced while headers lie close together.
    ahead_bytes: u64,
}

/// Of a file: a read costs as much as some 4 KiB.
const FILE: Pieces =
    Pieces { min_bytes: 4 << 10, max_bytes: 256 << 10, near_bytes: 0, ahead_bytes: 0 };

/// Of an object of a store: a request costs as much as some 4 MiB (30 ms at 130 MB/s), and many at
/// once cost no more than one.
const OBJECT: Pieces =
    Pieces { min_bytes: 64 << 10, max_bytes: 1 << 20, near_bytes: 4 << 20, ahead_bytes: 128 << 20 };

/// A part of the bytes ahead, one in so many: the first announcement, and each time what is announced
/// anew of the most.
const PARTS: u64 = 8;

/// Zeros read before the file system is asked where the hole ends.
const ZEROS_BEFORE_SEEK: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Window<'a> {
    source: &'a Source,
    start: u64,
    buffer: Vec<u8>,
    piece_bytes: u64,
    pieces: Pieces,
    /// The end of what was announced.
    announced: u64,
    /// Bytes to announce next, twice as many each time up to the most.
    ahead_bytes: u64,
}

impl<'a> Window<'a> {
    pub(crate) fn new(source: &'a Source) -> Self {
        let pieces = if source.is_mappable() { FILE } else { OBJECT };
        let piece_bytes = pieces.min_bytes;
        let ahead_bytes = pieces.ahead_bytes / PARTS;
        Self {
            source,
            start: 0,
            buffer: Vec::new(),
            piece_bytes,
            pieces,
            announced: 0,
            ahead_bytes,
        }
    }

    /// `len` bytes from `offset` on.
    pub(crate) fn bytes(&mut self, offset: u64, len: u64) -> Result<&[u8], ReadError> {
        let end = self.start + self.buffer.len() as u64;
        if offset < self.start || offset > end || len > end - offset {
            self.source.check_range(offset, len)?;
            if is_interrupted() {
                return Err(ReadError::io(self.source.location(), ErrorKind::Interrupted.into()));
            }
            let Pieces { min_bytes, max_bytes, near_bytes, .. } = self.pieces;
            let near_bytes = near_bytes.max(self.piece_bytes);
            let is_near = offset >= self.start && offset <= end + near_bytes;
            self.piece_bytes =
                if is_near { (2 * self.piece_bytes).min(max_bytes) } else { min_bytes };
            if is_near {
                self.announce(offset);
            }
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

    /// Announces what follows, once a part of it has been read.
    fn announce(&mut self, offset: u64) {
        let most = self.pieces.ahead_bytes;
        let part = most / PARTS;
        if part == 0 || self.announced >= offset + self.ahead_bytes - part {
            return;
        }
        let start = self.announced.max(offset);
        let end = (offset + self.ahead_bytes).min(self.source.len());
        self.source.will_need(start, end.saturating_sub(start));
        self.announced = end;
        self.ahead_bytes = (2 * self.ahead_bytes).min(most);
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

impl Drop for Window<'_> {
    /// Releases what was announced and not read.
    fn drop(&mut self) {
        if self.announced > 0 {
            // Only objects have announcements, and they refuse nothing.
            drop(self.source.dont_need(0, self.source.len()));
        }
    }
}
