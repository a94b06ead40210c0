//! Matroska and WebM (RFC 9559): the headers of all blocks. `Cues` list some frames alone, so
//! clusters are walked; frames are not read.

mod ebml;
mod track;

use ebml::{Element, header, id};
use track::Track;

use crate::error::{Name, VideoError};
use crate::info::{Codec, FrameTimes, Ratio, VideoInfo};
use crate::packets::{Found, Packets};
use crate::read::Reader;

const CONTAINER: crate::Container = crate::Container::Matroska;

/// Nanoseconds of a tick, unless the file says otherwise.
const TICK: u64 = 1_000_000;

/// The bits of a block's flags.
const KEY: u8 = 0x80;
const LACING: u8 = 0x06;

/// Reads the video track that [`Track::find`] chooses.
pub(crate) fn read(reader: &mut Reader<'_>) -> Result<(VideoInfo, Packets), VideoError> {
    let mut walk = Walk { track: None, cluster: 0, packets: Packets::new(&reader.limits) };
    let mut tick = TICK;
    let mut segment = None;
    let mut offset = 0;
    while let Some(element) = header(reader, offset, reader.len)? {
        offset = element.end;
        match element.id {
            // Their elements are visited like their own: no name occurs at two levels, and sizes of
            // live streams are unknown.
            id::SEGMENT if segment.is_some() => break,
            id::SEGMENT => {
                segment = Some(element);
                offset = element.body_at;
            }
            id::CLUSTER => offset = element.body_at,
            id::INFO => {
                let bytes = element.body(reader)?;
                let info = element.of(&bytes);
                if let Some(scale) = info.child(id::TIMESTAMP_SCALE)? {
                    tick = scale.unsigned()?;
                }
            }
            id::TRACKS if walk.track.is_none() => {
                let bytes = element.body(reader)?;
                walk.track = Some(Track::find(&element.of(&bytes))?);
            }
            id::TIMESTAMP => {
                let bytes = element.body(reader)?;
                let time = element.of(&bytes).unsigned()?;
                let value = |_| element.value("cluster's time", time, "less than 2^63");
                walk.cluster = i64::try_from(time).map_err(value)?;
            }
            id::SIMPLE_BLOCK => walk.block(reader, &element, None)?,
            id::BLOCK_GROUP => walk.group(reader, &element)?,
            _ => {}
        }
    }
    let missing = |part| {
        let what = Name::Text("the file");
        VideoError::Missing { container: CONTAINER, part, what, offset }
    };
    if segment.is_none() {
        return Err(missing("segment"));
    }
    let track = walk.track.ok_or_else(|| missing("`Tracks`"))?;
    let mut packets = walk.packets;
    set_durations(&mut packets, track.frame_nanoseconds.checked_div(tick));
    let Some(time_base) = Ratio::reduced(tick, 1_000_000_000) else {
        return Err(missing("time scale that is a positive number"));
    };
    let info = VideoInfo {
        codec: codec_of(&track.codec),
        codec_name: track.codec.escape_ascii().to_string(),
        configuration: track.configuration,
        width: track.width,
        height: track.height,
        sample_aspect_ratio: track.sample_aspect_ratio,
        rotation: track.rotation,
        color: track.color,
        time_base,
        times: FrameTimes::Stored,
    };
    Ok((info, packets))
}

fn codec_of(name: &[u8]) -> Codec {
    match name {
        b"V_MPEG4/ISO/AVC" => Codec::H264,
        b"V_MPEGH/ISO/HEVC" => Codec::H265,
        b"V_AV1" => Codec::Av1,
        b"V_VP8" => Codec::Vp8,
        b"V_VP9" => Codec::Vp9,
        _ => Codec::Other,
    }
}

/// The state of a walk over clusters.
struct Walk {
    track: Option<Track>,
    /// The time of the current cluster.
    cluster: i64,
    packets: Packets,
}

/// The properties of a block that its group states.
#[derive(Clone, Copy, Debug)]
struct Group {
    duration: i64,
    is_key: bool,
}

impl Walk {
    /// Adds the block of a group.
    fn group(&mut self, reader: &mut Reader<'_>, group: &Element) -> Result<(), VideoError> {
        let mut block = None;
        let mut of_group = Group { duration: 0, is_key: true };
        let mut offset = group.body_at;
        while let Some(element) = header(reader, offset, group.end)? {
            match element.id {
                id::BLOCK => block = Some(element),
                id::REFERENCE_BLOCK => of_group.is_key = false,
                id::BLOCK_DURATION => {
                    let bytes = element.body(reader)?;
                    let duration = element.of(&bytes).unsigned()?;
                    of_group.duration = i64::try_from(duration).unwrap_or(i64::MAX);
                }
                _ => {}
            }
            offset = element.end;
        }
        match block {
            Some(block) => self.block(reader, &block, Some(of_group)),
            None => Ok(()),
        }
    }

    /// Adds a block, if it is one of the track.
    fn block(
        &mut self,
        reader: &mut Reader<'_>,
        element: &Element,
        group: Option<Group>,
    ) -> Result<(), VideoError> {
        let Some(track) = &self.track else {
            let part = "`Tracks` before the first block";
            let what = element.name();
            return Err(VideoError::Missing {
                container: CONTAINER,
                part,
                what,
                offset: element.at,
            });
        };
        let have = element.end - element.body_at;
        // A number of 1 to 8 bytes, a time of 2, flags, and the first byte of the frame.
        let bytes = reader.up_to(element.body_at, have.min(12))?;
        let truncated = |need| element.truncated(need);
        let (number, skip) = ebml::number(bytes).ok_or_else(|| truncated(1))?;
        if number != track.number {
            return Ok(());
        }
        let rest = bytes.get(skip..).and_then(|rest| rest.split_first_chunk());
        let ([high, low, flags], frame) = rest.ok_or_else(|| truncated(skip as u64 + 3))?;
        if flags & LACING != 0 {
            return Err(element.unsupported("several frames in a block"));
        }
        let time = i64::from(i16::from_be_bytes([*high, *low]));
        // Frames of VP8 that are not shown have a block of their own, and a bit says so.
        let is_hidden =
            track.codec == b"V_VP8" && frame.first().is_some_and(|byte| byte & 0x10 == 0);
        let head = skip as u64 + 3;
        let found = Found {
            offset: element.body_at + head,
            bytes: have - head,
            pts: self.cluster.saturating_add(time),
            duration: group.map_or(0, |group| group.duration),
            edit: 0,
            is_key: group.map_or(flags & KEY != 0, |group| group.is_key),
            is_shown: !is_hidden,
        };
        self.packets.push(reader, found)
    }
}

/// Gives packets without a duration that of all frames, or the time between the last two of them.
fn set_durations(packets: &mut Packets, of_frame: Option<u64>) {
    let mut times: Vec<i64> = packets.found.iter().map(|packet| packet.pts).collect();
    times.sort_unstable();
    let between = match times.as_slice() {
        [.., before, last] => last.saturating_sub(*before),
        _ => 0,
    };
    let duration = of_frame.filter(|duration| *duration > 0);
    let duration = duration.map_or(between, |ticks| i64::try_from(ticks).unwrap_or(i64::MAX));
    for packet in packets.found.iter_mut().filter(|packet| packet.duration == 0) {
        packet.duration = duration;
    }
}
