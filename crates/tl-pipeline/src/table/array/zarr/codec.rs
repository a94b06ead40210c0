//! The compression and checksums of chunks.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use tbl_format::checksum::crc32c;

/// A codec from bytes to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Gzip,
    Zstd,
    /// CRC-32C in the last four bytes.
    Crc32c,
}

/// Bytes of the checksum.
const CRC_BYTES: usize = 4;

impl Codec {
    /// The codec of this name; `None` for one that is not read.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "gzip" => Some(Self::Gzip),
            "zstd" => Some(Self::Zstd),
            "crc32c" => Some(Self::Crc32c),
            _ => None,
        }
    }

    /// The bytes before this codec, at most `most`.
    fn decode(self, mut stored: Vec<u8>, most: usize) -> Result<Vec<u8>, &'static str> {
        match self {
            Self::Gzip => {
                let mut bytes = Vec::new();
                // One byte more shows that there are too many.
                let limit = (most as u64).saturating_add(1);
                let read = MultiGzDecoder::new(&*stored).take(limit).read_to_end(&mut bytes);
                read.map_err(|_| "damaged gzip data")?;
                Ok(bytes)
            }
            Self::Zstd => zstd::bulk::decompress(&stored, most)
                .map_err(|_| "damaged Zstandard data, or more than the chunk has"),
            Self::Crc32c => {
                let end = stored.len().checked_sub(CRC_BYTES).ok_or("no room for its CRC-32C")?;
                let crc = crc32c(&stored[..end]).to_le_bytes();
                if stored[end..] != crc {
                    return Err("its CRC-32C does not match");
                }
                stored.truncate(end);
                Ok(stored)
            }
        }
    }
}

/// The most bytes that so many take in a file: codecs add little to bytes that they cannot compress.
pub(super) fn most_stored(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 64).saturating_add(1 << 16)
}

/// The `bytes` bytes of a chunk that was written with `codecs`.
///
/// # Errors
/// The defect of the stored bytes.
pub(super) fn decode(codecs: &[Codec], stored: Vec<u8>, bytes: usize) -> Result<Vec<u8>, String> {
    let between = usize::try_from(most_stored(bytes as u64)).unwrap_or(usize::MAX);
    let mut decoded = stored;
    for (place, codec) in codecs.iter().enumerate().rev() {
        let most = if place == 0 { bytes } else { between };
        decoded = codec.decode(decoded, most)?;
    }
    if decoded.len() != bytes {
        return Err(format!("{} bytes of numbers, expected {bytes}", decoded.len()));
    }
    Ok(decoded)
}
