//! Views that are refused, and what the error says.

use std::sync::Arc;

use tl_pipeline::{
    Dataset, DatasetView, Length, Loader, LoaderConfig, PipelineError, Replacement, Sampler, Split,
    Weights, Work,
};

use super::STORED;
use crate::memory::{bmps, config};

fn all() -> DatasetView {
    Arc::clone(&STORED[1].dataset).into()
}

#[track_caller]
fn check<T>(result: Result<T, PipelineError>, expected: &str) {
    let error = result.map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, expected);
}

#[test]
fn what_is_drawn_cannot_be_selected_from() {
    let weights = Weights::from(vec![1; 23]);
    let drawn = [
        ("weights", all().weights(&weights, Replacement::With, None).unwrap()),
        ("balance", all().balance(Length::default()).unwrap()),
        ("mix", DatasetView::mix(&[(all(), 1)], Length::default()).unwrap()),
        ("repeat", all().repeat(2).unwrap()),
    ];
    for (name, view) in drawn {
        let message = |method: &str| {
            format!(
                "`{method}` cannot follow `{name}`, whose samples are drawn anew in every epoch: put \
                `{method}` before `{name}`"
            )
        };
        check(view.take(1), &message("take"));
        check(view.skip(1), &message("skip"));
        check(view.slice(0..1), &message("slice"));
        check(view.subset([0]), &message("subset"));
        check(view.shard(0, 2), &message("shard"));
        check(view.split(&[0.5], Split::default()), &message("split"));
        check(view.fold(0, 2, Split::default()), &message("fold"));
        check(view.select_labels(&[0]), &message("select"));
        check(view.filter(&"label == 0".parse().unwrap()), &message("filter"));
        check(view.weights(&weights, Replacement::With, None), &message("weights"));
        check(view.balance(Length::default()), &message("balance"));
        check(DatasetView::concat(&[all(), view.clone()]), &message("concat"));
        check(DatasetView::mix(&[(view.clone(), 1)], Length::default()), &message("mix"));
        assert!(view.indices().is_err() && view.sample_at(0).is_none());
    }
}

#[test]
fn errors_name_the_value_and_what_is_expected() {
    check(all().subset([22, 23]), "place 23 is not in a view of 23 samples");
    check(
        all().split(&[], Split::default()),
        "a split needs a fraction for each part, such as 0.9 and 0.1",
    );
    check(
        all().split(&[0.5, 1.5], Split::default()),
        "fraction 1.5 of a split: expected a number from 0 to 1",
    );
    check(
        all().split(&[0.75, 0.5], Split::default()),
        "the fractions of a split sum to 1.25, expected at most 1",
    );
    let expected = "fold 5 of 5: expected at least 2 folds, and one of those from 0 to 5 - 1";
    check(all().fold(5, 5, Split::default()), expected);
    check(all().shard(3, 3), "shard 3 of 3: expected at least 1 shard, numbered from 0 to 3 - 1");
    check(
        all().select_classes(&["bee", "dog"]),
        "no class is called `dog`; classes are called: ant, bee, cat",
    );
    check(all().select_labels(&[3]), "label 3 is out of range for 3 classes");
    let numbers = DatasetView::from(bmps(3));
    check(
        numbers.select_classes(&["dog"]),
        "no class is called `dog`; its labels are numbers without names",
    );
    assert!(numbers.select_labels(&[7]).unwrap().is_empty());
    let two = Weights::from(vec![1, 1]);
    check(all().weights(&two, Replacement::With, None), "2 weights for 23 samples");
    let twice = all().subset([4, 4]).unwrap();
    check(
        twice.weights(&two, Replacement::With, None),
        "sample 4 is in the view more than once, and `weights` draws each by one weight",
    );
    let expected = |view: &str| {
        format!(
            "sample 4 is in the view more than once, and `{view}` could put it into two parts: put \
            `{view}` before the view that repeats it"
        )
    };
    check(twice.split(&[0.5, 0.5], Split::default()), &expected("split"));
    let four = all().slice(4..6).unwrap();
    let joined = DatasetView::concat(&[four.clone(), four]).unwrap();
    check(joined.fold(0, 2, Split::default()), &expected("fold"));
    let one = all().take(2).unwrap().weights(&two, Replacement::Without, Some(3));
    check(one, "cannot draw 3 samples: 2 have a weight");
    check(all().repeat(0), "repeat is 0, expected 1 to 4194304");
    check(DatasetView::concat(&[]), "`concat` needs at least one view");
    check(DatasetView::mix(&[], Length::default()), "`mix` needs at least one view");
    let graph = DatasetView::from(Arc::clone(&STORED.last().unwrap().dataset));
    let stratified = Split { stratify: true, ..Split::default() };
    check(
        graph.split(&[0.5], stratified),
        "sample 0 has no label, and `stratify` divides samples by label",
    );
    check(
        graph.filter(&"width > 3".parse().unwrap()),
        "`width` in a filter needs samples; rows of a table have index, label and class",
    );
    let sampler = Sampler { repeat: 2, ..Sampler::default() };
    let config = LoaderConfig { sampler, ..config(Work::Bytes) };
    check(
        Loader::new(all().take(2).unwrap(), config),
        "the data set is a view and the loader's sampler selects samples too: select them in the \
        view, and leave the sampler's `samples` and `repeat` at their defaults",
    );
}

/// The first bad sample is named, on any number of threads.
#[test]
fn a_filter_names_the_first_sample_that_it_cannot_read() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..2000 {
        let bytes: &[u8] = if number >= 700 { b"not an image" } else { b"BM" };
        std::fs::write(root.path().join(format!("{number:04}.bmp")), bytes).unwrap();
    }
    let data = DatasetView::from(Dataset::open(&[root.path()]).unwrap());
    for _ in 0..5 {
        let found = data.filter(&"index < 700 or width > 3".parse().unwrap());
        let error = found.unwrap_err().to_string();
        assert!(error.contains("sample 700 (0700.bmp)"), "{error}");
    }
}
