//! Metadata blocks.

use tbl_format::FormatError;
use tbl_format::metadata::{Block, BlockHeader, Blocks, MetadataType};

fn section() -> Vec<u8> {
    let mut section = Vec::new();
    for (sample, kind, data) in [
        (7, MetadataType::Json, &b"{}"[..]),
        (0, MetadataType::Other(9), b""),
        (BlockHeader::WHOLE_FILE, MetadataType::Custom, b"abc"),
    ] {
        let header = BlockHeader::new(sample, kind, data.len() as u64).unwrap();
        section.extend(header.to_bytes());
        section.extend(data);
    }
    section
}

#[test]
fn blocks_come_in_stored_order_with_their_offsets() {
    let section = section();
    let blocks: Vec<Block<'_>> = Blocks::new(&section).map(Result::unwrap).collect();
    let found: Vec<_> = blocks.iter().map(|b| (b.offset, b.sample_index, b.data)).collect();
    assert_eq!(found, [(0, 7, &b"{}"[..]), (18, 0, b""), (34, u64::MAX, b"abc")]);
    assert_eq!(blocks[1].kind, MetadataType::Other(9));
}

#[test]
fn every_truncation_inside_a_block_is_an_error_and_the_last_item() {
    let section = section();
    for len in 0..section.len() {
        let results: Vec<_> = Blocks::new(&section[..len]).collect();
        let whole = [0, 18, 34].contains(&len);
        assert_eq!(results.last().is_some_and(Result::is_err), !whole, "cut to {len}");
        assert!(results.iter().rev().skip(1).all(Result::is_ok));
    }
}

#[test]
fn a_size_beyond_the_section_is_an_error_with_both_numbers() {
    let mut section = section();
    section[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let have = section.len() as u64;
    let need = 16 + u64::from(u32::MAX);
    let expected = FormatError::Truncated { what: "metadata block", need, have };
    assert_eq!(Blocks::new(&section).collect::<Vec<_>>(), [Err(expected)]);
}

#[test]
fn data_beyond_32_bits_is_refused() {
    let bytes = u64::from(u32::MAX) + 1;
    let limit = u64::from(u32::MAX);
    let error = BlockHeader::new(0, MetadataType::Json, bytes).unwrap_err();
    assert_eq!(error, FormatError::TooLarge { what: "metadata block", bytes, limit });
}

#[test]
fn every_type_code_survives_the_round_trip() {
    for code in 0..=300 {
        assert_eq!(MetadataType::from_code(code).code(), code);
    }
}

#[test]
fn every_type_has_a_name_that_says_which_it_is() {
    for code in 0..=300 {
        let kind = MetadataType::from_code(code);
        assert_eq!(MetadataType::from_name(&kind.to_string()), Some(kind));
    }
    let named = [0, 1, 2, 3, 255, 7].map(|code| MetadataType::from_code(code).to_string());
    assert_eq!(named, ["none", "json", "protobuf", "msgpack", "custom", "type_7"]);
    assert_eq!(MetadataType::from_name("JSON"), None);
    assert_eq!(MetadataType::from_name("type_70000"), None);
}
