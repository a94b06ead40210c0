//! Extension payloads.

use tbl_format::FormatError;
use tbl_format::extension::{
    Extension, ExtensionHeader, ExtensionKind, Field, Integrity, NO_LABEL, NameTableBuilder,
};

fn payload(kind: ExtensionKind, body: &[u8]) -> Vec<u8> {
    let mut payload = ExtensionHeader::new(kind, body).to_bytes().to_vec();
    payload.extend(body);
    payload
}

fn names() -> NameTableBuilder {
    let mut names = NameTableBuilder::new();
    for name in [&b"first"[..], b"", b"\xff\x01third"] {
        names.push(name).unwrap();
    }
    names
}

#[test]
fn the_header_is_where_the_format_has_it() {
    let payload = payload(ExtensionKind::Field, b"\x02\0abX");
    assert_eq!(payload[..8], *b"TBLX\x01\0\x10\0");
    let mut zeroed = payload.clone();
    zeroed[8..12].fill(0);
    assert_eq!(payload[8..12], tbl_format::checksum::crc32c(&zeroed).to_le_bytes());
    assert_eq!(payload[12..16], [0; 4]);
}

#[test]
fn sample_names_are_found_by_number() {
    let payload = payload(ExtensionKind::SampleNames, &names().sample_names_body(1 << 40).unwrap());
    let Some(Extension::SampleNames(found)) = Extension::parse(&payload).unwrap() else {
        panic!("not sample names")
    };
    assert_eq!((found.first_sample(), found.len()), (1 << 40, 3));
    let name = |index: u64| found.name(index).unwrap();
    assert_eq!(name((1 << 40) - 1), None);
    assert_eq!(name(1 << 40), Some(&b"first"[..]));
    assert_eq!(name((1 << 40) + 1), Some(&b""[..]));
    assert_eq!(name((1 << 40) + 2), Some(&b"\xff\x01third"[..]));
    assert_eq!(name((1 << 40) + 3), None);
}

#[test]
fn class_names_must_be_utf_8() {
    let parse = |names: &NameTableBuilder| {
        let payload = payload(ExtensionKind::ClassNames, &names.class_names_body().unwrap());
        match Extension::parse(&payload) {
            Ok(Some(Extension::ClassNames(names))) => Ok(names.to_vec()),
            Err(error) => Err(error),
            Ok(_) => panic!("not class names"),
        }
    };
    assert_eq!(parse(&names()), Err(FormatError::ClassNameUtf8 { index: 2 }));
    let mut names = NameTableBuilder::new();
    names.push("Käse".as_bytes()).unwrap();
    names.push(b"").unwrap();
    assert_eq!(parse(&names).unwrap(), ["Käse", ""]);
}

#[test]
fn names_that_end_before_they_start_or_outside_are_refused() {
    let mut body = names().sample_names_body(0).unwrap();
    // The ends are 5, 5, 12; the second becomes 13, outside, and then 2, before its start.
    for (end, index, start) in [(13, 1, 5), (2, 1, 5), (2, 2, 2)] {
        body[20..24].copy_from_slice(&u32::to_le_bytes(end));
        let payload = payload(ExtensionKind::SampleNames, &body);
        let Some(Extension::SampleNames(found)) = Extension::parse(&payload).unwrap() else {
            panic!("not sample names")
        };
        match found.name(index) {
            Ok(name) => assert_eq!((index, name.unwrap().len()), (2, 10)),
            Err(error) => {
                assert_eq!(error, FormatError::NameExtent { index, start, end, limit: 12 });
            }
        }
    }
}

#[test]
fn lists_hold_one_element_per_sample() {
    let labels: Vec<u8> = [5, NO_LABEL, -1].iter().flat_map(|label| label.to_le_bytes()).collect();
    let labels = payload(ExtensionKind::Labels, &labels);
    let Some(Extension::Labels(list)) = Extension::parse(&labels).unwrap() else {
        panic!("not labels")
    };
    let found: Vec<_> = (0..4).map(|index| list.label(index)).collect();
    assert_eq!((list.len(), found), (3, vec![Some(5), None, Some(-1), None]));

    let checksums = payload(ExtensionKind::Checksums, &[1, 0, 0, 0, 0, 0, 0, 1]);
    let Some(Extension::Checksums(list)) = Extension::parse(&checksums).unwrap() else {
        panic!("not checksums")
    };
    assert_eq!([list.crc32c(0), list.crc32c(1), list.crc32c(2)], [Some(1), Some(1 << 24), None]);

    let odd = Extension::parse(&checksums[..23]).unwrap_err();
    assert_eq!(odd, FormatError::Truncated { what: "checksum list", need: 8, have: 7 });
}

