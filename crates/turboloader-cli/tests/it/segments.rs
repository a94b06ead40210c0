//! TBF segments: what `tl` says of the reference's files equals their descriptions; and of
//! segments written here equal their input, plain, compressed and encrypted.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tbf_format::{
    BuildOptions, Compression, Dtype, Encryption, Key, Node, Outcome, Relation, SegmentBuilder,
};
use tempfile::TempDir;

use crate::support::{Run, json_lines, tl, write};

/// Runs `tl` on a segment.
fn segment(command: &str, path: &Path, args: &[&str]) -> Run {
    let path = path.to_str().expect("the path is UTF-8");
    tl([command, path].iter().chain(args))
}

fn json_of(command: &str, path: &Path, args: &[&str]) -> Vec<Value> {
    json_lines(&segment(command, path, &[args, &["--json"]].concat()).text())
}

/// An id without hyphens, as the descriptions have it.
fn plain_id(node: &Value) -> String {
    node["id"].as_str().expect("an id is text").replace('-', "")
}

fn single(value: &Value) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "a single was printed")]
    let single = value.as_f64().expect("it is a number") as f32;
    single
}

fn check(path: &Path, expected: &Value) {
    let info = &json_of("info", path, &[])[0];
    let at = path.display();
    assert_eq!(info["dialect"], "reference", "{at}");
    assert_eq!(info["nodes"], expected["node_count"], "{at}");
    assert_eq!(info["edges"], expected["csr_edges"], "{at}");
    assert_eq!(info["embeddings"]["dim"].as_u64().unwrap_or(0) > 0, {
        expected["node_count"] != 0 && expected["dim"] != 0
    });
    let regions = info["regions"].as_array().expect("regions is a list");
    for (name, key) in [
        ("node region", "node_region_offset"),
        ("edge region", "edge_region_offset"),
        ("bloom filter", "bloom_offset"),
    ] {
        let region = regions.iter().find(|region| region["region"] == name).expect("it is there");
        assert_eq!(region["offset"], expected[key], "{at}: {name}");
    }
    let hashes = &expected["column_sha256"];
    for (digest, key) in json_of("digest", path, &["--columns"]).iter().zip([
        "ids",
        "timestamps",
        "context_hashes",
        "confidences",
        "statuses",
        "embeddings_packed",
    ]) {
        if key == "embeddings_packed" && digest["name"] != "embedding" {
            continue;
        }
        assert_eq!(digest["sha256"], hashes[key], "{at}: {key}");
    }
    assert_eq!(json_of("verify", path, &[])[0]["good"], true, "{at}");
    let nodes = json_of("ls", path, &["--columns", "id,timestamp,context_hash,confidence"]);
    assert_eq!(json!(nodes.len()), expected["node_count"], "{at}");
    for (row, (node, expected)) in
        nodes.iter().zip(expected["first_nodes"].as_array().into_iter().flatten()).enumerate()
    {
        assert_eq!(plain_id(node), expected["id"], "{at}");
        assert_eq!(node["timestamp"], expected["timestamp"], "{at}");
        assert_eq!(node["context_hash"], expected["context_hash"], "{at}");
        assert_eq!(single(&node["confidence"]), single(&expected["confidence"]), "{at}");
        let id = node["id"].as_str().expect("an id is text");
        assert_eq!(json_of("find", path, &["--id", id])[0]["row"], row, "{at}");
        let whole: Value =
            serde_json::from_str(&segment("cat", path, &[id]).text()).expect("it is JSON");
        let head = expected["embedding_head"].as_array().into_iter().flatten();
        for (found, expected) in whole["embedding"].as_array().into_iter().flatten().zip(head) {
            assert_eq!(single(found), single(expected), "{at}");
        }
    }
    for edge in expected["edges"].as_array().expect("edges is a list") {
        let (source, target) = (edge[0].to_string(), &edge[1]);
        let edges = json_of("edges", path, &[&source]);
        let found = edges.iter().find(|found| found["row"] == *target).expect("it is listed");
        assert_eq!(single(&found["weight"]), single(&edge[3]), "{at}");
        let names = ["causal", "temporal", "dependency", "retry", "branch"];
        let code = usize::try_from(edge[2].as_u64().expect("it is a number")).expect("it is small");
        assert_eq!(found["relation"], names[code], "{at}");
    }
}

