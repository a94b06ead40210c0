//! What is written is what is read; what cannot be written is named.

#[cfg(feature = "std")]
use std::io::{self, Cursor, Seek, SeekFrom, Write};

use proptest::prelude::*;
use tbf_format::{
    BuildError, BuildOptions, Dtype, Flags, FormatError, Node, NodeColumns, Outcome, Region,
    Relation, Segment, SegmentBuilder, UnpackOptions,
};
#[cfg(feature = "std")]
use tbf_format::{SegmentWriteError, SegmentWriter};

use crate::data::{id, published_segment};
use crate::model::{KEY, models};

pub(crate) fn cases() -> ProptestConfig {
    let cases = if cfg!(miri) { 3 } else { 256 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_is_written_is_read(model in models(if cfg!(miri) { 20 } else { 60 })) {
        let encoded = model.build().unwrap();
        let file = encoded.to_bytes();
        prop_assert_eq!(file.len() as u64, encoded.byte_len());
        let mut segment = Segment::open(&file).unwrap();
        segment.unpack_all(&UnpackOptions { key: Some(&KEY), ..Default::default() }).unwrap();
        prop_assert_eq!(segment.verify(), Ok(vec![]));
        model.check(&segment);
    }
}

#[cfg(feature = "std")]
proptest! {
    #![proptest_config(cases())]

    #[test]
    fn vectors_can_go_out_as_they_come(model in models(if cfg!(miri) { 20 } else { 60 })) {
        let is_encrypted = model.options.encryption.is_some();
        match model.write() {
            Err(SegmentWriteError::Encryption) if is_encrypted => {}
            file => {
                let file = file.unwrap();
                let mut segment = Segment::open(&file).unwrap();
                segment.unpack_all(&UnpackOptions::default()).unwrap();
                prop_assert_eq!(segment.verify(), Ok(vec![]));
                model.check(&segment);
            }
        }
    }
}

/// More vectors than fit into a block, of a size that does not divide a block's.
#[cfg(feature = "std")]
#[test]
fn vectors_of_many_blocks_go_out_as_they_come() {
    let count = if cfg!(miri) { 3u8 } else { 200 };
    for compression in crate::model::compressions() {
        let options = BuildOptions { compression, ..options(3_000) };
        let mut writer = SegmentWriter::new(Cursor::new(Vec::new()), options.clone()).unwrap();
        let mut builder = SegmentBuilder::new(options);
        for row in 0..count {
            let vector: Vec<f32> = (0..3_000u16).map(|n| f32::from(n) * f32::from(row)).collect();
            writer.push(&node(row, Outcome::Failure), &vector).unwrap();
            builder.push(&node(row, Outcome::Failure), &vector).unwrap();
        }
        writer.push_edge(0, 1, Relation::Causal, 1.0);
        builder.push_edge(0, 1, Relation::Causal, 1.0);
        let written = writer.finish(|_| Ok(())).unwrap().into_inner();
        let built = builder.finish().unwrap().to_bytes();
        let [mut written, mut built] = [&written, &built].map(|file| Segment::open(file).unwrap());
        for segment in [&mut written, &mut built] {
            segment.unpack_all(&UnpackOptions::default()).unwrap();
            assert_eq!(segment.verify(), Ok(vec![]));
        }
        for region in [Region::Nodes, Region::Embeddings, Region::Edges, Region::Bloom] {
            let [written, built] = [&written, &built].map(|segment| segment.region(region));
            assert!(written == built, "{region} with {compression:?}");
        }
    }
}

#[cfg(feature = "std")]
#[test]
fn a_destination_that_fails_is_given_up() {
    struct Full(Cursor<Vec<u8>>);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.position() >= 128 { Ok(0) } else { self.0.write(bytes) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    impl Seek for Full {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }
    let mut writer = SegmentWriter::new(Full(Cursor::new(Vec::new())), options(100_000)).unwrap();
    let wrong = writer.push(&node(0, Outcome::Failure), &[0.0]).unwrap_err();
    assert!(matches!(wrong, SegmentWriteError::Build(BuildError::VectorLength { .. })));
    let vector = vec![0.0; 100_000];
    let full = writer.push(&node(0, Outcome::Failure), &vector).unwrap_err();
    assert!(matches!(full, SegmentWriteError::Io { .. }));
    let after = writer.push(&node(1, Outcome::Failure), &vector).unwrap_err();
    assert!(matches!(after, SegmentWriteError::Failed));
    assert!(matches!(writer.finish(|_| Ok(())), Err(SegmentWriteError::Failed)));
}

#[cfg(feature = "std")]
#[test]
fn a_draft_is_partial_until_it_is_completed() {
    let encoded = three_nodes(options(2)).finish().unwrap();
    let mut file = Vec::new();
    encoded.write_draft(&mut file).unwrap();
    assert_eq!(Segment::open(&file).unwrap_err(), FormatError::Partial);
    encoded.complete(Cursor::new(&mut file)).unwrap();
    assert_eq!(file, encoded.to_bytes());
}

fn node(row: u8, outcome: Outcome) -> Node<'static> {
    let row_64 = u64::from(row);
    Node {
        id: id(row),
        timestamp: 1000 + row_64,
        context_hash: 0xc0de + row_64,
        confidence: 0.25 * f32::from(row + 1),
        outcome,
        text: None,
    }
}

/// The segment that the tests lay out by hand.
fn three_nodes(options: BuildOptions) -> SegmentBuilder {
    let mut builder = SegmentBuilder::new(options);
    builder.push_edge(2, 0, Relation::Branch, 0.5);
    builder.push_edge(0, 1, Relation::Causal, 0.5);
    builder.push_edge(0, 2, Relation::Retry, 0.5);
    let outcomes = [Outcome::Success, Outcome::Pending, Outcome::Partial];
    for (row, outcome) in (0..).zip(outcomes) {
        builder.push(&node(row, outcome), &[f32::from(row), -1.5]).unwrap();
    }
    builder
}

fn options(dim: u32) -> BuildOptions {
    BuildOptions {
        segment_id: 77,
        created_at: 1_700_000_000_000_000_000,
        dim,
        ..BuildOptions::default()
    }
}

#[test]
fn regions_have_the_bytes_of_the_description() {
    let expected = published_segment();
    let written = three_nodes(options(2)).finish().unwrap().to_bytes();
    let bloom = Segment::open(&expected).unwrap().header().offset(Region::Bloom);
    let bloom = usize::try_from(bloom).unwrap();
    assert_eq!(written[..96], expected[..96]);
    assert_eq!(written[128..bloom], expected[128..bloom]);
}

#[test]
fn flags_say_what_is_there() {
    let flags = |builder: SegmentBuilder| builder.finish().unwrap().header().flags();
    assert_eq!(flags(three_nodes(options(2))), Flags::HAS_OUTCOMES | Flags::HAS_EMBEDDINGS);
    assert_eq!(flags(SegmentBuilder::new(options(2))), Flags::NONE);
    let mut pending = SegmentBuilder::new(BuildOptions {
        is_compacted: true,
        reverse: true,
        ..BuildOptions::default()
    });
    pending.push(&node(0, Outcome::Pending), &[]).unwrap();
    assert_eq!(flags(pending), Flags::IS_COMPACTED | Flags::HAS_REVERSE);
}

#[test]
fn columns_are_the_same_as_nodes_one_by_one() {
    let mut builder = SegmentBuilder::new(options(2));
    let columns = NodeColumns {
        ids: &[id(0), id(1), id(2)],
        timestamps: &[1000, 1001, 1002],
        context_hashes: &[0xc0de, 0xc0df, 0xc0e0],
        confidences: &[0.25, 0.5, 0.75],
        outcomes: &[Outcome::Success, Outcome::Pending, Outcome::Partial],
        vectors: &[0.0, -1.5, 1.0, -1.5, 2.0, -1.5],
    };
    builder.push_columns(&columns).unwrap();
    for (source, target, relation) in
        [(0, 1, Relation::Causal), (2, 0, Relation::Branch), (0, 2, Relation::Retry)]
    {
        builder.push_edge(source, target, relation, 0.5);
    }
    let expected = three_nodes(options(2)).finish().unwrap().to_bytes();
    assert_eq!(builder.finish().unwrap().to_bytes(), expected);

    let mut builder = SegmentBuilder::new(options(2));
    let short = NodeColumns { confidences: &[0.5], ..columns };
    let error = BuildError::ColumnLength { column: "confidence", expected: 3, found: 1 };
    assert_eq!(builder.push_columns(&short), Err(error));
    let short = NodeColumns { vectors: &[0.5], ..columns };
    let error = BuildError::ColumnLength { column: "components of vectors", expected: 6, found: 1 };
    assert_eq!(builder.push_columns(&short), Err(error));
    assert_eq!(builder.node_count(), 0);
}

#[test]
fn what_a_segment_cannot_hold_is_named() {
    let mut builder = three_nodes(options(2));
    let length = BuildError::VectorLength { row: 3, expected: 2, found: 3 };
    assert_eq!(builder.push(&node(3, Outcome::Pending), &[0.0; 3]), Err(length));
    assert_eq!(builder.node_count(), 3);
    builder.push_edge(1, 3, Relation::Causal, 1.0);
    let end = BuildError::EdgeEnd { edge: 3, source_row: 1, target_row: 3, node_count: 3 };
    assert_eq!(builder.finish().unwrap_err(), end);

    let mut builder = three_nodes(options(2));
    builder.push_edge(3, 0, Relation::Causal, 1.0);
    assert!(matches!(builder.finish(), Err(BuildError::EdgeEnd { source_row: 3, .. })));

    let mut builder = three_nodes(options(2));
    builder.push(&node(1, Outcome::Pending), &[0.0; 2]).unwrap();
    assert_eq!(builder.finish().unwrap_err(), BuildError::DuplicateId { first: 1, second: 3 });

    let int8 = BuildOptions { dtype: Dtype::Int8, ..options(2) };
    let mut builder = SegmentBuilder::new(int8);
    let error = builder.push(&node(0, Outcome::Pending), &[0.0, f32::INFINITY]).unwrap_err();
    assert!(matches!(error, BuildError::Component { row: 0, component: 1, .. }));
    builder.push(&node(0, Outcome::Pending), &[0.0, 1.0]).unwrap();
    let file = builder.finish().unwrap().to_bytes();
    assert_eq!(Segment::open(&file).unwrap().verify(), Ok(vec![]));
}

/// A segment with every region.
fn full_segment() -> Vec<u8> {
    let all = BuildOptions { index: true, reverse: true, dtype: Dtype::F16, ..options(2) };
    let mut builder = three_nodes(all);
    for row in 3..20 {
        let node = Node { text: Some("text"), ..node(row, Outcome::Failure) };
        builder.push(&node, &[0.5, 1.5]).unwrap();
    }
    builder.finish().unwrap().to_bytes()
}

#[test]
fn every_flipped_bit_of_a_segment_is_found() {
    let whole = full_segment();
    assert_eq!(Segment::open(&whole).unwrap().verify(), Ok(vec![]));
    for at in (0..whole.len()).step_by(if cfg!(miri) { 101 } else { 1 }) {
        for bit in 0..8 {
            let mut file = whole.clone();
            file[at] ^= 1 << bit;
            let found = Segment::open(&file).and_then(|segment| segment.verify());
            assert!(found.is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn no_prefix_of_a_segment_opens_and_none_with_more() {
    let mut file = full_segment();
    for have in 0..file.len() {
        assert!(Segment::open(&file[..have]).is_err(), "{have} bytes");
    }
    file.push(0);
    let error = Segment::open(&file).unwrap_err();
    assert!(matches!(error, FormatError::Truncated { region: Region::Footer, .. }), "{error}");
}
