//! `bench`: every order and every part of it that a loader has, read back row by row.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Run, files_below, json_lines, photos, sha256, tar, tl, write};

fn bench(data: &[&Path], more: &[&str]) -> Run {
    let fixed = ["bench", "--seconds=0", "--workers=2"].map(OsStr::new);
    let data = data.iter().map(|path| path.as_os_str());
    tl(fixed.into_iter().chain(data).chain(more.iter().map(OsStr::new)))
}

/// The lines that `--rows` writes.
fn rows(data: &[&Path], more: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("rows.jsonl");
    let path = path.to_str().expect("a path in UTF-8");
    bench(data, &[more, &["--rows", path]].concat()).good();
    json_lines(&fs::read_to_string(path).expect("the rows exist"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// The samples of epoch 0, in order.
fn samples(data: &[&Path], more: &[&str]) -> Vec<u64> {
    let raw = ["--recipe", "raw", "--batch-size", "4"];
    let rows = rows(data, &[&raw, more].concat());
    rows.iter().map(|row| row["sample"].as_u64().expect("a number")).collect()
}

/// A data set of `count` samples of a few bytes, labelled by `label`.
fn numbered(folder: &Path, name: &str, count: usize, label: impl Fn(usize) -> i64) -> PathBuf {
    let member = |at| {
        let label = label(at).to_string();
        [(format!("{at:03}.jpg"), format!("sample {at}")), (format!("{at:03}.cls"), label)]
    };
    let members: Vec<_> = (0..count).flat_map(member).collect();
    let members: Vec<_> = members.iter().map(|(a, b)| (a.as_bytes(), b.as_bytes())).collect();
    write(folder, name, &tar(&members))
}

#[test]
fn samplers_have_the_order_that_is_specified() {
    // The orders of `testdata/order/vectors.jsonl`, made by another implementation.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let of = |count| numbered(folder.path(), &format!("{count}.tar"), count, |_| 0);
    let check = |count, more: &str, expected: &[u64]| {
        let more: Vec<&str> = more.split_whitespace().collect();
        assert_eq!(samples(&[&of(count)], &more), expected, "{more:?}");
    };
    let thrice = [0, 4, 5, 1, 2, 3, 0, 5, 4, 1, 2, 3, 1, 4, 0, 3, 5, 2];
    check(6, "--seed 42 --repeat 3", &thrice);
    check(14, "--seed 42 --shuffle block:4", &[13, 12, 1, 0, 2, 3, 6, 7, 4, 5, 8, 10, 9, 11]);
    check(30, "--seed 42 --samples 20..25,3..3,4..8", &[5, 24, 6, 21, 22, 23, 20, 4, 7]);

    let weights = write(folder.path(), "weights", b"5\n0\n1\n4294967295\n2147483648\n1073741824\n");
    let weighted = format!("--seed 42 --weights {}", weights.display());
    let vectors = fs::read_to_string(photos().join("../order/vectors.jsonl")).expect("vectors");
    let drawn = |replacement: bool| -> Vec<u64> {
        let vectors = json_lines(&vectors);
        let is = |v: &&Value| v["replacement"] == replacement && v["epoch"] == 0;
        let vector = vectors.iter().find(is).expect("there is one");
        assert_eq!(vector["weights"][3], 4_294_967_295_u64);
        serde_json::from_value(vector["samples"].clone()).expect("numbers")
    };
    check(6, &format!("{weighted} --count 24"), &drawn(true));
    check(6, &format!("{weighted} --replacement without --repeat 3"), &drawn(false));
    let labels = [3, -1, 3, 3, 0, 3, 0, 3, -1, 3];
    let classes = numbered(folder.path(), "classes.tar", 10, |at| labels[at]);
    let balanced = samples(&[&classes], &["--balance", "--shuffle", "none"]);
    assert_eq!(balanced, [1, 4, 0, 8, 6, 2, 1, 4, 3, 8]);
}

#[test]
fn mixtures_take_turns_as_specified() {
    // Worked out by hand from `docs/order.md`: in a round of 3 to 1 the turns are due at 1/6, 3/6
    // and 5/6 of it, and at 1/2.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let five = numbered(folder.path(), "five.tar", 5, |_| 0);
    let three = numbered(folder.path(), "three.tar", 3, |_| 1);
    let mixed = |length: &[&str]| {
        samples(&[&five, &three], &[&["--mix", "3,1", "--shuffle", "none"], length].concat())
    };
    let all = [0, 1, 5, 2, 3, 4, 6, 0, 1, 2, 7, 3];
    assert_eq!(mixed(&[]), all[..8]);
    assert_eq!(mixed(&["--length", "samples"]), all[..8]);
    assert_eq!(mixed(&["--length", "first-used-up"]), all[..4]);
    assert_eq!(mixed(&["--length", "all-used-up"]), all);
    assert_eq!(mixed(&["--length", "6"]), all[..6]);
    // From the end of the first round on, both by turns; then only the second.
    let staged = mixed(&["--stage", "3:1,1", "--stage", "7:0,2"]);
    assert_eq!(staged, [0, 1, 5, 2, 3, 6, 4, 7]);
    let later = mixed(&["--stage", "3:1,1", "--stage", "6:0,2", "--length", "10"]);
    assert_eq!(later, [0, 1, 5, 2, 3, 6, 7, 5, 6, 7]);
}

#[test]
fn what_does_not_fit_together_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = numbered(folder.path(), "five.tar", 5, |_| 0);
    let file = |name: &str, text: &str| {
        write(folder.path(), name, text.as_bytes()).to_str().expect("UTF-8").to_owned()
    };
    let (bad, short) = (file("bad", "1\n2\nthree\n4\n5\n"), file("short", "1\n2\n"));
    let (good, zeros) = (file("good", "1\n2\n3\n4\n5\n"), file("zeros", "0\n0\n1\n0\n0\n"));
    let refused = |more: &str, said: &str| {
        let more: Vec<&str> = more.split_whitespace().collect();
        let error = bench(&[&data], &[&["--recipe", "raw"], &more[..]].concat()).error(2);
        assert!(error.contains(said), "{more:?}: {error}");
    };
    let line = "bad: line 3: invalid weight `three`: expected a number of 0 or more";
    refused(&format!("--weights {bad}"), line);
    refused(&format!("--weights {short}"), "2 weights for 5 samples");
    refused("--weights nowhere", "nowhere: No such file");
    let two = format!("--weights {zeros} --replacement without --count 2");
    refused(&two, "cannot draw 2 samples: 1 have a weight");
    let order = "weighted sampling always shuffles fully; `none` cannot be combined with it";
    refused(&format!("--weights {good} --shuffle none"), order);
    for more in ["--samples 1..2", "--balance", "--mix 1"] {
        refused(&format!("--weights {good} {more}"), more.split(' ').next().expect("an option"));
    }
    refused("--balance --mix 1", "cannot be used with");
    refused("--mix 1 --samples 0..2", "cannot be used with");
    refused("--replacement with", "--weights <FILE>");
    refused("--count 3", "--weights <FILE>");
    refused("--length 3", "--mix <WEIGHT>");
    refused("--length longest", "expected samples, first-used-up, all-used-up or a number");
    refused("--mix 1,2", "--mix has 2 weights, expected one for each of 1 data sets");
    refused("--mix 1 --stage 2", "expected START:WEIGHT,WEIGHT,..");
    refused("--mix 1 --stage 2:1,2", "stage 1 of the mixture has 2 weights for 1 parts");
    refused("--mix 1 --stage 2:0", "stage 1 of the mixture has only weights of 0");
    let early = "stage 2 of the mixture starts at sample 2: expected one after 2";
    refused("--mix 1 --stage 2:1 --stage 2:1", early);
    let unused = "part 0 of the mixture is never used up: the stages take 2 of its 5 samples";
    let two = format!("{} --mix 1,1 --length all-used-up --stage 4:0,1", data.display());
    refused(&two, unused);
    refused("--stage 2:1", "--mix <WEIGHT>");
    refused("--mix 0", "part 0 of the mixture has 5 samples and weight 0");
    refused("--repeat 0", "repeat is 0, expected 1 to 4194304");
    refused("--rank 1", "--world <W>");
    refused("--world 2", "--rank <R>");
    refused("--rank 2 --world 2", "rank is 2, expected less than world");
    refused("--rank 0 --world 2 --tail short", "drop, pad, uneven");
    refused(
        "--rank 1 --world 2 --batch-size 5 --tail uneven",
        "rank 1 of 2 has no batch: the epoch has 5 samples, a global batch 10",
    );
    refused("--mixing-group 5 --batch-size 4", "mixing_group is 5, expected a divisor");
    refused("--box-labels /a/*", "--boxes <SOURCE>");
    refused("--flip-pairs 1-2", "--keypoints <SOURCE>");
    refused("--boxes /a/*", "expected an extension and a JSON pointer: json:/a/*");
    refused("--keypoints json", "expected an extension and a JSON pointer: json:/");
    refused("--columns json", "need --recipe columns: samples have --fields");
    refused("--mask-type i64", "--mask <EXTENSION>");
    refused("--boxes json:/a/*", "boxes, keypoints and masks go with one image for each sample");
    let unlabelled = write(folder.path(), "unlabelled.tar", &tar(&[(b"a.jpg", b"a")]));
    let error = bench(&[&unlabelled], &["--recipe", "raw", "--balance"]).error(2);
    assert!(error.contains("sample 0 has no label to balance classes by"), "{error}");
    // What has no batch does not keep the doctor waiting for one.
    let none = ["doctor".as_ref(), data.as_os_str(), "--samples=1..1".as_ref()];
    assert_eq!(tl(none).error(2), "tl: the sampler selects none of 5 samples");
}

#[test]
fn ranks_together_have_the_rows_of_one_process() {
    let train = ["--recipe", "imagenet-train", "--size", "32", "--seed", "3"];
    let mut alone = rows(&[&photos()], &[&train[..], &["--batch-size", "8"]].concat());
    assert_eq!(alone.len(), 12);
    let of = |rank: &str, tail: &str| {
        let shard = ["--batch-size", "4", "--rank", rank, "--world", "2", "--tail", tail];
        rows(&[&photos()], &[&train[..], &shard].concat())
    };
    let both = |tail: &str| {
        let mut rows = [of("0", tail), of("1", tail)].concat();
        rows.sort_by_key(|row| (row["batch"].as_u64(), row["row"].as_u64()));
        rows
    };
    assert_eq!(both("uneven"), alone);
    assert_eq!((of("0", "uneven").len(), of("1", "uneven").len()), (8, 4));
    assert_eq!(both("drop"), alone[..8]);
    // The last global batch is filled from the start of the order, with rows that do not count.
    let padded = both("pad");
    assert_eq!(padded[..12], alone);
    let again: Vec<_> = padded[12..].iter().map(|row| (&row["sample"], &row["valid"])).collect();
    let start: Vec<_> =
        alone[..4].iter().map(|row| (&row["sample"], &Value::Bool(false))).collect();
    assert_eq!(again, start);
    assert!(padded[12..].iter().zip(&alone).all(|(row, first)| row["sha256"] == first["sha256"]));
    // Another seed is seen in every row.
    alone.iter_mut().for_each(|row| row["seed"] = Value::Null);
    assert_ne!(alone, both("uneven"));

    let shard = ["--batch-size", "4", "--rank", "1", "--world", "2", "--json"];
    let line = json_lines(&bench(&[&photos()], &[&train[..], &shard].concat()).text()).remove(0);
    let expected = serde_json::json!({"rank": 1, "world": 2, "batches": 2, "not_valid": 4});
    assert_eq!((&line["shard"], &line["samples_per_epoch"]), (&expected, &8.into()));
}

#[test]
fn ranks_together_have_the_places_of_one_process_around_bad_samples() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = files_below(&photos());
    let files = files.iter().filter(|(name, _)| name.contains('/'));
    let mut members: Vec<(&[u8], &[u8])> =
        files.map(|(name, bytes)| (name.as_bytes(), bytes.as_slice())).collect();
    let count = members.len();
    members[5].1 = &members[5].1[..300];
    let archive = write(folder.path(), "bad.tar", &tar(&members));
    // With the sizes that buckets need.
    let data = folder.path().join("bad.tbl");
    assert_eq!(tl(["convert", text(&archive), "-o", text(&data), "--quiet"]).code, Some(0));
    let of = |name: &str, more: &str| {
        let path = folder.path().join(name);
        let rows = ["--force", "--rows", text(&path), "--on-error", "skip"];
        let more: Vec<&str> = more.split_whitespace().collect();
        let run = bench(&[&data], &[&["--seed", "3"], &rows[..], &more].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        json_lines(&fs::read_to_string(path).expect("the rows exist"))
    };
    let train = "--recipe imagenet-train --size 32";
    let buckets = "--recipe decode --shuffle full --buckets 2";
    for (work, tail) in [(train, "uneven"), (buckets, "uneven"), (train, "pad"), (buckets, "pad")] {
        let mut alone = of("alone", &format!("{work} --tail {tail} --batch-size 8"));
        let shard = format!("{work} --tail {tail} --batch-size 4 --world 2 --rank");
        let mut both = [of("0", &format!("{shard} 0")), of("1", &format!("{shard} 1"))].concat();
        both.sort_by_key(|row| (row["batch"].as_u64(), row["row"].as_u64()));
        if work == buckets {
            // Each rank's images are padded to that rank's own size.
            for row in both.iter_mut().chain(&mut alone) {
                row["sha256"].take();
            }
        }
        assert_eq!(both, alone, "{work} {tail}");
        // All places but those of the bad sample, each once.
        let place = |row: &Value| row["batch"].as_u64().zip(row["row"].as_u64());
        let places = alone.iter().map(|row| place(row).map(|(batch, row)| 8 * batch + row));
        let places: Vec<u64> = places.collect::<Option<_>>().expect("numbers");
        assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
        let valid = alone.iter().filter(|row| row["valid"] == true);
        assert_eq!(valid.count(), count - 1, "{work} {tail}");
    }
}

#[test]
fn the_digest_is_what_its_help_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let members: [(&[u8], &[u8]); 6] = [
        (b"a.jpg", b"first"),
        (b"a.cls", b"7"),
        (b"a.json", b"{}"),
        (b"b.jpg", b"second!"),
        (b"b.cls", b"-9"),
        (b"b.txt", b"text"),
    ];
    let data = write(folder.path(), "two.tar", &tar(&members));
    let settings = ["--recipe=raw", "--shuffle=none", "--batch-size=3", "--tail=pad", "--digest"];
    let digest = |more: &[&str]| {
        let more = [&settings[..], more, &["--json"]].concat();
        json_lines(&bench(&[&data], &more).text()).remove(0)["digest"].clone()
    };
    let number = |number: u64| number.to_le_bytes().to_vec();
    let bytes = |bytes: &[u8]| [number(bytes.len() as u64), bytes.to_vec()].concat();
    let mut hashed = [bytes(b"first"), bytes(b"second!"), bytes(b"first")].concat();
    for label in [7_i64, -9, 7] {
        hashed.extend(label.to_le_bytes());
    }
    hashed.extend([number(0), number(1), number(0)].concat());
    hashed.extend([1, 1, 0]);
    assert_eq!(digest(&[]), sha256(&hashed));
    let none = || number(u64::MAX);
    for (key, txt, json) in [
        (b"a.jpg", none(), bytes(b"{}")),
        (b"b.jpg", bytes(b"text"), none()),
        (b"a.jpg", none(), bytes(b"{}")),
    ] {
        hashed.extend([bytes(key), txt, json].concat());
    }
    assert_eq!(digest(&["--keys", "--fields", "txt,json"]), sha256(&hashed));

    let rows = rows(&[&data], &[&settings[..], &["--fields", "json"]].concat());
    let line = |at: usize, row, sample, label, valid, hashed: Vec<u8>| {
        let sha256 = sha256(&hashed);
        let expected = serde_json::json!({
            "batch": 0, "row": row, "sample": sample, "label": label, "valid": valid, "sha256": sha256
        });
        assert_eq!(rows[at], expected);
    };
    line(0, 0, 0, 7, true, [bytes(b"first"), bytes(b"{}")].concat());
    line(1, 1, 1, -9, true, [bytes(b"second!"), number(u64::MAX)].concat());
    line(2, 2, 0, 7, false, [bytes(b"first"), bytes(b"{}")].concat());
}

/// A bitmap of one pixel.
fn bitmap([red, green, blue]: [u8; 3]) -> Vec<u8> {
    let mut file = b"BM".to_vec();
    for number in [58_u32, 0, 54, 40, 1, 1, 24 << 16 | 1, 0, 4, 0, 0, 0, 0] {
        file.extend(number.to_le_bytes());
    }
    file.extend([blue, green, red, 0]);
    file
}

/// A PNG file of one grey pixel.
fn grey(number: u8) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 1, 1);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().expect("a header");
    writer.write_image_data(&[number]).expect("one pixel");
    writer.finish().expect("an end");
    file
}

