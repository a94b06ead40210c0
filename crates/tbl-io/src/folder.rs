//! A tree of files as a data set, each image a sample, read when it is asked for.

mod stored;
mod walk;

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use tbl_format::SampleFormat;

use crate::at_once::{AT_ONCE, at_once};
use crate::error::{FileKind, ReadError};
use crate::files::Files;
use crate::grouping::{FieldSet, Grouping, split_base};
use crate::identity::Told;
use crate::label::{LabelDefect, deciding_field};
use crate::limits::ReadLimits;
use crate::location::Location;
use crate::names::{Names, TooManyNames};
use crate::note::{HIDDEN_FILES, Note, OTHER_FILES};
use crate::sample::{
    BulkIndex, DamageChecks, Entry, Facts, Field, SampleSource, SourceKind, StoredBytes,
    StoredSamples,
};
use crate::source::{Source, file_kind};
use crate::storage::Storage;
use walk::Walk;

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
    files: Files,
    limits: ReadLimits,
    names: Names,
    grouping: Grouping,
    /// By sample, the label in its fields: [`UNREAD`] until it is asked for, [`NO_LABEL`] for none,
    /// [`UNREADABLE`] for one that is not an integer.
    /// Empty when no sample has a field that could hold one.
    labels: Vec<AtomicI64>,
    /// True if samples can be requested in the background, once that was asked.
    in_background: OnceLock<bool>,
    skipped: FolderSkips,
    first_passed_over: Option<Vec<u8>>,
}

const NO_LABEL: i64 = i64::MIN;
const UNREAD: i64 = i64::MIN + 1;
/// Labels from here down count as unreadable.
const UNREADABLE: i64 = i64::MIN + 2;

/// The contents of a folder besides samples and their fields.
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
        let root = root.as_ref();
        let metadata = std::fs::metadata(root).map_err(|error| ReadError::io(root, error))?;
        if !metadata.is_dir() {
            let found = file_kind(metadata.file_type()).unwrap_or(FileKind::RegularFile);
            return Err(ReadError::NotAFolder { location: root.into(), found });
        }
        let mut walk = Walk::new(root);
        walk.run(&metadata)?;
        let names =
            sorted(&walk.names).map_err(|TooManyNames| ReadError::too_many_names(&root.into()))?;
        let mut folder = Self::of_files(Files::local(root), names, limits);
        folder.skipped = FolderSkips {
            hidden: walk.skipped.hidden + folder.skipped.hidden,
            other_files: folder.skipped.other_files,
            ..walk.skipped
        };
        folder.first_passed_over =
            walk.first_passed_over.into_iter().chain(folder.first_passed_over).min();
        Ok(folder)
    }

    /// Lists the objects below a folder of a store. No object is opened.
    pub(crate) fn of_store(
        store: &Arc<dyn Storage>,
        root: Location,
        limits: ReadLimits,
    ) -> Result<Self, ReadError> {
        let (files, names) = Files::listed(store, root)?;
        Ok(Self::of_files(files, names, limits))
    }

    /// The samples among files, which have these names in the order of their bytes.
    fn of_files(files: Files, names: Names, limits: ReadLimits) -> Self {
        let grouping = Grouping::new(&names, &[]);
        let passed_over = grouping.passed_over();
        let skipped = FolderSkips {
            hidden: passed_over.hidden,
            other_files: passed_over.other,
            ..FolderSkips::default()
        };
        let first_passed_over = passed_over.first.map(|file| names.path(file).into_owned());
        let samples = 0..grouping.sample_count() as u64;
        let has_label = |sample| grouping.label_fields(&names, sample).next().is_some();
        let labels = if samples.clone().any(has_label) {
            samples.map(|_| AtomicI64::new(UNREAD)).collect()
        } else {
            Vec::new()
        };
        let in_background = OnceLock::new();
        Self { files, limits, names, grouping, labels, in_background, skipped, first_passed_over }
    }

    /// The files that were passed over.
    pub fn skipped(&self) -> FolderSkips {
        self.skipped
    }

    /// The paths of all files below the folder that are not hidden, in the order of their bytes.
    pub(crate) fn paths(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        (0..).take(self.names.len()).map(|file| self.names.path(file))
    }

    fn file(&self, index: u64) -> Result<u32, ReadError> {
        self.grouping.sample(index).ok_or_else(|| ReadError::SampleOutOfRange {
            location: self.files.root().clone(),
            index,
            sample_count: self.sample_count(),
        })
    }

    fn open_file(&self, file: u32) -> Result<Source, ReadError> {
        self.files.open(file, &self.names.path(file))
    }

    fn read_file(&self, file: u32, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.read_source(&self.open_file(file)?, bytes)
    }

    fn read_source(&self, source: &Source, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.limits.read_whole(source, bytes)
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

    /// The states of all labels, whose files are read at once. Empty when no sample has one.
    fn label_states(&self) -> Result<Vec<i64>, ReadError> {
        let samples: Vec<u64> = (0..self.labels.len() as u64).collect();
        at_once(&samples, AT_ONCE, |&index| {
            self.label_state(index).map_err(|error| {
                let key = self.file(index).ok().map(|file| self.names.path(file));
                error.for_sample(index, key.as_deref())
            })
        })
    }

    /// Reads the label in the fields of sample `index`.
    fn read_label(&self, index: u64) -> Result<Option<i64>, ReadError> {
        let fields = self.grouping.label_fields(&self.names, index);
        let Some((field, file)) = deciding_field(fields) else { return Ok(None) };
        let source = self.open_file(file)?;
        let mut content = Vec::new();
        let label = match field.check_len(source.len()) {
            Ok(()) => {
                source.read_range_into(0, source.len(), &mut content)?;
                field.parse(&content)
            }
            Err(defect) => Err(defect),
        };
        let location = self.files.root().clone();
        let member = self.names.path(file);
        label.map_err(|source| ReadError::Label { location, member: member.into_owned(), source })
    }
}

