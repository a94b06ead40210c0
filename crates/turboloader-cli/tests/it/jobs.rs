//! Jobs over many shards: `tl convert --each`, `tl verify --each` and `tl stats`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::remote::Store;
use crate::support::{command, files_below, finished, json_lines, photos, tl, write};
use crate::uploads::{archive, empty_store, slow};

/// Archives of the photographs, of which `damaged` have one that is cut off.
fn archives(folder: &Path, count: usize, damaged: &[usize]) -> Vec<String> {
    let whole = folder.join("whole.tar");
    let args = [photos().as_os_str(), "-o".as_ref(), whole.as_os_str()].map(OsStr::to_owned);
    tl(["convert".into(), "--quiet".into()].into_iter().chain(args)).good();
    let bytes = fs::read(&whole).expect("it was written");
    fs::remove_file(whole).expect("it is there");
    let numbered = |number: usize| {
        let len = if damaged.contains(&number) { 100_000 } else { bytes.len() };
        let path = write(folder, &format!("train-{number}.tar"), &bytes[..len]);
        path.to_str().expect("a path in UTF-8").to_owned()
    };
    (0..count).map(numbered).collect()
}

fn job<'a>(words: &[&'a str], shards: &'a [String], options: &[&'a str]) -> Vec<&'a str> {
    let shards: Vec<&str> = shards.iter().map(String::as_str).collect();
    [words, &shards, options, &["--quiet"]].concat()
}

/// The record of a file in the folder of a conversion.
fn record_of(output: &str, name: &str) -> PathBuf {
    let records = fs::read_dir(format!("{output}/_records")).expect("a folder of records");
    let mut records = records.map(|entry| entry.expect("a record").path());
    let has_name = |path: &PathBuf| {
        let file = path.file_name().and_then(OsStr::to_str);
        file.is_some_and(|file| file.starts_with(name))
    };
    records.find(has_name).expect("the record of a shard")
}

#[test]
fn each_shard_is_worked_on_by_itself() {
    let root = tempfile::tempdir().unwrap();
    let shards = archives(root.path(), 5, &[]);
    let output = root.path().join("out");
    let output = output.to_str().unwrap();
    let report = root.path().join("report.jsonl");
    let to = ["-o", output, "--report", report.to_str().unwrap(), "--to", "tbl2"];
    tl(job(&["convert", "--each"], &shards, &[&to[..], &["-j", "3"]].concat())).good();
    for (number, shard) in shards.iter().enumerate() {
        let alone = root.path().join("alone.tbl");
        let alone = alone.to_str().unwrap();
        tl(["convert", shard, "-o", alone, "--force", "--quiet"]).good();
        let made = format!("{output}/train-{number}.tbl");
        assert!(fs::read(made).unwrap() == fs::read(alone).unwrap());
    }
    let first = fs::read(&report).unwrap();
    let modified = |number: usize| {
        fs::metadata(format!("{output}/train-{number}.tbl")).unwrap().modified().unwrap()
    };
    let before = [0, 1].map(modified);
    fs::remove_file(record_of(output, "train-1.tbl")).unwrap();
    let refused = tl(job(&["convert", "--each"], &shards, &to));
    assert!(refused.code == Some(2) && refused.stderr.contains("--force"), "{}", refused.stderr);
    let to = [&to[..], &["--force"]].concat();
    tl(job(&["convert", "--each"], &shards, &[&to[..], &["-j", "1"]].concat())).good();
    assert_eq!(modified(0), before[0], "it has a record");
    assert_ne!(modified(1), before[1]);
    assert!(fs::read(&report).unwrap() == first);
    let lines = json_lines(&String::from_utf8(first).unwrap());
    assert_eq!(lines.len(), 6);
    assert_eq!([&lines[5]["shards"], &lines[5]["samples"]], [5, 60]);
}

#[test]
fn shards_that_are_not_good_are_named_at_the_end() {
    let root = tempfile::tempdir().unwrap();
    let mut shards = archives(root.path(), 3, &[1]);
    let output = root.path().join("out");
    let output = output.to_str().unwrap();
    let records = root.path().join("records");
    let records = ["--records", records.to_str().unwrap()];
    for (words, options) in [
        (&["convert", "--each"][..], &["-o", output][..]),
        (&["verify", "--each"], &records),
        (&["stats"], &records),
    ] {
        let run = tl(job(words, &shards, options));
        let lines: Vec<_> = run.stderr.lines().collect();
        assert_eq!((run.code, lines.len()), (Some(1), 2), "{words:?}: {}", run.stderr);
        let says = format!("tl: 1 of 3 shards are damaged, 0 failed, the first: {}", shards[1]);
        assert!(lines[0].contains(&shards[1]) && lines[1].starts_with(&says), "{lines:?}");
    }
    assert!(fs::exists(format!("{output}/train-2.tbl")).unwrap());
    assert!(!fs::exists(format!("{output}/train-1.tbl")).unwrap());
    shards[1] = root.path().join("missing.tar").to_str().unwrap().to_owned();
    let run = tl(job(&["verify", "--each", "--json"], &shards, &records));
    assert_eq!(run.code, Some(2));
    let totals = &json_lines(std::str::from_utf8(&run.stdout).unwrap())[0];
    assert_eq!([&totals["good"], &totals["failed"]], [2, 1]);
    let refused = tl(job(&["verify"], &shards, &records)).error(2);
    assert!(refused.contains("pass --each"), "{refused}");
    for option in [
        &["--take", "3"][..],
        &["--image-column", "photo"],
        &["--root", output],
        &["--dense-categories"],
        &["--class-per-archive"],
        &["--columns", "a"],
    ] {
        let options = [&["-o", output][..], option].concat();
        tl(job(&["convert", "--each"], &shards, &options)).error(2);
    }
    tl(job(&["verify", "--each"], &shards, &["--key-file", output])).error(2);
    tl(job(&["stats"], &shards, &["--label-column", "class"])).error(2);
}

