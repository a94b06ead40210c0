//! TBF segments that `tl` writes, merges, compacts and searches.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{finished, json_lines, tl, write};

const A: &str = "00000000-0000-0000-0000-00000000000a";
const B: &str = "00000000-0000-0000-0000-00000000000b";
const C: &str = "00000000-0000-0000-0000-00000000000c";

fn nodes(rows: &[&str]) -> String {
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    format!("id,timestamp,outcome_status,embedding.0,embedding.1,text\n{rows}")
}

/// Makes a segment of rows of a CSV file.
fn segment(folder: &Path, name: &str, rows: &[&str], options: &[&str]) -> String {
    let source = write(folder, "nodes.csv", nodes(rows).as_bytes());
    let path = folder.join(name).to_str().expect("the path is UTF-8").to_owned();
    let source = source.to_str().expect("the path is UTF-8");
    tl([&["convert", source, "-o", &path, "-q"], options].concat()).text();
    path
}

#[test]
fn a_table_and_its_edges_become_a_segment_and_a_table_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let edges = format!("source,target,relation,weight\n{A},{B},retry,0.5\n{B},{A},causal,2\n");
    let edges = write(folder.path(), "edges.csv", edges.as_bytes());
    let edges = edges.to_str().expect("the path is UTF-8");
    let rows = [&*format!("{A},5,success,0.5,-1,\"x, y\""), &*format!("{B},0,pending,0.25,3,")];
    let options = ["--edges", edges, "--dtype", "f16", "--compress", "zstd", "--reverse"];
    let path = segment(folder.path(), "a.tbf", &rows, &options);
    assert_eq!(json_lines(&tl(["verify", &path, "--json"]).text())[0]["good"], true);
    let node = &json_lines(&tl(["cat", &path, A]).text())[0];
    assert_eq!(node["timestamp"], 5);
    assert_eq!(node["outcome_status"], "success");
    assert_eq!(node["embedding"], serde_json::json!([0.5, -1.0]));
    assert_eq!(node["text"], "x, y");
    let found = json_lines(&tl(["edges", &path, "0", "--json"]).text());
    assert_eq!((&found[0]["row"], &found[0]["relation"]), (&1.into(), &"retry".into()));
    let parquet = folder.path().join("a.parquet");
    let again = folder.path().join("b.tbf");
    tl(["convert".as_ref(), "-q".as_ref(), path.as_ref(), "-o".as_ref(), parquet.as_os_str()])
        .text();
    let back =
        ["convert".as_ref(), "-q".as_ref(), parquet.as_os_str(), "-o".as_ref(), again.as_os_str()];
    tl(back.into_iter().chain(["--dtype".as_ref(), "f16".as_ref()])).text();
    let digest =
        |path: &Path| tl(["digest".as_ref(), path.as_os_str(), "--columns".as_ref()]).text();
    assert_eq!(digest(&again), digest(path.as_ref()));
}

#[test]
fn what_segments_do_not_have_is_named_and_no_file_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |text: &str, options: &[&str], expected: &str| {
        let source = write(folder.path(), "x.csv", text.as_bytes());
        let output = folder.path().join("x.tbf");
        let args = ["convert".as_ref(), source.as_os_str(), "-o".as_ref(), output.as_os_str()];
        let run = tl(args.into_iter().chain(options.iter().map(|option| option.as_ref())));
        assert!(run.code != Some(0) && run.stderr.contains(expected), "{}", run.stderr);
        assert!(!output.exists());
    };
    check("uuid\n1\n", &[], "column \"uuid\" has no place in a segment");
    check("timestamp\n1\n", &[], "no column \"id\", which nodes need");
    check(&format!("uuid\n{A}\n{A}\n"), &["--nodes", "id=uuid"], "nodes 0 and 1 have the same id");
    check("id\nabc\n", &[], "column \"id\", row 0: invalid value \"abc\", expected a UUID");
    check(&format!("id,outcome_status\n{A},7\n{B},256\n"), &[], "row 1: invalid value 256");
    check(&format!("id,outcome_status\n{A},done\n"), &[], "row 0: invalid value \"done\"");
    check(&format!("id\n{A}\n"), &["--compress", "zstd:9"], "of the default level");
    let edges = write(folder.path(), "e.csv", format!("source,target\n{A},{C}\n").as_bytes());
    let edges = ["--edges", edges.to_str().expect("the path is UTF-8")];
    check(
        &format!("id\n{A}\n"),
        &edges,
        &format!("column \"target\", row 0: no node has the id {C}"),
    );
}

#[test]
fn a_folder_of_segments_is_read_searched_and_compacted() {
    let folder = tempfile::tempdir().expect("a folder");
    let parts = folder.path().join("parts");
    fs::create_dir(&parts).expect("a folder is made");
    let row = |id: &str, text: &str| format!("{id},1,pending,1,2,{text}");
    let first = [&*row(A, "old"), &*row(B, "old")];
    segment(folder.path(), "parts/1.tbf", &first, &[]);
    let second = segment(folder.path(), "parts/2.tbf", &[&*row(B, "new"), &*row(C, "new")], &[]);
    let parts = parts.to_str().expect("the path is UTF-8");
    let find = |id: &str| json_lines(&tl(["find", parts, "--id", id, "--json"]).text()).remove(0);
    assert_eq!(find(B)["text"], "new");
    assert_eq!(find(B)["file"], *second);
    assert_eq!(find(A)["text"], "old");
    let message = tl(["find", parts, "--id", "00000000-0000-0000-0000-00000000000d"]).error(2);
    assert!(message.contains("no node has the id"), "{message}");
    tl(["find", parts, "--time", "0..5"]).error(2);
    let message = tl(["compact", parts, "--no-sync"]).error(2);
    assert!(message.contains("--no-sync"), "{message}");
    let note = tl(["compact", parts]).stderr;
    assert!(note.contains("3 nodes and 0 edges of 2 segments"), "{note}");
    assert_eq!(fs::read_dir(parts).expect("the folder is readable").count(), 1);
    assert_eq!(find(B)["text"], "new");
    assert_eq!(json_lines(&tl(["info", &second, "--json"]).text())[0]["nodes"], 3);
    let merged = folder.path().join("merged.tbf");
    let merged = merged.to_str().expect("the path is UTF-8");
    tl(["merge", parts, "-o", merged, "-q"]).text();
    assert_eq!(
        tl(["digest", merged, "--columns"]).text(),
        tl(["digest", &second, "--columns"]).text()
    );
}

