//! Names, labels, fields and box classes on the way from any source over views into a new file.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tbl_io::{
    AsStored, Coco, Compression, ConvertOptions, Field, HeldBytes, InMemory, Items, Manifest,
    SampleSource, Selection, Stores, TarOptions, TarWriter, Target, Unstored, ZstdLevel, open_coco,
    open_manifest,
};
use tl_pipeline::{Dataset, DatasetView, Length, Split};

/// A source of a few samples, with names that other sources have too.
#[derive(Clone, Debug)]
enum Stored {
    /// Class folders, with texts next to some images.
    Folder(Vec<(bool, u8, bool)>),
    /// The same as members, of which some have one name.
    Tar(Vec<(bool, u8, bool)>),
    /// A label and a text for each image.
    List(Vec<(bool, String)>),
    /// The numbers of categories, and those of the objects of each image.
    Coco([u8; 3], Vec<Vec<u8>>),
    Memory(u8),
}

const CATEGORIES: [&str; 5] = ["ant", "bee", "cat", "dog", "emu"];

fn stored() -> impl Strategy<Value = Stored> {
    let samples = || prop::collection::vec((any::<bool>(), 0..3_u8, any::<bool>()), 2..6);
    let text = "[a-z, \"\n]{0,6}";
    let objects = prop::collection::vec(prop::collection::vec(0..3_u8, 0..3), 1..4);
    let numbers = prop::sample::select(vec![[0, 1, 2], [1, 2, 3], [3, 2, 1], [1, 4, 9]]);
    prop_oneof![
        samples().prop_map(Stored::Folder),
        samples().prop_map(Stored::Tar),
        prop::collection::vec((any::<bool>(), text), 1..5).prop_map(Stored::List),
        (numbers, objects).prop_map(|(numbers, objects)| Stored::Coco(numbers, objects)),
        (1..4_u8).prop_map(Stored::Memory),
    ]
}

fn class(is_dog: bool) -> &'static str {
    if is_dog { "dog" } else { "cat" }
}

/// A file that looks like a JPEG file, unlike any other.
fn image(source: usize, number: usize) -> Vec<u8> {
    [b"\xff\xd8\xff\xe0", format!("image {number} of {source}").as_bytes()].concat()
}

impl Stored {
    fn open(&self, root: &Path, source: usize) -> Dataset {
        let root = root.join(source.to_string());
        fs::create_dir_all(&root).unwrap();
        let opened: Box<dyn SampleSource> = match self {
            Self::Folder(samples) => {
                for (number, (is_dog, name, has_text)) in samples.iter().enumerate() {
                    let path = root.join(class(*is_dog)).join(format!("{name}.jpg"));
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(&path, image(source, number)).unwrap();
                    if *has_text {
                        fs::write(path.with_extension("txt"), "a text").unwrap();
                    }
                }
                tbl_io::open(&root).unwrap()
            }
            Self::Tar(samples) => {
                let path = root.join("a.tar");
                let options = TarOptions { sync: false, overwrite: true };
                let mut writer = TarWriter::create(&path, options).unwrap();
                for (number, (is_dog, name, has_text)) in samples.iter().enumerate() {
                    let name = format!("{}/{name}", class(*is_dog));
                    writer
                        .append(format!("{name}.jpg").as_bytes(), &image(source, number))
                        .unwrap();
                    if *has_text {
                        writer.append(format!("{name}.txt").as_bytes(), b"a text").unwrap();
                    }
                }
                writer.finish().unwrap();
                tbl_io::open(&path).unwrap()
            }
            Self::List(rows) => {
                let mut csv = String::from("path,label,text\n");
                for (number, (is_dog, text)) in rows.iter().enumerate() {
                    fs::write(root.join(format!("{number}.jpg")), image(source, number)).unwrap();
                    let text = text.replace('"', "\"\"");
                    csv += &format!("{number}.jpg,{},\"{text}\"\n", class(*is_dog));
                }
                fs::write(root.join("list.csv"), csv).unwrap();
                let path = root.join("list.csv");
                Box::new(open_manifest(&Stores::new(), path, &Manifest::default()).unwrap())
            }
            Self::Coco(numbers, objects) => {
                let mut images = Vec::new();
                let mut annotations = Vec::new();
                for (number, of_image) in objects.iter().enumerate() {
                    let name = format!("{number}.jpg");
                    fs::write(root.join(&name), image(source, number)).unwrap();
                    images.push(json!({"id": number, "file_name": name}));
                    for category in of_image {
                        let category = numbers[usize::from(*category)];
                        annotations.push(json!({"image_id": number, "category_id": category}));
                    }
                }
                let named = |number: &u8| {
                    // Some numbers have another name in another file.
                    let place = usize::from(*number) + usize::from(numbers[0] % 2);
                    json!({"id": number, "name": CATEGORIES[place % CATEGORIES.len()]})
                };
                let categories: Vec<Value> = numbers.iter().map(named).collect();
                let all = json!({
                    "images": images, "annotations": annotations, "categories": categories,
                });
                fs::write(root.join("instances.json"), all.to_string()).unwrap();
                let path = root.join("instances.json");
                Box::new(open_coco(&Stores::new(), path, &Coco::default()).unwrap())
            }
            Self::Memory(count) => {
                let held =
                    |number: u8| Some(Arc::new(image(source, usize::from(number))) as HeldBytes);
                Box::new(InMemory::files(Items::each((0..*count).map(held).collect())))
            }
        };
        Dataset::from_sources(vec![opened]).unwrap()
    }
}

