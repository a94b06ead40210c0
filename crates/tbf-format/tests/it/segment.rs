//! Segments: views at every alignment, regions in impossible places, damage.

use tbf_format::{
    AlignedBytes, Column, Dialect, Dtype, FormatError, Oddity, OpenOptions, Outcome, Region,
    Relation, Segment, Vector,
};

use crate::data::{id, published_segment, put, reference_segment, seal};

/// Where a region of a file starts.
fn place(file: &[u8], region: Region) -> usize {
    usize::try_from(Segment::open(file).unwrap().header().offset(region)).unwrap()
}

#[test]
fn a_segment_reads_the_same_at_every_address() {
    let file = published_segment();
    for shift in 0..16 {
        let mut memory = AlignedBytes::zeroed(file.len() + shift);
        memory.as_mut_bytes()[shift..].copy_from_slice(&file);
        let segment = Segment::open(&memory.as_bytes()[shift..]).unwrap();
        check_contents(&segment);
        let lends = |aligned: bool| aligned && cfg!(target_endian = "little");
        let columns = segment.columns().unwrap();
        assert_eq!(
            columns.timestamps().as_slice().is_some(),
            lends(shift % align_of::<u64>() == 0)
        );
        assert_eq!(columns.confidences().as_slice().is_some(), lends(shift % 4 == 0));
        assert_eq!(columns.ids().as_slice().map(<[_]>::len), Some(3));
        let Some(Vector::F32(vector)) = segment.embeddings().unwrap().vector(2) else { panic!() };
        assert_eq!(vector.as_slice(), lends(shift % 4 == 0).then_some(&[2.0, -1.5][..]));
    }
}

fn check_contents(segment: &Segment<'_>) {
    assert_eq!((segment.node_count(), segment.edge_count()), (3, 3));
    assert_eq!(segment.header().segment_id(), 77);
    assert_eq!(segment.oddities().count(), 0);
    assert_eq!(segment.verify(), Ok(vec![]));
    let columns = segment.columns().unwrap();
    assert_eq!(columns.ids().iter().collect::<Vec<_>>(), [id(0), id(1), id(2)]);
    assert_eq!(columns.timestamps().iter().collect::<Vec<_>>(), [1000, 1001, 1002]);
    assert_eq!(columns.context_hashes().get(2), Some(0xc0e0));
    assert_eq!(columns.confidences().iter().collect::<Vec<_>>(), [0.25, 0.5, 0.75]);
    let outcomes: Vec<_> =
        columns.outcomes().iter().map(|&code| Outcome::from_code(code)).collect();
    assert_eq!(outcomes, [Outcome::Success, Outcome::Pending, Outcome::Partial]);
    let Some(Column::U64(timestamps)) = segment.column("timestamp").unwrap() else { panic!() };
    assert_eq!(timestamps.len(), 3);
    assert!(segment.column("embedding").unwrap().is_none());
    let embeddings = segment.embeddings().unwrap();
    assert_eq!((embeddings.len(), embeddings.dim(), embeddings.stride()), (3, 2, 64));
    assert_eq!(embeddings.dtype(), Dtype::F32);
    let mut components = [0.0; 2];
    embeddings.read_into(1, &mut components).unwrap();
    assert_eq!(components, [1.0, -1.5]);
    let edges = segment.edges(0).unwrap();
    let edges: Vec<_> = edges.iter().map(|e| (e.target(), e.relation(), e.weight())).collect();
    assert_eq!(edges, [(1, Relation::Causal, 0.5), (2, Relation::Retry, 0.5)]);
    assert_eq!(segment.edges(1).unwrap(), []);
    assert_eq!(segment.edges(3), Err(FormatError::NoRow { row: 3, node_count: 3 }));
    for row in 0..3 {
        assert_eq!(segment.find(&id(row)), Ok(Some(usize::from(row))));
    }
    assert_eq!(segment.find(&[0xff; 16]), Ok(None));
    let absent = |region| FormatError::Absent { region };
    assert_eq!(segment.strings().unwrap_err(), absent(Region::Strings));
    assert_eq!(segment.index().unwrap_err(), absent(Region::Index));
    assert_eq!(segment.incoming().unwrap_err(), absent(Region::Edges));
    assert!(segment.has(Region::Bloom) && !segment.has(Region::Footer));
}

