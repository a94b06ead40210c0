//! The files of a folder: on the local file system, or in a store that has listed them.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tbl_format::path::check_name;

use crate::at_once::{AT_ONCE, at_once};
use crate::error::ReadError;
use crate::escape::Escaped;
use crate::identity::{self, Times, Told};
use crate::location::Location;
use crate::names::{Names, TooManyNames};
use crate::ranges::Pin;
use crate::source::Source;
use crate::storage::{Object, Storage, Stores};

/// Announced objects that are kept at most: 64 samples, as many as are announced ahead, with 15 fields
/// each.
const ANNOUNCED: usize = 1024;

/// Local files that one thread looks for in one go, and the threads that do so: a network file system
/// takes as long as a store, a disk is done before a thread has begun.
const FILES_AT_ONCE: usize = 4096;
const LOCAL_AT_ONCE: usize = 8;

/// Opens the files below a folder by their number and name.
#[derive(Debug)]
pub(crate) struct Files {
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
#[derive(Clone, Debug)]
struct Listed {
    len: u64,
    pin: Pin,
}

impl Files {
    /// The files below a folder of the local file system.
    pub(crate) fn local(root: &Path) -> Self {
        Self { root: root.into(), place: Place::Local(Times::default()) }
    }

    /// Lists a folder of a store. Returns the names as well, in the order of their bytes.
    pub(crate) fn listed(
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
    pub(crate) fn of_objects(
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
            names.push(&name).map_err(|TooManyNames| ReadError::too_many_names(&root))?;
            listed.push(Listed { len, pin });
        }
        names.shrink_to_fit();
        let objects = Objects { store: Arc::clone(store), listed, announced: Mutex::default() };
        Ok((Self { root, place: Place::Store(objects) }, names))
    }

    /// The files below `root` that have these names, and the numbers of those that do not exist.
    /// A store is asked for its list, a web server, which has none, for each file.
    pub(crate) fn named(
        stores: &Stores,
        root: Location,
        names: &Names,
    ) -> Result<(Self, Vec<u32>), ReadError> {
        let numbers: Vec<u32> = (0..).take(names.len()).collect();
        let Some(store) = stores.store(&root)? else {
            let folder = Path::new(root.as_os_str());
            let is_missing = |&&file: &&u32| {
                let path = folder.join(OsStr::from_bytes(&names.path(file)));
                !std::fs::metadata(path).is_ok_and(|found| found.is_file())
            };
            let some: Vec<&[u32]> = numbers.chunks(FILES_AT_ONCE).collect();
            let threads = if some.len() > 1 { LOCAL_AT_ONCE } else { 1 };
            let missing = at_once(&some, threads, |some| {
                Ok::<_, ReadError>(some.iter().filter(is_missing).copied().collect::<Vec<_>>())
            })?;
            return Ok((Self::local(folder), missing.concat()));
        };
        let is_web = root.scheme().is_some_and(|scheme| scheme.starts_with("http"));
        let found = if is_web {
            at_once(&numbers, AT_ONCE, |&file| found_at(store, &root.join(&names.path(file))))?
        } else {
            let objects = store.list(&root)?.into_iter();
            let listed: HashMap<Vec<u8>, Listed> =
                objects.map(|Object { name, len, pin }| (name, Listed { len, pin })).collect();
            let find = |&file: &u32| listed.get(&*names.path(file)).cloned();
            numbers.iter().map(find).collect()
        };
        let missing = numbers.iter().zip(&found).filter(|(_, found)| found.is_none());
        let missing = missing.map(|(&file, _)| file).collect();
        let absent = || Listed { len: 0, pin: Pin::Unknown };
        let listed = found.into_iter().map(|found| found.unwrap_or_else(absent)).collect();
        let objects = Objects { store: Arc::clone(store), listed, announced: Mutex::default() };
        Ok((Self { root, place: Place::Store(objects) }, missing))
    }

    /// The folder.
    pub(crate) fn root(&self) -> &Location {
        &self.root
    }

    /// Opens file number `file`, which has this name.
    pub(crate) fn open(&self, file: u32, name: &[u8]) -> Result<Source, ReadError> {
        match &self.place {
            Place::Local(_) => Source::open(self.path(name)),
            Place::Store(objects) => match objects.take_announced(file) {
                Some(source) => Ok(source),
                None => objects.store.open(&self.root.join(name), self.object(file, name).as_ref()),
            },
        }
    }

    /// Opens file number `file`, which has this name, if it is wanted when `is_wanted` gets its size. A
    /// file that is not wanted may be missing.
    pub(crate) fn open_wanted(
        &self,
        file: u32,
        name: &[u8],
        is_wanted: impl FnOnce(u64) -> bool,
    ) -> Result<Option<Source>, ReadError> {
        let len = self.len(file, name);
        if !is_wanted(*len.as_ref().unwrap_or(&0)) {
            return Ok(None);
        }
        len.and_then(|_| self.open(file, name)).map(Some).map_err(|error| {
            // Messages about a sample name the sample's own file.
            let ReadError::Io { location, source } = error else { return error };
            let kind = source.kind();
            let of_file = OfFile { name: Escaped(name).to_string(), source };
            ReadError::Io { location, source: io::Error::new(kind, of_file) }
        })
    }

    /// Announces that file number `file`, which has this name, will be read soon.
    pub(crate) fn will_need(&self, file: u32, name: &[u8]) {
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
    pub(crate) fn are_in_store(&self) -> bool {
        matches!(self.place, Place::Store(_))
    }

    /// Whether all files are objects of a store that are opened without a request.
    pub(crate) fn are_listed(&self) -> bool {
        match &self.place {
            Place::Local(_) => false,
            Place::Store(Objects { listed, .. }) => {
                listed.iter().all(|listed| listed.pin != Pin::Unknown)
            }
        }
    }

    /// File number `file`, which has this name, as the store has listed it; `None` for a local
    /// file.
    pub(crate) fn object(&self, file: u32, name: &[u8]) -> Option<Object> {
        let Place::Store(Objects { listed, .. }) = &self.place else { return None };
        let Listed { len, pin } = &listed[file as usize];
        Some(Object { name: name.to_vec(), len: *len, pin: pin.clone() })
    }

    /// Bytes of a file.
    pub(crate) fn len(&self, file: u32, name: &[u8]) -> Result<u64, ReadError> {
        match &self.place {
            Place::Local(_) => {
                let path = self.path(name);
                Ok(std::fs::metadata(&path).map_err(|error| ReadError::io(&path, error))?.len())
            }
            Place::Store(Objects { listed, .. }) => Ok(listed[file as usize].len),
        }
    }

    /// Appends the identity of a file to `id`; `None` where it has none.
    pub(crate) fn content_id(
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

/// An error with the name of its file.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {source}")]
struct OfFile {
    name: String,
    source: io::Error,
}

/// Length and version of an object; `None` for one that does not exist.
fn found_at(store: &Arc<dyn Storage>, object: &Location) -> Result<Option<Listed>, ReadError> {
    match store.open(object, None) {
        Ok(source) => Ok(Some(Listed { len: source.len(), pin: source.version()? })),
        Err(ReadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
