//! MP4 and MOV (ISO/IEC 14496-12): the tables of `moov`, and the fragments after it. `mdat` is not
//! read.

mod boxes;
mod edits;
mod fragments;
mod sample_entry;
mod tables;
mod track;

use boxes::{BoxRef, header};
use fragments::Fragments;
use track::Track;

use crate::error::{Name, VideoError};
use crate::info::{Codec, FrameTimes, Ratio, VideoInfo};
use crate::packets::Packets;
use crate::read::Reader;

const CONTAINER: crate::Container = crate::Container::Mp4;

/// Reads the first enabled video track.
pub(crate) fn read(reader: &mut Reader<'_>) -> Result<(VideoInfo, Packets), VideoError> {
    let mut offset = 0;
    loop {
        let Some(top) = header(reader, offset)? else {
            let what = Name::Text("the file");
            return Err(VideoError::Missing { container: CONTAINER, part: "`moov`", what, offset });
        };
        if top.kind == *b"moov" {
            let bytes = reader.table(top.body_at, top.end - top.body_at, top.kind.into())?;
            let moov = BoxRef { kind: top.kind, at: offset, body_at: top.body_at, body: &bytes };
            return read_movie(reader, &moov, top.end);
        }
        offset = top.end;
    }
}

fn read_movie(
    reader: &mut Reader<'_>,
    moov: &BoxRef<'_>,
    end: u64,
) -> Result<(VideoInfo, Packets), VideoError> {
    if let Some(compressed) = moov.child(b"cmov")? {
        return Err(compressed.unsupported("a compressed movie header"));
    }
    let track = Track::find(moov)?;
    let mut packets = Packets::new(&reader.limits);
    let samples = tables::samples(&track.tables, reader)?;
    let time_offset = edits::time_offset(&track.edits);
    if track.edits.is_empty() {
        for sample in &samples {
            packets.push(reader, sample.unedited())?;
        }
    } else {
        edits::apply(&track.edits, &samples, reader, &mut packets)?;
    }
    if let Some(extends) = moov.child(b"mvex")? {
        let mut fragments = Fragments::new(&extends, track.id, &samples, time_offset)?;
        drop(samples);
        let mut offset = end;
        while let Some(top) = header(reader, offset)? {
            if top.kind == *b"moof" {
                let bytes = reader.table(top.body_at, top.end - top.body_at, top.kind.into())?;
                let body_at = top.body_at;
                let moof = BoxRef { kind: top.kind, at: offset, body_at, body: &bytes };
                fragments.read(&moof, reader, &mut packets)?;
            }
            offset = top.end;
        }
    }
    let Some(time_base) = Ratio::reduced(1, track.time_scale.into()) else {
        return Err(moov.value("time scale", 0, "a positive number"));
    };
    let entry = track.entry;
    let info = VideoInfo {
        codec: Codec::of_four_cc(entry.kind),
        codec_name: entry.kind.escape_ascii().to_string(),
        configuration: entry.configuration,
        width: entry.width,
        height: entry.height,
        sample_aspect_ratio: entry.sample_aspect_ratio.unwrap_or(Ratio::ONE),
        rotation: track.rotation,
        color: entry.color,
        time_base,
        times: FrameTimes::Stored,
    };
    Ok((info, packets))
}
