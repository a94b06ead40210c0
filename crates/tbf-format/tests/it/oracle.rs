//! Written files as an independent reader sees them: `tbf_parse.py`, which reads what the
//! reference writes.
//!
//! It takes vectors for f32 and edges for the last thing in front of the filter. So it gets each
//! file as it is where that holds, and otherwise a copy that names as many f32 components as the
//! stride has, and whose reverse index is zeroed.

use std::path::Path;
use std::process::Command;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tbf_format::{Compression, Dtype, Region, Segment};

use crate::data::{put, seal};
use crate::model::{Model, models};

/// What the independent reader says of `file`.
fn parse(parser: &Path, file: &[u8]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("written.tbf");
    std::fs::write(&path, file).unwrap();
    let output = Command::new("python3").arg(parser).arg(&path).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && !printed.contains("ERROR"), "{printed}");
    serde_json::from_slice(&std::fs::read(folder.path().join("written.tbf.json")).unwrap()).unwrap()
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The file as the independent reader can read it.
fn readable(file: &[u8], model: &Model) -> Vec<u8> {
    let mut copy = file.to_vec();
    let segment = Segment::open(file).unwrap();
    if model.options.dtype != Dtype::F32 {
        let stride = model.options.dtype.stride(model.options.dim);
        put(&mut copy, 40, &u32::try_from(stride / 4).unwrap().to_le_bytes());
    }
    if model.options.reverse {
        let edges = segment.outgoing().unwrap();
        let end = 8 * (model.nodes.len() + 1) + 12 * edges.edges().len();
        let at = |region| usize::try_from(segment.header().offset(region)).unwrap();
        copy[at(Region::Edges) + end..at(Region::Bloom)].fill(0);
    }
    seal(&mut copy);
    copy
}

fn check(parser: &Path, model: &Model) {
    let file = model.build().unwrap().to_bytes();
    let found = parse(parser, &readable(&file, model));
    let segment = Segment::open(&file).unwrap();
    let columns = segment.columns().unwrap();
    let is = |key: &str, expected: Value| assert_eq!(found[key], expected, "{key}");
    is("u16_at_4", json!(1));
    is("u16_at_6", json!(0));
    is("segment_id", json!(model.options.segment_id));
    is("created_at", json!(model.options.created_at));
    is("node_count", json!(model.nodes.len()));
    is("checksum_stored", found["checksum_crc32c_0_104"].clone());
    for key in [
        "reserved_zero",
        "edge_count_matches_csr",
        "targets_in_range",
        "bloom_size_formula_ok",
        "bloom_bits_exact",
    ] {
        is(key, json!(true));
    }
    let vectors = segment.embeddings().map_or(Vec::new(), |all| {
        let is_padded = all.dtype() != Dtype::F32;
        let vectors = (0..all.len()).flat_map(|row| all.vector_bytes(row).unwrap());
        if is_padded { all.as_bytes().to_vec() } else { vectors.copied().collect() }
    });
    is(
        "column_sha256",
        json!({
            "ids": hash(columns.ids().as_bytes()),
            "timestamps": hash(columns.timestamps().as_bytes()),
            "context_hashes": hash(columns.context_hashes().as_bytes()),
            "confidences": hash(columns.confidences().as_bytes()),
            "statuses": hash(columns.outcomes()),
            "embeddings_packed": hash(&vectors),
        }),
    );
    let edges = found["edges"].as_array().unwrap();
    let mut expected = model.edges.clone();
    expected.sort_by_key(|edge| edge.0);
    assert_eq!(edges.len(), expected.len().min(40));
    for (found, edge) in edges.iter().zip(expected) {
        assert_eq!(*found, json!(edge));
    }
}

#[tl_testdata::needs("formats/tbf_parse.py")]
#[test]
fn an_independent_reader_finds_what_was_written() {
    let parser = tl_testdata::path!("formats/tbf_parse.py");
    let mut runner = TestRunner::deterministic();
    for _ in 0..20 {
        let mut model = models(40).new_tree(&mut runner).unwrap().current();
        (model.options.compression, model.options.encryption) = (Compression::None, None);
        // JSON has no infinity.
        model.edges.iter_mut().for_each(|edge| edge.3 = f32::from(edge.2) / 4.0);
        check(&parser, &model);
    }
}
