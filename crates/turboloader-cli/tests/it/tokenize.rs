//! `tl tokenize` on lines, tables and objects.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::remote::{Store, service};
use crate::support::{json_lines, tl, write};

fn data(name: &str) -> String {
    let path = tl_testdata::shipped!("").join(name);
    path.to_str().expect("the path is UTF-8").to_owned()
}

/// The arguments that name the tokenizer and the output.
fn options(output: &Path) -> Vec<String> {
    let output = output.to_str().expect("the path is UTF-8");
    let tokenizer = data("text/bpe.json");
    ["-q", "--tokenizer", &tokenizer, "--end-token", "<|endoftext|>", "-o", output]
        .map(str::to_owned)
        .to_vec()
}

fn run(source: &str, output: &Path, more: &[&str]) -> crate::support::Run {
    let more = more.iter().map(|&arg| arg.to_owned());
    tl(["tokenize".to_owned(), source.to_owned()].into_iter().chain(options(output)).chain(more))
}

fn files(output: &Path) -> [Vec<u8>; 2] {
    ["bin", "idx"].map(|end| fs::read(output.with_extension(end)).expect("both files exist"))
}

#[test]
fn the_output_is_megatrons_and_opens_as_tokens() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = folder.path().join("a.bin");
    let report = json_lines(&run(&data("text/texts.jsonl"), &output, &["--json"]).text()).remove(0);
    let expected = serde_json::json!({
        "schema": "tl.tokenize/1", "output": output, "documents": 101, "tokens": 10615,
        "type": "u16", "skipped": 0, "files": 1, "bytes": 23292
    });
    assert_eq!(report, expected);
    let theirs = ["bin", "idx"].map(|end| fs::read(data(&format!("text/megatron.{end}"))).unwrap());
    assert!(files(&output) == theirs);
    let output = output.to_str().expect("the path is UTF-8");
    let info = tl(["info", output, "--tokens", "auto", "--documents", "pad", "--json"]).text();
    let info: Value = json_lines(&info).remove(0);
    assert_eq!(
        (&info["tokens"]["documents"], &info["tokens"]["count"]),
        (&101.into(), &10_615.into())
    );
    let raw = folder.path().join("raw.bin");
    run(&data("text/texts.jsonl"), &raw, &["--to", "raw", "-j", "3"]).good();
    assert!(fs::read(raw).unwrap() == theirs[0]);
    assert!(!folder.path().join("raw.idx").exists());
}

#[test]
fn columns_and_objects_give_the_same_tokens_as_lines() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let facts = fs::read_to_string(data("parquet/expected.json")).unwrap();
    let facts: Value = serde_json::from_str(&facts).unwrap();
    // Some rows have none.
    let captions = facts["polars"]["captions"].as_array().expect("captions").iter();
    let captions = captions.filter(|caption| !caption.is_null());
    let lines: String =
        captions.map(|text| format!("{}\n", serde_json::json!({"text": text}))).collect();
    assert_eq!(lines.lines().count(), 9);
    let lines = write(folder.path(), "lines.jsonl", lines.as_bytes());
    run(lines.to_str().unwrap(), &path("lines.bin"), &[]).good();
    let expected = files(&path("lines.bin"));
    for name in ["pyarrow_default", "pyarrow_brotli", "polars", "duckdb_2", "datasets_5_2"] {
        let output = path(&format!("{name}.bin"));
        let parquet = data(&format!("parquet/{name}.parquet"));
        let skipped = run(&parquet, &output, &["--field", "caption", "--on-error", "skip"]);
        assert!(skipped.stderr.contains("3 of 12 texts were left out"), "{}", skipped.stderr);
        assert!(files(&output) == expected, "{name}");
    }
    let store = Store::new(service(folder.path()));
    for url in ["s3://b/lines.jsonl", "s3://b/*.jsonl"] {
        let output = path("object.bin");
        let args = options(&output);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        store.run(&[&["tokenize", url, "-f"], &*args].concat()).good();
        assert!(files(&output) == expected, "{url}");
    }
    let error = run(&data("parquet/polars.parquet"), &path("x.bin"), &[]).error(2);
    assert!(error.contains("no column text, the columns are"), "{error}");
}