impl SampleSource for Folder {
    fn location(&self) -> &Location {
        self.files.root()
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

    fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        let file = self.file(index)?;
        let name = self.names.path(file);
        let bytes = self.files.len(file, &name).map_err(|e| e.for_sample(index, Some(&name)))?;
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
        let name = self.names.path(file);
        self.limits.push_id(id);
        let told = self.files.content_id(file, &name, id);
        Ok(told.map_err(|e| e.for_sample(index, Some(&name)))? == Some(Told::ByTimes))
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let file = self.file(index)?;
        self.read_file(file, bytes)
            .map_err(|error| error.for_sample(index, Some(&self.names.path(file))))
    }

    fn will_need(&self, index: u64) {
        let Some(file) = self.grouping.sample(index) else { return };
        self.files.will_need(file, &self.names.path(file));
    }

    fn will_need_fields(&self, index: u64) {
        // The system reads small files of a disk ahead by itself.
        if self.files.are_in_store() {
            for file in self.grouping.fields(index) {
                self.files.will_need(file, &self.names.path(file));
            }
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
                let wanted = |size| is_wanted(extension, size);
                let source = self.files.open_wanted(file, &self.names.path(file), wanted)?;
                source.map(|source| self.read_source(&source, &mut bytes)).transpose()
            };
            let read =
                read().map_err(|error| error.for_sample(index, Some(&self.names.path(sample))))?;
            if read.is_some() {
                fields.push(Field { extension: extension.to_vec(), bytes });
            }
        }
        Ok(())
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

    fn stored_samples(&self) -> Option<&dyn StoredSamples> {
        Some(self)
    }

    fn bulk_index(&self) -> Option<&dyn BulkIndex> {
        Some(self)
    }

    fn damage_checks(&self) -> Option<&dyn DamageChecks> {
        Some(self)
    }
}

impl BulkIndex for Folder {
    /// Reads the label files of a store, many at once, so that asking for each sample's label takes
    /// no request.
    fn stored_labels(&self) -> Result<Option<Vec<i64>>, ReadError> {
        if self.files.are_in_store() {
            self.label_states()?;
        }
        Ok(None)
    }
}

impl StoredSamples for Folder {
    fn in_background(&self) -> bool {
        *self.in_background.get_or_init(|| {
            let first = || self.stored(0).ok()?.map(|stored| stored.source);
            self.files.are_listed() && first().is_some_and(|source| source.background().is_some())
        })
    }

    fn stored(&self, index: u64) -> Result<Option<StoredBytes>, ReadError> {
        let file = self.file(index)?;
        let open = || {
            let source = self.open_file(file)?;
            self.limits.check_sample_bytes(source.location(), source.len())?;
            let len = source.len();
            Ok(Some(StoredBytes { source, offset: 0, len }))
        };
        open().map_err(|error: ReadError| error.for_sample(index, Some(&self.names.path(file))))
    }
}

impl DamageChecks for Folder {
    fn check_label(&self, index: u64) -> Result<(), ReadError> {
        let file = self.file(index)?;
        let check = || {
            if self.label_state(index)? != UNREADABLE {
                return Ok(());
            }
            self.read_label(index)?;
            let location = self.files.root().clone();
            let member = self.names.path(file).into_owned();
            Err(ReadError::Label { location, member, source: LabelDefect::Changed })
        };
        check().map_err(|error| error.for_sample(index, Some(&self.names.path(file))))
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
