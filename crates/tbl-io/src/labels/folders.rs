//! Class folders: which part of a sample's path is its class.

use std::collections::{BTreeSet, HashMap};

use crate::error::ReadError;
use crate::escape::Escaped;
use crate::location::Location;

/// Stands for the folder of a sample without a name.
pub(super) const NO_FOLDER: u32 = u32::MAX;

/// The distinct folders of samples.
#[derive(Default)]
pub(super) struct Folders {
    ids: HashMap<Vec<u8>, u32>,
    last: Option<(Vec<u8>, u32)>,
}

/// The classes that folders give.
pub(super) struct Classes {
    /// By source, the class of each folder as its place in `names`. Empty for a source without
    /// class folders.
    pub(super) of_source: Vec<HashMap<u32, usize>>,
    /// The classes, sorted.
    pub(super) names: Vec<String>,
}

/// The class folders of one source.
struct Layout<'a> {
    location: &'a Location,
    /// The components of each folder.
    folders: Vec<(u32, Vec<&'a [u8]>)>,
    /// How many leading components all its folders share.
    depth: usize,
    /// The components at that depth.
    classes: BTreeSet<&'a [u8]>,
}

impl Folders {
    pub(super) fn id(&mut self, key: &[u8]) -> u32 {
        let slash = key.iter().rposition(|&byte| byte == b'/');
        let folder = &key[..slash.map_or(0, |at| at + 1)];
        if let Some((last, id)) = &self.last
            && last == folder
        {
            return *id;
        }
        let new = u32::try_from(self.ids.len()).unwrap_or(NO_FOLDER);
        let id = *self.ids.entry(folder.to_vec()).or_insert(new);
        self.last = Some((folder.to_vec(), id));
        id
    }

    /// The classes of sources that have these folders. `named` are classes that other sources
    /// store.
    ///
    /// The class is the first component below the part that all folders share: all of the data set,
    /// or where sources are stored at different depths, all of the source. A source with a single
    /// class has it at the depth of the others, or where a component is the name of a class.
    ///
    /// # Errors
    /// [`ReadError::ClassFolderDepths`] for different depths without a class in common.
    pub(super) fn classes(
        &self,
        sources: &[(&Location, BTreeSet<u32>)],
        named: &BTreeSet<&str>,
    ) -> Result<Classes, ReadError> {
        let mut components_of = vec![Vec::new(); self.ids.len()];
        for (folder, &id) in &self.ids {
            if let Some(slot) = components_of.get_mut(id as usize) {
                *slot = components(folder).collect();
            }
        }
        let layouts: Vec<Layout<'_>> = sources
            .iter()
            .map(|(location, ids)| Layout::new(location, ids, &components_of))
            .collect();
        let all = layouts.iter().flat_map(|layout| &layout.folders).map(|(_, folder)| &folder[..]);
        let depth = shared_prefix(all);
        let is_deeper = |layout: &Layout<'_>| layout.has_classes() && layout.depth > depth;
        let any_deeper = layouts.iter().any(is_deeper);
        for layout in layouts.iter().filter(|layout| is_deeper(layout)) {
            layout.check_common(&layouts, named)?;
        }
        let known: BTreeSet<&[u8]> = layouts
            .iter()
            .filter(|layout| layout.has_classes())
            .flat_map(|layout| layout.classes.iter().copied())
            .chain(named.iter().map(|name| name.as_bytes()))
            .collect();
        let class_of = |layout: &Layout<'_>, folder: &[&'_ [u8]]| -> Option<Vec<u8>> {
            let at = |depth: usize| folder.get(depth).copied();
            let class = if layout.has_classes() {
                at(if any_deeper { layout.depth } else { depth })
            } else {
                let at_depth = at(depth);
                let by_name = || folder.iter().rev().copied().find(|part| known.contains(part));
                match at_depth.filter(|part| known.contains(part)).or_else(by_name) {
                    None if !any_deeper => at_depth,
                    class => class,
                }
            };
            class.map(<[u8]>::to_vec)
        };
        let of_source: Vec<HashMap<u32, Vec<u8>>> = layouts
            .iter()
            .map(|layout| {
                let classes = layout.folders.iter().map(|(id, folder)| (*id, folder));
                classes.filter_map(|(id, folder)| Some((id, class_of(layout, folder)?))).collect()
            })
            .collect();
        Ok(Classes::new(&of_source, named))
    }
}