#[tl_testdata::needs("formats/tbf")]
#[test]
fn the_references_files_are_as_described() {
    let folder = tl_testdata::path!("formats/tbf");
    let mut checked = 0;
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        let Ok(text) = fs::read_to_string(path.with_added_extension("json")) else { continue };
        check(&path, &serde_json::from_str(&text).expect("the description is JSON"));
        checked += 1;
    }
    assert_eq!(checked, 5);
}

const KEY: [u8; 32] = *b"a key of exactly thirty-two byte";

const COUNT: u32 = 40;
const DIM: u32 = 5;

fn id(row: u32) -> [u8; 16] {
    let mut id = [0x5a; 16];
    id[..4].copy_from_slice(&row.wrapping_mul(0x9e37_79b9).to_be_bytes());
    id
}

fn id_text(row: u32) -> String {
    let digits: String = id(row).iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
    parts.join("-")
}

/// Two nodes at a time, from the last row to the first.
fn timestamp(row: u32) -> u64 {
    1_700_000_000_000_000_000 + u64::from((COUNT - 1 - row) / 2) * 1_000_000_000
}

/// Components that every type of them has.
fn vector(row: u32) -> [f32; DIM as usize] {
    [3, 4, 5, 6, 7].map(|factor| {
        let component = u8::try_from((row * factor + 1) % 17).expect("it is below 17");
        f32::from(component) - 8.0
    })
}

/// Node `row` has edges to the two nodes after it.
fn build(options: BuildOptions) -> Vec<u8> {
    let mut builder = SegmentBuilder::new(BuildOptions { dim: DIM, ..options });
    for row in 0..COUNT {
        let text = format!("ls -l\t{row}");
        let node = Node {
            id: id(row),
            timestamp: timestamp(row),
            context_hash: u64::MAX - u64::from(row),
            confidence: 0.1,
            outcome: Outcome::from_code((row % 5).try_into().expect("it is small")),
            text: Some(&text),
        };
        builder.push(&node, &vector(row)).expect("the node is good");
        builder.push_edge(row, (row + 1) % COUNT, Relation::Causal, 0.5);
        builder.push_edge(row, (row + 2) % COUNT, Relation::Other(9), f32::INFINITY);
    }
    builder.finish().expect("the segment is good").to_bytes()
}

fn encryption() -> Option<Encryption> {
    Some(Encryption { key: Key::new(KEY), key_id: [0xab; 16], nonce: [7; 11] })
}

/// Segments with everything in several packings, and the arguments that open them.
fn variants(folder: &Path) -> Vec<(PathBuf, Vec<String>)> {
    let key = write(folder, "key", &KEY);
    let digits: String = KEY.iter().map(|byte| format!("{byte:02X}")).collect();
    let hex = write(folder, "key.hex", format!("{digits}\n").as_bytes());
    let all = BuildOptions { index: true, reverse: true, ..BuildOptions::default() };
    let plain = BuildOptions::default();
    let zstd = BuildOptions { compression: Compression::Zstd, ..all.clone() };
    let key_args = |key: &Path| vec!["--key-file".to_owned(), key.display().to_string()];
    [
        ("plain.tbf", plain, vec![]),
        ("index.tbf", all.clone(), vec![]),
        ("lz4.tbf", BuildOptions { compression: Compression::Lz4, ..all.clone() }, vec![]),
        ("zstd.tbf", zstd.clone(), vec![]),
        ("key.tbf", BuildOptions { encryption: encryption(), ..all }, key_args(&key)),
        ("both.tbf", BuildOptions { encryption: encryption(), ..zstd }, key_args(&hex)),
    ]
    .into_iter()
    .map(|(name, options, args)| (write(folder, name, &build(options)), args))
    .collect()
}

