//! A version 2 file's metadata: our whole-file blocks, found when the file is opened, and the
//! samples' own blocks, found when they are first asked for.

use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

use tbl_format::FormatError;
use tbl_format::extension::Extension;
use tbl_format::metadata::{BlockHeader, MetadataType};

use super::block_map::BlockMap;
use super::region::Region;
use super::section::{Defect, Directory, Names, totals, verify, verify_integrity};
use super::{Damage, MetadataTotals};
use crate::error::ReadError;
use crate::json::JsonFacts;
use crate::label::LabelDefect;
use crate::location::Location;
use crate::metadata_json::sample_json;
use crate::sample::Field;
use crate::source::Source;

/// The metadata section of a file, if it has one.
#[derive(Debug)]
pub(super) struct Metadata(Option<Section>);

#[derive(Debug)]
struct Section {
    location: Location,
    sample_count: u64,
    region: Region,
    directory: Box<Directory>,
    map: OnceLock<BlockMap>,
    /// Whether blocks that no other checksum covers are compared with what a writer makes.
    is_strict: bool,
    /// Whether the CRC-32C of the whole section is right, once that is known.
    whole: OnceLock<Result<(), Defect>>,
}

/// Scans compute the CRC-32C of the whole section up to this many bytes per sample, where they would
/// otherwise look at the blocks of each.
const SCAN_BYTES_PER_SAMPLE: u64 = 256;

impl Metadata {
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Opens the section. With [`Damage::LeaveOut`], damage that can be left out goes to `defects`.
    pub(super) fn open(
        source: &Source,
        range: Range<u64>,
        sample_count: u64,
        damage: Damage,
        defects: &mut Vec<FormatError>,
    ) -> Result<Self, ReadError> {
        let region = Region::open(source, range.start, range.end - range.start)?;
        let mut section = Section {
            location: source.location().clone(),
            sample_count,
            region,
            directory: Box::default(),
            map: OnceLock::new(),
            is_strict: false,
            whole: OnceLock::new(),
        };
        let directory = section.read(|bytes| Directory::parse(bytes, sample_count))?;
        section.directory = Box::new(directory);
        section.is_strict = damage == Damage::Refuse && section.directory.integrity.is_some();
        for defect in std::mem::take(&mut section.directory.defects) {
            match (section.error(defect), damage) {
                (ReadError::Format { source, .. }, Damage::LeaveOut) => defects.push(source),
                (error, _) => return Err(error),
            }
        }
        Ok(Self(Some(section)))
    }

    /// The place of the section in the file.
    pub(super) fn range(&self) -> Option<Range<u64>> {
        let region = &self.0.as_ref()?.region;
        Some(region.offset()..region.offset() + region.len())
    }

    pub(super) fn names(&self, of: impl Fn(&Directory) -> &[String]) -> &[String] {
        self.0.as_ref().map_or(&[], |section| of(&section.directory))
    }

    /// CRC-32C of the index as our writers store it.
    pub(super) fn index_checksum(&self) -> Option<u32> {
        Some(self.0.as_ref()?.directory.integrity?.0.index)
    }

    /// CRC-32C of a sample as our writers store it.
    pub(super) fn sample_checksum(&self, index: u64) -> Result<Option<u32>, ReadError> {
        let of = |section: &Section| section.read(|bytes| section.directory.checksum(bytes, index));
        self.0.as_ref().map_or(Ok(None), of)
    }

