//! A file of rows as samples.

mod blocks;
mod fields;
mod part;

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tbl_format::SampleFormat;
use tbl_format::path::{RelativePath, check_web_name};
use tbl_io::{
    BlockMemory, BulkIndex, Entry, Facts, Field, Location, Note, ReadError, ReadLimits, RowsDefect,
    SampleBlocks, SampleSource, Source, SourceKind, StoredBytes, StoredSamples, Stores,
};

use crate::cache::PageCache;
use crate::file::{MAGIC, ParquetFile, RowPlace};
use crate::ipc::{ArrowFile, is_arrow};
use crate::labels::RowLabels;
use crate::options::RowOptions;
use crate::places::{Decoded, MAGIC_BYTES, Place};
use crate::roles::{ImageColumn, Roles};
use crate::rows::RowFile;
use crate::table::RowColumns;
use crate::thrift::Flaw;
use crate::values::Value;

/// The ranges of which it is known that they were announced.
const ANNOUNCED: usize = 256;

/// The rows of a Parquet or an Arrow file as samples: an image each, with a label and fields.
///
/// The image column is the one that the options name, the only one of type `Image` in the metadata of
/// `datasets`, or the only one whose first value is an image. It has bytes, or structures of bytes and a
/// path. Labels are the column that the options name, the only `ClassLabel`, or a column called `label`
/// with integers or texts, which are classes in sorted order. Other columns are
/// fields, structures and lists as JSON.
///
/// Images that are neither compressed nor in a dictionary are read where they are in the file; so are
/// those of compressed pages of Parquet files that are mostly literals, as photographs are in Snappy,
/// LZ4 and Zstandard. Other pages, and compressed buffers of Arrow files, are decoded, and the last ones
/// are kept for all threads.
#[derive(Debug)]
pub struct RowSource {
    file: Box<dyn RowFile>,
    stores: Stores,
    roles: Roles,
    /// True if the places of all values are known without reading.
    is_indexed: bool,
    /// The starts of ranges that were announced last.
    announced: Box<[AtomicU64]>,
    labels: RowLabels,
    /// The name of the file without its extension, for rows without a path.
    stem: Vec<u8>,
    /// The folder that paths of images are relative to.
    folder: Location,
    /// The folder that absolute paths may lead into.
    root: Option<Location>,
}

/// Whether a file is a Parquet file, by its first bytes; an encrypted one counts.
pub(crate) fn is_parquet(source: &Source) -> Result<bool, ReadError> {
    let mut magic = [0; MAGIC.len()];
    if source.len() < magic.len() as u64 {
        return Ok(false);
    }
    source.read_exact_at(0, &mut magic)?;
    Ok(magic == MAGIC || magic == *b"PARE")
}

impl RowSource {
    /// Whether a file is a Parquet file, an Arrow file or an Arrow stream, by its first bytes.
    ///
    /// # Errors
    /// [`ReadError::Io`] and other errors of reading.
    pub fn is(source: &Source) -> Result<bool, ReadError> {
        Ok(is_parquet(source)? || is_arrow(source)?)
    }

    /// Reads the schema and the labels of a file: of a Parquet file, or else of an Arrow file or
    /// stream. Images that are files of their own are opened in `stores`, whose
    /// [options](tbl_io::Manifest) name the columns and the folder of these files.
    ///
    /// # Errors
    /// As for [`open_with`](Self::open_with).
    pub fn open(stores: &Stores, source: Source) -> Result<Self, ReadError> {
        let options = RowOptions::of_manifest(&stores.list_options().manifest);
        Self::open_with(stores, source, &options)
    }

    /// As [`open`](Self::open), with these options instead of those of `stores`.
    ///
    /// # Errors
    /// [`ReadError::Rows`] with the offset of a defect, or the columns of which one must be named;
    /// [`ReadError::Limit`] for more rows than memory is taken for.
    pub fn open_with(
        stores: &Stores,
        source: Source,
        options: &RowOptions,
    ) -> Result<Self, ReadError> {
        let limits = ReadLimits::default();
        let mut file: Box<dyn RowFile> = match is_arrow(&source)? {
            true => Box::new(ArrowFile::open(source, limits)?),
            false => Box::new(ParquetFile::open(source, limits)?),
        };
        file.check_rows()?;
        if let Some(columns) = &options.columns {
            let selected = file.schema().select(columns);
            *file.schema_mut() = selected.map_err(|defect| file.error(Flaw::new(0, defect)))?;
        }
        let roles = Roles::find(&*file, options)?;
        Self::of_file(file, stores, options, roles, false)
    }

