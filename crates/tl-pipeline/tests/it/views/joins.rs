//! Views of several data sets, and draws from views.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use idv_format::Compression;
use tbl_io::{GivenLabels, HeldBytes, InMemory, Items};
use tl_pipeline::{
    Blocks, Columns, Dataset, DatasetView, Length, Loader, LoaderConfig, Replacement, Samples,
    Shuffle, Subset, Weights, Work,
};

use super::STORED;
use crate::memory::{bmp, config, pixels};
use crate::tables::files::write_labelled;

fn folder(root: &Path, name: &str, files: &[(&str, u32)]) -> DatasetView {
    for (file, number) in files {
        let path = root.join(name).join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let (width, height, pixels) = pixels(*number);
        std::fs::write(path, bmp(width, height, &pixels)).unwrap();
    }
    Dataset::open(&[root.join(name)]).unwrap().into()
}

/// Key and class name of every row of an epoch.
fn rows(view: &DatasetView, epoch: u32) -> Vec<(String, String)> {
    let config = LoaderConfig { sampler: Shuffle::None.into(), ..config(Work::Bytes) };
    let loader = Loader::new(view.clone(), config).unwrap();
    let mut rows = Vec::new();
    for batch in loader.epoch(epoch) {
        let batch = batch.unwrap();
        for (&index, &label) in batch.indices().iter().zip(batch.labels()) {
            let entry = loader.dataset().entry(index).unwrap();
            let key = String::from_utf8_lossy(&entry.key.unwrap()).into_owned();
            let class =
                usize::try_from(label).map(|label| loader.dataset().class_names()[label].clone());
            rows.push((key, class.unwrap_or_default()));
        }
    }
    rows
}

fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|&(key, class)| (key.to_owned(), class.to_owned())).collect()
}

#[test]
fn views_of_several_data_sets_join_their_classes_by_name() {
    let root = tempfile::tempdir().unwrap();
    let a = folder(root.path(), "a", &[("bee/0.bmp", 0), ("dog/1.bmp", 1), ("dog/2.bmp", 2)]);
    let b = folder(root.path(), "b", &[("ant/3.bmp", 3), ("bee/4.bmp", 4)]);
    let dogs = a.select_classes(&["dog"]).unwrap();
    let joined = DatasetView::concat(&[b, dogs]).unwrap();
    assert_eq!(joined.dataset().class_names(), ["ant", "bee", "dog"]);
    let expected =
        [("ant/3.bmp", "ant"), ("bee/4.bmp", "bee"), ("dog/1.bmp", "dog"), ("dog/2.bmp", "dog")];
    assert_eq!(rows(&joined, 0), pairs(&expected));
    // Sources are shared: joining again opens nothing and adds none.
    let again = DatasetView::concat(&[joined.clone(), a.take(1).unwrap()]).unwrap();
    assert!(Arc::ptr_eq(again.dataset(), joined.dataset()));
    assert_eq!(again.dataset().shards().len(), 2);
    assert_eq!(rows(&again, 0)[4], ("bee/0.bmp".to_owned(), "bee".to_owned()));
    assert_eq!(again.samples(), Samples::Subset(Subset::List(vec![0, 1, 3, 4, 2])));
    // Joined views go on as others do.
    let bees = again.select_classes(&["bee"]).unwrap().skip(1).unwrap();
    assert_eq!(rows(&bees, 0), pairs(&[("bee/0.bmp", "bee")]));
    let text = again.explain();
    assert!(text.contains("\n    select class dog: 2 samples"), "{text}");
    assert!(text.ends_with("concat of 2 views: 5 samples (40 bytes)"), "{text}");
}

/// Data in memory, with labels that the caller gives.
fn given(numbers: &[u8], labels: &GivenLabels) -> Dataset {
    let held = |&number: &u8| Some(Arc::new(vec![number]) as HeldBytes);
    let samples = InMemory::files(Items::each(numbers.iter().map(held).collect()));
    Dataset::from_sources(vec![Box::new(samples)]).unwrap().with_labels(labels).unwrap()
}

/// The labels of a view's samples.
fn labels(view: &DatasetView) -> Vec<Option<i64>> {
    view.indices().unwrap().map(|sample| view.dataset().label(sample)).collect()
}