    /// The dictionary of the file's Zstandard frames, if it has one.
    pub(super) fn dictionary(&self) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(section) = &self.0 else { return Ok(None) };
        section.read(|bytes| Ok(section.directory.dictionary(bytes)?.map(<[u8]>::to_vec)))
    }

    /// Replaces `out` with the row index of sample `index`, if there is one, checked against the
    /// sample's CRC-32C: the one given, or the one stored.
    pub(super) fn row_index_into(
        &self,
        index: u64,
        sample_crc32c: Option<u32>,
        out: &mut Vec<u8>,
    ) -> Result<bool, ReadError> {
        let Some(section) = &self.0 else { return Ok(false) };
        section.read(|bytes| {
            let found = section.directory.row_index(bytes, index, sample_crc32c)?;
            if let Some(row_index) = found {
                out.clear();
                out.extend_from_slice(row_index);
            }
            Ok(found.is_some())
        })
    }

    /// How many samples have a row index, and what all of them occupy in bytes.
    pub(super) fn row_index_totals(&self) -> Result<(u64, u64), ReadError> {
        let Some(section) = &self.0 else { return Ok((0, 0)) };
        section.read(|bytes| section.directory.row_index_totals(bytes))
    }

    /// The labels of all samples, as far as they do not stand in JSON blocks.
    pub(super) fn labels(&self) -> Result<Option<Vec<i64>>, ReadError> {
        let Some(section) = &self.0 else { return Ok(Some(Vec::new())) };
        section.read(|bytes| section.directory.labels(bytes))
    }

    /// Name and label of sample `index`: from our whole-file blocks, else from the first JSON
    /// block of the sample.
    pub(super) fn key_and_label(
        &self,
        index: u64,
        has_blocks: bool,
    ) -> Result<(Option<Vec<u8>>, Option<i64>), ReadError> {
        let Some(section) = &self.0 else { return Ok((None, None)) };
        section.key_and_label(index, has_blocks)
    }

    /// The name of sample `index` as far as it can be saved: from the lists of names, or where they
    /// are damaged from the first JSON block of the sample, which has no checksum itself.
    pub(super) fn saved_key(&self, index: u64) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(section) = &self.0 else { return Ok(None) };
        let directory = &section.directory;
        let listed = section.read(|bytes| Ok(directory.name(bytes, index)?.map(<[u8]>::to_vec)));
        match listed {
            Ok(key) if key.is_some() || directory.has_names() => Ok(key),
            Ok(_) => Ok(section.json(index)?.key),
            // JSON says bytes that are not UTF-8 in other ways.
            Err(error) => match section.json(index)?.key {
                Some(key) if !key.contains(&b'\\') => Ok(Some(key)),
                _ => Err(error),
            },
        }
    }

    /// The label of sample `index` as far as a checksum covers it.
    pub(super) fn saved_label(&self, index: u64) -> Result<Option<i64>, ReadError> {
        let Some(section) = &self.0 else { return Ok(None) };
        if section.directory.has_labels() {
            return section.read(|bytes| section.directory.label(bytes, index));
        }
        let label = section.json(index)?.label.unwrap_or_default();
        if label.is_some() {
            section.check_whole()?;
        }
        Ok(label)
    }

    /// Calls `read` with the lists of names, or with `None` if
    /// [`key_and_label`](Self::key_and_label) must find each name: if blocks of samples can have
    /// names that the lists have not, or labels may be in damaged blocks.
    pub(super) fn with_names<R>(
        &self,
        read: impl FnOnce(Option<NameLists<'_>>) -> Result<R, ReadError>,
    ) -> Result<R, ReadError> {
        let Some(section) = &self.0 else { return read(Some(NameLists(None))) };
        let directory = &section.directory;
        let is_sound =
            !(directory.has_names() && directory.has_labels()) && section.has_sound_blocks()?;
        let is_all_listed = is_sound && section.is_strict && !section.map()?.has_other_json();
        section.read(|bytes| {
            let is_complete =
                directory.has_names() || is_all_listed || !directory.has_blocks(bytes);
            let is_readable =
                (is_sound || directory.has_labels()) && directory.label(bytes, 0).is_ok();
            let names = (is_complete && is_readable).then(|| Names::new(directory, bytes));
            Ok(read(names.map(|names| NameLists(Some(NamesOf { section, names, is_all_listed })))))
        })?
    }

    /// Whether the label in the JSON block of sample `index`, if there is one, can be read. A label
    /// in the file's list makes it irrelevant.
    pub(super) fn check_label(
        &self,
        index: u64,
        has_blocks: bool,
    ) -> Result<Result<(), LabelDefect>, ReadError> {
        match &self.0 {
            Some(section) if !section.is_listed(index)? => {
                section.key_and_label(index, has_blocks)?;
                Ok(section.json(index)?.label.map(drop))
            }
            Some(_) | None => Ok(Ok(())),
        }
    }

    /// Checks that the name of sample `index`, if it has one, stays inside a folder.
    pub(super) fn check_name(&self, index: u64) -> Result<(), ReadError> {
        let Some(section) = &self.0 else { return Ok(()) };
        if section.directory.has_names() {
            return section.read(|bytes| section.directory.check_name(bytes, index));
        }
        section.json(index).map(drop)
    }

    /// Calls `take` with kind and data of each block of sample `index`, in stored order.
    pub(super) fn for_each_block(
        &self,
        index: u64,
        take: impl FnMut(MetadataType, &[u8]) -> Result<ControlFlow<()>, FormatError>,
    ) -> Result<(), ReadError> {
        self.0.as_ref().map_or(Ok(()), |section| section.for_each_block(index, take))
    }

    /// Calls `take` with kind and data of each block of the whole file, ours left out.
    pub(super) fn for_each_file_block(
        &self,
        mut take: impl FnMut(MetadataType, &[u8]) -> Result<ControlFlow<()>, FormatError>,
    ) -> Result<(), ReadError> {
        let Some(section) = &self.0 else { return Ok(()) };
        let map = section.map()?;
        section.read(|bytes| section.directory.for_each_file_block(bytes, map, &mut take))
    }

    /// How many bytes of the section describe sample `index`.
    pub(super) fn block_bytes(&self, index: u64) -> Result<u64, ReadError> {
        let mut sum = 0_u64;
        self.for_each_block(index, |_, data| {
            sum = sum.saturating_add((BlockHeader::SIZE + data.len()) as u64);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(sum)
    }

    /// How many blocks belong to no sample, or are of a later version of the format.
    pub(super) fn unreachable_blocks(&self) -> Result<u64, ReadError> {
        let Some(section) = &self.0 else { return Ok(0) };
        let map = section.map()?;
        section.read(|bytes| section.directory.unreachable_blocks(bytes, map))
    }

    /// Counts the blocks that are not ours.
    pub(super) fn totals(&self) -> Result<MetadataTotals, ReadError> {
        let Some(section) = &self.0 else { return Ok(MetadataTotals::default()) };
        section.read(|bytes| totals(bytes, section.sample_count))
    }

    /// Checks that no field of sample `index` can have been lost by damage.
    pub(super) fn check_blocks(&self, index: u64, has_blocks: bool) -> Result<(), ReadError> {
        let Some(section) = self.0.as_ref().filter(|section| section.is_strict) else {
            return Ok(());
        };
        let (key, label) = section.listed(index)?;
        section.check_blocks(index, has_blocks, key.as_deref(), label).map(drop)
    }

    /// Checks the CRC-32C of the whole section, once, if there is one.
    pub(super) fn check(&self) -> Result<(), ReadError> {
        match self.0.as_ref().filter(|section| section.is_strict) {
            Some(section) => section.check_whole(),
            None => Ok(()),
        }
    }

    /// Checks every field of sample `index` against its CRC-32C.
    pub(super) fn check_fields(&self, index: u64) -> Result<(), ReadError> {
        self.for_each_block(index, |kind, data| {
            if kind == MetadataType::Custom {
                Extension::verify(data)?;
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Appends those sidecar fields of sample `index` that `is_wanted` says of their extension and
    /// size, each checked against its CRC-32C.
    pub(super) fn read_fields_where(
        &self,
        index: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        self.for_each_block(index, |kind, data| {
            if kind != MetadataType::Custom {
                return Ok(ControlFlow::Continue(()));
            }
            if let Some(Extension::Field(field)) = Extension::parse(data)?
                && is_wanted(field.extension, field.bytes.len() as u64)
            {
                Extension::verify(data)?;
                let extension = field.extension.to_vec();
                let bytes = field.bytes.to_vec();
                fields.push(Field { extension, bytes });
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Walks the whole section and checks every checksum in it.
    pub(super) fn verify(&self) -> Result<(), ReadError> {
        let Some(section) = &self.0 else { return Ok(()) };
        section.read(|bytes| verify(bytes, &section.directory))
    }
}

/// The names of all samples. Without a section, samples have no names.
pub(super) struct NameLists<'a>(Option<NamesOf<'a>>);

struct NamesOf<'a> {
    section: &'a Section,
    names: Names<'a>,
    /// Whether a sample that the lists have no name for has none.
    is_all_listed: bool,
}

impl<'a> NameLists<'a> {
    /// The name of sample `index`: fastest in ascending order.
    pub(super) fn name(
        &mut self,
        index: u64,
        has_blocks: bool,
    ) -> Result<Option<&'a [u8]>, ReadError> {
        let Some(of) = &mut self.0 else { return Ok(None) };
        let name = of.names.name(index).map_err(|defect| of.section.error(defect))?;
        if name.is_none() && of.section.is_strict && !of.is_all_listed {
            of.section.key_and_label(index, has_blocks)?;
        }
        Ok(name)
    }
}

impl Section {
    /// Calls `read` with the whole section and says which file and where its defect is in.
    fn read<T>(&self, read: impl FnOnce(&[u8]) -> Result<T, Defect>) -> Result<T, ReadError> {
        let start = self.region.offset();
        self.region.with(start, self.region.len(), read)?.map_err(|defect| self.error(defect))
    }

    /// A defect of the section as one of the file.
    fn error(&self, defect: Defect) -> ReadError {
        let location = self.location.clone();
        match defect {
            Defect::Format { offset, source } => {
                ReadError::Format { location, offset: self.region.offset() + offset, source }
            }
            Defect::Limit { what, limit, need } => ReadError::Limit { location, what, limit, need },
        }
    }

    /// Whether the file's list of labels has one for sample `index`.
    fn is_listed(&self, index: u64) -> Result<bool, ReadError> {
        Ok(self.read(|bytes| self.directory.label(bytes, index))?.is_some())
    }

    /// Name and label of sample `index` in our lists.
    fn listed(&self, index: u64) -> Result<(Option<Vec<u8>>, Option<i64>), ReadError> {
        self.read(|bytes| {
            let key = self.directory.name(bytes, index)?.map(<[u8]>::to_vec);
            Ok((key, self.directory.label(bytes, index)?))
        })
    }

    fn key_and_label(
        &self,
        index: u64,
        has_blocks: bool,
    ) -> Result<(Option<Vec<u8>>, Option<i64>), ReadError> {
        let has_names = self.directory.has_names();
        let has_labels = self.directory.has_labels();
        let (mut key, mut label) = self.listed(index)?;
        let is_complete = has_labels && key.is_some();
        let is_plain = !is_complete
            && self.is_strict
            && self.check_blocks(index, has_blocks, key.as_deref(), label)?;
        if is_plain || (has_names && has_labels) {
            return Ok((key, label));
        }
        let json = self.json(index)?;
        if !has_names {
            key = json.key;
        }
        if !has_labels {
            label = json.label.unwrap_or_default();
        }
        Ok((key, label))
    }

    /// Checks the blocks of sample `index`, which has this name and this label in our lists, and
    /// blocks if its index entry says so. Returns whether they are those that our writers make for
    /// this name and label: then nothing else can have been there. Otherwise the CRC-32C of the
    /// whole section decides.
    fn check_blocks(
        &self,
        index: u64,
        has_blocks: bool,
        key: Option<&[u8]>,
        label: Option<i64>,
    ) -> Result<bool, ReadError> {
        let mut block_count = 0_u64;
        let mut is_plain = true;
        self.for_each_block(index, |kind, data| {
            is_plain = if block_count == 0 {
                kind == MetadataType::Json && data == sample_json(key, label).as_bytes()
            } else {
                kind == MetadataType::Custom
                    && matches!(Extension::parse(data), Ok(Some(Extension::Field(_))))
            };
            block_count += 1;
            Ok(if is_plain { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        is_plain &= block_count > 0 || !(has_blocks || key.is_some() || label.is_some());
        if !is_plain {
            self.check_whole()?;
        }
        Ok(is_plain)
    }

    /// Checks the CRC-32C of the whole section, once.
    fn check_whole(&self) -> Result<(), ReadError> {
        let checked = match self.whole.get() {
            Some(checked) => checked,
            None => {
                let checked = self.read(|bytes| Ok(verify_integrity(bytes, &self.directory)))?;
                self.whole.get_or_init(|| checked)
            }
        };
        checked.clone().map_err(|defect| self.error(defect))
    }

    /// Whether nothing is wrong with the blocks of samples, as far as that is known without looking
    /// at those of each.
    fn has_sound_blocks(&self) -> Result<bool, ReadError> {
        if !self.is_strict {
            return Ok(self.map()?.is_whole());
        }
        let limit = self.sample_count.saturating_mul(SCAN_BYTES_PER_SAMPLE);
        if self.region.len() > limit {
            return Ok(false);
        }
        match self.check_whole() {
            Ok(()) => Ok(self.map()?.is_whole()),
            Err(error) if error.is_damage() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The content of the first JSON block of sample `index`.
    fn json(&self, index: u64) -> Result<JsonFacts, ReadError> {
        let mut facts = JsonFacts::default();
        self.for_each_block(index, |kind, data| {
            if kind != MetadataType::Json {
                return Ok(ControlFlow::Continue(()));
            }
            facts = JsonFacts::parse(data);
            facts.key.as_deref().map_or(Ok(()), FormatError::check_sample_name)?;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(facts)
    }

    fn for_each_block(
        &self,
        index: u64,
        take: impl FnMut(MetadataType, &[u8]) -> Result<ControlFlow<()>, FormatError>,
    ) -> Result<(), ReadError> {
        let map = self.map()?;
        self.read(|bytes| map.for_each(bytes, index, take))
    }

    /// The map of all samples' blocks, made on first use.
    fn map(&self) -> Result<&BlockMap, ReadError> {
        if let Some(map) = self.map.get() {
            return Ok(map);
        }
        let map = self.read(|bytes| {
            let start = self.directory.sample_blocks;
            Ok(BlockMap::new(bytes, start, self.sample_count, self.is_strict))
        })?;
        Ok(self.map.get_or_init(|| map))
    }
}
