//! `convert`, `merge`, `split`, `verify`, `repair` and `tar_to_tbl`, as a user runs them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tbl_format::SampleFormat;
use tbl_io::{NewSample, StreamWriter, WriteOptions};

use crate::support::{files_below, finished, json_lines, photos, tar, tl, write};

/// An archive of the photographs, in class folders.
fn archive(folder: &Path) -> PathBuf {
    let mut files = files_below(&photos());
    files.retain(|(name, _)| name.contains('/'));
    assert!(files.len() > 10, "the photographs exist");
    let members: Vec<_> =
        files.iter().map(|(name, bytes)| (name.as_bytes(), bytes.as_slice())).collect();
    write(folder, "in.tar", &tar(&members))
}

fn digest(path: &Path) -> String {
    tl([Path::new("digest"), path]).text()
}

fn convert(from: &Path, to: &Path, options: &[&str]) {
    let mut args = vec!["convert".into(), from.to_owned(), "-o".into(), to.to_owned()];
    args.extend(options.iter().chain(&["-q"]).map(PathBuf::from));
    tl(args).good();
}

#[test]
fn a_conversion_ends_with_one_line_unless_told_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.tbl");
    let input = archive(folder.path());
    let run = tl([Path::new("convert"), &input, Path::new("-o"), &output]);
    assert_eq!((run.code, run.stdout.as_slice()), (Some(0), &b""[..]));
    let line = run.stderr.strip_prefix(&format!("tl: {}: 12 samples, ", output.display()));
    let bytes = fs::metadata(&output).unwrap().len().to_string();
    let rest = line.and_then(|line| line.strip_prefix(&bytes)).unwrap_or(&run.stderr);
    let seconds = rest.strip_prefix(" bytes, ").and_then(|rest| rest.strip_suffix(" s\n"));
    assert!(seconds.is_some_and(|seconds| seconds.parse::<f64>().is_ok()), "{}", run.stderr);
}

#[test]
fn more_shards_than_descriptors_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(archive(folder.path())).unwrap();
    for shard in 0..60 {
        write(folder.path(), &format!("{shard:02}.tar"), &bytes);
    }
    let tl = env!("CARGO_BIN_EXE_tl");
    let script = format!("ulimit -Sn 40; exec {tl} merge [0-9]*.tar -o out.tbl --no-sync");
    let run = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output();
    finished(run.expect("sh starts")).good();
    let info = tl_info(&folder.path().join("out.tbl"));
    assert_eq!(info["samples"], 60 * 12);
}

fn tl_info(path: &Path) -> Value {
    let text = tl(["info".as_ref(), path, "--json".as_ref()]).text();
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn every_container_has_the_same_digest() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = archive(folder.path());
    convert(&input, &at("a.tbl"), &[]);
    convert(&input, &at("lz4.tbl"), &["--lz4", "--no-sync", "-j", "3"]);
    convert(&at("a.tbl"), &at("zstd.tbl"), &["--compress", "zstd:9", "-j", "3"]);
    convert(&at("a.tbl"), &at("back.tar"), &[]);
    for name in ["a.tbl", "lz4.tbl", "zstd.tbl", "back.tar"] {
        assert_eq!(digest(&at(name)), digest(&input), "{name}");
        assert!(
            tl(["verify".as_ref(), at(name).as_path(), "--decode".as_ref()])
                .text()
                .contains("good")
        );
    }
}

#[test]
fn dimensions_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    convert(&archive(folder.path()), &at("a.tbl"), &[]);
    let listing = tl(["ls".as_ref(), at("a.tbl").as_path(), "--json".as_ref()]).text();
    for line in listing.lines() {
        let line: Value = serde_json::from_str(line).expect("a line is JSON");
        assert!(line["width"].as_u64() > Some(0) && line["height"].as_u64() > Some(0), "{line}");
    }
}

