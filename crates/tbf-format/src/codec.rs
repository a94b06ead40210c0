//! Compressed regions: blocks of a fixed number of bytes, each compressed by itself.
//!
//! In front of a block stand four bytes with its stored length. Their highest bit says that the
//! block is stored as it is, because compression did not make it smaller.

use alloc::vec::Vec;

use crate::aligned::AlignedBytes;
use crate::error::FormatError;
use crate::header::Compression;
use crate::region::Region;

/// Marks a block that is stored as it is.
const STORED: u32 = 1 << 31;

/// The shortest a block can be: its length, and one byte.
const MIN_BLOCK_BYTES: u64 = 5;

/// The bytes that writers put into one block. Larger blocks hardly compress better (vectors and
/// columns repeat within a few rows), smaller ones pay more for the header of each.
pub(crate) const BLOCK_BYTES: u32 = 256 << 10;

/// The feature that a compression takes, when this build lacks it.
pub(crate) fn missing_feature(compression: Compression) -> Option<&'static str> {
    match compression {
        Compression::Lz4 if cfg!(not(feature = "lz4")) => Some("lz4"),
        Compression::Zstd if cfg!(not(feature = "zstd")) => Some("zstd"),
        Compression::None | Compression::Lz4 | Compression::Zstd => None,
    }
}

/// `raw` as blocks; `None` when that is not smaller.
pub(crate) fn compress(raw: &[u8], compression: Compression) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let is_compressed = append_blocks(&mut out, raw, compression);
    (is_compressed && out.len() < raw.len()).then_some(out)
}

/// Appends `raw` as blocks, the last of which may be shorter; `false` without compression.
pub(crate) fn append_blocks(out: &mut Vec<u8>, raw: &[u8], compression: Compression) -> bool {
    if compression == Compression::None {
        return false;
    }
    for block in raw.chunks(BLOCK_BYTES as usize) {
        let compressed = compress_block(block, compression).filter(|c| c.len() < block.len());
        let (bytes, mark) = match &compressed {
            Some(bytes) => (bytes.as_slice(), 0),
            None => (block, STORED),
        };
        // No longer than a block of 256 KiB.
        let length = u32::try_from(bytes.len()).unwrap_or(BLOCK_BYTES);
        out.extend((length | mark).to_le_bytes());
        out.extend(bytes);
    }
    true
}

/// The bytes of a region of `raw_bytes` bytes that is stored as blocks of `block_bytes` each.
///
/// Memory grows with what has been decoded, not with what is promised.
pub(crate) fn decompress(
    stored: &[u8],
    compression: Compression,
    region: Region,
    raw_bytes: u64,
    block_bytes: u32,
) -> Result<AlignedBytes, FormatError> {
    if let Some(feature) = missing_feature(compression) {
        return Err(FormatError::Unsupported { region, feature });
    }
    let have = stored.len() as u64;
    let truncated = |need| FormatError::Truncated { region, need, have };
    let blocks = raw_bytes.div_ceil(u64::from(block_bytes).max(1));
    let least = blocks.saturating_mul(MIN_BLOCK_BYTES);
    if least > have {
        return Err(truncated(least));
    }
    let mut raw = AlignedBytes::zeroed(0);
    let mut rest = stored;
    for block in 0..blocks {
        let offset = have - rest.len() as u64;
        let damaged = FormatError::Block { region, block, offset };
        let need = |bytes: u64| truncated(offset.saturating_add(bytes));
        let (length, behind) = rest.split_first_chunk().ok_or_else(|| need(MIN_BLOCK_BYTES))?;
        let length = u32::from_le_bytes(*length);
        let (bytes, behind) = usize::try_from(length & !STORED)
            .ok()
            .and_then(|length| behind.split_at_checked(length))
            .ok_or_else(|| need(4 + u64::from(length & !STORED)))?;
        rest = behind;
        let left = raw_bytes - raw.as_bytes().len() as u64;
        // At most 16 MiB.
        let size = usize::try_from(left.min(block_bytes.into())).unwrap_or(0);
        let place = raw.grow(size);
        let is_whole = if length & STORED == 0 {
            decompress_block(bytes, compression, place)
        } else {
            bytes.len() == size && {
                place.copy_from_slice(bytes);
                true
            }
        };
        if !is_whole {
            return Err(damaged);
        }
    }
    if !rest.is_empty() {
        let stated = have;
        let found = have - rest.len() as u64;
        return Err(FormatError::Contradiction { what: "length of all blocks", stated, found });
    }
    Ok(raw)
}

/// `None` when the library fails, as for want of memory.
#[cfg_attr(
    not(any(feature = "lz4", feature = "zstd")),
    expect(unused_variables, reason = "no compression is built in")
)]
fn compress_block(block: &[u8], compression: Compression) -> Option<Vec<u8>> {
    match compression {
        #[cfg(feature = "lz4")]
        Compression::Lz4 => lz4::block::compress(block, None, false).ok(),
        #[cfg(feature = "zstd")]
        Compression::Zstd => zstd::bulk::compress(block, zstd::DEFAULT_COMPRESSION_LEVEL).ok(),
        _ => None,
    }
}

/// Fills `raw`; whether that succeeded.
#[cfg_attr(
    not(any(feature = "lz4", feature = "zstd")),
    expect(unused_variables, reason = "no compression is built in")
)]
fn decompress_block(stored: &[u8], compression: Compression, raw: &mut [u8]) -> bool {
    match compression {
        #[cfg(feature = "lz4")]
        Compression::Lz4 => {
            let size = i32::try_from(raw.len()).ok();
            let decoded = lz4::block::decompress_to_buffer(stored, size, raw);
            decoded.is_ok_and(|bytes| bytes == raw.len())
        }
        #[cfg(feature = "zstd")]
        Compression::Zstd => {
            let decoded = zstd::bulk::decompress_to_buffer(stored, raw);
            decoded.is_ok_and(|bytes| bytes == raw.len())
        }
        _ => false,
    }
}
