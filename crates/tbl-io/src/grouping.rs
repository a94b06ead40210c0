//! Which files are samples and which are sidecar fields of a sample: the WebDataset convention.
//!
//! Files whose paths agree up to the first dot of the base name form a group. In a group with at
//! least one image, each image is a sample and the other files are fields of every such sample.
//! Members of a group may lie anywhere in the archive, not only side by side, as long as no name
//! occurs twice in it. Where one does, as when shards that all count from zero are joined, a group
//! ends where its names begin to repeat.

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
    /// Whether a name may occur twice in it; false only when none does.
    may_repeat: bool,
    first_field: u32,
    last_field: u32,
}

impl Group {
    fn starting_at(first_file: u32) -> Self {
        Self {
            first_file,
            has_image: false,
            may_repeat: false,
            first_field: NONE,
            last_field: NONE,
        }
    }
}

impl Grouping {
    /// Groups the files called `names`. `archive_starts` are the first files of further archives
    /// behind the first one, ascending.
    pub(crate) fn new(names: &Names, without_image: WithoutImage, archive_starts: &[u32]) -> Self {
        let runs = Runs { names, archive_starts };
        let (mut groups, mut group_of) = form_groups(&runs);
        if groups.iter().any(|group| group.may_repeat) {
            split_repeated(&runs, &mut groups, &mut group_of);
        }
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

/// Names in stored order, where a run is a stretch of files with one key in one archive.
struct Runs<'a> {
    names: &'a Names,
    archive_starts: &'a [u32],
}

impl<'a> Runs<'a> {
    fn key(&self, file: u32) -> (u32, &'a [u8]) {
        (self.names.folder_id(file), split_base(self.names.base(file)).0)
    }

    fn name(&self, file: u32) -> (u32, &'a [u8]) {
        (self.names.folder_id(file), self.names.base(file))
    }

