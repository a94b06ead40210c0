//! The errors between a file, the index of its frames and their pictures.
//!
//! A message is one printable line: it holds numbers and our own words, and names from the file
//! with every other character escaped.

use std::{fmt, io};

use thiserror::Error;

use crate::container::Container;
use crate::info::Codec;

/// The reason why a file has no index, or a frame no plan or no picture.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum VideoError {
    /// No demuxer knows the first bytes.
    #[error("not an MP4, MOV, Matroska, WebM or AVI file ({length} bytes long)")]
    UnknownContainer { length: u64 },
    /// A structure is longer than the bytes that it lies in.
    #[error("{container}: {what} at byte {offset} needs {need} bytes, found {have}")]
    Truncated { container: Container, what: Name, offset: u64, need: u64, have: u64 },
    /// A field holds a value that the container does not allow.
    #[error("{container}: {what} at byte {offset}: {field} is {found}, expected {expected}")]
    Value {
        container: Container,
        what: Name,
        offset: u64,
        field: &'static str,
        found: u64,
        expected: &'static str,
    },
    /// A table that lists less than another says.
    #[error("{container}: {what} at byte {offset} describes {have} of {need} packets")]
    ShortTable { container: Container, what: Name, offset: u64, need: u64, have: u64 },
    /// A packet that does not lie in the file.
    #[error(
        "{container}: packet {packet} of {bytes} bytes at byte {offset} is not inside the file of \
         {length} bytes"
    )]
    OutsideFile { container: Container, packet: u64, offset: u64, bytes: u64, length: u64 },
    /// A part that every video of the container has is not there.
    #[error("{container}: no {part} in {what} at byte {offset}")]
    Missing { container: Container, part: &'static str, what: Name, offset: u64 },
    /// The file uses a feature that is recognised and not read.
    #[error("{container}: unsupported: {feature} ({what} at byte {offset})")]
    Unsupported { container: Container, feature: &'static str, what: Name, offset: u64 },
    /// The codec is one that this build does not decode.
    #[error("{container}: no decoder for {codec} (`{name}`){}", where_it_is(*codec))]
    NoDecoder {
        container: Container,
        codec: Codec,
        /// The container's name of it.
        name: String,
    },
    /// An index would exceed one of the [`Limits`](crate::Limits); nothing was allocated for it.
    #[error("limit exceeded: {limit} is {max}, this file needs {need}")]
    LimitExceeded {
        /// The limit that is too small.
        limit: Limit,
        max: u64,
        need: u64,
    },
    /// A frame after the last one was asked for.
    #[error("frame {frame} of a video of {count} frames")]
    NoFrame { frame: u64, count: u64 },
    /// A plan would decode more pictures than [`Limits::max_pictures`](crate::Limits); nothing was
    /// decoded.
    #[error(
        "the frames take {need} decoded pictures, at most {max} (max_pictures) are allowed: a video \
         with more key frames takes fewer"
    )]
    TooManyPictures { need: u64, max: u64 },
    /// A packet that its decoder refuses.
    #[error("packet {packet} at byte {offset}: {source}")]
    Decode { packet: u64, offset: u64, source: CodecError },
    /// A packet without the picture that is to be shown.
    #[error("packet {packet} at byte {offset} has no picture")]
    NoPicture { packet: u64, offset: u64 },
    /// A picture whose planes are not luma and chroma.
    #[error(
        "matrix coefficients {}: expected a matrix of luma and chroma, such as 1 or 6",
        code_point.unwrap_or_default()
    )]
    NotLumaAndChroma { code_point: Option<u8> },
    /// A stored index holds a value that no index has, or that does not fit its video.
    #[error("video index: {what} is {found}, expected {expected}")]
    StoredIndex { what: &'static str, found: u64, expected: &'static str },
    /// A stored index ends too early.
    #[error("video index: byte {offset} is followed by {have} bytes, expected {need}")]
    ShortIndex { offset: u64, need: u64, have: u64 },
    /// The source did not give bytes.
    #[error("reading {bytes} bytes at byte {offset}: {source}")]
    Read { offset: u64, bytes: u64, source: io::Error },
}

/// The name of a box, chunk or element, printed as one line of printable characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The four characters of a box or chunk.
    FourCc([u8; 4]),
    /// The number of an EBML element.
    Element(u32),
    /// A structure without a name of its own.
    Text(&'static str),
}

/// The builds that decode the codec, if it is a feature that this one lacks.
fn where_it_is(codec: Codec) -> &'static str {
    if codec == Codec::H265 { ": builds with the feature `hevc` have one" } else { "" }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FourCc(name) => write!(f, "`{}`", name.escape_ascii()),
            Self::Element(number) => write!(f, "element {number:#X}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<[u8; 4]> for Name {
    fn from(name: [u8; 4]) -> Self {
        Self::FourCc(name)
    }
}

/// The error of the crate that decodes a packet, printed as one line of printable characters.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{codec}: {}", reason.escape_debug())]
#[expect(missing_docs, reason = "the type says it")]
pub struct CodecError {
    pub codec: &'static str,
    pub reason: String,
}

/// Names one field of [`Limits`](crate::Limits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// Packets of the video track.
    Packets,
    /// Bytes of a header or index that is read whole.
    TableBytes,
    /// Headers of boxes, chunks or elements.
    Headers,
    /// Bytes of a packet that is decoded.
    PacketBytes,
    /// Bytes that a decoder holds.
    DecoderBytes,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Packets => "max_packets",
            Self::TableBytes => "max_table_bytes",
            Self::Headers => "max_headers",
            Self::PacketBytes => "max_packet_bytes",
            Self::DecoderBytes => "max_decoder_bytes",
        })
    }
}