#[test]
fn the_references_dialect_is_reported_and_its_flags_are_ignored() {
    let mut file = reference_segment();
    put(&mut file, 46, &[0xcf, 0xff]);
    let segment = Segment::open(&file).unwrap();
    assert_eq!(segment.dialect(), Dialect::Reference);
    let expected = [Oddity::ReferenceDialect, Oddity::NoHeaderChecksum];
    assert_eq!(segment.oddities().collect::<Vec<_>>(), expected);
    assert_eq!(segment.verify(), Ok(expected.to_vec()));
    assert_eq!(segment.embeddings().unwrap().len(), 3);
    let strict = OpenOptions { strict: true };
    assert!(Segment::open_with(&file, strict).is_ok());
}

#[test]
fn a_partial_segment_is_refused() {
    for mut file in [published_segment(), reference_segment()] {
        file[46] |= 1 << 4;
        seal(&mut file);
        assert_eq!(Segment::open(&file).unwrap_err(), FormatError::Partial);
    }
}

#[test]
fn edges_that_are_not_stored_are_reported_or_refused() {
    let mut file = reference_segment();
    put(&mut file, 32, &4u64.to_le_bytes());
    let segment = Segment::open(&file).unwrap();
    assert_eq!(segment.edge_count(), 3);
    let odd = Oddity::EdgeCount { stated: 4, stored: 3 };
    assert!(segment.oddities().any(|found| found == odd));
    let contradiction = FormatError::Contradiction { what: "edge_count", stated: 4, found: 3 };
    let strict = Segment::open_with(&file, OpenOptions { strict: true });
    assert_eq!(strict.unwrap_err(), contradiction);
    put(&mut file, 4, &[1, 0, 0, 0, 0]);
    put(&mut file, 46, &[2, 0]);
    seal(&mut file);
    assert_eq!(Segment::open(&file).unwrap_err(), contradiction);
}

#[test]
fn an_edge_to_nowhere_is_reported_or_refused() {
    let mut file = reference_segment();
    let first_edge = place(&file, Region::Edges) + 32;
    put(&mut file, first_edge, &77u32.to_le_bytes());
    let segment = Segment::open(&file).unwrap();
    assert_eq!(segment.edges(0).unwrap()[0].target(), 77);
    let odd = Oddity::EdgeTargets { count: 1, edge: 0, target: 77 };
    assert!(segment.verify().unwrap().contains(&odd));
    let nowhere = FormatError::EdgeTarget { edge: 0, target: 77, node_count: 3 };
    let strict = Segment::open_with(&file, OpenOptions { strict: true }).unwrap();
    assert_eq!(strict.verify(), Err(nowhere));
}

/// Changes a field of the published segment's header and opens the result.
fn open_changed(at: usize, bytes: &[u8]) -> Result<(), FormatError> {
    let mut file = published_segment();
    put(&mut file, at, bytes);
    seal(&mut file);
    Segment::open(&file).map(|_| ())
}

#[test]
fn regions_in_impossible_places_are_refused() {
    let length = published_segment().len() as u64;
    let places = [(48, Region::Nodes), (56, Region::Embeddings), (64, Region::Edges)];
    for (at, region) in places.into_iter().chain([(80, Region::Bloom)]) {
        let open = |offset: u64| open_changed(at, &offset.to_le_bytes()).unwrap_err();
        assert_eq!(open(129), FormatError::Misaligned { region, offset: 129 });
        assert!(matches!(open(64), FormatError::Overlap { first: Region::Header, .. }));
        for offset in [length.next_multiple_of(64), 1 << 40, u64::MAX - 63] {
            let error = open(offset);
            let found = matches!(error, FormatError::BeyondEnd { region: r, .. } if r == region);
            assert!(found, "{region} at {offset}: {error}");
        }
    }
    for (at, region) in [(48, Region::Nodes), (64, Region::Edges)] {
        assert_eq!(open_changed(at, &[0; 8]), Err(FormatError::Absent { region }));
    }
    assert_eq!(open_changed(80, &[0; 8]), Ok(()));
    assert!(matches!(open_changed(56, &[192, 0]), Err(FormatError::Overlap { .. })));
    // Strings and an index are defined by the footer's version.
    for at in [72, 88] {
        let absent = FormatError::Absent { region: Region::Footer };
        assert_eq!(open_changed(at, &[128, 0]), Err(absent));
    }
}

