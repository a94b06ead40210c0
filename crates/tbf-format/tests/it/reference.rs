//! The reference's own files give what an independent reader gave.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tbf_format::{Dialect, Oddity, OpenOptions, Region, Segment};

use crate::data::{bloom_bits, crc32c};

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn number(value: f32) -> Value {
    json!(f64::from(value))
}

/// What the expectations say of a file, from our reader.
fn describe(bytes: &[u8]) -> Value {
    let segment = Segment::open(bytes).unwrap();
    let mut all = header_values(&segment, bytes);
    for part in [column_values(&segment, bytes), edge_values(&segment), bloom_values(&segment)] {
        all.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    }
    all
}

fn header_values(segment: &Segment<'_>, bytes: &[u8]) -> Value {
    let header = segment.header();
    let is_reference = segment.dialect() == Dialect::Reference;
    let oddities = segment.verify().unwrap();
    let has_tail = oddities.iter().any(|odd| matches!(odd, Oddity::TrailingBytes { .. }));
    json!({
        "sha256": hash(bytes),
        "u16_at_4": u8::from(!is_reference),
        "u16_at_6": u8::from(is_reference),
        "segment_id": header.segment_id(),
        "created_at": header.created_at(),
        "node_count": segment.node_count(),
        "edge_count": header.edge_count(),
        "dim": header.embedding_dim(),
        "dtype": header.embedding_dtype().code(),
        "compression": header.compression().code(),
        "flags": header.flags().bits(),
        "node_region_offset": header.offset(Region::Nodes),
        "embed_region_offset": header.offset(Region::Embeddings),
        "edge_region_offset": header.offset(Region::Edges),
        "string_table_offset": header.offset(Region::Strings),
        "bloom_offset": header.offset(Region::Bloom),
        "index_offset": header.offset(Region::Index),
        "footer_offset": header.offset(Region::Footer),
        "checksum_crc32c_0_104": format!("{:08x}", crc32c(header.checked_bytes())),
        "file_bytes": bytes.len(),
        "stride": header.embedding_dtype().stride(header.embedding_dim()),
        "bytes_after_last_region": u8::from(has_tail),
    })
}

fn column_values(segment: &Segment<'_>, bytes: &[u8]) -> Value {
    let columns = segment.columns().unwrap();
    let at = |part: &[u8]| part.as_ptr() as usize - bytes.as_ptr() as usize;
    let embeddings = segment.embeddings().ok();
    let vectors = embeddings.iter().flat_map(|all| (0..all.len()).map(|row| (*all, row)));
    let packed: Vec<u8> =
        vectors.flat_map(|(all, row)| all.vector_bytes(row).unwrap()).copied().collect();
    let head = |row| {
        embeddings.map_or(vec![], |all| {
            let mut components = vec![0.0; all.dim()];
            all.read_into(row, &mut components).unwrap();
            components.iter().take(4).copied().map(number).collect()
        })
    };
    let node = |row| {
        let id = columns.ids().get(row).unwrap();
        json!({
            "id": id.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
            "timestamp": columns.timestamps().get(row),
            "context_hash": columns.context_hashes().get(row),
            "confidence": number(columns.confidences().get(row).unwrap()),
            "status": columns.outcomes()[row],
            "embedding_head": head(row),
        })
    };
    json!({
        "column_offsets": [
            at(columns.ids().as_bytes()),
            at(columns.timestamps().as_bytes()),
            at(columns.context_hashes().as_bytes()),
            at(columns.confidences().as_bytes()),
            at(columns.outcomes()),
        ],
        "column_sha256": {
            "ids": hash(columns.ids().as_bytes()),
            "timestamps": hash(columns.timestamps().as_bytes()),
            "context_hashes": hash(columns.context_hashes().as_bytes()),
            "confidences": hash(columns.confidences().as_bytes()),
            "statuses": hash(columns.outcomes()),
            "embeddings_packed": hash(&packed),
        },
        "first_nodes": (0..columns.len().min(5)).map(node).collect::<Vec<_>>(),
    })
}

fn edge_values(segment: &Segment<'_>) -> Value {
    let oddities = segment.verify().unwrap();
    let has = |odd: fn(&Oddity) -> bool| oddities.iter().any(odd);
    let rows = 0..usize::try_from(segment.node_count()).unwrap();
    let edges: Vec<Value> = rows
        .flat_map(|row| segment.edges(row).unwrap().iter().map(move |edge| (row, edge)))
        .map(|(row, edge)| {
            json!([row, edge.target(), edge.relation().code(), number(edge.weight())])
        })
        .take(40)
        .collect();
    json!({
        "csr_edges": segment.outgoing().unwrap().edges().len(),
        "edge_count_matches_csr": !has(|odd| matches!(odd, Oddity::EdgeCount { .. })),
        "targets_in_range": !has(|odd| matches!(odd, Oddity::EdgeTargets { .. })),
        "edges": edges,
    })
}

fn bloom_values(segment: &Segment<'_>) -> Value {
    let bloom = segment.bloom().unwrap();
    let mut words = vec![0u64; bloom.words().len()];
    for id in segment.columns().unwrap().ids().iter() {
        for bit in bloom_bits(&id, bloom.num_hashes().into(), bloom.num_bits()) {
            words[usize::try_from(bit / 64).unwrap()] |= 1 << (bit % 64);
        }
    }
    json!({
        "bloom_num_hashes": bloom.num_hashes(),
        "bloom_num_bits": bloom.num_bits(),
        "bloom_bits_exact": bloom.words().iter().eq(words),
    })
}

/// Said of the bytes themselves, or of the formula that sizes filters.
const NOT_COMPARED: [&str; 5] = [
    "file",
    "checksum_stored",
    "reserved_zero",
    "padding_ranges_all_zero",
    "bloom_size_formula_ok",
];

#[tl_testdata::needs("formats/tbf")]
#[test]
fn every_reference_file_gives_what_is_expected_of_it() {
    let folder = tl_testdata::path!("formats/tbf");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "tbf") {
            continue;
        }
        let expected = std::fs::read(path.with_extension("tbf.json")).unwrap();
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        let found = describe(&std::fs::read(&path).unwrap());
        for (key, expected) in expected.as_object().unwrap() {
            if !NOT_COMPARED.contains(&key.as_str()) {
                assert_eq!(found.get(key), Some(expected), "{key} of {}", path.display());
            }
        }
        files += 1;
    }
    assert!(files >= 5, "{files} files");
}

#[tl_testdata::needs("formats/tbf")]
#[test]
fn the_file_with_a_dangling_edge_is_read_as_its_row_pointers_say() {
    let folder = tl_testdata::path!("formats/tbf");
    let bytes = std::fs::read(folder.join("bug_dangling_edge_count.tbf")).unwrap();
    let segment = Segment::open(&bytes).unwrap();
    assert_eq!((segment.header().edge_count(), segment.edge_count()), (3, 2));
    let expected = [
        Oddity::ReferenceDialect,
        Oddity::NoHeaderChecksum,
        Oddity::EdgeCount { stated: 3, stored: 2 },
        Oddity::EdgeTargets { count: 1, edge: 1, target: 77 },
    ];
    assert_eq!(segment.verify().unwrap(), expected);
    assert!(Segment::open_with(&bytes, OpenOptions { strict: true }).is_err());
}
