//! AVI: the headers of streams, and the index of version 1 (`idx1`) or of OpenDML (`indx`).
//!
//! AVI has no times of display: a chunk of the stream is the next frame, also if it is empty.

mod chunks;
mod stream;

use chunks::{Chunk, ChunkRef, header};
use stream::Stream;

use crate::error::{Name, VideoError};
use crate::info::VideoInfo;
use crate::packets::{Found, Packets};
use crate::read::Reader;

const CONTAINER: crate::Container = crate::Container::Avi;

/// Flag of an entry of `idx1`: the chunk is a key frame.
const KEY: u32 = 0x10;

/// Flag of the size in an entry of OpenDML: the chunk is not a key frame.
const NOT_KEY: u32 = 0x8000_0000;

/// The values of `bIndexType`.
const INDEX_OF_INDEXES: u8 = 0;
const INDEX_OF_CHUNKS: u8 = 1;

/// Reads the first enabled video stream.
pub(crate) fn read(reader: &mut Reader<'_>) -> Result<(VideoInfo, Packets), VideoError> {
    let mut headers = None;
    let mut movie = None;
    let mut old_index = None;
    // After `RIFF`, its size and `AVI `.
    let mut offset = 12;
    while let Some(chunk) = header(reader, offset)? {
        match &chunk.name {
            b"hdrl" => headers = headers.or(Some(chunk)),
            b"movi" => movie = movie.or(Some(chunk)),
            b"idx1" => {
                old_index = Some(chunk);
                break;
            }
            _ => {}
        }
        offset = chunk.end();
    }
    let missing = |part| {
        let what = Name::Text("the file");
        VideoError::Missing { container: CONTAINER, part, what, offset }
    };
    let headers = headers.ok_or_else(|| missing("`hdrl`"))?;
    let bytes = headers.body(reader)?;
    let stream = Stream::find(&headers.of(&bytes))?;
    let mut packets = Packets::new(&reader.limits);
    let mut frames = Frames { number: stream.start.into(), packets: &mut packets };
    if let Some(index) = &stream.index {
        frames.read_index(index, reader, INDEX_OF_INDEXES)?;
    } else {
        let index = old_index.ok_or_else(|| missing("`idx1` or `indx`"))?;
        let movie = movie.ok_or_else(|| missing("`movi`"))?;
        let entries = index.body(reader)?;
        frames.read_old_index(&entries, stream.number, &movie, reader)?;
    }
    Ok((stream.info, packets))
}

/// The frames of a stream, while its index is read.
struct Frames<'a> {
    /// The number of the next frame.
    number: i64,
    packets: &'a mut Packets,
}

impl Frames<'_> {
    fn push(
        &mut self,
        reader: &Reader<'_>,
        offset: u64,
        bytes: u32,
        is_key: bool,
    ) -> Result<(), VideoError> {
        let pts = self.number;
        self.number += 1;
        let bytes = bytes.into();
        let found = Found { offset, bytes, pts, duration: 1, edit: 0, is_key, is_shown: true };
        self.packets.push(reader, found)
    }

    /// Reads the entries of `idx1`. Their offsets are those of chunks, from the file's start or
    /// from `movi`.
    fn read_old_index(
        &mut self,
        entries: &[u8],
        stream: [u8; 2],
        movie: &Chunk,
        reader: &mut Reader<'_>,
    ) -> Result<(), VideoError> {
        let mut base = None;
        for entry in entries.as_chunks::<16>().0 {
            let ([name, flags, place, bytes], _) = entry.as_chunks::<4>() else { continue };
            if !name.starts_with(&stream) || !matches!(&name[2..], b"dc" | b"db" | b"DC" | b"DB") {
                continue;
            }
            let place = u64::from(u32::from_le_bytes(*place));
            let base = match base {
                Some(base) => base,
                None => *base.insert(old_base(reader, *name, place, movie)?),
            };
            let is_key = u32::from_le_bytes(*flags) & KEY != 0;
            self.push(reader, base + place + 8, u32::from_le_bytes(*bytes), is_key)?;
        }
        Ok(())
    }

    /// Reads `indx` or `ix##`. The former lists the latter, or chunks itself.
    fn read_index(
        &mut self,
        index: &ChunkRef<'_>,
        reader: &mut Reader<'_>,
        allowed: u8,
    ) -> Result<(), VideoError> {
        let [_, _, _, kind] = index.array(0)?;
        let size = match kind {
            INDEX_OF_INDEXES if allowed == INDEX_OF_INDEXES => 16,
            INDEX_OF_CHUNKS => 8,
            other => {
                let expected = "0, an index of indexes, or 1, an index of chunks";
                return Err(index.value("index type", other.into(), expected));
            }
        };
        let need = 24 + u64::from(index.u32(4)?) * size;
        let entries = usize::try_from(need).ok().and_then(|need| index.body.get(24..need));
        let entries = entries.ok_or_else(|| index.truncated(need))?;
        if kind == INDEX_OF_CHUNKS {
            let base = u64::from_le_bytes(index.array(12)?);
            for entry in entries.as_chunks::<8>().0 {
                let ([place, bytes], _) = entry.as_chunks::<4>() else { continue };
                let offset = base.saturating_add(u32::from_le_bytes(*place).into());
                let bytes = u32::from_le_bytes(*bytes);
                self.push(reader, offset, bytes & !NOT_KEY, bytes & NOT_KEY == 0)?;
            }
            return Ok(());
        }
        for entry in entries.as_chunks::<16>().0 {
            let place = u64::from_le_bytes(entry.first_chunk().copied().unwrap_or_default());
            let none = || index.value("offset of an index", place, "an offset in the file");
            let chunk = header(reader, place)?.ok_or_else(none)?;
            let bytes = chunk.body(reader)?;
            self.read_index(&chunk.of(&bytes), reader, INDEX_OF_CHUNKS)?;
        }
        Ok(())
    }
}

/// The base of offsets of `idx1`, by the place of the first chunk.
fn old_base(
    reader: &mut Reader<'_>,
    name: [u8; 4],
    place: u64,
    movie: &Chunk,
) -> Result<u64, VideoError> {
    // Usually the place of the name `movi`.
    let relative = movie.at + 8;
    let is_there = reader.up_to(relative + place, 4)? == name;
    Ok(if is_there { relative } else { 0 })
}
