//! The payload format code that TBL index entries carry, and how a file name implies it.

use core::fmt;

/// The format of a sample's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SampleFormat {
    /// Not known (code 0).
    Unknown,
    /// JPEG (1).
    Jpeg,
    /// PNG (2).
    Png,
    /// WebP (3).
    WebP,
    /// Windows bitmap (4).
    Bmp,
    /// TIFF (5).
    Tiff,
    /// MPEG-4 video (6).
    VideoMp4,
    /// AVI video (7).
    VideoAvi,
    /// Uncompressed RGB, 8 bits, rows of `width * 3` bytes (8).
    RawU8,
    /// GIF (64). The codes from here on are this project's.
    Gif,
    /// PBM, PGM and PPM (65).
    Pnm,
    /// QOI (66).
    Qoi,
    /// JPEG 2000, in a file of boxes or as a codestream (67).
    Jpeg2000,
    /// JPEG XL, in a file of boxes or as a codestream (68).
    Jxl,
    /// AVIF (69).
    Avif,
    /// A code this version does not know; passed through.
    Other(u8),
}

/// A format, its name, and the extensions of its files: the one to write, then others to accept.
struct Row(SampleFormat, &'static str, &'static [&'static str]);

/// The formats in the order of their codes.
const TABLE: [Row; 15] = [
    Row(SampleFormat::Unknown, "UNKNOWN", &["bin"]),
    Row(SampleFormat::Jpeg, "JPEG", &["jpg", "jpeg"]),
    Row(SampleFormat::Png, "PNG", &["png"]),
    Row(SampleFormat::WebP, "WEBP", &["webp"]),
    Row(SampleFormat::Bmp, "BMP", &["bmp"]),
    Row(SampleFormat::Tiff, "TIFF", &["tif", "tiff"]),
    Row(SampleFormat::VideoMp4, "VIDEO_MP4", &["mp4"]),
    Row(SampleFormat::VideoAvi, "VIDEO_AVI", &["avi"]),
    Row(SampleFormat::RawU8, "RAW_U8", &["rgb"]),
    Row(SampleFormat::Gif, "GIF", &["gif"]),
    Row(SampleFormat::Pnm, "PNM", &["pnm", "pbm", "pgm", "ppm"]),
    Row(SampleFormat::Qoi, "QOI", &["qoi"]),
    Row(SampleFormat::Jpeg2000, "JPEG2000", &["jp2", "j2k", "j2c", "jpc", "jpf", "jpx"]),
    Row(SampleFormat::Jxl, "JXL", &["jxl"]),
    Row(SampleFormat::Avif, "AVIF", &["avif", "avifs"]),
];

/// The extensions of videos whose frames can be read.
const VIDEOS: [&str; 6] = ["mp4", "m4v", "mov", "mkv", "webm", "avi"];

impl SampleFormat {
    /// The format that `code` in an index entry stands for.
    ///
    /// Codes without a meaning are kept, so `from_code(c).code() == c` for every `c`.
    pub fn from_code(code: u8) -> Self {
        let row = TABLE.iter().find(|row| row.0.code() == code);
        row.map_or(Self::Other(code), |row| row.0)
    }

    /// The format with this name in any letter case, such as `JPEG`, if there is one.
    ///
    /// ```
    /// use tbl_format::SampleFormat;
    /// assert_eq!(SampleFormat::from_name("WebP"), Some(SampleFormat::WebP));
    /// assert_eq!(SampleFormat::from_name("HEIC"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1.eq_ignore_ascii_case(name)).map(|row| row.0)
    }

    /// The code that index entries store for this format.
    pub const fn code(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Jpeg => 1,
            Self::Png => 2,
            Self::WebP => 3,
            Self::Bmp => 4,
            Self::Tiff => 5,
            Self::VideoMp4 => 6,
            Self::VideoAvi => 7,
            Self::RawU8 => 8,
            Self::Gif => 64,
            Self::Pnm => 65,
            Self::Qoi => 66,
            Self::Jpeg2000 => 67,
            Self::Jxl => 68,
            Self::Avif => 69,
            Self::Other(code) => code,
        }
    }

    /// The format that the text after the last dot of `name` implies, in any letter case;
    /// [`Unknown`](Self::Unknown) for anything but an image extension.
    ///
    /// The original writer decides by extension alone, so this does too; only the last path
    /// component is looked at, because a dot in a folder's name is not an extension.
    pub fn from_file_name(name: &[u8]) -> Self {
        let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
        let Some(dot) = base.iter().rposition(|&byte| byte == b'.') else {
            return Self::Unknown;
        };
        let extension = &base[dot + 1..];
        let mut lower = [0; 5];
        let Some(lower) = lower.get_mut(..extension.len()) else { return Self::Unknown };
        lower.copy_from_slice(extension);
        lower.make_ascii_lowercase();
        // Archives ask this several times of each member, so no table is searched.
        match &*lower {
            b"jpg" | b"jpeg" => Self::Jpeg,
            b"png" => Self::Png,
            b"webp" => Self::WebP,
            b"bmp" => Self::Bmp,
            b"tif" | b"tiff" => Self::Tiff,
            b"gif" => Self::Gif,
            b"pnm" | b"pbm" | b"pgm" | b"ppm" => Self::Pnm,
            b"qoi" => Self::Qoi,
            b"jp2" | b"j2k" | b"j2c" | b"jpc" | b"jpf" | b"jpx" => Self::Jpeg2000,
            b"jxl" => Self::Jxl,
            b"avif" | b"avifs" => Self::Avif,
            _ => Self::Unknown,
        }
    }

    /// The format of an image that begins with these bytes; [`Unknown`](Self::Unknown) for anything
    /// else.
    ///
    /// ```
    /// use tbl_format::SampleFormat;
    /// assert_eq!(SampleFormat::from_magic(b"\xff\xd8\xff\xe0"), SampleFormat::Jpeg);
    /// assert_eq!(SampleFormat::from_magic(b"%PDF-1.7"), SampleFormat::Unknown);
    /// ```
    pub fn from_magic(bytes: &[u8]) -> Self {
        match bytes {
            [0xff, 0xd8, 0xff, ..] => Self::Jpeg,
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Self::Png,
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Self::WebP,
            [b'B', b'M', ..] => Self::Bmp,
            [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Self::Tiff,
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Self::Gif,
            // Texts begin with a `P` and a digit, too.
            [b'P', b'4'..=b'6', b' ' | b'\t' | b'\n' | b'\r', b'0'..=b'9' | b'#', ..] => Self::Pnm,
            [b'q', b'o', b'i', b'f', ..] => Self::Qoi,
            [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xff, 0x4f, 0xff, 0x51, ..] => {
                Self::Jpeg2000
            }
            [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..] | [0xff, 0x0a, ..] => Self::Jxl,
            [_, _, _, _, b'f', b't', b'y', b'p', brands @ ..] if is_avif(brands) => Self::Avif,
            _ => Self::Unknown,
        }
    }

    /// Whether a file with this name is a video, by its extension in any letter case. The original
    /// writer gives videos no format, so that [`from_file_name`](Self::from_file_name) does not either.
    ///
    /// ```
    /// use tbl_format::SampleFormat;
    /// assert!(SampleFormat::is_video_name(b"clips/a.MP4"));
    /// assert!(!SampleFormat::is_video_name(b"clips/a.jpg"));
    /// ```
    pub fn is_video_name(name: &[u8]) -> bool {
        let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
        let Some(dot) = base.iter().rposition(|&byte| byte == b'.') else { return false };
        let is_extension = |known: &&str| base[dot + 1..].eq_ignore_ascii_case(known.as_bytes());
        VIDEOS.iter().any(is_extension)
    }

    /// Whether bytes begin as an MP4, MOV, Matroska, WebM or AVI file does.
    pub fn is_video_magic(bytes: &[u8]) -> bool {
        let is_image = Self::from_magic(bytes).is_image();
        !is_image
            && matches!(
                bytes,
                [_, _, _, _, b'f', b't', b'y', b'p', ..]
                    | [0x1a, 0x45, 0xdf, 0xa3, ..]
                    | [b'R', b'I', b'F', b'F', _, _, _, _, b'A', b'V', b'I', b' ', ..]
            )
    }

    /// The extension that files of this format are written with, without a dot: `bin` for formats
    /// without one.
    pub fn extension(self) -> &'static str {
        self.row().2[0]
    }

    /// The row of the format, that of [`Unknown`](Self::Unknown) for codes without a meaning.
    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| row.0 == self).unwrap_or(&TABLE[0])
    }

    /// Whether the bytes are one encoded still image.
    pub const fn is_image(self) -> bool {
        matches!(
            self,
            Self::Jpeg
                | Self::Png
                | Self::WebP
                | Self::Bmp
                | Self::Tiff
                | Self::Gif
                | Self::Pnm
                | Self::Qoi
                | Self::Jpeg2000
                | Self::Jxl
                | Self::Avif
        )
    }

    /// Whether the first `turboloader` has a code for the format.
    pub const fn is_original(self) -> bool {
        self.code() <= Self::RawU8.code()
    }
}

