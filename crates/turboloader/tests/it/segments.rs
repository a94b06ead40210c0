//! TBF segments from and to other tables, merged, compacted and searched.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tbf_format::{Flags, Key, Segment, UnpackOptions};
use turboloader::{
    EdgeRelation, NodeOutcome, SegmentCompression, SegmentConversion, SegmentError, SegmentFile,
    SegmentNode, SegmentSet, SegmentSettings, TableConversion, VectorType, compact_segments,
    merge_segments,
};

/// A node with the edges that leave it.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    id: [u8; 16],
    timestamp: u64,
    context_hash: u64,
    confidence: f32,
    outcome: u8,
    vector: Vec<f32>,
    text: Option<String>,
    edges: Vec<(u32, u8, f32)>,
}

fn settings() -> SegmentSettings {
    SegmentSettings { sync: false, overwrite: true, ..SegmentSettings::default() }
}

fn write(path: &Path, settings: &SegmentSettings, nodes: &[Model]) -> Result<(), SegmentError> {
    let dim = nodes.first().map_or(0, |node| node.vector.len());
    let dim = u32::try_from(dim).unwrap_or(u32::MAX);
    let mut file = SegmentFile::create(path, settings, dim)?;
    for model in nodes {
        let node = SegmentNode {
            id: model.id,
            timestamp: model.timestamp,
            context_hash: model.context_hash,
            confidence: model.confidence,
            outcome: NodeOutcome::from_code(model.outcome),
            text: model.text.as_deref(),
        };
        let row = file.push(&node, &model.vector)?;
        for &(target, relation, weight) in &model.edges {
            file.push_edge(row, target, EdgeRelation::from_code(relation), weight);
        }
    }
    file.finish().map(drop)
}

/// All nodes of a segment that verifies.
fn read(path: &Path, key: Option<&Key>) -> Result<Vec<Model>, Box<dyn std::error::Error>> {
    let bytes = fs::read(path)?;
    let mut segment = Segment::open(&bytes)?;
    segment.unpack_all(&UnpackOptions { key, ..UnpackOptions::default() })?;
    segment.verify()?;
    let columns = segment.columns()?;
    let rows = usize::try_from(segment.node_count())?;
    let mut nodes = Vec::new();
    for row in 0..rows {
        let vectors = segment.embeddings();
        let mut vector = vec![0.0; vectors.as_ref().map_or(0, |vectors| vectors.dim())];
        if let Ok(vectors) = vectors {
            vectors.read_into(row, &mut vector)?;
        }
        let edges = segment.edges(row)?;
        nodes.push(Model {
            id: columns.ids().get(row).ok_or("id")?,
            timestamp: columns.timestamps().get(row).ok_or("timestamp")?,
            context_hash: columns.context_hashes().get(row).ok_or("hash")?,
            confidence: columns.confidences().get(row).ok_or("confidence")?,
            outcome: columns.outcomes()[row],
            vector,
            text: segment
                .strings()
                .ok()
                .map(|texts| texts.row(row).map(str::to_owned))
                .transpose()?,
            edges: edges.iter().map(|e| (e.target(), e.relation().code(), e.weight())).collect(),
        });
    }
    Ok(nodes)
}

fn node(id: u8, edges: &[(u32, u8, f32)]) -> Model {
    Model {
        id: [id; 16],
        timestamp: u64::from(id) * 1000,
        context_hash: u64::MAX - u64::from(id),
        confidence: 0.1 * f32::from(id),
        outcome: id % 5,
        vector: vec![f32::from(id), -0.3],
        text: Some(format!("node {id}, \"ü\"")),
        edges: edges.to_vec(),
    }
}

fn convert(conversion: &TableConversion, from: &Path, to: &Path) -> u64 {
    let converted = conversion.run(from, to, &mut |_| ControlFlow::Continue(()));
    converted.unwrap_or_else(|error| panic!("{error}")).rows
}

fn nodes() -> impl Strategy<Value = Vec<Model>> {
    let has_text = any::<bool>();
    (1_usize..40, 0_usize..4, has_text, any::<u64>()).prop_flat_map(
        |(count, dim, has_text, salt)| {
            let ends = u32::try_from(count).expect("it is small");
            let edge = (0..ends, any::<u8>(), -1e30_f32..1e30);
            let text =
                if has_text { "\\PC{0,6}".prop_map(Some).boxed() } else { Just(None).boxed() };
            let node = (
                any::<(u64, u64, f32, u8)>(),
                prop::collection::vec(any::<f32>(), dim),
                text,
                prop::collection::vec(edge, 0..4),
            );
            prop::collection::vec(node, count).prop_map(move |nodes| {
                let nodes = nodes.into_iter().zip(0_u64..);
                let model = |((numbers, vector, text, edges), row)| {
                    let (timestamp, context_hash, confidence, outcome) = numbers;
                    let id = u128::from(salt) << 64 | u128::from(row);
                    let id = id.to_be_bytes();
                    Model { id, timestamp, context_hash, confidence, outcome, vector, text, edges }
                };
                nodes.map(model).collect()
            })
        },
    )
}

