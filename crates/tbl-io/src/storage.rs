//! Stores: what opens objects by their URL and lists them.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use glob::{MatchOptions, Pattern};
use tbl_format::FormatError;
use tbl_format::path::unescape;

use crate::atomic_file::{LOCAL_ONLY, Placement, folder_of};
use crate::braces::expand_braces;
use crate::draft::{Draft, Upload};
use crate::error::ReadError;
use crate::folder::Folder;
use crate::limits::ReadLimits;
use crate::list_options::ListOptions;
use crate::location::{Location, OWN_INDEX};
use crate::ranges::Pin;
use crate::sample::SampleSource;
use crate::source::Source;
use crate::unpack::{Unpack, unpacked};
use crate::write_error::WriteError;

/// A store of objects that have URLs, such as a bucket or a server.
///
/// A caller registers one for each URL scheme in [`Stores`], which it passes to
/// [`open_in`](crate::open_in) or to the `Dataset::open_in` of `tl-pipeline`. All methods may
/// block.
///
/// Paths never get here: the local file system follows links, asks for sizes when they are needed,
/// and tells versions by times, none of which a store does.
pub trait Storage: Send + Sync + fmt::Debug {
    /// Opens an object. The source's [location](Source::location) is the one that errors name: that
    /// of the argument, without credentials. `listed` is the object as [`list`](Self::list)
    /// returned it. A source for it has this length, reads this version, and should cost no
    /// request.
    ///
    /// # Errors
    /// [`ReadError::Io`] with [`NotFound`](std::io::ErrorKind::NotFound) for an object that does
    /// not exist, [`ReadError::Store`], [`ReadError::ObjectChanged`].
    fn open(&self, object: &Location, listed: Option<&Object>) -> Result<Source, ReadError>;

    /// The objects below a folder, in any order. Names of objects are paths with slashes; one that
    /// ends with a slash stands for a folder and is left out.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    fn list(&self, folder: &Location) -> Result<Vec<Object>, ReadError>;

    /// Whether a location is a folder rather than an object. The default says so of URLs that end
    /// with a slash, which costs no request.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    fn is_folder(&self, location: &Location) -> Result<bool, ReadError> {
        Ok(location.url().is_some_and(|url| url.ends_with('/')))
    }

    /// Starts an object. One that exists is replaced only with `overwrite`, when the new one is complete.
    /// The default is for stores that are only read.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists), [`Unsupported`](io::ErrorKind::Unsupported), the
    /// fault of the store. No error names the object.
    fn create(&self, object: &Location, overwrite: bool) -> io::Result<Box<dyn Upload>> {
        let _ = (object, overwrite);
        Err(io::Error::new(io::ErrorKind::Unsupported, "this store is only read"))
    }

    /// The location without credentials, as messages name it. The default returns it as it is.
    fn printable(&self, location: &Location) -> Location {
        location.clone()
    }
}

/// An object below a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its path below the folder.
    pub name: Vec<u8>,
    /// Its length in bytes.
    pub len: u64,
    /// Its version.
    pub pin: Pin,
}

/// The stores that locations may name, by URL scheme. Paths need none.
///
/// Clones share the stores.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    by_scheme: BTreeMap<String, Arc<dyn Storage>>,
    unpack: Option<Unpack>,
    lists: ListOptions,
    formats: Vec<Arc<dyn ContainerFormat>>,
}

/// A format of containers that another crate reads, such as Parquet.
///
/// A caller registers it with [`Stores::with_format`], and everything that opens data sets in these
/// stores opens its files too.
pub trait ContainerFormat: Send + Sync + fmt::Debug {
    /// Opens a file that has this format; `None` for others. Options and files next to it are those of
    /// `stores`.
    ///
    /// # Errors
    /// The reader's, for a damaged file.
    fn open(
        &self,
        stores: &Stores,
        source: &Source,
    ) -> Result<Option<Box<dyn SampleSource>>, ReadError>;

    /// The extension of its files, such as `parquet`. A folder with such files and without images
    /// stands for them.
    fn extension(&self) -> &'static str;

    /// The part of a file of this format in a [shard index](crate::index_shards), which spares
    /// [`open_part`](Self::open_part) and the samples the reads that this takes. `None`, the default,
    /// for other files.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    fn index(&self, _stores: &Stores, _source: &Source) -> Result<Option<FilePart>, ReadError> {
        Ok(None)
    }

    /// Opens a file by its part. The default is for formats that have none.
    ///
    /// # Errors
    /// [`ReadError::Format`] for a part that cannot be read, and as for [`open`](Self::open).
    fn open_part(
        &self,
        _stores: &Stores,
        source: &Source,
        _part: &[u8],
    ) -> Result<Box<dyn SampleSource>, ReadError> {
        let location = source.location().clone();
        let source = FormatError::Unreadable { what: "kind of a shard" };
        Err(ReadError::Format { location, offset: 0, source })
    }
}

