//! Parquet files of samples through the commands that take data sets.

use crate::support::{json_lines, sha256, tl};

fn file(name: &str) -> String {
    let folder = tl_testdata::shipped!("parquet");
    folder.join(name).to_str().expect("the path is UTF-8").to_owned()
}

#[test]
fn rows_are_listed_with_their_places() {
    let lines = json_lines(&tl(["ls", "--json", "--hash", &file("datasets_5_2.parquet")]).text());
    let bytes = std::fs::read(file("datasets_5_2.parquet")).expect("the file is readable");
    assert_eq!(lines.len(), 12);
    assert_eq!(lines[6]["key"], "microaneurysms.png");
    assert_eq!((&lines[6]["label"], &lines[6]["format"]), (&3.into(), &"PNG".into()));
    for line in &lines {
        let number =
            |name: &str| line[name].as_u64().and_then(|number| usize::try_from(number).ok());
        let start = number("offset").expect("an offset");
        let end = start + number("bytes").expect("a number of bytes");
        assert_eq!(line["sha256"], sha256(&bytes[start..end]));
    }
    let info = tl(["info", &file("datasets_5_2.parquet")]).text();
    let expected = "\nlabels       12 (explicit)\n\
                    classes      6: animals, food, people, science, space, textures\n";
    assert!(info.contains("\nkind         parquet\n") && info.contains(expected), "{info}");
    let cat = tl(["cat", &file("polars.parquet"), "6"]).good();
    assert_eq!(lines[6]["sha256"], sha256(&cat));
}

#[test]
fn files_of_all_writers_have_one_digest() {
    let digest = |path: String| tl(["digest", &path]).text();
    let expected = digest(file("datasets_5_2.parquet"));
    for name in ["datasets_2_14", "datasets_3_6", "pyarrow_2", "pyarrow_plain"] {
        assert_eq!(digest(file(&format!("{name}.parquet"))), expected, "{name}");
    }
}

#[test]
fn a_converted_file_has_the_samples_labels_and_fields() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let tbl = at("a.tbl");
    let source = file("datasets_3_6.parquet");
    assert_eq!(tl(["convert", &source, "-o", &tbl, "--quiet"]).text(), "");
    let list = |path: &str| {
        let lines = json_lines(&tl(["ls", "--json", "--hash", path]).text());
        lines.iter().map(|line| ["key", "label", "sha256"].map(|name| line[name].clone())).collect()
    };
    let expected: Vec<_> = list(&source);
    assert_eq!(list(&tbl), expected);
    let caption = |path: &str| tl(["cat", path, "5", "--field", "caption"]).text();
    assert_eq!(caption(&source), "photographer, a photograph of people");
    assert_eq!(caption(&tbl), caption(&source));
    let good = tl(["verify", "--decode", &source]).text();
    assert!(good.ends_with(": good: 12 samples, 11709 bytes read and decoded\n"), "{good}");
}

#[test]
fn rows_without_an_image_and_choices_of_columns_are_named() {
    let path = file("pyarrow_nulls.parquet");
    let run = tl(["verify", &path]);
    assert_eq!(run.code, Some(1));
    let found = String::from_utf8(run.stdout).expect("UTF-8");
    assert_eq!(found.lines().count(), 3, "{found}");
    assert!(found.starts_with("sample 1: at byte "), "{found}");
    let path = file("pyarrow_types.parquet");
    let error = tl(["ls", &path]).error(2);
    let expected = "the columns photo and mask have images; name that of the samples \
                    (--image-column)";
    assert_eq!(error, format!("tl: {path}: {expected}"));
    let lines = json_lines(
        &tl(["ls", "--json", "--image-column", "mask", "--label-column", "small", &path]).text(),
    );
    assert_eq!((&lines[0]["key"], &lines[11]["label"]), (&"gravel.jpg".into(), &11.into()));
}

#[test]
fn samples_are_written_as_parquet_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let source = file("datasets_3_6.parquet");
    for (from, to) in
        [(&*source, "a.parquet"), (&at("a.parquet"), "a.tbl"), (&at("a.tbl"), "b.parquet")]
    {
        assert_eq!(tl(["convert", from, "-o", &at(to), "--quiet"]).text(), "");
    }
    let read = |name: &str| std::fs::read(at(name)).expect("the file is readable");
    assert!(read("a.parquet") == read("b.parquet"));
    let digest = |path: &str| tl(["digest", path]).text();
    assert_eq!(digest(&at("b.parquet")), digest(&source));
    let caption = |path: &str| tl(["cat", path, "5", "--field", "caption"]).text();
    assert_eq!(caption(&at("b.parquet")), caption(&source));
    // Shards, and one file of them.
    let pattern = at("part-{}.parquet");
    tl(["split", &at("a.tbl"), "-o", &pattern, "--samples-per-shard", "5"]).good();
    let parts: Vec<String> = (0..3).map(|part| at(&format!("part-0000{part}.parquet"))).collect();
    let merged = at("merged.parquet");
    tl(["merge", &parts[0], &parts[1], &parts[2], "-o", &merged]).good();
    assert!(read("merged.parquet") == read("a.parquet"));
    let error = tl(["convert", &source, "-o", &merged]).error(2);
    assert!(error.ends_with("merged.parquet: exists already (-f replaces it)"), "{error}");
}

#[test]
fn an_index_is_written_next_to_a_file_and_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let path = at("a.parquet");
    std::fs::copy(file("datasets_5_2.parquet"), &path).expect("the file is copied");
    let list = || tl(["ls", "--json", "--hash", &path]).text();
    let expected = list();
    let made = tl(["index", &path]).text();
    assert!(made.starts_with(&format!("{path}.tlidx: 1 shards, 12 samples, ")), "{made}");
    assert_eq!(list(), expected);
    // Another file in its place.
    std::fs::copy(file("pyarrow_2.parquet"), &path).expect("the file is copied");
    let error = tl(["ls", &path]).error(2);
    assert!(error.contains("changed since it was indexed"), "{error}");
    tl(["index", "--update", &path]).good();
    assert_eq!(json_lines(&list()).len(), 12);
}
