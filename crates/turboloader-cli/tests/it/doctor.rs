//! `doctor`: three set-ups that are limited on purpose, and its findings on them; what `bench`
//! says of where time goes.

use std::fs;

use serde_json::Value;

use crate::support::{Run, files_below, json_lines, photos, tar, tl, write};

fn doctor(more: &[&str]) -> Run {
    doctor_for("1", more)
}

fn doctor_for(seconds: &str, more: &[&str]) -> Run {
    let photos = photos();
    let fixed = ["doctor", "--seconds", seconds, "--batch-size", "4"].map(std::ffi::OsStr::new);
    tl(fixed.into_iter().chain([photos.as_os_str()]).chain(more.iter().map(|arg| arg.as_ref())))
}

fn findings(more: &[&str]) -> Value {
    findings_of(doctor(&[more, &["--json"]].concat()))
}

fn findings_of(run: Run) -> Value {
    let mut lines = json_lines(&run.text());
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}

#[test]
fn a_slow_disk_is_named() {
    let found = findings(&["--read-limit", "4", "--size", "32"]);
    assert_eq!(found["training"]["limit"], "read", "{found}");
    let bytes = found["training"]["bytes_read"].as_f64().expect("a number");
    let rate = found["training"]["samples_per_s"].as_f64().expect("a number");
    let per_sample = found["data"]["bytes_per_sample"].as_f64().expect("a number");
    // Its size differs from photograph to photograph; the limit holds for all together.
    assert!(bytes > 0.0 && rate * per_sample < 12e6, "{found}");
    let changes = found["changes"].as_array().expect("a list");
    let advised: Vec<&str> = changes.iter().filter_map(|change| change["try"].as_str()).collect();
    // Which they are depends on how busy the machine is; `doctor/change/tests.rs` has all.
    for options in advised {
        let options: Vec<&str> = options.split(' ').collect();
        doctor(&[&["--read-limit", "4", "--size", "32"], &options[..]].concat()).good();
    }
}

#[test]
fn readers_on_a_slow_disk_are_named() {
    let found = findings(&["--read-limit", "4", "--size", "32", "--readers", "2"]);
    assert_eq!(found["training"]["limit"], "readers", "{found}");
    let readers = &found["training"]["readers"];
    assert_eq!(readers["readers"], 2, "{found}");
}

#[test]
fn a_heavy_transform_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let blur = "\n[[ops]]\nop = \"gaussian_blur\"\nkernel_size = 31\nsigma = 9.0\n";
    let text = format!(
        "output = {{dtype = \"u8\", layout = \"hwc\"}}\n[[ops]]\nop = \"random_resized_crop\"\n\
         size = 224\n{}",
        blur.repeat(12)
    );
    let recipe = write(folder.path(), "heavy.toml", text.as_bytes());
    let found = findings(&["--recipe", recipe.to_str().expect("a path in UTF-8")]);
    assert_eq!(found["training"]["limit"], "transform", "{found}");
    assert!(found["plan"].as_str().is_some_and(|plan| plan.contains("GaussianBlur")), "{found}");
}

#[test]
fn a_slow_training_step_is_named() {
    // A fifth of the time is for training: five such steps. A machine that is so busy that workers
    // come to nothing for one of them is not mistaken yet.
    let slow = |more: &[&str]| {
        let step = ["--step-ms", "200", "--size", "32"];
        doctor_for("4", &[&step[..], more].concat())
    };
    let found = findings_of(slow(&["--json"]));
    assert_eq!(found["training"]["limit"], "consumer", "{found}");
    let alone = found["step_alone_per_s"].as_f64().expect("a number");
    // Four samples in 200 ms, and what sleeping takes longer.
    assert!(alone > 0.0 && alone <= 20.0, "{found}");
    let text = slow(&[]).text();
    let last = text.lines().last().expect("a verdict");
    assert!(last.starts_with("Limited by the consumer: "), "{text}");
}

#[test]
fn a_bad_sample_does_not_end_the_examination() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = files_below(&photos());
    let mut members: Vec<(&[u8], &[u8])> = files
        .iter()
        .filter(|(name, _)| name.contains('/'))
        .map(|(name, bytes)| (name.as_bytes(), bytes.as_slice()))
        .collect();
    members[5].1 = &members[5].1[..300];
    let data = write(folder.path(), "bad.tar", &tar(&members));
    let args = ["doctor", "--seconds", "1", "--size", "32"].map(std::ffi::OsStr::new);
    let args: Vec<_> = args.into_iter().chain([data.as_os_str()]).collect();
    tl(&args).good();
    let raise = ["--on-error", "raise"].map(std::ffi::OsStr::new);
    tl(args.iter().copied().chain(raise)).error(1);
}

