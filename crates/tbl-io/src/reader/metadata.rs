//! A version 2 file's metadata: our whole-file blocks, found when the file is opened, and the
//! samples' own blocks, found when they are first asked for.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::OnceLock;

use tbl_format::FormatError;
use tbl_format::extension::Extension;
use tbl_format::metadata::{BlockHeader, MetadataType};

use super::MetadataTotals;
use super::region::Region;
use super::section::{BlockMap, Defect, Directory, Names, totals, verify};
use crate::error::ReadError;
use crate::json::JsonFacts;
use crate::label::LabelDefect;
use crate::sample::Field;
use crate::source::Source;

/// The metadata section of a file, if it has one.
#[derive(Debug)]
pub(super) struct Metadata(Option<Section>);

#[derive(Debug)]
struct Section {
    path: PathBuf,
    sample_count: u64,
    region: Region,
    directory: Directory,
    map: OnceLock<BlockMap>,
}

impl Metadata {
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) fn open(
        source: &Source,
        range: Range<u64>,
        sample_count: u64,
    ) -> Result<Self, ReadError> {
        let region = Region::open(source, range.start, range.end - range.start)?;
        let path = source.path().to_path_buf();
        let directory = Directory::default();
        let mut section = Section { path, sample_count, region, directory, map: OnceLock::new() };
        section.directory = section.read(|bytes| Directory::parse(bytes, sample_count))?;
        Ok(Self(Some(section)))
    }

    pub(super) fn class_names(&self) -> &[String] {
        self.0.as_ref().map_or(&[], |section| &section.directory.class_names)
    }

    /// CRC-32C of the index as our writers store it.
    pub(super) fn index_checksum(&self) -> Option<u32> {
        Some(self.0.as_ref()?.directory.integrity?.0.index)
    }

    /// CRC-32C of a sample as our writers store it.
    pub(super) fn sample_checksum(&self, index: u64) -> Result<Option<u32>, ReadError> {
        let Some(section) = &self.0 else { return Ok(None) };
        section.read(|bytes| section.directory.checksum(bytes, index))
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
    ) -> Result<(Option<Vec<u8>>, Option<i64>), ReadError> {
        let Some(section) = &self.0 else { return Ok((None, None)) };
        let directory = &section.directory;
        let (mut key, mut label) = section.read(|bytes| {
            let key = directory.name(bytes, index)?.map(<[u8]>::to_vec);
            Ok((key, directory.label(bytes, index)?))
        })?;
        if !directory.has_names() || !directory.has_labels() {
            let json = section.json(index)?;
            if !directory.has_names() {
                key = json.key;
            }
            if !directory.has_labels() {
                label = json.label.unwrap_or_default();
            }
        }
        Ok((key, label))
    }

    /// Calls `read` with the lists of names, or with `None` where
    /// [`key_and_label`](Self::key_and_label) has to look for each: names stand in blocks of the
    /// samples, or labels are looked for in blocks that are damaged.
    pub(super) fn with_names<R>(
        &self,
        read: impl FnOnce(Option<NameLists<'_>>) -> Result<R, ReadError>,
    ) -> Result<R, ReadError> {
        let Some(section) = &self.0 else { return read(Some(NameLists(None))) };
        let is_whole = section.directory.has_labels() || section.map()?.is_whole();
        section.read(|bytes| {
            let names = Names::new(&section.directory, bytes).filter(|_| is_whole);
            Ok(read(names.map(|names| NameLists(Some((section, names))))))
        })?
    }

    /// Whether the label in the JSON block of sample `index`, if there is one, can be read. A label
    /// in the file's list makes it irrelevant.
    pub(super) fn check_label(&self, index: u64) -> Result<Result<(), LabelDefect>, ReadError> {
        match &self.0 {
            Some(section) if !section.is_listed(index)? => Ok(section.json(index)?.label.map(drop)),
            Some(_) | None => Ok(Ok(())),
        }
    }

    /// Checks that the name of sample `index`, if it has one, stays inside a folder.
    pub(super) fn check_name(&self, index: u64) -> Result<(), ReadError> {
        let Some(section) = &self.0 else { return Ok(()) };
        if section.directory.has_names() {
            return section.read(|bytes| section.directory.name(bytes, index).map(drop));
        }
        section.json(index).map(drop)
    }

    /// Calls `take` with kind and data of each block of sample `index`, in stored order.
    pub(super) fn for_each_block(
        &self,
        index: u64,
        take: impl FnMut(MetadataType, &[u8]) -> Result<ControlFlow<()>, FormatError>,
    ) -> Result<(), ReadError> {
        match &self.0 {
            Some(section) => section.for_each_block(index, take),
            None => Ok(()),
        }
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
                let (extension, bytes) = (field.extension.to_vec(), field.bytes.to_vec());
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
pub(super) struct NameLists<'a>(Option<(&'a Section, Names<'a>)>);

impl<'a> NameLists<'a> {
    /// The name of sample `index`: fastest in ascending order.
    pub(super) fn name(&mut self, index: u64) -> Result<Option<&'a [u8]>, ReadError> {
        let Some((section, names)) = &mut self.0 else { return Ok(None) };
        names.name(index).map_err(|defect| section.error(defect))
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
        let path = self.path.clone();
        match defect {
            Defect::Format { offset, source } => {
                ReadError::Format { path, offset: self.region.offset() + offset, source }
            }
            Defect::Limit { what, limit, need } => ReadError::Limit { path, what, limit, need },
        }
    }

    /// Whether the file's list of labels has one for sample `index`.
    fn is_listed(&self, index: u64) -> Result<bool, ReadError> {
        Ok(self.read(|bytes| self.directory.label(bytes, index))?.is_some())
    }

    /// What the first JSON block of sample `index` says.
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
            Ok(BlockMap::new(bytes, self.directory.sample_blocks, self.sample_count))
        })?;
        Ok(self.map.get_or_init(|| map))
    }
}
