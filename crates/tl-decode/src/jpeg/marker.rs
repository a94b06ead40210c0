//! The marker segments of a JPEG file (ITU-T T.81 annex B): a strict walk over them, which does not
//! look into their contents and decodes no entropy-coded data.

use crate::error::{DecodeError, Defect, Feature};
use crate::format::Format;

pub(super) const SOF0: u8 = 0xC0;
pub(super) const SOF1: u8 = 0xC1;
pub(super) const SOF2: u8 = 0xC2;
pub(super) const SOF3: u8 = 0xC3;
const SOF15: u8 = 0xCF;
pub(super) const DHT: u8 = 0xC4;
const JPG: u8 = 0xC8;
const DAC: u8 = 0xCC;
pub(super) const RST0: u8 = 0xD0;
pub(super) const RST7: u8 = 0xD7;
const SOI: u8 = 0xD8;
pub(super) const EOI: u8 = 0xD9;
pub(super) const SOS: u8 = 0xDA;
pub(super) const DQT: u8 = 0xDB;
const DNL: u8 = 0xDC;
pub(super) const DRI: u8 = 0xDD;
const DHP: u8 = 0xDE;
const EXP: u8 = 0xDF;
pub(super) const APP0: u8 = 0xE0;
pub(super) const APP1: u8 = 0xE1;
pub(super) const APP14: u8 = 0xEE;
const APP15: u8 = 0xEF;
const COM: u8 = 0xFE;
const TEM: u8 = 0x01;

/// Smaller markers mean nothing, and end no entropy-coded data.
pub(super) const FIRST_FRAME_MARKER: u8 = SOF0;

/// Whether the marker begins a frame header.
pub(super) fn is_frame(marker: u8) -> bool {
    matches!(marker, SOF0..=SOF15) && !matches!(marker, DHT | JPG | DAC)
}

/// Whether the marker begins a segment that a file with one frame may have.
fn begins_segment(marker: u8) -> bool {
    matches!(marker, SOF0..=SOF15 | SOS | DQT | DNL | DRI | APP0..=APP15 | COM) && marker != JPG
}

/// A marker and the contents of its segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub(super) marker: u8,
    /// Offset of the marker in the file.
    pub(super) at: usize,
    /// The bytes after the length, empty for markers that stand alone.
    pub(super) data: &'a [u8],
}

/// A position among the segments of a file.
#[derive(Clone, Debug)]
pub(super) struct Walk<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Walk<'a> {
    /// Stands after the SOI marker that every file begins with.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        if !bytes.starts_with(&[0xFF, SOI]) {
            return Err(stray("expected the start of an image", 0));
        }
        Ok(Self { bytes, at: 2 })
    }

    /// The next marker with its segment. Bytes between segments are an error, fill bytes are not,
    /// and neither are restart markers, which hardware writes after a scan's last MCU as well:
    /// libjpeg passes over them wherever a marker may be.
    pub(super) fn next_segment(&mut self) -> Result<Segment<'a>, DecodeError> {
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let fill = rest.iter().take_while(|&&byte| byte == 0xFF).count();
        let Some(&marker) = rest.get(fill) else {
            return Err(truncated("marker", start, 2, rest.len()));
        };
        if fill == 0 || marker == 0 {
            return Err(stray("expected a marker", start));
        }
        self.at += fill + 1;
        if matches!(marker, EOI | TEM | RST0..=RST7) {
            return Ok(Segment { marker, at: start, data: &[] });
        }
        if matches!(marker, DHP | EXP) {
            return Err(Feature::JpegHierarchical.into());
        }
        if !begins_segment(marker) {
            let what = if marker == SOI { "second start of an image" } else { "unknown marker" };
            return Err(stray(what, start));
        }
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(&[high, low]) = rest.first_chunk() else {
            return Err(truncated("segment length", self.at, 2, rest.len()));
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length < 2 {
            return Err(value("length", length as u64, start));
        }
        let Some(data) = rest.get(2..length) else {
            return Err(truncated("segment", start, length, rest.len()));
        };
        self.at += length;
        Ok(Segment { marker, at: start, data })
    }

    /// Goes to the marker that ends the entropy-coded data. Who decodes it looks at the restart
    /// markers in it, of which those after the last MCU may have any number.
    pub(super) fn skip_entropy_coded(&mut self) -> Result<(), DecodeError> {
        loop {
            let start = self.at;
            let Some(end) = entropy_coded_end(self.bytes, start) else {
                let have = self.bytes.len() - start;
                return Err(truncated("scan", start, have + 2, have));
            };
            self.at = end.marker_at;
            if !matches!(end.marker, RST0..=RST7) {
                return Ok(());
            }
            self.at = end.after_marker;
        }
    }
}

/// The marker after a run of entropy-coded data.
pub(super) struct EntropyCodedEnd {
    pub(super) marker: u8,
    /// Its first fill byte or 0xFF.
    pub(super) marker_at: usize,
    pub(super) after_marker: usize,
}

/// Finds the next marker at or after `from`, restart markers included.
pub(super) fn entropy_coded_end(bytes: &[u8], from: usize) -> Option<EntropyCodedEnd> {
    let mut at = from;
    loop {
        let marker_at = at + memchr::memchr(0xFF, bytes.get(at..)?)?;
        let fill = bytes[marker_at..].iter().take_while(|&&byte| byte == 0xFF).count();
        let marker = *bytes.get(marker_at + fill)?;
        let after_marker = marker_at + fill + 1;
        if marker != 0 {
            return Some(EntropyCodedEnd { marker, marker_at, after_marker });
        }
        at = after_marker;
    }
}

pub(super) fn truncated(
    what: &'static str,
    offset: usize,
    need: usize,
    have: usize,
) -> DecodeError {
    let offset = offset as u64;
    let need = need as u64;
    let have = have as u64;
    Defect::Truncated { format: Format::Jpeg, what, offset, need, have }.into()
}

pub(super) fn stray(what: &'static str, offset: usize) -> DecodeError {
    Defect::Stray { format: Format::Jpeg, what, offset: offset as u64 }.into()
}

pub(super) fn value(what: &'static str, found: u64, segment_at: usize) -> DecodeError {
    Defect::ValueAt { format: Format::Jpeg, what, found, offset: segment_at as u64 }.into()
}

pub(super) fn missing(what: &'static str) -> DecodeError {
    Defect::Missing { format: Format::Jpeg, what }.into()
}
