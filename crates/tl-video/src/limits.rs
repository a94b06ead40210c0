//! The bounds that demuxers and decoders charge before they allocate.

use crate::error::{Limit, VideoError};

/// How much an index or a decoder may cost.
///
/// Demuxers and decoders check these against the numbers in the file before they allocate or loop
/// for them, so a file of a few bytes cannot ask for gigabytes or for hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Packets of the video track, those that an edit list repeats included. Default 4 194 304,
    /// 38 hours at 30 frames a second, and at most 2^32. While a file is opened, each takes 48 bytes, and
    /// up to 144 where an edit list says what is shown.
    pub max_packets: u64,
    /// Bytes of one header or index that is read whole: `moov`, `moof`, `idx1`, `Tracks`.
    /// Default 128 MiB.
    pub max_table_bytes: u64,
    /// Headers of boxes, chunks or elements that are visited. Default 16 777 216.
    pub max_headers: u64,
    /// Bytes of a packet that is decoded. Default 64 MiB.
    pub max_packet_bytes: u64,
    /// Bytes that a decoder may hold: the pictures that the video's header asks it to keep, and what
    /// it notes of their blocks. Default 1 GiB; a video of 3840x2160 with 16 pictures takes half.
    pub max_decoder_bytes: u64,
    /// Pictures that a plan decodes, those included that no caller asked for: a frame needs all from
    /// the key picture before it on. Default 100 000, an hour at 28 frames a second.
    pub max_pictures: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_packets: 1 << 22,
            max_table_bytes: 128 << 20,
            max_headers: 1 << 24,
            max_packet_bytes: 64 << 20,
            max_decoder_bytes: 1 << 30,
            max_pictures: 100_000,
        }
    }
}

impl Limits {
    pub(crate) fn charge_table(&self, bytes: u64) -> Result<(), VideoError> {
        check(Limit::TableBytes, self.max_table_bytes, bytes)
    }

    pub(crate) fn charge_packets(&self, packets: u64) -> Result<(), VideoError> {
        check(Limit::Packets, self.max_packets.min(u32::MAX.into()), packets)
    }

    pub(crate) fn charge_headers(&self, headers: u64) -> Result<(), VideoError> {
        check(Limit::Headers, self.max_headers, headers)
    }
}

pub(crate) fn check(limit: Limit, max: u64, need: u64) -> Result<(), VideoError> {
    if need > max { Err(VideoError::LimitExceeded { limit, max, need }) } else { Ok(()) }
}