    fn starts_archive(&self, file: u32) -> bool {
        self.archive_starts.binary_search(&file).is_ok()
    }
}

/// Files of one run up to here are compared with each other for equal names.
const MAX_COMPARED: u32 = 16;

/// The groups in the order of their first files, and each file's group.
fn form_groups(runs: &Runs<'_>) -> (Vec<Group>, Vec<u32>) {
    let names = runs.names;
    let mut groups: Vec<Group> = Vec::new();
    let mut group_of: Vec<u32> = Vec::with_capacity(names.len());
    let mut table = HashTable::new();
    let mut run_start = 0;
    for file in (0..).take(names.len()) {
        // Almost always the files of a group lie side by side.
        let same = group_of.last().filter(|_| runs.key(file - 1) == runs.key(file)).copied();
        let group = same.unwrap_or_else(|| {
            // There are no more groups than names, and names are numbered by `u32`.
            let new = u32::try_from(groups.len()).unwrap_or(NONE);
            table.find_or_insert(&runs.key(file), new, |group| {
                runs.key(groups[group as usize].first_file)
            })
        });
        if group as usize == groups.len() {
            groups.push(Group::starting_at(file));
            run_start = file;
        } else if same.is_none() || runs.starts_archive(file) {
            groups[group as usize].may_repeat = true;
            run_start = file;
        } else if file - run_start >= MAX_COMPARED
            || (run_start..file).any(|other| names.base(other) == names.base(file))
        {
            groups[group as usize].may_repeat = true;
        }
        groups[group as usize].has_image |= is_image(names.base(file));
        group_of.push(group);
    }
    (groups, group_of)
}

/// Takes groups apart in which names occur twice. A run with a name that its group has already
/// starts a new group, and so does such a file inside a run. Every group keeps an image: files
/// behind the last one are newer versions of its fields, those before the first one older ones.
fn split_repeated(runs: &Runs<'_>, groups: &mut Vec<Group>, group_of: &mut [u32]) {
    let whole_groups = groups.len();
    for group in groups.iter_mut().filter(|group| group.may_repeat) {
        group.has_image = false;
    }
    // By whole group, the part of it that files are added to; by part, the one before it; by the
    // first file of a name, the last part with that name.
    let mut open: Vec<u32> = (0..).take(whole_groups).collect();
    let mut before: Vec<u32> = Vec::new();
    let mut part_with: Vec<u32> = vec![NONE; group_of.len()];
    let mut table = HashTable::new();
    let mut first_file_of =
        |file| table.find_or_insert(&runs.name(file), file, |file| runs.name(file)) as usize;
    let mut start = 0;
    while start < group_of.len() {
        let group = group_of[start];
        let same_run = (start + 1..group_of.len()).take_while(|&file| {
            group_of[file] == group && !u32::try_from(file).is_ok_and(|f| runs.starts_archive(f))
        });
        let run = start..start + 1 + same_run.count();
        start = run.end;
        if !groups[group as usize].may_repeat {
            continue;
        }
        let files = || run.clone().zip(u32::try_from(run.start).unwrap_or(NONE)..);
        let part = open[group as usize];
        let mut repeats = files().any(|(_, file)| part_with[first_file_of(file)] == part);
        for (index, file) in files() {
            let name = first_file_of(file);
            let mut part = open[group as usize];
            repeats |= part_with[name] == part;
            if repeats && groups[part as usize].has_image {
                before.push(part);
                part = u32::try_from(groups.len()).unwrap_or(NONE);
                groups.push(Group::starting_at(file));
                open[group as usize] = part;
            }
            repeats = false;
            groups[part as usize].has_image |= is_image(runs.names.base(file));
            part_with[name] = part;
            group_of[index] = part;
        }
    }
    for group in group_of {
        if let Some(part) = (*group as usize).checked_sub(whole_groups)
            && !groups[*group as usize].has_image
        {
            *group = before[part];
        }
    }
}

/// Splits a base name into the group's key and the extension after its first dot. A leading dot
/// belongs to the key, and so does a dot with nothing after it: an empty extension is that of a
/// name without a dot.
pub fn split_base(base: &[u8]) -> (&[u8], &[u8]) {
    match base.iter().skip(1).position(|&byte| byte == b'.') {
        Some(before_dot) if before_dot + 2 < base.len() => {
            (&base[..=before_dot], &base[before_dot + 2..])
        }
        _ => (base, &[]),
    }
}

/// The name of the file with `extension` in a group. The inverse of [`split_base`].
pub fn join_base(group: &[u8], extension: &[u8]) -> Vec<u8> {
    let dot: &[u8] = if extension.is_empty() { b"" } else { b"." };
    [group, dot, extension].concat()
}

/// Whether the base name has a single-part extension of an image: `a.jpg`, not `a.seg.png`.
pub(crate) fn is_image(base: &[u8]) -> bool {
    let (key, extension) = split_base(base);
    !extension.contains(&b'.')
        && base.len() > key.len()
        && SampleFormat::from_file_name(base).is_image()
}

/// The fields of one sample, appended to those of others.
pub(crate) struct FieldSet<'a> {
    fields: &'a mut Vec<Field>,
    /// The number of fields of other samples.
    first: usize,
    /// Finds fields by extension, once there are many.
    table: Option<HashTable>,
}

impl<'a> FieldSet<'a> {
    pub(crate) fn new(fields: &'a mut Vec<Field>) -> Self {
        Self { first: fields.len(), fields, table: None }
    }

