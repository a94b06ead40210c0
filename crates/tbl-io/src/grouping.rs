//! Which files are samples and which are sidecar fields of a sample: the WebDataset convention.
//!
//! Files whose paths agree up to the first dot of the base name form a group. In a group with at
//! least one image, each image is a sample and the other files are fields of every such sample.
//! Members of a group may lie anywhere in the archive, not only side by side.

use tbl_format::SampleFormat;

use crate::names::{HashTable, NONE, Names};
use crate::sample::Field;

/// Samples and their fields, as numbers of names. 4 bytes per sample, and where there are any
/// fields 4 more per sample and per file.
#[derive(Debug)]
pub(crate) struct Grouping {
    samples: Vec<u32>,
    /// The first field of each sample; empty when no sample has one.
    first_fields: Vec<u32>,
    /// The field after each file that is one; empty when no sample has one.
    next_fields: Vec<u32>,
    skipped: u64,
}

/// What becomes of a file in a group without an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithoutImage {
    /// It is a sample of its own (archives: nothing is dropped).
    Sample,
    /// It is passed over and counted (folders hold all kinds of files).
    Skip,
}

struct Group {
    /// Stands for the group's key.
    first_file: u32,
    has_image: bool,
    first_field: u32,
    last_field: u32,
}

impl Grouping {
    pub(crate) fn new(names: &Names, without_image: WithoutImage) -> Self {
        let (mut groups, group_of) = form_groups(names);
        let files = || (0..).zip(&group_of);
        let mut next_fields = Vec::new();
        for (file, &group) in files() {
            let group = &mut groups[group as usize];
            if !group.has_image || is_image(names.base(file)) {
                continue;
            }
            if next_fields.is_empty() {
                next_fields = vec![NONE; group_of.len()];
            }
            match group.last_field {
                NONE => group.first_field = file,
                last => next_fields[last as usize] = file,
            }
            group.last_field = file;
        }
        let mut samples = Vec::new();
        let mut first_fields = Vec::new();
        let mut skipped = 0;
        for (file, &group) in files() {
            let group = &groups[group as usize];
            if group.has_image {
                if !is_image(names.base(file)) {
                    continue;
                }
            } else if without_image == WithoutImage::Skip {
                skipped += 1;
                continue;
            }
            samples.push(file);
            if !next_fields.is_empty() {
                first_fields.push(group.first_field);
            }
        }
        samples.shrink_to_fit();
        first_fields.shrink_to_fit();
        Self { samples, first_fields, next_fields, skipped }
    }

    pub(crate) fn sample_count(&self) -> usize {
        self.samples.len()
    }

    /// Files that are neither sample nor field.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The file that is sample `index`.
    pub(crate) fn sample(&self, index: u64) -> Option<u32> {
        self.samples.get(usize::try_from(index).ok()?).copied()
    }

    /// The files that are fields of sample `index`, in stored order.
    pub(crate) fn fields(&self, index: u64) -> impl Iterator<Item = u32> {
        let first = usize::try_from(index).ok().and_then(|index| self.first_fields.get(index));
        let some = |file: u32| (file != NONE).then_some(file);
        let first = first.copied().and_then(some);
        std::iter::successors(first, move |&file| some(self.next_fields[file as usize]))
    }
}

/// The groups in the order of their first files, and each file's group.
fn form_groups(names: &Names) -> (Vec<Group>, Vec<u32>) {
    let key = |file: u32| (names.folder_id(file), split_base(names.base(file)).0);
    let mut groups: Vec<Group> = Vec::new();
    let mut group_of: Vec<u32> = Vec::with_capacity(names.len());
    let mut table = HashTable::new();
    for file in (0..).take(names.len()) {
        // Almost always the files of a group lie side by side.
        let same = group_of.last().filter(|_| key(file - 1) == key(file)).copied();
        let group = same.unwrap_or_else(|| {
            // There are no more groups than names, and names are numbered by `u32`.
            let new = u32::try_from(groups.len()).unwrap_or(NONE);
            table.find_or_insert(&key(file), new, |group| key(groups[group as usize].first_file))
        });
        if group as usize == groups.len() {
            groups.push(Group {
                first_file: file,
                has_image: false,
                first_field: NONE,
                last_field: NONE,
            });
        }
        groups[group as usize].has_image |= is_image(names.base(file));
        group_of.push(group);
    }
    (groups, group_of)
}

