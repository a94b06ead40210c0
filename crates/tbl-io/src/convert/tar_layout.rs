//! Samples as members of a TAR archive, so that reading the archive gives the same samples, names,
//! labels and fields back.

mod groups;
mod strays;

use tbl_format::SampleFormat;
use tbl_format::path::RelativePath;

use super::error::{ConvertError, PackError};
use super::pack::{Pack, Sample, Sink, Written};
use super::selection::Located;
use super::{ConvertOptions, Destination, Selection, metadata};
use crate::grouping::{LabelNames, join_base, own_part, split_base};
use crate::label::{LabelField, deciding_field};
use crate::labels::Labels;
use crate::metadata_json::count_own;
use crate::sample::Field;
use crate::tar_writer::{TarOptions, TarWriter};
use crate::writer::{Unstored, count_named};
use groups::{Groups, is_field_of};
use strays::Strays;

/// An archive under construction.
pub(super) struct TarSink {
    writer: TarWriter,
    layout: FileLayout,
}

/// The files that samples become in a TAR archive or a folder, so that a reader finds the same
/// samples, labels and fields again.
#[derive(Debug)]
pub struct FileLayout {
    /// Digits of the names that samples without one get.
    digits: usize,
    /// Labels have to be said, since they do not follow from the class folders.
    writes_labels: bool,
    /// Samples without a label have to say so, or a reader would take class folders for labels.
    marks_unlabelled: bool,
    groups: Groups,
    strays: Strays,
    unstored: Unstored,
}

/// The kind of output. An archive has an order, by which readers tell groups of one name apart; a folder
/// has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Archive,
    Folder,
}

/// A sample on its way into the archive, all but its bytes.
pub(super) struct Member {
    key: Option<Vec<u8>>,
    format: SampleFormat,
    label: MemberLabel,
    fields: Vec<Field>,
    /// Metadata blocks that the sample had.
    metadata_count: u64,
}

/// The label of a sample.
#[derive(Clone, Copy)]
enum MemberLabel {
    Known(Option<i64>),
    /// A field has one that cannot be read: the field says what it said.
    Unreadable,
}

impl TarSink {
    pub(super) fn create(
        selection: &Selection<'_>,
        destination: Destination<'_>,
        options: &ConvertOptions,
    ) -> Result<Self, ConvertError> {
        let ConvertOptions { sync, overwrite, .. } = *options;
        let layout = FileLayout::plan(selection, Place::Archive)?;
        let Destination { stores, location } = destination;
        let mut writer = TarWriter::create_in(stores, location, TarOptions { sync, overwrite })?;
        writer.expect(destination.expected_bytes(selection));
        Ok(Self { writer, layout })
    }
}

impl FileLayout {
    /// Plans the files of all samples of `selection` in a folder.
    ///
    /// # Errors
    /// Labels or fields that cannot be read.
    pub fn of_folder(selection: &Selection<'_>) -> Result<Self, ConvertError> {
        Self::plan(selection, Place::Folder)
    }

    fn plan(selection: &Selection<'_>, place: Place) -> Result<Self, ConvertError> {
        let writes_labels = !labels_are_read_back(selection)?;
        let marks_unlabelled = writes_labels
            && (!written_labels_are_read_back(selection)?
                || selection.has_folders_for_no_labels()?);
        let numbers = 0..selection.sample_count();
        let last = numbers.map(|number| selection.number_of(number)).max().unwrap_or(0);
        let class_names = if writes_labels { selection.class_names().len() as u64 } else { 0 };
        let unlisted = selection.unlisted_box_classes().len() as u64;
        let box_class_names = count_named(selection.box_class_names()) + unlisted;
        let mut unstored = Unstored { class_names, box_class_names, ..Unstored::default() };
        metadata::of_files(selection, |_, _| {
            unstored.metadata_blocks += 1;
            Ok(())
        })?;
        Ok(Self {
            digits: last.to_string().len().max(MIN_DIGITS),
            writes_labels,
            marks_unlabelled,
            groups: Groups::plan(selection, place),
            strays: Strays::default(),
            unstored,
        })
    }

    /// The name of sample `number` of `selection`, which has these bytes. `fields` are its own and
    /// become those to write.
    ///
    /// # Errors
    /// A damaged entry, or a label that cannot be read.
    pub fn place(
        &mut self,
        selection: &Selection<'_>,
        number: u64,
        bytes: &[u8],
        fields: &mut Vec<Field>,
    ) -> Result<Vec<u8>, ConvertError> {
        let Located { source, index, .. } = selection.locate(number);
        let entry = source.entry(index)?;
        let label = match selection.try_label(number) {
            Ok(label) => MemberLabel::Known(label),
            Err(error) => match label_of(entry.key.as_deref().unwrap_or_default(), bytes, fields) {
                Err(_) => MemberLabel::Unreadable,
                Ok(_) => return Err(error.into()),
            },
        };
        let known = if let MemberLabel::Known(label) = label { label } else { None };
        let metadata = metadata::of_sample(source, index, &entry, known)
            .map_err(|error| error.for_sample(index, entry.key.as_deref()))?;
        let metadata_count = count_own(&metadata, entry.key.as_deref(), known);
        let format = entry.format;
        let key = entry.key.map(|key| Self::file_name(&key, format));
        let member = Member { key, format, label, fields: std::mem::take(fields), metadata_count };
        let (name, written) = self.place_member(selection.number_of(number), &member, bytes);
        *fields = written;
        Ok(name)
    }