fn rows(lines: &[Value]) -> Vec<u32> {
    let row = |line: &Value| line["row"].as_u64().and_then(|row| row.try_into().ok());
    lines.iter().map(|line| row(line).expect("a row is a number")).collect()
}

#[test]
fn nodes_are_found_in_every_packing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (path, key) in variants(folder.path()) {
        let key: Vec<&str> = key.iter().map(String::as_str).collect();
        let find = |args: &[&str]| json_of("find", &path, &[args, &key].concat());
        for row in [0, 17, COUNT - 1] {
            assert_eq!(rows(&find(&["--id", &id_text(row)])), [row]);
            let node = segment("cat", &path, &[&[&*id_text(row)], &key[..]].concat()).text();
            let node: Value = serde_json::from_str(&node).expect("it is JSON");
            assert_eq!(node["text"], format!("ls -l\t{row}"));
            assert_eq!(node["embedding"], json!(vector(row)));
            assert_eq!(node["context_hash"], u64::MAX - u64::from(row));
            assert_eq!(node["edges"], 2);
            let names = ["pending", "success", "failure", "partial", "4"];
            assert_eq!(node["outcome_status"], names[row as usize % 5]);
        }
        let missing = segment("find", &path, &[&["--id", &id_text(COUNT)], &key[..]].concat());
        assert!(missing.error(2).ends_with(&format!("no node has the id {}", id_text(COUNT))));
        // The nodes of the seconds 3 and 4: the later rows are the earlier ones.
        for range in [
            "1700000003000000000..1700000005000000000",
            "2023-11-14T22:13:23Z..2023-11-14T23:13:25+01:00",
        ] {
            let found = find(&["--time", range]);
            assert_eq!(rows(&found), [32, 33, 30, 31], "{}", path.display());
            assert_eq!(found[0]["time"], "2023-11-14T22:13:23Z");
        }
        assert_eq!(find(&["--time", ".."]).len(), COUNT as usize);
        assert_eq!(find(&["--time", "..1700000000000000001"]).len(), 2);
        assert_eq!(find(&["--time", "5..5"]).len() + find(&["--time", "9..5"]).len(), 0);

        let edges = json_of("edges", &path, &[&["7"], &key[..]].concat());
        assert_eq!(
            edges,
            [
                json!({"row": 8, "id": id_text(8), "relation": "causal", "weight": 0.5}),
                json!({"row": 9, "id": id_text(9), "relation": "9", "weight": "Infinity"}),
            ]
        );
        let seven = id_text(7);
        let incoming = [&[&*seven, "--incoming"], &key[..]].concat();
        assert_eq!(rows(&json_of("edges", &path, &incoming)), [5, 6]);
        let verified = &json_of("verify", &path, &key)[0];
        assert_eq!((&verified["good"], &verified["warnings"]), (&json!(true), &json!(0)));
    }
}

/// However a segment is packed, it holds the same.
#[test]
fn packing_does_not_change_the_digest() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let digests: BTreeSet<String> = variants(folder.path())
        .iter()
        .map(|(path, key)| {
            segment("digest", path, &key.iter().map(String::as_str).collect::<Vec<_>>()).text()
        })
        .collect();
    assert_eq!(digests.len(), 1, "{digests:?}");
}

