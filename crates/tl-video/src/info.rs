//! The properties of a video that its container states.

use std::fmt;

/// The coding of a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// H.264, also known as AVC.
    H264,
    /// H.265, also known as HEVC.
    H265,
    /// AV1.
    Av1,
    /// VP8.
    Vp8,
    /// VP9.
    Vp9,
    /// Any other, of which an index is made all the same.
    Other,
}

impl Codec {
    /// The codec of a sample entry of MP4 or of a `biCompression` of AVI.
    pub(crate) fn of_four_cc(four_cc: [u8; 4]) -> Self {
        match &four_cc.map(|letter| letter.to_ascii_lowercase()) {
            b"avc1" | b"avc3" | b"h264" | b"x264" | b"davc" => Self::H264,
            b"hvc1" | b"hev1" | b"hevc" | b"h265" | b"x265" => Self::H265,
            b"av01" => Self::Av1,
            b"vp08" | b"vp80" => Self::Vp8,
            b"vp09" | b"vp90" => Self::Vp9,
            _ => Self::Other,
        }
    }

    /// Whether packets can be stored in another order than that of their pictures.
    pub(crate) fn reorders(self) -> bool {
        match self {
            Self::H264 | Self::H265 | Self::Other => true,
            Self::Av1 | Self::Vp8 | Self::Vp9 => false,
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::H264 => "H.264",
            Self::H265 => "H.265",
            Self::Av1 => "AV1",
            Self::Vp8 => "VP8",
            Self::Vp9 => "VP9",
            Self::Other => "another codec",
        })
    }
}

/// A positive fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the type says it")]
pub struct Ratio {
    pub numerator: u32,
    pub denominator: u32,
}

impl Ratio {
    /// One to one.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// A fraction in lowest terms, of numbers that are not zero.
    pub(crate) fn reduced(numerator: u64, denominator: u64) -> Option<Self> {
        let mut divisor = numerator;
        let mut rest = denominator;
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        let numerator = u32::try_from(numerator.checked_div(divisor)?).ok()?;
        let denominator = u32::try_from(denominator.checked_div(divisor)?).ok()?;
        (numerator > 0 && denominator > 0).then_some(Self { numerator, denominator })
    }

    /// `ticks` in seconds, in the order of operations that FFmpeg's users see.
    pub fn seconds(self, ticks: i64) -> f64 {
        ticks as f64 * f64::from(self.numerator) / f64::from(self.denominator)
    }
}

/// The colours that the container states, by the code points of ITU-T H.273. The header of the
/// codec can state others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Color {
    /// Matrix coefficients: 1 is BT.709, 5 and 6 are BT.601. `None` if absent or unspecified.
    pub matrix: Option<u8>,
    /// Whether samples take the full range of their bits.
    pub full_range: Option<bool>,
}

impl Color {
    /// These colours, and what they do not state from others.
    #[cfg(any(feature = "h264", feature = "hevc"))]
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            matrix: self.matrix.or(other.matrix),
            full_range: self.full_range.or(other.full_range),
        }
    }

    /// A code point of a matrix, unless it is reserved or means that nothing is said.
    pub(crate) fn specified(matrix: u64) -> Option<u8> {
        u8::try_from(matrix).ok().filter(|matrix| !matches!(matrix, 2 | 3 | 15..))
    }
}

/// The origin of the times of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FrameTimes {
    /// Every packet has its time of display.
    Stored,
    /// The container counts packets, and only the codec knows the order of display, as in AVI.
    /// Frame `n` is then the `n`-th picture that is shown, not necessarily that of packet `n`, and
    /// plans read a few packets more.
    Counted,
}

/// The properties of the video track that an index is of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VideoInfo {
    /// The coding of packets.
    pub codec: Codec,
    /// The name of the coding in the file: the sample entry of MP4, `biCompression` of AVI, or a
    /// `CodecID` such as `V_MPEG4/ISO/AVC`, with characters that cannot be printed escaped.
    pub codec_name: String,
    /// The configuration that a decoder needs before the first packet: the content of `avcC`,
    /// `hvcC`, `av1C` or `vpcC`, which Matroska stores as `CodecPrivate`. Empty if there is none;
    /// H.264 and H.265 are then in the byte stream format.
    pub configuration: Vec<u8>,
    /// Width of pictures in samples.
    pub width: u32,
    /// Height of pictures in samples.
    pub height: u32,
    /// Width of a sample to its height on display.
    pub sample_aspect_ratio: Ratio,
    /// Degrees by which pictures are turned clockwise for display: 0, 90, 180 or 270.
    pub rotation: u16,
    /// The colours as the container states them.
    pub color: Color,
    /// The seconds of a tick of time.
    pub time_base: Ratio,
    /// The origin of the times of frames.
    pub times: FrameTimes,
}
