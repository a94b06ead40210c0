//! The three checksums of TBL files.
//!
//! With the feature `std` they run on the processor's carry-less multiply through `crc-fast`,
//! which measured 19 to 170 times the speed of tables; without it (and under Miri, which has no
//! such instructions) the table-driven `crc` crate computes the same values.

/// CRC-32/ISO-HDLC, the checksum of a version 2 header.
pub fn header_crc32(bytes: &[u8]) -> u32 {
    backend::crc32_iso_hdlc(bytes)
}

/// CRC-16/MODBUS, the checksum that version 2 index entries store for a sample's uncompressed
/// bytes. It is `0xffff` for an empty sample.
pub fn payload_crc16(bytes: &[u8]) -> u16 {
    if bytes.len() < MIN_FAST_BYTES {
        return table::crc16_modbus(bytes);
    }
    backend::crc16_modbus(bytes)
}

/// Below this length the tables are faster: 24 bytes took them 10 ns and `crc-fast` 26 ns.
const MIN_FAST_BYTES: usize = 48;

/// CRC-32C (ISCSI), which extension blocks use.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut digest = Crc32c::new();
    digest.update(bytes);
    digest.finish()
}

/// A CRC-32C computed piece by piece.
#[derive(Clone, Debug)]
pub struct Crc32c(backend::Crc32cDigest);

impl Crc32c {
    /// The checksum of nothing yet.
    pub fn new() -> Self {
        Self(backend::Crc32cDigest::new())
    }

    /// Takes in the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of everything taken in so far.
    pub fn finish(&self) -> u32 {
        self.0.finish()
    }
}

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(feature = "std", not(miri)))]
mod backend {
    use crc_fast::{CrcAlgorithm, Digest, checksum};

    /// `crc-fast` returns every width in a `u64`.
    #[expect(clippy::cast_possible_truncation, reason = "a 32-bit CRC in the low bits")]
    pub(super) fn crc32_iso_hdlc(bytes: &[u8]) -> u32 {
        checksum(CrcAlgorithm::Crc32IsoHdlc, bytes) as u32
    }

    #[expect(clippy::cast_possible_truncation, reason = "a 16-bit CRC in the low bits")]
    pub(super) fn crc16_modbus(bytes: &[u8]) -> u16 {
        checksum(CrcAlgorithm::Crc16Modbus, bytes) as u16
    }

    #[derive(Clone, Debug)]
    pub(super) struct Crc32cDigest(Digest);

    impl Crc32cDigest {
        pub(super) fn new() -> Self {
            Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
        }

        pub(super) fn update(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }

        #[expect(clippy::cast_possible_truncation, reason = "a 32-bit CRC in the low bits")]
        pub(super) fn finish(&self) -> u32 {
            self.0.finalize() as u32
        }
    }
}

#[cfg(any(not(feature = "std"), miri))]
mod backend {
    pub(super) use super::table::crc16_modbus;
    pub(super) use super::table32::{Crc32cDigest, crc32_iso_hdlc};
}

/// The table-driven definitions: the path for short inputs and without `std`, and the oracle of
/// the tests.
mod table {
    use crc::{CRC_16_MODBUS, Crc, Table};

    static MODBUS: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_MODBUS);

    pub(super) fn crc16_modbus(bytes: &[u8]) -> u16 {
        MODBUS.checksum(bytes)
    }
}

#[cfg(any(test, not(feature = "std"), miri))]
mod table32 {
    use crc::{CRC_32_ISCSI, CRC_32_ISO_HDLC, Crc, Table};

    static ISO_HDLC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);
    static ISCSI: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

    pub(super) fn crc32_iso_hdlc(bytes: &[u8]) -> u32 {
        ISO_HDLC.checksum(bytes)
    }

    #[derive(Clone)]
    pub(super) struct Crc32cDigest(crc::Digest<'static, u32, Table<16>>);

    impl core::fmt::Debug for Crc32cDigest {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.debug_tuple("Crc32cDigest").field(&self.finish()).finish()
        }
    }

    impl Crc32cDigest {
        pub(super) fn new() -> Self {
            Self(ISCSI.digest())
        }

        pub(super) fn update(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }

        pub(super) fn finish(&self) -> u32 {
            self.0.clone().finalize()
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Check values of the CRC catalogue.
    #[test]
    fn the_catalogue_check_values_hold() {
        assert_eq!(header_crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(payload_crc16(b"123456789"), 0x4b37);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(payload_crc16(b""), 0xffff);
    }

    #[test]
    fn fast_and_table_agree_at_every_length_and_offset() {
        let longest: usize = if cfg!(miri) { 40 } else { 1100 };
        let bytes: Vec<u8> =
            (0..longest + 16).map(|i| (i * 167 + (i >> 3)).to_le_bytes()[0]).collect();
        for offset in 0..if cfg!(miri) { 2 } else { 16 } {
            for len in 0..longest {
                let part = &bytes[offset..offset + len];
                assert_eq!(payload_crc16(part), table::crc16_modbus(part), "{offset}+{len}");
                assert_eq!(header_crc32(part), table32::crc32_iso_hdlc(part), "{offset}+{len}");
                let mut oracle = table32::Crc32cDigest::new();
                oracle.update(part);
                assert_eq!(crc32c(part), oracle.finish(), "{offset}+{len}");
            }
        }
    }

    #[test]
    fn a_digest_in_pieces_equals_the_whole() {
        let bytes: Vec<u8> = (0..300u32).map(|i| (i * 31).to_le_bytes()[0]).collect();
        for cut in [0, 1, 7, 16, 150, 299, 300] {
            let mut digest = Crc32c::new();
            digest.update(&bytes[..cut]);
            digest.update(&bytes[cut..]);
            assert_eq!(digest.finish(), crc32c(&bytes), "cut at {cut}");
        }
    }
}
