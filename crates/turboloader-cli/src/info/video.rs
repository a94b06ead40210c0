//! The facts that `tl info` prints of a video, as JSON and as text.

use std::fmt;
use std::os::unix::ffi::OsStrExt;

use serde::Serialize;
use tbl_io::Source;
use tl_video::{FrameDecoder, FrameTimes, Limits, VideoIndex};

use crate::figures::rounded;
use crate::info::counts::row;
use crate::text::{json_text, printable};

/// Goes up with every change that a reader of the JSON could stumble over.
const SCHEMA: &str = "tl.info.video/1";

/// Everything known of a video without decoding it.
#[derive(Debug, Serialize)]
pub(super) struct VideoFacts {
    schema: &'static str,
    path: String,
    kind: &'static str,
    container: String,
    /// The name in the file: `avc1`, `V_VP9`.
    codec: String,
    /// The name of the standard.
    coding: String,
    /// Whether this program decodes it.
    decodes: bool,
    /// As the pictures are stored, before they are turned.
    width: u32,
    height: u32,
    /// Degrees clockwise.
    rotation: u16,
    /// Width of a sample to its height.
    sample_aspect_ratio: [u32; 2],
    frames: u64,
    /// Packets that are decoded and not shown.
    hidden_packets: u64,
    seconds: f64,
    frames_per_second: f64,
    constant_rate: bool,
    /// Whether every packet has its time of display.
    stored_times: bool,
    groups: GroupFacts,
    file_bytes: u64,
    /// Of the packets of the video alone.
    video_bytes: u64,
    random_frame: RandomFrame,
    /// Of memory.
    index_bytes: usize,
}

/// Groups of pictures, with their lengths in packets.
#[derive(Debug, Serialize)]
struct GroupFacts {
    count: u64,
    shortest: u64,
    longest: u64,
}

/// The cost of one frame alone, as a mean and for the frame that takes the most.
#[derive(Debug, Serialize)]
struct RandomFrame {
    decoded: f64,
    most_decoded: u64,
    bytes: f64,
    most_bytes: u64,
}

impl VideoFacts {
    pub(super) fn new(source: &Source, index: &VideoIndex) -> Self {
        let info = index.info();
        let groups = index.groups();
        let cost = index.frame_cost();
        let ratio = info.sample_aspect_ratio;
        Self {
            schema: SCHEMA,
            path: json_text(source.location().as_os_str().as_bytes()).into_owned(),
            kind: "video",
            container: index.container().to_string(),
            codec: info.codec_name.clone(),
            coding: info.codec.to_string(),
            decodes: FrameDecoder::new(index, &Limits::default()).is_ok(),
            width: info.width,
            height: info.height,
            rotation: info.rotation,
            sample_aspect_ratio: [ratio.numerator, ratio.denominator],
            frames: index.frame_count(),
            hidden_packets: index.packet_count() - index.frame_count(),
            seconds: rounded(index.duration(), 3),
            frames_per_second: rounded(index.average_fps(), 3),
            constant_rate: index.is_constant_rate(),
            stored_times: info.times == FrameTimes::Stored,
            groups: GroupFacts {
                count: groups.count,
                shortest: groups.shortest,
                longest: groups.longest,
            },
            file_bytes: source.len(),
            video_bytes: index.packet_bytes(),
            random_frame: RandomFrame {
                decoded: rounded(cost.mean_packets, 2),
                most_decoded: cost.max_packets,
                bytes: rounded(cost.mean_bytes, 0),
                most_bytes: cost.max_bytes,
            },
            index_bytes: index.memory(),
        }
    }
}

impl fmt::Display for VideoFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<12} {}", "path", printable(self.path.as_bytes()))?;
        row(f, "kind", format_args!("{}, {}", self.kind, self.container))?;
        let decodes = if self.decodes { "" } else { ", which this program does not decode" };
        row(f, "codec", format_args!("{} ({}){decodes}", self.coding, self.codec))?;
        row(f, "size", format_args!("{} x {}", self.width, self.height))?;
        if self.rotation != 0 {
            row(f, "rotation", format_args!("{} degrees clockwise", self.rotation))?;
        }
        let [across, down] = self.sample_aspect_ratio;
        if across != down {
            row(f, "pixels", format_args!("{across}:{down} wide to high"))?;
        }
        row(f, "frames", self.frames)?;
        if self.hidden_packets > 0 {
            write!(f, ", and {} that are not shown", self.hidden_packets)?;
        }
        let how = match (self.stored_times, self.constant_rate) {
            (false, _) => "without stored times",
            (true, true) => "constant",
            (true, false) => "variable",
        };
        row(f, "rate", format_args!("{} frames/s, {how}", self.frames_per_second))?;
        row(f, "duration", format_args!("{:.3} s", self.seconds))?;
        row(f, "groups", format_args!("{} of ", self.groups.count))?;
        let GroupFacts { shortest, longest, .. } = self.groups;
        if shortest < longest {
            write!(f, "{shortest} to ")?;
        }
        write!(f, "{longest} pictures")?;
        row(f, "file", self.file_bytes)?;
        row(f, "video", self.video_bytes)?;
        let RandomFrame { decoded, most_decoded, bytes, .. } = self.random_frame;
        let others = decoded - 1.0;
        let kilobytes = bytes / 1e3;
        row(
            f,
            "random frame",
            format_args!(
                "decodes {others:.1} others on average, {} at most; {kilobytes:.1} KB read",
                most_decoded.saturating_sub(1)
            ),
        )
    }
}
