//! The names that are free in an archive or a folder: those with which a reader finds the same
//! samples
//! again, each with its own fields.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::{FileLayout, Place, Selection, base_of, group_of};
use crate::convert::selection::Located;
use crate::grouping::{Grouping, join_base};
use crate::names::{NONE, Names, TooManyNames};
use crate::sample::Field;

/// The groups of files, by the hash of their keys: up to 40 bytes each.
#[derive(Debug)]
pub(super) struct Groups {
    place: Place,
    /// Groups whose samples a reader finds again under their own names.
    kept: HashSet<u64>,
    /// Other groups written so far.
    written: HashSet<u64>,
    /// In a folder, the files of kept groups and those written so far.
    taken: HashSet<u64>,
}

/// The longest name of a file.
const MAX_COMPONENT_BYTES: usize = 255;

/// The names that a sample and its fields would have.
struct Planned {
    /// The number of the sample's name; its fields follow.
    file: u32,
    fields: u32,
    group: u64,
}

impl Groups {
    /// Finds the groups of the selection that can keep their names: 28 bytes and the name for each
    /// sample and field while it works.
    pub(super) fn plan(selection: &Selection<'_>, place: Place) -> Self {
        let mut groups =
            Self { place, kept: HashSet::new(), written: HashSet::new(), taken: HashSet::new() };
        let mut names = Names::new();
        let mut planned = Vec::new();
        for number in 0..selection.sample_count() {
            let Located { source, index, .. } = selection.locate(number);
            // A damaged entry will be reported when its turn comes.
            let Ok(entry) = source.entry(index) else { continue };
            let Some(key) = entry.key else { continue };
            let key = match place {
                Place::Archive => key.into_owned(),
                Place::Folder => FileLayout::file_name(&key, entry.format),
            };
            let Ok(file) = u32::try_from(names.len()) else { return groups };
            let mut pushed = names.push(&key);
            let mut fields = 0;
            let mut add = |extension: &[u8], _| {
                pushed = pushed.and_then(|()| names.push(&join_base(group_of(&key), extension)));
                fields += 1;
                false
            };
            // So will a damaged field.
            let read = source.read_fields_where(index, &mut add, &mut Vec::new());
            if pushed == Err(TooManyNames) {
                return groups;
            }
            let fields = if read.is_ok() { fields } else { NONE };
            planned.push(Planned { file, fields, group: group_hash(&key) });
        }
        groups.keep(&names, &planned);
        groups
    }

    /// Keeps the groups in which a reader finds every sample as it is planned.
    fn keep(&mut self, names: &Names, planned: &[Planned]) {
        let grouping = Grouping::new(names, &[]);
        let mut as_planned = vec![false; planned.len()];
        for sample in 0..grouping.sample_count() as u64 {
            let file = grouping.sample(sample).unwrap_or(NONE);
            let Ok(at) = planned.binary_search_by_key(&file, |planned| planned.file) else {
                continue;
            };
            let fields = (file + 1..).take(planned[at].fields as usize);
            as_planned[at] = grouping.fields(sample).eq(fields);
        }
        let mut seen = HashSet::new();
        let mut changed = HashSet::new();
        for (planned, as_planned) in planned.iter().zip(as_planned) {
            let files = match self.place {
                Place::Archive => 1,
                Place::Folder => planned.fields.saturating_add(1),
            };
            let mut files = (planned.file..).take(files as usize);
            if !as_planned || !files.all(|file| seen.insert(hash(&names.path(file)))) {
                changed.insert(planned.group);
            }
        }
        for planned in planned.iter().filter(|planned| !changed.contains(&planned.group)) {
            self.kept.insert(planned.group);
            if self.place == Place::Folder {
                let files = (planned.file..).take(planned.fields as usize + 1);
                self.taken.extend(files.map(|file| hash(&names.path(file))));
            }
        }
    }

    /// Whether the sample called `name` and its fields come back as they are.
    pub(super) fn keeps(&self, name: &[u8]) -> bool {
        self.kept.contains(&group_hash(name))
    }

    /// Finds a name for sample `number`, which is called `name`: this one, unless a reader would
    /// then mix it up with another sample. `fields` are those that will be written with it. A name
    /// derived from a number (`is_made`) yields to a stored one.
    pub(super) fn place(
        &mut self,
        name: &[u8],
        fields: &[Field],
        number: u64,
        is_made: bool,
    ) -> Vec<u8> {
        if !is_made && self.keeps(name) {
            return name.to_vec();
        }
        let (group, rest) = name.split_at(group_of(name).len());
        let extensions = fields.iter().map(|field| field.extension.len() + 1);
        let longest = extensions.chain([rest.len()]).max().unwrap_or(0);
        let mut suffix = String::new();
        loop {
            let base_bytes = MAX_COMPONENT_BYTES.saturating_sub(suffix.len() + longest);
            let group = if suffix.is_empty() { group } else { shortened(group, base_bytes) };
            let placed = [group, suffix.as_bytes(), rest].concat();
            let key = group_hash(&placed);
            let is_free = !self.kept.contains(&key) && !self.written.contains(&key);
            if is_free && self.take_files(&placed, fields) {
                self.written.insert(key);
                return placed;
            }
            suffix.push_str(&format!("-{number}"));
        }
    }

    /// Takes the names of the sample's files in a folder, unless one is taken.
    fn take_files(&mut self, name: &[u8], fields: &[Field]) -> bool {
        if self.place == Place::Archive {
            return true;
        }
        let fields = fields.iter().map(|field| hash(&join_base(group_of(name), &field.extension)));
        let files: Vec<u64> = fields.chain([hash(name)]).collect();
        let is_free = !files.iter().any(|file| self.taken.contains(file));
        if is_free {
            self.taken.extend(files);
        }
        is_free
    }
}

/// `group` with a base name of at most `base_bytes` bytes, and at least one, which ends between
/// characters of UTF-8.
fn shortened(group: &[u8], base_bytes: usize) -> &[u8] {
    let folder = group.len() - base_of(group).len();
    let mut end = folder + base_bytes.max(1);
    let is_inside = |end| group.get(end).is_some_and(|byte| byte & 0xc0 == 0x80);
    while end > folder + 1 && is_inside(end) {
        end -= 1;
    }
    group.get(..end).unwrap_or(group)
}

/// Whether a reader takes the member called `field` for a field of the one called `name`.
pub(super) fn is_field_of(name: &[u8], field: &[u8]) -> bool {
    let mut names = Names::new();
    if names.push(name).and_then(|()| names.push(field)).is_err() {
        return false;
    }
    let grouping = Grouping::new(&names, &[]);
    base_of(name) != base_of(field) && grouping.sample(0) == Some(0) && grouping.fields(0).eq([1])
}

/// Names without an extension have their own groups.
fn group_hash(name: &[u8]) -> u64 {
    let group = group_of(name);
    if group.len() == name.len() { hash(&[group, b"/"].concat()) } else { hash(group) }
}

/// Not keyed: the archive must not depend on the process that writes it.
fn hash(name: &[u8]) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(name)
}
