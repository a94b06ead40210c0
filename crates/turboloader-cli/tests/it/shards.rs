//! Several shards as one data set: arguments, names with ranges, patterns and shard indexes.

use std::path::Path;

use tempfile::TempDir;

#[cfg(feature = "remote")]
use crate::remote::{Store, service};
use crate::support::{Run, files_below, json_lines, photos, tar, tl, write};

const SHARDS: usize = 3;

/// The photographs in one archive and one TBL file, and the shards of both with their indexes.
struct Photos {
    root: TempDir,
}

impl Photos {
    fn new() -> Self {
        let photos = Self { root: tempfile::tempdir().expect("the temporary folder is writable") };
        let pictures = crate::support::photos();
        for (kind, whole) in [("tar", "whole.tar"), ("tbl", "whole.tbl")] {
            let whole = photos.at(whole);
            tl(["convert", pictures.to_str().expect("the path is UTF-8"), "-o", &whole, "--quiet"])
                .good();
            let shards = photos.at(&format!("{kind}-{{}}.{kind}"));
            let shards = ["-o", &shards, "--shards", "3"];
            // A plain archive has no class names, which `tl split` says.
            assert_eq!(tl(["split", &whole].iter().chain(&shards)).code, Some(0));
            let index = photos.at(&format!("{kind}.tlidx"));
            tl(["index", &photos.ranges(kind), "-o", &index]).good();
        }
        photos
    }

    fn at(&self, name: &str) -> String {
        self.root.path().join(name).to_str().expect("the path is UTF-8").to_owned()
    }

    fn shard(&self, kind: &str, number: usize) -> String {
        self.at(&format!("{kind}-{number:05}.{kind}"))
    }

    fn ranges(&self, kind: &str) -> String {
        self.at(&format!("{kind}-{{00000..00002}}.{kind}"))
    }
}

/// The answers of all commands about the data set at `data`, which has the samples of the file
/// `whole`.
fn check_answers(whole: &str, data: &[&str], run: impl Fn(&[&str]) -> Run) {
    let of_whole = |command: &[&str]| tl([&[command[0], whole], &command[1..]].concat());
    let of_data = |command: &[&str]| run(&[&command[..1], data, &command[1..]].concat());
    let digest = of_data(&["digest"]).text();
    assert_eq!(digest, of_whole(&["digest"]).text(), "{data:?}");
    let merged = tempfile::tempdir().expect("the temporary folder is writable");
    let merged = merged.path().join("merged.tbl");
    let merged = merged.to_str().expect("the path is UTF-8");
    of_data(&["merge", "-o", merged]).good();
    assert_eq!(tl(["digest", merged]).text(), digest, "{data:?}");

    let verified = of_data(&["verify", "--decode", "--json"]).text();
    let verified = &json_lines(&verified)[0];
    assert_eq!((&verified["samples"], &verified["shards"]), (&12.into(), &SHARDS.into()));
    assert_eq!((&verified["good"], &verified["warnings"]), (&true.into(), &0.into()));

    // The places are those in the shards.
    let listed = |run: Run| {
        let mut lines = json_lines(&run.text());
        for line in &mut lines {
            let line = line.as_object_mut().expect("a line is an object");
            line.retain(|name, _| !["offset", "shard", "class"].contains(&&**name));
        }
        lines
    };
    let list = ["ls", "--json", "--hash"];
    assert_eq!(listed(of_data(&list)), listed(of_whole(&list)), "{data:?}");
    let table = of_data(&["ls"]).text();
    let columns: Vec<_> = table.lines().map(|line| line.split('\t').count()).collect();
    assert_eq!(columns, [10; 13]);
    assert!(table.lines().next().expect("a heading").ends_with("\tbytes\tshard"), "{table}");

    let facts = json_lines(&of_data(&["info", "--json"]).text());
    let total = facts.last().expect("a last object");
    assert_eq!((facts.len(), &total["schema"]), (SHARDS + 1, &"tl.info.total/1".into()));
    let expected = &json_lines(&of_whole(&["info", "--json"]).text())[0];
    for name in ["samples", "bytes", "formats", "width", "height", "labelled"] {
        assert_eq!(total[name], expected[name], "{name} of {data:?}");
    }
    let text = of_data(&["info"]).text();
    assert!(text.contains("\n\nshards       3\nsamples      12\n"), "{text}");

    // Captions name classes where they are known.
    if expected["classes"] == total["classes"] {
        let more = ["-n", "5"];
        assert!(sheet(of_data, &more) == sheet(of_whole, &more), "{data:?}");
    }
}

