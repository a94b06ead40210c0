//! `bench`: one line with every figure, and a digest that depends on nothing but the data.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Run, command, files_below, finished, json_lines, photos, tar, tl, write};

fn bench(data: &Path, more: &[&str]) -> Run {
    let fixed = ["bench".as_ref(), data.as_os_str(), "--seconds".as_ref(), "0".as_ref()];
    tl(fixed.into_iter().chain(more.iter().map(|arg| arg.as_ref())))
}

fn json(data: &Path, more: &[&str]) -> Value {
    let mut lines = json_lines(&bench(data, &[more, &["--json"]].concat()).text());
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}

/// The photographs as an archive: same names, same order as the folder.
fn photo_archive(folder: &Path) -> std::path::PathBuf {
    let files = files_below(&photos());
    let members: Vec<(&[u8], &[u8])> = files
        .iter()
        .filter(|(name, _)| name.contains('/'))
        .map(|(name, bytes)| (name.as_bytes(), bytes.as_slice()))
        .collect();
    write(folder, "photos.tar", &tar(&members))
}

#[test]
fn the_instruction_set_is_chosen_by_name_and_changes_no_batch() {
    let at_level = |level: &str| {
        let photos = photos();
        let mut bench = command(["bench", "--recipe", "imagenet-train", "--size", "32"]);
        bench.args(["--seconds", "0", "--json", "--digest"]).arg(photos);
        finished(bench.env("TURBOLOADER_SIMD", level).output().unwrap())
    };
    let fastest = json_lines(&at_level("").text()).remove(0);
    let levels: Vec<_> = tl_simd::Level::available().map(|level| level.to_string()).collect();
    assert_eq!(levels.last().unwrap(), &fastest["simd"]);
    for level in &levels {
        let line = json_lines(&at_level(level).text()).remove(0);
        assert_eq!((&line["simd"], &line["digest"]), (&level.as_str().into(), &fastest["digest"]));
    }
    let refused = at_level("mmx");
    assert_eq!(refused.code, Some(2));
    let expected =
        format!("TURBOLOADER_SIMD=mmx: expected a level of this CPU: {}", levels.join(", "));
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
}

#[test]
fn one_line_holds_every_figure() {
    for recipe in ["decode", "raw", "imagenet-train", "imagenet-eval"] {
        let line = json(&photos(), &["--recipe", recipe, "--size", "32", "--workers", "2"]);
        assert_eq!(line["recipe"], recipe);
        assert_eq!(line["workers"], 2);
        assert_eq!(line["samples_per_epoch"], 12);
        for figure in [
            "images_per_s",
            "min",
            "max",
            "runs",
            "first_batch_s",
            "peak_rss_mib",
            "images_per_cpu_s",
        ] {
            assert!(line[figure].as_f64().is_some_and(|value| value > 0.0), "{figure} in {line}");
        }
        assert!(line.get("digest").is_none());
    }
    let text = bench(&photos(), &["--recipe", "raw"]).text();
    assert!(text.contains(" images/s (median of "), "{text}");
}

#[test]
fn padding_and_what_buckets_save_of_it_are_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tbl = folder.path().join("photos.tbl");
    tl(["convert".as_ref(), photos().as_os_str(), "-qo".as_ref(), tbl.as_os_str()]).good();
    let one = json(&tbl, &["--recipe", "decode", "--batch-size", "3", "--buckets", "1"]);
    assert!(one["padding"]["percent"].as_f64().is_some_and(|percent| percent > 0.0), "{one}");
    assert_eq!(one["padding"]["saved_percent"], 0.0);
    let four = bench(&tbl, &["--recipe", "decode", "--batch-size", "3", "--buckets", "4"]).text();
    assert!(four.contains(" % of it is saved"), "{four}");
    let line = json(&tbl, &["--recipe", "decode", "--batch-size", "3"]);
    assert!(line.get("padding").is_none());
    // A folder does not say how large its images are.
    let refused = bench(&photos(), &["--recipe", "decode", "--buckets", "4"]).error(2);
    assert!(refused.contains("buckets need image sizes"), "{refused}");
}

