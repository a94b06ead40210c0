//! Indexes as bytes, to be stored next to their videos: `docs/format.md` has the table.
//!
//! Bytes are not trusted: an index that is read lies in its video, its times ascend and its tables fit
//! each other, or it is an error. Whether the video has such packets only the demuxers can tell, and
//! decoders of the packets.

use crate::container::Container;
use crate::error::VideoError;
use crate::index::VideoIndex;
use crate::info::{Codec, Color, FrameTimes, Ratio, VideoInfo};
use crate::limits::Limits;
use crate::packed::Column;

const MAGIC: [u8; 4] = *b"TLVI";
const VERSION: [u8; 2] = [1, 0];

/// A matrix that the container does not state.
const UNSTATED: u8 = 255;

const CONTAINERS: [Container; 3] = [Container::Mp4, Container::Matroska, Container::Avi];
const TIMES: [FrameTimes; 2] = [FrameTimes::Stored, FrameTimes::Counted];
const RANGES: [Option<bool>; 3] = [None, Some(false), Some(true)];
const ROTATIONS: [u16; 4] = [0, 90, 180, 270];
const CODECS: [Codec; 6] =
    [Codec::Other, Codec::H264, Codec::H265, Codec::Av1, Codec::Vp8, Codec::Vp9];

impl VideoIndex {
    /// The index as bytes, for [`from_bytes`](Self::from_bytes). Equal indexes have equal bytes.
    /// `length` is that of the video in bytes.
    ///
    /// ```
    /// use tl_video::{Limits, VideoIndex};
    ///
    /// let clip = tl_testdata::shipped_bytes!("video/h264_b.mp4");
    /// let limits = Limits::default();
    /// let index = VideoIndex::open(&clip[..], &limits)?;
    /// let bytes = index.to_bytes(clip.len() as u64);
    /// assert_eq!(VideoIndex::from_bytes(&bytes, clip.len() as u64, &limits)?, index);
    /// # Ok::<(), tl_video::VideoError>(())
    /// ```
    pub fn to_bytes(&self, length: u64) -> Vec<u8> {
        let info = self.info();
        let mut out = Vec::with_capacity(self.memory() + 128);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION);
        out.push(code(&CONTAINERS, &self.container()));
        out.push(code(&TIMES, &info.times));
        out.push(code(&CODECS, &info.codec));
        out.push(info.color.matrix.unwrap_or(UNSTATED));
        out.push(code(&RANGES, &info.color.full_range));
        out.push(code(&ROTATIONS, &info.rotation));
        out.extend_from_slice(&length.to_le_bytes());
        let ratios = [info.sample_aspect_ratio, info.time_base];
        let ratios = ratios.into_iter().flat_map(|ratio| [ratio.numerator, ratio.denominator]);
        for number in [info.width, info.height].into_iter().chain(ratios) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.end_pts().to_le_bytes());
        for bytes in [info.codec_name.as_bytes(), &info.configuration] {
            out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        for column in self.columns() {
            column.write(&mut out);
        }
        out
    }

    /// Reads an index that [`to_bytes`](Self::to_bytes) has made of a video of `length` bytes.
    ///
    /// Every packet lies in the video, also if the bytes were forged: then they decide which frames
    /// are shown, or which errors decoders report.
    ///
    /// # Errors
    /// [`VideoError::StoredIndex`], [`VideoError::ShortIndex`] and [`VideoError::LimitExceeded`].
    pub fn from_bytes(bytes: &[u8], length: u64, limits: &Limits) -> Result<Self, VideoError> {
        limits.charge_table(bytes.len() as u64)?;
        let mut fields = Fields { len: bytes.len() as u64, rest: bytes };
        let magic = u32::from_le_bytes(MAGIC);
        let version = u16::from_le_bytes(VERSION);
        require_equal("magic number", fields.u32()?.into(), magic.into(), "`TLVI`")?;
        require_equal("version", fields.u16()?.into(), version.into(), "1")?;
        let container = fields.choice(&CONTAINERS, "container")?;
        let times = fields.choice(&TIMES, "code of times")?;
        let codec = fields.choice(&CODECS, "codec")?;
        let matrix = Some(fields.u8()?).filter(|matrix| *matrix != UNSTATED);
        let full_range = fields.choice(&RANGES, "colour range")?;
        let rotation = fields.choice(&ROTATIONS, "rotation")?;
        let stated = fields.u64()?;
        require_equal("length of the video", stated, length, "that of this video")?;
        let width = fields.u32()?;
        let height = fields.u32()?;
        let sample_aspect_ratio = fields.ratio("ratio of a sample's sides")?;
        let time_base = fields.ratio("time base")?;
        let end_pts = fields.u64()?.cast_signed();
        let info = VideoInfo {
            codec,
            codec_name: fields.name()?,
            configuration: fields.block()?.to_vec(),
            width,
            height,
            sample_aspect_ratio,
            rotation,
            color: Color { matrix, full_range },
            time_base,
            times,
        };
        let mut columns: [Column; 5] = Default::default();
        for column in &mut columns {
            *column = fields.column(limits)?;
        }
        require_equal("number of bytes after the tables", fields.rest.len() as u64, 0, "0")?;
        let index = Self::from_columns(container, info, columns, end_pts);
        index.check_packets(length)?;
        index.check_frames()?;
        Ok(index)
    }

    /// Checks that packets have bytes of the video, and keys ascend.
    fn check_packets(&self, length: u64) -> Result<(), VideoError> {
        let [offsets, sizes, pts, keys, _] = self.columns();
        let packets = self.packet_count();
        let expected = "that of the packets";
        for column in [sizes, pts] {
            require_equal("number of sizes or times", column.len() as u64, packets, expected)?;
        }
        for (packet, (offset, bytes)) in (0..packets).zip(offsets.iter().zip(sizes.iter())) {
            let offset = offset.cast_unsigned();
            let bytes = bytes.cast_unsigned();
            let end = offset.checked_add(bytes).filter(|end| bytes > 0 && *end <= length);
            let container = self.container();
            end.ok_or(VideoError::OutsideFile { container, packet, offset, bytes, length })?;
        }
        let mut least = 0;
        for key in keys.iter().map(i64::cast_unsigned) {
            let expected = "a packet after the one before it";
            require((least..packets).contains(&key), "key packet", key, expected)?;
            least = key + 1;
        }
        Ok(())
    }

    /// Checks that each frame is a packet of its own, and times ascend.
    fn check_frames(&self) -> Result<(), VideoError> {
        let [offsets, _, _, _, order] = self.columns();
        require(order.len() > 0, "number of frames", 0, "at least 1")?;
        let mut is_shown = vec![false; offsets.len()];
        let mut latest = i64::MIN;
        for packet in order.iter().map(i64::cast_unsigned) {
            let place = usize::try_from(packet).ok();
            let shown = place.and_then(|place| is_shown.get_mut(place));
            let is_new = shown.is_some_and(|shown| !std::mem::replace(shown, true));
            require(is_new, "packet of a frame", packet, "one that no other frame has")?;
            let start = self.packet_pts(packet).unwrap_or(i64::MIN);
            let expected = "one that is not shown before the frame in front of it";
            require(start >= latest, "packet of a frame", packet, expected)?;
            latest = start;
        }
        let end = self.end_pts();
        require(end >= latest, "time of the end", end.cast_unsigned(), "after all frames")
    }
}

