//! Options that select samples: the same samples in every command, and in the file that is written.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Run, json_lines, photos, tar, tl, write};

const SAMPLES: usize = 24;

/// Samples with the label `number % 3`, and the score `number / 2` in their JSON.
fn archive(folder: &Path) -> PathBuf {
    let member = |number: usize| {
        let json = format!(r#"{{"score": {}}}"#, number as f64 / 2.0);
        [
            (format!("{number:03}.jpg"), "x".repeat(10 + number)),
            (format!("{number:03}.cls"), (number % 3).to_string()),
            (format!("{number:03}.json"), json),
        ]
    };
    let members: Vec<_> = (0..SAMPLES).flat_map(member).collect();
    let members: Vec<_> = members.iter().map(|(a, b)| (a.as_bytes(), b.as_bytes())).collect();
    write(folder, "in.tar", &tar(&members))
}

fn run(command: &str, data: &Path, more: &[&str]) -> Run {
    let data = data.to_str().expect("a path in UTF-8");
    tl([&[command, data], more].concat())
}

/// The samples of an epoch in stored order.
fn samples(data: &Path, more: &[&str]) -> Vec<usize> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("rows.jsonl");
    let is_shuffled = more.iter().any(|option| option.starts_with("--shuffle"));
    let shuffle = if is_shuffled { "--batch-size=64" } else { "--shuffle=none" };
    let fixed = ["--recipe=raw", "--seconds=0", "--workers=2", shuffle, "--rows"];
    let path_text = path.to_str().expect("a path in UTF-8");
    run("bench", data, &[&fixed, &[path_text][..], more].concat()).good();
    let rows = json_lines(&fs::read_to_string(&path).expect("the rows exist"));
    let number = |row: &Value| row["sample"].as_u64().expect("a number");
    rows.iter().map(|row| usize::try_from(number(row)).expect("a small number")).collect()
}

#[test]
fn options_select_samples_in_their_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = archive(folder.path());
    let check = |more: &[&str], expected: &[usize]| {
        assert_eq!(samples(&data, more), expected, "{more:?}");
    };
    let of_label = |label: usize| (0..SAMPLES).filter(move |number| number % 3 == label);
    check(&["--take", "3"], &[0, 1, 2]);
    check(&["--skip", "20"], &[20, 21, 22, 23]);
    check(&["--skip", "2", "--take", "2"], &[2, 3]);
    check(&["--shard", "1/4"], &[6, 7, 8, 9, 10, 11]);
    check(&["--select", "label=2"], &of_label(2).collect::<Vec<_>>());
    check(&["--select", "label=1", "--samples", "3..9,0..2"], &[4, 7, 1]);
    check(&["--filter", "json:/score >= 10 and bytes < 32"], &[20, 21]);
    check(&["--filter", "key like '*7.jpg'", "--shard", "1/2"], &[17]);
    check(&["--filter", "label == 0", "--skip", "1", "--take", "2"], &[3, 6]);
}

#[test]
fn parts_and_folds_divide_the_data_set() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = archive(folder.path());
    let part = |more: &[&str]| samples(&data, more);
    let train = part(&["--split", "0.75,0.25@7", "--stratify"]);
    let val = part(&["--split", "0.75,0.25@7", "--stratify", "--part", "1"]);
    assert_eq!((train.len(), val.len()), (18, 6));
    let all: BTreeSet<usize> = train.iter().chain(&val).copied().collect();
    assert_eq!(all, (0..SAMPLES).collect());
    for label in 0..3 {
        let count = val.iter().filter(|number| *number % 3 == label).count();
        assert!((1..=3).contains(&count), "{val:?}");
    }
    assert_ne!(train, part(&["--split", "0.75,0.25@8", "--stratify"]));
    let mut folds = BTreeSet::new();
    for fold in 0..5 {
        let fold = format!("{fold}/5@1");
        let train = part(&["--fold", &fold]);
        let val = part(&["--fold", &fold, "--part=1"]);
        assert!(val.iter().all(|number| !train.contains(number) && folds.insert(*number)));
        assert_eq!(train.len() + val.len(), SAMPLES);
    }
    assert_eq!(folds.len(), SAMPLES);
}

#[test]
fn draws_are_from_the_selected_samples() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = archive(folder.path());
    let weights = write(folder.path(), "weights", b"0\n1\n0\n");
    let weights = weights.to_str().expect("a path in UTF-8");
    let found = samples(&data, &["--take=3", "--weights", weights, "--count=5", "--shuffle=full"]);
    assert_eq!(found, [1; 5]);
    let mut found = samples(&data, &["--take=4", "--balance", "--length=all-used-up"]);
    found.sort_unstable();
    assert_eq!(found, [0, 1, 1, 2, 2, 3]);
    let mut twice = samples(&data, &["--select=label=1", "--take=2", "--repeat=2"]);
    twice.sort_unstable();
    assert_eq!(twice, [1, 1, 4, 4]);
}

