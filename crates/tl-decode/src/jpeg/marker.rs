//! The marker segments of a JPEG file (ITU-T T.81 annex B): the header, and a walk over all of
//! them that finds what a decoder would pass over. No entropy-coded data is decoded.

use crate::error::{DecodeError, Defect, Limit};
use crate::format::Format;
use crate::limits::{Limits, check};
use crate::orientation::Orientation;

const SOF0: u8 = 0xC0;
const SOF1: u8 = 0xC1;
const SOF2: u8 = 0xC2;
const SOF15: u8 = 0xCF;
const DHT: u8 = 0xC4;
const JPG: u8 = 0xC8;
const DAC: u8 = 0xCC;
pub(super) const RST0: u8 = 0xD0;
pub(super) const RST7: u8 = 0xD7;
const SOI: u8 = 0xD8;
pub(super) const EOI: u8 = 0xD9;
pub(super) const SOS: u8 = 0xDA;
const APP1: u8 = 0xE1;
const TEM: u8 = 0x01;

/// How the frame is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    /// Baseline and extended sequential, Huffman coded.
    Sequential,
    /// Progressive, Huffman coded.
    Progressive,
    /// Arithmetic, lossless or hierarchical.
    Other,
}

/// The frame header (B.2.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) marker: u8,
    pub(super) process: Process,
    pub(super) precision: u8,
    pub(super) width: u16,
    pub(super) height: u16,
    pub(super) components: u8,
    /// Blocks of an MCU across and down: the largest sampling factors of any component.
    pub(super) sampling: (u8, u8),
    /// Blocks of an MCU over all components.
    pub(super) blocks_per_mcu: u16,
}

impl Frame {
    pub(super) fn mcus_per_row(&self) -> u16 {
        self.width.div_ceil(u16::from(self.sampling.0) * 8)
    }

    pub(super) fn mcu_rows(&self) -> u16 {
        self.height.div_ceil(u16::from(self.sampling.1) * 8)
    }
}

/// What stands before the first scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) frame: Frame,
    pub(super) orientation: Orientation,
    first_scan: usize,
}

/// Reads all segments up to the first scan.
pub(super) fn read_header(bytes: &[u8]) -> Result<Header, DecodeError> {
    let mut walk = Walk { bytes, at: 2 };
    let mut frame = None;
    let mut orientation = None;
    loop {
        let first_scan = walk.at;
        let (marker, segment) = walk.next_segment()?;
        match marker {
            SOF0..=SOF15 if !matches!(marker, DHT | JPG | DAC) => {
                if frame.is_some() {
                    return Err(Defect::Stray {
                        format: Format::Jpeg,
                        what: "second frame header",
                        offset: first_scan as u64,
                    }
                    .into());
                }
                frame = Some(parse_frame(marker, segment, first_scan)?);
            }
            APP1 if orientation.is_none() => {
                orientation =
                    segment.starts_with(b"Exif\0\0").then(|| Orientation::from_exif(segment));
            }
            SOS => {
                let frame = frame.ok_or(Defect::Missing {
                    format: Format::Jpeg,
                    what: "a frame header before the first scan",
                })?;
                let orientation = orientation.unwrap_or_default();
                return Ok(Header { frame, orientation, first_scan });
            }
            EOI => {
                return Err(Defect::Missing { format: Format::Jpeg, what: "a scan" }.into());
            }
            _ => {}
        }
    }
}

