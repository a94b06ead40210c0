//! Manifests, metadata files and lists of images: labels, fields, and the errors of each.

use std::path::{Path, PathBuf};

use crate::tar_bytes::Archive;
use tbl_io::{
    Coco, ErrorKind, GivenLabels, LabelOrigin, Labels, ListDefect, Listed, Manifest, Note, Pairs,
    ReadError, SampleSource, SampleSourceExt, SourceKind, Stores, Unpaired, open_coco,
    open_manifest, open_pairs,
};

/// Key, label and class, content, and fields of a sample.
type Seen = (String, Option<i64>, String, Vec<(String, String)>);

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn see(sources: &[Box<dyn SampleSource>]) -> Vec<Seen> {
    let labels = Labels::resolve(sources).unwrap();
    let mut seen = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        for index in 0..source.sample_count() {
            let key = text(source.entry(index).unwrap().key.unwrap().into_owned());
            let (mut bytes, mut fields) = (Vec::new(), Vec::new());
            source.read_into(index, &mut bytes).unwrap();
            let stored = source.stored(index).unwrap().unwrap();
            let mut again = Vec::new();
            stored.read_into(&mut again).unwrap();
            assert_eq!(again, bytes);
            assert_eq!(source.facts(index).unwrap().bytes, bytes.len() as u64);
            source.read_fields(index, &mut fields).unwrap();
            let fields = fields.into_iter().map(|field| (text(field.extension), text(field.bytes)));
            seen.push((key, labels.label(number, index), text(bytes), fields.collect()));
        }
    }
    seen
}

/// A folder with files that have their path as content.
fn files(paths: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for path in paths {
        let file = root.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, path).unwrap();
    }
    root
}

