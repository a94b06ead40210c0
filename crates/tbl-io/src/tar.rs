//! TAR archives, plain or WebDataset, read in place: one pass over the headers makes an index of
//! the regular members, and their bytes are read by position when they are asked for.
//!
//! Nothing is extracted, and duplicate names are kept. A sample whose name could lead out of a
//! folder (absolute, or with `..`) is damaged. Compressed archives are not read; `unpack` makes plain
//! ones of them.

pub(crate) mod header;
pub(crate) mod index;
mod member;
pub(crate) mod pax;
mod stored;
pub(crate) mod window;

use std::path::Path;

use tbl_format::SampleFormat;
use tbl_format::path::{PathDefect, check_extension, check_name};

pub use self::member::{MemberCounts, MemberKind, SkippedMember};

use self::header::BLOCK_BYTES;
use self::index::{Extent, Extents, Index, UNREADABLE};
use crate::error::{ReadError, TarDefect};
use crate::grouping::{FieldSet, Grouping, split_base};
use crate::identity::Told;
use crate::label::{LabelDefect, LabelField, deciding_field};
use crate::limits::ReadLimits;
use crate::location::Location;
use crate::names::Names;
use crate::note::{HIDDEN_FILES, Note, OTHER_FILES};
use crate::sample::{
    BulkIndex, DamageChecks, Entry, Facts, Field, SampleSource, SourceKind, StoredBytes,
    StoredSamples,
};
use crate::source::Source;
use crate::view::ViewMap;

/// The bytes of the first regular member whose name is `name` in any folder; `None` without one.
pub(crate) fn member_called(archive: &Source, name: &[u8]) -> Result<Option<Source>, ReadError> {
    let index = Index::read(archive)?;
    let members = 0..u32::try_from(index.names.len()).unwrap_or(u32::MAX);
    let Some(member) = members.into_iter().find(|&member| index.names.base(member) == name) else {
        return Ok(None);
    };
    let Extent { offset, size } = index.extents.of(member);
    let mut bytes = Vec::new();
    ReadLimits::default().check_sample_bytes(archive.location(), size)?;
    archive.read_range_into(offset, size, &mut bytes)?;
    Ok(Some(Source::from_bytes(archive.location(), bytes)))
}

/// An indexed TAR archive.
///
/// Understood are ustar, GNU (long names, base-256 numbers), PAX (local and global headers; path
/// and size), star and V7 headers, archives without an end marker, and archives one after the
/// other. Sparse members, multi-volume parts and unknown types are passed over and listed by
/// [`skipped`](Self::skipped). The index takes 20 bytes and the base name for each member.
///
/// An archive of nothing but archives, such as ImageNet's training set, has the members of these, each
/// in a folder named after its archive: `n01440764/n01440764_36.JPEG`.
///
/// ```
/// use tbl_io::{SampleSource, Source, TarArchive, TarOptions, TarWriter};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("photos.tar");
/// let mut writer = TarWriter::create(&path, TarOptions::default())?;
/// writer.append(b"cat.jpg", b"...")?;
/// writer.append(b"cat.cls", b"7")?;
/// writer.finish()?;
///
/// let archive = TarArchive::open(&path)?;
/// assert_eq!(archive.sample_count(), 1);
/// assert_eq!(archive.entry(0)?.label, Some(7));
/// let mut bytes = Vec::new();
/// archive.read_into(0, &mut bytes)?;
/// assert_eq!(bytes, b"...");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TarArchive {
    source: Source,
    limits: ReadLimits,
    names: Names,
    extents: Extents,
    grouping: Grouping,
    /// By sample; [`NO_LABEL`] for none. Empty when no sample has one.
    labels: Vec<i64>,
    /// Samples whose label cannot be read, ascending.
    unreadable_labels: Vec<u64>,
    counts: MemberCounts,
    skipped: Vec<SkippedMember>,
    first_passed_over: Option<Vec<u8>>,
    /// The note on members that later ones of the same name replace.
    replaced: Option<Box<Note>>,
    has_end_marker: bool,
    lone_zero_block: Option<u64>,
    trailing_garbage: Option<u64>,
    is_indexed: bool,
    views: ViewMap,
}