fn parse_frame(marker: u8, segment: &[u8], offset: usize) -> Result<Frame, DecodeError> {
    const HEAD: usize = 6;
    const PER_COMPONENT: usize = 3;
    let Some((&[precision, h1, h0, w1, w0, components], rest)) =
        segment.split_first_chunk::<HEAD>()
    else {
        return Err(truncated("frame header", offset, HEAD, segment.len()));
    };
    let need = usize::from(components) * PER_COMPONENT;
    if rest.len() != need {
        return Err(truncated("frame components", offset, need, rest.len()));
    }
    let width = u16::from_be_bytes([w1, w0]);
    if width == 0 || components == 0 {
        let what = "frame width or component count";
        return Err(Defect::Value { format: Format::Jpeg, what, found: 0 }.into());
    }
    let process = match marker {
        SOF0 | SOF1 => Process::Sequential,
        SOF2 => Process::Progressive,
        _ => Process::Other,
    };
    let height = u16::from_be_bytes([h1, h0]);
    let (mut sampling, mut blocks_per_mcu) = ((1, 1), 0u16);
    for &factors in rest.iter().skip(1).step_by(PER_COMPONENT) {
        let (across, down) = (factors >> 4, factors & 0x0F);
        if !(1..=4).contains(&across) || !(1..=4).contains(&down) {
            let what = "sampling factors";
            return Err(Defect::Value { format: Format::Jpeg, what, found: factors.into() }.into());
        }
        sampling = (sampling.0.max(across), sampling.1.max(down));
        blocks_per_mcu += u16::from(across * down);
    }
    Ok(Frame { marker, process, precision, width, height, components, sampling, blocks_per_mcu })
}

/// Walks from the first scan to the end of the image and refuses what libjpeg warns about without
/// decoding: bytes between segments, restart markers out of turn, a missing end. Bytes after the
/// end of the image are allowed; cameras write them.
pub(super) fn check_scans(
    bytes: &[u8],
    header: &Header,
    limits: &Limits,
) -> Result<(), DecodeError> {
    let mut walk = Walk { bytes, at: header.first_scan };
    let mut scans = 0u32;
    loop {
        let (marker, _) = walk.next_segment()?;
        match marker {
            SOS => {
                scans += 1;
                check(Limit::JpegScans, limits.jpeg_scans.into(), scans.into())?;
                walk.skip_entropy_coded()?;
            }
            EOI => return Ok(()),
            _ => {}
        }
    }
}

/// A position among the segments of a file.
pub(super) struct Walk<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Walk<'a> {
    /// The next marker and the contents of its segment, empty for markers that stand alone.
    pub(super) fn next_segment(&mut self) -> Result<(u8, &'a [u8]), DecodeError> {
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
        if matches!(marker, EOI | TEM) {
            return Ok((marker, &[]));
        }
        if matches!(marker, SOI | RST0..=RST7) {
            return Err(stray("SOI or RST marker outside entropy-coded data", start));
        }
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(&[high, low]) = rest.first_chunk() else {
            return Err(truncated("segment length", self.at, 2, rest.len()));
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length < 2 {
            let found = length as u64;
            return Err(
                Defect::Value { format: Format::Jpeg, what: "segment length", found }.into()
            );
        }
        let Some(segment) = rest.get(2..length) else {
            return Err(truncated("segment", start, length, rest.len()));
        };
        self.at += length;
        Ok((marker, segment))
    }

    /// Goes to the marker that ends the entropy-coded data.
    fn skip_entropy_coded(&mut self) -> Result<(), DecodeError> {
        let mut next_restart = RST0;
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
            if end.marker != next_restart {
                return Err(stray("restart marker out of turn", end.marker_at));
            }
            next_restart = if end.marker == RST7 { RST0 } else { end.marker + 1 };
            self.at = end.after_marker;
        }
    }
}

/// The marker behind a run of entropy-coded data.
pub(super) struct EntropyCodedEnd {
    pub(super) marker: u8,
    /// Its first fill byte or 0xFF.
    pub(super) marker_at: usize,
    pub(super) after_marker: usize,
}

/// Finds the next marker at or behind `from`, restart markers included.
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

fn truncated(what: &'static str, offset: usize, need: usize, have: usize) -> DecodeError {
    let (offset, need, have) = (offset as u64, need as u64, have as u64);
    Defect::Truncated { format: Format::Jpeg, what, offset, need, have }.into()
}

fn stray(what: &'static str, offset: usize) -> DecodeError {
    Defect::Stray { format: Format::Jpeg, what, offset: offset as u64 }.into()
}