fn write(root: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

fn sample(path: &str, label: Option<i64>, fields: &[(&str, &str)]) -> Seen {
    let fields = fields.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    (path.to_owned(), label, path.to_owned(), fields.collect())
}

fn boxed(listed: Listed) -> Vec<Box<dyn SampleSource>> {
    vec![Box::new(listed)]
}

fn open(path: &Path) -> Vec<Box<dyn SampleSource>> {
    tbl_io::open_all(&[path]).unwrap()
}

fn defect(error: ReadError) -> ListDefect {
    match error {
        ReadError::List { source, .. } => source,
        other => panic!("{other}"),
    }
}

#[test]
fn a_manifest_gives_labels_and_fields() {
    let root = files(&["a/1.jpg", "a/2.png", "b/3.jpg", "m/1.png"]);
    let csv = "\u{feff}path,label,caption,mask\r\na/1.jpg,dog,\"one, two\",m/1.png\r\n\
               b/3.jpg,cat,,\r\na/1.jpg,,\"x\ny\",\r\n";
    let manifest = write(root.path(), "train.csv", csv);
    let plain = [
        sample("a/1.jpg", Some(1), &[("caption", "one, two"), ("mask", "m/1.png")]),
        sample("b/3.jpg", Some(0), &[("caption", ""), ("mask", "")]),
        sample("a/1.jpg", None, &[("caption", "x\ny"), ("mask", "")]),
    ];
    assert_eq!(see(&open(&manifest)), plain);
    let options = Manifest { files: vec!["mask".into()], ..Manifest::default() };
    let listed = boxed(open_manifest(&Stores::new(), &manifest, &options).unwrap());
    assert_eq!(listed[0].kind(), SourceKind::Manifest);
    let labels = Labels::resolve(&listed).unwrap();
    assert_eq!(labels.class_names(), ["cat", "dog"]);
    assert_eq!(labels.origin(), LabelOrigin::Explicit);
    assert!(matches!(labels.notes(), [Note::PartlyLabelled { samples: 1, .. }]));
    let expected = [
        sample("a/1.jpg", Some(1), &[("mask", "m/1.png"), ("caption", "one, two")]),
        sample("b/3.jpg", Some(0), &[("caption", "")]),
        sample("a/1.jpg", None, &[("caption", "x\ny")]),
    ];
    assert_eq!(see(&listed), expected);
}

#[test]
fn rows_of_one_file_share_the_number_of_the_first() {
    let root = files(&["a.mp4", "b.mp4", "c.mp4"]);
    let lines = "path,from\nb.mp4,0\na.mp4,0\nb.mp4,1\nc.mp4,0\na.mp4,2\nb.mp4,2\n";
    let listed = open(&write(root.path(), "parts.csv", lines));
    let firsts = (0..6).map(|index| listed[0].first_of_file(index));
    assert_eq!(firsts.collect::<Vec<_>>(), [0, 1, 0, 3, 1, 0]);
    let listed = open(&write(root.path(), "all.csv", "path,from\nb.mp4,0\na.mp4,0\n"));
    assert_eq!([0, 1].map(|index| listed[0].first_of_file(index)), [0, 1]);
}

#[test]
fn blanks_around_the_names_of_columns_do_not_count() {
    let root = files(&["1.jpg", "2.jpg"]);
    let manifest = write(root.path(), "train.csv", " path , label\n1.jpg, dog\n2.jpg,cat \n");
    let expected = [sample("1.jpg", Some(1), &[]), sample("2.jpg", Some(0), &[])];
    assert_eq!(see(&open(&manifest)), expected);
}

#[test]
fn a_missing_file_of_a_field_matters_to_those_who_ask_for_it() {
    let root = files(&["1.jpg", "1.png", "1.txt", "m/1.png"]);
    let manifest = write(root.path(), "train.csv", "path,mask,note\n1.jpg,m/1.png,a\n");
    let options = Manifest { files: vec!["mask".into()], ..Manifest::default() };
    let listed = open_manifest(&Stores::new(), &manifest, &options).unwrap();
    std::fs::create_dir(root.path().join("x")).unwrap();
    for name in ["1.jpg", "1.txt", "1.seg.png"] {
        std::fs::write(root.path().join("x").join(name), "x").unwrap();
    }
    let folder = tbl_io::open(root.path().join("x")).unwrap();
    std::fs::remove_file(root.path().join("m/1.png")).unwrap();
    std::fs::remove_file(root.path().join("x/1.seg.png")).unwrap();
    let sources: [(&dyn SampleSource, _, _, _); 2] =
        [(&listed, "note", "mask", "m/1.png"), (&*folder, "txt", "seg.png", "1.seg.png")];
    for (source, there, gone, file) in sources {
        let read = |wanted: &str| {
            let mut fields = Vec::new();
            let mut is_wanted = |name: &[u8], _| name == wanted.as_bytes();
            source.read_fields_where(0, &mut is_wanted, &mut fields).map(|()| fields)
        };
        assert_eq!(read(there).unwrap().len(), 1);
        let error = read(gone).unwrap_err();
        assert!(error.location().as_os_str().to_str().unwrap().ends_with(file), "{error}");
        assert!(error.detail().to_string().starts_with(&format!("{file}: ")), "{error}");
    }
}

#[test]
fn json_lines_keep_the_json_of_what_is_not_text() {
    let root = files(&["1.jpg", "2.jpg"]);
    let lines = "{\"image\": \"2.jpg\", \"label\": 7, \"boxes\": [[1, 2, 3, 4]], \"note\": null}\n\
                 {\"image\": \"1.jpg\", \"label\": -1, \"note\": \"a \\u00e9\"}";
    let manifest = write(root.path(), "train.jsonl", lines);
    let expected = [
        sample("2.jpg", Some(7), &[("boxes", "[[1, 2, 3, 4]]")]),
        sample("1.jpg", Some(-1), &[("note", "a é")]),
    ];
    assert_eq!(see(&open(&manifest)), expected);
}

#[test]
fn labels_that_are_not_integers_stay_fields() {
    let root = files(&["1.jpg", "2.jpg"]);
    for (cells, is_label) in
        [(["1.5", "2"], false), (["\"[1,0]\"", "\"[0,1]\""], false), (["1", "2"], true)]
    {
        let csv = format!("path,label\n1.jpg,{}\n2.jpg,{}\n", cells[0], cells[1]);
        let seen = see(&open(&write(root.path(), "train.csv", csv)));
        assert_eq!(seen.iter().all(|(_, label, ..)| label.is_some()), is_label, "{cells:?}");
        assert_eq!(seen.iter().all(|(.., fields)| fields.is_empty()), is_label, "{cells:?}");
    }
}

#[test]
fn columns_and_root_can_be_chosen() {
    let root = files(&["images/1.jpg", "images/2.jpg"]);
    let csv = ",x,class,label\n0,1.jpg,5,9\n1,2.jpg,6,8\n";
    let manifest = write(root.path(), "lists/train.csv", csv);
    let open = |options: &Manifest| open_manifest(&Stores::new(), &manifest, options);
    let columns: Vec<String> = ["", "x", "class", "label"].map(str::to_owned).to_vec();
    let error = open(&Manifest::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Setting);
    assert_eq!(defect(error), ListDefect::NoImageColumn { columns: columns.clone() });
    let named =
        Manifest { image: Some("x".into()), label: Some("class".into()), ..Manifest::default() };
    let ListDefect::Missing { count: 2, first } = defect(open(&named).unwrap_err()) else {
        panic!("the images are in another folder");
    };
    assert_eq!(first, b"1.jpg");
    let images = root.path().join("images");
    let options = Manifest { root: Some((&images).into()), ..named };
    let expected =
        [sample("1.jpg", Some(5), &[("label", "9")]), sample("2.jpg", Some(6), &[("label", "8")])];
    let content = |(key, label, _, fields): &Seen| (key.clone(), *label, fields.clone());
    let seen = see(&boxed(open(&options).unwrap()));
    assert_eq!(seen.iter().map(content).collect::<Vec<_>>(), expected.each_ref().map(content));
    let wrong = Manifest { label: Some("nope".into()), ..options };
    let name = "nope".to_owned();
    assert_eq!(defect(open(&wrong).unwrap_err()), ListDefect::NoColumn { name, columns });
}

#[test]
fn errors_name_file_line_and_column() {
    let root = files(&["1.jpg", "2.jpg", "secret.jpg"]);
    let check = |name: &str, content: &str, expected: &str| {
        let manifest = write(root.path(), name, content);
        let error = tbl_io::open(&manifest).unwrap_err().to_string();
        let expected = format!("{}: {expected}", manifest.display());
        assert_eq!(
            error.replace(&root.path().display().to_string(), "ROOT"),
            expected.replace(&root.path().display().to_string(), "ROOT")
        );
    };
    check(
        "a.csv",
        "path,label\n1.jpg,1\n\n3.jpg,2\n4.jpg,2\n",
        "line 4, column `path`: 2 named files do not exist, first `3.jpg`",
    );
    check("a.csv", "path,label\n1.jpg\n", "line 2: 1 cells, expected 2");
    check("a.csv", "path,label\n1.jpg,1\n,1\n", "line 3, column `path`: no file is named");
    check(
        "a.csv",
        "path,label\n1.jpg,3\n2.jpg,cat\n",
        "line 3, column `label`: the label is `cat`, expected an integer as in line 2; labels are \
         all integers or all names of classes",
    );
    check(
        "sub/a.csv",
        "path\n../secret.jpg\n",
        "line 2, column `path`: unsafe path `../secret.jpg`: it contains `..`; expected a path \
         below ROOT/sub (`root` specifies another folder)",
    );
    check(
        "a.tsv",
        "path\tx\nhttp://h/1.jpg\t\n",
        "line 2, column `path`: `http://h/1.jpg` is a URL, expected a path below ROOT",
    );
    check("a.csv", "", "the file is empty, expected a row with the names of columns");
    check(
        "a.csv",
        "path,image\n",
        "several columns may name the images; specify one of: path, image",
    );
    check(
        "a.jsonl",
        "{\"path\": \"1.jpg\"}\n[]\n",
        "line 2: invalid type: sequence, expected an object",
    );
}

#[test]
fn an_absolute_path_lies_below_the_root() {
    let root = files(&["1.jpg"]);
    let path = root.path().join("1.jpg");
    let csv = format!("path\n{}\n", path.display());
    let manifest = write(root.path(), "in.csv", &csv);
    assert_eq!(open(&manifest)[0].entry(0).unwrap().key.as_deref(), Some(&b"1.jpg"[..]));
    let other = files(&[]);
    let manifest = write(other.path(), "out.csv", &csv);
    let error = tbl_io::open(&manifest).unwrap_err();
    assert!(error.is_damage());
    assert!(matches!(defect(error), ListDefect::Path { .. }));
    let options = Manifest { root: Some("/".into()), ..Manifest::default() };
    let listed = open_manifest(&Stores::new(), &manifest, &options).unwrap();
    let key = listed.entry(0).unwrap().key.unwrap().into_owned();
    assert_eq!(text(key), path.to_str().unwrap()[1..]);
}

#[test]
fn a_file_that_goes_away_is_an_error_of_its_sample() {
    let root = files(&["1.jpg", "2.jpg", "m.png"]);
    let manifest = write(root.path(), "a.csv", "path,mask\n1.jpg,m.png\n2.jpg,m.png\n");
    let options = Manifest { files: vec!["mask".into()], ..Manifest::default() };
    let listed = open_manifest(&Stores::new(), &manifest, &options).unwrap();
    std::fs::remove_file(root.path().join("2.jpg")).unwrap();
    std::fs::remove_file(root.path().join("m.png")).unwrap();
    let mut bytes = Vec::new();
    listed.read_into(0, &mut bytes).unwrap();
    let error = listed.read_into(1, &mut bytes).unwrap_err();
    assert_eq!(error.sample_index(), Some(1));
    let error = listed.read_fields(0, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("m.png: sample 0 (1.jpg): "), "{error}");
    assert!(listed.entry(2).is_err());
}

#[test]
fn sizes_are_checked_before_memory_is_taken() {
    let root = files(&["1.jpg"]);
    let manifest = write(root.path(), "a.csv", format!("path,text\n1.jpg,{}\n", "x".repeat(500)));
    let mut options = Manifest::default();
    options.limits.sample_bytes = 400;
    let error = open_manifest(&Stores::new(), &manifest, &options).unwrap_err();
    assert!(matches!(error, ReadError::Limit { limit: 400, .. }), "{error}");
    options.limits.sample_bytes = 600;
    let listed = open_manifest(&Stores::new(), &manifest, &options).unwrap();
    std::fs::write(root.path().join("1.jpg"), [0; 601]).unwrap();
    let error = listed.read_into(0, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("sample bytes is 601, expected at most 600"), "{error}");
}

#[test]
fn a_folder_with_metadata_has_the_rows_as_samples() {
    let root = files(&["x/1.jpg", "x/2.jpg", "y/1.jpg", "y/deep/3.jpg", "readme.txt"]);
    write(root.path(), "y/metadata.csv", "file_name,text,label\ndeep/3.jpg,three,1\n1.jpg,one,0\n");
    write(root.path(), "x/metadata.csv", "file_name,text\n2.jpg,two\n");
    let sources = open(root.path());
    let expected = [
        ("x/2.jpg", None, vec![("text", "two")]),
        ("y/deep/3.jpg", Some(1), vec![("text", "three"), ("label", "1")]),
        ("y/1.jpg", Some(0), vec![("text", "one"), ("label", "0")]),
    ];
    let expected = expected.map(|(path, label, fields)| sample(path, label, &fields));
    assert_eq!(see(&sources), expected);
    let unlisted = Note::Unlisted { images: 1, first: b"x/1.jpg".to_vec() };
    assert_eq!(sources[0].notes(), [unlisted]);
}

#[test]
fn metadata_may_name_several_images() {
    let root = files(&["l/1.png", "r/1.png", "l/2.png"]);
    let lines = "{\"left_file_name\": \"l/1.png\", \"right_file_name\": \"r/1.png\"}\n\
                 {\"left_file_name\": \"l/2.png\", \"right_file_name\": null}\n";
    write(root.path(), "metadata.jsonl", lines);
    let expected = [
        sample("l/1.png", None, &[("left", "l/1.png"), ("right", "r/1.png")]),
        sample("l/2.png", None, &[("left", "l/2.png")]),
    ];
    assert_eq!(see(&open(root.path())), expected);
}

#[test]
fn metadata_of_other_kinds_is_refused_by_name() {
    let check = |names: &[(&str, &str)], expected: &str| {
        let root = files(&["1.jpg"]);
        names.iter().for_each(|(name, content)| drop(write(root.path(), name, content)));
        let error = tbl_io::open(root.path()).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    };
    check(
        &[("metadata.parquet", "PAR1")],
        "metadata.parquet: Parquet metadata is not read; expected metadata.csv or metadata.jsonl",
    );
    check(
        &[("a/metadata.csv", "file_name\n"), ("b/metadata.jsonl", "")],
        ": a folder with Csv and Jsonl metadata is not read; expected one kind",
    );
    check(
        &[("metadata.jsonl", "{\"file_names\": [\"1.jpg\"]}")],
        "column `file_names`, which lists several images, is not read; expected column `file_name`",
    );
    check(&[("metadata.csv", "path,text\n")], "no column `file_name`, expected one of: path, text");
    check(
        &[("sub/metadata.csv", "file_name\n../1.jpg\n")],
        "/sub/ (`root` specifies another folder)",
    );
}

#[test]
fn images_in_sequence_are_one_source_with_class_folders() {
    let root = files(&["p/cat/1.jpg", "p/dog/2.png", "p/dog/1.jpg"]);
    let at = |name: &str| root.path().join(name);
    let paths = [at("p/dog/2.png"), at("p/cat/1.jpg"), at("p/dog/1.jpg")];
    let sources = tbl_io::open_all(&paths).unwrap();
    assert_eq!(sources.len(), 1);
    assert_eq!(sources[0].location(), &(&at("p")).into());
    let seen = see(&sources);
    let keys: Vec<_> = seen.iter().map(|(key, label, ..)| (key.as_str(), *label)).collect();
    assert_eq!(keys, [("dog/2.png", Some(1)), ("cat/1.jpg", Some(0)), ("dog/1.jpg", Some(1))]);
    let flat = see(&tbl_io::open_all(&paths[2..]).unwrap());
    assert_eq!((flat[0].0.as_str(), flat[0].1), ("1.jpg", None));
}

#[test]
fn images_next_to_other_sources_keep_their_order() {
    let root = files(&["1.jpg", "2.jpg", "f/3.jpg", "4.jpg", "x.jpg/5.jpg"]);
    let paths = ["1.jpg", "2.jpg", "f", "4.jpg", "x.jpg", "f/../4.jpg", "2.jpg"];
    let paths = paths.map(|path| root.path().join(path));
    let sources = tbl_io::open_all(&paths).unwrap();
    let counts: Vec<u64> = sources.iter().map(|source| source.sample_count()).collect();
    assert_eq!(counts, [2, 1, 1, 1, 1, 1]);
    let keys = see(&sources).into_iter().map(|(key, ..)| key).collect::<Vec<_>>();
    assert_eq!(keys, ["1.jpg", "2.jpg", "3.jpg", "4.jpg", "5.jpg", "4.jpg", "2.jpg"]);
    let missing = tbl_io::open_all(&[&paths[0], &root.path().join("no.jpg")]).unwrap_err();
    assert!(missing.to_string().contains("no.jpg: No such file"), "{missing}");
}

fn given(
    sources: &[Box<dyn SampleSource>],
    labels: &GivenLabels,
) -> Result<(Vec<Option<i64>>, Labels), ReadError> {
    let labels = Labels::given(sources, labels)?;
    let samples = sources
        .iter()
        .enumerate()
        .flat_map(|(number, source)| (0..source.sample_count()).map(move |index| (number, index)));
    let found = samples.map(|(number, index)| labels.label(number, index)).collect();
    Ok((found, labels))
}

#[test]
fn given_labels_replace_those_of_the_sources() {
    let root = files(&["cat/1.jpg", "dog/1.jpg", "dog/2.x.jpg"]);
    let sources = tbl_io::open_all(&[root.path(), root.path()]).unwrap();
    let (found, labels) = given(&sources, &GivenLabels::in_order((5..11).collect())).unwrap();
    assert_eq!(found, (5..11).map(Some).collect::<Vec<_>>());
    assert_eq!(labels.origin(), LabelOrigin::Given);
    assert!(labels.notes().is_empty() && labels.class_names().is_empty());
    let classes = GivenLabels::classes_in_order(&["b", "a", "c", "b", "b", "a"]);
    let (found, labels) = given(&sources, &classes).unwrap();
    assert_eq!(found, [1, 0, 2, 1, 1, 0].map(Some));
    assert_eq!(labels.class_names(), ["a", "b", "c"]);
    let few = given(&sources, &GivenLabels::in_order(vec![1])).unwrap_err();
    assert_eq!(few.kind(), ErrorKind::Setting);
    assert_eq!(defect(few), ListDefect::LabelCount { found: 1, expected: 6 });
}

#[test]
fn labels_are_found_by_the_whole_name_and_without_extensions() {
    let root = files(&["cat/1.jpg", "dog/1.jpg", "dog/2.x.jpg", "dog/3.x.jpg"]);
    let sources = open(root.path());
    let table = |pairs: &[(&str, i64)]| {
        GivenLabels::by_name(pairs.iter().map(|(n, l)| (n.as_bytes().to_vec(), *l)).collect())
    };
    let names = [("cat/1", 1), ("dog/1.jpg", 2), ("dog/1", 9), ("dog/2.x", 3), ("dog/3", 4)];
    let (found, labels) = given(&sources, &table(&names)).unwrap();
    assert_eq!(found, [1, 2, 3, 4].map(Some));
    let unused = Note::UnusedLabels { labels: 1, first: b"dog/1".to_vec() };
    assert_eq!(labels.notes(), [unused]);
    let few = table(&[("dog/1", 2)]);
    let error = defect(given(&sources, &few).unwrap_err());
    let first = b"cat/1.jpg".to_vec();
    assert_eq!(error, ListDefect::Unlabelled { count: 3, of: 4, first });
    let (found, labels) = given(&sources, &few.or_none()).unwrap();
    assert_eq!(found, [None, Some(2), None, None]);
    assert!(matches!(labels.notes(), [Note::PartlyLabelled { samples: 3, .. }]));
}

#[test]
fn a_file_of_labels_is_a_table_or_lines() {
    let root = files(&["p/1.jpg", "p/2.jpg"]);
    let sources = open(&root.path().join("p"));
    let check = |name: &str, content: &str, expected: [i64; 2]| {
        let path = write(root.path(), name, content);
        let labels = GivenLabels::read(&Stores::new(), &path).unwrap();
        assert_eq!(given(&sources, &labels).unwrap().0, expected.map(Some), "{content}");
    };
    check("l.csv", "id,breed\n1,pug\n2,boxer\n", [1, 0]);
    check("l.csv", "breed,id\npug,1\nboxer,2\n", [1, 0]);
    check("l.csv", "label,x,path\n3,,1.jpg\n4,,2.jpg\n", [3, 4]);
    check("l.tsv", "a\tb\n2\t7\n1\t8\n", [8, 7]);
    check("l.jsonl", "{\"key\": \"1\", \"label\": 5}\n{\"key\": \"2\", \"label\": 6}", [5, 6]);
    check("val.txt", "1.jpg 3\r\n\n 2.jpg\t4 \n", [3, 4]);
    let fails = |name: &str, content: &str, expected: &str| {
        let path = write(root.path(), name, content);
        let error = GivenLabels::read(&Stores::new(), &path).unwrap_err().to_string();
        assert_eq!(error, format!("{}: {expected}", path.display()));
    };
    fails("l.csv", "id,label\n1,2\n\n1,3\n", "line 4, column `id`: sample `1` occurs twice");
    fails("val.txt", "1.jpg 3\n2.jpg\n", "line 2: 1 cells, expected 2");
    fails(
        "l.csv",
        "id,label\n1,2.5\n",
        "line 2, column `label`: a column of numbers that are not integers, or of lists, is not \
         read; expected integers or names of classes; a manifest has other fields",
    );
    fails("l.csv", "a,b,c\n", "no column `label`, expected one of: a, b, c");
}

#[test]
fn images_and_masks_belong_together_by_the_stars_of_their_patterns() {
    let root = files(&[
        "left/a/a_1_leftImg8bit.png",
        "left/b/b_2_leftImg8bit.png",
        "gt/a/a_1_gtFine_labelIds.png",
        "gt/a/a_1_gtFine_color.png",
        "gt/b/b_2_gtFine_labelIds.png",
        "x/readme.txt",
    ]);
    let at = |name: &str| root.path().join(name).display().to_string();
    let pairs = Pairs {
        image: at("left/*/*_leftImg8bit.png"),
        fields: vec![("mask".into(), at("gt/*/*_gtFine_labelIds.png"))],
        ..Pairs::default()
    };
    let expected = [
        sample("left/a/a_1_leftImg8bit.png", None, &[("mask", "gt/a/a_1_gtFine_labelIds.png")]),
        sample("left/b/b_2_leftImg8bit.png", None, &[("mask", "gt/b/b_2_gtFine_labelIds.png")]),
    ];
    let open = |pairs: &Pairs| open_pairs(&Stores::new(), pairs);
    assert_eq!(see(&boxed(open(&pairs).unwrap())), expected);
    for line in ["b/b_2", "b_2", "\u{feff}b_2"] {
        let split = write(root.path(), "val.txt", format!("{line}\n\n"));
        let split = Pairs { split: Some((&split).into()), ..pairs.clone() };
        assert_eq!(see(&boxed(open(&split).unwrap())), expected[1..]);
    }
    let split = write(root.path(), "val.txt", "b/b_2\nc/c_3\r\n");
    let split = Pairs { split: Some((&split).into()), ..pairs.clone() };
    let error = open(&split).unwrap_err().to_string();
    assert!(error.ends_with("line 2: 1 named files do not exist, first `c/c_3`"), "{error}");
    let uneven = Pairs { fields: vec![("mask".into(), at("gt/a/*_labelIds.png"))], ..pairs };
    assert!(matches!(defect(open(&uneven).unwrap_err()), ListDefect::Unread { .. }));
}

#[test]
fn patterns_have_alternatives_in_braces() {
    let root = files(&["i/2.png", "i/1.jpg", "i/[3].jpg", "m/1.png", "m/2.bmp", "m/[3].png"]);
    let at = |name: &str| root.path().join(name).display().to_string();
    let pairs = Pairs {
        image: at("i/*.{jpg,png,webp}"),
        fields: vec![("mask".into(), at("m/*.{bmp,png}"))],
        ..Pairs::default()
    };
    let open = || open_pairs(&Stores::new(), &pairs);
    let expected = [
        sample("i/1.jpg", None, &[("mask", "m/1.png")]),
        sample("i/2.png", None, &[("mask", "m/2.bmp")]),
        sample("i/[3].jpg", None, &[("mask", "m/[3].png")]),
    ];
    assert_eq!(see(&boxed(open().unwrap())), expected);
    write(root.path(), "m/2.png", "another");
    let error = open().unwrap_err().to_string();
    let expected = format!(
        "{}: `m/2.bmp` and `m/2.png` both have `2` for the stars, expected one file for each",
        at("m/*.{bmp,png}")
    );
    assert_eq!(error, expected);
}

#[test]
fn a_line_of_a_split_that_means_several_images_is_refused() {
    let root = files(&["i/a/0001.jpg", "i/a/0002.jpg", "i/b/0002.jpg", "i/c/0002.jpg"]);
    let open = |lines: &str| {
        let split = write(root.path(), "val.txt", lines);
        let image = root.path().join("i/*/*.jpg").display().to_string();
        let pairs = Pairs { image, split: Some((&split).into()), ..Pairs::default() };
        open_pairs(&Stores::new(), &pairs)
    };
    let chosen = see(&boxed(open("b/0002\n0001\n").unwrap()));
    let keys: Vec<_> = chosen.iter().map(|(key, ..)| key.as_str()).collect();
    assert_eq!(keys.len(), 2);
    assert!(keys[0].ends_with("b/0002.jpg") && keys[1].ends_with("a/0001.jpg"), "{keys:?}");
    let error = open("0001\n0002\n").unwrap_err();
    let expected = format!(
        "{}: line 2: `0002` stands for `a/0002.jpg` and `b/0002.jpg`, expected a name with more folders",
        root.path().join("val.txt").display()
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn files_without_a_partner_are_refused_kept_or_dropped() {
    let root = files(&["i/1.jpg", "i/2.jpg", "i/3.jpg", "m/2.png", "m/4.png"]);
    let at = |name: &str| root.path().join(name).display().to_string();
    let pairs = |unpaired| Pairs {
        image: at("i/*.jpg"),
        fields: vec![("mask".into(), at("m/*.png"))],
        unpaired,
        ..Pairs::default()
    };
    let open = |pairs: &Pairs| open_pairs(&Stores::new(), pairs);
    let error = open(&pairs(Unpaired::Refuse)).unwrap_err();
    let expected = format!(
        "{}: 2 of 3 files have no partner in {}, first `i/1.jpg`",
        at("i/*.jpg"),
        at("m/*.png")
    );
    assert_eq!(error.to_string(), expected);
    let kept = see(&boxed(open(&pairs(Unpaired::Keep)).unwrap()));
    let paired = sample("i/2.jpg", None, &[("mask", "m/2.png")]);
    let alone = |path: &str| sample(path, None, &[]);
    assert_eq!(kept, [alone("i/1.jpg"), paired.clone(), alone("i/3.jpg")]);
    let dropped = see(&boxed(open(&pairs(Unpaired::Drop)).unwrap()));
    assert_eq!(dropped, std::slice::from_ref(&paired));
    std::fs::remove_file(root.path().join("i/1.jpg")).unwrap();
    std::fs::remove_file(root.path().join("i/3.jpg")).unwrap();
    let error = defect(open(&pairs(Unpaired::Refuse)).unwrap_err());
    assert!(matches!(error, ListDefect::Unpaired { count: 1, of: 2, .. }), "{error}");
    let none = Pairs { image: at("i/*.gif"), ..pairs(Unpaired::Keep) };
    let error = open(&none).unwrap_err().to_string();
    assert!(error.ends_with("*.gif: no file matches this pattern"), "{error}");
    let apart = Pairs { image: at("i/../i/*.jpg"), ..pairs(Unpaired::Drop) };
    assert_eq!(see(&boxed(open(&apart).unwrap()))[0].3, paired.3);
}

const INSTANCES: &str = r#"{"info": {"year": 2017, "url": "a]}\""},
    "annotations": [
        {"id": 1, "image_id": 20, "category_id": 90, "bbox": [1, 2.5, 3, 4], "area": 7.5,
         "segmentation": [[1, 2, 3, 4, 5, 6]], "iscrowd": 0},
        {"id": 2, "image_id": 10, "category_id": 1, "bbox": [0, 0, 1, 1], "iscrowd": 1,
         "segmentation": {"counts": "]}\"", "size": [2, 2]}},
        {"id": 3, "image_id": 99, "category_id": 1},
        {"id": 4, "image_id": 20, "category_id": 1, "keypoints": [1, 2, 2]}
    ],
    "images": [{"id": 20, "file_name": "b.jpg", "width": 9}, {"id": 10, "file_name": "a.jpg"},
               {"file_name": "c/c.jpg", "id": 30}],
    "categories": [{"id": 90, "name": "toothbrush", "supercategory": "indoor"},
                   {"id": 1, "name": "person"}]}
"#;

#[test]
fn the_names_of_keypoints_say_which_are_exchanged_in_mirrored_images() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("b.jpg"), "b").unwrap();
    let opened = |keypoints: &[&str]| {
        let category = |(id, names): (usize, &&str)| {
            format!(r#"{{"id": {id}, "name": "{id}", "keypoints": {names}}}"#)
        };
        let categories: Vec<String> = keypoints.iter().enumerate().map(category).collect();
        let categories = categories.join(",");
        let image = r#"{"id": 20, "file_name": "b.jpg"}"#;
        let json = format!(r#"{{"images": [{image}], "categories": [{categories}]}}"#);
        let path = root.path().join("a.json");
        std::fs::write(&path, json).unwrap();
        open_coco(&Stores::new(), &path, &Coco::default()).unwrap()
    };
    let eyes = r#"["nose", "left_eye", "right_eye"]"#;
    assert_eq!(opened(&[eyes]).flip_pairs(), [[1, 2]]);
    assert_eq!(opened(&["null", eyes, "[5]", eyes]).flip_pairs(), [[1, 2]]);
    assert!(opened(&["null"]).flip_pairs().is_empty());
    let unclear = opened(&[eyes, r#"["right_hoof", "left_hoof"]"#]);
    assert!(unclear.flip_pairs().is_empty());
    assert_eq!(unclear.notes(), [Note::OtherFlipPairs { first: 0, other: 1 }]);
}

/// The field `json` of each sample.
fn json_of(listed: &Listed) -> Vec<serde_json::Value> {
    let field = |index| {
        let mut fields = Vec::new();
        listed.read_fields(index, &mut fields).unwrap();
        assert_eq!(fields.len(), 1);
        serde_json::from_slice(&fields[0].bytes).unwrap()
    };
    (0..listed.sample_count()).map(field).collect()
}

#[test]
fn annotations_of_an_image_are_its_objects_as_they_are() {
    let root = files(&["val2017/a.jpg", "val2017/b.jpg", "val2017/c/c.jpg"]);
    let path = write(root.path(), "annotations/instances_val2017.json", INSTANCES);
    let listed = open_coco(&Stores::new(), &path, &Coco::default()).unwrap();
    let all: serde_json::Value = serde_json::from_str(INSTANCES).unwrap();
    let expected: Vec<serde_json::Value> = all["images"]
        .as_array()
        .unwrap()
        .iter()
        .map(|image| {
            let is_of_image = |one: &&serde_json::Value| one["image_id"] == image["id"];
            let objects: Vec<_> =
                all["annotations"].as_array().unwrap().iter().filter(is_of_image).collect();
            serde_json::json!({"image": image, "annotations": objects})
        })
        .collect();
    assert_eq!(json_of(&listed), expected);
    let names = listed.box_class_names();
    assert_eq!(
        (names.len(), &*names[1], &*names[90], &*names[2]),
        (91, "person", "toothbrush", "")
    );
    assert_eq!(listed.notes(), [Note::StrayAnnotations { annotations: 1, image_id: 99 }]);
    let by_path = open(&path);
    let keys: Vec<_> = see(&by_path).into_iter().map(|(key, ..)| key).collect();
    assert_eq!(keys, ["b.jpg", "a.jpg", "c/c.jpg"]);
    let images = root.path().join("val2017");
    let options = Coco { dense: true, images: Some((&images).into()), ..Coco::default() };
    let listed = open_coco(&Stores::new(), &path, &options).unwrap();
    assert_eq!(listed.box_class_names(), ["person", "toothbrush"]);
    let dense = json_of(&listed);
    assert_eq!(dense[0]["annotations"][0]["category_id"], 1);
    assert_eq!(dense[0]["annotations"][0]["bbox"], expected[0]["annotations"][0]["bbox"]);
    assert_eq!(dense[0]["annotations"][1]["category_id"], 0);
}

#[test]
fn damaged_annotations_name_the_byte() {
    let root = files(&["a.jpg", "b.jpg", "c/c.jpg"]);
    let path = root.path().join("a.json");
    let fails = |from: &str, to: &str, dense: bool, at: &str, expected: &str| {
        let json = INSTANCES.replacen(from, to, 1);
        assert_ne!(json, INSTANCES);
        std::fs::write(&path, &json).unwrap();
        let options = Coco { dense, ..Coco::default() };
        let error = open_coco(&Stores::new(), &path, &options).unwrap_err();
        let offset = json.find(at).unwrap() as u64;
        assert_eq!(error.place().offset, Some(offset).filter(|_| !at.is_empty()), "{error}");
        let error = error.to_string();
        assert!(error.contains(expected), "{error}");
    };
    fails(
        "\"b.jpg\"",
        "\"x.jpg\"",
        false,
        "{\"id\": 20",
        "1 named files do not exist, first `x.jpg`",
    );
    fails("\"b.jpg\"", "\"../b.jpg\"", false, "{\"id\": 20", "unsafe path `../b.jpg`");
    fails("\"b.jpg\"", "7", false, "{\"id\": 20", "expected an image with `id` and `file_name`");
    fails(
        "{\"id\": 10",
        "{\"id\": 20",
        false,
        "{\"id\": 20, \"file_name\": \"a",
        "image `20` occurs twice",
    );
    fails("\"image_id\": 20,", "", false, "{\"id\": 1", "missing field `image_id`");
    fails("{\"id\": 90", "{\"id\": 91", true, "{\"id\": 1,", "category 90 is not listed");
    fails("{\"id\": 90", "{\"id\": 1", false, "", "category `1` occurs twice");
    fails("\"images\"", "\"image\"", false, "", "no `images`");
    fails("\"images\"", "\"info\"", false, "\"info\": [", "key `info` occurs twice");
    fails(
        "[1, 2, 2]}\n    ]",
        "[1, 2, 2]}\n    ",
        false,
        "\"images\"",
        "invalid type: string \"images\", expected an annotation",
    );
}

#[test]
fn every_prefix_of_annotations_is_an_error() {
    let root = files(&["a.jpg", "b.jpg", "c/c.jpg"]);
    let path = root.path().join("a.json");
    let end = INSTANCES.trim_end().len();
    for len in (0..end).step_by(7) {
        std::fs::write(&path, &INSTANCES[..len]).unwrap();
        let error = open_coco(&Stores::new(), &path, &Coco::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{len}: {error}");
    }
    std::fs::write(&path, &INSTANCES[..end]).unwrap();
    assert!(open_coco(&Stores::new(), &path, &Coco::default()).is_ok());
}

#[test]
fn lists_are_verified_like_other_sources() {
    let root = files(&["1.jpg", "2.jpg", "x/3.jpg"]);
    let manifest = write(root.path(), "a.csv", "path,label\n1.jpg,1\nx/3.jpg,\n");
    let image = root.path().join("2.jpg");
    let mut found = Vec::new();
    let summary = tbl_io::verify(
        &Stores::new(),
        &[manifest, image],
        std::num::NonZeroUsize::MIN,
        tbl_io::AsStored::default,
        &mut |finding| {
            found.push(format!("{finding:?}"));
            std::ops::ControlFlow::Continue(())
        },
    );
    let summary = summary.unwrap();
    assert_eq!((summary.shards, summary.samples, summary.bad_samples), (2, 3, 0));
    assert!(found.iter().any(|line| line.contains("PartlyLabelled { samples: 2,")), "{found:?}");
}

#[test]
fn the_development_kit_of_imagenet_is_read_as_it_is_downloaded() {
    let root = tempfile::tempdir().unwrap();
    let read = || GivenLabels::imagenet_val(&Stores::new(), root.path());
    let kit = |truth: &str, meta: &[u8]| {
        let archive = Archive::new()
            .member(b"ILSVRC2012_devkit_t12/readme.txt", b"about")
            .member(b"ILSVRC2012_devkit_t12/data/meta.mat", meta)
            .member(truth.as_bytes(), b"\xef\xbb\xbf4\n1\n2\n3\n")
            .finish();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, &archive).unwrap();
        write(root.path(), "ILSVRC2012_devkit_t12.tar.gz", gzip.finish().unwrap())
    };
    let meta = include_bytes!("imagenet/meta.mat");
    let truth = "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt";
    let path = kit(truth, meta);
    let names: Vec<String> =
        (1..=4).map(|number| format!("ILSVRC2012_val_{number:08}.JPEG")).collect();
    let images = files(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let (labels, classes) = given(&open(images.path()), &read().unwrap()).unwrap();
    assert_eq!(labels, [0, 3, 1, 2].map(Some));
    assert_eq!(classes.class_names(), ["n02096294", "n02100735", "n02110185", "n02119789"]);
    let whole = std::fs::read(&path).unwrap();
    for len in 0..whole.len() {
        std::fs::write(&path, &whole[..len]).unwrap();
        assert!(read().is_err(), "{len}");
    }
    kit("ILSVRC2012_devkit_t12/data/other.txt", meta);
    let error = read().unwrap_err().to_string();
    assert!(error.ends_with("kit has no ILSVRC2012_validation_ground_truth.txt"), "{error}");
    kit(truth, b"MATLAB");
    let error = read().unwrap_err().to_string();
    assert!(error.contains("not a MATLAB file with synsets"), "{error}");
}

#[test]
fn validation_images_of_imagenet_get_the_classes_of_the_development_kit() {
    let names: Vec<String> =
        (1..=4).map(|number| format!("val/ILSVRC2012_val_{number:08}.JPEG")).collect();
    let root = files(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let sources = open(&root.path().join("val"));
    let read = || GivenLabels::imagenet_val(&Stores::new(), root.path());
    let error = read().unwrap_err().to_string();
    assert!(error.contains("ILSVRC2012_validation_ground_truth.txt with meta.mat"), "{error}");
    let check = |expected: [&str; 4]| {
        let (found, labels) = given(&sources, &read().unwrap()).unwrap();
        let names = labels.class_names();
        let found =
            found.into_iter().map(|label| &*names[usize::try_from(label.unwrap()).unwrap()]);
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert!(names.is_sorted());
    };
    let kit = "ILSVRC2012_devkit_t12/data";
    let truth = format!("{kit}/ILSVRC2012_validation_ground_truth.txt");
    write(root.path(), &truth, "4\n1\n2\n3\n");
    assert!(read().unwrap_err().to_string().contains("meta.mat: not found"));
    let packed: &[u8] = include_bytes!("imagenet/meta.mat");
    for meta in [packed, include_bytes!("imagenet/meta_plain.mat")] {
        write(root.path(), &format!("{kit}/meta.mat"), meta);
        check(["n02096294", "n02119789", "n02100735", "n02110185"]);
        for len in (0..meta.len()).step_by(7) {
            write(root.path(), &format!("{kit}/meta.mat"), &meta[..len]);
            assert!(read().is_err(), "{len}");
        }
        write(root.path(), &format!("{kit}/meta.mat"), meta);
    }
    write(root.path(), &truth, "4\n1\n2\n7\n");
    let error = read().unwrap_err().to_string();
    assert!(error.contains("line 4: `7` is not the number of a synset"), "{error}");
    write(root.path(), &truth, "4\n1\n\n2\n3\n");
    let error = read().unwrap_err().to_string();
    assert!(
        error.ends_with("line 3: the line is empty, expected the label of an image"),
        "{error}"
    );
    let labels = "imagenet_2012_validation_synset_labels.txt";
    for text in ["n01\n\nn03\nn02\nn01\n", "n01\n \r\nn03\n", "\t\nn01\n"] {
        write(root.path(), labels, text);
        let error = read().unwrap_err().to_string();
        let place = if text.starts_with('n') { ": line 2: " } else { ": line 1: " };
        assert!(error.contains(place), "{error}");
    }
    write(root.path(), labels, "n01\r\nn03\r\nn02\r\nn01\r\n\r\n \n");
    check(["n01", "n03", "n02", "n01"]);
    write(root.path(), labels, "n01\nn03\nn02\nn01\n");
    check(["n01", "n03", "n02", "n01"]);
    let solution = "ImageId,PredictionString\nILSVRC2012_val_00000002,n08 1 2 3 4 n08 5 6 7 8\n\
                    ILSVRC2012_val_00000001,n07 1 2 3 4\nILSVRC2012_val_00000003,n08 1 2 3 4 \n\
                    ILSVRC2012_val_00000004,n09 1 2 3 4\n";
    write(root.path(), "LOC_val_solution.csv", solution);
    check(["n07", "n08", "n08", "n09"]);
}