/// Equal, where numbers that are none equal each other.
fn assert_same(found: &[Model], expected: &[Model]) {
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// A segment that becomes a table and a segment again has the same nodes and edges.
    #[test]
    fn tables_keep_every_value(expected in nodes()) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        write(&path("a.tbf"), &settings(), &expected).unwrap();
        let conversion = TableConversion { sync: false, ..Default::default() };
        for table in ["a.parquet", "a.idv"] {
            prop_assert_eq!(convert(&conversion, &path("a.tbf"), &path(table)), expected.len() as u64);
            let back = path(table).with_extension("back.tbf");
            convert(&TableConversion { overwrite: true, ..conversion.clone() }, &path(table), &back);
            assert_same(&read(&back, None).unwrap(), &expected);
        }
        convert(&conversion, &path("a.tbf"), &path("a.csv"));
        convert(&conversion, &path("a.csv"), &path("c.tbf"));
        let mut plain = expected;
        plain.iter_mut().for_each(|node| node.edges.clear());
        assert_same(&read(&path("c.tbf"), None).unwrap(), &plain);
    }

    /// A merged segment has the newest node of each id, and edges lead to the nodes of their ids.
    #[test]
    fn merges_keep_the_newest_nodes(parts in prop::collection::vec(nodes(), 1..4), seed in 0_u8..20) {
        let folder = tempfile::tempdir().unwrap();
        let mut expected: Vec<([u8; 16], Model, Vec<[u8; 16]>)> = Vec::new();
        let mut paths = Vec::new();
        for (number, mut part) in parts.into_iter().enumerate() {
            for (row, node) in part.iter_mut().enumerate() {
                node.vector = vec![f32::from(seed), 0.5];
                // Parts share ids.
                node.id = [u8::try_from(row).unwrap().wrapping_mul(3).wrapping_add(seed); 16];
                node.text = Some(format!("{number}/{row}"));
            }
            let path = folder.path().join(format!("{number}.tbf"));
            write(&path, &settings(), &part).unwrap();
            paths.push(path);
            for node in &part {
                expected.retain(|(id, ..)| *id != node.id);
            }
            for node in &part {
                let ends = node.edges.iter().map(|&(end, ..)| part[end as usize].id).collect();
                expected.push((node.id, node.clone(), ends));
            }
        }
        let merged = folder.path().join("merged");
        let done = merge_segments(&paths, &merged, &settings(), &mut |_, _| ControlFlow::Continue(()));
        prop_assert_eq!(done.unwrap().written.nodes, expected.len() as u64);
        let found = read(&merged, None).unwrap();
        for (found_node, (_, node, ends)) in found.iter().zip(&expected) {
            let found_ends: Vec<_> =
                found_node.edges.iter().map(|&(end, ..)| found[end as usize].id).collect();
            prop_assert_eq!(&found_ends, ends);
            let plain = |node: &Model| Model { edges: Vec::new(), ..node.clone() };
            assert_same(&[plain(found_node)], &[plain(node)]);
        }
    }
}

#[test]
fn a_folder_is_compacted_into_its_last_segment() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let quiet: &mut dyn FnMut(u64, u64) -> ControlFlow<()> = &mut |_, _| ControlFlow::Continue(());
    let empty = compact_segments(folder.path(), &settings(), quiet).unwrap_err();
    assert!(matches!(empty, SegmentError::NoSegments { .. }), "{empty}");
    write(&path("1.tbf"), &settings(), &[node(1, &[(1, 0, 0.5)]), node(2, &[])]).unwrap();
    write(&path("2.tbf"), &settings(), &[node(3, &[]), node(2, &[(0, 4, 1.0)])]).unwrap();
    let done = compact_segments(folder.path(), &settings(), quiet).unwrap().unwrap();
    assert_eq!((done.segments, done.replaced, done.edges_left_out), (2, 1, 0));
    assert!(!path("1.tbf").exists());
    let expected = [node(1, &[(2, 0, 0.5)]), node(3, &[]), node(2, &[(1, 4, 1.0)])];
    assert_same(&read(&path("2.tbf"), None).unwrap(), &expected);
    let bytes = fs::read(path("2.tbf")).unwrap();
    assert!(Segment::open(&bytes).unwrap().header().flags().contains(Flags::IS_COMPACTED));
    assert_eq!(compact_segments(folder.path(), &settings(), quiet).unwrap(), None);
    assert_eq!(fs::read(path("2.tbf")).unwrap(), bytes);
}

