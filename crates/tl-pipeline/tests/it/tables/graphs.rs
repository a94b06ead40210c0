//! Segments: vectors of every type, and neighbours that are drawn.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tbf_format::{
    BuildOptions, Compression, Dtype, Encryption, Key, Node, Outcome, Relation, SegmentBuilder,
    UnpackOptions,
};
use tl_pipeline::{
    Batch, ColumnRequest, ColumnType, Columns, ColumnsError, Dataset, Direction, Loader,
    LoaderConfig, Neighbors, PipelineError, TableSource, TbfTable, Work,
};

use super::files::{columns_of, loader_with, targets, vector, write_tbf};
use crate::memory::config;

const NODES: u32 = 30;

fn neighbors(fanouts: &[u32], columns: Vec<ColumnRequest>) -> Columns {
    let neighbors = Neighbors { fanouts: fanouts.to_vec(), columns, ..Neighbors::default() };
    let neighbors = Some(neighbors);
    Columns { neighbors, ..Columns::default() }
}

fn numbers(batch: &Batch, name: &str) -> Vec<i64> {
    batch.column_named(name).unwrap().numbers::<i64>().unwrap().to_vec()
}

#[test]
fn vectors_of_every_type_come_as_stored_and_as_floats() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tbf");
    for (dtype, expected) in [
        (Dtype::F32, ColumnType::F32),
        (Dtype::F16, ColumnType::F16),
        (Dtype::Bf16, ColumnType::Bf16),
        (Dtype::Int8, ColumnType::I8),
    ] {
        for compression in [Compression::None, Compression::Zstd] {
            write_tbf(&path, NODES, BuildOptions { dtype, compression, ..BuildOptions::default() });
            let stored = columns_of(&[&path], Columns::default());
            for batch in stored.epoch(0) {
                let batch = batch.unwrap();
                let embedding = batch.column_named("embedding").unwrap();
                assert_eq!((embedding.spec.number, &*embedding.spec.shape), (expected, &[3][..]));
                let ids = batch.column_named("id").unwrap();
                let times = batch.column_named("timestamp").unwrap();
                for (row, &index) in batch.indices().iter().enumerate() {
                    assert_eq!(ids.bytes[row * 16..][..4], (index as u32).to_le_bytes());
                    assert_eq!(times.numbers::<u64>().unwrap()[row], 1_000 + index);
                }
            }
            let request = ColumnRequest { number: Some(ColumnType::F32), ..("embedding".into()) };
            let columns = Columns { columns: Some(vec![request]), ..Columns::default() };
            let features = Columns {
                columns: Some(vec![]),
                features: vec!["embedding".into()],
                label: Some("outcome_status".into()),
                ..Columns::default()
            };
            let loaders = [columns_of(&[&path], columns), columns_of(&[&path], features)];
            let [floats, features] = loaders.map(|loader| {
                let mut rows = BTreeMap::new();
                for batch in loader.epoch(0) {
                    let batch = batch.unwrap();
                    let vectors = batch.columns().next().unwrap().numbers::<f32>().unwrap();
                    for (row, &index) in batch.indices().iter().enumerate() {
                        let label = batch.labels()[row];
                        rows.insert(index, (vectors[row * 3..][..3].to_vec(), label));
                    }
                }
                rows
            });
            for (&index, (found, label)) in &floats {
                let wanted = vector(index as u32);
                // Codes have 127 steps up to the largest component.
                let step = if dtype == Dtype::Int8 { wanted[0] / 127.0 } else { 0.0 };
                for (found, wanted) in found.iter().zip(wanted) {
                    assert!(
                        (found - wanted).abs() <= step * 0.5 + 1e-6,
                        "{dtype:?} {index} {found}"
                    );
                }
                assert_eq!((*label, features[&index].1), (-1, i64::from(index as u32 % 4)));
                assert_eq!(*found, features[&index].0);
            }
        }
    }
}