const NO_LABEL: i64 = i64::MIN;

impl TarArchive {
    /// Opens and indexes an archive.
    ///
    /// # Errors
    /// [`ReadError::Tar`] with the offset of the first damaged or truncated header, member or
    /// extended header; [`ReadError::Io`] and [`ReadError::NotAFile`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::new(Source::open(path.as_ref())?, ReadLimits::default())
    }

    /// Indexes the archive in `source`.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn new(source: Source, limits: ReadLimits) -> Result<Self, ReadError> {
        let index = Index::read(&source)?;
        Ok(Self::of_index(source, limits, index))
    }

    fn of_index(source: Source, limits: ReadLimits, index: Index) -> Self {
        let grouping = Grouping::new(&index.names, &index.archive_starts);
        let (labels, unreadable_labels) = sample_labels(&index, &grouping);
        let replaced = replaced_members(&index, &grouping).map(Box::new);
        let Index { names, extents, mut counts, skipped, first_passed_over, .. } = index;
        let passed_over = grouping.passed_over();
        counts.hidden = passed_over.hidden;
        counts.other_files = passed_over.other;
        let first_passed_over = first_passed_over
            .or_else(|| passed_over.first.map(|member| names.path(member).into_owned()));
        let Index { has_end_marker, lone_zero_block, trailing_garbage, .. } = index;
        Self {
            source,
            limits,
            names,
            extents,
            grouping,
            labels,
            unreadable_labels,
            counts,
            skipped,
            first_passed_over,
            replaced,
            has_end_marker,
            lone_zero_block,
            trailing_garbage,
            is_indexed: false,
            views: ViewMap::default(),
        }
    }

    /// The archive's length in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.source.len()
    }

    /// Whether a shard index had what the headers say, so that opening read none of them.
    pub fn is_indexed(&self) -> bool {
        self.is_indexed
    }

    /// How many members of each type the archive has.
    pub fn member_counts(&self) -> MemberCounts {
        self.counts
    }

    /// Members that hold data but cannot be read as samples: sparse files, parts of multi-volume
    /// files, hard links with their own contents, unknown types. The first 1000;
    /// [`member_counts`](Self::member_counts) has the total.
    pub fn skipped(&self) -> &[SkippedMember] {
        &self.skipped
    }

    /// Whether the archive ends with two zero blocks. One without may have lost members at its
    /// end; those that it has are whole.
    pub fn has_end_marker(&self) -> bool {
        self.has_end_marker
    }

    /// The offset of a single block of zeros in front of a header. It does not end an archive; a
    /// damaged header may have stood there, whose member had no bytes.
    pub fn lone_zero_block(&self) -> Option<u64> {
        self.lone_zero_block
    }

    /// The first header after the end marker and bytes that are not an archive: a member cut off.
    pub(crate) fn find_header_behind_end(&self) -> Result<Option<u64>, ReadError> {
        self.trailing_garbage.map_or(Ok(None), |start| index::find_header(&self.source, start))
    }

    /// The offset of the bytes after the end marker that are not a further archive.
    pub fn trailing_garbage(&self) -> Option<u64> {
        self.trailing_garbage
    }

    /// The samples whose label cannot be read, ascending.
    pub(crate) fn unreadable_labels(&self) -> impl Iterator<Item = u64> {
        self.unreadable_labels.iter().copied()
    }

    /// The notes on regular members.
    pub(crate) fn file_notes(&self) -> impl Iterator<Item = Note> {
        let MemberCounts { hidden, other_files, .. } = self.counts;
        let counts = [(HIDDEN_FILES, hidden), (OTHER_FILES, other_files)];
        let first = self.grouping.passed_over().first.map(|member| self.names.path(member));
        let passed_over = Note::passed_over(counts, first.as_deref());
        let of_grouping = Note::of_grouping(&self.grouping, &self.names);
        passed_over.into_iter().chain(of_grouping).chain(self.replaced.as_deref().cloned())
    }

    /// The member that is sample `index`, with its name checked.
    fn member(&self, index: u64) -> Result<u32, ReadError> {
        let member = self.grouping.sample(index).ok_or_else(|| ReadError::SampleOutOfRange {
            location: self.source.location().clone(),
            index,
            sample_count: self.sample_count(),
        })?;
        // Folder and base name apart, because joining them allocates.
        let checked = check_name(self.names.folder(member))
            .and_then(|()| check_name(self.names.base(member)));
        self.check_name(member, "member name", checked)
            .map_err(|error| error.for_sample(index, Some(&self.names.path(member))))?;
        Ok(member)
    }

    fn check_name(
        &self,
        member: u32,
        what: &'static str,
        found: Result<(), PathDefect>,
    ) -> Result<(), ReadError> {
        found.map_err(|defect| ReadError::Tar {
            location: self.source.location().clone(),
            // The header directly before the bytes.
            offset: self.extents.of(member).offset.saturating_sub(BLOCK_BYTES),
            source: TarDefect::UnsafeName { what, defect },
        })
    }

    fn read_member(&self, member: u32, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let Extent { offset, size } = self.extents.of(member);
        self.limits.check_sample_bytes(self.source.location(), size)?;
        self.source.read_range_into(offset, size, bytes)
    }

    /// Reads the label of sample `index` once more.
    fn read_label(&self, index: u64) -> Result<(), ReadError> {
        let Some((field, member)) = label_member(&self.names, &self.grouping, index) else {
            return Ok(());
        };
        let Extent { offset, size } = self.extents.of(member);
        let mut content = Vec::new();
        let label = match field.check_len(size) {
            Ok(()) => {
                self.source.read_range_into(offset, size, &mut content)?;
                field.parse(&content)
            }
            Err(defect) => Err(defect),
        };
        let source = label.err().unwrap_or(LabelDefect::Changed);
        let location = self.source.location().clone();
        Err(ReadError::Label { location, member: self.names.path(member).into_owned(), source })
    }
}

