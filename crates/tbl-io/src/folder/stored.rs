//! The part of a folder of a store in a shard index: what the store listed, and labels.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use tbl_format::FormatError;
use tbl_format::shard_index::{PartReader, push_number, push_signed, push_strings};

use super::{Folder, UNREAD};
use crate::error::ReadError;
use crate::files::Files;
use crate::limits::ReadLimits;
use crate::location::Location;
use crate::shard_index::{pin_of, version_of};
use crate::storage::{Object, Storage};

const WHAT: &str = "list of a folder";

/// The most bytes of names of a folder, and of versions: [`Names`](crate::names::Names) counts by
/// `u32`.
const MAX_TEXT_BYTES: u64 = u32::MAX as u64;

impl Folder {
    /// The folder's part in a shard index; `None` for a local folder. Label files are read.
    ///
    /// # Errors
    /// If a label file cannot be read from the store.
    pub(crate) fn part(&self) -> Result<Option<Vec<u8>>, ReadError> {
        let files = (0..).take(self.names.len());
        let objects = files.map(|file| self.files.object(file, &self.names.path(file)));
        let Some(objects) = objects.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let labels = self.label_states()?;
        let mut part = Vec::new();
        push_number(&mut part, objects.len() as u64);
        for object in &objects {
            push_number(&mut part, object.len);
        }
        for object in &objects {
            push_number(&mut part, version_of(&object.pin).0 as u64);
        }
        push_strings(&mut part, objects.iter().map(|object| version_of(&object.pin).1));
        push_strings(&mut part, objects.iter().map(|object| &object.name));
        push_number(&mut part, labels.len() as u64);
        for label in labels {
            push_signed(&mut part, label);
        }
        Ok(Some(part))
    }

    /// Opens a folder of a store by its part in a shard index, without listing it.
    ///
    /// # Errors
    /// [`FormatError`] for a part that does not make sense, wrapped by `defect`;
    /// [`ReadError::UnsafeObject`].
    pub(crate) fn of_part(
        store: &Arc<dyn Storage>,
        root: Location,
        part: &[u8],
        defect: impl Fn(FormatError) -> ReadError,
    ) -> Result<Self, ReadError> {
        let listed = Listing::read(part).map_err(&defect)?;
        let (files, names) = Files::of_objects(store, root, listed.objects)?;
        let mut folder = Self::of_files(files, names, ReadLimits::default());
        // A folder has a state for each sample, or none at all.
        if listed.labels.len() == folder.labels.len() {
            folder.labels = listed.labels;
            return Ok(folder);
        }
        let expected = folder.labels.len() as u64;
        let found = listed.labels.len() as u64;
        Err(defect(FormatError::Count { what: "list of labels", expected, found }))
    }
}

struct Listing {
    objects: Vec<Object>,
    labels: Vec<AtomicI64>,
}

impl Listing {
    fn read(part: &[u8]) -> Result<Self, FormatError> {
        let mut part = PartReader::new(part, WHAT);
        let count = part.count()?;
        let mut lens = part.clone();
        for _ in 0..count {
            part.number()?;
        }
        let mut kinds = part.clone();
        for _ in 0..count {
            part.number()?;
        }
        let mut objects: Vec<Object> = Vec::new();
        let mut version_bytes = 0_u64;
        part.strings(count, |version| {
            version_bytes += version.len() as u64;
            if version_bytes > MAX_TEXT_BYTES {
                return Err(kinds.unreadable());
            }
            let kind = kinds.number()?;
            let pin = pin_of(kind, version).ok_or_else(|| kinds.unreadable())?;
            // The files of a commit share its name.
            let last = objects.last().map(|object| &object.pin).filter(|last| **last == pin);
            let pin = last.cloned().unwrap_or(pin);
            objects.push(Object { name: Vec::new(), len: lens.number()?, pin });
            Ok(())
        })?;
        let mut name_bytes = 0_u64;
        let mut unnamed = objects.iter_mut();
        let names = part.clone();
        part.strings(count, |name| {
            name_bytes += name.len() as u64;
            let Some(object) = unnamed.next().filter(|_| name_bytes <= MAX_TEXT_BYTES) else {
                return Err(names.unreadable());
            };
            object.name = name.to_vec();
            Ok(())
        })?;
        let mut labels = Vec::new();
        for _ in 0..part.count()? {
            let label = part.signed()?;
            // It would be read from the store, once for each sample.
            if label == UNREAD {
                return Err(part.unreadable());
            }
            labels.push(AtomicI64::new(label));
        }
        part.finish()?;
        Ok(Self { objects, labels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranges::Pin;

    /// A part with files of these versions and names.
    fn part(versions: &[String], names: &[String]) -> Vec<u8> {
        let mut part = Vec::new();
        push_number(&mut part, names.len() as u64);
        names.iter().for_each(|_| push_number(&mut part, 1));
        names.iter().for_each(|_| push_number(&mut part, 1));
        push_strings(&mut part, versions.iter());
        push_strings(&mut part, names.iter());
        push_number(&mut part, 0);
        part
    }

    #[test]
    fn equal_versions_take_memory_once() {
        let names: Vec<String> = (0..100).map(|name| format!("{name:03}.jpg")).collect();
        let versions = vec!["c0ffee".to_owned(); names.len()];
        let Ok(listed) = Listing::read(&part(&versions, &names)) else { panic!("a good part") };
        let pointers = listed.objects.iter().map(|object| {
            let Pin::Version(name) = &object.pin else { panic!("{}", object.pin) };
            name.as_ptr()
        });
        let pointers: std::collections::BTreeSet<_> = pointers.collect();
        assert_eq!((listed.objects.len(), pointers.len()), (100, 1));
    }

    #[test]
    fn text_that_a_short_part_repeats_is_refused() {
        let short: Vec<String> = (0..4000).map(|name| format!("{name:04}")).collect();
        // A byte more each: versions that all differ and share nearly all.
        let long: Vec<String> = (0..4000).map(|number| "v".repeat(16_000 + number)).collect();
        for (versions, names) in [(&long, &short), (&short, &long)] {
            let part = part(versions, names);
            assert!(part.len() < 64 << 10, "{}", part.len());
            let read = Listing::read(&part).map(drop);
            assert_eq!(read, Err(FormatError::Unreadable { what: WHAT }));
        }
    }
}
