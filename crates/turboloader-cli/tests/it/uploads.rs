//! Files that are written to a store have the bytes of local ones, or are not there.
//!
//! `TL_KILLS` is the number of processes that are killed; 40 by default.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tl_store_server::{Fault, Faults, Service};

use crate::remote::{Store, service};
use crate::support::{finished, json_lines, tar, tl, write};

/// Far longer than anything here takes, on a machine however busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// An archive of images of noise, with more bytes than two parts of an upload have.
pub(crate) fn archive(folder: &Path) -> PathBuf {
    let noise = |seed: u32| -> Vec<u8> {
        let mut state = seed * 2 + 1;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        // A bitmap of 400 x 350 pixels.
        let fields = [420_054_u32, 0, 54, 40, 400, 350, 0x18_0001, 0, 420_000, 0, 0, 0, 0];
        let fields = fields.into_iter().flat_map(u32::to_le_bytes);
        b"BM".iter().copied().chain(fields).chain((0..420_000).map(|_| next())).collect()
    };
    let names: Vec<_> = (0..48_u32).map(|number| format!("{number:03}.bmp")).collect();
    let bytes: Vec<_> = (0..48).map(noise).collect();
    let members: Vec<_> =
        names.iter().zip(&bytes).map(|(name, bytes)| (name.as_bytes(), &bytes[..])).collect();
    write(folder, "train.tar", &tar(&members))
}

pub(crate) fn empty_store() -> Service {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(folder.path(), "there", b"a bucket has an object");
    Arc::into_inner(service(folder.path())).expect("nobody else has it")
}

#[test]
fn conversions_to_a_store_are_those_to_files() {
    let root = tempfile::tempdir().unwrap();
    let source = archive(root.path());
    let source = source.to_str().unwrap();
    let store = Store::new(Arc::new(empty_store()));
    for (command, name) in [
        (&["convert", source][..], "a.tbl"),
        (&["convert", source], "a.tar"),
        (&["convert", source], "a.parquet"),
        (&["convert", source, "--compress", "lz4"], "lz4.tbl"),
        (&["convert", source, "--take", "3"], "small.tbl"),
        (&["merge", source, source], "m.tbl"),
    ] {
        let local = root.path().join(name);
        let url = format!("s3://b/x/{name}");
        let to_file = [command, &["-o", local.to_str().unwrap(), "--quiet"]].concat();
        let to_store = [command, &["-o", &url, "--quiet"]].concat();
        tl(to_file).good();
        store.run(&to_store).good();
        let uploaded = store.service.objects.content(&format!("b/x/{name}")).unwrap();
        assert!(uploaded == std::fs::read(&local).unwrap(), "{name}");
        let refused = store.run(&to_store).error(2);
        assert_eq!(refused, format!("tl: {url}: exists already (-f replaces it)"));
        store.run(&[&to_store[..], &["-f"]].concat()).good();
    }
    assert_eq!(store.service.pending_uploads(), []);
    assert_eq!(
        store.run(&["digest", "s3://b/x/a.tbl"]).text().replace("s3://b/x/", ""),
        tl(["digest", root.path().join("a.tbl").to_str().unwrap()])
            .text()
            .replace(&format!("{}/", root.path().display()), ""),
    );
    let refused = store.run(&["convert", source, "-o", "https://h/a.tbl?sig=planted"]).error(2);
    assert!(refused.contains("web servers are only read") && !refused.contains("planted"));
    let refused = store.run(&["repair", source, "-o", "s3://b/r.tar"]).error(2);
    assert!(refused.contains("only local files are written here"), "{refused}");
}