/// The part of a file in a shard index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePart {
    /// How many samples the file has.
    pub samples: u64,
    /// The content of the part.
    pub bytes: Vec<u8>,
}

/// The file that makes a folder an array or a group of arrays in the format Zarr 3.
pub(crate) const ZARR_METADATA: &[u8] = b"zarr.json";

/// A folder or a file, whatever the file holds.
#[derive(Debug)]
pub enum Opened {
    /// The files below a folder, as samples.
    Folder(Box<Folder>),
    /// The bytes of a file or an object.
    File(Source),
}

impl Stores {
    /// No store: only paths are opened.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a store for URLs that start with `SCHEME://`. It replaces an earlier one.
    #[must_use]
    pub fn with(mut self, scheme: &str, store: Arc<dyn Storage>) -> Self {
        self.by_scheme.insert(scheme.to_owned(), store);
        self
    }

    /// Opens lists of samples, such as manifests, with these options wherever a location names one.
    #[must_use]
    pub fn with_list_options(self, lists: ListOptions) -> Self {
        Self { lists, ..self }
    }

    /// Opens files of a further format.
    #[must_use]
    pub fn with_format(mut self, format: Arc<dyn ContainerFormat>) -> Self {
        self.formats.push(format);
        self
    }

    /// The formats of [`with_format`](Self::with_format).
    pub(crate) fn formats(&self) -> &[Arc<dyn ContainerFormat>] {
        &self.formats
    }

    /// The options for lists of samples.
    pub fn list_options(&self) -> &ListOptions {
        &self.lists
    }

    /// Unpacks TAR archives that are compressed by gzip or Zstandard when they are opened. Without it
    /// they are refused.
    #[must_use]
    pub fn unpacking(self, unpack: Unpack) -> Self {
        Self { unpack: Some(unpack), ..self }
    }

    /// The same stores for the sources of a file that will be called `destination`: unless they unpack
    /// archives elsewhere, plain copies are next to it and have no name. Those for an object of a store
    /// are in the system's folder for temporary files.
    #[must_use]
    pub fn unpacking_for(self, destination: &Path) -> Self {
        if self.unpack.is_some() {
            return self;
        }
        let is_url = Location::new(destination).url().is_some();
        let folder = if is_url { std::env::temp_dir() } else { folder_of(destination).to_owned() };
        self.unpacking(Unpack::Discard(folder))
    }

    /// Opens a file or lists a folder. No byte is read, except where compressed archives are
    /// [unpacked](Self::unpacking). A folder of Zarr arrays stands for its [metadata](Self::open_zarr).
    ///
    /// # Errors
    /// [`ReadError::NoStore`] for a URL with another scheme, [`ReadError::Io`],
    /// [`ReadError::NotAFile`] for a device or a FIFO, those of the [store](Storage::open), and
    /// [`ReadError::Compressed`] if unpacking fails.
    pub fn open(&self, location: impl AsRef<OsStr>) -> Result<Opened, ReadError> {
        if let Some(source) = self.open_file(&location)? {
            let source = match &self.unpack {
                Some(place) => unpacked(source, place)?,
                None => source,
            };
            return Ok(Opened::File(source));
        }
        let location = Location::new(location);
        if let Some(metadata) = self.open_zarr(&location)? {
            return Ok(Opened::File(metadata));
        }
        let folder = match self.store(&location)? {
            None => Folder::open(location.as_os_str())?,
            Some(store) => Folder::of_store(store, location, ReadLimits::default())?,
        };
        Ok(Opened::Folder(Box::new(folder)))
    }

