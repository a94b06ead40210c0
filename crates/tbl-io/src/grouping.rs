//! Groups of files as samples and their fields: the WebDataset convention.
//!
//! Files whose paths agree up to the first dot of the base name form a group, and a group is one
//! sample: its image, and all its other files as fields. Two kinds of names need more than that.
//! `cat.0.jpg` and `cat.1.jpg` are two numbered images and not one sample (`numbered`), and
//! `README.txt` among images is not a sample (`Grouping::new`).
//!
//! Members of a group may lie anywhere in the archive, not only next to each other, as long as no
//! name occurs twice in it. Where one does, as when shards that all count from zero are joined, a
//! group ends where its names begin to repeat (`repeated`).

mod file_name;
mod numbered;
mod repeated;

use std::cmp::Ordering;
use std::collections::HashSet;

use tbl_format::SampleFormat;

use crate::label::LabelField;
use crate::names::{HashTable, NONE, Names};
use crate::sample::Field;
use file_name::Rank;
pub(crate) use file_name::{LabelNames, is_hidden, last_extension, own_field_name, own_part};
pub use file_name::{join_base, split_base};
pub(crate) use numbered::JoinedImages;

/// Samples and their fields, as numbers of names. 4 bytes per sample, and where there are any
/// fields 4 more per sample and per file.
#[derive(Debug)]
pub(crate) struct Grouping {
    samples: Vec<u32>,
    /// The first field of each sample; empty when no sample has one.
    first_fields: Vec<u32>,
    /// The field after each file that is one; empty when no sample has one.
    next_fields: Vec<u32>,
    has_images: bool,
    passed_over: PassedOver,
    several_images: SeveralImages,
    without_image: WithoutImage,
    joined_images: JoinedImages,
    /// Files that a later file of the same name in the same group replaces, each with that file.
    replaced: Vec<(u32, u32)>,
}

/// The files that are neither sample nor field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PassedOver {
    /// Files with hidden names.
    pub(crate) hidden: u64,
    /// Files without an image, where others have one.
    pub(crate) other: u64,
    /// The first file of either kind.
    pub(crate) first: Option<u32>,
}

/// The samples with several images, or videos, that could be the one that is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeveralImages {
    pub(crate) samples: u64,
    /// The image of the first one.
    pub(crate) first: Option<u32>,
}

/// The groups without an image that are passed over although they may be samples: they have several
/// files, or one whose extension also occurs next to images, or a number that others have with an
/// image. webdataset reads them as samples, or as fields of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WithoutImage {
    pub(crate) groups: u64,
    pub(crate) files: u64,
    /// The first of those files.
    pub(crate) first: Option<u32>,
}

/// The group of a file that is in none: it has a hidden name.
const NO_GROUP: u32 = NONE;

struct Group {
    /// Stands for the group's key.
    first_file: u32,
    /// Bytes of the base names that all files of the group share; a dot follows.
    key_bytes: usize,
    files: u32,
    /// Whether a name may occur twice in it; false only when none does.
    may_repeat: bool,
    /// The best kind of file in it.
    rank: Rank,
    /// Images that could be the sample: those of the best kind, and those of the sample's format; of
    /// a group without an image the videos.
    images: u32,
    /// The file that is the sample, if the group is one.
    main: u32,
    first_field: u32,
    last_field: u32,
}

impl Group {
    fn starting_at(first_file: u32, key_bytes: usize) -> Self {
        Self {
            first_file,
            key_bytes,
            files: 0,
            may_repeat: false,
            rank: Rank::Other,
            images: 0,
            main: NONE,
            first_field: NONE,
            last_field: NONE,
        }
    }

    fn has_image(&self) -> bool {
        self.rank.is_image()
    }
}

impl Grouping {
    /// Groups the files called `names`. `archive_starts` are the first files of further archives
    /// after the first one, ascending.
    ///
    /// Hidden files are passed over. A group without an image is a sample if no group has an
    /// image and it has a video or no group has one, or if it looks like a sample whose image is missing: it has two files or more, and
    /// each of their extensions occurs next to an image as well. Others are passed over.
    pub(crate) fn new(names: &Names, archive_starts: &[u32]) -> Self {
        let runs = Runs { names, archive_starts };
        let (mut groups, mut group_of) = form_groups(&runs);
        let mut replaced = Vec::new();
        if groups.iter().any(|group| group.may_repeat) {
            replaced = repeated::split(&runs, &mut groups, &mut group_of);
        }
        let joined_images = numbered::split(names, &mut groups, &mut group_of);
        choose_main_files(names, &mut groups, &group_of);
        let without_image = discard_strays(names, &mut groups, &group_of);
        let mut grouping = Self {
            samples: Vec::new(),
            first_fields: Vec::new(),
            next_fields: chain_fields(&mut groups, &group_of),
            passed_over: PassedOver::default(),
            several_images: SeveralImages::default(),
            has_images: groups.iter().any(Group::has_image),
            without_image,
            joined_images,
            replaced,
        };
        grouping.list_samples(&groups, &group_of);
        grouping
    }

