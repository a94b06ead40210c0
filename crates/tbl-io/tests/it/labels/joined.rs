//! Sources joined by class name: class folders with each other and with stored class names.

use tbl_io::{LabelOrigin, Labels, SampleSource};

use super::{check, named_sources, sources};

/// The class of every sample, in order.
fn classes(sources: &[Box<dyn SampleSource>]) -> Vec<Option<String>> {
    let labels = Labels::resolve(sources).unwrap();
    let names = labels.class_names();
    let class = |label: i64| names[usize::try_from(label).unwrap()].clone();
    let of_source = |number: usize| {
        let count = sources[number].sample_count();
        (0..count).map(|index| labels.label(number, index).map(class)).collect::<Vec<_>>()
    };
    (0..sources.len()).flat_map(of_source).collect()
}

fn check_classes(sources: &[Box<dyn SampleSource>], expected: &[Option<&str>]) {
    let expected: Vec<_> = expected.iter().map(|class| class.map(str::to_owned)).collect();
    assert_eq!(classes(sources), expected);
}

#[test]
fn class_folders_are_joined_with_stored_class_names() {
    let folders = &[("dog/1.jpg", ""), ("ant/2.jpg", "")][..];
    let named: (&[&str], &[i64]) = (&["cat", "dog"], &[1, 0]);
    let mut both = sources(&[folders]);
    both.extend(named_sources(&[named]));
    check_classes(&both, &[Some("dog"), Some("ant"), Some("dog"), Some("cat")]);
    let labels = Labels::resolve(&both).unwrap();
    assert_eq!(labels.class_names(), ["ant", "cat", "dog"]);
    assert_eq!((labels.origin(), labels.notes()), (LabelOrigin::Mixed, &[][..]));
    both.reverse();
    check_classes(&both, &[Some("dog"), Some("cat"), Some("dog"), Some("ant")]);
    assert_eq!(Labels::resolve(&both).unwrap().class_names(), ["ant", "cat", "dog"]);
}

#[test]
fn a_single_class_folder_is_one_where_another_source_names_it() {
    let mut both = sources(&[&[("train/dog/1.jpg", ""), ("train/dog/2.jpg", "")]]);
    both.extend(named_sources(&[(&["cat", "dog"], &[0])]));
    check_classes(&both, &[Some("dog"), Some("dog"), Some("cat")]);
    let mut other = sources(&[&[("train/1.jpg", "")]]);
    other.extend(named_sources(&[(&["cat", "dog"], &[0])]));
    check_classes(&other, &[None, Some("cat")]);
    assert_eq!(Labels::resolve(&other).unwrap().notes().len(), 1);
}

#[test]
fn class_folders_are_not_joined_with_numbers() {
    let archives =
        sources(&[&[("a/1.jpg", ""), ("b/2.jpg", "")], &[("1.jpg", ""), ("1.cls", "41")]]);
    let error = Labels::resolve(&archives).unwrap_err().to_string();
    assert!(error.contains("labels are numbers (sample 0: 41), those of shard.tar"), "{error}");
}

#[test]
fn class_folders_at_different_depths_are_joined_by_name() {
    check(
        &[
            &[("train/dog/1.jpg", ""), ("train/cat/1.jpg", "")],
            &[("cat/2.jpg", ""), ("ant/2.jpg", "")],
            &[("more/cat/3.jpg", "")],
            &[("more/bee/3.jpg", "")],
        ],
        LabelOrigin::ClassFolders,
        &["ant", "cat", "dog"],
        &[&[Some(2), Some(1)], &[Some(1), Some(0)], &[Some(1)], &[None]],
    );
}

#[test]
fn class_folders_at_different_depths_need_a_class_in_common() {
    let archives = sources(&[
        &[("dog/x/1.jpg", ""), ("dog/y/1.jpg", "")],
        &[("cat/1.jpg", ""), ("ant/1.jpg", "")],
    ]);
    let error = Labels::resolve(&archives).unwrap_err();
    let expected = "shard.tar: classes are folders in dog, those of shard.tar lie elsewhere and none \
                    has the same name; load the two apart, or bring the class folders to one depth";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn archives_of_one_class_each_are_classes_together() {
    let (dog, cat) = (("train/dog/1.jpg", ""), ("train/cat/1.jpg", ""));
    check(&[&[dog], &[cat]], LabelOrigin::ClassFolders, &["cat", "dog"], &[&[Some(1)], &[Some(0)]]);
    // Folders in the only class of an archive could be its classes.
    let nested = [("train/cat/x/1.jpg", ""), ("train/cat/y/1.jpg", "")];
    let error = Labels::resolve(&sources(&[&[dog], &nested])).unwrap_err().to_string();
    assert!(error.contains("classes are folders in train/cat, those of shard.tar"), "{error}");
    // A source without any folder does not matter.
    let flat = [("1.jpg", "")];
    check(
        &[&nested, &flat],
        LabelOrigin::ClassFolders,
        &["x", "y"],
        &[&[Some(0), Some(1)], &[None]],
    );
}