    /// Adds a field. One stored again replaces the earlier one, as extraction would.
    pub(crate) fn push(&mut self, new: Field) {
        let (fields, first) = (&mut *self.fields, self.first);
        let count = fields.len() - first;
        let found = if count < MAX_COMPARED as usize {
            fields[first..].iter().position(|old| old.extension == new.extension)
        } else {
            let old = &fields[first..];
            let extension_of = |at: u32| match old.get(at as usize) {
                Some(old) => old.extension.as_slice(),
                None => new.extension.as_slice(),
            };
            // Fields are numbered by `u32` because members are.
            let next = u32::try_from(count).unwrap_or(NONE);
            let table = self.table.get_or_insert_with(|| {
                let mut table = HashTable::new();
                for at in 0..next {
                    table.find_or_insert(&extension_of(at), at, extension_of);
                }
                table
            });
            let found = table.find_or_insert(&new.extension.as_slice(), next, extension_of);
            (found != next).then_some(found as usize)
        };
        match found {
            Some(at) => fields[first + at] = new,
            None => fields.push(new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` stands for the end of an archive.
    fn group(paths: &[&str]) -> (Names, Grouping) {
        let (mut names, mut archive_starts) = (Names::new(), Vec::new());
        for path in paths {
            match *path {
                "|" => archive_starts.push(u32::try_from(names.len()).unwrap()),
                path => names.push(path.as_bytes()).unwrap(),
            }
        }
        let grouping = Grouping::new(&names, WithoutImage::Sample, &archive_starts);
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
        check(&["a.jpg", "a.json", "a.png"], &["a.jpg a.json", "a.png a.json"]);
    }

    #[test]
    fn a_repeated_name_starts_a_new_group() {
        let check_twice = |shard: &[&str], expected: &[&str]| {
            let expected = [expected, expected].concat();
            check(&[shard, &["|"], shard].concat(), &expected);
            check(&[shard, shard].concat(), &expected);
            check(&[shard, &["z.jpg"], shard].concat(), &{
                let (first, second) = expected.split_at(expected.len() / 2);
                [first, &["z.jpg"], second].concat()
            });
        };
        check_twice(&["a.jpg", "a.cls"], &["a.jpg a.cls"]);
        check_twice(&["a.cls", "a.jpg"], &["a.jpg a.cls"]);
        check_twice(&["a.jpg", "a.cls", "b.jpg", "b.cls"], &["a.jpg a.cls", "b.jpg b.cls"]);
        check_twice(&["a.jpg", "b.jpg", "a.cls", "b.cls"], &["a.jpg a.cls", "b.jpg b.cls"]);
        check_twice(&["a.cls", "b.cls", "a.jpg", "b.jpg"], &["a.jpg a.cls", "b.jpg b.cls"]);
        check_twice(&["a.jpg", "a.json", "a.png"], &["a.jpg a.json", "a.png a.json"]);
    }

    #[test]
    fn a_run_stays_together_when_it_repeats_a_name() {
        check(&["a.cls", "a.jpg", "|", "a.json", "a.jpg"], &["a.jpg a.cls", "a.jpg a.json"]);
        check(&["a.jpg", "a.cls", "b.jpg", "a.jpg"], &["a.jpg a.cls", "b.jpg", "a.jpg"]);
        check(&["a.jpg", "a.cls", "|", "a.json"], &["a.jpg a.cls a.json"]);
    }

    #[test]
    fn repeated_fields_alone_are_updates() {
        check(&["a.jpg", "a.cls", "a.cls"], &["a.jpg a.cls a.cls"]);
        check(&["a.cls", "a.cls", "a.jpg"], &["a.jpg a.cls a.cls"]);
        check(
            &["a.jpg", "a.cls", "b.jpg", "a.cls", "b.cls", "a.cls"],
            &["a.jpg a.cls a.cls a.cls", "b.jpg b.cls"],
        );
    }

    #[test]
    fn a_long_run_is_searched_for_repeated_names() {
        let fields: Vec<String> = (0..40).map(|number| format!("a.{number}")).collect();
        let shard: Vec<&str> =
            std::iter::once("a.jpg").chain(fields.iter().map(String::as_str)).collect();
        let sample = shard.join(" ");
        check(&[&shard[..], &shard].concat(), &[&sample, &sample]);
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
        assert_eq!(split_base(b"a."), (&b"a."[..], &b""[..]));
    }

    #[test]
    fn a_base_name_is_joined_from_its_parts() {
        for base in ["a", "a.", "a..", ".a", ".", "a.b", "a.b.c", "a..b", ".a.b", ""] {
            let (group, extension) = split_base(base.as_bytes());
            assert_eq!(join_base(group, extension), base.as_bytes());
        }
    }

    #[test]
    fn the_last_field_of_an_extension_stays() {
        let field = |extension: usize, version: u8| Field {
            extension: extension.to_string().into(),
            bytes: vec![version],
        };
        let mut fields = vec![field(0, 9)];
        let mut set = FieldSet::new(&mut fields);
        for version in [1, 2] {
            (0..100).for_each(|extension| set.push(field(extension, version)));
        }
        let expected = (0..100).map(|extension| field(extension, 2));
        assert_eq!(fields, std::iter::once(field(0, 9)).chain(expected).collect::<Vec<_>>());
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