    fn list_samples(&mut self, groups: &[Group], group_of: &[u32]) {
        for (file, &group) in (0..).zip(group_of) {
            let Some(group) = groups.get(group as usize) else {
                self.passed_over.hidden += 1;
                self.passed_over.first.get_or_insert(file);
                continue;
            };
            if group.main == NONE {
                self.passed_over.other += 1;
                self.passed_over.first.get_or_insert(file);
            }
            if group.main != file {
                continue;
            }
            if group.images > 1 {
                self.several_images.samples += 1;
                self.several_images.first.get_or_insert(file);
            }
            self.samples.push(file);
            if !self.next_fields.is_empty() {
                self.first_fields.push(group.first_field);
            }
        }
        self.samples.shrink_to_fit();
        self.first_fields.shrink_to_fit();
    }

    pub(crate) fn sample_count(&self) -> usize {
        self.samples.len()
    }

    /// Files that are neither sample nor field.
    pub(crate) fn passed_over(&self) -> PassedOver {
        self.passed_over
    }

    /// Samples with several images.
    pub(crate) fn several_images(&self) -> SeveralImages {
        self.several_images
    }

    /// Whether any sample is an image by its name.
    pub(crate) fn has_images(&self) -> bool {
        self.has_images
    }

    /// Groups without an image that are passed over although they may be samples.
    pub(crate) fn without_image(&self) -> WithoutImage {
        self.without_image
    }

    /// Numbered images that are not separate samples.
    pub(crate) fn joined_images(&self) -> JoinedImages {
        self.joined_images
    }

    /// Files that a later file of the same name in the same group replaces, each with that file.
    pub(crate) fn replaced(&self) -> &[(u32, u32)] {
        &self.replaced
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

    /// The files of sample `index` that can hold its label, the fields in stored order: `cat.cls`
    /// and `cat.json` of `cat.0.jpg`, and without one, `cat.0.cls` and `cat.0.json`.
    pub(crate) fn label_fields<'a>(
        &'a self,
        names: &'a Names,
        index: u64,
    ) -> impl Iterator<Item = (LabelField, u32)> + 'a {
        let extension = |file| split_base(names.base(file)).1;
        let sample = self.sample(index);
        let base = sample.map_or(&[][..], |sample| names.base(sample));
        let label_names = LabelNames::new(base, self.fields(index).map(extension));
        let files = sample.into_iter().chain(self.fields(index));
        files.filter_map(move |file| Some((label_names.of(extension(file))?, file)))
    }
}

/// Names in stored order, where a run is a stretch of files with one key in one archive.
struct Runs<'a> {
    names: &'a Names,
    archive_starts: &'a [u32],
}