/// The contact sheet that `tl preview` draws.
fn sheet(run: impl Fn(&[&str]) -> Run, more: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    let path = folder.path().join("sheet.png");
    run(&[&["preview", "-o", path.to_str().expect("the path is UTF-8")], more].concat()).good();
    std::fs::read(path).expect("the sheet is readable")
}

/// The answers of commands that take one argument for the data set.
fn check_samples(whole: &str, data: &str, run: impl Fn(&[&str]) -> Run) {
    for index in ["0", "4", "11"] {
        let bytes = run(&["cat", data, index]).good();
        assert!(bytes == tl(["cat", whole, index]).good(), "{data}: {index}");
        let pixels = run(&["decode", data, "--index", index, "--ppm"]).good();
        assert!(pixels == tl(["decode", whole, "--index", index, "--ppm"]).good(), "{data}");
        let explain = ["explain", "imagenet-train", data, "--sample", index];
        let expected = tl(["explain", "imagenet-train", whole, "--sample", index]).text();
        assert_eq!(run(&explain).text(), expected);
    }
    let out = tempfile::tempdir().expect("the temporary folder is writable");
    let extract = |run: &dyn Fn(&[&str]) -> Run, data: &str, name: &str, more: &[&str]| {
        let to = out.path().join(name);
        let done = run(
            &[&["extract", data, "-o", to.to_str().expect("the path is UTF-8")], more].concat()
        );
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let mut files = files_below(&to);
        // Labels follow from the class folders or are files.
        files.retain(|(name, _)| !name.ends_with(".cls"));
        files
    };
    let whole_run: &dyn Fn(&[&str]) -> Run = &|args| tl(args);
    let all = extract(&run, data, "all", &[]);
    assert_eq!(all.len(), 12);
    assert!(all == extract(whole_run, whole, "all-of-whole", &[]), "{data}");
    let some = extract(&run, data, "some", &["11", "0"]);
    assert_eq!(some.len(), 2);
    assert!(some == extract(whole_run, whole, "some-of-whole", &["11", "0"]), "{data}");
    for command in [&["cat", data, "12"][..], &["extract", data, "-o", "none", "12"]] {
        let error = run(command).error(2);
        let expected = format!("{data}: sample 12 does not exist, expected one of 12");
        assert!(error.ends_with(&expected), "{error}");
    }
}

#[test]
fn local_shards_are_one_data_set() {
    let photos = Photos::new();
    for (kind, is_sampled_by_index) in [("tar", false), ("tbl", true)] {
        let whole = photos.at(&format!("whole.{kind}"));
        let ranges = photos.ranges(kind);
        let index = photos.at(&format!("{kind}.tlidx"));
        let shards: Vec<_> = (0..SHARDS).map(|number| photos.shard(kind, number)).collect();
        let shards: Vec<_> = shards.iter().map(String::as_str).collect();
        for data in [&[&*ranges][..], &[&*index], &shards] {
            check_answers(&whole, data, |args| tl(args));
        }
        check_samples(&whole, if is_sampled_by_index { &index } else { &ranges }, |args| tl(args));
    }
    let operations = |data: &str| {
        let run = |args: &[&str]| tl([&args[..1], &[data], &args[1..]].concat());
        sheet(run, &["--ops", "--draws", "1"])
    };
    assert!(operations(&photos.ranges("tbl")) == operations(&photos.at("whole.tbl")));
}

#[test]
#[cfg(feature = "remote")]
fn shards_in_a_store_are_one_data_set() {
    let photos = Photos::new();
    let store = Store::new(service(photos.root.path()));
    let run = |args: &[&str]| store.run(args);
    for (kind, is_sampled_by_index) in [("tar", true), ("tbl", false)] {
        let whole = photos.at(&format!("whole.{kind}"));
        let ranges = format!("s3://b/{kind}-{{00000..00002}}.{kind}");
        // The index of local files is not that of objects.
        let index = photos.at(&format!("store-{kind}.tlidx"));
        assert_eq!(run(&["index", &ranges, "-o", &index]).code, Some(0));
        let indexed = format!("s3://b/store-{kind}.tlidx");
        store.service.objects.put(&indexed["s3://".len()..], std::fs::read(index).unwrap());
        let pattern = format!("s3://b/{kind}-*.{kind}");
        for data in [&pattern, &ranges, &indexed] {
            check_answers(&whole, &[data], run);
        }
        check_samples(&whole, if is_sampled_by_index { &indexed } else { &pattern }, run);
    }
}

