//! The containers that are read, by their first bytes.

use std::fmt;

/// A container of video.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Container {
    /// MP4 or MOV: ISO/IEC 14496-12, and Apple's QuickTime File Format.
    Mp4,
    /// Matroska or WebM: RFC 9559.
    Matroska,
    /// AVI, with the indexes of version 1 or of OpenDML.
    Avi,
}

impl Container {
    /// The bytes that [`sniff`](Self::sniff) looks at.
    pub const SNIFF_BYTES: usize = 12;

    /// Detects the container from the first [`SNIFF_BYTES`](Self::SNIFF_BYTES) bytes of a file.
    pub fn sniff(start: &[u8]) -> Option<Self> {
        const BOXES: [&[u8; 4]; 9] =
            [b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"styp", b"uuid"];
        if start.starts_with(&[0x1a, 0x45, 0xdf, 0xa3]) {
            return Some(Self::Matroska);
        }
        if start.starts_with(b"RIFF") && start.get(8..12) == Some(b"AVI ") {
            return Some(Self::Avi);
        }
        let kind = start.get(4..8)?;
        BOXES.iter().any(|known| *known == kind).then_some(Self::Mp4)
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mp4 => "MP4",
            Self::Matroska => "Matroska",
            Self::Avi => "AVI",
        })
    }
}
