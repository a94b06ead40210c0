//! The payload format code that TBL index entries carry.

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