    fn of_file(
        file: Box<dyn RowFile>,
        stores: &Stores,
        options: &RowOptions,
        roles: Roles,
        is_indexed: bool,
    ) -> Result<Self, ReadError> {
        let label = roles.label.as_ref().map(|column| column.leaf);
        let image = Some(roles.image.bytes).filter(|_| !is_indexed);
        file.request_together(label, image)?;
        let labels = roles.label.as_ref().map(|column| RowLabels::read(&*file, column));
        let labels = labels.transpose()?.unwrap_or_default();
        let is_indexed = file.find_places(roles.image.bytes)? || is_indexed;
        let name = Path::new(file.source().location().as_os_str()).file_stem().unwrap_or_default();
        // Names of samples end at their first dot.
        let stem =
            name.as_bytes().iter().map(|&byte| if byte == b'.' { b'_' } else { byte }).collect();
        let folder = options.folder.clone().unwrap_or_else(|| file.source().location().folder());
        let root = options.root.clone();
        let announced = (0..ANNOUNCED).map(|_| AtomicU64::new(u64::MAX)).collect();
        let stores = stores.clone();
        Ok(Self { file, stores, roles, is_indexed, announced, labels, stem, folder, root })
    }

    /// The columns of all rows.
    ///
    /// # Errors
    /// As for [`RowColumns::open`].
    pub fn columns(&self) -> Result<RowColumns, ReadError> {
        RowColumns::open(self.file.source().clone())
    }

    fn place(&self, index: u64) -> Result<RowPlace, ReadError> {
        self.file.place(index).ok_or_else(|| ReadError::SampleOutOfRange {
            location: self.location().clone(),
            index,
            sample_count: self.sample_count(),
        })
    }

    /// The place of the image of a row, whose bytes are within the limits.
    fn image(&self, row: RowPlace) -> Result<Place, ReadError> {
        let place = self.file.image(self.roles.image.bytes, row)?;
        match place {
            Place::InFile { bytes, .. }
            | Place::Segmented { within: Decoded { bytes, .. }, .. }
            | Place::Decoded(Decoded { bytes, .. }) => {
                self.file.check_size("sample bytes", bytes)?;
            }
            Place::Null { .. } => {}
        }
        Ok(place)
    }

    /// Calls `read` with the value of a column; with `None` for null.
    fn with_value<R: Default>(
        &self,
        leaf: usize,
        row: RowPlace,
        mut read: impl FnMut(Option<Value<'_>>) -> R,
    ) -> Result<R, ReadError> {
        let mut result = R::default();
        self.file.with_value(leaf, row, &mut |value| result = read(value))?;
        Ok(result)
    }

    /// The path of an image, if it has one.
    fn path(&self, column: ImageColumn, row: RowPlace) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(leaf) = column.path else { return Ok(None) };
        self.with_value(leaf, row, |value| match value {
            Some(Value::Bytes(path)) if !path.is_empty() => Some(path.to_vec()),
            _ => None,
        })
    }

    /// The file of an image that has a path and no bytes.
    fn own_file(&self, column: ImageColumn, row: RowPlace, at: u64) -> Result<Source, ReadError> {
        let error = |defect| self.file.error(Flaw::new(at, defect));
        let Some(path) = self.path(column, row)? else {
            return Err(error(RowsDefect::NullSample));
        };
        let below_root = self.root.as_ref().and_then(|root| Some((root, below(root, &path)?)));
        let (folder, name) = below_root.unwrap_or((&self.folder, &path));
        let checked = RelativePath::new(name).and_then(|_| match folder.url() {
            Some(_) => check_web_name(name),
            None => Ok(()),
        });
        checked.map_err(|defect| error(RowsDefect::UnsafePath { path: path.clone(), defect }))?;
        let location = folder.join(name);
        let opened = self.stores.open_file(&location)?;
        let source = opened.ok_or_else(|| error(RowsDefect::NotAFile { path: path.clone() }))?;
        self.file.check_size("sample bytes", source.len())?;
        Ok(source)
    }