/// Whether a file with these brands, and the version after the first, is AVIF: HEIF names its codec in
/// one of the brands after the first.
fn is_avif(brands: &[u8]) -> bool {
    const MAX_BRANDS: usize = 16;
    let Some((major, rest)) = brands.split_first_chunk::<4>() else { return false };
    let mut others = rest.as_chunks::<4>().0.iter().skip(1).take(MAX_BRANDS);
    match major {
        b"avif" | b"avis" => true,
        b"mif1" | b"msf1" => others.any(|brand| matches!(brand, b"avif" | b"avis")),
        _ => false,
    }
}

impl fmt::Display for SampleFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Other(code) = self {
            return write!(f, "FORMAT_{code}");
        }
        f.pad(self.row().1)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn every_code_survives_the_round_trip() {
        for code in 0..=u8::MAX {
            assert_eq!(SampleFormat::from_code(code).code(), code);
        }
    }

    #[test]
    fn images_are_read_by_every_extension_that_is_written() {
        for Row(format, name, extensions) in TABLE {
            assert_eq!(SampleFormat::from_name(name), Some(format));
            assert_eq!(format.extension(), extensions[0]);
            let expected = if format.is_image() { format } else { SampleFormat::Unknown };
            for extension in extensions {
                let file = alloc::format!("a.{extension}");
                assert_eq!(SampleFormat::from_file_name(file.as_bytes()), expected, "{file}");
            }
        }
        assert_eq!(SampleFormat::Other(9).extension(), "bin");
    }

    #[test]
    fn the_name_after_the_last_dot_decides() {
        let check = |name: &str, expected: SampleFormat| {
            assert_eq!(SampleFormat::from_file_name(name.as_bytes()), expected, "{name}");
        };
        check("a/b.jpg", SampleFormat::Jpeg);
        check("B.JPEG", SampleFormat::Jpeg);
        check("x.png.WebP", SampleFormat::WebP);
        check("x.bMp", SampleFormat::Bmp);
        check("x.tif", SampleFormat::Tiff);
        check("x.tiff", SampleFormat::Tiff);
        check(".png", SampleFormat::Png);
        check("png", SampleFormat::Unknown);
        check("x.png.", SampleFormat::Unknown);
        check("shard.png/readme", SampleFormat::Unknown);
        check("", SampleFormat::Unknown);
        check("clip.mp4", SampleFormat::Unknown);
    }

    #[test]
    fn videos_are_known_by_name_and_by_their_first_bytes() {
        for name in ["a/b.mp4", "B.MKV", "x.jpg.webm", ".avi"] {
            assert!(SampleFormat::is_video_name(name.as_bytes()), "{name}");
        }
        for name in ["mp4", "a.mp4/b", "a.mp", "a.mp4.jpg", ""] {
            assert!(!SampleFormat::is_video_name(name.as_bytes()), "{name}");
        }
        assert!(SampleFormat::is_video_magic(b"\0\0\0\x20ftypisom"));
        assert!(SampleFormat::is_video_magic(b"\x1a\x45\xdf\xa3\x01"));
        assert!(SampleFormat::is_video_magic(b"RIFF\0\0\0\0AVI LIST"));
        assert!(!SampleFormat::is_video_magic(b"RIFF\0\0\0\0WEBP"));
        assert!(!SampleFormat::is_video_magic(b"\0\0\0\x20fty"));
        for avif in [&b"\0\0\0\x20ftypavif"[..], b"\0\0\0\x20ftypmif1\0\0\0\0mif1avif"] {
            assert!(!SampleFormat::is_video_magic(avif));
            assert_eq!(SampleFormat::from_magic(avif), SampleFormat::Avif);
        }
        let heic = b"\0\0\0\x20ftypmif1\0\0\0\0mif1heic";
        assert_eq!(SampleFormat::from_magic(heic), SampleFormat::Unknown);
    }

    #[test]
    fn names_are_the_command_lines() {
        assert_eq!(SampleFormat::RawU8.to_string(), "RAW_U8");
        assert_eq!(SampleFormat::VideoMp4.to_string(), "VIDEO_MP4");
        assert_eq!(SampleFormat::Other(200).to_string(), "FORMAT_200");
    }
}
