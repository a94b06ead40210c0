//! The one face every kind of stored data set shows: numbered samples with a key, a label and bytes.

mod capability;

use std::any::Any;
use std::borrow::Cow;
use std::ops::Range;

use tbl_format::SampleFormat;
use tbl_format::extension::ExtensionHeader;
use tbl_format::metadata::MetadataType;

use crate::error::ReadError;
use crate::grouping::{own_field_name, own_part, split_base};
use crate::location::Location;
use crate::note::Note;
use crate::source::Source;

pub use capability::{
    BlockMemory, BulkIndex, DamageChecks, RowIndexes, SampleBlocks, SampleSourceExt, StoredSamples,
};

/// A stored data set as a numbered sequence of samples: a TAR archive, a folder, or a TBL file.
///
/// A source implements the first five methods. The others have an answer for a source without labels
/// by class, fields or identity. A feature of only some containers is a capability, an object
/// that the source returns: [`StoredSamples`], [`BulkIndex`], [`DamageChecks`], [`RowIndexes`],
/// [`SampleBlocks`].
/// [`SampleSourceExt`] calls capabilities of any source, so callers need not ask for the object. A
/// source that wraps another passes on the capabilities that still hold.
///
/// A source is [`Any`], so that what only one kind of container has can be asked for by downcasting.
/// Reading is positioned and takes `&self`, so one source serves any number of threads.
///
/// [`read_into`](Self::read_into) and [`read_fields_where`](Self::read_fields_where) may block;
/// [`entry`](Self::entry) may where the label is a separate file. All others must be cheap, because
/// a loader asks for them once for each sample.
pub trait SampleSource: Any + Send + Sync + std::fmt::Debug {
    /// The file, folder or object the samples come from, as it was given to `open`.
    fn location(&self) -> &Location;

    /// The kind of container.
    fn kind(&self) -> SourceKind;

    /// How many samples there are.
    fn sample_count(&self) -> u64;

    /// The properties of sample `index` that are known without reading its bytes.
    ///
    /// # Errors
    /// [`ReadError::SampleOutOfRange`], or the damage found in the index entry.
    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError>;

    /// Replaces `bytes` with the sample's original (uncompressed) bytes, checked against the
    /// checksums the container has. Its capacity is reused.
    ///
    /// # Errors
    /// I/O, truncation, checksum mismatch, or a size beyond the reader's limits; `bytes` is then
    /// unspecified.
    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError>;