#[test]
fn segments_that_do_not_fit_are_refused_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let quiet: &mut dyn FnMut(u64, u64) -> ControlFlow<()> = &mut |_, _| ControlFlow::Continue(());
    write(&path("a"), &settings(), &[node(1, &[])]).unwrap();
    let wide = Model { vector: vec![1.0; 3], ..node(2, &[]) };
    write(&path("b"), &settings(), &[wide]).unwrap();
    let sources = [path("a"), path("b")];
    let error = merge_segments(&sources, &path("c"), &settings(), quiet).unwrap_err();
    let expected = format!("vectors are 3 x f32, expected 2 x f32 as in {}", path("a").display());
    assert!(error.to_string().ends_with(&expected), "{error}");
    assert!(!path("c").exists());
    let error = merge_segments(&[path("a")], &path("a"), &settings(), quiet).unwrap_err();
    assert!(matches!(error, SegmentError::SourceIsDestination { .. }), "{error}");
    let stop: &mut dyn FnMut(u64, u64) -> ControlFlow<()> = &mut |_, _| ControlFlow::Break(());
    let error = merge_segments(&[path("a")], &path("c"), &settings(), stop).unwrap_err();
    assert!(matches!(error, SegmentError::Stopped { .. }) && !path("c").exists(), "{error}");
    let error = write(&path("c"), &settings(), &[node(1, &[(7, 0, 1.0)])]).unwrap_err();
    assert!(error.to_string().contains("edge 0 leads from node 0 to 7 of 1"), "{error}");
    assert!(!path("c").exists());
}

#[test]
fn merges_keep_stored_vectors_and_need_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let quiet: &mut dyn FnMut(u64, u64) -> ControlFlow<()> = &mut |_, _| ControlFlow::Continue(());
    let key = Key::new([7; 32]);
    for dtype in [VectorType::Int8, VectorType::F16, VectorType::Bf16] {
        let sealed = SegmentSettings {
            dtype,
            key: Some(key.clone()),
            compression: SegmentCompression::Zstd,
            reverse: true,
            ..settings()
        };
        write(&path("a"), &sealed, &[node(1, &[]), node(2, &[(0, 1, 2.0)])]).unwrap();
        write(&path("b"), &sealed, &[node(3, &[])]).unwrap();
        let sources = [path("a"), path("b")];
        let error = merge_segments(&sources, &path("c"), &settings(), quiet).unwrap_err();
        assert!(error.to_string().contains("key"), "{error}");
        merge_segments(&sources, &path("c"), &sealed, quiet).unwrap();
        let parts = [read(&path("a"), Some(&key)).unwrap(), read(&path("b"), Some(&key)).unwrap()];
        assert_same(&read(&path("c"), Some(&key)).unwrap(), &parts.concat());
        let bytes = fs::read(path("c")).unwrap();
        let header = *Segment::open(&bytes).unwrap().header();
        assert_eq!(
            (header.compression(), header.embedding_dtype()),
            (SegmentCompression::Zstd, dtype)
        );
        assert!(header.has_reverse() && header.flags().contains(Flags::IS_ENCRYPTED));
    }
}

/// An id as random ones are: filters are made for those.
fn scattered(number: u8) -> [u8; 16] {
    (u128::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_be_bytes()
}

#[test]
fn only_segments_whose_filter_may_contain_the_id_are_searched() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let scattered_node = |number: u8| Model { id: scattered(number), ..node(number, &[]) };
    for number in 0..8_u8 {
        let nodes: Vec<Model> = (0..20).map(|id| scattered_node(number * 20 + id)).collect();
        write(&path(&format!("{number}.tbf")), &settings(), &nodes).unwrap();
    }
    let set = SegmentSet::open(&[folder.path().to_owned()]).unwrap();
    assert_eq!(set.files().len(), 8);
    let mut searched = 0;
    for id in 0..160_u8 {
        let found = set.find(&scattered(id), None).unwrap().unwrap();
        assert_eq!((found.segment, found.row), (usize::from(id / 20), u64::from(id % 20)));
        searched += found.searched;
    }
    // One false answer in a hundred of 560 later segments, on average.
    assert!((160..175).contains(&searched), "{searched}");
    assert_eq!(set.find(&scattered(200), None).unwrap(), None);
    // The newest node of an id counts.
    write(&path("9.tbf"), &settings(), &[scattered_node(5)]).unwrap();
    let set = SegmentSet::open(&[folder.path().to_owned()]).unwrap();
    assert_eq!(set.find(&scattered(5), None).unwrap().unwrap().path, path("9.tbf"));
    damage_all_but_filter(&path("9.tbf"));
    let error = set.find(&scattered(5), None).unwrap_err();
    assert!(error.to_string().contains("9.tbf"), "{error}");
    assert_eq!(set.find(&scattered(6), None).unwrap().unwrap().row, 6);
}

