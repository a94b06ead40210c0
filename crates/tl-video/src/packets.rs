//! The packets of a track while a demuxer collects them.

use crate::error::VideoError;
use crate::limits::Limits;
use crate::read::Reader;

/// A packet as a demuxer found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) pts: i64,
    pub(crate) duration: i64,
    /// The number of the edit that the packet belongs to; frames of one edit are shown after those
    /// of the edits before it.
    pub(crate) edit: u32,
    pub(crate) is_key: bool,
    /// False where the packet is needed to decode others alone.
    pub(crate) is_shown: bool,
}

/// The packets of a track in the order in which they are decoded.
#[derive(Debug)]
pub(crate) struct Packets {
    limits: Limits,
    pub(crate) found: Vec<Found>,
}

impl Packets {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { limits: *limits, found: Vec::new() }
    }

    /// Fails when there is no room for more packets.
    pub(crate) fn charge(&self, more: u64) -> Result<(), VideoError> {
        self.limits.charge_packets((self.found.len() as u64).saturating_add(more))
    }

    /// Adds a packet, if it has bytes and they are in the file: a packet without bytes shows the
    /// picture before it for longer.
    pub(crate) fn push(&mut self, reader: &Reader<'_>, found: Found) -> Result<(), VideoError> {
        if found.bytes == 0 {
            return Ok(());
        }
        self.charge(1)?;
        let end = found.offset.checked_add(found.bytes);
        if end.is_none_or(|end| end > reader.len) {
            return Err(VideoError::OutsideFile {
                container: reader.container,
                packet: self.found.len() as u64,
                offset: found.offset,
                bytes: found.bytes,
                length: reader.len,
            });
        }
        self.found.push(found);
        Ok(())
    }
}