    /// The part of [`entry`](Self::entry) without name and label. Cheaper where those have to be
    /// looked up, put together or allocated for: what a loader asks for each sample it reads.
    ///
    /// # Errors
    /// As for [`entry`](Self::entry).
    fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        let Entry { format, width, height, offset, stored_bytes, bytes, .. } = self.entry(index)?;
        Ok(Facts { format, width, height, offset, stored_bytes, bytes })
    }

    /// Appends those sidecar fields of sample `index` to `fields` that `is_wanted` selects by
    /// extension, without its leading dot, and size in bytes: WebDataset members with the same key,
    /// such as `json`, `seg.png` or a further image, in stored order. None by default.
    ///
    /// # Errors
    /// As for [`read_into`](Self::read_into).
    fn read_fields_where(
        &self,
        _index: u64,
        _is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        _fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        Ok(())
    }

    /// The number of the first sample that has the file of sample `index`, where a list has one file
    /// several times. By default, and without such a list, `index` itself.
    fn first_of_file(&self, index: u64) -> u64 {
        index
    }

    /// The class names stored with the data set, indexed by label; empty, the default, when it stores
    /// none.
    fn class_names(&self) -> &[String] {
        &[]
    }

    /// Whether the file has a list of its class names, so that equal labels of files that have one
    /// must mean the same class. False, the default, where names come from the samples.
    fn declares_classes(&self) -> bool {
        false
    }

    /// The names of the classes of annotated objects, by the numbers that the field `json` has as
    /// `/annotations/*/category_id`, or by [`box_class_numbers`](Self::box_class_numbers); empty for a
    /// number without a name. Empty, the default, without annotations.
    fn box_class_names(&self) -> &[String] {
        &[]
    }

    /// The numbers of the classes that [`box_class_names`](Self::box_class_names) lists, where they
    /// are not their places. Empty, the default, where they are.
    fn box_class_numbers(&self) -> &[i64] {
        &[]
    }

    /// Pairs of keypoints that change places in mirrored images, by the names that the categories of
    /// annotated objects give them: `left_eye` and `right_eye`. Empty, the default, without such names.
    fn flip_pairs(&self) -> &[[usize; 2]] {
        &[]
    }

    /// Appends to `id` the properties that, together with the sample's [`Facts`], decide which
    /// bytes
    /// [`read_into`](Self::read_into) gives: what the system says of the file, and how it is read.
    /// Two samples with equal facts and equal `id`, now or in another process, have equal bytes,
    /// which is what a cache on disk goes by. False, the default, where that cannot be promised.
    ///
    /// No sample is read. What is written into a file in place is seen by its times of change, so
    /// that without a 32-bit checksum nothing is promised until the last change is 2 s ago:
    /// the next one may get the same time. Nothing is either on file systems that are images
    /// (squashfs, ISO 9660), where equal times mean nothing.
    ///
    /// # Errors
    /// As for [`entry`](Self::entry).
    fn content_id(&self, _index: u64, _id: &mut Vec<u8>) -> Result<bool, ReadError> {
        Ok(false)
    }

    /// Announces that sample `index` will be read soon. A hint, which must not block: failure is silent
    /// because the read itself will report it. Nothing by default.
    fn will_need(&self, _index: u64) {}

    /// Announces that the fields of sample `index` will be read soon, for containers whose samples and
    /// fields are separate objects. A hint as [`will_need`](Self::will_need) is. Nothing by default.
    fn will_need_fields(&self, _index: u64) {}

    /// Notes on the source; usually empty.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }

    /// The stored bytes of samples, if they are accessible.
    fn stored_samples(&self) -> Option<&dyn StoredSamples> {
        None
    }

    /// The index as a whole, if that is faster than entry by entry.
    fn bulk_index(&self) -> Option<&dyn BulkIndex> {
        None
    }

    /// Checks of labels, fields and structure, if reading does not cover them.
    fn damage_checks(&self) -> Option<&dyn DamageChecks> {
        None
    }

    /// Row indexes of JPEG samples and indexes of videos, if the container stores them.
    fn row_indexes(&self) -> Option<&dyn RowIndexes> {
        None
    }

    /// The blocks that samples are stored in, if the container has blocks.
    fn blocks(&self) -> Option<&dyn SampleBlocks> {
        None
    }

    /// The memory for what this source unpacks, if several samples need it.
    fn block_memory(&self) -> Option<&'static dyn BlockMemory> {
        None
    }
}

/// The container formats a [`SampleSource`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceKind {
    /// A directory tree of files.
    Folder,
    /// Files that are listed one by one.
    Files,
    /// Files that a manifest, a metadata file or annotations list, with labels and fields.
    Manifest,
    /// Samples that a program holds in memory.
    Memory,
    /// A TAR archive, plain or WebDataset.
    Tar,
    /// A file of images of one size: MNIST, CIFAR.
    Images,
    /// A Parquet file, whose rows are samples.
    Parquet,
    /// An Arrow file or stream, whose rows are samples.
    Arrow,
    /// A TBL version 1 file.
    Tbl1,
    /// A TBL version 2 file.
    Tbl2,
    /// A table, whose samples are rows of columns and no bytes. [`open`](crate::open) opens none.
    Table,
    /// A file of tokens, whose samples are sequences of them. [`open`](crate::open) opens none.
    Tokens,
}

