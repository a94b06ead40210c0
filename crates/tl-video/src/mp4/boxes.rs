//! Boxes: a size, a name and a body, which may hold boxes.

use super::CONTAINER;
use crate::error::{Name, VideoError};
use crate::read::Reader;

/// The bytes of a size and a name.
const HEADER: u64 = 8;

/// The header of a box of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) kind: [u8; 4],
    pub(super) body_at: u64,
    pub(super) end: u64,
}

/// The header of the box at `offset` of the file, which ends in the file. `None` at the end of the
/// file.
pub(super) fn header(reader: &mut Reader<'_>, offset: u64) -> Result<Option<Header>, VideoError> {
    let len = reader.len;
    let bytes = reader.up_to(offset, 2 * HEADER)?;
    if (bytes.len() as u64) < HEADER {
        return Ok(None);
    }
    let (size, kind, header) = size_of(bytes, offset, len - offset)?;
    let what = kind.into();
    reader.charge_header()?;
    reader.check_inside(offset, size, what)?;
    Ok(Some(Header { kind, body_at: offset + header, end: offset + size }))
}

/// The size of a box, its name and the bytes of its header.
fn size_of(bytes: &[u8], at: u64, rest: u64) -> Result<(u64, [u8; 4], u64), VideoError> {
    let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok();
    let kind: [u8; 4] = number(4).unwrap_or_default();
    let small = u64::from(u32::from_be_bytes(number(0).unwrap_or_default()));
    let (size, header) = match small {
        0 => (rest, HEADER),
        1 => {
            let large = bytes.get(8..16).and_then(|bytes| bytes.try_into().ok());
            (u64::from_be_bytes(large.unwrap_or_default()), 2 * HEADER)
        }
        small => (small, HEADER),
    };
    if size < header {
        return Err(VideoError::Value {
            container: CONTAINER,
            what: kind.into(),
            offset: at,
            field: "size",
            found: size,
            expected: "at least the size of the header",
        });
    }
    Ok((size, kind, header))
}

/// A box in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoxRef<'a> {
    pub(super) kind: [u8; 4],
    /// The offset of its header in the file.
    pub(super) at: u64,
    /// The offset of its body in the file.
    pub(super) body_at: u64,
    pub(super) body: &'a [u8],
}

impl<'a> BoxRef<'a> {
    /// The boxes in this one, from byte `skip` of its body on.
    pub(super) fn children(&self, skip: usize) -> Children<'a> {
        let bytes = self.body.get(skip..).unwrap_or_default();
        Children { bytes, at: self.body_at + skip as u64 }
    }

    /// The first box of a name in this one.
    pub(super) fn child(&self, kind: &[u8; 4]) -> Result<Option<Self>, VideoError> {
        self.children(0)
            .find(|child| child.as_ref().map_or(true, |child| child.kind == *kind))
            .transpose()
    }

    /// The first box of a name in this one, which must be there.
    pub(super) fn require(&self, kind: &[u8; 4], part: &'static str) -> Result<Self, VideoError> {
        let missing = || {
            let what = self.kind.into();
            VideoError::Missing { container: CONTAINER, part, what, offset: self.at }
        };
        self.child(kind)?.ok_or_else(missing)
    }

    /// `N` bytes at byte `at` of the body.
    pub(super) fn array<const N: usize>(&self, at: usize) -> Result<[u8; N], VideoError> {
        let bytes = self.body.get(at..).and_then(|rest| rest.first_chunk::<N>());
        bytes.copied().ok_or_else(|| self.truncated((at + N) as u64))
    }

    pub(super) fn u16(&self, at: usize) -> Result<u16, VideoError> {
        Ok(u16::from_be_bytes(self.array(at)?))
    }

    pub(super) fn u32(&self, at: usize) -> Result<u32, VideoError> {
        Ok(u32::from_be_bytes(self.array(at)?))
    }

    pub(super) fn u64(&self, at: usize) -> Result<u64, VideoError> {
        Ok(u64::from_be_bytes(self.array(at)?))
    }

    /// The version of a full box.
    pub(super) fn version(&self) -> Result<u8, VideoError> {
        Ok(self.array::<1>(0)?[0])
    }

    /// The flags of a full box.
    pub(super) fn flags(&self) -> Result<u32, VideoError> {
        Ok(self.u32(0)? & 0x00ff_ffff)
    }

    /// The entries of a table that starts with their number at byte `count_at` of the body, each of
    /// `size` bytes. The table is in the box.
    pub(super) fn entries(&self, count_at: usize, size: usize) -> Result<&'a [u8], VideoError> {
        let count = self.u32(count_at)?;
        let start = count_at + 4;
        let need = u64::from(count) * size as u64;
        let entries =
            usize::try_from(need).ok().and_then(|need| self.body.get(start..)?.get(..need));
        entries.ok_or_else(|| self.truncated(start as u64 + need))
    }

    pub(super) fn truncated(&self, need: u64) -> VideoError {
        let have = self.body.len() as u64;
        let offset = self.at;
        VideoError::Truncated { container: CONTAINER, what: self.kind.into(), offset, need, have }
    }

    pub(super) fn value(
        &self,
        field: &'static str,
        found: u64,
        expected: &'static str,
    ) -> VideoError {
        let what = Name::from(self.kind);
        VideoError::Value { container: CONTAINER, what, offset: self.at, field, found, expected }
    }

    pub(super) fn short(&self, have: u64, need: u64) -> VideoError {
        let what = self.kind.into();
        VideoError::ShortTable { container: CONTAINER, what, offset: self.at, need, have }
    }

    pub(super) fn unsupported(&self, feature: &'static str) -> VideoError {
        let what = self.kind.into();
        VideoError::Unsupported { container: CONTAINER, feature, what, offset: self.at }
    }
}

/// The boxes of a body. Fewer than 8 bytes after the last one are padding, as QuickTime writes
/// it.
#[derive(Clone, Debug)]
pub(super) struct Children<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl<'a> Iterator for Children<'a> {
    type Item = Result<BoxRef<'a>, VideoError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.bytes;
        let rest = bytes.len() as u64;
        if rest < HEADER {
            return None;
        }
        // After an error there is nothing to continue with.
        self.bytes = &[];
        let at = self.at;
        let (size, kind, header) = match size_of(bytes, at, rest) {
            Ok(parts) => parts,
            Err(error) => return Some(Err(error)),
        };
        let parts = usize::try_from(size).ok().and_then(|size| bytes.split_at_checked(size));
        let Some((own, others)) = parts else {
            return Some(Err(VideoError::Truncated {
                container: CONTAINER,
                what: kind.into(),
                offset: at,
                need: size,
                have: rest,
            }));
        };
        self.bytes = others;
        self.at += size;
        let body = own.get(if header == HEADER { 8 } else { 16 }..).unwrap_or_default();
        Some(Ok(BoxRef { kind, at, body_at: at + header, body }))
    }
}
