//! EBML (RFC 8794): elements with numbers of variable length.

use super::CONTAINER;
use crate::error::{Name, VideoError};
use crate::read::Reader;

/// The numbers of elements, as RFC 9559 names them.
pub(super) mod id {
    pub(in crate::matroska) const SEGMENT: u32 = 0x1853_8067;
    pub(in crate::matroska) const INFO: u32 = 0x1549_A966;
    pub(in crate::matroska) const TIMESTAMP_SCALE: u32 = 0x2A_D7B1;
    pub(in crate::matroska) const TRACKS: u32 = 0x1654_AE6B;
    pub(in crate::matroska) const TRACK_ENTRY: u32 = 0xAE;
    pub(in crate::matroska) const TRACK_NUMBER: u32 = 0xD7;
    pub(in crate::matroska) const TRACK_TYPE: u32 = 0x83;
    pub(in crate::matroska) const FLAG_ENABLED: u32 = 0xB9;
    pub(in crate::matroska) const FLAG_DEFAULT: u32 = 0x88;
    pub(in crate::matroska) const DEFAULT_DURATION: u32 = 0x23_E383;
    pub(in crate::matroska) const CODEC_ID: u32 = 0x86;
    pub(in crate::matroska) const CODEC_PRIVATE: u32 = 0x63A2;
    pub(in crate::matroska) const CONTENT_ENCODINGS: u32 = 0x6D80;
    pub(in crate::matroska) const VIDEO: u32 = 0xE0;
    pub(in crate::matroska) const PIXEL_WIDTH: u32 = 0xB0;
    pub(in crate::matroska) const PIXEL_HEIGHT: u32 = 0xBA;
    pub(in crate::matroska) const DISPLAY_WIDTH: u32 = 0x54B0;
    pub(in crate::matroska) const DISPLAY_HEIGHT: u32 = 0x54BA;
    pub(in crate::matroska) const DISPLAY_UNIT: u32 = 0x54B2;
    pub(in crate::matroska) const COLOUR: u32 = 0x55B0;
    pub(in crate::matroska) const MATRIX_COEFFICIENTS: u32 = 0x55B1;
    pub(in crate::matroska) const RANGE: u32 = 0x55B9;
    pub(in crate::matroska) const PROJECTION: u32 = 0x7670;
    pub(in crate::matroska) const PROJECTION_POSE_ROLL: u32 = 0x7675;
    pub(in crate::matroska) const CLUSTER: u32 = 0x1F43_B675;
    pub(in crate::matroska) const TIMESTAMP: u32 = 0xE7;
    pub(in crate::matroska) const SIMPLE_BLOCK: u32 = 0xA3;
    pub(in crate::matroska) const BLOCK_GROUP: u32 = 0xA0;
    pub(in crate::matroska) const BLOCK: u32 = 0xA1;
    pub(in crate::matroska) const BLOCK_DURATION: u32 = 0x9B;
    pub(in crate::matroska) const REFERENCE_BLOCK: u32 = 0xFB;
}

/// The largest header: a number of 4 bytes and a size of 8.
const HEADER: u64 = 12;

/// A number of 1 to 8 bytes at the front of `bytes`, and its length. All bits of a number that is
/// not known are set.
pub(super) fn number(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let len = first.leading_zeros() as usize + 1;
    let rest = bytes.get(1..len)?;
    let start = u64::from(first) & (0xff_u64 >> len);
    Some((rest.iter().fold(start, |value, byte| (value << 8) | u64::from(*byte)), len))
}

/// The number of an element, its size and the length of both; a size of `None` is unknown.
fn id_and_size(bytes: &[u8]) -> Option<(u32, Option<u64>, usize)> {
    let first = *bytes.first()?;
    let len = first.leading_zeros() as usize + 1;
    let name = bytes.get(..len).filter(|_| len <= 4)?;
    let id = name.iter().fold(0, |value, byte| (value << 8) | u32::from(*byte));
    let (size, size_len) = number(bytes.get(len..)?)?;
    let is_unknown = size == u64::MAX >> (64 - 7 * size_len);
    Some((id, (!is_unknown).then_some(size), len + size_len))
}

/// The header of an element of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) id: u32,
    pub(super) at: u64,
    pub(super) body_at: u64,
    pub(super) end: u64,
}