/// Damages the compressed or plain nodes and the index, but not header, filter and footer.
fn damage_all_but_filter(path: &PathBuf) {
    let mut bytes = fs::read(path).unwrap_or_default();
    let index = tbf_format::FileHeader::parse(&bytes)
        .map_or(0, |header| header.offset(tbf_format::Region::Index));
    let index = usize::try_from(index).unwrap_or(0);
    if let Some(rows) = bytes.get_mut(index + 64..index + 68) {
        rows.fill(0xff);
    }
    assert!(fs::write(path, bytes).is_ok());
}

#[test]
fn a_segment_that_is_replaced_meanwhile_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let begin = || {
        write(&path("1.tbf"), &settings(), &[node(1, &[]), node(2, &[])]).unwrap();
        write(&path("2.tbf"), &settings(), &[node(3, &[])]).unwrap();
    };
    for changed in ["1.tbf", "2.tbf"] {
        for is_removed in [false, true] {
            begin();
            let other = if changed == "1.tbf" { "2.tbf" } else { "1.tbf" };
            let kept = fs::read(path(other)).unwrap();
            let mut replace = |done, total| {
                if done == total && is_removed {
                    fs::remove_file(path(changed)).unwrap();
                } else if done == total {
                    write(&path(changed), &settings(), &[node(9, &[])]).unwrap();
                }
                ControlFlow::Continue(())
            };
            let error = compact_segments(folder.path(), &settings(), &mut replace).unwrap_err();
            let SegmentError::Changed { location } = &error else { panic!("{error}") };
            assert_eq!(location.path(), Some(&*path(changed)));
            assert_eq!(fs::read(path(other)).unwrap(), kept);
            assert_eq!(path(changed).exists(), !is_removed);
            if !is_removed {
                assert_same(&read(&path(changed), None).unwrap(), &[node(9, &[])]);
            }
        }
    }
}

#[test]
fn a_stopped_compaction_leaves_every_segment_and_an_interrupted_one_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let quiet: &mut dyn FnMut(u64, u64) -> ControlFlow<()> = &mut |_, _| ControlFlow::Continue(());
    write(&path("1.tbf"), &settings(), &[node(1, &[(1, 0, 0.5)]), node(2, &[])]).unwrap();
    write(&path("2.tbf"), &settings(), &[node(4, &[])]).unwrap();
    write(&path("3.tbf"), &settings(), &[node(3, &[]), node(2, &[(0, 4, 1.0)])]).unwrap();
    let names = ["1.tbf", "2.tbf", "3.tbf"];
    let sources = names.map(|name| fs::read(path(name)).unwrap());
    let stop = &mut |done, _| {
        if done == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let error = compact_segments(folder.path(), &settings(), stop).unwrap_err();
    assert!(matches!(error, SegmentError::Stopped { .. }), "{error}");
    assert_eq!(names.map(|name| fs::read(path(name)).unwrap()), sources);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);

    compact_segments(folder.path(), &settings(), quiet).unwrap();
    let expected = read(&path("3.tbf"), None).unwrap();
    // As after a crash: the merged segment has its name, and later sources are not yet removed.
    for (left, nodes) in [(1..2, 4), (0..2, 4)] {
        for (name, bytes) in names.iter().zip(&sources).take(left.end).skip(left.start) {
            fs::write(path(name), bytes).unwrap();
        }
        let set = SegmentSet::open(&[folder.path().to_owned()]).unwrap();
        for id in 1..=nodes {
            let found = set.find(&[id; 16], None).unwrap().unwrap();
            assert_eq!(found.path, path("3.tbf"));
        }
        let done = compact_segments(folder.path(), &settings(), quiet).unwrap().unwrap();
        assert_eq!(done.written.nodes, u64::from(nodes));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_same(&read(&path("3.tbf"), None).unwrap(), &expected);
    }
}