#[test]
fn bad_texts_and_names_are_errors() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let lines = write(folder.path(), "a.jsonl", b"{\"text\": \"a\"}\n{\"text\": null}\n");
    let lines = lines.to_str().unwrap();
    let error = run(lines, &path("a.bin"), &[]).error(1);
    assert!(
        error.contains("a.jsonl: at byte 26: line 2, column `text`: invalid type: null"),
        "{error}"
    );
    assert!(!path("a.bin").exists());
    let skipped = run(lines, &path("a.bin"), &["--on-error", "skip", "--json"]);
    assert_eq!(skipped.code, Some(0));
    assert!(skipped.stderr.contains("left out: ") && skipped.stderr.contains("1 of 2 texts"));
    assert_eq!(files(&path("a.bin"))[0].len(), 4);
    let error = run(lines, &path("a.bin"), &[]).error(2);
    assert!(error.contains("a.bin: exists already (-f replaces it)"), "{error}");
    let error = run(lines, &path("b.bin"), &["--end-token", "nothing"]);
    assert_eq!(error.code, Some(2), "given twice");
    let arguments = ["tokenize", lines, "-o", "b.bin", "--tokenizer", &data("text/bpe.json")];
    let error = tl(arguments.iter().copied().chain(["--end-token", "600"])).error(2);
    assert!(error.contains("no token `600`, expected a name or a number"), "{error}");
    let arguments = ["tokenize", lines, "-o", "b.bin", "--tokenizer", lines];
    let error = tl(arguments).error(1);
    assert!(error.contains("not a tokenizer of Hugging Face"), "{error}");
    let nulls =
        run(&data("parquet/pyarrow_nulls.parquet"), &path("n.bin"), &["--field", "caption"]);
    let error = nulls.error(1);
    assert!(error.contains("pyarrow_nulls.parquet: sample 3"), "{error}");
}

#[test]
fn commands_read_texts_and_their_index() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lines = folder.path().join("texts.jsonl");
    fs::copy(data("text/texts.jsonl"), &lines).expect("the texts can be copied");
    let lines = lines.to_str().expect("the path is UTF-8");
    let tokenizer = data("text/bpe.json");
    let texts = ["--tokens", "auto", "--tokenizer", &tokenizer, "--end-token", "<|endoftext|>"];
    let run = |command: &str, more: &[&str]| {
        tl([command, lines].iter().chain(&texts).chain(more).copied())
    };
    let bench = ["--recipe", "tokens", "--shuffle", "none", "--seconds", "0", "--digest", "--json"];
    let digest = |run: crate::support::Run| json_lines(&run.text())[0]["digest"].clone();
    let before = digest(run("bench", &bench));
    let indexed = json_lines(&tl(["index", lines, "--json"]).text()).remove(0);
    assert_eq!((&indexed["shards"], &indexed["samples"]), (&1.into(), &101.into()));
    assert_eq!(indexed["output"], format!("{lines}.tlidx"));
    assert_eq!(digest(run("bench", &bench)), before);
    let info = json_lines(&run("info", &["--json"]).text()).remove(0);
    assert_eq!((&info["samples"], &info["tokens"]["format"]), (&101.into(), &"texts".into()));
    assert_eq!(info["tokens"]["count"], Value::Null);
    assert!(run("info", &[]).text().contains("tokens       of u16, made of texts"));
    assert_eq!(json_lines(&run("ls", &["--json"]).text()).len(), 101);
    let output = folder.path().join("a.bin");
    let output = output.to_str().expect("the path is UTF-8");
    tl(["tokenize", lines, "-q", "-o", output].iter().chain(&texts[2..]).copied()).good();
    let of_tokens = ["--tokens", "auto", "--documents", "pad", "--sequence-length", "2048"];
    let cat = |path: &str, options: &[&str]| tl(["cat", path, "7"].iter().chain(options).copied());
    assert_eq!(cat(lines, &texts).good(), cat(output, &of_tokens).good());
    let missing = ["info", lines, "--tokens", "auto", "--end-token", "</s>"];
    assert!(tl(missing).error(2).contains("end token `</s>`: names need a tokenizer"));
    let other = run("info", &["--text-field", "body"]);
    assert_eq!(other.code, Some(0), "{}", other.stderr);
    let packed = run("info", &["--documents", "best-fit"]).error(2);
    assert!(packed.contains("write them first, with `tl tokenize`"), "{packed}");
    let folder = folder.path().to_str().expect("the path is UTF-8");
    assert!(tl(["index", folder]).error(2).contains("pass --output"));
}
