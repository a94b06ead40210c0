//! Labels of data sets with one and with several sources.

mod boxes;
mod files;
mod joined;
mod notes;

use std::sync::LazyLock;

use tbl_io::{LabelOrigin, Labels, Location, ReadLimits, SampleSource, Source, TarArchive};

use crate::tar_bytes::Archive;

/// Archives of the given members, each with a body that a `cls` member would have.
fn sources(archives: &[&[(&str, &str)]]) -> Vec<Box<dyn SampleSource>> {
    let source = |members: &&[(&str, &str)]| {
        let archive = members.iter().fold(Archive::new(), |archive, (name, body)| {
            archive.member(name.as_bytes(), body.as_bytes())
        });
        let source = Source::from_bytes("shard.tar", archive.finish());
        Box::new(TarArchive::new(source, ReadLimits::default()).unwrap()) as Box<dyn SampleSource>
    };
    archives.iter().map(source).collect()
}

fn check(
    archives: &[&[(&str, &str)]],
    origin: LabelOrigin,
    names: &[&str],
    expected: &[&[Option<i64>]],
) {
    let sources = sources(archives);
    let labels = Labels::resolve(&sources).unwrap();
    assert_eq!(labels.origin(), origin);
    assert_eq!(labels.class_names(), names);
    for (number, (source, expected)) in sources.iter().zip(expected).enumerate() {
        let found: Vec<_> =
            (0..source.sample_count()).map(|index| labels.label(number, index)).collect();
        assert_eq!(found, *expected, "source {number}");
    }
    assert_eq!(labels.label(sources.len(), 0), None);
}

#[test]
fn class_folders_are_sorted_over_all_sources() {
    check(
        &[
            &[("train/dog/1.jpg", ""), ("train/ant/deep/1.jpg", ""), ("train/loose.jpg", "")],
            &[("train/cat/1.jpg", ""), ("train/dog/2.jpg", "")],
        ],
        LabelOrigin::ClassFolders,
        &["ant", "cat", "dog"],
        &[&[Some(2), Some(0), None], &[Some(1), Some(2)]],
    );
}