#[test]
fn a_node_with_few_edges_has_all_its_neighbours_in_order() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tbf");
    write_tbf(&path, NODES, BuildOptions::default());
    let request = ColumnRequest::new("embedding");
    let loader = columns_of(&[&path], neighbors(&[4, 2], vec![request]));
    for batch in loader.epoch(0) {
        let batch = batch.unwrap();
        let (first, second) = (numbers(&batch, "neighbors_1"), numbers(&batch, "neighbors_2"));
        let embeddings = batch.column_named("neighbors_2_embedding").unwrap();
        assert_eq!(embeddings.shape(), [batch.len(), 4, 2, 3]);
        let vectors = embeddings.numbers::<f32>().unwrap();
        for (row, &index) in batch.indices().iter().enumerate() {
            let mut all: Vec<i64> =
                targets(index as u32, NODES).into_iter().map(i64::from).collect();
            all.resize(4, -1);
            assert_eq!(first[row * 4..][..4], all);
            for (place, &node) in all.iter().enumerate() {
                let drawn = &second[(row * 4 + place) * 2..][..2];
                let edges = if node < 0 { vec![] } else { targets(node as u32, NODES) };
                let kept: Vec<i64> = drawn.iter().copied().filter(|&drawn| drawn >= 0).collect();
                assert_eq!(kept.len(), edges.len().min(2), "{index} {node} {drawn:?}");
                // In the order of the edges, so none of them twice.
                let places = kept
                    .iter()
                    .map(|kept| edges.iter().position(|&edge| i64::from(edge) == *kept).unwrap());
                assert!(places.collect::<Vec<_>>().is_sorted_by(|a, b| a < b));
                for (hop, &drawn) in drawn.iter().enumerate() {
                    let found = &vectors[((row * 4 + place) * 2 + hop) * 3..][..3];
                    let expected = if drawn < 0 { [0.0; 3] } else { vector(drawn as u32) };
                    assert_eq!(found, expected);
                }
            }
        }
    }
}

/// Neighbours by the edges that reach a node are those whose edges lead to it, in their order.
#[test]
fn incoming_neighbours_are_where_edges_come_from() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tbf");
    let incoming = |fanouts: Vec<u32>| {
        let neighbors = Neighbors { fanouts, direction: Direction::Incoming, columns: vec![] };
        Columns { neighbors: Some(neighbors), ..Columns::default() }
    };
    for compression in [Compression::None, Compression::Zstd] {
        let options = BuildOptions { reverse: true, compression, ..BuildOptions::default() };
        write_tbf(&path, NODES, options);
        let loader = columns_of(&[&path], incoming(vec![4, 1]));
        let sources = |node: u32| {
            let has_edge = move |source: &u32| targets(*source, NODES).contains(&node);
            (0..NODES).filter(has_edge).map(i64::from).collect::<Vec<_>>()
        };
        let mut edges = 0;
        for batch in loader.epoch(0) {
            let batch = batch.unwrap();
            let (first, second) = (numbers(&batch, "neighbors_1"), numbers(&batch, "neighbors_2"));
            for (row, &index) in batch.indices().iter().enumerate() {
                let mut expected = sources(index as u32);
                edges += expected.len();
                expected.resize(4, -1);
                assert_eq!(first[row * 4..][..4], expected, "{index}");
                for (place, &node) in expected.iter().enumerate() {
                    let drawn = second[row * 4 + place];
                    let of_node = u32::try_from(node).map(sources).unwrap_or_default();
                    let is_right = of_node.contains(&drawn) || of_node.is_empty() && drawn == -1;
                    assert!(is_right, "{index} {node} {drawn}");
                }
            }
        }
        assert_eq!(edges, 6 * (1 + 2 + 3 + 4));
    }
    let other = root.path().join("b.tbf");
    write_tbf(&other, NODES, BuildOptions::default());
    // Also where only another file has no reverse index.
    let dataset = Dataset::open(&[&path, &other]).unwrap();
    let error = Loader::new(dataset, config(Work::Columns(incoming(vec![2])))).unwrap_err();
    assert!(error.to_string().contains("b.tbf: incoming edges need a reverse index"), "{error}");
}

/// A star of one node with this many edges.
fn star(path: &PathBuf, edges: u32) {
    let mut builder = SegmentBuilder::new(BuildOptions::default());
    for node in 0..=edges {
        let node = Node {
            id: std::array::from_fn(|byte| (node >> (8 * (byte % 4))) as u8),
            timestamp: 0,
            context_hash: 0,
            confidence: 0.0,
            outcome: Outcome::Pending,
            text: None,
        };
        builder.push(&node, &[]).unwrap();
    }
    (1..=edges).for_each(|target| builder.push_edge(0, target, Relation::Causal, 0.0));
    std::fs::write(path, builder.finish().unwrap().to_bytes()).unwrap();
}

/// Every set of two of five edges is as likely as any other: chi-square with nine degrees of freedom
/// is below 27.88 with a probability of 99.9 %.
#[test]
fn every_set_of_neighbours_is_as_likely_as_any_other() {
    const EPOCHS: u32 = 4_000;
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("star.tbf");
    star(&path, 5);
    let loader = loader_with(&[&path], neighbors(&[2], vec![]), |config| LoaderConfig {
        sampler: tl_pipeline::Sampler {
            samples: tl_pipeline::Samples::Subset(tl_pipeline::Subset::List(vec![0])),
            ..tl_pipeline::Sampler::default()
        },
        workers: 1,
        ..config
    });
    let mut counts = BTreeMap::new();
    for epoch in 0..EPOCHS {
        let batch = loader.epoch(epoch).next().unwrap().unwrap();
        *counts.entry(numbers(&batch, "neighbors_1")).or_insert(0u32) += 1;
    }
    let expected = f64::from(EPOCHS) / 10.0;
    let chi_square: f64 =
        counts.values().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    assert!(counts.len() == 10 && chi_square < 27.88, "{chi_square} {counts:?}");
}