/// Key, label, categories and fields of a sample, with names for numbers.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    bytes: Vec<u8>,
    key: Option<String>,
    label: Option<i64>,
    class: Option<String>,
    fields: BTreeMap<String, Vec<u8>>,
    /// The names of the categories of its objects.
    objects: Vec<Option<String>>,
}

fn see(dataset: &Dataset, index: u64) -> Seen {
    let mut bytes = Vec::new();
    dataset.read_into(index, &mut bytes).unwrap();
    let mut fields: Vec<Field> = Vec::new();
    dataset.read_fields_where(index, &mut |_, _| true, &mut fields).unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let fields: BTreeMap<String, Vec<u8>> =
        fields.into_iter().map(|field| (text(field.extension), field.bytes)).collect();
    let label = dataset.label(index);
    let name = |names: &[String], number: i64| names.get(usize::try_from(number).ok()?).cloned();
    let json = fields.get("json").map(|json| serde_json::from_slice::<Value>(json).unwrap());
    let annotations =
        json.map_or(Vec::new(), |json| json["annotations"].as_array().unwrap().clone());
    let category =
        |object: &Value| name(dataset.box_class_names(), object["category_id"].as_i64().unwrap());
    let key = dataset.entry(index).unwrap().key.map(|key| text(key.into_owned()));
    let class = label.and_then(|label| name(dataset.class_names(), label));
    let objects = annotations.iter().map(category).collect();
    Seen { bytes, key, label, class, fields, objects }
}

fn see_all(view: &DatasetView) -> Vec<Seen> {
    view.indices().unwrap().map(|index| see(view.dataset(), index)).collect()
}

/// Writes the view, and opens the file.
fn written(view: &DatasetView, path: &Path, target: Target) -> (DatasetView, Unstored) {
    let dataset = view.dataset();
    let numbers: Vec<u64> = view.indices().unwrap().collect();
    let all = Selection::all(dataset.shards(), dataset.labels()).unwrap();
    let mut options = ConvertOptions::new(target);
    options.sync = false;
    options.overwrite = true;
    let mut on_event = |_: tbl_io::ConvertEvent<'_>| ControlFlow::Continue(());
    let selection = all.choose(&numbers);
    let summary =
        tbl_io::convert(&selection, path, &options, AsStored::default, &mut on_event).unwrap();
    assert_eq!(summary.samples, numbers.len() as u64);
    (Dataset::open(&[path]).unwrap().into(), summary.unstored)
}

/// Fails unless a copy in a TBL file is the same.
fn check_tbl(expected: &[Seen], view: &DatasetView, copy: &DatasetView) {
    assert_eq!(see_all(copy), expected);
    assert_eq!(copy.dataset().box_class_names(), view.dataset().box_class_names());
}

/// Fails unless a copy in a Parquet file is the same, and so is a TBL file of it.
fn check_parquet(expected: &[Seen], view: &DatasetView, copy: &DatasetView, tbl: &DatasetView) {
    // Null labels are -1, and samples without a name are named after the file.
    let mut expected = expected.to_vec();
    for (number, sample) in expected.iter_mut().enumerate() {
        sample.key = sample.key.take().or_else(|| Some(format!("a#{number}.jpg")));
    }
    for copy in [copy, tbl] {
        let mut found = see_all(copy);
        for sample in &mut found {
            sample.label = sample.label.filter(|&label| label != -1);
        }
        assert_eq!(found, expected);
        assert_eq!(copy.dataset().class_names(), view.dataset().class_names());
        assert_eq!(copy.dataset().box_class_names(), view.dataset().box_class_names());
    }
}

