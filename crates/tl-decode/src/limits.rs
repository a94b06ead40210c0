//! The bounds that every decoder charges before it allocates.

use crate::error::{DecodeError, Limit};

/// How much one image may cost.
///
/// Every decoder checks these against the numbers in the file before it allocates for them, so a
/// file of a few bytes cannot ask for gigabytes. The two byte limits together bound what one image
/// takes, by default to 896 MiB, besides the file itself and what a decoder has kept from images
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Width times height. Default 178 956 970, where Pillow raises `DecompressionBombError`.
    pub max_pixels: u64,
    /// Width and height. Default 1 048 576. JPEG has at most 65 535 and WebP 16 383; a TBL v2
    /// index cannot store more than 65 535 and marks such a size as unknown.
    pub max_dimension: u32,
    /// Bytes of the decoded image. Default 512 MiB: `max_pixels` of RGB.
    pub max_decoded_bytes: u64,
    /// Bytes a decoder may hold besides the decoded image: coefficients, planes, entropy-coded data
    /// without its stuffing, decompressed strips. Default 384 MiB.
    pub max_working_bytes: u64,
    /// Scans in one JPEG file. Default 500; encoders write 10 or so, and each scan of a small file
    /// can cost as much time as the whole image.
    pub jpeg_scans: u32,
    /// Bytes of metadata read from one image (EXIF, TIFF tags, colour maps). Default 1 MiB.
    pub max_metadata_bytes: u64,
    /// Entries in a TIFF directory. Default 1 024.
    pub tiff_entries: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_pixels: 178_956_970,
            max_dimension: 1 << 20,
            max_decoded_bytes: 512 << 20,
            max_working_bytes: 384 << 20,
            jpeg_scans: 500,
            max_metadata_bytes: 1 << 20,
            tiff_entries: 1024,
        }
    }
}

impl Limits {
    /// Checks the size of an image of which only a part may be decoded.
    pub(crate) fn charge_pixels(&self, width: u32, height: u32) -> Result<u64, DecodeError> {
        let w = u64::from(width);
        let h = u64::from(height);
        check(Limit::Dimension, self.max_dimension.into(), w.max(h))?;
        let pixels = w.saturating_mul(h);
        check(Limit::Pixels, self.max_pixels, pixels)?;
        Ok(pixels)
    }

    /// Checks the size of the decoded image.
    pub(crate) fn charge_image(
        &self,
        width: u32,
        height: u32,
        channels: u8,
    ) -> Result<(), DecodeError> {
        let bytes = self.charge_pixels(width, height)?.saturating_mul(channels.into());
        check(Limit::DecodedBytes, self.max_decoded_bytes, bytes)
    }

    /// Checks what a decoder needs besides the decoded image.
    pub(crate) fn charge_working(&self, bytes: u64) -> Result<(), DecodeError> {
        check(Limit::WorkingBytes, self.max_working_bytes, bytes)
    }

    /// `max_working_bytes` for codecs that count by themselves.
    pub(crate) fn working_bytes(&self) -> usize {
        usize::try_from(self.max_working_bytes).unwrap_or(usize::MAX)
    }
}

/// The working memory of an image, of which a part is charged already.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(any(feature = "tiff-lzma", feature = "tiff-zstd")),
    expect(dead_code, reason = "only these codecs allocate memory themselves")
)]
pub(crate) struct WorkingMemory {
    max: u64,
    charged: u64,
}

impl WorkingMemory {
    /// The working memory of `limits` after `bytes` of it are charged.
    pub(crate) fn charge(limits: &Limits, bytes: u64) -> Result<Self, DecodeError> {
        limits.charge_working(bytes)?;
        Ok(Self { max: limits.max_working_bytes, charged: bytes })
    }

    /// Checks what a decoder needs besides what is charged.
    #[cfg(any(feature = "tiff-lzma", feature = "tiff-zstd"))]
    pub(crate) fn check(self, bytes: u64) -> Result<(), DecodeError> {
        check(Limit::WorkingBytes, self.max, self.charged.saturating_add(bytes))
    }

    /// The bytes that are left.
    #[cfg(feature = "tiff-lzma")]
    pub(crate) fn left(self) -> u64 {
        self.max - self.charged
    }
}

/// Fails when `need` is above `max`.
pub(crate) fn check(limit: Limit, max: u64, need: u64) -> Result<(), DecodeError> {
    if need > max { Err(DecodeError::LimitExceeded { limit, max, need }) } else { Ok(()) }
}