impl Classes {
    fn new(of_source: &[HashMap<u32, Vec<u8>>], named: &BTreeSet<&str>) -> Self {
        let names: BTreeSet<&[u8]> =
            of_source.iter().flat_map(HashMap::values).map(Vec::as_slice).collect();
        // A single folder does not count as a class, unless another source has it too.
        let is_named = |name: &[u8]| named.iter().any(|named| named.as_bytes() == name);
        if names.len() < 2 && !names.iter().any(|name| is_named(name)) {
            let of_source = of_source.iter().map(|_| HashMap::new()).collect();
            return Self { of_source, names: Vec::new() };
        }
        let place: HashMap<&[u8], usize> = names.iter().copied().zip(0..).collect();
        let numbered = |classes: &HashMap<u32, Vec<u8>>| {
            classes.iter().filter_map(|(&id, name)| Some((id, *place.get(&name[..])?))).collect()
        };
        let of_source = of_source.iter().map(numbered).collect();
        Self { of_source, names: names.iter().map(|name| Escaped(name).to_string()).collect() }
    }
}

impl<'a> Layout<'a> {
    fn new(
        location: &'a Location,
        ids: &BTreeSet<u32>,
        components_of: &'a [Vec<&'a [u8]>],
    ) -> Self {
        let folder = |&id: &u32| Some((id, components_of.get(id as usize)?.clone()));
        let folders: Vec<(u32, Vec<&[u8]>)> = ids.iter().filter_map(folder).collect();
        let depth = shared_prefix(folders.iter().map(|(_, folder)| &folder[..]));
        let classes = folders.iter().filter_map(|(_, folder)| folder.get(depth).copied()).collect();
        Self { location, folders, depth, classes }
    }

    /// The components of all folders.
    fn parts(&self) -> impl Iterator<Item = &&'a [u8]> {
        self.folders.iter().flat_map(|(_, folder)| folder)
    }

    /// Whether the source alone has class folders.
    fn has_classes(&self) -> bool {
        self.classes.len() > 1
    }

    /// Fails where no other source has one of the classes: their folders may not be classes.
    fn check_common(&self, all: &[Self], named: &BTreeSet<&str>) -> Result<(), ReadError> {
        let mut others = all.iter().filter(|other| !std::ptr::eq(*other, self));
        let is_common = |part: &&[u8]| self.classes.contains(part);
        let is_named = named.iter().any(|name| is_common(&name.as_bytes()));
        if is_named || others.clone().any(|other| other.parts().any(is_common)) {
            return Ok(());
        }
        let Some(other) = others.find(|other| other.parts().next().is_some()) else {
            return Ok(());
        };
        let shared = self.folders.first().map(|(_, folder)| folder[..self.depth].join(&b'/'));
        Err(ReadError::ClassFolderDepths {
            location: self.location.clone(),
            parent: shared.unwrap_or_default(),
            other: other.location.clone(),
        })
    }
}

/// The parts of a folder's path; `.` and empty ones say nothing.
fn components(folder: &[u8]) -> impl Iterator<Item = &[u8]> {
    folder.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".")
}

/// How many leading components all folders share.
fn shared_prefix<'a>(mut folders: impl Iterator<Item = &'a [&'a [u8]]>) -> usize {
    let Some(first) = folders.next() else { return 0 };
    folders.fold(first.len(), |shared, folder| {
        let equal = first.iter().zip(folder).take_while(|(a, b)| a == b);
        shared.min(equal.count())
    })
}