/// The header of the element at `offset`, which ends before `end`. `None` at the end.
pub(super) fn header(
    reader: &mut Reader<'_>,
    offset: u64,
    end: u64,
) -> Result<Option<Element>, VideoError> {
    let have = end.saturating_sub(offset);
    if have == 0 {
        return Ok(None);
    }
    let Some((id, size, len)) = id_and_size(reader.up_to(offset, HEADER.min(have))?) else {
        let what = Name::Text("an element");
        return Err(if have < HEADER {
            VideoError::Truncated { container: CONTAINER, what, offset, need: HEADER, have }
        } else {
            let field = "first byte";
            let first = reader.array::<1>(offset, what)?[0];
            let expected = "a number of at most 4 bytes, and a size of at most 8";
            let found = first.into();
            VideoError::Value { container: CONTAINER, what, offset, field, found, expected }
        });
    };
    reader.charge_header()?;
    let mut element = Element { id, at: offset, body_at: offset + len as u64, end };
    let Some(size) = size else {
        if id == id::SEGMENT || id == id::CLUSTER {
            return Ok(Some(element));
        }
        return Err(element.unsupported("an unknown size"));
    };
    let have = end.saturating_sub(element.body_at);
    if size > have {
        let what = element.name();
        let container = CONTAINER;
        return Err(VideoError::Truncated { container, what, offset, need: size, have });
    }
    element.end = element.body_at + size;
    Ok(Some(element))
}

impl Element {
    pub(super) fn name(&self) -> Name {
        Name::Element(self.id)
    }

    /// Reads the body.
    pub(super) fn body(&self, reader: &Reader<'_>) -> Result<Vec<u8>, VideoError> {
        reader.table(self.body_at, self.end - self.body_at, self.name())
    }

    /// The element with its body.
    pub(super) fn of<'a>(&self, body: &'a [u8]) -> ElementRef<'a> {
        ElementRef { id: self.id, at: self.at, body_at: self.body_at, body }
    }

    pub(super) fn truncated(&self, need: u64) -> VideoError {
        let what = self.name();
        let have = self.end - self.body_at;
        VideoError::Truncated { container: CONTAINER, what, offset: self.at, need, have }
    }

    pub(super) fn value(
        &self,
        field: &'static str,
        found: u64,
        expected: &'static str,
    ) -> VideoError {
        let what = self.name();
        VideoError::Value { container: CONTAINER, what, offset: self.at, field, found, expected }
    }

    pub(super) fn unsupported(&self, feature: &'static str) -> VideoError {
        let what = self.name();
        VideoError::Unsupported { container: CONTAINER, feature, what, offset: self.at }
    }
}

/// An element in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementRef<'a> {
    pub(super) id: u32,
    pub(super) at: u64,
    body_at: u64,
    pub(super) body: &'a [u8],
}

impl<'a> ElementRef<'a> {
    /// The elements in this one.
    pub(super) fn children(&self) -> Children<'a> {
        Children { bytes: self.body, at: self.body_at }
    }

    /// The first element of a number in this one.
    pub(super) fn child(&self, id: u32) -> Result<Option<Self>, VideoError> {
        let is_it = |child: &Result<Self, _>| child.as_ref().map_or(true, |child| child.id == id);
        self.children().find(is_it).transpose()
    }

    /// The unsigned number that is the body.
    pub(super) fn unsigned(&self) -> Result<u64, VideoError> {
        if self.body.len() > 8 {
            let need = self.body.len() as u64;
            return Err(self.value("bytes of a number", need, "at most 8"));
        }
        Ok(self.body.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
    }

    /// The unsigned number of an element in this one, or `default` if it is absent.
    pub(super) fn number(&self, id: u32, default: u64) -> Result<u64, VideoError> {
        self.child(id)?.map_or(Ok(default), |child| child.unsigned())
    }

    pub(super) fn value(
        &self,
        field: &'static str,
        found: u64,
        expected: &'static str,
    ) -> VideoError {
        let what = Name::Element(self.id);
        VideoError::Value { container: CONTAINER, what, offset: self.at, field, found, expected }
    }
}

/// The elements of a body.
#[derive(Clone, Debug)]
pub(super) struct Children<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl<'a> Iterator for Children<'a> {
    type Item = Result<ElementRef<'a>, VideoError>;

    fn next(&mut self) -> Option<Self::Item> {
        // After an error there is nothing to continue with.
        let bytes = std::mem::take(&mut self.bytes);
        let at = self.at;
        let container = CONTAINER;
        if bytes.is_empty() {
            return None;
        }
        let have = bytes.len() as u64;
        let Some((id, size, len)) = id_and_size(bytes) else {
            let what = Name::Text("an element");
            let need = have.saturating_add(1);
            return Some(Err(VideoError::Truncated { container, what, offset: at, need, have }));
        };
        let rest = bytes.get(len..).unwrap_or_default();
        // A size that is unknown is more than there is.
        let need = size.unwrap_or(u64::MAX);
        let parts = usize::try_from(need).ok().and_then(|need| rest.split_at_checked(need));
        let Some((body, others)) = parts else {
            let what = Name::Element(id);
            let have = rest.len() as u64;
            return Some(Err(VideoError::Truncated { container, what, offset: at, need, have }));
        };
        self.bytes = others;
        self.at += (len + body.len()) as u64;
        Some(Ok(ElementRef { id, at, body_at: at + len as u64, body }))
    }
}
