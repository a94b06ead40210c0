//! Figures of an index: the lengths of groups, the rate, and the cost of a frame alone.

use std::ops::Range;

use crate::index::VideoIndex;
use crate::info::FrameTimes;

/// The shortest distance between frames, in ticks, whose rounding can be told from another rate.
const LEAST_TICKS: i64 = 4;

/// The groups of pictures of a video: packets from one at which decoding can start to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Groups {
    /// How many groups there are. Packets before the first key packet are one, too.
    pub count: u64,
    /// Packets of the shortest group.
    pub shortest: u64,
    /// Packets of the longest group.
    pub longest: u64,
}

/// The cost of one frame alone.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct FrameCost {
    /// Packets that are decoded for a frame, itself included: the mean over all frames.
    pub mean_packets: f64,
    /// The same for the frame that takes the most.
    pub max_packets: u64,
    /// Bytes of these packets: the mean over all frames.
    pub mean_bytes: f64,
    /// The same for the frame that takes the most.
    pub max_bytes: u64,
}

impl VideoIndex {
    /// The groups of pictures.
    pub fn groups(&self) -> Groups {
        let mut groups = Groups { count: 0, shortest: u64::MAX, longest: 0 };
        let mut start = 0;
        while start < self.packet_count() {
            let end = self.key_after(start);
            groups.count += 1;
            groups.shortest = groups.shortest.min(end - start);
            groups.longest = groups.longest.max(end - start);
            start = end;
        }
        groups
    }

    /// Whether the frames follow each other at equal distances, as far as the ticks of the time base
    /// can tell. A single frame has no distance.
    pub fn is_constant_rate(&self) -> bool {
        if self.info().times == FrameTimes::Counted {
            return true;
        }
        let mut shortest = i64::MAX;
        let mut longest = 0;
        let mut last = None;
        for number in 0..self.frame_count() {
            let Some(frame) = self.frame(number) else { continue };
            if let Some(last) = last.replace(frame.pts) {
                let ticks = frame.pts.saturating_sub(last);
                shortest = shortest.min(ticks);
                longest = longest.max(ticks);
            }
        }
        let is_rounded = shortest >= LEAST_TICKS && longest.saturating_sub(shortest) == 1;
        longest <= shortest || is_rounded
    }

    /// The bytes of all packets.
    pub fn packet_bytes(&self) -> u64 {
        let bytes = (0..self.packet_count()).filter_map(|number| self.packet_size(number));
        bytes.fold(0, u64::saturating_add)
    }

    /// The cost of one frame alone, as [`cost`](Self::cost) plans it. It looks at all frames and takes
    /// eight bytes of memory for each packet.
    pub fn frame_cost(&self) -> FrameCost {
        let mut ends = Vec::with_capacity(usize::try_from(self.packet_count()).unwrap_or(0) + 1);
        let mut end = 0_u64;
        ends.push(end);
        for number in 0..self.packet_count() {
            end = end.saturating_add(self.packet_size(number).unwrap_or(0));
            ends.push(end);
        }
        let place = |packet: u64| {
            let at = usize::try_from(packet).ok();
            at.and_then(|at| ends.get(at)).copied().unwrap_or(0)
        };
        let bytes_of = |packets: &Range<u64>| place(packets.end) - place(packets.start);
        let mut sum_packets = 0_u64;
        let mut sum_bytes = 0_u64;
        let mut max_packets = 0;
        let mut max_bytes = 0;
        for packets in (0..self.frame_count()).filter_map(|frame| self.packets_of(frame)) {
            let count = packets.end - packets.start;
            let bytes = bytes_of(&packets);
            sum_packets = sum_packets.saturating_add(count);
            sum_bytes = sum_bytes.saturating_add(bytes);
            max_packets = max_packets.max(count);
            max_bytes = max_bytes.max(bytes);
        }
        let frames = self.frame_count() as f64;
        FrameCost {
            mean_packets: sum_packets as f64 / frames,
            max_packets,
            mean_bytes: sum_bytes as f64 / frames,
            max_bytes,
        }
    }
}
