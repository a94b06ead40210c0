//! A segment as plain vectors: what writing and reading have to preserve.

#[cfg(feature = "std")]
use std::io::Cursor;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tbf_format::{
    BuildError, BuildOptions, Compression, Dtype, EncodedSegment, Encryption, Key, Node, Outcome,
    Relation, Segment, SegmentBuilder,
};
#[cfg(feature = "std")]
use tbf_format::{FormatError, SegmentWriteError, SegmentWriter};

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) options: BuildOptions,
    pub(crate) nodes: Vec<(Node<'static>, Vec<f32>)>,
    /// Source, target, relation, weight.
    pub(crate) edges: Vec<(u32, u32, u8, f32)>,
}

/// The compressions of this build.
pub(crate) fn compressions() -> Vec<Compression> {
    let mut all = vec![Compression::None];
    all.extend(cfg!(feature = "lz4").then_some(Compression::Lz4));
    all.extend(cfg!(feature = "zstd").then_some(Compression::Zstd));
    all
}

/// Whether this build can encrypt: either both or only no.
fn encryptions() -> &'static [bool] {
    if cfg!(feature = "encryption") { &[false, true] } else { &[false] }
}

pub(crate) const KEY: Key = Key::new([0x42; 32]);

pub(crate) const ENCRYPTION: Encryption =
    Encryption { key: KEY, key_id: *b"key of the tests", nonce: [7; 11] };

const TEXTS: [&str; 4] = ["", "ls -l", "größer", "\u{1d11e}"];

/// Any segment of up to `most` nodes.
pub(crate) fn models(most: usize) -> impl Strategy<Value = Model> {
    let dtypes =
        prop_oneof![Just(Dtype::F32), Just(Dtype::F16), Just(Dtype::Bf16), Just(Dtype::Int8)];
    let packing = (select(compressions()), select(encryptions()));
    let options = (any::<[u64; 2]>(), 0..70u32, dtypes, any::<[bool; 3]>(), packing);
    let drawn = (any::<u64>(), 0..5u64, any::<u64>(), any::<u32>(), 0..6u8, 0..TEXTS.len());
    let nodes = vec((drawn, vec(-1000.0..1000.0f32, 70)), 0..=most);
    let edges = vec((any::<u32>(), any::<u32>(), any::<u8>(), any::<u32>()), 0..=2 * most);
    (options, nodes, edges, any::<bool>()).prop_map(|(options, nodes, edges, has_texts)| {
        let ([segment_id, created_at], dim, dtype, [is_compacted, index, reverse], packing) =
            options;
        let (compression, is_encrypted) = packing;
        let options = BuildOptions {
            segment_id,
            created_at,
            dim,
            dtype,
            is_compacted,
            index,
            reverse,
            compression,
            encryption: is_encrypted.then_some(ENCRYPTION),
        };
        let count = u32::try_from(nodes.len()).unwrap();
        let edges = edges.into_iter().filter(|_| count > 0);
        Model {
            options,
            nodes: (0..)
                .zip(nodes)
                .map(|(row, (drawn, vector))| {
                    (node(row, drawn, has_texts), vector[..dim as usize].to_vec())
                })
                .collect(),
            edges: edges
                .map(|(source, target, relation, weight)| {
                    (source % count, target % count, relation, f32::from_bits(weight))
                })
                .collect(),
        }
    })
}

/// Id, timestamp, context hash, confidence, outcome and text.
type Drawn = (u64, u64, u64, u32, u8, usize);

/// A node of its row's own id.
fn node(row: u64, drawn: Drawn, has_texts: bool) -> Node<'static> {
    let (id, timestamp, context_hash, confidence, outcome, text) = drawn;
    Node {
        id: (u128::from(id) << 64 | u128::from(row)).to_be_bytes(),
        timestamp,
        context_hash,
        confidence: f32::from_bits(confidence),
        outcome: Outcome::from_code(outcome),
        text: has_texts.then_some(TEXTS[text]),
    }
}

impl Model {
    pub(crate) fn build(&self) -> Result<EncodedSegment, BuildError> {
        let mut builder = SegmentBuilder::new(self.options.clone());
        // Edges may come before their nodes.
        for &(source, target, relation, weight) in &self.edges {
            builder.push_edge(source, target, Relation::from_code(relation), weight);
        }
        for (row, (node, vector)) in self.nodes.iter().enumerate() {
            assert_eq!(builder.push(node, vector)?, u32::try_from(row).unwrap());
        }
        builder.finish()
    }

    /// The same, written vector by vector after other bytes.
    #[cfg(feature = "std")]
    pub(crate) fn write(&self) -> Result<Vec<u8>, SegmentWriteError> {
        let mut sink = Cursor::new(b"before".to_vec());
        sink.set_position(6);
        let mut writer = SegmentWriter::new(sink, self.options.clone())?;
        for &(source, target, relation, weight) in &self.edges {
            writer.push_edge(source, target, Relation::from_code(relation), weight);
        }
        for (node, vector) in &self.nodes {
            writer.push(node, vector)?;
        }
        let sink = writer.finish(|sink| {
            assert_eq!(Segment::open(&sink.get_ref()[6..]).unwrap_err(), FormatError::Partial);
            Ok(())
        })?;
        assert_eq!(sink.position(), sink.get_ref().len() as u64);
        Ok(sink.into_inner().split_off(6))
    }

