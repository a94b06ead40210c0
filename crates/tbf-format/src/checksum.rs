//! CRC-32C (ISCSI), the checksum of headers, footers and regions.
//!
//! With the feature `std` it runs on the processor's carry-less multiply through `crc-fast`;
//! without it, and under Miri, which has no such instructions, the table-driven `crc` crate
//! computes the same values.

/// CRC-32C of `bytes`.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    backend::crc32c(bytes)
}

#[cfg(all(feature = "std", not(miri)))]
mod backend {
    use crc_fast::{CrcAlgorithm, checksum};

    #[expect(clippy::cast_possible_truncation, reason = "a 32-bit CRC in the low bits")]
    pub(super) fn crc32c(bytes: &[u8]) -> u32 {
        checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
    }
}

#[cfg(any(not(feature = "std"), miri))]
mod backend {
    pub(super) use super::table::crc32c;
}

#[cfg(any(test, not(feature = "std"), miri))]
mod table {
    use crc::{CRC_32_ISCSI, Crc, Table};

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
        }
    }
}