    /// Opens a file; `None` for a folder.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_file(&self, location: impl AsRef<OsStr>) -> Result<Option<Source>, ReadError> {
        let location = Location::new(location);
        let Some(store) = self.store(&location)? else {
            let path = Path::new(location.as_os_str());
            let metadata = std::fs::metadata(path).map_err(|error| ReadError::io(path, error))?;
            return if metadata.is_dir() { Ok(None) } else { Source::open(path).map(Some) };
        };
        if store.is_folder(&location)? { Ok(None) } else { store.open(&location, None).map(Some) }
    }

    /// Opens the `zarr.json` of a folder that is an array or a group in the format Zarr 3; `None` for
    /// other folders. In a store only folders with `.zarr/` in their URL are asked for one, which costs a
    /// request; of others, `zarr.json` itself can be opened.
    ///
    /// # Errors
    /// As for [`open_existing`](Self::open_existing).
    pub fn open_zarr(&self, folder: &Location) -> Result<Option<Source>, ReadError> {
        if folder.url().is_some_and(|url| !url.contains(".zarr/")) {
            return Ok(None);
        }
        self.open_existing(&folder.join(ZARR_METADATA))
    }

    /// Opens the `zarr.json` of an array or a group in a group; `None` if it does not exist.
    ///
    /// # Errors
    /// As for [`open_existing`](Self::open_existing).
    pub fn open_zarr_member(
        &self,
        group: &Location,
        name: &[u8],
    ) -> Result<Option<Source>, ReadError> {
        self.open_existing(&group.join(name).join(ZARR_METADATA))
    }

    /// The names of the arrays and groups directly below a group in the format Zarr 3, sorted: folders
    /// with a `zarr.json`.
    ///
    /// # Errors
    /// [`ReadError::Io`], and those of [`Storage::list`].
    pub fn zarr_members(&self, group: &Location) -> Result<Vec<Vec<u8>>, ReadError> {
        let mut names = Vec::new();
        if let Some(store) = self.store(group)? {
            for object in store.list(group)? {
                let mut parts = object.name.split(|&byte| byte == b'/');
                if let (Some(name), Some(ZARR_METADATA), None) =
                    (parts.next(), parts.next(), parts.next())
                {
                    names.push(name.to_vec());
                }
            }
        } else {
            let fault = |error| ReadError::io(group, error);
            for entry in std::fs::read_dir(group.as_os_str()).map_err(fault)? {
                let name = entry.map_err(fault)?.file_name().into_encoded_bytes();
                let metadata = group.join(&name).join(ZARR_METADATA);
                match std::fs::metadata(metadata.as_os_str()) {
                    Ok(found) if found.is_file() => names.push(name),
                    Ok(_) => {}
                    // The second is that of a file beside the folders.
                    Err(error)
                        if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory]
                            .contains(&error.kind()) => {}
                    Err(error) => return Err(ReadError::io(&metadata, error)),
                }
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Starts a file, or an object of a store. An object is safe once it is complete, whether the
    /// placement asks to wait for the disk or not.
    ///
    /// # Errors
    /// [`WriteError::Io`] if it exists and may not be replaced, for a URL whose scheme or store is not
    /// written to, and what the system or the store says.
    pub fn create(&self, location: &Location, placement: Placement) -> Result<Draft, WriteError> {
        let location = local_path(location.clone());
        let fault = |source| {
            let name = self.printable(&location);
            WriteError::Io { path: name.as_os_str().into(), source }
        };
        if let Some(path) = location.path() {
            return Draft::of_file(path, placement).map_err(fault);
        }
        let Some(store) = location.scheme().and_then(|scheme| self.by_scheme.get(scheme)) else {
            let schemes: Vec<_> = self.by_scheme.keys().map(String::as_str).collect();
            let text = if schemes.is_empty() {
                LOCAL_ONLY.to_owned()
            } else {
                let known = schemes.join(", ");
                format!("no store for this URL, expected a path or the URL of one of: {known}")
            };
            return Err(fault(io::Error::new(io::ErrorKind::Unsupported, text)));
        };
        let upload = store.create(&location, placement.overwrite).map_err(fault)?;
        Ok(Draft::of_object(self.printable(&location).as_os_str().into(), upload))
    }

    /// As [`open_file`](Self::open_file), and `None` if the file does not exist.
    ///
    /// # Errors
    /// As for [`open`](Self::open), except for a file that does not exist.
    pub fn open_existing(&self, location: &Location) -> Result<Option<Source>, ReadError> {
        match self.open_file(location) {
            Err(ReadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            opened => opened,
        }
    }

    /// The data sets that a location stands for. [Ranges in braces](crate::expand_braces) are
    /// expanded. A URL with `*` in its path is a pattern and means the objects that match, in the
    /// order of their bytes: `*` stands for any part of a name, `**/` for any number of folders,
    /// and the folder before the first `*` is listed. `file://` URLs become paths. Other locations
    /// mean themselves, and paths are never patterns.
    ///
    /// ```
    /// let stores = tbl_io::Stores::new();
    /// assert_eq!(stores.expand("data/train.tar")?, ["data/train.tar".into()]);
    /// assert_eq!(stores.expand("file:///data/a%20b-{1..2}.tar")?[1], "/data/a b-2.tar".into());
    /// # Ok::<(), tbl_io::ReadError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`open`](Self::open), those of [`expand_braces`](crate::expand_braces), and
    /// [`ReadError::Io`] if a pattern is invalid or no object matches it.
    pub fn expand(&self, location: impl AsRef<OsStr>) -> Result<Vec<Location>, ReadError> {
        let mut found = Vec::new();
        for location in expand_braces(local_path(Location::new(location)))? {
            found.extend(self.matching(location)?);
        }
        Ok(found)
    }

    /// All that locations [stand for](Self::expand), in order. Left out is the index next to a file that
    /// is here too, such as `a.parquet.tlidx` of `a.parquet`: to open both would give each sample twice.
    ///
    /// # Errors
    /// As for [`expand`](Self::expand).
    pub fn expand_all<L: AsRef<OsStr>>(&self, locations: &[L]) -> Result<Vec<Location>, ReadError> {
        let mut found = Vec::with_capacity(locations.len());
        for location in locations {
            found.extend(self.expand(location)?);
        }
        let names: HashSet<Location> = found.iter().cloned().collect();
        found.retain(|location| {
            let file = location.as_os_str().as_bytes().strip_suffix(OWN_INDEX);
            !file.is_some_and(|file| names.contains(&Location::new(OsStr::from_bytes(file))))
        });
        Ok(found)
    }

    /// The objects that a pattern means; another location means itself.
    fn matching(&self, location: Location) -> Result<Vec<Location>, ReadError> {
        let star = location.url().and_then(|url| url.find('*').map(|star| (url, star)));
        // Web servers list nothing, and a star may be a part of a signature.
        let is_web = location.scheme().is_some_and(|scheme| scheme.starts_with("http"));
        let Some((url, star)) = star.filter(|_| !is_web) else { return Ok(vec![location]) };
        let Some(store) = self.store(&location)? else { return Ok(vec![location]) };
        let fault = |kind, message: &str| {
            ReadError::io(store.printable(&location), io::Error::new(kind, message))
        };
        let folder = url.get(..star).and_then(|url| url.rfind('/')).map_or(0, |slash| slash + 1);
        let (folder, pattern) = url.split_at(folder);
        // Only stars are wildcards: keys may have `?` and brackets.
        let pattern = pattern.split('*').map(Pattern::escape).collect::<Vec<_>>().join("*");
        let pattern = Pattern::new(&pattern)
            .map_err(|error| fault(io::ErrorKind::InvalidInput, error.msg))?;
        let folder = Location::new(folder);
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
        let is_match = |object: &Object| {
            let name = str::from_utf8(&object.name);
            name.is_ok_and(|name| pattern.matches_with(name, options))
        };
        let mut objects = store.list(&folder)?;
        objects.retain(|object| is_match(object) && !object.name.ends_with(b"/"));
        objects.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        if objects.is_empty() {
            return Err(fault(io::ErrorKind::NotFound, "no object matches this pattern"));
        }
        Ok(objects.iter().map(|object| folder.join(&object.name)).collect())
    }

    /// The location without credentials, as messages name it.
    #[must_use]
    pub fn printable(&self, location: &Location) -> Location {
        match location.scheme().map(|scheme| self.by_scheme.get(scheme)) {
            None => location.clone(),
            Some(Some(store)) => store.printable(location),
            // What may be secret depends on the scheme.
            Some(None) => location.without_secrets(),
        }
    }

    /// The store that a folder of it is in.
    pub(crate) fn of_folder(&self, folder: &Location) -> Result<&Arc<dyn Storage>, ReadError> {
        self.store(folder)?.ok_or_else(|| self.no_store(folder))
    }

    /// The store for a URL; `None` for a path.
    pub(crate) fn store(
        &self,
        location: &Location,
    ) -> Result<Option<&Arc<dyn Storage>>, ReadError> {
        let Some(scheme) = location.scheme() else { return Ok(None) };
        self.by_scheme.get(scheme).map(Some).ok_or_else(|| self.no_store(location))
    }

    fn no_store(&self, location: &Location) -> ReadError {
        let schemes = self.by_scheme.keys().cloned().collect();
        ReadError::NoStore { location: self.printable(location), schemes }
    }
}

/// The error of several data sets where one is expected.
pub(crate) fn not_one(location: Location, count: usize) -> ReadError {
    let text = format!("stands for {count} data sets, expected one");
    ReadError::io(location, io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// The path that a `file://` URL of this machine names; another location as it is.
fn local_path(location: Location) -> Location {
    let name = location.url().and_then(|url| url.strip_prefix("file://"));
    let path = name.map(|name| name.strip_prefix("localhost").unwrap_or(name));
    match path.filter(|path| path.starts_with('/')) {
        Some(path) => Location::new(OsStr::from_bytes(&unescape(path.as_bytes()))),
        None => location,
    }
}