#[test]
fn given_labels_stay_with_their_samples() {
    let a: DatasetView = given(&[0, 1, 2], &GivenLabels::in_order(vec![0, 1, 2])).into();
    let b: DatasetView = given(&[3, 4], &GivenLabels::in_order(vec![5, 6])).into();
    let joined = DatasetView::concat(&[a.clone(), b.clone()]).unwrap();
    assert_eq!(labels(&joined), [0, 1, 2, 5, 6].map(Some));
    let mixed = DatasetView::mix(&[(b.clone(), 1), (a.clone(), 1)], Length::default()).unwrap();
    let of_mixed = (0..5).map(|sample| mixed.dataset().label(sample));
    assert_eq!(of_mixed.collect::<Vec<_>>(), [5, 6, 0, 1, 2].map(Some));
    // Joined again, with a part that it has already.
    let again = DatasetView::concat(&[joined.clone(), b.skip(1).unwrap()]).unwrap();
    assert!(Arc::ptr_eq(again.dataset(), joined.dataset()));
    assert_eq!(labels(&again), [0, 1, 2, 5, 6, 6].map(Some));
    // Names are joined by name, also with those of class folders.
    let root = tempfile::tempdir().unwrap();
    let files = folder(root.path(), "a", &[("bee/0.bmp", 0), ("dog/1.bmp", 1)]);
    let named: DatasetView = given(&[0, 1], &GivenLabels::classes_in_order(&["dog", "ant"])).into();
    let joined = DatasetView::concat(&[files.clone(), named.clone()]).unwrap();
    assert_eq!(joined.dataset().class_names(), ["ant", "bee", "dog"]);
    assert_eq!(labels(&joined), [1, 2, 2, 0].map(Some));
    let again = DatasetView::concat(&[joined.clone(), named]).unwrap();
    assert!(Arc::ptr_eq(again.dataset(), joined.dataset()));
    let error = DatasetView::concat(&[files, a.clone()]).unwrap_err().to_string();
    assert!(error.contains("labels are numbers (sample 0: 0)"), "{error}");
    // A part without labels has none afterwards, and a note says so.
    let none = given(&[9], &GivenLabels::by_name(HashMap::new()).or_none()).into();
    let joined = DatasetView::concat(&[none, a]).unwrap();
    assert_eq!(labels(&joined), [None, Some(0), Some(1), Some(2)]);
    assert_eq!(joined.dataset().label_notes().len(), 1);
}

#[test]
fn one_source_with_different_labels_counts_twice() {
    let root = tempfile::tempdir().unwrap();
    let files = folder(root.path(), "a", &[("bee/0.bmp", 0), ("dog/1.bmp", 1)]);
    let relabelled = |classes: &[&str]| {
        let dataset = Dataset::clone(files.dataset());
        let dataset = dataset.with_labels(&GivenLabels::classes_in_order(classes)).unwrap();
        DatasetView::from(dataset)
    };
    let swapped = relabelled(&["dog", "bee"]);
    let joined = DatasetView::concat(&[files.clone(), swapped]).unwrap();
    assert_eq!(joined.dataset().shards().len(), 2);
    assert_eq!(
        rows(&joined, 0).into_iter().map(|(_, class)| class).collect::<Vec<_>>(),
        ["bee", "dog", "dog", "bee"]
    );
    let same = relabelled(&["bee", "dog"]);
    let joined = DatasetView::concat(&[files, same]).unwrap();
    assert_eq!(joined.dataset().shards().len(), 1);
    assert_eq!(labels(&joined), [0, 1, 0, 1].map(Some));
}

#[test]
fn mixed_views_come_by_their_weights() {
    let root = tempfile::tempdir().unwrap();
    let a = folder(root.path(), "a", &[("x/0.bmp", 0), ("x/1.bmp", 1), ("y/2.bmp", 2)]);
    let b = folder(root.path(), "b", &[("x/3.bmp", 3), ("y/4.bmp", 4)]);
    let mixed =
        DatasetView::mix(&[(a.skip(1).unwrap(), 2), (b, 1)], Length::Positions(12)).unwrap();
    assert_eq!(mixed.len(), 12);
    let keys: Vec<String> = rows(&mixed, 0).into_iter().map(|(key, _)| key).collect();
    let expected = ["x/1.bmp", "x/3.bmp", "y/2.bmp", "x/1.bmp", "y/4.bmp", "y/2.bmp"];
    assert_eq!(keys, expected.repeat(2));
    assert!(
        mixed.explain().ends_with(
            "mix of 2 views by 2 : 1: 12 samples (joins labels by class name; 48 bytes)"
        )
    );
    // Of one data set.
    let half = a.take(1).unwrap();
    let same = DatasetView::mix(&[(half, 1), (a.clone(), 1)], Length::default()).unwrap();
    assert!(Arc::ptr_eq(same.dataset(), a.dataset()));
    assert_eq!(same.len(), 4);
}

