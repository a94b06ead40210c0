//! The payload format code that TBL index entries carry, and how a file name implies it.

use core::fmt;

/// What a sample's bytes are.
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
    /// A code this version does not know; passed through.
    Other(u8),
}

impl SampleFormat {
    /// The format that `code` in an index entry stands for.
    ///
    /// Codes without a meaning are kept, so `from_code(c).code() == c` for every `c`.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Unknown,
            1 => Self::Jpeg,
            2 => Self::Png,
            3 => Self::WebP,
            4 => Self::Bmp,
            5 => Self::Tiff,
            6 => Self::VideoMp4,
            7 => Self::VideoAvi,
            8 => Self::RawU8,
            other => Self::Other(other),
        }
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
        const IMAGE_EXTENSIONS: [(&[u8], SampleFormat); 7] = [
            (b"jpg", SampleFormat::Jpeg),
            (b"jpeg", SampleFormat::Jpeg),
            (b"png", SampleFormat::Png),
            (b"webp", SampleFormat::WebP),
            (b"bmp", SampleFormat::Bmp),
            (b"tif", SampleFormat::Tiff),
            (b"tiff", SampleFormat::Tiff),
        ];
        IMAGE_EXTENSIONS
            .iter()
            .find(|(known, _)| extension.eq_ignore_ascii_case(known))
            .map_or(Self::Unknown, |&(_, format)| format)
    }

    /// Whether the bytes are one encoded still image.
    pub const fn is_image(self) -> bool {
        matches!(self, Self::Jpeg | Self::Png | Self::WebP | Self::Bmp | Self::Tiff)
    }
}

impl fmt::Display for SampleFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unknown => "UNKNOWN",
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::WebP => "WEBP",
            Self::Bmp => "BMP",
            Self::Tiff => "TIFF",
            Self::VideoMp4 => "VIDEO_MP4",
            Self::VideoAvi => "VIDEO_AVI",
            Self::RawU8 => "RAW_U8",
            Self::Other(code) => return write!(f, "FORMAT_{code}"),
        })
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
    fn names_are_the_command_lines() {
        assert_eq!(SampleFormat::RawU8.to_string(), "RAW_U8");
        assert_eq!(SampleFormat::VideoMp4.to_string(), "VIDEO_MP4");
        assert_eq!(SampleFormat::Other(200).to_string(), "FORMAT_200");
    }
}
