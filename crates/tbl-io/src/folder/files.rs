//! The files of a folder: on the local file system, or in a store that has listed them.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tbl_format::path::check_name;

use super::too_many_names;
use crate::error::ReadError;
use crate::identity::{self, Times, Told};
use crate::location::Location;
use crate::names::{Names, TooManyNames};
use crate::ranges::Pin;
use crate::source::Source;
use crate::storage::{Object, Storage};

/// Announced objects that are kept at most: 64 samples, as many as are announced ahead, with 15 fields
/// each.
const ANNOUNCED: usize = 1024;

/// Opens the files below a folder by their number and name.
#[derive(Debug)]
pub(super) struct Files {
    root: Location,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// The local file system, which is asked each time: files come, change and go.
    Local(Times),
    Store(Objects),
}

/// The objects of a store.
#[derive(Debug)]
struct Objects {
    store: Arc<dyn Storage>,
    /// Each file as the store has listed it.
    listed: Vec<Listed>,
    /// Open objects whose reads were announced, oldest first. Closing one would end its request.
    announced: Mutex<VecDeque<(u32, Source)>>,
}

/// Length and version of an object; its name is among those of all files.
#[derive(Debug)]
struct Listed {
    len: u64,
    pin: Pin,
}

impl Files {
    /// The files below a folder of the local file system.
    pub(super) fn local(root: &Path) -> Self {
        Self { root: root.into(), place: Place::Local(Times::default()) }
    }

    /// Lists a folder of a store. Returns the names as well, in the order of their bytes.
    pub(super) fn listed(
        store: &Arc<dyn Storage>,
        root: Location,
    ) -> Result<(Self, Names), ReadError> {
        let objects = store.list(&root)?;
        // A store has no empty folders: the URL is wrong.
        if objects.is_empty() {
            let error = io::Error::new(io::ErrorKind::NotFound, "no object below it");
            return Err(ReadError::io(root, error));
        }
        Self::of_objects(store, root, objects)
    }

    /// The files that a store has listed. Returns the names as well, in the order of their bytes.
    pub(super) fn of_objects(
        store: &Arc<dyn Storage>,
        root: Location,
        mut objects: Vec<Object>,
    ) -> Result<(Self, Names), ReadError> {
        objects.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let mut names = Names::new();
        let mut listed = Vec::with_capacity(objects.len());
        for Object { name, len, pin } in objects {
            if let Err(source) = check_name(&name) {
                return Err(ReadError::UnsafeObject { location: root, name, source });
            }
            names.push(&name).map_err(|TooManyNames| too_many_names(&root))?;
            listed.push(Listed { len, pin });
        }
        names.shrink_to_fit();
        let objects = Objects { store: Arc::clone(store), listed, announced: Mutex::default() };
        Ok((Self { root, place: Place::Store(objects) }, names))
    }

    /// The folder.
    pub(super) fn root(&self) -> &Location {
        &self.root
    }

    /// Opens file number `file`, which has this name.
    pub(super) fn open(&self, file: u32, name: &[u8]) -> Result<Source, ReadError> {
        match &self.place {
            Place::Local(_) => Source::open(self.path(name)),
            Place::Store(objects) => match objects.take_announced(file) {
                Some(source) => Ok(source),
                None => objects.store.open(&self.root.join(name), self.object(file, name).as_ref()),
            },
        }
    }

    /// Announces that file number `file`, which has this name, will be read soon.
    pub(super) fn will_need(&self, file: u32, name: &[u8]) {
        match &self.place {
            Place::Local(_) => {
                if let Ok(source) = self.open(file, name) {
                    source.will_need(0, source.len());
                }
            }
            // An object whose version is unknown is opened by a request, which would block.
            Place::Store(objects) if objects.listed[file as usize].pin != Pin::Unknown => {
                let Ok(source) = self.open(file, name) else { return };
                source.will_need(0, source.len());
                let mut announced = objects.announced();
                if announced.len() == ANNOUNCED {
                    announced.pop_front();
                }
                announced.push_back((file, source));
            }
            Place::Store(_) => {}
        }
    }

    /// Whether they are in a store.
    pub(super) fn are_in_store(&self) -> bool {
        matches!(self.place, Place::Store(_))
    }

    /// Whether all files are objects of a store that are opened without a request.
    pub(super) fn are_listed(&self) -> bool {
        match &self.place {
            Place::Local(_) => false,
            Place::Store(Objects { listed, .. }) => {
                listed.iter().all(|listed| listed.pin != Pin::Unknown)
            }
        }
    }

    /// File number `file`, which has this name, as the store has listed it; `None` for a local
    /// file.
    pub(super) fn object(&self, file: u32, name: &[u8]) -> Option<Object> {
        let Place::Store(Objects { listed, .. }) = &self.place else { return None };
        let Listed { len, pin } = &listed[file as usize];
        Some(Object { name: name.to_vec(), len: *len, pin: pin.clone() })
    }

    /// Bytes of a file.
    pub(super) fn len(&self, file: u32, name: &[u8]) -> Result<u64, ReadError> {
        match &self.place {
            Place::Local(_) => {
                let path = self.path(name);
                Ok(std::fs::metadata(&path).map_err(|error| ReadError::io(&path, error))?.len())
            }
            Place::Store(Objects { listed, .. }) => Ok(listed[file as usize].len),
        }
    }

    /// Appends the identity of a file to `id`; `None` where it has none.
    pub(super) fn content_id(
        &self,
        file: u32,
        name: &[u8],
        id: &mut Vec<u8>,
    ) -> Result<Option<Told>, ReadError> {
        match &self.place {
            Place::Local(times) => {
                let path = self.path(name);
                let metadata =
                    std::fs::metadata(&path).map_err(|error| ReadError::io(&path, error))?;
                identity::push(path.as_os_str(), &metadata, id);
                let file_system = || rustix::fs::statfs(self.root.as_os_str().as_bytes());
                Ok(Some(Told::by_times(&metadata, times, file_system)))
            }
            Place::Store(Objects { listed, .. }) => {
                let Listed { len, pin } = &listed[file as usize];
                Ok(identity::push_object(&self.root.join(name), "", *len, pin, id))
            }
        }
    }

    /// The path of a local file.
    fn path(&self, name: &[u8]) -> PathBuf {
        Path::new(self.root.as_os_str()).join(OsStr::from_bytes(name))
    }
}

impl Objects {
    /// The object of an announced file, once.
    fn take_announced(&self, file: u32) -> Option<Source> {
        let mut announced = self.announced();
        let place = announced.iter().position(|(announced, _)| *announced == file)?;
        announced.remove(place).map(|(_, source)| source)
    }

    fn announced(&self) -> MutexGuard<'_, VecDeque<(u32, Source)>> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