#[test]
fn the_digest_depends_on_data_seed_and_recipe_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = photo_archive(folder.path());
    let tbl = folder.path().join("photos.tbl");
    tl(["convert".as_ref(), archive.as_os_str(), "-qo".as_ref(), tbl.as_os_str()]).good();
    for recipe in ["decode", "raw", "imagenet-train", "imagenet-eval"] {
        let fixed = ["--recipe", recipe, "--size", "32", "--batch-size", "5", "--digest"];
        let digest =
            |data: &Path, more: &[&str]| json(data, &[&fixed[..], more].concat())["digest"].clone();
        let first = digest(&archive, &["--workers", "1"]);
        assert!(first.as_str().is_some_and(|hex| hex.len() == 64), "{first}");
        for workers in ["2", "3", "7"] {
            assert_eq!(digest(&archive, &["--workers", workers]), first, "{recipe}, {workers}");
        }
        assert_eq!(digest(&photos(), &["--workers", "2"]), first, "{recipe}, folder");
        assert_eq!(digest(&tbl, &["--workers", "2"]), first, "{recipe}, TBL");
        let other_seed = digest(&archive, &["--seed", "1"]) == first;
        assert_eq!(other_seed, matches!(recipe, "decode" | "imagenet-eval"), "{recipe}, seed");
    }
}

#[test]
fn the_report_says_how_photographs_were_decoded() {
    let plan = |more: &[&str]| {
        let line = json(&photos(), &[&["--size", "16"], more].concat());
        line["plan"].as_str().map(|plan| plan.split(" -> ").next().unwrap_or_default().to_owned())
    };
    let train = ["--recipe", "imagenet-train"];
    let with = |recipe: [&'static str; 2], more: &[&'static str]| plan(&[&recipe, more].concat());
    assert_eq!(with(train, &[]).as_deref(), Some("Decode(fast, margin 2)"));
    let margin = with(train, &["--decode-margin", "3"]);
    assert_eq!(margin.as_deref(), Some("Decode(fast, margin 3)"));
    let exact = with(train, &["--decode", "exact"]);
    assert!(exact.is_some_and(|first| first.starts_with("RandomResizedCrop(16x16")));
    let eval = ["--recipe", "imagenet-eval"];
    assert_eq!(with(eval, &[]).as_deref(), Some("Resize(18, bilinear)"));
    assert_eq!(with(eval, &["--decode", "fast"]).as_deref(), Some("Decode(fast, margin 2)"));
    assert_eq!(with(["--recipe", "raw"], &[]), None);
}

#[test]
fn a_damaged_sample_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let good = fs::read(photos().join("food/coffee.jpg")).expect("the photograph exists");
    let members: [(&[u8], &[u8]); 2] = [(b"a.jpg", &good), (b"b.jpg", &good[..good.len() / 2])];
    let data = write(folder.path(), "in.tar", &tar(&members));
    let message = bench(&data, &["--recipe", "decode"]).error(1);
    assert!(message.contains("in.tar: sample 1 (b.jpg) at byte "), "{message}");
    bench(&data, &["--recipe", "raw"]).good();
}

#[test]
fn damage_that_is_kept_is_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = fs::read(photos().join("animals/chelsea.jpg")).expect("the photograph exists");
    fs::write(folder.path().join("whole.jpg"), &whole).expect("a file");
    fs::write(folder.path().join("half.jpg"), &whole[..whole.len() / 2]).expect("a file");
    let short = ["--recipe", "decode"];
    let message = bench(folder.path(), &short).error(1);
    assert!(message.contains("half.jpg"), "{message}");
    let keep = ["--recipe", "decode", "--on-damaged", "keep"];
    let run = bench(folder.path(), &keep);
    assert!(run.stderr.contains("half.jpg") && run.stderr.contains("(kept)"), "{run:?}");
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(text.contains("1 of 2 samples are damaged and were kept"), "{text}");
    let run = bench(folder.path(), &[&keep[..], &["--json"]].concat());
    let lines = json_lines(&String::from_utf8_lossy(&run.stdout));
    assert_eq!(lines[0]["damaged_kept"], 1);
}