#[test]
fn a_view_is_written_with_all_that_its_samples_have() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = archive(folder.path());
    let options = ["--filter", "label != 1", "--split=0.5,0.5@3", "--part=1", "--stratify"];
    let expected = samples(&data, &options);
    assert_eq!(expected.len(), 8);
    let digest = run("digest", &data, &options).text();
    assert_ne!(digest, run("digest", &data, &[]).text());
    for name in ["out.tbl", "out.tar"] {
        let output = folder.path().join(name);
        let output = output.to_str().expect("a path in UTF-8");
        let converted = run("convert", &data, &[&options[..], &["-q", "-o", output]].concat());
        assert_eq!(converted.code, Some(0), "{}", converted.stderr);
        let written = Path::new(output);
        assert_eq!(run("digest", written, &[]).text(), digest, "{name}");
        let listed = json_lines(&run("ls", written, &["--json"]).text());
        let keys: Vec<&str> = listed.iter().filter_map(|line| line["key"].as_str()).collect();
        let names: Vec<String> = expected.iter().map(|number| format!("{number:03}.jpg")).collect();
        assert_eq!(keys, names);
        let score = samples(written, &["--filter", "json:/score > 5"]);
        let of_all = expected.iter().filter(|&&number| number > 10).count();
        assert_eq!(score.len(), of_all, "{name}");
    }
}

#[test]
fn classes_are_selected_by_name_in_every_command() {
    let data = photos();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sheet = folder.path().join("sheet.png");
    let sheet = sheet.to_str().expect("a path in UTF-8");
    let people = ["--select", "class=people"];
    assert_eq!(samples(&data, &people), [4, 5]);
    run("preview", &data, &[&people[..], &["-o", sheet]].concat()).good();
    let bytes = fs::read(sheet).expect("the sheet exists");
    // Two cells of the default size, side by side.
    assert_eq!(&bytes[16..20], &(2 * (160 + 8) + 8_u32).to_be_bytes());
    let data = data.to_str().expect("a path in UTF-8");
    let text = tl([&["explain", "imagenet-eval", data, "--sample=1"], &people[..]].concat()).text();
    assert!(text.starts_with("1 source: 12 samples\nselect class people: 2 samples"), "{text}");
    let plain = tl(["explain", "imagenet-eval", data, "--sample=5"]).text();
    assert!(text.ends_with(&plain), "{text}");
    let doctor = tl([&["doctor", data, "--seconds=1", "--json"], &people[..]].concat());
    assert!(doctor.code == Some(0) || doctor.code == Some(1), "{}", doctor.stderr);
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = archive(folder.path());
    let refused = |command: &str, more: &[&str], expected: &str| {
        let error = run(command, &data, more).error(2);
        assert!(error.contains(expected), "{more:?}: {error}");
    };
    let refused_here = |more: &[&str], expected: &str| refused("digest", more, expected);
    refused_here(&["--select", "cat"], "expected label=NUMBER,.. or class=NAME,..");
    refused_here(&["--select", "class=cat"], "no class is called `cat`; its labels are numbers");
    refused_here(&["--filter", "width => 3"], "at byte 6: `=`, expected `==`");
    refused_here(&["--filter", "widht > 3"], "`widht` in a filter: no sample has such a file");
    refused_here(&["--split", "90,10"], "fraction 90 of a split: expected a number from 0 to 1");
    refused_here(&["--split", "0.5@x"], "expected fractions and a seed, such as 0.9,0.1@0");
    refused_here(&["--split", "0.5", "--part", "1"], "--part 1: expected a number from 0 to 0");
    refused_here(&["--part", "2"], "--part and --stratify need --split or --fold");
    refused_here(&["--fold", "5/5"], "fold 5 of 5");
    refused_here(&["--fold", "5"], "expected a fold, the number of folds and a seed");
    refused_here(&["--split", "0.5", "--fold", "0/5"], "cannot be used with");
    refused_here(&["--shard", "2/2"], "shard 2 of 2");
    refused_here(&["--samples", "3..25"], "sample 24 is not in a data set of 24 samples");
    let few = write(folder.path(), "few", b"1\n2\n");
    let few = few.to_str().expect("a path in UTF-8");
    let bench = ["--recipe=raw", "--weights", few];
    refused("bench", &bench, "2 weights for 24 samples");
    let data = data.to_str().expect("a path in UTF-8");
    let error = tl(["explain", "decode", "--take=1"]).error(2);
    assert!(error.contains("options that select samples need DATA and --sample"), "{error}");
    let error = tl(["explain", "decode", data, "--sample=2", "--take=2"]).error(2);
    assert!(error.contains("place 2 is not in a view of 2 samples"), "{error}");
}
