//! The part of a folder of a store in a shard index: what the store listed, and labels.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use tbl_format::FormatError;
use tbl_format::shard_index::{PartReader, push_number, push_signed, push_strings};

use super::files::Files;
use super::{Folder, UNREAD};
use crate::at_once::{AT_ONCE, at_once};
use crate::error::ReadError;
use crate::limits::ReadLimits;
use crate::location::Location;
use crate::shard_index::{pin_of, version_of};
use crate::storage::{Object, Storage};

const WHAT: &str = "list of a folder";

impl Folder {
    /// The folder's part in a shard index; `None` for a local folder. Label files are read.
    ///
    /// # Errors
    /// If a label file cannot be read from the store.
    pub(crate) fn part(&self) -> Result<Option<Vec<u8>>, ReadError> {
        let files = (0..).take(self.names.len());
        let objects = files.map(|file| self.files.object(file, &self.names.path(file)));
        let Some(objects) = objects.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let samples: Vec<u64> = (0..self.labels.len() as u64).collect();
        let labels = at_once(&samples, AT_ONCE, |&index| self.label_state(index))?;
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
        let mut objects = Vec::new();
        part.strings(count, |version| {
            let kind = kinds.number()?;
            let pin = pin_of(kind, version).ok_or_else(|| kinds.unreadable())?;
            objects.push(Object { name: Vec::new(), len: lens.number()?, pin });
            Ok::<(), FormatError>(())
        })?;
        let mut text_bytes = 0_u64;
        let mut unnamed = objects.iter_mut();
        let names = part.clone();
        part.strings(count, |name| {
            text_bytes += name.len() as u64;
            let Some(object) = unnamed.next().filter(|_| text_bytes <= MAX_NAME_BYTES) else {
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

/// As many bytes of names as a folder may have.
const MAX_NAME_BYTES: u64 = u32::MAX as u64;