#[test]
fn an_empty_data_set_has_no_rate() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let message = bench(folder.path(), &["--recipe", "raw"]).error(2);
    assert!(message.contains(": no images found in this folder"), "{message}");
}

#[test]
fn figures_that_make_no_sense_are_usage_errors() {
    for more in [
        &["--recipe", "decode", "--batch-size", "0"][..],
        &["--recipe", "decode", "--workers", "0"],
        &["--recipe", "imagenet-train", "--size", "0"],
        &["--recipe", "no-such-recipe"],
        &["--recipe", "raw", "--decode", "fast"],
        &["--recipe", "imagenet-eval", "--decode", "exact", "--decode-margin", "2"],
        &["--recipe", "imagenet-eval", "--decode-margin", "0.5"],
        &[],
    ] {
        assert_eq!(bench(&photos(), more).code, Some(2), "{more:?}");
    }
    let photos = photos();
    let args =
        ["bench".as_ref(), photos.as_os_str(), "--recipe=raw".as_ref(), "--seconds=-1".as_ref()];
    let message = tl(args).error(2);
    assert!(message.starts_with("tl: --seconds -1: "), "{message}");
}

#[test]
fn caches_change_no_digest_and_are_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = folder.path().join("cache");
    let cache = cache.to_str().expect("a plain path");
    let settings = ["--recipe", "imagenet-train", "--size", "32", "--decode", "exact", "--digest"];
    let expected = json(&photos(), &settings)["digest"].clone();
    for kind in ["encoded", "decoded"] {
        let caches =
            ["--cache", kind, "--cache-memory=4M", "--cache-folder", cache, "--cache-disk=1G"];
        let line = json(&photos(), &[&settings[..], &caches].concat());
        assert_eq!(line["digest"], expected, "{kind}");
        let count = |place, what| line["cache"][place][what].as_u64().expect("a number");
        assert_eq!(count("disk", "inserted"), 12);
        assert!(count("disk", "hits") + count("memory", "hits") > 0, "{line}");
        assert!(count("memory", "bytes") <= 4 << 20, "{line}");
    }
    // A folder cannot exist below a file, and the message reports it.
    let below = photos().join("README.md/cache");
    let below = below.to_str().expect("a plain path");
    let nowhere = ["--cache-folder", below, "--cache-disk", "1G"];
    let run = bench(&photos(), &[&settings[..], &nowhere].concat());
    assert!(run.stderr.contains("cannot be written to: Not a directory"), "{}", run.stderr);
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(text.contains("1 faults of the cache"), "{text}");
}

#[test]
fn decoded_images_are_refused_where_nothing_is_decoded() {
    let run = bench(&photos(), &["--recipe", "raw", "--cache-memory", "1M", "--cache", "decoded"]);
    let said = run.error(2);
    assert!(said.contains("needs a recipe that decodes exactly, and stored bytes"), "{said}");
}

#[test]
fn orders_and_samples_can_be_chosen() {
    let line = |more: &[&str]| {
        json(&photos(), &[&["--recipe", "raw", "--batch-size", "4", "--digest"], more].concat())
    };
    let all = line(&[]);
    assert!(all.get("shuffle").is_none());
    // Raw reads are shuffled by default.
    let full = line(&["--shuffle", "full"]);
    assert_eq!(full["digest"], all["digest"]);
    assert_eq!(full["shuffle"]["order"], full["shuffle"]["full"]);
    let block = line(&["--shuffle", "block:4"]);
    assert_ne!(block["digest"], all["digest"]);
    assert_eq!(block["shuffle"]["shuffle"], "block:4x1");
    assert_eq!(block["shuffle"]["order"]["neighbours_together"], 1.0);
    assert_eq!(block["shuffle"]["together"]["block"], 4);
    let some = line(&["--samples", "2..5,7..9"]);
    assert_eq!(some["samples_per_epoch"], 5);
    let text = bench(&photos(), &["--recipe", "raw", "--shuffle", "block:4x2"]).text();
    assert!(text.contains("\nshuffle block:4x2: "), "{text}");
}