impl<'a> Runs<'a> {
    /// Folder and key. Each file without an extension has a separate key.
    fn key(&self, file: u32) -> (u32, &'a [u8], bool) {
        let (key, extension) = split_base(self.names.base(file));
        (self.names.folder_id(file), key, extension.is_empty())
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
    let mut hidden_folder = (NONE, false);
    for file in (0..).take(names.len()) {
        let folder = names.folder_id(file);
        if hidden_folder.0 != folder {
            hidden_folder = (folder, names.folder(file).split(|&byte| byte == b'/').any(is_hidden));
        }
        if hidden_folder.1 || is_hidden(names.base(file)) {
            group_of.push(NO_GROUP);
            continue;
        }
        let key = runs.key(file);
        // Almost always the files of a group lie next to each other.
        let last = group_of.last().copied().filter(|&last| last != NO_GROUP);
        let same = last.filter(|_| runs.key(file - 1) == key);
        let group = same.unwrap_or_else(|| {
            // The number of groups is at most that of names, and names are numbered by `u32`.
            let new = u32::try_from(groups.len()).unwrap_or(NONE);
            table.find_or_insert(&key, new, |group| runs.key(groups[group as usize].first_file))
        });
        if group as usize == groups.len() {
            groups.push(Group::starting_at(file, key.1.len()));
            run_start = file;
        } else if same.is_none() || runs.starts_archive(file) {
            groups[group as usize].may_repeat = true;
            run_start = file;
        } else if file - run_start >= MAX_COMPARED
            || (run_start..file).any(|other| names.base(other) == names.base(file))
        {
            groups[group as usize].may_repeat = true;
        }
        group_of.push(group);
    }
    (groups, group_of)
}

/// Finds in each group the file that is its sample, and counts what it is chosen from.
fn choose_main_files(names: &Names, groups: &mut [Group], group_of: &[u32]) {
    for (file, &group) in (0..).zip(group_of) {
        let Some(group) = groups.get_mut(group as usize) else { continue };
        group.files += 1;
        let rank = Rank::of(names.base(file), group.key_bytes);
        let order = |file| file_name::order(names.base(file), group.key_bytes);
        match rank.cmp(&group.rank) {
            Ordering::Greater => continue,
            Ordering::Less => group.images = 1,
            Ordering::Equal => {
                let is_video = || SampleFormat::is_video_name(names.base(file));
                group.images += u32::from(rank.is_image() || is_video());
                if group.main != NONE && order(file) >= order(group.main) {
                    continue;
                }
            }
        }
        group.rank = rank;
        group.main = file;
    }
    // Next to `a.jpg`, `a.seg.png` is a mask; `a.1.jpg` may be a separate photograph.
    for (file, &group) in (0..).zip(group_of) {
        let Some(group) = groups.get_mut(group as usize) else { continue };
        if group.files > 1 && group.rank == Rank::Image {
            let format = |file| SampleFormat::from_file_name(names.base(file));
            let rank = Rank::of(names.base(file), group.key_bytes);
            let is_alike = rank == Rank::NamedImage && format(file) == format(group.main);
            group.images += u32::from(is_alike);
        }
    }
}

/// Takes their samples from groups without an image that do not look like samples. Returns those of
/// them that may be samples all the same.
fn discard_strays(names: &Names, groups: &mut [Group], group_of: &[u32]) -> WithoutImage {
    let mut without_image = WithoutImage::default();
    let has_images = groups.iter().any(Group::has_image);
    let is_video =
        |group: &Group| group.main != NONE && SampleFormat::is_video_name(names.base(group.main));
    // Where there are no images, videos are the samples.
    let is_sample = |group: &Group| if has_images { group.has_image() } else { is_video(group) };
    if groups.iter().all(is_sample) || !groups.iter().any(is_sample) {
        return without_image;
    }
    let members = || (0..).zip(group_of).filter(|&(_, &group)| group != NO_GROUP);
    let mut extension = Vec::new();
    let set_extension = |file: u32, group: &Group, extension: &mut Vec<u8>| {
        extension.clear();
        extension.extend_from_slice(names.base(file).get(group.key_bytes..).unwrap_or_default());
        extension.make_ascii_lowercase();
    };
    let mut next_to_images: HashSet<Vec<u8>> = HashSet::new();
    for (file, &group) in members() {
        let group = &groups[group as usize];
        if is_sample(group) {
            set_extension(file, group, &mut extension);
            if !next_to_images.contains(&extension) {
                next_to_images.insert(extension.clone());
            }
        }
    }
    // By group without an image, its files with such extensions.
    let mut known = vec![0_u32; groups.len()];
    for (file, &number) in members() {
        let group = &groups[number as usize];
        if !is_sample(group) {
            set_extension(file, group, &mut extension);
            known[number as usize] += u32::from(next_to_images.contains(&extension));
        }
    }
    for (group, known) in groups.iter_mut().zip(known).filter(|(group, _)| !is_sample(group)) {
        if group.files > 1 && known == group.files {
            continue;
        }
        group.main = NONE;
        let key = split_base(names.base(group.first_file)).0;
        if group.files > 1 || known > 0 || group.key_bytes > key.len() {
            without_image.groups += 1;
            without_image.files += u64::from(group.files);
            let first = without_image.first.unwrap_or(group.first_file);
            without_image.first = Some(first.min(group.first_file));
        }
    }
    without_image
}

/// Links the fields of each group in stored order.
fn chain_fields(groups: &mut [Group], group_of: &[u32]) -> Vec<u32> {
    let mut next_fields = Vec::new();
    for (file, &group) in (0..).zip(group_of) {
        let Some(group) = groups.get_mut(group as usize) else { continue };
        if group.main == file || group.main == NONE {
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
    next_fields
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
        let fields = &mut *self.fields;
        let first = self.first;
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
mod tests;