#[test]
fn figures_of_shards_are_printed() {
    let root = tempfile::tempdir().unwrap();
    let shards = archives(root.path(), 2, &[]);
    let text = tl(job(&["stats"], &shards, &[])).text();
    assert!(text.starts_with("samples 24, bytes ") && text.contains("\nmean (0.4"), "{text}");
    assert!(text.contains("\nclasses: animals 4, "), "{text}");
    let json = tl(job(&["stats", "--json"], &shards, &["-j", "2"])).text();
    let totals = &json_lines(&json)[0];
    assert_eq!(totals["statistics"]["images"], 24);
}

/// A job that converts large archives into a store, and its shards.
fn start(store: &Store, shards: &[String]) -> Child {
    let args = job(&["convert", "--each"], shards, &["-o", "s3://b/out", "-j", "2"]);
    let mut command = command(args.into_iter().chain(store.arguments()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("tl starts")
}

#[test]
fn killed_jobs_have_the_files_of_one_that_was_not() {
    let kills: u32 = std::env::var("TL_KILLS").map_or(12, |kills| kills.parse().unwrap());
    let root = tempfile::tempdir().unwrap();
    let first = archive(root.path());
    let copy = |number: usize| -> PathBuf {
        let path = root.path().join(format!("large-{number}.tar"));
        fs::copy(&first, &path).unwrap();
        path
    };
    let shards: Vec<String> =
        (0..4).map(|number| copy(number).to_str().unwrap().to_owned()).collect();
    let local = root.path().join("out");
    tl(job(&["convert", "--each"], &shards, &["-o", local.to_str().unwrap()])).good();
    let expected = fs::read(local.join("large-0.tbl")).unwrap();
    let begun = Instant::now();
    let store = Store::new(Arc::new(slow()));
    start(&store, &shards).wait().unwrap();
    let time = begun.elapsed();
    let mut left = 0;
    for number in 0..kills {
        let store = Store::new(Arc::new(slow()));
        let mut child = start(&store, &shards);
        thread::sleep(time.mul_f64(0.9) * number / kills);
        child.kill().unwrap();
        child.wait().unwrap();
        left += store.service.pending_uploads().len();
        let run = store.run(&job(&["convert", "--each"], &shards, &["-o", "s3://b/out"]));
        run.good();
        for number in 0..4 {
            let made = store.service.objects.content(&format!("b/out/large-{number}.tbl"));
            assert!(made.unwrap() == expected, "kill {number}");
        }
        let begun = Instant::now();
        // The request that begins an upload may arrive after the process that sent it is gone.
        while !store.service.pending_uploads().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            store.run(&job(&["convert", "--each"], &shards, &["-o", "s3://b/out"])).good();
        }
    }
    assert!(left > 0, "some were killed in the middle of uploads");
}

#[test]
fn ctrl_c_ends_a_job_that_continues_later() {
    let root = tempfile::tempdir().unwrap();
    let first = archive(root.path());
    let mut service = empty_store();
    // A part takes 50 s.
    service.speed.rate = 1e5;
    let store = Store::new(Arc::new(service));
    let shards = [first.to_str().unwrap().to_owned()];
    let args = job(&["convert", "--each"], &shards, &["-o", "s3://b/out"]);
    // A parent of the tests may have had the signal ignored, which children inherit.
    let child = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_tl")])
        .args(args.into_iter().chain(store.arguments()))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while store.service.pending_uploads().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(120));
        thread::yield_now();
    }
    let number = child.id().to_string();
    assert!(
        Command::new("sh").args(["-c", "kill -INT \"$0\"", &number]).status().unwrap().success()
    );
    let message = finished(child.wait_with_output().unwrap()).error(2);
    assert_eq!(message, "tl: stopped after 0 of 1 shards; the same command continues");
    assert_eq!(store.service.pending_uploads(), []);
    assert_eq!(files_below(root.path()).len(), 1, "nothing but the source");
}
