//! A tree of files as a data set, each image a sample, read when it is asked for.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use tbl_format::SampleFormat;

use crate::error::{FileKind, ReadError};
use crate::grouping::{FieldSet, Grouping, is_hidden, split_base};
use crate::identity::{self, Times, Told};
use crate::label::{LabelDefect, deciding_field};
use crate::limits::ReadLimits;
use crate::location::Location;
use crate::names::{Names, TooManyNames};
use crate::note::{HIDDEN_FILES, Note, OTHER_FILES};
use crate::sample::{Entry, Facts, Field, SampleSource, SourceKind, StoredBytes};
use crate::source::{Source, file_kind};

/// The samples below a folder, in the order of their paths' bytes.
///
/// Files are grouped into samples as the members of a TAR archive are. Links to files are followed;
/// links to folders as well, but no folder is read twice, so that links in a circle end. Hidden
/// files and files that belong to no sample are passed over and counted
/// ([`skipped`](Self::skipped)).
///
/// ```
/// use tbl_io::{Folder, SampleSource};
///
/// let root = tempfile::tempdir()?;
/// std::fs::create_dir(root.path().join("cats"))?;
/// std::fs::write(root.path().join("cats/tom.jpg"), b"...")?;
/// let folder = Folder::open(root.path())?;
/// assert_eq!(folder.entry(0)?.key.as_deref(), Some(&b"cats/tom.jpg"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Folder {
    root: Location,
    limits: ReadLimits,
    names: Names,
    grouping: Grouping,
    /// By sample, the label in its fields: [`UNREAD`] until it is asked for, [`NO_LABEL`] for none,
    /// [`UNREADABLE`] for one that is not an integer.
    /// Empty when no sample has a field that could hold one.
    labels: Vec<AtomicI64>,
    skipped: FolderSkips,
    first_passed_over: Option<Vec<u8>>,
    times: Times,
}

const NO_LABEL: i64 = i64::MIN;
const UNREAD: i64 = i64::MIN + 1;
/// Labels from here down count as unreadable.
const UNREADABLE: i64 = i64::MIN + 2;

/// What a folder holds beside samples and their fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FolderSkips {
    /// Hidden files and folders: names with a leading dot, `__MACOSX`, `Thumbs.db`, `desktop.ini`.
    pub hidden: u64,
    /// Files without an image, where others have one.
    pub other_files: u64,
    /// FIFOs, sockets, devices, and links to them.
    pub special_files: u64,
    /// Links that lead nowhere.
    pub broken_links: u64,
    /// Links to folders that are read under another path.
    pub repeated_folders: u64,
}

impl Folder {
    /// Lists the files below `root`. No file is opened.
    ///
    /// # Errors
    /// [`ReadError::Io`] for any folder that cannot be read, [`ReadError::NotAFolder`],
    /// [`ReadError::Limit`] for more names than 4 GiB.
    pub fn open(root: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::open_with(root, ReadLimits::default())
    }