    /// Asserts that `segment` holds the model.
    pub(crate) fn check(&self, segment: &Segment<'_>) {
        let header = segment.header();
        assert_eq!(header.segment_id(), self.options.segment_id);
        assert_eq!(header.created_at(), self.options.created_at);
        assert_eq!(segment.node_count(), self.nodes.len() as u64);
        assert_eq!(segment.edge_count(), self.edges.len() as u64);
        self.check_columns(segment);
        self.check_vectors(segment);
        self.check_edges(segment);
        self.check_index(segment);
        if self.nodes.iter().any(|(node, _)| node.text.is_some()) {
            let strings = segment.strings().unwrap();
            for (row, (node, _)) in self.nodes.iter().enumerate() {
                assert_eq!(strings.row(row).unwrap(), node.text.unwrap_or_default());
            }
        }
    }

    fn check_columns(&self, segment: &Segment<'_>) {
        let columns = segment.columns().unwrap();
        let nodes = || self.nodes.iter().map(|(node, _)| node);
        assert!(columns.ids().iter().eq(nodes().map(|node| node.id)));
        assert!(columns.timestamps().iter().eq(nodes().map(|node| node.timestamp)));
        assert!(columns.context_hashes().iter().eq(nodes().map(|node| node.context_hash)));
        let confidences = columns.confidences().iter().map(f32::to_bits);
        assert!(confidences.eq(nodes().map(|node| node.confidence.to_bits())));
        let outcomes = columns.outcomes().iter().map(|&code| Outcome::from_code(code));
        assert!(outcomes.eq(nodes().map(|node| node.outcome)));
    }

    /// Every component is as near as its type allows.
    fn check_vectors(&self, segment: &Segment<'_>) {
        if self.nodes.is_empty() || self.options.dim == 0 {
            assert!(segment.embeddings().is_err());
            return;
        }
        let embeddings = segment.embeddings().unwrap();
        let mut components = vec![0.0; embeddings.dim()];
        for (row, (_, vector)) in self.nodes.iter().enumerate() {
            embeddings.read_into(row, &mut components).unwrap();
            let largest = vector.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
            for (found, expected) in components.iter().zip(vector) {
                let tolerance = match self.options.dtype {
                    Dtype::F32 => 0.0,
                    Dtype::F16 => expected.abs() / 2048.0 + 3e-8,
                    Dtype::Bf16 => expected.abs() / 256.0,
                    Dtype::Int8 => largest / 127.0 * 0.501,
                    other => panic!("{other:?}"),
                };
                assert!((found - expected).abs() <= tolerance, "{found} for {expected}");
            }
        }
    }

    fn check_edges(&self, segment: &Segment<'_>) {
        let plain = |edge: &tbf_format::Edge| {
            (edge.target(), edge.relation().code(), edge.weight().to_bits())
        };
        for row in 0..u32::try_from(self.nodes.len()).unwrap() {
            let from_here = self.edges.iter().filter(|edge| edge.0 == row);
            let expected: Vec<_> = from_here.map(|e| (e.1, e.2, e.3.to_bits())).collect();
            let found: Vec<_> = segment.edges(row as usize).unwrap().iter().map(plain).collect();
            assert_eq!(found, expected, "row {row}");
            if self.options.reverse {
                let to_here = self.edges.iter().filter(|edge| edge.1 == row);
                let mut expected: Vec<_> = to_here.map(|e| (e.0, e.2, e.3.to_bits())).collect();
                expected.sort_by_key(|edge| edge.0);
                let incoming = segment.incoming().unwrap();
                let found: Vec<_> = incoming.row(row as usize).unwrap().iter().map(plain).collect();
                assert_eq!(found, expected, "to row {row}");
            }
        }
    }

    fn check_index(&self, segment: &Segment<'_>) {
        for (row, (node, _)) in self.nodes.iter().enumerate() {
            assert_eq!(segment.find(&node.id), Ok(Some(row)));
            let mut other = node.id;
            other[15] ^= 0x80;
            assert_eq!(segment.find(&other), Ok(None));
        }
        if !self.options.index {
            return;
        }
        let index = segment.index().unwrap();
        for (start, end) in [(0, 5), (1, 3), (4, 4), (3, 1), (2, u64::MAX)] {
            let places = index.timestamps().range(start..end);
            let found: Vec<u32> = index.timestamps().rows_at(places).collect();
            let mut expected: Vec<u32> = (0..)
                .zip(&self.nodes)
                .filter(|(_, (node, _))| (start..end).contains(&node.timestamp))
                .map(|(row, _)| row)
                .collect();
            expected.sort_by_key(|&row| self.nodes[row as usize].0.timestamp);
            assert_eq!(found, expected, "{start}..{end}");
        }
    }
}
