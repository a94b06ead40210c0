//! Which names are free in an archive: those with which a reader finds the same samples again,
//! each with its own fields.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::{base_of, group_of};
use crate::grouping::is_image;
use crate::sample::Field;

/// The groups of an archive so far, by the hash of their keys: up to 40 bytes each.
#[derive(Debug, Default)]
pub(super) struct Groups {
    kinds: HashMap<u64, Kind>,
    /// The group of the image written last.
    last: Option<Shared>,
}

/// What a group holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Images and their fields.
    WithFields,
    /// Nothing but images.
    Images,
    /// Samples that are no images.
    NoImage,
}

/// A group whose images share their fields.
#[derive(Debug)]
struct Shared {
    /// The key that its images have in the source.
    source_group: Vec<u8>,
    group: Vec<u8>,
    fields: Vec<Field>,
    /// The names of its images behind the key.
    images: HashSet<Vec<u8>>,
}

/// Where a sample goes.
pub(super) struct Place {
    /// The name of its member.
    pub(super) name: Vec<u8>,
    /// Whether its fields have to be written, or stand in the archive already.
    pub(super) needs_fields: bool,
}

impl Groups {
    /// Finds a name for sample `number`, which is called `name`: this one, unless a reader would
    /// then mix it up with another sample. `fields` are those that will be written with it.
    pub(super) fn place(&mut self, name: &[u8], fields: &[Field], number: u64) -> Place {
        let group = group_of(name);
        let rest = &name[group.len()..];
        let kind = match (is_image(base_of(name)), fields.is_empty()) {
            (false, _) => Kind::NoImage,
            (true, false) => Kind::WithFields,
            (true, true) => Kind::Images,
        };
        if kind == Kind::WithFields
            && let Some(last) = &mut self.last
            && last.source_group == group
            && last.fields == fields
            && last.images.insert(rest.to_vec())
        {
            return Place { name: [&last.group, rest].concat(), needs_fields: false };
        }
        let free = self.free_group(group, kind, number);
        let name = [&free, rest].concat();
        self.last = (kind == Kind::WithFields).then(|| Shared {
            source_group: group.to_vec(),
            group: free,
            fields: fields.to_vec(),
            images: HashSet::from([rest.to_vec()]),
        });
        Place { name, needs_fields: true }
    }

    /// `group`, or if it is taken, `group` with the sample's number.
    fn free_group(&mut self, group: &[u8], kind: Kind, number: u64) -> Vec<u8> {
        let mut group = group.to_vec();
        // Not keyed: the archive must not depend on the process that writes it.
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        loop {
            match self.kinds.entry(hasher.hash_one(&group)) {
                Entry::Vacant(free) => {
                    free.insert(kind);
                    return group;
                }
                // Without fields there is nothing to mix up.
                Entry::Occupied(taken) if *taken.get() == kind && kind != Kind::WithFields => {
                    return group;
                }
                Entry::Occupied(_) => group.extend_from_slice(format!("-{number}").as_bytes()),
            }
        }
    }
}