    fn read(&self, row: RowPlace, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        match self.image(row)? {
            Place::InFile { offset, bytes: len, .. } => {
                self.file.source().read_range_into(offset, len, bytes)
            }
            // Of a file that is not mapped, a page is received as a whole, and kept.
            Place::Segmented { start, within } if self.file.map().is_some() => {
                let Some(file) = self.file.parquet() else { return self.read_decoded(row, bytes) };
                let places = file.places(self.roles.image.bytes);
                match places.read_segments(file, row, start, within, bytes)? {
                    true => Ok(()),
                    false => self.read_decoded(row, bytes),
                }
            }
            Place::Segmented { .. } | Place::Decoded(_) => self.read_decoded(row, bytes),
            Place::Null { offset } => {
                let source = self.own_file(self.roles.image, row, offset)?;
                source.read_range_into(0, source.len(), bytes)
            }
        }
    }

    fn read_decoded(&self, row: RowPlace, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.with_value(self.roles.image.bytes, row, |value| {
            bytes.clear();
            if let Some(Value::Bytes(value)) = value {
                bytes.extend_from_slice(value);
            }
        })
    }

    fn facts_of(&self, row: RowPlace) -> Result<Facts, ReadError> {
        let (format, offset, stored_bytes, bytes) = match self.image(row)? {
            Place::InFile { offset, bytes, format } => (format, offset, bytes, bytes),
            Place::Segmented { within, .. } | Place::Decoded(within) => {
                let Decoded { offset, stored, bytes, format, .. } = within;
                (format, offset, stored, bytes)
            }
            Place::Null { offset } => {
                let source = self.own_file(self.roles.image, row, offset)?;
                (SampleFormat::Unknown, 0, source.len(), source.len())
            }
        };
        Ok(Facts { format, width: 0, height: 0, offset, stored_bytes, bytes })
    }

    /// The format of an image, which [`facts_of`](Self::facts_of) does not read where the file is in a
    /// store.
    fn format(&self, facts: Facts, row: RowPlace) -> Result<SampleFormat, ReadError> {
        let is_known = facts.format != SampleFormat::Unknown || self.file.map().is_some();
        let Place::InFile { offset, bytes, .. } = self.image(row)? else { return Ok(facts.format) };
        if is_known {
            return Ok(facts.format);
        }
        let mut magic = Vec::new();
        self.file.source().read_range_into(offset, bytes.min(MAGIC_BYTES as u64), &mut magic)?;
        Ok(SampleFormat::from_magic(&magic))
    }

    /// The path of a sample, or the name of the file with the number of the row.
    fn key(&self, index: u64, row: RowPlace, format: SampleFormat) -> Result<Vec<u8>, ReadError> {
        let path = self.path(self.roles.image, row)?;
        let is_safe = |path: &[u8]| RelativePath::new(path).is_ok();
        if let Some(path) = path {
            // Files that were made elsewhere may have the path of that machine.
            let base = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
            if is_safe(&path) {
                return Ok(path);
            }
            if is_safe(base) {
                return Ok(base.to_vec());
            }
        }
        let mut key = self.stem.clone();
        key.extend_from_slice(format!("#{index}").as_bytes());
        if format != SampleFormat::Unknown {
            key.extend_from_slice(format!(".{}", format.extension()).as_bytes());
        }
        Ok(key)
    }

    /// The error with its sample.
    fn named(&self, error: ReadError, index: u64, row: RowPlace) -> ReadError {
        let key = self.path(self.roles.image, row).ok().flatten();
        error.for_sample(index, key.as_deref())
    }
}

/// The part of an absolute path below `root`.
fn below<'p>(root: &Location, path: &'p [u8]) -> Option<&'p [u8]> {
    let root = root.as_os_str().as_bytes();
    let root = root.strip_suffix(b"/").unwrap_or(root);
    path.strip_prefix(root)?.strip_prefix(b"/").filter(|_| path.starts_with(b"/"))
}

impl SampleSource for RowSource {
    fn location(&self) -> &Location {
        self.file.source().location()
    }

    fn kind(&self) -> SourceKind {
        self.file.kind()
    }

    fn sample_count(&self) -> u64 {
        self.file.row_count()
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let row = self.place(index)?;
        let mut facts = self.facts(index)?;
        facts.format = self.format(facts, row).map_err(|e| self.named(e, index, row))?;
        let key = self.key(index, row, facts.format).map_err(|e| e.for_sample(index, None))?;
        let label = usize::try_from(index).ok().and_then(|index| self.labels.labels.get(index));
        let Facts { format, width, height, offset, stored_bytes, bytes } = facts;
        let key = Some(Cow::Owned(key));
        let label = label.copied();
        Ok(Entry { key, label, format, width, height, offset, stored_bytes, bytes })
    }

    fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        let row = self.place(index)?;
        self.facts_of(row).map_err(|error| self.named(error, index, row))
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let row = self.place(index)?;
        self.read(row, bytes).map_err(|error| self.named(error, index, row))
    }

    fn read_fields_where(
        &self,
        index: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        let row = self.place(index)?;
        for column in &self.roles.fields {
            let read = self.read_field(column, row, is_wanted);
            let bytes = read.map_err(|error| self.named(error, index, row))?;
            let extension = || column.name.clone().into_bytes();
            fields.extend(bytes.map(|bytes| Field { extension: extension(), bytes }));
        }
        Ok(())
    }

    fn class_names(&self) -> &[String] {
        &self.labels.class_names
    }

    fn declares_classes(&self) -> bool {
        self.labels.is_declared
    }

    fn box_class_names(&self) -> &[String] {
        &self.roles.box_class_names
    }

    fn content_id(&self, index: u64, id: &mut Vec<u8>) -> Result<bool, ReadError> {
        let row = self.place(index)?;
        id.extend_from_slice(&self.file.limits().sample_bytes.to_le_bytes());
        id.extend_from_slice(&(self.roles.image.bytes as u64).to_le_bytes());
        // A compressed page has many samples at one offset.
        id.extend_from_slice(&index.to_le_bytes());
        let place = self.image(row).map_err(|error| self.named(error, index, row))?;
        let is_here = !matches!(place, Place::Null { .. });
        Ok(self.file.source().identify(id) && is_here)
    }

    fn will_need(&self, index: u64) {
        let Some(row) = self.file.place(index) else { return };
        let Some(range) = self.file.image_range(self.roles.image.bytes, row) else { return };
        // Samples of a page are announced one after the other, which takes the system as long for
        // each as copying it takes.
        let slot = (range.start >> 12) as usize % ANNOUNCED;
        if self.announced[slot].swap(range.start, Ordering::Relaxed) != range.start {
            self.file.source().will_need(range.start, range.end - range.start);
        }
    }

    fn notes(&self) -> Vec<Note> {
        let empty = (self.sample_count() == 0).then_some(Note::NoSamples);
        let columns = self.roles.other_labels.clone();
        let labels = (!columns.is_empty()).then_some(Note::SeveralLabels { columns });
        empty.into_iter().chain(labels).chain(self.file.notes()).collect()
    }

    fn stored_samples(&self) -> Option<&dyn StoredSamples> {
        Some(self)
    }

    fn bulk_index(&self) -> Option<&dyn BulkIndex> {
        Some(self)
    }

    fn blocks(&self) -> Option<&dyn SampleBlocks> {
        Some(self)
    }

    fn block_memory(&self) -> Option<&'static dyn BlockMemory> {
        Some(PageCache::of_process())
    }
}

impl StoredSamples for RowSource {
    fn source(&self) -> Option<&Source> {
        // Otherwise the place of a sample is known once its page was read.
        Some(self.file.source()).filter(|_| self.is_indexed)
    }

    fn stored(&self, index: u64) -> Result<Option<StoredBytes>, ReadError> {
        let row = self.place(index)?;
        match self.image(row).map_err(|error| self.named(error, index, row))? {
            Place::InFile { offset, bytes, .. } => {
                let source = self.file.source().clone();
                Ok(Some(StoredBytes { source, offset, len: bytes }))
            }
            Place::Segmented { .. } | Place::Decoded(_) | Place::Null { .. } => Ok(None),
        }
    }

    fn view(&self, index: u64) -> Result<Option<&[u8]>, ReadError> {
        let row = self.place(index)?;
        let view = || match (self.image(row)?, self.file.map()) {
            (Place::InFile { offset, bytes, .. }, Some(map)) => map.slice(offset, bytes).map(Some),
            _ => Ok(None),
        };
        view().map_err(|error| self.named(error, index, row))
    }
}

impl BulkIndex for RowSource {
    fn stored_labels(&self) -> Result<Option<Vec<i64>>, ReadError> {
        Ok(Some(self.labels.labels.clone()))
    }
}