#[test]
fn boxes_keypoints_and_masks_are_in_the_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let json = br#"{"annotations": [{"bbox": [0, 0.25, 1, 0.5], "category_id": 17},
        {"bbox": [0.5, 0.5, 0.25, 0], "category_id": 18}], "points": [[0, 0.25, 2], [3, 0, 1]],
        "masks": [[[-1, -1, 3, -1, 3, 3, -1, 3]], {"size": [1, 1], "counts": [1]}]}"#;
    let (image, mask) = (bitmap([1, 2, 3]), grey(9));
    let members: [(&[u8], &[u8]); 3] =
        [(b"a.bmp", &image), (b"a.json", json), (b"a.seg.png", &mask)];
    let data = write(folder.path(), "one.tar", &tar(&members));
    let row = |more: &str| {
        let more = more.split_whitespace().collect::<Vec<_>>();
        let decode = ["--recipe", "decode", "--boxes", "json:/annotations/*/bbox"];
        let mut rows = rows(&[&data], &[&decode[..], &more].concat());
        rows.remove(0)["sha256"].clone()
    };
    let expected = |boxes: &[[f32; 4]], labels: &[i64], mask: &[u8]| {
        let mut hashed = [1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3].to_vec();
        hashed.extend((boxes.len() as u64).to_le_bytes());
        boxes.iter().flatten().for_each(|number| hashed.extend(number.to_le_bytes()));
        labels.iter().for_each(|label| hashed.extend(label.to_le_bytes()));
        hashed.extend(mask);
        sha256(&hashed)
    };
    let edges = [0.0, 0.25, 1.0, 0.75];
    assert_eq!(
        row("--box-format xywh --keep-empty-boxes"),
        expected(&[edges, [0.5, 0.5, 0.75, 0.5]], &[], &[])
    );
    assert_eq!(
        row("--box-format xywh --box-output cxcywh --box-labels /annotations/*/category_id \
             --keep-empty-boxes --mask seg.png"),
        expected(&[[0.5, 0.5, 1.0, 0.5], [0.625, 0.5, 0.25, 0.0]], &[17, 18], &[9])
    );
    // Neither box has a whole pixel.
    assert_eq!(row("--box-format xywh"), expected(&[], &[], &[]));
    let mut points = vec![1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3];
    points.extend(0_u64.to_le_bytes());
    points.extend(6_u64.to_le_bytes());
    for number in [0.0_f32, 0.25, 2.0, 0.0, 0.0, 0.0] {
        points.extend(number.to_le_bytes());
    }
    // The second point is beside the image; neither box has a whole pixel.
    let decode = ["--recipe", "decode", "--keypoints", "json:/points", "--keypoint-shape", "2,3"];
    let boxes =
        ["--boxes", "json:/annotations/*/bbox", "--box-format", "xywh", "--flip-pairs", "0-1"];
    let both = [&decode[..], &boxes].concat();
    assert_eq!(rows(&[&data], &both).remove(0)["sha256"], sha256(&points));
    bench(&[&data], &[&decode[..], &["--flip-pairs", "1"]].concat()).error(2);
    let mut masks = vec![1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3];
    masks.extend(2_u64.to_le_bytes());
    masks.extend([1, 0]);
    let decode = ["--recipe", "decode", "--instance-masks", "json:/masks/*"];
    assert_eq!(rows(&[&data], &decode).remove(0)["sha256"], sha256(&masks));
    let wrong = ["--recipe", "decode", "--boxes", "json:/annotations/bbox"];
    let error = bench(&[&data], &wrong).error(2);
    assert!(error.contains("invalid pointer `/annotations/bbox`"), "{error}");
}

#[test]
fn buckets_say_what_to_do_where_sizes_are_not_known() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let photos = photos();
    let convert = |name: &str, to: &str| {
        let args = ["convert".as_ref(), photos.as_os_str(), "--to".as_ref(), to.as_ref()];
        let output = at(name);
        let run = tl(args.into_iter().chain(["-qo".as_ref(), output.as_os_str()]));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    };
    convert("photos.tar", "tar");
    convert("photos.1.tbl", "tbl1");
    convert("photos.2.tbl", "tbl2");
    let buckets = ["--recipe", "decode", "--batch-size", "3", "--buckets", "2"];
    for data in [photos.clone(), at("photos.tar"), at("photos.1.tbl")] {
        let said = bench(&[&data], &buckets).error(2);
        let expected = format!(
            "tl: {}: buckets need image sizes, which its index lacks; `tl convert` to TBL stores them",
            data.display()
        );
        assert_eq!(said, expected);
    }
    bench(&[&at("photos.2.tbl")], &buckets).good();
}