/// The place of a value in a list of all values.
fn code<T: PartialEq>(list: &[T], value: &T) -> u8 {
    let place = list.iter().position(|item| item == value);
    place.and_then(|place| u8::try_from(place).ok()).unwrap_or(0)
}

fn require(
    holds: bool,
    what: &'static str,
    found: u64,
    expected: &'static str,
) -> Result<(), VideoError> {
    if holds { Ok(()) } else { Err(VideoError::StoredIndex { what, found, expected }) }
}

fn require_equal(
    what: &'static str,
    found: u64,
    right: u64,
    expected: &'static str,
) -> Result<(), VideoError> {
    require(found == right, what, found, expected)
}

/// The fields of an index, from front to end.
struct Fields<'a> {
    len: u64,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, need: u64) -> Result<&'a [u8], VideoError> {
        let have = self.rest.len() as u64;
        let offset = self.len - have;
        let need_here = usize::try_from(need).ok();
        let split = need_here.and_then(|need| self.rest.split_at_checked(need));
        let (taken, rest) = split.ok_or(VideoError::ShortIndex { offset, need, have })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], VideoError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, VideoError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn u16(&mut self) -> Result<u16, VideoError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, VideoError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, VideoError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// The value of a list that a byte names by its place.
    fn choice<T: Copy>(&mut self, list: &[T], what: &'static str) -> Result<T, VideoError> {
        let found = self.u8()?;
        let chosen = list.get(usize::from(found)).copied();
        chosen.ok_or(VideoError::StoredIndex { what, found: found.into(), expected: "a known one" })
    }

    fn ratio(&mut self, what: &'static str) -> Result<Ratio, VideoError> {
        let ratio = Ratio { numerator: self.u32()?, denominator: self.u32()? };
        require(ratio.numerator > 0 && ratio.denominator > 0, what, 0, "a positive fraction")?;
        Ok(ratio)
    }

    /// Bytes with their number in front.
    fn block(&mut self) -> Result<&'a [u8], VideoError> {
        let bytes = self.u32()?;
        self.take(bytes.into())
    }

    /// The name of a codec, which demuxers have made printable.
    fn name(&mut self) -> Result<String, VideoError> {
        let bytes = self.block()?;
        let wrong = bytes.iter().find(|byte| !matches!(byte, b' '..=b'~')).copied();
        let found = wrong.unwrap_or(0).into();
        require(wrong.is_none(), "letter of the codec's name", found, "a printable one")?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn column(&mut self, limits: &Limits) -> Result<Column, VideoError> {
        let len = self.u32()?;
        limits.charge_packets(len.into())?;
        let blocks = self.take(Column::block_bytes(len))?;
        let words = Column::word_bytes(blocks, len);
        let words = words.ok_or(VideoError::StoredIndex {
            what: "width of packed numbers",
            found: u64::from(u8::MAX),
            expected: "at most 64 bits",
        })?;
        Ok(Column::read(len, blocks, self.take(words)?))
    }
}