/// The properties of one sample that an index knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The sample's name as stored: the member's whole path in a TAR archive, the path below the
    /// root in a folder. `None` when the container stores no names. Not always UTF-8.
    pub key: Option<Cow<'a, [u8]>>,
    /// The label stored with the sample (`.cls`, `.json`, TBL metadata), `None` also for one that
    /// cannot be read ([`DamageChecks::check_label`]). `Labels::resolve` adds class folders.
    pub label: Option<i64>,
    /// The payload's format, from its file name or from the TBL index.
    pub format: SampleFormat,
    /// Width in pixels, 0 when the container does not say.
    pub width: u32,
    /// Height in pixels, 0 when the container does not say.
    pub height: u32,
    /// The offset of the stored bytes in the file; 0 for a folder, whose samples are whole files.
    pub offset: u64,
    /// Bytes the sample occupies in the container.
    pub stored_bytes: u64,
    /// Bytes of the sample itself, after decompression.
    pub bytes: u64,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(facts: Facts, key: Option<Cow<'a, [u8]>>, label: Option<i64>) -> Self {
        let Facts { format, width, height, offset, stored_bytes, bytes } = facts;
        Self { key, label, format, width, height, offset, stored_bytes, bytes }
    }

    /// The sample's own extension, which follows the first dot of its base name: `jpg`, or
    /// `left.jpg` for `a.left.jpg`. Empty without one.
    pub fn extension(&self) -> &[u8] {
        split_base(self.base()).1
    }

    /// The name that a field has within a numbered sample: `cls` for the field `0.cls` of
    /// `cat.0.jpg`. `None` for fields of other samples and for fields without that number.
    pub fn own_field_name<'e>(&self, extension: &'e [u8]) -> Option<&'e [u8]> {
        own_field_name(own_part(self.base()), extension)
    }

    fn base(&self) -> &[u8] {
        let key = self.key.as_deref().unwrap_or_default();
        key.rsplit(|&byte| byte == b'/').next().unwrap_or(key)
    }
}

/// The properties of one sample that an index knows, without name and label; the fields are those
/// of [`Entry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The payload's format, from its file name or from the TBL index.
    pub format: SampleFormat,
    /// Width in pixels, 0 when the container does not say.
    pub width: u32,
    /// Height in pixels, 0 when the container does not say.
    pub height: u32,
    /// The offset of the stored bytes in the file; 0 for a folder.
    pub offset: u64,
    /// Bytes the sample occupies in the container.
    pub stored_bytes: u64,
    /// Bytes of the sample itself, after decompression.
    pub bytes: u64,
}

/// Name and size of one sample, as [`BulkIndex::scan`] gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleName<'a> {
    /// The name, as [`Entry::key`] has it.
    pub key: Option<&'a [u8]>,
    /// Bytes of the sample itself, after decompression.
    pub bytes: u64,
}

/// The location of one sample's stored bytes.
#[derive(Clone, Debug)]
pub struct StoredBytes {
    /// The file.
    pub source: Source,
    /// The offset in the file.
    pub offset: u64,
    /// How many there are.
    pub len: u64,
}

impl StoredBytes {
    /// Replaces `bytes` with them, reusing its capacity.
    ///
    /// # Errors
    /// As for [`Source::read_range_into`].
    pub fn read_into(&self, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.source.read_range_into(self.offset, self.len, bytes)
    }
}

/// A sidecar field of a sample: a WebDataset member that shares its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The extension after the key, without its leading dot: `cls`, `json`, `seg.png`.
    pub extension: Vec<u8>,
    /// The member's bytes.
    pub bytes: Vec<u8>,
}

/// A metadata block of a TBL file of version 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataBlock {
    /// The encoding of the data.
    pub kind: MetadataType,
    /// The data.
    pub data: Vec<u8>,
}

impl MetadataBlock {
    /// Whether it is one of the blocks in which our writers keep names, labels, checksums and
    /// fields.
    pub fn is_extension(&self) -> bool {
        is_extension(self.kind, &self.data)
    }
}

/// Whether a block with this kind and data is an extension block, of whatever version.
pub(crate) fn is_extension(kind: MetadataType, data: &[u8]) -> bool {
    kind == MetadataType::Custom && data.starts_with(&ExtensionHeader::MAGIC)
}

/// The lead of announcements where all samples are read in order: at 100 KB a sample some requests
/// of a megabyte.
const LEAD: u64 = 64;

/// Announces the samples that a caller reading all of them in order needs after sample `index`, if a
/// read is worth that: of objects in stores.
pub fn announce_after(source: &dyn SampleSource, index: u64) {
    to_announce(source, index).for_each(|index| source.will_need(index));
}

/// As [`announce_after`], with the samples' fields.
pub(crate) fn announce_with_fields_after(source: &dyn SampleSource, index: u64) {
    for index in to_announce(source, index) {
        source.will_need(index);
        source.will_need_fields(index);
    }
}

fn to_announce(source: &dyn SampleSource, index: u64) -> Range<u64> {
    if source.location().url().is_none() {
        return 0..0;
    }
    let first = if index == 0 { 1 } else { index + LEAD };
    first..source.sample_count().min(index + LEAD + 1)
}
