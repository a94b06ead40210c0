//! Commands on files of tokens.

use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::{json_lines, tl, write};

/// A file of 16-bit tokens that count from 0.
fn corpus(folder: &Path, count: u16) -> String {
    let tokens: Vec<u8> = (0..count).flat_map(u16::to_le_bytes).collect();
    let path = write(folder, "corpus.bin", &tokens);
    path.to_str().expect("the path is UTF-8").to_owned()
}

fn run(command: &str, path: &str, more: &[&str]) -> crate::support::Run {
    let tokens = ["--tokens", "u16", "--sequence-length", "8"];
    tl([command, path].into_iter().chain(tokens).chain(more.iter().copied()))
}

#[test]
fn info_states_type_and_number_without_documents() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = corpus(folder.path(), 100);
    let info: Value = json_lines(&run("info", &path, &["--json"]).text()).remove(0);
    assert_eq!((&info["kind"], &info["samples"]), (&"tokens".into(), &12.into()));
    let expected = serde_json::json!({
        "format": "raw tokens", "type": "u16", "count": 100, "documents": null
    });
    assert_eq!(info["tokens"], expected);
    let text = run("info", &path, &[]).text();
    assert!(text.contains("tokens       100 of u16, raw tokens"), "{text}");
    let index = write(folder.path(), "corpus.idx", &index(&[60, 40]));
    let index = index.to_str().expect("the path is UTF-8");
    let info = tl(["info", index, "--tokens", "auto", "--documents", "pad", "--json"]).text();
    let info: Value = json_lines(&info).remove(0);
    assert_eq!((&info["tokens"]["documents"], &info["samples"]), (&2.into(), &2.into()));
}

#[test]
fn files_of_other_libraries_are_described() {
    let written = tl_testdata::shipped!("tokens");
    let info = |name: &str, more: &[&str]| -> Vec<Value> {
        let path = written.join(name);
        let path = path.to_str().expect("the path is UTF-8");
        let arguments = ["info", path, "--tokens", "auto", "--sequence-length", "20", "--json"];
        json_lines(&tl(arguments.into_iter().chain(more.iter().copied())).text())
    };
    let chunks = info("litdata_array", &[]);
    // One line for each file, and one for all.
    assert_eq!(chunks.len(), 7);
    let expected =
        serde_json::json!({"format": "litdata", "type": "u16", "count": 173, "documents": 6});
    assert_eq!(chunks[0]["tokens"], expected);
    let shards = info("mds_several", &["--token-column", "tokens", "--documents", "pad"]);
    assert_eq!((shards.len(), &shards[0]["tokens"]["documents"]), (4, &11.into()));
    let order = written.join("megatron/train");
    let order = order.to_str().expect("the path is UTF-8");
    let ordered = info("megatron/corpus.bin", &["--megatron-order", order]);
    assert_eq!(ordered[0]["samples"], 60);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = corpus(folder.path(), 100);
    let ends = run("info", &path, &["--json", "--end-token", "59", "--documents", "pad"]);
    assert_eq!(json_lines(&ends.text())[0]["tokens"]["documents"], 2);
}

/// An index of Megatron-LM.
fn index(lengths: &[i32]) -> Vec<u8> {
    let count = (lengths.len() as u64).to_le_bytes();
    let mut index = [&b"MMIDIDX\0\0"[..], &1u64.to_le_bytes(), &[8], &count, &[0; 8]].concat();
    index.extend(lengths.iter().flat_map(|length| length.to_le_bytes()));
    let mut start = 0i64;
    for &length in lengths {
        index.extend(start.to_le_bytes());
        start += 2 * i64::from(length);
    }
    index
}

#[test]
fn ls_digest_and_bench_see_windows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = corpus(folder.path(), 50);
    let listed = json_lines(&run("ls", &path, &["--json"]).text());
    assert_eq!(listed.len(), 6);
    assert_eq!((&listed[2]["offset"], &listed[2]["bytes"]), (&32.into(), &18.into()));
    let mut samples = Sha256::new();
    let mut rows = Sha256::new();
    for window in 0..6_u64 {
        let first = u16::try_from(window).expect("it is small") * 8;
        let tokens: Vec<u16> = (first..=first + 8).collect();
        let stored: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
        let head = [window.to_le_bytes(), [0xff; 8], i64::MIN.to_le_bytes()].concat();
        samples.update([head, (stored.len() as u64).to_le_bytes().to_vec(), stored].concat());
        tokens.iter().for_each(|&token| rows.update(i64::from(token).to_le_bytes()));
    }
    let hex = |hash: Sha256| -> String {
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    };
    assert!(run("digest", &path, &[]).text().contains(&hex(samples)));
    (0..6).for_each(|_| rows.update((-1_i64).to_le_bytes()));
    (0..6_u64).for_each(|window| rows.update(window.to_le_bytes()));
    let more = ["--recipe", "tokens", "--shuffle", "none", "--seconds", "0", "--digest", "--json"];
    let bench: Value = json_lines(&run("bench", &path, &more).text()).remove(0);
    assert_eq!(bench["digest"], hex(rows));
    assert_eq!(bench["recipe"], "tokens");
}

#[test]
fn files_of_tokens_are_refused_by_name_where_they_do_not_fit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = corpus(folder.path(), 50);
    let fails = |arguments: &[&str], expected: &str| {
        let run = tl(arguments.iter().copied());
        assert_ne!(run.code, Some(0), "{arguments:?}");
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    };
    fails(&["info", &path, "--tokens", "auto"], "for raw tokens pass their type");
    fails(&["info", &path], "raw tokens are read with `--tokens u16`, in Python by");
    let index = write(folder.path(), "other.idx", &index(&[60, 40]));
    let index = index.to_str().expect("the path is UTF-8");
    fails(
        &["info", index],
        "an index of Megatron-LM, expected a TAR archive or a TBL file: its tokens",
    );
    fails(
        &["info", &path, "--tokens", "u16", "--end-token", "70000"],
        "token 70000 does not fit u16",
    );
    fails(&["info", &path, "--end-token", "3"], "--tokens <TYPE>");
    fails(&["info", &path, "--tokens", "f32"], "expected auto or one of u8, i8, u16");
    fails(&["info", &path, "--tokens", "u16", "--documents", "pad"], "no documents");
    fails(
        &["doctor", &path, "--recipe", "raw", "--tokens", "u16"],
        "--tokens does not go with doctor",
    );
}