#[test]
fn a_folder_with_other_files_is_not_one_of_segments() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let quiet: &mut dyn FnMut(u64, u64) -> ControlFlow<()> = &mut |_, _| ControlFlow::Continue(());
    write(&path("1.tbf"), &settings(), &[node(1, &[])]).unwrap();
    write(&path("2.tbf"), &settings(), &[node(2, &[])]).unwrap();
    fs::write(path(".hidden"), "").unwrap();
    assert_eq!(SegmentSet::open(&[folder.path().to_owned()]).unwrap().files().len(), 2);
    fs::create_dir(path("cats")).unwrap();
    fs::write(path("notes.txt"), "").unwrap();
    let compacted = compact_segments(folder.path(), &settings(), quiet).unwrap_err();
    let opened = SegmentSet::open(&[folder.path().to_owned()]).unwrap_err();
    for error in [compacted, opened] {
        let SegmentError::OtherFile { location } = &error else { panic!("{error}") };
        assert_eq!(location.path(), Some(&*path("cats")));
    }
    assert!(path("1.tbf").exists() && path("2.tbf").exists());
}

/// Settings of a source that differ from every default.
fn unusual(key: Option<&Key>) -> SegmentSettings {
    SegmentSettings {
        dtype: VectorType::Bf16,
        compression: SegmentCompression::Zstd,
        key: key.cloned(),
        key_id: [9; 16],
        index: false,
        reverse: true,
        segment_id: 42,
        ..settings()
    }
}

/// The properties that a conversion keeps unless an option says otherwise.
fn traits(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let Ok(segment) = Segment::open(&bytes) else { panic!("{}", path.display()) };
    let header = segment.header();
    format!(
        "{} {:?} {:?} index {} reverse {} compacted {} key {:?}",
        header.segment_id(),
        header.embedding_dtype(),
        header.compression(),
        segment.has(tbf_format::Region::Index),
        header.has_reverse(),
        header.flags().contains(Flags::IS_COMPACTED),
        segment.key_id().map(|id| id[0]),
    )
}

#[test]
fn a_converted_segment_keeps_what_no_option_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let quiet: &mut dyn FnMut(u64, u64) -> ControlFlow<()> = &mut |_, _| ControlFlow::Continue(());
    let key = Key::new([3; 32]);
    let nodes: Vec<Model> = (0..60).map(|id| node(id, &[(u32::from(id) / 2, 1, 0.5)])).collect();
    for key in [None, Some(&key)] {
        write(&path("a.tbf"), &unusual(key), &nodes).unwrap();
        merge_segments(&[path("a.tbf")], &path("b.tbf"), &unusual(key), quiet).unwrap();
        let shown = key.map_or("None", |_| "Some(9)");
        let plain = SegmentConversion { key: key.cloned(), ..SegmentConversion::default() };
        let check =
            |source: &str, segment: &SegmentConversion, columns: &[&str], expected: &str| {
                let columns = columns.iter().map(|&name| name.to_owned()).collect();
                let conversion = TableConversion {
                    sync: false,
                    overwrite: true,
                    columns,
                    segment: segment.clone(),
                    ..TableConversion::default()
                };
                convert(&conversion, &path(source), &path("c.tbf"));
                assert_eq!(traits(&path("c.tbf")), expected);
            };
        let all = ["id", "embedding", "text", "edge_target"];
        let usual = |dtype: &str, is_compacted: bool| {
            format!("42 {dtype} Zstd index false reverse true compacted {is_compacted} key {shown}")
        };
        for (source, is_compacted) in [("a.tbf", false), ("b.tbf", true)] {
            check(source, &plain, &[], &usual("Bf16", is_compacted));
            check(source, &plain, &all, &usual("Bf16", is_compacted));
            let f16 = SegmentConversion { dtype: Some(VectorType::F16), ..plain.clone() };
            check(source, &f16, &[], &usual("F16", is_compacted));
        }
        let given = SegmentConversion {
            compression: Some(SegmentCompression::None),
            index: Some(true),
            reverse: Some(false),
            segment_id: Some(3),
            decrypt: true,
            ..plain.clone()
        };
        let expected = "3 Bf16 None index true reverse false compacted false key None";
        check("a.tbf", &given, &[], expected);
        check("a.tbf", &given, &all, expected);
        check(
            "a.tbf",
            &SegmentConversion { index: Some(false), ..given },
            &[],
            &expected.replace("index true", "index false"),
        );
    }
}
