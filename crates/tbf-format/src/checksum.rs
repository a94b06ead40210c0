//! CRC-32C (ISCSI), the checksum of headers, footers and regions.
//!
//! With the feature `std` it runs on the processor's carry-less multiply through `crc-fast`;
//! without it, and under Miri, which has no such instructions, the table-driven `crc` crate
//! computes the same values.

/// CRC-32C of `bytes`.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    backend::crc32c(bytes)
}

/// CRC-32C of bytes that come in pieces, and how many they are.
#[cfg(feature = "std")]
#[derive(Clone)]
pub(crate) struct RunningCrc {
    digest: backend::Digest,
    bytes: u64,
}

#[cfg(feature = "std")]
impl RunningCrc {
    /// The checksum of no bytes.
    pub(crate) fn new() -> Self {
        Self { digest: backend::digest(), bytes: 0 }
    }

    /// Adds the next bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.digest.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// How many bytes there were.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The checksum of all of them.
    pub(crate) fn checksum(self) -> u32 {
        backend::finalize(self.digest)
    }
}

#[cfg(feature = "std")]
impl core::fmt::Debug for RunningCrc {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // The digest of the table-driven crate says nothing of itself.
        f.debug_struct("RunningCrc").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(all(feature = "std", not(miri)))]
mod backend {
    pub(super) use crc_fast::Digest;
    use crc_fast::{CrcAlgorithm, checksum};

    pub(super) fn digest() -> Digest {
        Digest::new(CrcAlgorithm::Crc32Iscsi)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a 32-bit CRC in the low bits")]
    pub(super) fn finalize(digest: Digest) -> u32 {
        digest.finalize() as u32
    }

    #[expect(clippy::cast_possible_truncation, reason = "a 32-bit CRC in the low bits")]
    pub(super) fn crc32c(bytes: &[u8]) -> u32 {
        checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
    }
}

#[cfg(any(not(feature = "std"), miri))]
mod backend {
    pub(super) use super::table::*;
}

#[cfg(any(test, not(feature = "std"), miri))]
mod table {
    use crc::{CRC_32_ISCSI, Crc, Table};

    #[cfg(all(feature = "std", miri))]
    pub(super) type Digest = crc::Digest<'static, u32, Table<16>>;

    #[cfg(all(feature = "std", miri))]
    pub(super) fn digest() -> Digest {
        ISCSI.digest()
    }

    #[cfg(all(feature = "std", miri))]
    pub(super) fn finalize(digest: Digest) -> u32 {
        digest.finalize()
    }

    static ISCSI: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

    pub(super) fn crc32c(bytes: &[u8]) -> u32 {
        ISCSI.checksum(bytes)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn the_catalogue_check_value_holds() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn fast_and_table_agree_at_every_length() {
        let longest: u32 = if cfg!(miri) { 40 } else { 1100 };
        let bytes: Vec<u8> = (0..longest).map(|i| (i * 167 + (i >> 3)).to_le_bytes()[0]).collect();
        for len in 0..bytes.len() {
            assert_eq!(crc32c(&bytes[..len]), table::crc32c(&bytes[..len]), "{len} bytes");
            #[cfg(feature = "std")]
            {
                let mut running = RunningCrc::new();
                bytes[..len].chunks(len / 3 + 1).for_each(|part| running.update(part));
                assert_eq!(
                    (running.bytes(), running.checksum()),
                    (len as u64, crc32c(&bytes[..len]))
                );
            }
        }
    }
}