/// The index, `verify --decode`, which compares with it, and `decode` agree on a turned image.
#[test]
fn dimensions_of_a_tiff_image_are_those_of_its_decoded_pixels() {
    let tiff = tl_testdata::shipped!("images/tiff/orientation6.tif");
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("a.tbl");
    let bytes = fs::read(tiff).unwrap();
    let input = write(folder.path(), "in.tar", &tar(&[(b"a.tif".as_slice(), &*bytes)]));
    convert(&input, &output, &[]);
    let listing = tl(["ls".as_ref(), output.as_path(), "--json".as_ref()]).text();
    let line: Value = serde_json::from_str(&listing).expect("a line is JSON");
    assert_eq!((&line["width"], &line["height"]), (&13.into(), &21.into()), "{line}");
    assert!(tl(["verify".as_ref(), output.as_path(), "--decode".as_ref()]).text().contains("good"));
    let decoded = tl(["decode".as_ref(), output.as_path(), "--index".as_ref(), "0".as_ref()]);
    let text = decoded.text();
    assert!(text.contains(": 13x21 TIFF"), "{text}");

    // Other writers store the size of the image as it lies in the file.
    let stored = folder.path().join("stored.tbl");
    let mut writer = StreamWriter::create(&stored, WriteOptions::default()).unwrap();
    let format = SampleFormat::Tiff;
    let sample = NewSample { format, width: 21, height: 13, ..NewSample::new(&bytes) };
    writer.write_sample(&sample).unwrap();
    writer.finish().unwrap();
    let run = tl(["verify".as_ref(), stored.as_path()]).text();
    assert!(
        run.contains("sample 0 is a TIFF image that is turned") && run.contains("good"),
        "{run}"
    );
    let sample = NewSample { width: 13, height: 22, ..sample };
    let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(&stored, options).unwrap();
    writer.write_sample(&sample).unwrap();
    writer.finish().unwrap();
    let run = tl(["verify".as_ref(), stored.as_path()]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
}

#[test]
fn pixels_are_squares_of_the_size_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = archive(folder.path());
    for (name, workers) in [("one.tbl", "1"), ("three.tbl", "3")] {
        convert(&input, &at(name), &["--to", "raw", "--size", "32", "-j", workers]);
    }
    assert_eq!(fs::read(at("one.tbl")).unwrap(), fs::read(at("three.tbl")).unwrap());
    let info = tl(["info".as_ref(), at("one.tbl").as_path(), "--json".as_ref()]).text();
    let info: Value = serde_json::from_str(&info).expect("it is JSON");
    let square = serde_json::json!({ "min": 32, "max": 32 });
    assert_eq!((&info["width"], &info["height"]), (&square, &square), "{info}");
    let refused = tl([Path::new("convert"), &at("one.tbl"), Path::new("-o"), &at("raw.tar")]);
    assert!(refused.error(1).contains("sample 0"));
}

#[test]
fn squares_beyond_the_limit_are_refused_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    archive(folder.path());
    // 13378 is the first side whose pixels are over 512 MiB.
    for (side, word) in [
        ("0", "1..=65535"),
        ("65536", "1..=65535"),
        ("13378", "536912652"),
        ("60000", "10800000000"),
    ] {
        let script = format!(
            "ulimit -v 1048576; exec {} convert in.tar -o out.tbl --to raw --size {side} -q",
            env!("CARGO_BIN_EXE_tl")
        );
        let run = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output();
        let run = finished(run.expect("sh starts"));
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains(word), "{}", run.stderr);
    }
    assert_eq!(files_below(folder.path()).len(), 1);
}

#[test]
fn a_damaged_image_is_kept_but_is_no_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = write(folder.path(), "in.tar", &tar(&[(b"bad.jpg", b"no image")]));
    let kept = tl([Path::new("convert"), &input, Path::new("-o"), &at("a.tbl")]);
    assert_eq!(kept.code, Some(0));
    assert!(kept.stderr.contains("sample 0 (bad.jpg): kept without dimensions"), "{}", kept.stderr);
    assert_eq!(digest(&at("a.tbl")), digest(&input));
    let args = ["convert", "in.tar", "-o", "raw.tbl", "--to", "raw"];
    let mut command = crate::support::command(args);
    let refused = finished(command.current_dir(folder.path()).output().expect("tl starts"));
    assert!(refused.error(1).contains("in.tar: sample 0 (bad.jpg)"));
    assert!(!at("raw.tbl").exists());
}