#[test]
#[cfg(feature = "remote")]
fn a_sample_of_a_pattern_opens_no_shard_after_its_own() {
    let photos = Photos::new();
    let store = Store::new(service(photos.root.path()));
    let gets = |data: &str, index: &str| {
        let before = store.service.counts().gets;
        store.run(&["cat", data, index]).good();
        store.service.counts().gets - before
    };
    let first = gets("s3://b/tbl-*.tbl", "0");
    assert!(first <= gets("s3://b/tbl-00000*.tbl", "0"));
    assert!(gets("s3://b/tbl-*.tbl", "11") > first);
}

/// Two archives in which a name occurs twice, and of which the second has a name that leads out of
/// its folder.
fn odd_shards(root: &Path) -> String {
    let first: [(&[u8], &[u8]); 2] = [(b"a/x.bin", b"0"), (b"a/y.bin", b"1")];
    let second: [(&[u8], &[u8]); 3] = [(b"a/x.bin", b"2"), (b"../z.bin", b"3"), (b"b/v.bin", b"4")];
    write(root, "0.tar", &tar(&first));
    write(root, "1.tar", &tar(&second));
    root.join("{0..1}.tar").to_str().expect("the path is UTF-8").to_owned()
}

#[test]
fn samples_of_one_name_in_two_shards_are_two_samples() {
    let root = tempfile::tempdir().unwrap();
    let shards: [&[(&[u8], &[u8])]; 2] =
        [&[(b"a/x.bin", b"0"), (b"a/y.bin", b"1")], &[(b"a/x.bin", b"2")]];
    for (number, members) in shards.iter().enumerate() {
        write(root.path(), &format!("{number}.tar"), &tar(members));
    }
    let data = root.path().join("{0..1}.tar");
    let data = data.to_str().unwrap();
    assert_eq!(tl(["cat", data, "2"]).stdout, b"2");
    let verified = tl(["verify", data]).text();
    assert!(verified.contains("\nwarning: 2 samples are called a/x.bin\n"), "{verified}");
    let listing = String::from_utf8(tl(["ls", data, "--json"]).stdout).unwrap();
    let keys: Vec<_> =
        json_lines(&listing).iter().map(|line| line["key"].as_str().unwrap().to_owned()).collect();
    assert_eq!(keys, ["a/x.bin", "a/y.bin", "a/x.bin"]);
    let out = root.path().join("out");
    let run = tl(["extract", data, "-o", out.to_str().unwrap()]);
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.contains("1 sample"), "{}", run.stderr);
    let expected = [("a/x-2.bin", b"2"), ("a/x.bin", b"0"), ("a/y.bin", b"1")];
    let files = files_below(&out);
    let files: Vec<_> = files.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
    assert_eq!(files, expected.map(|(name, bytes)| (name, &bytes[..])));
}

#[test]
fn a_bad_sample_is_named_with_its_shard_and_its_number_in_the_data_set() {
    let root = tempfile::tempdir().unwrap();
    let data = odd_shards(root.path());
    let shard = root.path().join("1.tar");
    let shard = shard.to_str().unwrap();
    let out = root.path().join("out");
    let run = tl(["extract", &data, "-o", out.to_str().unwrap()]);
    let expected = format!("{shard}: sample 3 ");
    assert!(run.code == Some(1) && run.stderr.contains(&expected), "{}", run.stderr);
    assert!(!out.exists() && !root.path().join("z.bin").exists());

    let run = tl(["verify", &data]);
    assert_eq!(run.code, Some(1));
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.contains(&format!("\nsample 3 (../z.bin) in {shard}: at byte ")), "{text}");
    assert!(run.stderr.contains("damaged: 1 of 5 samples bad, the first: sample 3 (../z.bin) in "));
    let found = &json_lines(&String::from_utf8(tl(["verify", &data, "--json"]).stdout).unwrap())[0];
    let findings = found["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["kind"] == "sample").unwrap();
    assert_eq!((&finding["index"], &finding["shard"]), (&3.into(), &shard.into()), "{found}");

    let listing = tl(["ls", &data, "--json"]);
    assert_eq!(listing.code, Some(1));
    let lines = json_lines(&String::from_utf8(listing.stdout).unwrap());
    assert_eq!((lines.len(), &lines[3]["index"], &lines[4]["index"]), (5, &3.into(), &4.into()));
    assert_eq!(lines[3]["shard"], shard);
    let expected = format!("{shard}: sample 3");
    assert!(lines[3]["error"].as_str().unwrap().starts_with(&expected), "{}", lines[3]);
    let text = String::from_utf8(tl(["ls", &data]).stdout).unwrap();
    assert!(text.contains(&format!("\n3\t\t\tDAMAGED\t\t\t\t\t\t{shard}\n")), "{text}");

    let info = tl(["info", &data, "--json"]);
    let total = json_lines(&String::from_utf8(info.stdout).unwrap()).pop().unwrap();
    assert_eq!((&total["samples"], &total["damaged"]), (&5.into(), &1.into()), "{total}");
    let expected = format!("1 of 5 samples are damaged, the first: {shard}: sample 3");
    for command in [&["info", &data][..], &["digest", &data]] {
        let run = tl(command);
        assert!(run.code == Some(1) && run.stderr.contains(&expected), "{}", run.stderr);
    }
    let run = tl(["cat", &data, "3"]);
    assert!(run.code == Some(1) && run.stderr.contains(&format!("{shard}: sample 3 ")));
}