#[tl_testdata::needs("formats/tbf")]
#[test]
fn edges_to_nowhere_are_nobody() {
    let path = tl_testdata::path!("formats/tbf/bug_dangling_edge_count.tbf");
    let request = ColumnRequest::new("embedding");
    let loader = columns_of(&[&path], neighbors(&[1, 1], vec![request]));
    let batch = loader.epoch(0).next().unwrap().unwrap();
    // Node 0 has an edge to node 1, and that one to node 77.
    for (row, &index) in batch.indices().iter().enumerate() {
        let first = numbers(&batch, "neighbors_1")[row];
        assert_eq!(first, if index == 0 { 1 } else { -1 });
        assert_eq!(numbers(&batch, "neighbors_2")[row], -1);
        let vectors = batch.column_named("neighbors_1_embedding").unwrap();
        let expected = if index == 0 { [3.0, 4.0] } else { [0.0; 2] };
        assert_eq!(vectors.numbers::<f32>().unwrap()[row * 2..][..2], expected);
    }
}

#[test]
fn neighbours_are_numbered_as_the_samples_of_the_data_set_are() {
    let root = tempfile::tempdir().unwrap();
    let paths = [root.path().join("a.tbf"), root.path().join("b.tbf")];
    paths.iter().for_each(|path| write_tbf(path, NODES, BuildOptions::default()));
    let loader = columns_of(&paths, neighbors(&[4], vec![]));
    for batch in loader.epoch(0) {
        let batch = batch.unwrap();
        let drawn = numbers(&batch, "neighbors_1");
        for (row, &index) in batch.indices().iter().enumerate() {
            let (start, node) = (index / 30 * 30, index as u32 % 30);
            let expected =
                targets(node, NODES).into_iter().map(|node| i64::from(node) + start as i64);
            let found = drawn[row * 4..][..4].iter().copied().filter(|&node| node >= 0);
            assert!(found.eq(expected), "{index}");
        }
    }
}

#[test]
fn an_encrypted_segment_opens_with_its_key_only() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tbf");
    let key = Key::new([7; 32]);
    let encryption = Encryption { key: key.clone(), key_id: [0; 16], nonce: [1; 11] };
    let options = BuildOptions { encryption: Some(encryption), ..BuildOptions::default() };
    write_tbf(&path, NODES, options);
    let error = Dataset::open(&[&path]).unwrap_err();
    assert!(error.to_string().contains("a.tbf: "), "{error}");
    assert!(matches!(error, PipelineError::Table { .. }));
    let options = UnpackOptions { key: Some(&key), ..UnpackOptions::default() };
    let table = TbfTable::open_with(&path, &options).unwrap();
    let dataset = Dataset::from_sources(vec![Box::new(TableSource::new(table))]).unwrap();
    let work = Work::Columns(neighbors(&[4], vec![]));
    let loader = Loader::new(dataset, config(work)).unwrap();
    let plain = root.path().join("b.tbf");
    write_tbf(&plain, NODES, BuildOptions::default());
    let plain = columns_of(&[&plain], neighbors(&[4], vec![]));
    for (found, expected) in loader.epoch(0).zip(plain.epoch(0)) {
        let (found, expected) = (found.unwrap(), expected.unwrap());
        for (found, expected) in found.columns().zip(expected.columns()) {
            assert_eq!(found.bytes, expected.bytes);
        }
    }
    let small = UnpackOptions { max_bytes: 100, ..options };
    assert!(TbfTable::open_with(&path, &small).is_err());
}

#[test]
fn fanouts_beyond_reason_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tbf");
    write_tbf(&path, 3, BuildOptions::default());
    for fanouts in [&[][..], &[0], &[2, 0], &[1 << 20, 2], &[1; 17], &[u32::MAX; 3]] {
        let work = Work::Columns(neighbors(fanouts, vec![]));
        let error = Loader::new(Dataset::open(&[&path]).unwrap(), config(work)).unwrap_err();
        let expected = matches!(error, PipelineError::Columns(ColumnsError::Fanouts { .. }));
        assert!(expected, "{fanouts:?} {error}");
    }
}