/// The member that decides the label of sample `index`.
fn label_member(names: &Names, grouping: &Grouping, index: u64) -> Option<(LabelField, u32)> {
    deciding_field(grouping.label_fields(names, index))
}

/// The note on members that later ones of the same name replace as fields, if any.
fn replaced_members(index: &Index, grouping: &Grouping) -> Option<Note> {
    let replaced = grouping.replaced();
    let &(first, _) = replaced.first()?;
    let has_other_label = |&&(old, new): &&(u32, u32)| index.label(old) != index.label(new);
    Some(Note::Replaced {
        members: replaced.len() as u64,
        labels: replaced.iter().filter(has_other_label).count() as u64,
        first: index.names.path(first).into_owned(),
    })
}

/// Brings the labels of members to the samples whose fields they are. Returns those, and the
/// samples whose labels cannot be read.
fn sample_labels(index: &Index, grouping: &Grouping) -> (Vec<i64>, Vec<u64>) {
    if index.labels.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut unreadable = Vec::new();
    let label_of = |sample: u64| {
        let (_, member) = label_member(&index.names, grouping, sample)?;
        let label = index.label(member)?;
        if label == UNREADABLE {
            unreadable.push(sample);
            return None;
        }
        Some(label)
    };
    let samples = 0..grouping.sample_count() as u64;
    let labels: Vec<i64> = samples.map(label_of).map(|label| label.unwrap_or(NO_LABEL)).collect();
    let has_none = labels.iter().all(|&label| label == NO_LABEL);
    (if has_none { Vec::new() } else { labels }, unreadable)
}

impl SampleSource for TarArchive {
    fn location(&self) -> &Location {
        self.source.location()
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Tar
    }

    fn sample_count(&self) -> u64 {
        self.grouping.sample_count() as u64
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let key = self.names.path(self.member(index)?);
        let label = usize::try_from(index).ok().and_then(|index| self.labels.get(index)).copied();
        let label = label.filter(|&label| label != NO_LABEL);
        Ok(Entry::new(self.facts(index)?, Some(key), label))
    }

    fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        let member = self.member(index)?;
        let Extent { offset, size } = self.extents.of(member);
        Ok(Facts {
            format: SampleFormat::from_file_name(self.names.base(member)),
            width: 0,
            height: 0,
            offset,
            stored_bytes: size,
            bytes: size,
        })
    }

    fn content_id(&self, index: u64, id: &mut Vec<u8>) -> Result<bool, ReadError> {
        self.member(index)?;
        self.limits.push_id(id);
        Ok(self.source.content_id(id) == Some(Told::ByTimes))
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let member = self.member(index)?;
        self.read_member(member, bytes)
            .map_err(|error| error.for_sample(index, Some(&self.names.path(member))))
    }

    fn will_need(&self, index: u64) {
        if let Some(member) = self.grouping.sample(index) {
            let Extent { offset, size } = self.extents.of(member);
            self.source.will_need(offset, size);
        }
    }

    fn read_fields_where(
        &self,
        index: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        let sample = self.member(index)?;
        let mut extensions = Vec::new();
        let mut ranges = Vec::new();
        let mut find = || {
            for member in self.grouping.fields(index) {
                let extension = split_base(self.names.base(member)).1;
                self.check_name(member, "field name", check_extension(extension))?;
                let Extent { offset, size } = self.extents.of(member);
                if is_wanted(extension, size) {
                    self.limits.check_sample_bytes(self.source.location(), size)?;
                    extensions.push(extension);
                    ranges.push((offset, size));
                }
            }
            self.source.read_ranges(&ranges)
        };
        let read = find().map_err(|e| e.for_sample(index, Some(&self.names.path(sample))))?;
        let mut fields = FieldSet::new(fields);
        for (extension, bytes) in extensions.into_iter().zip(read) {
            fields.push(Field { extension: extension.to_vec(), bytes });
        }
        Ok(())
    }

    fn notes(&self) -> Vec<Note> {
        let MemberCounts { symbolic_links, hard_links, devices, sparse, unknown, .. } = self.counts;
        let MemberCounts { hidden, other_files, .. } = self.counts;
        let counts = [
            (HIDDEN_FILES, hidden),
            (OTHER_FILES, other_files),
            ("symbolic links", symbolic_links),
            ("hard links", hard_links),
            ("devices", devices),
            ("sparse files", sparse),
            ("members of unknown type", unknown),
        ];
        let passed_over = Note::passed_over(counts, self.first_passed_over.as_deref());
        let lone_zero_block = self.lone_zero_block.map(|offset| Note::LoneZeroBlock { offset });
        let trailing = self.trailing_garbage.map(|offset| Note::TrailingBytes { offset });
        let empty = (self.sample_count() == 0).then_some(Note::NoSamples);
        let of_grouping = Note::of_grouping(&self.grouping, &self.names);
        let notes =
            passed_over.into_iter().chain(of_grouping).chain(self.replaced.as_deref().cloned());
        notes.chain(lone_zero_block).chain(trailing).chain(empty).collect()
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

impl StoredSamples for TarArchive {
    fn source(&self) -> Option<&Source> {
        Some(&self.source)
    }

    fn view(&self, index: u64) -> Result<Option<&[u8]>, ReadError> {
        let member = self.member(index)?;
        let Extent { offset, size } = self.extents.of(member);
        // What cannot be read for its size cannot be seen either.
        let within = self.limits.check_sample_bytes(self.source.location(), size);
        let view = within.and_then(|()| self.views.view(&self.source, offset, size));
        view.map_err(|error| error.for_sample(index, Some(&self.names.path(member))))
    }

    fn stored(&self, index: u64) -> Result<Option<StoredBytes>, ReadError> {
        let member = self.member(index)?;
        let Extent { offset, size: len } = self.extents.of(member);
        self.limits
            .check_sample_bytes(self.source.location(), len)
            .map_err(|error| error.for_sample(index, Some(&self.names.path(member))))?;
        Ok(Some(StoredBytes { source: self.source.clone(), offset, len }))
    }
}

impl BulkIndex for TarArchive {
    fn stored_labels(&self) -> Result<Option<Vec<i64>>, ReadError> {
        Ok(self.unreadable_labels.is_empty().then(|| self.labels.clone()))
    }
}

impl DamageChecks for TarArchive {
    fn check_label(&self, index: u64) -> Result<(), ReadError> {
        let member = self.member(index)?;
        if self.unreadable_labels.binary_search(&index).is_err() {
            return Ok(());
        }
        self.read_label(index).map_err(|e| e.for_sample(index, Some(&self.names.path(member))))
    }
}