    /// As [`open`](Self::open), with other limits.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with(root: impl AsRef<Path>, limits: ReadLimits) -> Result<Self, ReadError> {
        let (path, root) = (root.as_ref(), Location::new(root.as_ref()));
        let metadata = std::fs::metadata(path).map_err(|error| ReadError::io(path, error))?;
        if !metadata.is_dir() {
            let found = file_kind(metadata.file_type()).unwrap_or(FileKind::RegularFile);
            return Err(ReadError::NotAFolder { location: root, found });
        }
        let mut walk = Walk::new(path);
        walk.run(&metadata)?;
        let Walk { names, mut skipped, mut first_passed_over, .. } = walk;
        let names = sorted(&names).map_err(|TooManyNames| too_many_names(path))?;
        let grouping = Grouping::new(&names, &[]);
        let passed_over = grouping.passed_over();
        skipped.hidden += passed_over.hidden;
        skipped.other_files = passed_over.other;
        let first = passed_over.first.map(|file| names.path(file).into_owned());
        first_passed_over = first_passed_over.into_iter().chain(first).min();
        let samples = 0..grouping.sample_count() as u64;
        let has_label = |sample| grouping.label_fields(&names, sample).next().is_some();
        let labels = if samples.clone().any(has_label) {
            samples.map(|_| AtomicI64::new(UNREAD)).collect()
        } else {
            Vec::new()
        };
        let times = Times::default();
        Ok(Self { root, limits, names, grouping, labels, skipped, first_passed_over, times })
    }

    /// What was passed over.
    pub fn skipped(&self) -> FolderSkips {
        self.skipped
    }

    fn file(&self, index: u64) -> Result<u32, ReadError> {
        self.grouping.sample(index).ok_or_else(|| ReadError::SampleOutOfRange {
            location: self.root.clone(),
            index,
            sample_count: self.sample_count(),
        })
    }

    fn file_path(&self, file: u32) -> PathBuf {
        Path::new(self.root.as_os_str()).join(OsStr::from_bytes(&self.names.path(file)))
    }

    fn read_file(&self, file: u32, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.read_source(&Source::open(self.file_path(file))?, bytes)
    }

    fn read_source(&self, source: &Source, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.limits.check_sample_bytes(source.location(), source.len())?;
        source.read_range_into(0, source.len(), bytes)
    }

    /// The label of sample `index` or the state of it; its file is read once.
    fn label_state(&self, index: u64) -> Result<i64, ReadError> {
        let Some(known) = usize::try_from(index).ok().and_then(|index| self.labels.get(index))
        else {
            return Ok(NO_LABEL);
        };
        let state = known.load(Ordering::Relaxed);
        if state != UNREAD {
            return Ok(state);
        }
        let state = match self.read_label(index) {
            Ok(label) => label.unwrap_or(NO_LABEL),
            Err(ReadError::Label { .. }) => UNREADABLE,
            Err(error) => return Err(error),
        };
        known.store(state, Ordering::Relaxed);
        Ok(state)
    }

    /// Reads the label in the fields of sample `index`.
    fn read_label(&self, index: u64) -> Result<Option<i64>, ReadError> {
        let fields = self.grouping.label_fields(&self.names, index);
        let Some((field, file)) = deciding_field(fields) else { return Ok(None) };
        let source = Source::open(self.file_path(file))?;
        let mut content = Vec::new();
        let label = match field.check_len(source.len()) {
            Ok(()) => {
                source.read_range_into(0, source.len(), &mut content)?;
                field.parse(&content)
            }
            Err(defect) => Err(defect),
        };
        let (location, member) = (self.root.clone(), self.names.path(file));
        label.map_err(|source| ReadError::Label { location, member: member.into_owned(), source })
    }
}

impl SampleSource for Folder {
    fn location(&self) -> &Location {
        &self.root
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Folder
    }

    fn sample_count(&self) -> u64 {
        self.grouping.sample_count() as u64
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let key = self.names.path(self.file(index)?);
        let label = self.label_state(index).map_err(|error| error.for_sample(index, Some(&key)))?;
        let label = Some(label).filter(|&label| label > UNREADABLE);
        Ok(Entry::new(self.facts(index)?, Some(key), label))
    }

    fn check_label(&self, index: u64) -> Result<(), ReadError> {
        let file = self.file(index)?;
        let check = || {
            if self.label_state(index)? != UNREADABLE {
                return Ok(());
            }
            self.read_label(index)?;
            let (location, member) = (self.root.clone(), self.names.path(file).into_owned());
            Err(ReadError::Label { location, member, source: LabelDefect::Changed })
        };
        check().map_err(|error| error.for_sample(index, Some(&self.names.path(file))))
    }

    fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        let file = self.file(index)?;
        let path = self.file_path(file);
        let bytes = std::fs::metadata(&path)
            .map_err(|error| {
                ReadError::io(&path, error).for_sample(index, Some(&self.names.path(file)))
            })?
            .len();
        Ok(Facts {
            format: SampleFormat::from_file_name(self.names.base(file)),
            width: 0,
            height: 0,
            offset: 0,
            stored_bytes: bytes,
            bytes,
        })
    }

    fn content_id(&self, index: u64, id: &mut Vec<u8>) -> Result<bool, ReadError> {
        let file = self.file(index)?;
        let path = self.file_path(file);
        let metadata = std::fs::metadata(&path).map_err(|error| {
            ReadError::io(&path, error).for_sample(index, Some(&self.names.path(file)))
        })?;
        self.limits.push_id(id);
        identity::push(path.as_os_str(), &metadata, id);
        let told = Told::by_times(&metadata, &self.times, || {
            rustix::fs::statfs(self.root.as_os_str().as_bytes())
        });
        Ok(told == Told::ByTimes)
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let file = self.file(index)?;
        self.read_file(file, bytes)
            .map_err(|error| error.for_sample(index, Some(&self.names.path(file))))
    }

    fn stored(&self, index: u64) -> Result<Option<StoredBytes>, ReadError> {
        let file = self.file(index)?;
        let open = || {
            let source = Source::open(self.file_path(file))?;
            self.limits.check_sample_bytes(source.location(), source.len())?;
            let len = source.len();
            Ok(Some(StoredBytes { source, offset: 0, len }))
        };
        open().map_err(|error: ReadError| error.for_sample(index, Some(&self.names.path(file))))
    }

    fn will_need(&self, index: u64) {
        let Some(file) = self.grouping.sample(index) else { return };
        if let Ok(source) = Source::open(self.file_path(file)) {
            source.will_need(0, source.len());
        }
    }

    fn read_fields_where(
        &self,
        index: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        let sample = self.file(index)?;
        let mut fields = FieldSet::new(fields);
        for file in self.grouping.fields(index) {
            let extension = split_base(self.names.base(file)).1;
            let mut bytes = Vec::new();
            let mut read = || {
                let source = Source::open(self.file_path(file))?;
                let is_wanted = is_wanted(extension, source.len());
                is_wanted.then(|| self.read_source(&source, &mut bytes)).transpose()
            };
            let read =
                read().map_err(|error| error.for_sample(index, Some(&self.names.path(sample))))?;
            if read.is_some() {
                fields.push(Field { extension: extension.to_vec(), bytes });
            }
        }
        Ok(())
    }

    fn class_names(&self) -> &[String] {
        &[]
    }

    fn notes(&self) -> Vec<Note> {
        let FolderSkips { hidden, other_files, special_files, broken_links, repeated_folders } =
            self.skipped;
        let counts = [
            (HIDDEN_FILES, hidden),
            (OTHER_FILES, other_files),
            ("broken links", broken_links),
            ("special files", special_files),
            ("links to folders read already", repeated_folders),
        ];
        let passed_over = Note::passed_over(counts, self.first_passed_over.as_deref());
        let empty = (self.sample_count() == 0).then_some(Note::NoSamples);
        let of_grouping = Note::of_grouping(&self.grouping, &self.names);
        passed_over.into_iter().chain(of_grouping).chain(empty).collect()
    }
}