#[test]
fn merges_write_what_the_destination_is_named_after() {
    let folder = tempfile::tempdir().expect("a folder");
    let row = |id: &str| format!("{id},1,pending,1,2,x");
    let a = segment(folder.path(), "a.tbf", &[&*row(A)], &[]);
    let b = segment(folder.path(), "b.tbf", &[&*row(B)], &[]);
    let at = |name: &str| folder.path().join(name).to_str().expect("it is UTF-8").to_owned();
    for name in ["nodes.parquet", "nodes.tbl", "nodes.tar"] {
        let message = tl(["merge", &a, &b, "-o", &at(name)]).error(2);
        assert!(message.contains("destination named *.tbf"), "{message}");
        assert!(!Path::new(&at(name)).exists());
    }
    tl(["merge", &a, &b, "-o", &at("nodes"), "-q"]).text();
    assert_eq!(json_lines(&tl(["info", &at("nodes"), "--json"]).text())[0]["nodes"], 2);

    // A segment among images: the images are merged, as the loader takes the folder.
    let image = tl_testdata::shipped_bytes!("jpeg/optimised.jpg");
    for class in ["cat", "dog"] {
        fs::create_dir_all(at(&format!("photos/{class}"))).expect("a folder is made");
        write(Path::new(&at("photos")), &format!("{class}/1.jpg"), image);
    }
    fs::copy(&a, at("photos/features.tbf")).expect("it is copied");
    tl(["merge", &at("photos"), "-o", &at("train.tbl"), "-q"]).text();
    assert_eq!(json_lines(&tl(["info", &at("train.tbl"), "--json"]).text())[0]["samples"], 2);
    let message = tl(["merge", &at("photos"), "-o", &at("train.tbf")]).error(2);
    assert!(message.contains("cat: not a TBF segment"), "{message}");
    let message = tl(["compact", &at("photos")]).error(2);
    assert!(message.contains("cat: not a TBF segment"), "{message}");
}

#[test]
fn more_segments_than_descriptors_are_compacted() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = [&*format!("{A},1,pending,1,2,x"), &*format!("{B},1,pending,1,2,y")];
    let first = segment(folder.path(), "000.tbf", &rows, &[]);
    fs::create_dir(folder.path().join("parts")).expect("a folder is made");
    for number in 0..60 {
        let part = folder.path().join(format!("parts/{number:03}.tbf"));
        fs::copy(&first, part).expect("it is copied");
    }
    let tl = env!("CARGO_BIN_EXE_tl");
    let script = format!("ulimit -n 40; exec {tl} compact parts");
    let run = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output();
    let note = finished(run.expect("sh starts"));
    assert_eq!(note.code, Some(0), "{}", note.stderr);
    assert!(note.stderr.contains("2 nodes and 0 edges of 60 segments"), "{}", note.stderr);
    assert!(note.stderr.contains("left out: 118 nodes"), "{}", note.stderr);
}

#[test]
fn options_of_a_converted_segment_are_applied() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "many equal words ".repeat(40);
    let row = |id: &str| format!("{id},1,pending,1,2,{text}");
    let key = write(folder.path(), "key", &[7; 32]);
    let key = key.to_str().expect("the path is UTF-8");
    let options = ["--compress", "zstd", "--segment-id", "10", "--reverse", "--key-file", key];
    let a = segment(folder.path(), "a.tbf", &[&*row(A), &*row(B)], &options);
    let b = folder.path().join("b.tbf");
    let b = b.to_str().expect("the path is UTF-8");
    let info = |options: &[&str]| {
        tl([&["convert", &a, "-o", b, "-q", "-f", "--key-file", key], options].concat()).text();
        let found = json_lines(&tl(["info", b, "--json"]).text()).remove(0);
        (found["segment_id"].clone(), found["compression"].clone(), found["regions"].to_string())
    };
    let bytes = |path: &str| fs::read(path).expect("the file is readable");
    assert_eq!((info(&[]).0, info(&[]).1), (10.into(), "zstd".into()));
    assert_eq!(info(&["--segment-id", "3"]).0, 3);
    assert_eq!(info(&["--compress", "none"]).1, "none");
    assert!(info(&["--index"]).2.contains("index") && !info(&["--no-index"]).2.contains("index"));
    let has_text = |path: &str| bytes(path).windows(16).any(|part| part == b"many equal words");
    info(&["--compress", "none"]);
    assert!(!has_text(b));
    info(&["--compress", "none", "--decrypt"]);
    assert!(has_text(b));
    tl(["verify", b]).text();
}