#[test]
fn nothing_is_overwritten_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = archive(folder.path());
    fs::write(at("a.tbl"), "mine").unwrap();
    let refused = tl([Path::new("convert"), &input, Path::new("-o"), &at("a.tbl")]);
    assert!(refused.error(2).contains("exists already"));
    assert_eq!(fs::read(at("a.tbl")).unwrap(), b"mine");
    convert(&input, &at("a.tbl"), &["-f"]);
    let refused = tl(["convert".as_ref(), &*input, "-fo".as_ref(), "/dev/null".as_ref()]);
    assert!(refused.error(2).contains("not a regular file"));
}

#[test]
fn shards_merged_again_are_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = archive(folder.path());
    convert(&input, &at("whole.tbl"), &[]);
    let split = |from: &Path, to: &str, how: [&str; 2]| {
        let to = at(to);
        let run =
            tl([Path::new("split"), from, "-o".as_ref(), &to, how[0].as_ref(), how[1].as_ref()]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stderr
    };
    assert_eq!(split(&at("whole.tbl"), "shards", ["--shards", "5"]), "");
    // An archive of some class folders says the labels in files, which have no names.
    let note = split(&input, "cut/x-{}.tar", ["--samples-per-shard", "5"]);
    assert!(note.ends_with(": cannot store 6 class names\n"), "{note}");
    for (folder, target) in [("shards", "a.tbl"), ("cut", "b.tbl")] {
        let mut shards: Vec<_> =
            fs::read_dir(at(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        shards.sort();
        assert!(shards.len() > 2);
        let mut args = vec!["merge".into(), "-o".into(), at(target)];
        args.extend(shards);
        tl(args).good();
    }
    assert_eq!(fs::read(at("a.tbl")).unwrap(), fs::read(at("whole.tbl")).unwrap());
    let labels = |path: PathBuf| {
        let listing = tl(["ls".as_ref(), path.as_path(), "--json".as_ref()]).text();
        listing
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["label"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(labels(at("b.tbl")), labels(input));
}

#[test]
fn damage_is_found_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    convert(&archive(folder.path()), &at("a.tbl"), &[]);
    let mut bytes = fs::read(at("a.tbl")).unwrap();
    let offset = u64::from_le_bytes(bytes[64 + 24..64 + 32].try_into().unwrap());
    bytes[usize::try_from(offset).unwrap() + 100] ^= 1;
    fs::write(at("bad.tbl"), bytes).unwrap();
    let bad = tl([Path::new("verify"), &at("bad.tbl")]);
    let listed = String::from_utf8(bad.stdout.clone()).unwrap();
    assert!(listed.starts_with("sample 1 ("), "{listed}");
    assert!(bad.error(1).contains("1 of"));
    let json = tl(["verify".as_ref(), at("bad.tbl").as_path(), "--json".as_ref()]);
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&report["good"], &report["bad_samples"]), (&Value::Bool(false), &1.into()));
    assert_eq!(report["findings"][0]["index"], 1);

    let repaired = tl([Path::new("repair"), &at("bad.tbl"), Path::new("-o"), &at("good.tbl")]);
    let listed = String::from_utf8(repaired.stdout.clone()).unwrap();
    assert!(listed.starts_with("lost 1 ("), "{listed}");
    assert!(repaired.error(1).contains("1 samples are lost"));
    tl([Path::new("verify"), &at("good.tbl")]).good();
    tl([Path::new("repair"), &at("a.tbl"), Path::new("-o"), &at("same.tbl")]).good();
    assert_eq!(fs::read(at("same.tbl")).unwrap(), fs::read(at("a.tbl")).unwrap());
}

#[test]
fn one_bad_entry_costs_its_sample_only() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    convert(&archive(folder.path()), &at("a.tbl"), &[]);
    let mut bytes = fs::read(at("a.tbl")).unwrap();
    // The second entry has two sizes now.
    bytes[64 + 24 + 12] ^= 1;
    let bad = write(folder.path(), "bad.tbl", &bytes);
    for hash in [&[][..], &["--hash"]] {
        let run = |more: &[&str]| {
            let mut args: Vec<&OsStr> = vec!["ls".as_ref(), bad.as_ref()];
            args.extend(hash.iter().chain(more).map(OsStr::new));
            tl(args)
        };
        let json = run(&["--json"]);
        let lines = json_lines(str::from_utf8(&json.stdout).unwrap());
        assert_eq!(lines.len(), 12);
        for (index, line) in (0_u64..).zip(&lines) {
            assert_eq!(line["index"], index);
            assert_eq!(line.get("error").is_some(), index == 1, "{line}");
            assert_eq!(line.as_object().unwrap().len() == 2, index == 1, "{line}");
        }
        assert!(json.error(1).contains("1 of 12 samples are damaged, the first: "));
        let tsv = run(&[]);
        let text = String::from_utf8(tsv.stdout.clone()).unwrap();
        let columns: Vec<_> = text.lines().map(|line| line.split('\t').count()).collect();
        assert_eq!(columns, [9 + hash.len(); 13]);
        assert!(text.lines().nth(2).unwrap().starts_with("1\t\t\tDAMAGED\t"), "{text}");
        tsv.error(1);
    }
    let info = tl(["info".as_ref(), bad.as_path(), "--json".as_ref()]);
    let facts: Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!((&facts["samples"], &facts["damaged"]), (&12.into(), &1.into()));
    assert!(info.error(1).contains("sample 1"));
    let digest = tl([Path::new("digest"), &bad]);
    assert_eq!(digest.stdout, b"");
    assert!(digest.error(1).contains("1 of 12 samples are damaged"));
}