/// Against a search in double precision over the vectors that went in.
#[test]
fn the_nearest_nodes_are_those_of_a_search_through_all() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let distance = |a: &[f32], b: &[f32]| -> f64 { dot(a, a) + dot(b, b) - 2.0 * dot(a, b) };
    for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::Int8] {
        let file = build(BuildOptions { dtype, ..BuildOptions::default() });
        let path = write(folder.path(), "vectors.tbf", &file);
        // The components are exact except scaled bytes.
        let tolerance = if dtype == Dtype::Int8 { 0.05 } else { 1e-5 };
        let is_near = |a: f64, b: f64| (a - b).abs() <= tolerance * (1.0 + b.abs());
        for (metric, sign) in [("cosine", 1.0), ("dot", 1.0), ("l2", -1.0)] {
            let score = |row: u32| {
                let (a, b) = (&vector(11), &vector(row));
                match metric {
                    "cosine" => dot(a, b) / (dot(a, a) * dot(b, b)).sqrt(),
                    "dot" => dot(a, b),
                    _ => distance(a, b),
                }
            };
            let mut expected: Vec<f64> =
                (0..COUNT).filter(|&row| row != 11).map(|row| score(row) * sign).collect();
            expected.sort_by(|a, b| b.total_cmp(a));
            let args = ["--similar", "11", "-k", "5", "--metric", metric];
            let found = json_of("find", &path, &args);
            assert_eq!(found.len(), 5);
            for ((line, row), expected) in found.iter().zip(rows(&found)).zip(expected) {
                let found = line["score"].as_f64().expect("a score is a number");
                assert!(is_near(found, expected * sign), "{metric}: {found}");
                assert!(is_near(found, score(row)), "{metric}: row {row}");
                assert_ne!(row, 11);
            }
            // The same vector by its numbers finds its own node as well.
            let text = json!(vector(11)).to_string();
            let file = write(folder.path(), "vector.json", text.as_bytes());
            for vector in [text.as_str(), file.to_str().expect("the path is UTF-8")] {
                let args = ["--vector", vector, "-k", "40", "--metric", metric];
                let rows = rows(&json_of("find", &path, &args));
                assert!(rows.contains(&11) && rows.len() == 40);
            }
        }
    }
}

#[test]
fn an_encrypted_segment_needs_its_key() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(
        folder.path(),
        "secret.tbf",
        &build(BuildOptions { encryption: encryption(), ..BuildOptions::default() }),
    );
    let info = &json_of("info", &path, &[])[0];
    assert_eq!(info["key_id"], "ab".repeat(16));
    assert_eq!(
        (&info["encrypted"], &info["regions"][1]["encrypted"]),
        (&json!(true), &json!(true))
    );
    for args in
        [&["ls"][..], &["cat", "0"], &["digest"], &["edges", "0"], &["find", "--time", ".."]]
    {
        let line = segment(args[0], &path, &args[1..]).error(2);
        assert!(line.contains("is encrypted and needs a key"), "{line}");
    }
    // What can be checked without the key is, and the rest is not called good.
    let run = segment("verify", &path, &[]);
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(!text.contains("good"), "{text}");
    let line = run.error(2);
    let regions = "node region, embedding region, edge region, bloom filter, string table";
    assert!(
        line.contains(&format!("encrypted, not verified: {regions}; pass --key-file")),
        "{line}"
    );
    let run = segment("verify", &path, &["--json"]);
    assert_eq!(run.code, Some(2));
    let report = &json_lines(&String::from_utf8_lossy(&run.stdout))[0];
    assert_eq!((&report["good"], &report["warnings"]), (&json!(false), &json!(5)), "{report}");
    assert_eq!(report["not_verified"].as_array().map(Vec::len), Some(5), "{report}");

    let with = |bytes: &[u8]| {
        let key = write(folder.path(), "other", bytes);
        segment("cat", &path, &["0", "--key-file", key.to_str().expect("the path is UTF-8")])
    };
    let line = with(&[1; 32]).error(1);
    assert!(
        line.contains("cannot be decrypted: the key is wrong or the bytes are damaged"),
        "{line}"
    );
    let line = with(&[1; 31]).error(2);
    assert!(line.ends_with("not a key: 31 bytes, expected 32 bytes or 64 hexadecimal digits"));
    let line = segment("ls", &path, &["--key-file", "/nowhere/key"]).error(2);
    assert!(line.contains("/nowhere/key: No such file"), "{line}");
}

