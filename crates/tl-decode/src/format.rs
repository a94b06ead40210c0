//! The image formats and how their files begin.

use std::fmt;

use crate::error::{DecodeError, Defect, Feature};

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
    /// JPEG 2000, in a file of boxes or as a codestream.
    Jpeg2000,
    /// JPEG XL, in a file of boxes or as a codestream.
    Jxl,
    /// AVIF, a still image or the first of a sequence.
    Avif,
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
            [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xFF, 0x4F, 0xFF, 0x51, ..] => {
                Some(Self::Jpeg2000)
            }
            [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..] | [0xFF, 0x0A, ..] => Some(Self::Jxl),
            _ => (heif(bytes) == Some(Heif::Avif)).then_some(Self::Avif),
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
            Self::Jpeg2000 => "JPEG2000",
            Self::Jxl => "JXL",
            Self::Avif => "AVIF",
        }
    }

    /// [`Format::sniff`] with an error that shows how the file begins.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::sniff(bytes).ok_or_else(|| {
            if heif(bytes) == Some(Heif::Heic) {
                return Feature::Heic.into();
            }
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

/// A codec of HEIF images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heif {
    Avif,
    Heic,
}

/// The codec of HEIF images, which begin with brands that name it.
fn heif(bytes: &[u8]) -> Option<Heif> {
    const MAX_BRANDS: usize = 16;
    let &[_, _, _, _, b'f', b't', b'y', b'p', ref brands @ ..] = bytes else { return None };
    let (major, rest) = brands.split_first_chunk::<4>()?;
    match major {
        b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" => Some(Heif::Heic),
        b"avif" | b"avis" => Some(Heif::Avif),
        b"mif1" | b"msf1" => {
            // After the version, the brands of other readers.
            let mut others = rest.as_chunks::<4>().0.iter().skip(1).take(MAX_BRANDS);
            let is_avif = others.any(|brand| matches!(brand, b"avif" | b"avis"));
            Some(if is_avif { Heif::Avif } else { Heif::Heic })
        }
        _ => None,
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heif_images_are_known_by_their_brands() {
        let text = |bytes: &[u8]| Format::of(bytes).unwrap_err().to_string();
        let heic = "unsupported: HEIC images: convert them to JPEG, PNG or WebP";
        assert_eq!(text(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"), heic);
        assert_eq!(text(b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic"), heic);
        for avif in [&b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf"[..], b"\0\0\0\x1cftypavif\0\0\0\0"]
        {
            assert_eq!(Format::sniff(avif), Some(Format::Avif));
        }
        assert!(text(b"\0\0\0\x1cftypisom\0\0\0\0").starts_with("malformed: not a JPEG"));
        assert!(text(b"\0\0\0\x1cftyphe").starts_with("malformed: not a JPEG"));
    }
}
