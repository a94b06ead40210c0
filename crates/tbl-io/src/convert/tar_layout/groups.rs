//! Which names are free in an archive: those with which a reader finds the same samples again,
//! each with its own fields.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use tbl_format::SampleFormat;

use super::{Selection, base_of, group_of};
use crate::convert::selection::Located;
use crate::grouping::{Grouping, join_base};
use crate::names::{NONE, Names, TooManyNames};
use crate::sample::Field;

/// The groups of an archive, by the hash of their keys: up to 40 bytes each.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Groups whose samples a reader finds again under their own names.
    kept: HashSet<u64>,
    /// Other groups written so far. A value stands for the name of a sample without fields.
    written: HashMap<u64, Option<u64>>,
    /// Whether a sample is an image, so that readers pass over files without one.
    pub(super) has_image: bool,
}

/// The names that a sample and its fields would have in an archive.
struct Planned {
    /// The number of the sample's name; its fields follow.
    file: u32,
    fields: u32,
    group: u64,
}

impl Groups {
    /// Finds the groups of the selection that can keep their names: 28 bytes and the name for each
    /// sample and field while it works.
    pub(super) fn plan(selection: &Selection<'_>) -> Self {
        let mut groups = Self::default();
        let (mut names, mut planned) = (Names::new(), Vec::new());
        for number in 0..selection.sample_count() {
            let Located { source, index, .. } = selection.locate(number);
            // A damaged entry will be reported when its turn comes.
            let Ok(entry) = source.entry(index) else { continue };
            let Some(key) = entry.key else {
                groups.has_image |= entry.format.is_image();
                continue;
            };
            groups.has_image |= SampleFormat::from_file_name(&key).is_image();
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
            if !as_planned || !seen.insert(hash(&names.path(planned.file))) {
                changed.insert(planned.group);
            }
        }
        let kept = planned.iter().map(|planned| planned.group);
        self.kept.extend(kept.filter(|group| !changed.contains(group)));
    }

    /// Whether the sample called `name` and its fields come back as they are.
    pub(super) fn keeps(&self, name: &[u8]) -> bool {
        self.kept.contains(&group_hash(name))
    }

    /// Finds a name for sample `number`, which is called `name`: this one, unless a reader would
    /// then mix it up with another sample. `fields` are those that will be written with it. A name
    /// made of a number (`is_made`) gives way to a stored one.
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
        // Without fields there is nothing to mix up with a sample of the same name.
        let sample = fields.is_empty().then(|| hash(rest));
        let mut group = group.to_vec();
        loop {
            let placed = [&group, rest].concat();
            let key = group_hash(&placed);
            if !self.kept.contains(&key) {
                match self.written.entry(key) {
                    Entry::Vacant(free) => {
                        free.insert(sample);
                        return placed;
                    }
                    Entry::Occupied(taken) if sample.is_some() && *taken.get() == sample => {
                        return placed;
                    }
                    Entry::Occupied(_) => {}
                }
            }
            group.extend_from_slice(format!("-{number}").as_bytes());
        }
    }
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

/// Names without an extension have groups of their own.
fn group_hash(name: &[u8]) -> u64 {
    let group = group_of(name);
    if group.len() == name.len() { hash(&[group, b"/"].concat()) } else { hash(group) }
}

/// Not keyed: the archive must not depend on the process that writes it.
fn hash(name: &[u8]) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(name)
}
