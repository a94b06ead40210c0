//! The block of row indexes.

use tbl_format::FormatError;
use tbl_format::checksum::crc32c;
use tbl_format::extension::{
    Extension, ExtensionHeader, ExtensionKind, RowIndexTableBuilder, RowIndexes,
};

/// CRC-32C of the samples that the row indexes of [`body`] belong to.
const SAMPLE_CRC32C: [u32; 4] = [0x1111_1111, 0x2222_2222, 0x3333_3333, 0x4444_4444];

/// Samples 7 to 10, of which 8 and 10 have no row index.
fn body() -> Vec<u8> {
    let mut table = RowIndexTableBuilder::new();
    for (row_index, crc32c) in [&b"first"[..], b"", b"ten bytes!", b""].iter().zip(SAMPLE_CRC32C) {
        table.push(row_index, crc32c).unwrap();
    }
    assert_eq!((table.len(), table.row_index_bytes()), (4, 15));
    table.body(7).unwrap()
}

fn payload(body: &[u8]) -> Vec<u8> {
    let mut payload = ExtensionHeader::new(ExtensionKind::RowIndexes, body).to_bytes().to_vec();
    payload.extend(body);
    payload
}

/// Parses a payload and passes the table on.
fn with_table<T>(body: &[u8], take: impl FnOnce(RowIndexes<'_>) -> T) -> T {
    let payload = payload(body);
    let Some(Extension::RowIndexes(table)) = Extension::parse(&payload).unwrap() else {
        panic!("no row indexes")
    };
    take(table)
}

#[test]
fn the_bytes_are_where_the_format_has_them() {
    let first = crc32c(&[&[0x11; 4][..], b"first"].concat()).to_le_bytes();
    let third = crc32c(&[&[0x33; 4][..], b"ten bytes!"].concat()).to_le_bytes();
    let expected = [
        &[7, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0][..],
        &[5, 0, 0, 0],
        &first,
        &[5, 0, 0, 0, 0, 0, 0, 0],
        &[15, 0, 0, 0],
        &third,
        &[15, 0, 0, 0, 0, 0, 0, 0],
        b"firstten bytes!",
    ];
    assert_eq!(body(), expected.concat());
    assert_eq!(payload(&body())[..8], *b"TBLX\x01\0\x06\0");
}

#[test]
fn a_row_index_is_found_by_its_sample() {
    with_table(&body(), |table| {
        assert_eq!((table.first_sample(), table.len(), table.count()), (7, 4, Ok(2)));
        let expected = [None, Some(&b"first"[..]), None, Some(b"ten bytes!"), None, None];
        for (sample, expected) in (6..).zip(expected) {
            let position = usize::try_from(sample - 6).unwrap().saturating_sub(1);
            let crc32c = SAMPLE_CRC32C.get(position).copied().unwrap_or(0);
            assert_eq!(table.row_index(sample, crc32c), Ok(expected), "sample {sample}");
        }
    });
}

#[test]
fn the_row_index_of_another_sample_is_refused() {
    with_table(&body(), |table| {
        let error = table.row_index(7, SAMPLE_CRC32C[1]).unwrap_err();
        let stored = crc32c(&[&[0x11; 4][..], b"first"].concat());
        let computed = crc32c(&[&[0x22; 4][..], b"first"].concat());
        assert_eq!(error, FormatError::Crc32c { what: "row index", stored, computed });
    });
}

#[test]
fn ends_before_starts_and_outside_are_refused() {
    // The end of sample 8's entry, which was 5 of 15.
    for (end, sample, start) in [(4_u32, 8, 5), (16, 8, 5), (u32::MAX, 8, 5), (16, 9, 16)] {
        let mut body = body();
        body[24..28].copy_from_slice(&end.to_le_bytes());
        let end = if sample == 8 { end } else { 15 };
        with_table(&body, |table| {
            let error = FormatError::RowIndexExtent { sample, start, end, limit: 15 };
            assert_eq!(table.row_index(sample, 0), Err(error));
            assert!(table.count().is_err());
        });
    }
}

#[test]
fn a_row_index_beyond_the_largest_is_refused() {
    let (bytes, limit) = (RowIndexes::MAX_ROW_INDEX_BYTES + 1, RowIndexes::MAX_ROW_INDEX_BYTES);
    let error =
        FormatError::TooLarge { what: "row index", bytes: bytes as u64, limit: limit as u64 };
    let mut table = RowIndexTableBuilder::new();
    assert_eq!(table.push(&vec![0; bytes], 0), Err(error.clone()));
    assert!(table.is_empty());
    table.push(&vec![0; limit], 9).unwrap();
    let mut body = table.body(0).unwrap();
    with_table(&body, |table| assert_eq!(table.row_index(0, 9).unwrap().unwrap().len(), limit));
    body[16..20].copy_from_slice(&u32::try_from(bytes).unwrap().to_le_bytes());
    body.push(0);
    with_table(&body, |table| assert_eq!(table.row_index(0, 9), Err(error)));
}

#[test]
fn every_truncation_and_flipped_bit_ends_with_an_answer() {
    let whole = body();
    for len in 0..whole.len() {
        let payload = payload(&whole[..len]);
        let parsed = Extension::parse(&payload);
        // Head and table are 48 bytes; a later cut removes bytes of a row index.
        assert_eq!(parsed.is_err(), len < 48, "cut to {len}");
        if let Ok(Some(Extension::RowIndexes(table))) = parsed {
            assert!(table.row_index(9, SAMPLE_CRC32C[2]).is_err(), "cut to {len}");
        }
    }
    for bit in 0..whole.len() * 8 {
        let mut body = whole.clone();
        body[bit / 8] ^= 1 << (bit % 8);
        let payload = payload(&body);
        let Ok(Some(Extension::RowIndexes(table))) = Extension::parse(&payload) else { continue };
        for (sample, crc32c) in (7..).zip(SAMPLE_CRC32C) {
            let expected = [Some(&b"first"[..]), None, Some(b"ten bytes!"), None];
            if let Ok(Some(found)) = table.row_index(sample, crc32c) {
                let position = usize::try_from(sample - 7).unwrap();
                assert_eq!(Some(found), expected[position], "bit {bit}");
            }
        }
    }
}
