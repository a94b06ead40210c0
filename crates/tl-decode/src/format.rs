//! The image formats and how their files begin.

use std::fmt;

use crate::error::{DecodeError, Defect};

/// An image format this crate decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// JPEG (ITU-T T.81).
    Jpeg,
    /// Portable Network Graphics.
    Png,
    /// WebP, lossy and lossless.
    WebP,
    /// Windows and OS/2 bitmap.
    Bmp,
    /// TIFF 6.0 and `BigTIFF`.
    Tiff,
    /// Portable bitmaps, graymaps and pixmaps of Netpbm: PBM, PGM, PPM.
    Pnm,
    /// Quite OK Image.
    Qoi,
    /// Graphics Interchange Format.
    Gif,
}

impl Format {
    /// The format whose magic number `bytes` start with.
    ///
    /// ```
    /// use tl_decode::Format;
    /// assert_eq!(Format::sniff(b"\x89PNG\r\n\x1a\n\0\0"), Some(Format::Png));
    /// assert_eq!(Format::sniff(b"%PDF-1.7"), None);
    /// ```
    pub fn sniff(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0xFF, 0xD8, 0xFF, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some(Self::Png),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            [b'B', b'M', ..] => Some(Self::Bmp),
            [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Some(Self::Tiff),
            [b'P', b'1'..=b'7' | b'F' | b'f', after, ..] if is_after_pnm_kind(*after) => {
                Some(Self::Pnm)
            }
            [b'q', b'o', b'i', b'f', ..] => Some(Self::Qoi),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            _ => None,
        }
    }

    /// The name of the format, such as `JPEG`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::WebP => "WebP",
            Self::Bmp => "BMP",
            Self::Tiff => "TIFF",
            Self::Pnm => "PNM",
            Self::Qoi => "QOI",
            Self::Gif => "GIF",
        }
    }

    /// [`Format::sniff`] with an error that shows how the file begins.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::sniff(bytes).ok_or_else(|| {
            let mut start = [0; 4];
            for (to, from) in start.iter_mut().zip(bytes) {
                *to = *from;
            }
            Defect::UnknownFormat { start, length: bytes.len() }.into()
        })
    }
}

/// Whether the magic number of a PNM file can have this byte after it: white space or a comment.
fn is_after_pnm_kind(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0B | 0x0C | b'\r' | b'#')
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