    /// The name that a sample with this key has in a folder if no other sample has it. The pixels of
    /// a `RAW_U8` sample get the extension `rgb`, because the key has that of the image.
    pub fn file_name(key: &[u8], format: SampleFormat) -> Vec<u8> {
        // A path that leads out of the folder is refused by those who enter it.
        let path =
            RelativePath::new(key).map_or_else(|_| key.to_vec(), |path| path.as_bytes().to_vec());
        if format != SampleFormat::RawU8 {
            return path;
        }
        join_base(group_of(&path), format.extension().as_bytes())
    }

    /// The data of the samples placed so far that the files cannot store.
    pub fn unstored(&self) -> Unstored {
        Unstored { passed_over: self.strays.count(), ..self.unstored }
    }

    fn place_member(
        &mut self,
        number: u64,
        member: &Member,
        bytes: &[u8],
    ) -> (Vec<u8>, Vec<Field>) {
        self.unstored.metadata_blocks += member.metadata_count;
        let numbered;
        let name = match &member.key {
            Some(key) => key,
            None => {
                let digits = self.digits;
                let extension = member.format.extension();
                numbered = format!("{number:0digits$}.{extension}").into_bytes();
                &numbered
            }
        };
        let fields = self.fields_of(name, member, bytes);
        let placed = self.groups.place(name, &fields, number, member.key.is_none());
        self.unstored.renamed += u64::from(placed != *name);
        self.strays.add(&placed, &fields);
        (placed, fields)
    }

    /// The fields to write with the sample called `name`: its own, and its label where they do
    /// not hold it. Fields that a reader would not take for its fields are left out.
    fn fields_of(&mut self, name: &[u8], member: &Member, bytes: &[u8]) -> Vec<Field> {
        let keeps = self.groups.keeps(name);
        let is_field =
            |extension: &[u8]| keeps || is_field_of(name, &join_base(group_of(name), extension));
        let mut fields = member.fields.clone();
        fields.retain(|field| is_field(&field.extension));
        self.unstored.fields += (member.fields.len() - fields.len()) as u64;
        let found = label_of(name, bytes, &fields);
        let MemberLabel::Known(label) = member.label else { return fields };
        // A field of a sample without a label can look like one.
        let is_marked = self.marks_unlabelled || found != Ok(None);
        let label = label.or_else(|| is_marked.then_some(UNLABELLED));
        let missing = label.filter(|_| self.writes_labels && found != Ok(label));
        let Some(label) = missing else { return fields };
        let label_names = label_names(name, &fields);
        let with_old = fields.len();
        fields.retain(|field| label_names.of(&field.extension) != Some(LabelField::Cls));
        self.unstored.fields += (with_old - fields.len()) as u64;
        let own = own_part(base_of(name));
        let extension = if own.is_empty() || has_shared_label(&fields) {
            b"cls".to_vec()
        } else {
            [own, b".cls"].concat()
        };
        if is_field_of(name, &join_base(group_of(name), &extension)) {
            fields.push(Field { extension, bytes: label.to_string().into_bytes() });
        } else {
            self.unstored.labels += 1;
        }
        fields
    }
}

impl Sink for TarSink {
    type Packer = TarPacker;

    fn packer(&self) -> TarPacker {
        TarPacker
    }