#[test]
fn a_shard_that_does_not_open_is_named_and_the_others_are_checked() {
    let root = tempfile::tempdir().unwrap();
    let data = odd_shards(root.path());
    write(root.path(), "0.tar", &[b'x'; 1024]);
    let run = tl(["verify", &data]);
    let text = String::from_utf8(run.stdout).unwrap();
    let first = format!("damage in {}: at byte 0: ", root.path().join("0.tar").display());
    assert!(text.starts_with(&first) && text.contains("\nsample 1 (../z.bin) in "), "{text}");
    assert_eq!(run.code, Some(1));
    for command in ["ls", "digest", "info"] {
        let error = tl([command, &data]).error(1);
        assert!(error.contains("0.tar: at byte 0: "), "{error}");
    }
}

#[test]
fn totals_have_the_labels_of_the_joined_data_set() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
    write(root.path(), "one.tar", &tar(&[(b"cat/0.jpg", b"0")]));
    write(root.path(), "two.tar", &tar(&[(b"cat/1.jpg", b"1"), (b"dog/2.jpg", b"2")]));
    let facts = json_lines(&tl(["info", &at("one.tar"), &at("two.tar"), "--json"]).text());
    let labelled: Vec<_> = facts.iter().map(|facts| facts["labelled"].as_u64().unwrap()).collect();
    // A single folder makes no classes.
    assert_eq!(labelled, [0, 2, 3]);
    assert_eq!(facts[2]["classes"], serde_json::json!(["cat", "dog"]));
}

#[test]
fn metadata_of_several_files_follows_in_order() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
    for (number, text) in ["{\"a\":1}", "{\"a\":1}", "{\"a\":2}"].iter().enumerate() {
        let metadata = write(root.path(), "m.json", text.as_bytes());
        let to = at(&format!("{number}.tbl"));
        let from = photos();
        let convert = ["convert", from.to_str().unwrap(), "-o", &to, "--quiet", "--metadata"];
        tl(convert.into_iter().chain([metadata.to_str().unwrap()])).good();
    }
    assert_eq!(tl(["cat", &at("{0..2}.tbl"), "--metadata"]).text(), "{\"a\":1}\n{\"a\":2}\n");
}

#[test]
fn parquet_files_are_indexed_and_described() {
    let root = tempfile::tempdir().unwrap();
    let folder = tl_testdata::shipped!("parquet");
    let at = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
    let names = ["datasets_5_2.parquet", "pyarrow_gzip.parquet"];
    for name in names {
        std::fs::copy(folder.join(name), at(name)).unwrap();
        tl(["index", &at(name), "-o", &at("a.tlidx"), "--force"]).good();
        let [whole, indexed] = [at(name), at("a.tlidx")].map(|data| {
            ["digest", "ls"].map(|command| tl([command, &data]).text().replace(&data, "FILE"))
        });
        assert_eq!(whole, indexed, "{name}");
    }
    let facts = json_lines(&tl(["info", &at(names[1]), "--json"]).text());
    assert_eq!(facts[0]["blocks"]["compressions"], serde_json::json!(["gzip"]));
    assert!(facts[0]["blocks"]["unpacked_bytes"].as_u64().unwrap() > 0, "{}", facts[0]);
    let text = tl(["info", &at(names[0])]).text();
    assert!(text.contains("\nblocks ") && text.contains("uncompressed"), "{text}");
    let bench = ["bench", &at(names[0]), "--recipe", "raw", "--seconds", "0.1", "--digest"];
    tl(bench.iter().chain(&["--shuffle", "block:sourcex2"])).good();
    let archive = write(root.path(), "one.tar", &tar(&[(b"0.jpg", b"0")]));
    let archive = archive.to_str().unwrap();
    let error = tl(["bench", archive, "--recipe", "raw", "--shuffle", "block:source"]).error(2);
    assert!(error.contains("one.tar has no blocks for `block:sourcex1`"), "{error}");
}