#[test]
fn counts_that_no_segment_has_are_refused() {
    for count in [4u64, 1 << 31, u32::MAX.into(), 1 << 60, u64::MAX] {
        let error = open_changed(24, &count.to_le_bytes()).unwrap_err();
        let refused = matches!(
            error,
            FormatError::TooMany { .. }
                | FormatError::Truncated { .. }
                | FormatError::BeyondEnd { .. }
                | FormatError::Overlap { .. }
        );
        assert!(refused, "{count}: {error}");
    }
    assert!(open_changed(40, &u32::MAX.to_le_bytes()).is_err());
    let no_vectors =
        FormatError::Contradiction { what: "presence of embeddings", stated: 1, found: 0 };
    assert_eq!(open_changed(40, &[0; 4]), Err(no_vectors));
}

#[test]
fn no_prefix_of_a_segment_opens() {
    for file in [published_segment(), reference_segment()] {
        for have in 0..file.len() {
            assert!(Segment::open(&file[..have]).is_err(), "{have} bytes");
        }
    }
}

/// Whatever the bytes are, reading ends with a value or an error.
#[test]
fn every_changed_byte_is_survived() {
    for file in [published_segment(), reference_segment()] {
        let step = if cfg!(miri) { 37 } else { 1 };
        for at in (0..file.len()).step_by(step) {
            for change in [1, 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[at] ^= change;
                if at < 104 && damaged[4] == 1 {
                    seal(&mut damaged);
                }
                let Ok(segment) = Segment::open(&damaged) else { continue };
                drop(segment.verify());
                for row in 0..4u8 {
                    drop(segment.edges(row.into()).map(<[_]>::len));
                    drop(segment.find(&id(row)));
                    drop(segment.embeddings().map(|all| all.vector(row.into()).is_some()));
                }
            }
        }
    }
}

#[test]
fn padding_that_is_not_zero_is_found_by_verification() {
    let file = published_segment();
    let place = |region| place(&file, region);
    let nodes = place(Region::Nodes);
    let cases = [
        (nodes + 48, Region::Nodes, 48),
        (nodes + 63, Region::Nodes, 63),
        (nodes + 4 * 64 + 3, Region::Nodes, 4 * 64 + 3),
        (place(Region::Embeddings) + 72, Region::Embeddings, 72),
        (place(Region::Bloom) - 1, Region::Edges, 127),
    ];
    for (at, region, offset) in cases {
        let mut damaged = file.clone();
        damaged[at] = 1;
        let found = Segment::open(&damaged).unwrap().verify();
        assert_eq!(found, Err(FormatError::NotZero { region, offset }), "byte {at}");
    }
}

#[test]
fn a_node_that_the_filter_denies_is_found_by_verification() {
    let mut file = published_segment();
    let bloom = place(&file, Region::Bloom);
    put(&mut file, bloom + 12, &[0; 8]);
    let segment = Segment::open(&file).unwrap();
    assert_eq!(segment.find(&id(0)), Ok(None));
    assert_eq!(segment.verify(), Err(FormatError::NotInBloom { row: 0 }));
}

#[test]
fn trailing_bytes_are_reported() {
    let mut file = published_segment();
    file.extend([1; 5]);
    let odd = Oddity::TrailingBytes { bytes: 5 };
    assert_eq!(Segment::open(&file).unwrap().verify(), Ok(vec![odd]));
}