#[test]
fn a_wrong_checksum_does_not_end_the_examination() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("bad.tbl");
    let photos = photos();
    let convert = ["convert".as_ref(), photos.as_os_str(), "-qo".as_ref(), data.as_os_str()];
    tl(convert).good();
    let ls = ["ls".as_ref(), data.as_os_str(), "--json".as_ref()];
    let samples = json_lines(&tl(ls).text());
    let offset = samples[5]["offset"].as_u64().expect("a number");
    let mut bytes = fs::read(&data).expect("the file is readable");
    bytes[usize::try_from(offset).expect("a small file") + 300] ^= 1;
    fs::write(&data, bytes).expect("the temporary folder is writable");
    let args = ["doctor", "--seconds", "1", "--size", "32", "--json"].map(std::ffi::OsStr::new);
    let found = findings_of(tl(args.into_iter().chain([data.as_os_str()])));
    assert!(found["disk"]["bad_samples"].as_u64() > Some(0), "{found}");
    assert!(found["disk"]["samples_per_s"].as_f64() > Some(0.0), "{found}");
    assert!(found["training"]["skipped"].as_u64() > Some(0), "{found}");
}

#[test]
fn what_cannot_be_measured_is_a_usage_error() {
    for (more, said) in [
        (&["--read-limit", "0"][..], "tl: --read-limit: expected a number above 0"),
        (&["--read-limit", "nan"], "tl: --read-limit: expected a number above 0"),
        (&["--step-ms=-1"], "tl: --step-ms -1: "),
        (&["--recipe", "raw", "--decode", "fast"], "tl: --decode and --decode-margin need"),
    ] {
        let message = doctor(more).error(2);
        assert!(message.starts_with(said), "{message}");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let args = ["doctor".as_ref(), folder.path().as_os_str()];
    let message = tl(args).error(2);
    assert!(message.contains(": no images found in this folder"), "{message}");
    let message = tl(args.into_iter().chain(["--seconds=-1".as_ref()])).error(2);
    assert!(message.starts_with("tl: --seconds -1: "), "{message}");
}

#[test]
fn a_bench_says_where_the_time_went() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("run.json");
    let photos = photos();
    let bench = |more: &[&str]| {
        let fixed = ["bench", "--seconds=0", "--recipe=imagenet-train", "--size=32"];
        let fixed = fixed.into_iter().chain(["--batch-size=2"]).map(std::ffi::OsStr::new);
        let fixed = fixed.chain([photos.as_os_str()]);
        tl(fixed.chain(more.iter().map(|arg| arg.as_ref())))
    };
    let path = trace.to_str().expect("a path in UTF-8");
    let line = json_lines(&bench(&["--report", "--trace", path, "--json"]).text()).remove(0);
    let stages = line["report"]["stages"].as_array().expect("a list");
    let share: f64 = stages.iter().filter_map(|stage| stage["share"].as_f64()).sum();
    let waiting = line["report"]["workers_wait"].as_f64().expect("a number");
    assert!((share + waiting - 1.0).abs() < 0.01, "{line}");
    assert_eq!(line["report"]["verdict"].as_str().map(|text| text.ends_with('.')), Some(true));

    let text = fs::read_to_string(&trace).expect("the trace exists");
    let written: Value = serde_json::from_str(&text).expect("the trace is JSON");
    let events = written["traceEvents"].as_array().expect("a list");
    assert!(events.iter().any(|event| event["name"] == "decode" && event["ph"] == "X"));
    assert!(bench(&["--trace", path]).error(2).contains("exists already"));
    bench(&["--trace", path, "-f"]).good();

    let text = bench(&["--report", "--step-ms", "30"]).text();
    assert!(text.lines().last().is_some_and(|line| line.starts_with("Limited by ")), "{text}");
    let replay = bench(&["--replay", "--step-ms", "30"]).text();
    assert!(replay.contains("served from memory"), "{replay}");
    bench(&["--replay", "--report"]).error(2);
}

/// Pages contain all that they need.
#[test]
fn results_are_pages_for_a_browser() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("report.html");
    let path = file.to_str().expect("a path in UTF-8");
    doctor(&["--size", "32", "--html", path]).good();
    let page = fs::read_to_string(&file).expect("it was written");
    for part in ["<title>tl doctor: imagenet-train</title>", "Verdict", "all workers", "<svg"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<script") && !page.contains("http"), "{page}");
    let photos = photos();
    let photos = photos.to_str().expect("a path in UTF-8");
    let bench = ["bench", photos, "--recipe", "imagenet-train", "--size", "32", "--seconds", "0.2"];
    let refused = tl([&bench[..], &["--batch-size", "4", "--html", path]].concat());
    assert!(refused.error(2).contains("exists already"), "the page of doctor is there");
    tl([&bench[..], &["--batch-size", "4", "--html", path, "--force"]].concat()).good();
    let page = fs::read_to_string(&file).expect("it was written");
    for part in ["Throughput", "Waiting", "4 images", "<polyline", "Limited by"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}
