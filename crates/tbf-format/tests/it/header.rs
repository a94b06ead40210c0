//! Headers, whole and damaged.

use tbf_format::{Dialect, FileHeader, FormatError, Region, Segment};

use crate::data::{published_segment, put, reference_segment, seal};

#[test]
fn fields_are_where_the_format_has_them() {
    let mut bytes: Vec<u8> = (0..128).collect();
    bytes[..8].copy_from_slice(b"TALB\x01\0\0\0");
    put(&mut bytes, 44, &[3, 2, 0x3f, 0]);
    put(&mut bytes, 108, &[0; 20]);
    seal(&mut bytes);
    let header = FileHeader::parse(&bytes).unwrap();
    let number = |at: u64| (0..8).fold(0, |value, i| value | (at + i) << (8 * i));
    assert_eq!(header.dialect(), Dialect::Published);
    assert_eq!((header.segment_id(), header.created_at()), (number(8), number(16)));
    assert_eq!((header.node_count(), header.edge_count()), (number(24), number(32)));
    assert_eq!(header.embedding_dim(), 0x2b2a_2928);
    assert_eq!((header.embedding_dtype().code(), header.compression().code()), (3, 2));
    assert_eq!(header.flags().bits(), 0x3f);
    let regions = [
        Region::Nodes,
        Region::Embeddings,
        Region::Edges,
        Region::Strings,
        Region::Bloom,
        Region::Index,
        Region::Footer,
    ];
    for (region, at) in regions.into_iter().zip((48..).step_by(8)) {
        assert_eq!(header.offset(region), number(at), "{region}");
    }
}

#[test]
fn every_prefix_of_a_header_is_truncated() {
    let bytes = published_segment();
    for have in 0..128 {
        let truncated =
            FormatError::Truncated { region: Region::Header, need: 128, have: have as u64 };
        assert_eq!(FileHeader::parse(&bytes[..have]).unwrap_err(), truncated);
    }
}

#[test]
fn every_flipped_bit_of_a_header_is_found() {
    let whole = published_segment();
    assert!(Segment::open(&whole).is_ok());
    for bit in 0..128 * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = Segment::open(&bytes).unwrap_err();
        let expected = match bit / 8 {
            0..4 => matches!(error, FormatError::BadMagic { region: Region::Header, .. }),
            4..8 => matches!(error, FormatError::BadVersion { .. }),
            8..108 => matches!(error, FormatError::HeaderChecksum { .. }),
            at => error == FormatError::NotZero { region: Region::Header, offset: at as u64 },
        };
        assert!(expected, "bit {bit}: {error}");
    }
}

/// Bursts and two flips together, among them those that make one dialect of the other.
#[test]
fn every_pair_of_flipped_bits_near_each_other_is_found() {
    let whole = published_segment();
    for first in (0..128 * 8).step_by(if cfg!(miri) { 61 } else { 1 }) {
        for second in first + 1..(first + 33).min(128 * 8) {
            let mut bytes = whole.clone();
            bytes[first / 8] ^= 1 << (first % 8);
            bytes[second / 8] ^= 1 << (second % 8);
            assert!(FileHeader::parse(&bytes).is_err(), "bits {first} and {second}");
        }
    }
}

#[test]
fn a_missing_checksum_is_the_references_privilege() {
    let mut published = published_segment();
    put(&mut published, 104, &[0; 4]);
    assert!(matches!(
        FileHeader::parse(&published),
        Err(FormatError::HeaderChecksum { stored: 0, .. })
    ));
    let mut reference = reference_segment();
    assert!(!FileHeader::parse(&reference).unwrap().has_checksum());
    seal(&mut reference);
    assert!(FileHeader::parse(&reference).unwrap().has_checksum());
    reference[8] ^= 1;
    assert!(matches!(FileHeader::parse(&reference), Err(FormatError::HeaderChecksum { .. })));
}

#[test]
fn other_versions_and_codes_are_refused() {
    let parse = |at: usize, bytes: &[u8]| {
        let mut file = published_segment();
        put(&mut file, at, bytes);
        seal(&mut file);
        FileHeader::parse(&file).map(|_| ()).unwrap_err()
    };
    for version in [[1, 0, 1, 0], [2, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 1]] {
        assert_eq!(parse(4, &version), FormatError::BadVersion { found: version });
    }
    let unknown = |field, found| FormatError::UnknownCode { field, found };
    assert_eq!(parse(44, &[4]), unknown("embedding_dtype", 4));
    assert_eq!(parse(45, &[3]), unknown("compression", 3));
    assert_eq!(parse(46, &[0x43, 0]), unknown("flags", 0x43));
    assert_eq!(parse(47, &[0x80]), unknown("flags", 0x8003));
}

#[test]
fn segments_are_told_from_other_files_by_four_bytes() {
    assert!(tbf_format::sniff(&reference_segment()));
    for other in [&b"TBL\x02"[..], b"BLAT", b"TAL", b""] {
        assert!(!tbf_format::sniff(other));
    }
}