#[test]
fn joined_tables_keep_their_labels() {
    let root = tempfile::tempdir().unwrap();
    let view = |name: &str, rows| {
        let path = root.path().join(name);
        write_labelled(&path, rows, Compression::None, |_| false);
        Dataset::open(&[path]).unwrap()
    };
    let labelled = |dataset: Dataset| DatasetView::from(dataset.with_labels_of("label").unwrap());
    let a = labelled(view("a.idv", 0..7));
    let b = labelled(view("b.idv", 7..12));
    let ones = b.select_labels(&[1]).unwrap();
    let joined = DatasetView::concat(&[ones, a.skip(5).unwrap()]).unwrap();
    let columns = Columns { label: Some("label".into()), ..Columns::default() };
    let config = LoaderConfig { sampler: Shuffle::None.into(), ..config(Work::Columns(columns)) };
    let loader = Loader::new(joined, config).unwrap();
    let labels: Vec<i64> =
        loader.epoch(0).flat_map(|batch| batch.unwrap().labels().to_vec()).collect();
    assert_eq!(labels, [1, 1, 2, 0]);
    let plain = DatasetView::from(view("c.idv", 0..2));
    let error = DatasetView::concat(&[a.clone(), plain]).unwrap_err().to_string();
    assert_eq!(error, "cannot join tables with labels of column `label` and of column none");
    let files = DatasetView::from(Arc::clone(&STORED[0].dataset));
    let error = DatasetView::concat(&[a, files]).unwrap_err().to_string();
    assert!(error.contains("folder"), "{error}");
}

#[test]
fn draws_stay_within_the_view() {
    let all = DatasetView::from(Arc::clone(&STORED[1].dataset));
    let view = all.subset([20, 3, 11, 12]).unwrap();
    let weights = Weights::from(vec![1, 0, 3, 2]);
    let drawn = view.weights(&weights, Replacement::With, Some(600)).unwrap();
    assert_eq!(drawn.len(), 600);
    let loader = |view: &DatasetView, shuffle: Shuffle| {
        let config = LoaderConfig { sampler: shuffle.into(), ..config(Work::Bytes) };
        Loader::new(view.clone(), config).map_err(|error| error.to_string())
    };
    let count = |view: &DatasetView| {
        let mut counts = BTreeMap::new();
        for batch in loader(view, Shuffle::None).unwrap().epoch(0) {
            for &index in batch.unwrap().indices() {
                *counts.entry(index).or_insert(0) += 1;
            }
        }
        counts
    };
    let counts = count(&drawn);
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [11, 12, 20]);
    assert!(counts[&20] < counts[&12] && counts[&12] < counts[&11], "{counts:?}");
    let block = Shuffle::Block { blocks: Blocks::Samples(2), window: 1 };
    let error = loader(&drawn, block).err().unwrap();
    assert!(error.contains("weighted sampling always shuffles fully"), "{error}");
    let once = view.weights(&weights, Replacement::Without, None).unwrap();
    assert_eq!(count(&once), BTreeMap::from([(11, 1), (12, 1), (20, 1)]));
    assert_eq!(view.weights(&weights, Replacement::With, None).unwrap().len(), 4);
    // 4 of one class, 2 of another: as many of both.
    let classes = all.subset([0, 1, 2, 3, 8, 9]).unwrap();
    let balanced = classes.balance(Length::AllUsedUp).unwrap();
    let counts = count(&balanced);
    assert_eq!(counts, BTreeMap::from([(0, 1), (1, 1), (2, 1), (3, 1), (8, 2), (9, 2)]));
    let thrice = classes.repeat(3).unwrap();
    assert_eq!((thrice.len(), thrice.repeat(2).unwrap().len()), (18, 36));
    assert!(count(&thrice).values().all(|&times| times == 3));
    assert_eq!(balanced.repeat(2).unwrap().len(), 16);
}
