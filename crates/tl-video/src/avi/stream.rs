//! The headers of a stream: `strh`, `strf` and `indx`.

use super::CONTAINER;
use super::chunks::ChunkRef;
use crate::error::VideoError;
use crate::info::{Codec, Color, FrameTimes, Ratio, VideoInfo};

/// The bytes of `BITMAPINFOHEADER`.
const BITMAP_HEADER: usize = 40;

/// A video stream.
pub(super) struct Stream<'a> {
    pub(super) info: VideoInfo,
    /// Two digits, with which the names of its chunks start.
    pub(super) number: [u8; 2],
    /// Frames that pass before the first one.
    pub(super) start: u32,
    /// The OpenDML index.
    pub(super) index: Option<ChunkRef<'a>>,
}

impl<'a> Stream<'a> {
    /// The first enabled video stream of `hdrl`, or the first one if none is enabled.
    pub(super) fn find(headers: &ChunkRef<'a>) -> Result<Self, VideoError> {
        let mut first = None;
        let mut number = 0;
        for list in headers.children() {
            let list = list?;
            if list.name != *b"strl" {
                continue;
            }
            let header = list.require(*b"strh", "`strh`")?;
            let is_video = header.array(0)? == *b"vids";
            let is_enabled = header.u32(8)? & 1 == 0;
            if is_video && is_enabled {
                return Self::read(&list, number);
            }
            if is_video && first.is_none() {
                first = Some((list, number));
            }
            number += 1;
        }
        let missing = || {
            let what = headers.name.into();
            let part = "video stream";
            VideoError::Missing { container: CONTAINER, part, what, offset: headers.at }
        };
        let (list, number) = first.ok_or_else(missing)?;
        Self::read(&list, number)
    }

    fn read(list: &ChunkRef<'a>, number: u32) -> Result<Self, VideoError> {
        let header = list.require(*b"strh", "`strh`")?;
        let time_base = Ratio::reduced(header.u32(20)?.into(), header.u32(24)?.into());
        let zero = || header.value("scale or rate", 0, "a positive number");
        let time_base = time_base.ok_or_else(zero)?;
        let format = list.require(*b"strf", "`strf`")?;
        let four_cc = format.array(16)?;
        let info = VideoInfo {
            codec: Codec::of_four_cc(four_cc),
            codec_name: four_cc.escape_ascii().to_string(),
            configuration: format.body.get(BITMAP_HEADER..).unwrap_or_default().to_vec(),
            width: format.u32(4)?,
            // Negative if rows are stored from top to bottom.
            height: format.u32(8)?.cast_signed().unsigned_abs(),
            sample_aspect_ratio: Ratio::ONE,
            rotation: 0,
            color: Color::default(),
            time_base,
            times: FrameTimes::Counted,
        };
        let digit = |digit: u32| u8::try_from(digit % 10).map_or(b'0', |digit| b'0' + digit);
        let number = [digit(number / 10), digit(number)];
        let index = list.child(*b"indx")?;
        Ok(Self { info, number, start: header.u32(28)?, index })
    }
}