/// Splits a base name into the group's key and the extension after its first dot. A leading dot
/// belongs to the key.
pub(crate) fn split_base(base: &[u8]) -> (&[u8], &[u8]) {
    match base.iter().skip(1).position(|&byte| byte == b'.') {
        Some(before_dot) => (&base[..=before_dot], &base[before_dot + 2..]),
        None => (base, &[]),
    }
}

/// Whether the base name has a single-part extension of an image: `a.jpg`, not `a.seg.png`.
pub(crate) fn is_image(base: &[u8]) -> bool {
    let (key, extension) = split_base(base);
    !extension.contains(&b'.')
        && base.len() > key.len()
        && SampleFormat::from_file_name(base).is_image()
}

/// Adds a field to those from `first_new` on. One stored again replaces the earlier one, as
/// extraction would.
pub(crate) fn push_field(fields: &mut Vec<Field>, first_new: usize, new: Field) {
    match fields[first_new..].iter_mut().find(|old| old.extension == new.extension) {
        Some(old) => *old = new,
        None => fields.push(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(paths: &[&str]) -> (Names, Grouping) {
        let mut names = Names::new();
        for path in paths {
            names.push(path.as_bytes()).unwrap();
        }
        let grouping = Grouping::new(&names, WithoutImage::Sample);
        (names, grouping)
    }

    /// Each sample with its fields, separated by blanks.
    fn check(paths: &[&str], expected: &[&str]) {
        let (names, grouping) = group(paths);
        let text = |file| String::from_utf8(names.path(file).into_owned()).unwrap();
        let found: Vec<String> = (0..grouping.sample_count() as u64)
            .map(|index| {
                let sample = text(grouping.sample(index).unwrap());
                std::iter::once(sample)
                    .chain(grouping.fields(index).map(text))
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_group_with_an_image_is_one_sample() {
        check(&["a.cls", "a.jpg", "a.seg.png", "b.JPEG"], &["a.jpg a.cls a.seg.png", "b.JPEG"]);
    }

    #[test]
    fn groups_form_across_the_whole_archive() {
        check(
            &["x/a.jpg", "x/b.jpg", "y/a.cls", "x/b.cls", "x/a.cls"],
            &["x/a.jpg x/a.cls", "x/b.jpg x/b.cls", "y/a.cls"],
        );
    }

    #[test]
    fn every_image_of_a_group_is_a_sample_with_all_fields() {
        check(
            &["a.jpg", "a.json", "a.png", "a.jpg"],
            &["a.jpg a.json", "a.png a.json", "a.jpg a.json"],
        );
    }

    #[test]
    fn files_without_an_image_are_samples_of_their_own() {
        check(
            &["label.txt", "noext", "a.b.jpg", "", "x.json", "x.cls"],
            &["label.txt", "noext", "a.b.jpg", "", "x.json", "x.cls"],
        );
    }

    #[test]
    fn a_leading_dot_is_part_of_the_key() {
        check(&[".jpg", ".a.jpg", ".a.cls", ".b.cls"], &[".jpg", ".a.jpg .a.cls", ".b.cls"]);
        assert_eq!(split_base(b".a.seg.png"), (&b".a"[..], &b"seg.png"[..]));
        assert_eq!(split_base(b"a."), (&b"a"[..], &b""[..]));
    }

    #[test]
    fn many_groups_far_apart_are_found_again() {
        let images = (0..3000).map(|number| format!("{number}.jpg"));
        let classes = (0..3000).rev().map(|number| format!("{number}.cls"));
        let paths: Vec<String> = images.chain(classes).collect();
        let (names, grouping) = group(&paths.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(grouping.sample_count(), 3000);
        for index in 0..3000 {
            let fields: Vec<u32> = grouping.fields(index).collect();
            assert_eq!(fields.len(), 1);
            assert_eq!(names.base(fields[0]), format!("{index}.cls").as_bytes());
        }
    }
}
