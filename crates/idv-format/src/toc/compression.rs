//! The compression of blocks.

use core::fmt;

/// The compression of a block's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// DEFLATE without anything around it (RFC 1951).
    Deflate,
    /// DEFLATE in a zlib stream (RFC 1950). Read and never written: no released ML.NET knows it.
    Zlib,
}

impl Compression {
    /// Its number in a file.
    pub fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Deflate => 1,
            Self::Zlib => 2,
        }
    }

    pub(super) fn from_code(code: u8) -> Result<Self, u8> {
        [Self::None, Self::Deflate, Self::Zlib]
            .into_iter()
            .find(|compression| compression.code() == code)
            .ok_or(code)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Deflate => "DEFLATE",
            Self::Zlib => "zlib",
        })
    }
}