/// Fails unless a copy in a TAR archive is the same, apart from what the archive cannot have.
fn check_tar(expected: &[Seen], copy: &DatasetView, unstored: Unstored) {
    let found = see_all(copy);
    assert_eq!(found.len(), expected.len());
    let mut renamed = 0;
    let mut names: Vec<_> = found.iter().map(|sample| sample.key.clone()).collect();
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.bytes, expected.bytes);
        // A file with -1 says that a sample has no label, where readers would find one.
        assert_eq!(found.label.filter(|&label| label != -1), expected.label);
        if unstored.class_names == 0 {
            assert_eq!(found.class, expected.class);
        }
        let mut fields = found.fields.clone();
        if !expected.fields.contains_key("cls") {
            fields.remove("cls");
        }
        assert_eq!(fields, expected.fields);
        renamed += u64::from(expected.key.is_some() && found.key != expected.key);
    }
    assert_eq!((renamed, unstored.fields, unstored.labels), (unstored.renamed, 0, 0));
    names.sort();
    names.dedup();
    assert_eq!(names.len(), expected.len(), "every name is there once");
}

/// The views of a run: all of them joined, and a part of that.
fn views(datasets: Vec<Dataset>, seed: u64) -> Vec<DatasetView> {
    let views: Vec<DatasetView> = datasets.into_iter().map(DatasetView::from).collect();
    let joined = DatasetView::concat(&views).unwrap();
    let mixed: Vec<_> = views.iter().map(|view| (view.clone(), 1)).collect();
    let mixed = DatasetView::mix(&mixed, Length::default()).unwrap();
    let refused = mixed.indices().map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("mix"), "{refused}");
    let split = Split { seed, stratify: false };
    let parts = joined.split(&[0.5, 0.5], split).unwrap();
    let again = DatasetView::concat(&[parts[1].clone(), views[0].clone()]).unwrap();
    vec![joined, parts[0].clone(), again]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn names_survive_joins_splits_and_copies(
        stored in prop::collection::vec(stored(), 1..4),
        seed in 0..4_u64,
    ) {
        let root = tempfile::tempdir().unwrap();
        let open = |(number, stored): (usize, &Stored)| stored.open(root.path(), number);
        let datasets: Vec<Dataset> = stored.iter().enumerate().map(open).collect();
        let alone: Vec<Vec<Seen>> =
            datasets.iter().map(|dataset| see_all(&dataset.clone().into())).collect();
        for (number, view) in views(datasets, seed).into_iter().enumerate() {
            let expected = see_all(&view);
            if number == 0 {
                for (joined, alone) in expected.iter().zip(alone.concat()) {
                    prop_assert_eq!(&joined.objects, &alone.objects);
                    prop_assert_eq!((&joined.bytes, &joined.key), (&alone.bytes, &alone.key));
                    // A single class folder is one if another source has the class too.
                    prop_assert!(alone.class.is_none() || joined.class == alone.class);
                }
            }
            let at = |name: &str| root.path().join(name);
            let zstd = Compression::Zstd(ZstdLevel::DEFAULT);
            for compression in [Compression::None, Compression::Lz4, zstd] {
                let (copy, unstored) = written(&view, &at("a.tbl"), Target::Tbl2(compression));
                prop_assert_eq!(unstored, Unstored::default());
                check_tbl(&expected, &view, &copy);
                fs::remove_file(at("a.tbl")).unwrap();
            }
            let (copy, unstored) = written(&view, &at("a.tar"), Target::Tar);
            check_tar(&expected, &copy, unstored);
            let names = view.dataset().box_class_names();
            let named = names.iter().filter(|name| !name.is_empty()).count() as u64;
            prop_assert_eq!(unstored.box_class_names, named);
            let (copy, unstored) = written(&view, &at("a.parquet"), tl_arrow::PARQUET);
            prop_assert_eq!(unstored, Unstored::default());
            let (tbl, _) = written(&copy, &at("b.tbl"), Target::Tbl2(Compression::None));
            check_parquet(&expected, &view, &copy, &tbl);
        }
    }
}