    fn write(&mut self, number: u64, member: &Member, bytes: &[u8]) -> Result<(), ConvertError> {
        let (placed, fields) = self.layout.place_member(number, member, bytes);
        self.writer.append(&placed, bytes)?;
        for Field { extension, bytes } in &fields {
            self.writer.append(&join_base(group_of(&placed), extension), bytes)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Written, ConvertError> {
        let summary = self.writer.finish()?;
        Ok(Written {
            file_bytes: summary.bytes,
            compressed_samples: 0,
            row_indexes: 0,
            unstored: self.layout.unstored(),
        })
    }
}

/// The label that means none to writers and loaders alike.
const UNLABELLED: i64 = -1;

/// Nothing to do before the sample's turn comes.
#[derive(Clone, Copy)]
pub(super) struct TarPacker;

impl Pack for TarPacker {
    type Packed = Member;

    fn keeps_compressed(&self) -> bool {
        false
    }

    fn keeps_row_indexes(&self) -> bool {
        false
    }

    fn pack(&self, sample: Sample<'_>) -> Result<Member, PackError> {
        let Sample { prepared, key, label, fields, metadata, .. } = sample;
        if prepared.format == SampleFormat::RawU8 {
            return Err(PackError::RawPixels { target: "a TAR archive" });
        }
        let metadata_count = count_own(&metadata, key, label);
        let key = key.map(<[u8]>::to_vec);
        let format = prepared.format;
        let label = MemberLabel::Known(label);
        Ok(Member { key, format, label, fields, metadata_count })
    }

    fn held_bytes(member: &Member) -> u64 {
        member.fields.iter().map(|field| field.bytes.len() as u64).sum()
    }
}

/// Names that samples without one get have at least this many digits.
const MIN_DIGITS: usize = 8;

/// The part of a path after its last slash.
fn base_of(name: &[u8]) -> &[u8] {
    name.rsplit(|&byte| byte == b'/').next().unwrap_or(name)
}

/// The path up to the first dot of its base name: what a sample and its fields share.
fn group_of(name: &[u8]) -> &[u8] {
    let base = base_of(name);
    let extension = base.len() - split_base(base).0.len();
    name.get(..name.len() - extension).unwrap_or(name)
}

fn label_names<'a>(name: &'a [u8], fields: &[Field]) -> LabelNames<'a> {
    LabelNames::new(base_of(name), fields.iter().map(|field| &*field.extension))
}

/// The kind of label that the sample called `name` can itself hold: `0.cls` without an image.
fn own_label_field(name: &[u8], fields: &[Field]) -> Option<LabelField> {
    label_names(name, fields).of(split_base(base_of(name)).1)
}

/// Whether a field can hold a label for a whole group of files.
fn has_shared_label(fields: &[Field]) -> bool {
    fields.iter().any(|field| LabelField::of(&field.extension).is_some())
}

/// The label that a reader of the archive finds in the sample called `name` with these bytes and in
/// its fields, or the field that has none. The sample comes first, as in
/// [`Grouping::label_fields`](crate::grouping::Grouping::label_fields).
fn label_of(name: &[u8], bytes: &[u8], fields: &[Field]) -> Result<Option<i64>, LabelField> {
    let names = label_names(name, fields);
    let own = own_label_field(name, fields).map(|kind| (kind, bytes));
    let of_field = |field: &'_ Field| names.of(&field.extension);
    let of_fields = fields.iter().filter_map(|field| Some((of_field(field)?, &*field.bytes)));
    match deciding_field(own.into_iter().chain(of_fields)) {
        None => Ok(None),
        Some((kind, bytes)) => kind.parse(bytes).map_err(|_| kind),
    }
}

/// Whether a reader of the archive would find the selection's labels in the names and the fields as
/// they are.
fn labels_are_read_back(selection: &Selection<'_>) -> Result<bool, ConvertError> {
    if selection.is_part() {
        // A shard is read with its siblings or without them, and they have other folders.
        return Ok(false);
    }
    let numbers = || 0..selection.sample_count();
    // Names are at hand; fields have to be read.
    if !are_read_back(selection, numbers().map(|_| Ok(None)))? {
        return Ok(false);
    }
    let mut fields = Vec::new();
    let mut stored = Vec::new();
    let mut bytes = Vec::new();
    for number in numbers() {
        let Located { source, index, .. } = selection.locate(number);
        fields.clear();
        selection.read_fields_where(number, &mut |_, _| true, &mut fields)?;
        let name = source.entry(index).ok().and_then(|entry| entry.key).unwrap_or_default();
        if own_label_field(&name, &fields).is_some() {
            source.read_into(index, &mut bytes)?;
        }
        stored.push(label_of(&name, &bytes, &fields));
    }
    are_read_back(selection, stored.into_iter())
}

/// Whether a reader would find the selection's labels if every sample that has one says so.
fn written_labels_are_read_back(selection: &Selection<'_>) -> Result<bool, ConvertError> {
    let labels = (0..selection.sample_count()).map(|number| selection.locate(number).label);
    are_read_back(selection, labels.map(Ok))
}

/// Whether the selection's labels are those of an archive with these labels in its fields.
fn are_read_back(
    selection: &Selection<'_>,
    stored: impl Iterator<Item = Result<Option<i64>, LabelField>>,
) -> Result<bool, ConvertError> {
    let numbers = || 0..selection.sample_count();
    // A damaged entry will be reported when its turn comes.
    let keys = numbers().map(|number| {
        let Located { source, index, .. } = selection.locate(number);
        source.entry(index).ok().and_then(|entry| entry.key)
    });
    let found = Labels::of_archive(keys.zip(stored))?;
    let is_read_back = |number| {
        if found.is_unreadable(0, number) {
            return selection.try_label(number).is_err();
        }
        selection.locate(number).label == found.label(0, number)
    };
    Ok(numbers().all(is_read_back))
}