#[test]
fn json_labels_count_after_cls() {
    check(
        &[&[
            ("1.jpg", ""),
            ("1.json", r#"{"label": 7}"#),
            ("2.json", r#"{"label": 8}"#),
            ("2.jpg", ""),
            ("2.cls", "9"),
            ("3.jpg", ""),
            ("3.json", r#"{"label": 10}"#),
            ("3.cls", "11"),
            ("3.json", "is not looked at"),
        ]],
        LabelOrigin::Explicit,
        &[],
        &[&[Some(7), Some(9), Some(11)]],
    );
}

#[test]
fn fewer_than_two_classes_are_none() {
    check(&[&[("only/1.jpg", ""), ("only/2.jpg", "")]], LabelOrigin::None, &[], &[&[None, None]]);
    check(&[&[("1.jpg", ""), ("only/2.jpg", "")]], LabelOrigin::None, &[], &[&[None, None]]);
    check(&[&[]], LabelOrigin::None, &[], &[&[]]);
    check(&[], LabelOrigin::None, &[], &[]);
}

#[test]
fn dots_in_paths_are_no_classes() {
    check(
        &[&[("./a/1.jpg", ""), (".//b/1.jpg", ""), ("b/2.jpg", "")]],
        LabelOrigin::ClassFolders,
        &["a", "b"],
        &[&[Some(0), Some(1), Some(1)]],
    );
}

/// A source with stored class names, which TBL files have.
#[derive(Debug)]
struct Named {
    names: Vec<String>,
    labels: Vec<i64>,
}

static NAMED: LazyLock<Location> = LazyLock::new(|| Location::new("named"));

impl SampleSource for Named {
    fn location(&self) -> &Location {
        &NAMED
    }

    fn kind(&self) -> tbl_io::SourceKind {
        tbl_io::SourceKind::Tbl2
    }

    fn sample_count(&self) -> u64 {
        self.labels.len() as u64
    }

    fn entry(&self, index: u64) -> Result<tbl_io::Entry<'_>, tbl_io::ReadError> {
        Ok(tbl_io::Entry {
            key: None,
            label: Some(self.labels[index as usize]),
            format: tbl_format::SampleFormat::Jpeg,
            width: 0,
            height: 0,
            offset: 0,
            stored_bytes: 0,
            bytes: 0,
        })
    }

    fn read_into(&self, _: u64, bytes: &mut Vec<u8>) -> Result<(), tbl_io::ReadError> {
        bytes.clear();
        Ok(())
    }

    fn read_fields_where(
        &self,
        _: u64,
        _: &mut dyn FnMut(&[u8], u64) -> bool,
        _: &mut Vec<tbl_io::Field>,
    ) -> Result<(), tbl_io::ReadError> {
        Ok(())
    }

    fn class_names(&self) -> &[String] {
        &self.names
    }
}

fn named_sources(sources: &[(&[&str], &[i64])]) -> Vec<Box<dyn SampleSource>> {
    sources
        .iter()
        .map(|(names, labels)| {
            let names = names.iter().map(|&name| name.to_owned()).collect();
            Box::new(Named { names, labels: labels.to_vec() }) as Box<dyn SampleSource>
        })
        .collect()
}

fn named(sources: &[(&[&str], &[i64])]) -> (Vec<String>, Vec<Vec<Option<i64>>>) {
    let sources = named_sources(sources);
    let labels = Labels::resolve(&sources).unwrap();
    let found = sources
        .iter()
        .enumerate()
        .map(|(number, source)| {
            (0..source.sample_count()).map(|index| labels.label(number, index)).collect()
        })
        .collect();
    (labels.class_names().to_vec(), found)
}

#[test]
fn equal_class_names_keep_their_numbers() {
    let (names, labels) = named(&[(&["z", "a"], &[1, 0, 5]), (&["z", "a"], &[0])]);
    assert_eq!(names, ["z", "a"]);
    assert_eq!(labels, [vec![Some(1), Some(0), Some(5)], vec![Some(0)]]);
}

#[test]
fn different_class_names_are_merged_by_name() {
    let (names, labels) = named(&[(&["dog", "ant"], &[0, 1]), (&["cat", "dog"], &[0, 1, -1])]);
    assert_eq!(names, ["ant", "cat", "dog"]);
    assert_eq!(labels, [vec![Some(2), Some(0)], vec![Some(1), Some(2), None]]);
}

#[test]
fn a_label_beyond_the_classes_is_not_dropped_in_a_merge() {
    let sources = named_sources(&[(&["dog", "ant"], &[0, 2]), (&["cat"], &[0])]);
    let error = Labels::resolve(&sources).unwrap_err();
    assert_eq!(
        error.to_string(),
        "named: sample 1: label 2 is not a class: expected a number below 2"
    );
    assert!(error.is_damage());
}

#[test]
fn numbers_without_names_are_not_joined_with_names() {
    let named_first = named_sources(&[(&["dog", "ant"], &[0, 1]), (&[], &[-1, 7])]);
    let error = Labels::resolve(&named_first).unwrap_err();
    let expected = "named: labels are numbers (sample 1: 7), those of named are classes by name; \
                    load the two apart, or give both class folders";
    assert_eq!(error.to_string(), expected);
    assert!(!error.is_damage());
    assert!(Labels::resolve(&named_sources(&[(&[], &[0]), (&["dog"], &[0])])).is_err());
    // Numbers alone stay, and a source without a class does not matter.
    let (names, labels) = named(&[(&[], &[7]), (&[], &[3])]);
    assert_eq!((names.len(), labels), (0, vec![vec![Some(7)], vec![Some(3)]]));
    let (names, labels) = named(&[(&["dog", "ant"], &[0, 1]), (&[], &[-1, -1])]);
    assert_eq!(names, ["ant", "dog"]);
    assert_eq!(labels, [vec![Some(1), Some(0)], vec![None, None]]);
}

/// Every shard of a WebDataset counts from zero.
#[test]
fn shards_one_after_the_other_keep_their_labels() {
    let shard = |label: &str| {
        let archive = Archive::new();
        let archive = archive.member(b"000000.jpg", label.as_bytes());
        archive.member(b"000000.cls", label.as_bytes())
    };
    let labels = |bytes: Vec<u8>| -> Vec<Option<i64>> {
        let source = Source::from_bytes("joined.tar", bytes);
        let archive = TarArchive::new(source, ReadLimits::default()).unwrap();
        (0..archive.sample_count()).map(|index| archive.entry(index).unwrap().label).collect()
    };
    let expected = [Some(1), Some(2)];
    assert_eq!(labels([shard("1").finish(), shard("2").finish()].concat()), expected);
    assert_eq!(labels([shard("1").unfinished(), shard("2").finish()].concat()), expected);
}

/// Labels that a container keeps in one place need no look at its samples.
#[test]
fn stored_labels_are_taken_without_a_look_at_the_samples() {
    #[derive(Debug)]
    struct Listed;

    impl SampleSource for Listed {
        fn location(&self) -> &Location {
            &NAMED
        }
        fn kind(&self) -> tbl_io::SourceKind {
            tbl_io::SourceKind::Tbl2
        }
        fn sample_count(&self) -> u64 {
            2
        }
        fn entry(&self, index: u64) -> Result<tbl_io::Entry<'_>, tbl_io::ReadError> {
            assert_eq!(index, 0, "only the sample that a note names is looked at");
            let (location, sample_count) = (self.location().clone(), 2);
            Err(tbl_io::ReadError::SampleOutOfRange { location, index, sample_count })
        }
        fn read_into(&self, _: u64, _: &mut Vec<u8>) -> Result<(), tbl_io::ReadError> {
            Ok(())
        }
        fn bulk_index(&self) -> Option<&dyn tbl_io::BulkIndex> {
            Some(self)
        }
    }

    impl tbl_io::BulkIndex for Listed {
        fn stored_labels(&self) -> Result<Option<Vec<i64>>, tbl_io::ReadError> {
            Ok(Some(vec![i64::MIN, 7]))
        }
    }

    let sources: [Box<dyn SampleSource>; 1] = [Box::new(Listed)];
    let labels = Labels::resolve(&sources).unwrap();
    assert_eq!((labels.label(0, 0), labels.label(0, 1)), (None, Some(7)));
}