#[test]
fn a_file_that_does_not_open_is_bad_in_json_too() {
    let folder = tempfile::tempdir().unwrap();
    let bad = write(folder.path(), "bad.tbl", b"TBL\x02 and no more");
    let run = tl(["verify".as_ref(), bad.as_path(), "--json".as_ref()]);
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((&report["good"], &report["schema"]), (&false.into(), &"tl.verify/1".into()));
    assert_eq!((&report["samples"], &report["damaged_structures"]), (&0.into(), &1.into()));
    assert_eq!(report["findings"][0]["kind"], "damage");
    run.error(1);
    let missing = tl(["verify", "no-such-file", "--json"]);
    assert_eq!(missing.stdout, b"");
    missing.error(2);
}

#[test]
fn missing_files_and_wrong_options_are_usage_errors() {
    for command in ["verify", "digest"] {
        assert!(tl([command, "no-such-file"]).error(2).contains("no-such-file"));
    }
    for args in [
        vec!["convert", "no-such-file", "-o", "x.tbl"],
        vec!["merge", "no-such-file", "-o", "x.tbl"],
        vec!["repair", "no-such-file", "-o", "x.tbl"],
        vec!["split", "no-such-file", "-o", "x", "--shards", "2"],
        vec!["convert", "x", "-o", "x.tar", "--lz4"],
        vec!["convert", "x", "-o", "x.tbl", "--size", "3"],
    ] {
        tl(args).error(2);
    }
}

#[test]
fn the_summary_of_tar_to_tbl_is_that_of_the_guide() {
    let folder = tempfile::tempdir().unwrap();
    let input = archive(folder.path());
    let output = folder.path().join("out.tbl");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tar_to_tbl"));
    let run = command.arg(&input).arg(&output).args(["--workers", "2"]).output();
    let run = finished(run.expect("tar_to_tbl starts"));
    let note = "tl: --workers 2: copying without compression takes one thread\n";
    assert!(run.stderr.contains(note), "{}", run.stderr);
    assert_eq!(run.code, Some(0));
    let text = String::from_utf8(run.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[0], "Converting TAR to TBL format...");
    assert!(lines[1].starts_with("Input: ") && lines[1].contains(" samples, "));
    assert_eq!(lines[2], "Processing: [████████████████████] 100%");
    assert!(lines[3].starts_with("Conversion rate: ") && lines[3].ends_with(" samples/second"));
    assert!(lines[4].starts_with("Output: ") && lines[4].ends_with("% smaller)"), "{}", lines[4]);
    assert!(lines[5].starts_with("Completed in ") && lines[5].ends_with(" seconds"));
    assert_eq!(digest(&output), digest(&input));
}

#[test]
fn a_file_size_limit_is_one_line_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    archive(folder.path());
    let script =
        format!("ulimit -f 8; exec {} convert in.tar -o out.tbl", env!("CARGO_BIN_EXE_tl"));
    let run = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output();
    assert!(finished(run.expect("sh starts")).error(2).contains("out.tbl: File too large"));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1);
}