/// Collects the files below a root, in no particular order.
struct Walk<'a> {
    root: &'a Path,
    names: Names,
    skipped: FolderSkips,
    /// The smallest path that is passed over.
    first_passed_over: Option<Vec<u8>>,
    /// Device and inode of every folder read so far.
    seen: HashSet<(u64, u64)>,
    /// Folders still to be read, relative to the root, with a slash at the end.
    pending: Vec<Vec<u8>>,
    /// Links to folders. They come after all real folders, so that a folder inside the tree
    /// keeps its own path.
    linked: Vec<Vec<u8>>,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Path) -> Self {
        Self {
            root,
            names: Names::new(),
            skipped: FolderSkips::default(),
            first_passed_over: None,
            seen: HashSet::new(),
            pending: Vec::new(),
            linked: Vec::new(),
        }
    }

    fn run(&mut self, root: &Metadata) -> Result<(), ReadError> {
        self.seen.insert((root.dev(), root.ino()));
        self.read_folder(&[])?;
        loop {
            while let Some(folder) = self.pending.pop() {
                self.enter(&folder)?;
            }
            // The smallest path first, whatever order the file system lists them in.
            self.linked.sort_unstable_by(|a, b| b.cmp(a));
            match self.linked.pop() {
                Some(folder) => self.enter(&folder)?,
                None => return Ok(()),
            }
        }
    }

    fn enter(&mut self, folder: &[u8]) -> Result<(), ReadError> {
        let path = self.root.join(OsStr::from_bytes(folder));
        let metadata = std::fs::metadata(&path).map_err(|error| ReadError::io(&path, error))?;
        if self.seen.insert((metadata.dev(), metadata.ino())) {
            self.read_folder(folder)
        } else {
            self.skipped.repeated_folders += 1;
            self.pass_over(folder);
            Ok(())
        }
    }

    fn read_folder(&mut self, folder: &[u8]) -> Result<(), ReadError> {
        let path = self.root.join(OsStr::from_bytes(folder));
        let io_error = |error| ReadError::io(&path, error);
        for entry in std::fs::read_dir(&path).map_err(io_error)? {
            let entry = entry.map_err(io_error)?;
            let name = entry.file_name();
            let relative = [folder, name.as_bytes()].concat();
            if is_hidden(name.as_bytes()) {
                self.skipped.hidden += 1;
                self.pass_over(&relative);
                continue;
            }
            let file_type = entry.file_type().map_err(io_error)?;
            if !file_type.is_symlink() {
                self.add(relative, file_type, false)?;
                continue;
            }
            match std::fs::metadata(entry.path()) {
                Ok(target) => self.add(relative, target.file_type(), true)?,
                // Dangling, or in a circle with nothing but links.
                Err(_) => {
                    self.skipped.broken_links += 1;
                    self.pass_over(&relative);
                }
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        mut relative: Vec<u8>,
        file_type: std::fs::FileType,
        is_link: bool,
    ) -> Result<(), ReadError> {
        match file_kind(file_type) {
            None => self.names.push(&relative).map_err(|TooManyNames| too_many_names(self.root))?,
            Some(FileKind::Directory) => {
                relative.push(b'/');
                let folders = if is_link { &mut self.linked } else { &mut self.pending };
                folders.push(relative);
            }
            Some(_) => {
                self.skipped.special_files += 1;
                self.pass_over(&relative);
            }
        }
        Ok(())
    }

    fn pass_over(&mut self, relative: &[u8]) {
        if self.first_passed_over.as_deref().is_none_or(|first| relative < first) {
            self.first_passed_over = Some(relative.to_vec());
        }
    }
}

/// The same names in the order of their paths' bytes.
fn sorted(names: &Names) -> Result<Names, TooManyNames> {
    let mut order: Vec<u32> = (0..).take(names.len()).collect();
    order.sort_unstable_by(|&a, &b| {
        if names.folder_id(a) == names.folder_id(b) {
            names.base(a).cmp(names.base(b))
        } else {
            let path = |name| names.folder(name).iter().chain(names.base(name));
            path(a).cmp(path(b))
        }
    });
    let mut sorted = Names::new();
    for name in order {
        sorted.push(&names.path(name))?;
    }
    sorted.shrink_to_fit();
    Ok(sorted)
}

fn too_many_names(root: &Path) -> ReadError {
    let limit = u64::from(u32::MAX);
    ReadError::Limit { location: root.into(), what: "bytes of file names", limit, need: limit + 1 }
}
