//! Headers and index entries of both versions.

use tbl_format::v2::{EntryFlags, FileFlags, Payload};
use tbl_format::{FormatError, SampleFormat, v1, v2};

/// The whole of the original writer's `empty_lz4.tbl`.
fn empty_lz4() -> [u8; 64] {
    let mut file = [0; 64];
    file[..8].copy_from_slice(b"TBL\x02\x02\0\0\0");
    file[16] = 64;
    file[40] = 5;
    file[44..48].copy_from_slice(&[0x04, 0xAF, 0xE7, 0x92]);
    file
}

#[test]
fn the_originals_empty_file_is_reproduced() {
    let flags = FileFlags::COMPRESSED | FileFlags::HAS_CHECKSUMS;
    assert_eq!(v2::FileHeader::new(0, 0..0, flags).unwrap().to_bytes(), empty_lz4());
    let bytes = empty_lz4();
    let (header, rest) = v2::FileHeader::parse(&bytes).unwrap();
    assert_eq!((header.sample_count(), header.flags(), rest.len()), (0, flags, 0));
    assert_eq!(header.index_range(64), Ok(64..64));
    assert_eq!(header.metadata_range(64), Ok(None));
}

#[test]
fn version_2_fields_are_where_the_format_has_them() {
    let header = v2::FileHeader::new(3, 136..1000, FileFlags::HAS_CHECKSUMS).unwrap();
    let bytes = header.to_bytes();
    assert_eq!(bytes[..16], *b"TBL\x02\x02\0\0\0\x03\0\0\0\0\0\0\0");
    assert_eq!(bytes[16..24], [136, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[24..32], 136_u64.to_le_bytes());
    assert_eq!(bytes[32..40], 864_u64.to_le_bytes());
    assert_eq!(bytes[40..44], [6, 0, 0, 0]);
    assert_eq!(bytes[48..], [0; 16]);
    assert_eq!(header.metadata_range(1000), Ok(Some(136..1000)));

    let payload = Payload {
        offset: 0x0102_0304_0506_0708,
        stored_bytes: 0x1112_1314,
        bytes: 0x2122_2324,
        checksum: 0x3132,
    };
    let flags = EntryFlags::COMPRESSED | EntryFlags::HAS_METADATA;
    let entry = v2::IndexEntry::new(payload, (0x4142, 0x5152), SampleFormat::RawU8, flags);
    assert_eq!(
        entry.to_bytes(),
        [
            8, 7, 6, 5, 4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0x42, 0x41,
            0x52, 0x51, 8, 3, 0x32, 0x31
        ]
    );
    let bytes = entry.to_bytes();
    let parsed = v2::IndexEntry::parse(&bytes).unwrap();
    assert_eq!((parsed.width(), parsed.height(), parsed.checksum()), (0x4142, 0x5152, 0x3132));
    assert!(parsed.flags().contains(flags));
    assert!(!parsed.flags().contains(EntryFlags::VERIFIED));
}

#[test]
fn version_1_fields_are_where_the_format_has_them() {
    let header = v1::FileHeader::new(2).unwrap();
    let mut expected = [0; 32];
    expected[..16].copy_from_slice(b"TBL\x01\x01\0\0\0\x02\0\0\0\0\0\0\0");
    expected[16] = 64;
    assert_eq!(header.to_bytes(), expected);
    let entry = v1::IndexEntry::new(64, 0x0102_0304, SampleFormat::Png);
    assert_eq!(entry.to_bytes(), [64, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1, 2, 0, 0, 0]);
    assert_eq!(entry.payload(64, 100), Err(beyond_end(64, 0x0102_0304, 100)));
}

fn beyond_end(offset: u64, bytes: u64, file_bytes: u64) -> FormatError {
    FormatError::BeyondEnd { what: "sample payload", offset, bytes, file_bytes }
}

#[test]
fn every_prefix_of_a_header_is_truncated() {
    let bytes = empty_lz4();
    for have in 0..64 {
        let what = "file header";
        let error = v2::FileHeader::parse(&bytes[..have]).unwrap_err();
        assert_eq!(error, FormatError::Truncated { what, need: 64, have: have as u64 });
    }
    let bytes = v1::FileHeader::new(0).unwrap().to_bytes();
    for have in 0..32 {
        assert!(v1::FileHeader::parse(&bytes[..have]).is_err());
    }
}

#[test]
fn every_flipped_bit_of_a_version_2_header_is_found() {
    for bit in 0..64 * 8 {
        let mut bytes = empty_lz4();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = v2::FileHeader::parse(&bytes).unwrap_err();
        match bit / 8 {
            0..4 => assert!(matches!(error, FormatError::BadMagic { .. })),
            // Version 3, which the checksum refuses.
            4 if bit == 32 => assert!(matches!(error, FormatError::HeaderChecksum { .. })),
            4..8 => assert!(matches!(error, FormatError::BadVersion { expected: 2, .. })),
            _ => assert!(matches!(error, FormatError::HeaderChecksum { .. })),
        }
    }
}

#[test]
fn counts_that_wrap_have_no_index() {
    assert_eq!(v2::index_end(u64::MAX), None);
    assert_eq!(v2::index_end(u64::MAX / 24), None);
    assert_eq!(v1::index_end(1 << 60), None);
    // 16 * 2^60 wraps to 0.
    let mut bytes = v1::FileHeader::new(0).unwrap().to_bytes();
    bytes[15] = 0x10;
    let (header, _) = v1::FileHeader::parse(&bytes).unwrap();
    let expected = FormatError::IndexBeyondEnd { sample_count: 1 << 60, file_bytes: 4096 };
    assert_eq!(header.index_range(4096), Err(expected));
}

#[test]
fn the_largest_counts_are_those_whose_header_size_fits() {
    let largest = v2::FileHeader::MAX_SAMPLES;
    assert_eq!(largest, 178_956_967);
    assert!(v2::FileHeader::new(largest, 0..0, FileFlags::NONE).is_ok());
    let expected = FormatError::TooManySamples { sample_count: largest + 1, limit: largest };
    assert_eq!(v2::FileHeader::new(largest + 1, 0..0, FileFlags::NONE).unwrap_err(), expected);
    assert_eq!(v1::FileHeader::MAX_SAMPLES, 268_435_453);
    assert!(v1::FileHeader::new(268_435_453).is_ok());
    assert!(v1::FileHeader::new(268_435_454).is_err());
}

#[test]
fn payloads_lie_between_index_and_end() {
    let range = v2::payload_range;
    assert_eq!(range(88, 12, 88, 100), Ok(88..100));
    assert_eq!(range(88, 13, 88, 100), Err(beyond_end(88, 13, 100)));
    assert_eq!(range(u64::MAX, 1, 88, 100), Err(beyond_end(u64::MAX, 1, 100)));
    let inside = FormatError::InsideIndex { offset: 87, index_end: 88 };
    assert_eq!(range(87, 1, 88, 100), Err(inside));
    assert_eq!(range(0, 0, 88, 100), Ok(0..0));
    assert_eq!(range(101, 0, 88, 100), Err(beyond_end(101, 0, 100)));
}

#[test]
fn impossible_sample_sizes_are_refused() {
    let size = |stored_bytes, bytes, flags| {
        let payload = Payload { offset: 0, stored_bytes, bytes, checksum: 0 };
        v2::IndexEntry::new(payload, (0, 0), SampleFormat::Unknown, flags).sample_bytes()
    };
    let raw = EntryFlags::NONE;
    let lz4 = EntryFlags::COMPRESSED;
    let zstd = EntryFlags::ZSTD;
    assert_eq!(size(9, 9, raw), Ok(9));
    assert_eq!(size(9, 0, raw), Ok(9));
    assert_eq!(size(9, 8, raw), Err(FormatError::RawSize { stored_bytes: 9, bytes: 8 }));
    assert_eq!(size(9, 2295, lz4), Ok(2295));
    assert_eq!(size(9, 2296, lz4), Err(FormatError::Lz4Size { stored_bytes: 9, bytes: 2296 }));
    assert_eq!(size(9, 0, lz4), Err(FormatError::Lz4Size { stored_bytes: 9, bytes: 0 }));
    assert_eq!(size(u32::MAX, u32::MAX, lz4), Ok(u32::MAX));
    assert_eq!(size(9, 9 << 15, zstd), Ok(9 << 15));
    let bytes = (9 << 15) + 1;
    assert_eq!(size(9, bytes, zstd), Err(FormatError::ZstdSize { stored_bytes: 9, bytes }));
    assert_eq!(size(9, 10, zstd), Ok(10));
    assert_eq!(size(9, 9, zstd), Err(FormatError::ZstdSize { stored_bytes: 9, bytes: 9 }));
    assert_eq!(size(9, 10, lz4 | zstd), Err(FormatError::TwoCodecs));
}

#[test]
fn custom_metadata_of_version_1_is_told_from_the_header_size() {
    let header = |tail: [u8; 16]| {
        let mut bytes = v1::FileHeader::new(2).unwrap().to_bytes();
        bytes[16..].copy_from_slice(&tail);
        v1::FileHeader::parse(&bytes).unwrap().0.custom_metadata()
    };
    assert_eq!(header([0; 16]), None);
    assert_eq!(header([64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    let custom = header([1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 10, 0, 0, 0]).unwrap();
    assert_eq!(custom.creation_timestamp, 0x0807_0605_0403_0201);
    assert_eq!((custom.dataset_version, custom.custom_flags), (9, 10));
    let written = v1::FileHeader::new(1).unwrap().with_custom_metadata(custom).to_bytes();
    assert_eq!(written[16..], [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 10, 0, 0, 0]);
}

#[test]
fn versions_are_told_apart_by_four_bytes() {
    assert_eq!(tbl_format::sniff(b"TBL\x01"), Some(1));
    assert_eq!(tbl_format::sniff(b"TBL\x02..."), Some(2));
    for other in [&b"TBL\x03"[..], b"TBL", b"", b"tbl\x02", b"\x02LBT"] {
        assert_eq!(tbl_format::sniff(other), None);
    }
}