/// Every region has a checksum, so every changed byte is damage, and its region is named.
#[test]
fn every_changed_region_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = BuildOptions { index: true, reverse: true, ..BuildOptions::default() };
    let file = build(options);
    let path = write(folder.path(), "good.tbf", &file);
    let info = json_of("info", &path, &[]).remove(0);
    let regions = info["regions"].as_array().expect("regions is a list");
    assert_eq!(regions.len(), 8);
    let at = |region: &Value| {
        usize::try_from(region["offset"].as_u64().expect("it is a number")).expect("it is small")
    };
    for region in &regions[1..7] {
        let mut damaged = file.clone();
        damaged[at(region) + 13] ^= 1;
        let path = write(folder.path(), "damaged.tbf", &damaged);
        let run = segment("verify", &path, &[]);
        assert_eq!(run.code, Some(1));
        let found = String::from_utf8(run.stdout).expect("the output is UTF-8");
        let name = region["region"].as_str().expect("a name is text");
        let start = format!("damage in {name} at byte {}: checksum of the {name} is ", at(region));
        assert!(found.starts_with(&start), "{found}");
        assert!(run.stderr.contains(": damage in "), "{}", run.stderr);
    }
    // Two regions are two findings.
    let mut damaged = file;
    regions[2..4].iter().for_each(|region| damaged[at(region)] ^= 1);
    let run = segment("verify", &write(folder.path(), "two.tbf", &damaged), &["--json"]);
    let report = &json_lines(str::from_utf8(&run.stdout).expect("it is UTF-8"))[0];
    let findings = report["findings"].as_array().expect("findings is a list");
    let named: BTreeSet<_> = findings.iter().map(|finding| finding["region"].as_str()).collect();
    assert_eq!(named, BTreeSet::from([Some("embedding region"), Some("edge region")]));
}

#[test]
fn damaged_segments_are_survived() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let survives = |bytes: &[u8]| {
        let path = write(folder.path(), "damaged.tbf", bytes);
        for args in [
            &["info"][..],
            &["ls", "--json"],
            &["verify", "--json"],
            &["digest", "--columns"],
            &["find", "--time", "..", "--json"],
            &["find", "--similar", "0"],
            &["edges", "3", "--incoming"],
        ] {
            let run = segment(args[0], &path, &args[1..]);
            let code = run.code.expect("no signal ends it");
            assert!(code <= 2, "{args:?}: {}", run.stderr);
            assert_eq!(run.stderr.lines().count(), usize::from(code > 0), "{}", run.stderr);
        }
    };
    let plain = build(BuildOptions { index: true, reverse: true, ..BuildOptions::default() });
    let packed = BuildOptions { compression: Compression::Lz4, ..BuildOptions::default() };
    for file in [plain, build(packed)] {
        for len in (0..file.len()).step_by(file.len() / 10) {
            survives(&file[..len]);
        }
        for at in (0..128).step_by(9).chain((128..file.len()).step_by(file.len() / 25)) {
            let mut flipped = file.clone();
            flipped[at] ^= 0x80 >> (at % 8);
            survives(&flipped);
        }
    }
}

#[test]
fn a_segment_that_was_not_written_to_its_end_is_described_and_refused() {
    let (_folder, path) = partial();
    let run = segment("info", &path, &["--json"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.ends_with("the segment was not written to its end\n"), "{}", run.stderr);
    let info = &json_lines(str::from_utf8(&run.stdout).expect("it is UTF-8"))[0];
    assert_eq!((&info["partial"], &info["nodes"]), (&json!(true), &json!(COUNT)));
    for args in [&["ls"][..], &["verify"], &["digest"], &["find", "--time", ".."]] {
        let line = segment(args[0], &path, &args[1..]).error(1);
        assert!(line.ends_with("the segment was not written to its end"), "{line}");
    }
}

/// A segment with the partial flag, whose header's checksum is right.
fn partial() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut file = build(BuildOptions::default());
    file[46] |= 1 << 4;
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    let crc = file[..104]
        .iter()
        .fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)));
    file[104..108].copy_from_slice(&(!crc).to_le_bytes());
    let path = write(folder.path(), "partial.tbf", &file);
    (folder, path)
}
