//! The compressions of samples, and the sizes that are possible with each.

use super::{EntryFlags, IndexEntry};

/// The compression of a stored sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// A bare LZ4 block.
    Lz4,
    /// A Zstandard frame (RFC 8878) that states the sample's size.
    Zstd,
}

impl Codec {
    /// The flag of samples that are compressed so.
    pub const fn flag(self) -> EntryFlags {
        match self {
            Self::Lz4 => EntryFlags::COMPRESSED,
            Self::Zstd => EntryFlags::ZSTD,
        }
    }

    /// Whether `stored_bytes` compressed bytes can decode to `bytes`.
    pub fn can_decode(self, stored_bytes: u32, bytes: u32) -> bool {
        let stored = u64::from(stored_bytes);
        let expansion = self.max_expansion();
        let longest = match self {
            Self::Lz4 => longest_lz4_block(bytes),
            // Writers keep frames only where they are smaller than the sample.
            Self::Zstd => u64::from(bytes.saturating_sub(1)),
        };
        bytes > 0 && u64::from(bytes) <= stored * expansion && stored <= longest
    }

    /// The factor that compressed bytes cannot expand beyond.
    pub const fn max_expansion(self) -> u64 {
        match self {
            Self::Lz4 => IndexEntry::MAX_LZ4_EXPANSION,
            // Blocks have four bytes at least and decode to 128 KiB at most.
            Self::Zstd => 32 << 10,
        }
    }
}

/// The largest size of an LZ4 block that decodes to `bytes`: one byte more for every 255
/// literals in a row, and 16 (`LZ4_COMPRESSBOUND` in the reference's `lz4.h`).
fn longest_lz4_block(bytes: u32) -> u64 {
    let bytes = u64::from(bytes);
    bytes + bytes / 255 + 16
}