#[test]
fn the_index_of_shards_comes_last() {
    let root = tempfile::tempdir().unwrap();
    let source = archive(root.path());
    let source = source.to_str().unwrap();
    let store = Store::new(Arc::new(empty_store()));
    let split = |to: &str| {
        ["split", source, "-o", to, "--shards", "3", "--index", "--quiet"].map(str::to_owned)
    };
    let run = |to: &str| {
        let args = split(to);
        store.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let folder = root.path().join("shards");
    tl(split(folder.join("train-{}.tar").to_str().unwrap())).good();
    run("s3://b/y/train-{}.tar").good();
    for name in ["train-00000.tar", "train-00001.tar", "train-00002.tar"] {
        let uploaded = store.service.objects.content(&format!("b/y/{name}")).unwrap();
        assert!(uploaded == std::fs::read(folder.join(name)).unwrap(), "{name}");
    }
    assert!(folder.join("train.tlidx").exists());
    // A second run that does not come to its end: files of more than 50 KiB are refused.
    let to = folder.join("train-{}.tar");
    let limited = Command::new("sh")
        .args(["-c", "ulimit -f 100; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_tl")])
        .args(split(to.to_str().unwrap()))
        .args(["--force"])
        .output()
        .unwrap();
    assert!(!limited.status.success());
    assert!(!folder.join("train.tlidx").exists(), "it says that all shards are there");
    assert!(folder.join("train-00000.tar").exists());
    tl([&split(to.to_str().unwrap())[..], &["--force".to_owned()]].concat()).good();
    let digest = |of: &str| {
        let text = store.run(&["digest", of]).text();
        text.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(
        digest("s3://b/y/train.tlidx"),
        digest(folder.join("train.tlidx").to_str().unwrap())
    );
    // What is in the way is found before anything is written.
    store.service.objects.remove("b/y/train-00000.tar");
    let refused = run("s3://b/y/train-{}.tar").error(2);
    assert_eq!(refused, "tl: s3://b/y/train-00001.tar: exists already (-f replaces it)");
    assert!(store.service.objects.content("b/y/train-00000.tar").is_none());
    let args = ["index", "s3://b/y/train-0000{1..2}.tar", "-o", "s3://b/y/two.tlidx"];
    let made = store.run(&args).text();
    assert!(made.starts_with("s3://b/y/two.tlidx: 2 shards, 32 samples, "), "{made}");
    assert!(store.run(&args).error(2).contains("exists already"));
    let update = store.run(&[&args[..], &["--update"]].concat()).text();
    assert!(update.contains("2 shards (2 unchanged)"), "{update}");
}

/// A store that takes a quarter of a second for the archive.
pub(crate) fn slow() -> Service {
    let mut service = empty_store();
    service.speed.first_byte = Duration::from_millis(10);
    service.speed.rate = 40e6;
    service
}

fn start(store: &Store, source: &Path, url: &str) -> Child {
    // A parent of the tests may have had the signal ignored, which children inherit.
    Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_tl"), "convert", "--quiet"])
        .arg(source)
        .args(["-o", url])
        .args(store.arguments())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tl starts")
}

#[test]
fn killed_processes_leave_no_object() {
    let kills: u32 = std::env::var("TL_KILLS").map_or(40, |kills| kills.parse().unwrap());
    let root = tempfile::tempdir().unwrap();
    let source = archive(root.path());
    let store = Store::new(Arc::new(slow()));
    let begun = Instant::now();
    let whole = finished(start(&store, &source, "s3://b/k.tbl").wait_with_output().unwrap());
    whole.good();
    let time = begun.elapsed();
    let expected = store.service.objects.content("b/k.tbl").unwrap();
    let mut completed = 0;
    for number in 0..kills {
        let name = format!("b/k{number}.tbl");
        let mut child = start(&store, &source, &format!("s3://{name}"));
        // Evenly over the time of a run, and a little longer.
        let deadline = Instant::now() + time.mul_f64(1.1) * number / kills;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            thread::park_timeout(left);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if let Some(object) = store.service.objects.content(&name) {
            assert!(object == expected, "kill {number}");
            completed += 1;
        }
    }
    assert!(completed < kills, "no process was killed in time");
    let listed = |args: &[&str]| {
        let args = [&["rm", "--uploads", "s3://b/k", "--json", "--quiet"], args].concat();
        json_lines(&store.run(&args).text())
    };
    let pending = store.service.pending_uploads().len();
    assert!(pending > 0, "some were killed in the middle");
    // It is 2022 in this store.
    assert_eq!(listed(&["--dry-run"]).len(), 0, "all are new");
    store.service.date_uploads("2021-12-30T00:00:00.000Z");
    assert!(listed(&["--dry-run"]).len() >= pending.min(1));
    assert_eq!(listed(&["--older", "36500d"]).len(), 0, "none is so old");
    let begun = Instant::now();
    while !store.service.pending_uploads().is_empty() {
        assert!(begun.elapsed() < PATIENCE);
        listed(&["--older", "0s"]);
    }
    assert_eq!(store.service.objects.content("b/k.tbl"), Some(expected.clone()));
    // The second try of a process that was killed.
    let absent = (0..kills)
        .find(|number| store.service.objects.content(&format!("b/k{number}.tbl")).is_none());
    let url = format!("s3://b/k{}.tbl", absent.unwrap());
    finished(start(&store, &source, &url).wait_with_output().unwrap()).good();
    assert_eq!(store.service.objects.content(&url["s3://".len()..]), Some(expected));
}

#[test]
fn ctrl_c_ends_the_upload() {
    let root = tempfile::tempdir().unwrap();
    let source = archive(root.path());
    let mut service = empty_store();
    // A part takes 50 s.
    service.speed.rate = 1e5;
    let store = Store::new(Arc::new(service));
    let child = start(&store, &source, "s3://b/k.tbl");
    let begun = Instant::now();
    while store.service.pending_uploads().is_empty() {
        assert!(begun.elapsed() < PATIENCE);
        thread::yield_now();
    }
    let number = child.id().to_string();
    let sent = Command::new("sh").args(["-c", "kill -INT \"$0\"", &number]).status();
    assert!(sent.unwrap().success());
    let message = finished(child.wait_with_output().unwrap()).error(2);
    assert_eq!(message, "tl: s3://b/k.tbl: interrupted, nothing is written");
    assert!(begun.elapsed() < Duration::from_secs(30), "no part is waited for");
    assert_eq!(store.service.pending_uploads(), []);
    assert_eq!(store.service.objects.content("b/k.tbl"), None);
}

#[test]
fn ctrl_c_between_shards_ends_the_command() {
    let root = tempfile::tempdir().unwrap();
    let source = archive(root.path());
    let mut service = empty_store();
    // Most of the time of a shard goes to requests before and after its bytes.
    service.speed.first_byte = Duration::from_millis(40);
    let store = Store::new(Arc::new(service));
    for number in 0..8_u32 {
        let to = format!("s3://b/{number}/k-{{}}.tbl");
        let child = Command::new("env")
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_tl"), "split", "--quiet"])
            .arg(&source)
            .args(["-o", &to, "--shards", "24", "--index"])
            .args(store.arguments())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tl starts");
        let is_there =
            |shard: u32| store.service.objects.content(&format!("b/{number}/k-{shard:05}.tbl"));
        let begun = Instant::now();
        while is_there(0).is_none() {
            assert!(begun.elapsed() < PATIENCE);
            thread::yield_now();
        }
        thread::park_timeout(Duration::from_millis(25 * u64::from(number)));
        let id = child.id().to_string();
        let sent = Command::new("sh").args(["-c", "kill -INT \"$0\"", &id]).status();
        assert!(sent.unwrap().success());
        let message = finished(child.wait_with_output().unwrap()).error(2);
        assert!(message.ends_with(": interrupted, nothing is written"), "{message}");
        assert_eq!(store.service.pending_uploads(), []);
        assert!(is_there(23).is_none());
        assert!(store.service.objects.content(&format!("b/{number}/k.tlidx")).is_none());
    }
}

#[test]
fn a_store_that_refuses_has_its_reason_named() {
    let root = tempfile::tempdir().unwrap();
    let source = archive(root.path());
    let mut service = empty_store();
    service.faults = Faults::Numbered { fault: Fault::Forbidden, first: 2, count: 1 };
    let store = Store::new(Arc::new(service));
    let source = source.to_str().unwrap();
    let refused = store.run(&["convert", source, "-o", "s3://b/k.tbl"]).error(2);
    assert!(
        refused.starts_with("tl: s3://b/k.tbl: status 403 AccessDenied, 1 try in "),
        "{refused}"
    );
    assert!(!refused.contains("planted"), "{refused}");
    assert_eq!(store.service.pending_uploads(), []);
    let usage = tl(["rm", "s3://b/k"]).error(2);
    assert!(usage.contains("--uploads"), "{usage}");
    let other = store.run(&["rm", "--uploads", "gs://b/k", "--store", "bearer_token=x"]).error(2);
    assert!(other.contains("a lifecycle rule of the bucket ends them"), "{other}");
}
