//! Decoded pictures.

use crate::info::Color;

/// The size of the planes of colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Chroma {
    /// Half the width and half the height. H.264 without colours has these planes too.
    Yuv420,
    /// Half the width.
    Yuv422,
    /// All of both.
    Yuv444,
    /// There are none: the planes of colour are empty.
    Monochrome,
}

/// A decoded picture: planes of luma and colour as they are coded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Picture {
    /// Width in samples, after cropping.
    pub width: u32,
    /// Height in samples, after cropping.
    pub height: u32,
    /// Bits of a sample. Samples of more than 8 bits take two bytes, the low one first.
    pub bit_depth: u8,
    /// The size of the planes of colour.
    pub chroma: Chroma,
    /// The colours that the header of the codec states, or else the container.
    pub color: Color,
    /// Y, U and V: rows from top to bottom without bytes between them.
    pub planes: [Vec<u8>; 3],
}

/// A view of one plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the type says it")]
pub struct Plane<'a> {
    pub width: u32,
    pub height: u32,
    pub samples: &'a [u8],
}

impl Chroma {
    /// The numbers of halvings of width and height. None without colours.
    pub(crate) fn shift(self) -> Option<[u32; 2]> {
        match self {
            Self::Yuv420 => Some([1, 1]),
            Self::Yuv422 => Some([1, 0]),
            Self::Yuv444 => Some([0, 0]),
            Self::Monochrome => None,
        }
    }
}

impl Picture {
    /// Bytes of a sample.
    pub(crate) fn sample_bytes(&self) -> usize {
        if self.bit_depth > 8 { 2 } else { 1 }
    }

    /// Whether the planes have the samples of their size.
    pub(crate) fn is_whole(&self) -> bool {
        let size = self.sample_bytes();
        self.views().iter().all(|plane| {
            let samples = u64::from(plane.width) * u64::from(plane.height);
            plane.samples.len() as u64 == samples * size as u64
        })
    }

    /// The planes with their sizes.
    pub fn views(&self) -> [Plane<'_>; 3] {
        let [y, u, v] = &self.planes;
        let size = |[columns, rows]: [u32; 2]| {
            [self.width.div_ceil(1 << columns), self.height.div_ceil(1 << rows)]
        };
        let [width, height] = self.chroma.shift().map_or([0, 0], size);
        let colour = |samples| Plane { width, height, samples };
        [Plane { width: self.width, height: self.height, samples: y }, colour(u), colour(v)]
    }
}
