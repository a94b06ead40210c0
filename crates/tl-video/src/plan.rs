//! Plans: the packets to decode for some frames.

use std::ops::Range;

use crate::error::VideoError;
use crate::index::VideoIndex;
use crate::info::FrameTimes;

/// The pictures that a decoder of H.264 or H.265 may hold back before it knows their order.
pub(crate) const MAX_REORDERED: u64 = 16;

/// The packets to decode for some frames, and the frames to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodePlan {
    /// Runs in ascending order. A decoder starts afresh at each one.
    pub runs: Vec<Run>,
}

/// Packets that follow each other, from one at which decoding can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The numbers of the packets, in the order in which they are decoded. After the last one the
    /// decoder is drained.
    pub packets: Range<u64>,
    /// The numbers of the frames to keep, in ascending order and each once. Other pictures of the
    /// run are dropped; those shown before its first packet may be damaged, because they need
    /// packets before it.
    pub frames: Vec<u64>,
}

impl DecodePlan {
    /// How many packets are decoded.
    pub fn packet_count(&self) -> u64 {
        self.runs.iter().map(|run| run.packets.end - run.packets.start).sum()
    }

    /// How many frames are kept.
    pub fn frame_count(&self) -> u64 {
        self.runs.iter().map(|run| run.frames.len() as u64).sum()
    }
}

impl VideoIndex {
    /// The least that is decoded for `frames`, which may be in any order and repeated.
    ///
    /// A run starts at the last key packet that comes before a frame both in the file and on
    /// display: pictures that are stored after a key picture and shown before it need the group
    /// before. A frame continues the run before it where that takes no more packets than a run of
    /// its own.
    ///
    /// # Errors
    /// [`VideoError::NoFrame`].
    pub fn cost(&self, frames: &[u64]) -> Result<DecodePlan, VideoError> {
        let mut needed = Vec::with_capacity(frames.len());
        for frame in frames {
            let no_frame = VideoError::NoFrame { frame: *frame, count: self.frame_count() };
            needed.push((self.packets_of(*frame).ok_or(no_frame)?, *frame));
        }
        needed.sort_by_key(|(packets, frame)| (packets.start, packets.end, *frame));
        let mut runs: Vec<Run> = Vec::new();
        for (packets, frame) in needed {
            match runs.last_mut().filter(|run| packets.start <= run.packets.end) {
                Some(run) => {
                    run.packets.end = run.packets.end.max(packets.end);
                    run.frames.push(frame);
                }
                None => runs.push(Run { packets, frames: vec![frame] }),
            }
        }
        for run in &mut runs {
            run.frames.sort_unstable();
            run.frames.dedup();
        }
        Ok(DecodePlan { runs })
    }

    /// The packets that decode a frame, from the key packet to its own.
    pub(crate) fn packets_of(&self, frame: u64) -> Option<Range<u64>> {
        let frame = self.frame(frame)?;
        let mut start = self.key_before(frame.packet).unwrap_or(0);
        // A frame is shown before at most as many key pictures as can be held.
        for _ in 0..MAX_REORDERED {
            if self.packet_pts(start)? <= frame.pts || start == 0 {
                break;
            }
            start = self.key_before(start - 1).unwrap_or(0);
        }
        let end = frame.packet + 1;
        if self.info().times == FrameTimes::Counted && self.info().codec.reorders() {
            let end = (end + MAX_REORDERED).min(self.key_after(frame.packet));
            return Some(start..end);
        }
        Some(start..end)
    }
}