#[test]
fn orders_and_samples_that_there_are_not_are_refused() {
    let refused = |more: &[&str], reason: &str| {
        let error = bench(&photos(), &[&["--recipe", "raw"], more].concat()).error(2);
        assert!(error.contains(reason), "{error}");
    };
    refused(&["--shuffle", "blocks"], "expected none, full, block:SAMPLESxWINDOW");
    refused(&["--samples", "3"], "expected two numbers");
    refused(&["--samples", "3..13"], "sample 12 is not in a data set of 12 samples");
    refused(&["--samples", "3..6,5..8"], "sample 5 is in two ranges of a subset");
}

#[test]
fn bad_samples_are_dealt_with_and_listed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = files_below(&photos());
    let cut = |bytes: &[u8]| bytes[..200].to_vec();
    let mut members: Vec<(Vec<u8>, Vec<u8>)> = files
        .iter()
        .filter(|(name, _)| name.contains('/'))
        .map(|(name, bytes)| (name.clone().into_bytes(), bytes.clone()))
        .collect();
    members[3].1 = cut(&members[3].1);
    members[7].1 = cut(&members[7].1);
    let members: Vec<(&[u8], &[u8])> = members.iter().map(|(a, b)| (&a[..], &b[..])).collect();
    let data = write(folder.path(), "bad.tar", &tar(&members));
    let audit = folder.path().join("audit.jsonl");
    let audit = audit.to_str().expect("a name in UTF-8");
    let recipe = ["--recipe", "imagenet-eval", "--size", "32", "--audit", audit, "--force"];
    for (policy, outcome, counter, samples) in [
        ("skip", "skipped", "skipped", 10),
        ("replace", "replaced", "replaced", 12),
        ("fill", "filled", "filled", 12),
    ] {
        let line = json(&data, &[&recipe[..], &["--on-error", policy]].concat());
        assert_eq!((&line["samples_per_epoch"], &line[counter]), (&samples.into(), &2.into()));
        let lines = json_lines(&fs::read_to_string(audit).expect("the list"));
        let bad: Vec<_> = lines.iter().map(|line| line["sample"].as_u64()).collect();
        assert_eq!(bad, [Some(3), Some(7)]);
        assert!(lines.iter().all(|line| line["outcome"] == outcome), "{lines:?}");
        assert_eq!(lines[0].get("replacement").is_some(), policy == "replace");
        assert!(lines[0]["shard"].as_str().is_some_and(|shard| shard.ends_with("bad.tar")));
    }
    bench(&data, &recipe).error(1);
    let lines = json_lines(&fs::read_to_string(audit).expect("the list"));
    assert_eq!((lines.len(), &lines[0]["outcome"]), (1, &"raised".into()));
    let budget = ["--on-error", "skip", "--error-budget", "1"];
    let error = bench(&data, &[&recipe[..], &budget].concat()).error(1);
    assert!(error.contains("2 of 12 samples are bad, the error budget allows 1"), "{error}");
}

#[test]
fn a_memory_budget_is_kept_reported_and_refused() {
    let recipe = ["--recipe", "imagenet-train", "--size", "32", "--workers", "2", "--digest"];
    let free = json(&photos(), &recipe);
    assert!(free.get("memory").is_none());
    let bounded = json(&photos(), &[&recipe[..], &["--memory-budget", "512M"]].concat());
    assert_eq!(bounded["digest"], free["digest"]);
    assert_eq!(bounded["memory"]["budget"], 512 << 20);
    let peak = bounded["peak_rss_mib"].as_f64().expect("a number");
    assert!(peak < 512.0, "{peak}");
    let text = bench(&photos(), &["--recipe", "raw", "--memory-budget", "1G"]).text();
    assert!(text.contains("\nmemory: ") && text.contains("; budget 1024.0 MiB"), "{text}");
    let error = bench(&photos(), &[&recipe[..], &["--memory-budget", "1M"]].concat()).error(2);
    assert!(
        error.contains("the memory budget is 1048576 bytes, this configuration needs"),
        "{error}"
    );
}
