//! The codecs that are decoded.

use crate::error::{CodecError, VideoError};
use crate::info::{Color, VideoInfo};
use crate::limits::Limits;
use crate::picture::Picture;

/// A picture as a codec returns it.
#[derive(Debug)]
pub(crate) struct Coded {
    pub(crate) picture: Picture,
    /// The place in the order of display, counted from the last `starts_group`.
    pub(crate) order: i64,
    /// Whether all pictures before it are shown before it.
    pub(crate) starts_group: bool,
}

/// The failure of a codec.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The bytes are not what the codec allows, or ask for what no implementation has.
    Codec(CodecError),
    Limit(VideoError),
    /// Another implementation of the codec takes over: the run is decoded anew.
    #[cfg_attr(not(feature = "h264"), expect(dead_code, reason = "H.264 has two"))]
    Replaced,
}

/// A decoder.
#[derive(Debug)]
pub(crate) enum Codec {
    #[cfg(feature = "av1")]
    Av1(crate::av1::Av1),
    #[cfg(feature = "h264")]
    H264(crate::h264::H264),
    #[cfg(feature = "hevc")]
    H265(Box<crate::h265::H265>),
    #[cfg(feature = "vp9")]
    Vp9(Box<crate::vp9::Vp9>),
}

impl Codec {
    /// The decoder of a video, if there is one.
    pub(crate) fn of(
        info: &VideoInfo,
        #[cfg_attr(not(feature = "av1"), expect(unused_variables, reason = "of AV1"))]
        limits: &Limits,
    ) -> Option<Self> {
        match info.codec {
            #[cfg(feature = "av1")]
            crate::info::Codec::Av1 => {
                Some(Self::Av1(crate::av1::Av1::new(&info.configuration, limits)))
            }
            #[cfg(feature = "h264")]
            crate::info::Codec::H264 => {
                Some(Self::H264(crate::h264::H264::new(&info.configuration, info.times)))
            }
            #[cfg(feature = "hevc")]
            crate::info::Codec::H265 => {
                let decoder = crate::h265::H265::new(&info.configuration, info.times);
                Some(Self::H265(Box::new(decoder)))
            }
            #[cfg(feature = "vp9")]
            crate::info::Codec::Vp9 => Some(Self::Vp9(Box::default())),
            _ => None,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            #[cfg(feature = "av1")]
            Self::Av1(_) => "AV1",
            #[cfg(feature = "h264")]
            Self::H264(_) => "H.264",
            #[cfg(feature = "hevc")]
            Self::H265(_) => "H.265",
            #[cfg(feature = "vp9")]
            Self::Vp9(_) => "VP9",
        }
    }

    /// Forgets all pictures.
    pub(crate) fn restart(&mut self) {
        match self {
            #[cfg(feature = "av1")]
            Self::Av1(decoder) => decoder.restart(),
            #[cfg(feature = "h264")]
            Self::H264(decoder) => decoder.restart(),
            #[cfg(feature = "hevc")]
            Self::H265(decoder) => decoder.restart(),
            #[cfg(feature = "vp9")]
            Self::Vp9(decoder) => decoder.restart(),
        }
    }

    /// The colours of a picture, from those that its stream and its container state. The headers of AV1
    /// and VP9 always state them, be it that they are unknown, and FFmpeg asks no container then.
    pub(crate) fn colors(
        &self,
        stream: Color,
        #[cfg_attr(
            not(any(feature = "h264", feature = "hevc")),
            expect(unused_variables, reason = "of H.264 and H.265")
        )]
        container: Color,
    ) -> Color {
        match self {
            #[cfg(feature = "av1")]
            Self::Av1(_) => stream,
            #[cfg(feature = "h264")]
            Self::H264(_) => stream.or(container),
            #[cfg(feature = "hevc")]
            Self::H265(_) => stream.or(container),
            #[cfg(feature = "vp9")]
            Self::Vp9(_) => stream,
        }
    }

    /// Changes to the implementation that conceals more. False if there is none.
    pub(crate) fn replace(&mut self) -> bool {
        match self {
            #[cfg(feature = "av1")]
            Self::Av1(_) => false,
            #[cfg(feature = "h264")]
            Self::H264(decoder) => decoder.replace(),
            #[cfg(feature = "hevc")]
            Self::H265(_) => false,
            #[cfg(feature = "vp9")]
            Self::Vp9(_) => false,
        }
    }

    /// Decodes a packet, which has one picture.
    pub(crate) fn decode(
        &mut self,
        packet: &[u8],
        #[cfg_attr(
            not(any(feature = "h264", feature = "hevc", feature = "vp9")),
            expect(unused_variables, reason = "of H.264, H.265 and VP9")
        )]
        limits: &Limits,
    ) -> Result<Option<Coded>, Failure> {
        match self {
            #[cfg(feature = "av1")]
            Self::Av1(decoder) => decoder.decode(packet),
            #[cfg(feature = "h264")]
            Self::H264(decoder) => decoder.decode(packet, limits),
            #[cfg(feature = "hevc")]
            Self::H265(decoder) => decoder.decode(packet, limits),
            #[cfg(feature = "vp9")]
            Self::Vp9(decoder) => decoder.decode(packet, limits),
        }
    }
}

#[cfg(all(test, feature = "vp9"))]
mod tests {
    use super::{Codec, Color};

    #[test]
    fn colors_of_vp9_are_those_of_its_header() {
        let codec = Codec::Vp9(Box::default());
        let container = Color { matrix: Some(9), full_range: Some(true) };
        let unknown = Color { matrix: None, full_range: Some(false) };
        assert_eq!(codec.colors(unknown, container), unknown);
    }

    #[cfg(feature = "h264")]
    #[test]
    fn colors_that_h264_does_not_state_are_those_of_the_container() {
        let times = crate::info::FrameTimes::Stored;
        let codec = Codec::H264(crate::h264::H264::new(&[], times));
        let container = Color { matrix: Some(9), full_range: Some(true) };
        let stated = Color { matrix: None, full_range: Some(false) };
        let expected = Color { matrix: Some(9), full_range: Some(false) };
        assert_eq!(codec.colors(stated, container), expected);
    }
}
