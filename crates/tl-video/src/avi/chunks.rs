//! Chunks of RIFF: a name, a size and a body; lists are chunks of chunks.

use super::CONTAINER;
use crate::error::VideoError;
use crate::read::Reader;

/// The header of a chunk of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// The name; of a list, what it lists.
    pub(super) name: [u8; 4],
    pub(super) at: u64,
    body_at: u64,
    bytes: u64,
}

/// The header of the chunk at `offset` of the file, which ends in the file. `None` at its end.
pub(super) fn header(reader: &mut Reader<'_>, offset: u64) -> Result<Option<Chunk>, VideoError> {
    let Some((name, skip, bytes)) = name_and_size(reader.up_to(offset, 12)?) else {
        return Ok(None);
    };
    reader.charge_header()?;
    let body_at = offset + skip;
    reader.check_inside(body_at, bytes, name.into())?;
    Ok(Some(Chunk { name, at: offset, body_at, bytes }))
}

/// The name at the front of `bytes`, the size of the header and that of the body after it.
fn name_and_size(bytes: &[u8]) -> Option<([u8; 4], u64, u64)> {
    let four = |at: usize| bytes.get(at..)?.first_chunk().copied();
    let name = four(0)?;
    let size = u64::from(u32::from_le_bytes(four(4)?));
    if name == *b"LIST" && size >= 4 {
        return Some((four(8)?, 12, size - 4));
    }
    Some((name, 8, size))
}

impl Chunk {
    /// The offset of the chunk after this one: bodies are padded to even sizes.
    pub(super) fn end(&self) -> u64 {
        self.body_at + self.bytes.next_multiple_of(2)
    }

    /// Reads the body.
    pub(super) fn body(&self, reader: &Reader<'_>) -> Result<Vec<u8>, VideoError> {
        reader.table(self.body_at, self.bytes, self.name.into())
    }

    /// The chunk with its body.
    pub(super) fn of<'a>(&self, body: &'a [u8]) -> ChunkRef<'a> {
        ChunkRef { name: self.name, at: self.at, body_at: self.body_at, body }
    }
}

/// A chunk in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkRef<'a> {
    pub(super) name: [u8; 4],
    pub(super) at: u64,
    body_at: u64,
    pub(super) body: &'a [u8],
}

impl<'a> ChunkRef<'a> {
    /// The chunks in this list.
    pub(super) fn children(&self) -> Children<'a> {
        Children { bytes: self.body, at: self.body_at }
    }

    /// The first chunk of a name in this list.
    pub(super) fn child(&self, name: [u8; 4]) -> Result<Option<Self>, VideoError> {
        let is_it =
            |child: &Result<Self, _>| child.as_ref().map_or(true, |child| child.name == name);
        self.children().find(is_it).transpose()
    }

    /// The first chunk of a name in this list, which must be there.
    pub(super) fn require(&self, name: [u8; 4], part: &'static str) -> Result<Self, VideoError> {
        let what = self.name.into();
        let missing = || VideoError::Missing { container: CONTAINER, part, what, offset: self.at };
        self.child(name)?.ok_or_else(missing)
    }

    pub(super) fn array<const N: usize>(&self, at: usize) -> Result<[u8; N], VideoError> {
        let bytes = self.body.get(at..).and_then(|rest| rest.first_chunk());
        bytes.copied().ok_or_else(|| self.truncated((at + N) as u64))
    }

    pub(super) fn u32(&self, at: usize) -> Result<u32, VideoError> {
        Ok(u32::from_le_bytes(self.array(at)?))
    }

    pub(super) fn truncated(&self, need: u64) -> VideoError {
        let have = self.body.len() as u64;
        let what = self.name.into();
        VideoError::Truncated { container: CONTAINER, what, offset: self.at, need, have }
    }

    pub(super) fn value(
        &self,
        field: &'static str,
        found: u64,
        expected: &'static str,
    ) -> VideoError {
        let what = self.name.into();
        VideoError::Value { container: CONTAINER, what, offset: self.at, field, found, expected }
    }
}

/// The chunks of a list.
#[derive(Clone, Debug)]
pub(super) struct Children<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl<'a> Iterator for Children<'a> {
    type Item = Result<ChunkRef<'a>, VideoError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (name, skip, need) = name_and_size(self.bytes)?;
        let at = self.at;
        let header = usize::try_from(skip).ok()?;
        let rest = self.bytes.get(header..)?;
        let size = usize::try_from(need).ok();
        let Some(body) = size.and_then(|size| rest.get(..size)) else {
            // After an error there is nothing to continue with.
            self.bytes = &[];
            let have = rest.len() as u64;
            let what = name.into();
            let container = CONTAINER;
            return Some(Err(VideoError::Truncated { container, what, offset: at, need, have }));
        };
        let padded = body.len().next_multiple_of(2);
        self.bytes = rest.get(padded..).unwrap_or_default();
        self.at += skip + padded as u64;
        Some(Ok(ChunkRef { name, at, body_at: at + skip, body }))
    }
}