#[test]
fn integrity_and_fields_survive_the_round_trip() {
    let integrity = Integrity { index: 1, metadata: 2, metadata_bytes: 3 << 33 };
    let bytes = payload(ExtensionKind::Integrity, &integrity.to_bytes());
    let Some(Extension::Integrity(found)) = Extension::parse(&bytes).unwrap() else {
        panic!("no integrity block")
    };
    assert_eq!(found, integrity);

    let field = Field { extension: b"seg.png", bytes: &[0, 1, 255] };
    let mut body = Vec::new();
    field.write_body(&mut body).unwrap();
    let bytes = payload(ExtensionKind::Field, &body);
    let Some(Extension::Field(found)) = Extension::parse(&bytes).unwrap() else {
        panic!("no field")
    };
    assert_eq!(found, field);
    let extension = &[b'x'; 65_536];
    let error = Field { extension, bytes: b"" }.write_body(&mut body).unwrap_err();
    let (bytes, limit) = (65_536, 65_535);
    assert_eq!(error, FormatError::TooLarge { what: "field extension", bytes, limit });
}

#[test]
fn names_that_leave_their_folder_are_refused() {
    let mut names = NameTableBuilder::new();
    for name in [&b"a.jpg"[..], b"../a.jpg", b"/a.jpg", b"a\0"] {
        names.push(name).unwrap();
    }
    let payload_of_names =
        payload(ExtensionKind::SampleNames, &names.sample_names_body(0).unwrap());
    let Some(Extension::SampleNames(found)) = Extension::parse(&payload_of_names).unwrap() else {
        panic!("not sample names")
    };
    assert_eq!(found.name(0), Ok(Some(&b"a.jpg"[..])));
    for index in 1..4 {
        let name = found.name(index);
        assert!(matches!(name, Err(FormatError::UnsafeName { what: "sample name", .. })));
    }
    for body in [&b"\x0b\0/../../evil"[..], b"\x02\0a\0"] {
        let field = Extension::parse(&payload(ExtensionKind::Field, body)).map(drop);
        assert!(matches!(field, Err(FormatError::UnsafeName { what: "field extension", .. })));
        let (_, extension) = body.split_at(2);
        let written = Field { extension, bytes: b"" }.write_body(&mut Vec::new());
        assert_eq!(written, field);
    }
}

#[test]
fn payloads_of_others_and_of_later_versions_are_skipped() {
    for data in [&b""[..], b"TBLX", b"some other CUSTOM data", &[0; 40]] {
        assert!(Extension::parse(data).unwrap().is_none());
        assert_eq!(Extension::verify(data), Ok(()));
    }
    let mut later = payload(ExtensionKind::Labels, &[0; 8]);
    later[4] = 2;
    assert!(Extension::parse(&later).unwrap().is_none());
    let mut unknown = payload(ExtensionKind::Labels, &[0; 8]);
    unknown[6] = 8;
    assert!(Extension::parse(&unknown).unwrap().is_none());
}

#[test]
fn every_flipped_bit_and_truncation_is_found_or_makes_the_payload_another_ones() {
    let whole = payload(ExtensionKind::SampleNames, &names().sample_names_body(4).unwrap());
    assert_eq!(Extension::verify(&whole), Ok(()));
    for bit in 0..whole.len() * 8 {
        let mut payload = whole.clone();
        payload[bit / 8] ^= 1 << (bit % 8);
        let is_ours = bit / 8 >= 6;
        assert_eq!(Extension::verify(&payload).is_err(), is_ours, "bit {bit}");
        // Whatever it says now, reading it does not panic.
        if let Ok(Some(Extension::SampleNames(names))) = Extension::parse(&payload) {
            assert!((0..9).all(|index| names.name(index).is_ok() || is_ours));
        }
    }
    for len in 16..whole.len() {
        assert!(Extension::verify(&whole[..len]).is_err(), "cut to {len}");
    }
}
