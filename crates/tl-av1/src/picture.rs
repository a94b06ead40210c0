//! Decoded pictures.

/// The size of the planes of colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// No planes of colour.
    Monochrome,
    /// Half the width and half the height, rounded up.
    Yuv420,
    /// Half the width.
    Yuv422,
    /// All of both.
    Yuv444,
}

/// A decoded picture.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Picture {
    /// Width in samples.
    pub width: u32,
    /// Height in samples.
    pub height: u32,
    /// Bits of a sample: 8, 10 or 12. Those of more than 8 take two bytes, the low one first.
    pub bit_depth: u8,
    /// The size of the planes of colour.
    pub layout: Layout,
    /// Matrix coefficients by the code points of ITU-T H.273; 2 says nothing.
    pub matrix: u8,
    /// Whether samples take the full range of their bits.
    pub full_range: bool,
    /// Y, U and V: rows from top to bottom without bytes between them.
    pub planes: [Vec<u8>; 3],
}

impl Layout {
    /// The halvings of width and height of a plane of colour; none for monochrome pictures.
    #[must_use]
    pub const fn shift(self) -> Option<[u32; 2]> {
        match self {
            Self::Monochrome => None,
            Self::Yuv420 => Some([1, 1]),
            Self::Yuv422 => Some([1, 0]),
            Self::Yuv444 => Some([0, 0]),
        }
    }
}
