//! A version 2 file's metadata section: our whole-file blocks, found when the file is opened, and
//! the samples' own blocks, found when they are first asked for.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

use tbl_format::FormatError;
use tbl_format::extension::{Extension, Integrity};
use tbl_format::metadata::{Block, BlockHeader, Blocks, MetadataType};

use super::region::Region;
use crate::error::ReadError;
use crate::sample::Field;
use crate::source::Source;

/// One metadata block of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataBlock {
    /// How the data is encoded.
    pub kind: MetadataType,
    /// The data.
    pub data: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Metadata {
    section: Option<Section>,
    class_names: Vec<String>,
}

#[derive(Debug)]
struct Section {
    path: PathBuf,
    region: Region,
    /// Where the samples' own blocks start in the file.
    sample_blocks: u64,
    /// The data of the blocks with sample names, in order of their first sample.
    names: Vec<NameRun>,
    labels: Option<Range<u64>>,
    checksums: Option<Range<u64>>,
    integrity: Option<Integrity>,
    map: OnceLock<BlockMap>,
}

/// The samples `first..first + count`, named in the data at `data` in the file.
#[derive(Debug)]
struct NameRun {
    first: u64,
    count: u64,
    data: Range<u64>,
}

/// Where each sample's blocks are: `(sample, offset in the file)`, sorted, so that a sample's
/// blocks stay in stored order.
#[derive(Debug)]
struct BlockMap {
    blocks: Vec<(u64, u64)>,
    /// Where and why the walk over the blocks ended early.
    damage: Option<(u64, FormatError)>,
}

impl Metadata {
    pub(super) fn none() -> Self {
        Self { section: None, class_names: Vec::new() }
    }

    /// Finds the whole-file blocks at the front of the section.
    pub(super) fn open(
        source: &Source,
        range: Range<u64>,
        sample_count: u64,
    ) -> Result<Self, ReadError> {
        let region = Region::open(source, range.start, range.end - range.start)?;
        let mut section = Section {
            path: source.path().to_path_buf(),
            region,
            sample_blocks: range.start,
            names: Vec::new(),
            labels: None,
            checksums: None,
            integrity: None,
            map: OnceLock::new(),
        };
        let mut class_names = Vec::new();
        while let Some(block) = section.whole_file_block()? {
            let data = block.data.clone();
            let extension = section.region.with(data.start, data.end - data.start, |bytes| {
                Extension::parse(bytes)
                    .and_then(|extension| Found::from_extension(extension, bytes, sample_count))
            })?;
            let found = extension.map_err(|defect| section.error(block.offset, defect))?;
            match found {
                Found::Nothing => {}
                Found::ClassNames(names) => class_names = names,
                Found::Names { first, count } => section.names.push(NameRun { first, count, data }),
                Found::Labels => section.labels = Some(data),
                Found::Checksums => section.checksums = Some(data),
                Found::Integrity(integrity) => section.integrity = Some(integrity),
            }
            section.sample_blocks = block.data.end;
        }
        section.names.sort_by_key(|run| run.first);
        Ok(Self { section: Some(section), class_names })
    }

    pub(super) fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// CRC-32C of the index as our writers store it.
    pub(super) fn index_checksum(&self) -> Option<u32> {
        Some(self.section.as_ref()?.integrity?.index)
    }

    /// CRC-32C of a sample as our writers store it.
    pub(super) fn sample_checksum(&self, index: u64) -> Result<Option<u32>, ReadError> {
        let Some(section) = &self.section else { return Ok(None) };
        section.element(section.checksums.as_ref(), index, |extension, position| {
            if let Extension::Checksums(list) = extension { list.crc32c(position) } else { None }
        })
    }

    pub(super) fn key(&self, index: u64) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(self.key_and_label(index)?.0)
    }

    /// Name and label of sample `index`: from our whole-file blocks, else from the first JSON
    /// block of the sample.
    pub(super) fn key_and_label(
        &self,
        index: u64,
    ) -> Result<(Option<Vec<u8>>, Option<i64>), ReadError> {
        let Some(section) = &self.section else { return Ok((None, None)) };
        let mut key = section.name(index)?;
        let mut label =
            section.element(section.labels.as_ref(), index, |extension, position| {
                if let Extension::Labels(list) = extension { list.label(position) } else { None }
            })?;
        if section.names.is_empty() || section.labels.is_none() {
            let json = section.json(index)?;
            if section.names.is_empty() {
                key = json.key;
            }
            if section.labels.is_none() {
                label = json.label;
            }
        }
        Ok((key, label))
    }

    pub(super) fn for_each_block(
        &self,
        index: u64,
        take: impl FnMut(MetadataType, &[u8]) -> Result<(), FormatError>,
    ) -> Result<(), ReadError> {
        match &self.section {
            Some(section) => section.for_each_block(index, take),
            None => Ok(()),
        }
    }

    /// Appends the sidecar fields of sample `index`, each checked against its CRC-32C.
    pub(super) fn read_fields(&self, index: u64, fields: &mut Vec<Field>) -> Result<(), ReadError> {
        self.for_each_block(index, |kind, data| {
            if kind != MetadataType::Custom {
                return Ok(());
            }
            if let Some(Extension::Field(field)) = Extension::parse(data)? {
                Extension::verify(data)?;
                let (extension, bytes) = (field.extension.to_vec(), field.bytes.to_vec());
                fields.push(Field { extension, bytes });
            }
            Ok(())
        })
    }

    /// Walks the whole section and checks every checksum in it.
    pub(super) fn verify(&self) -> Result<(), ReadError> {
        let Some(section) = &self.section else { return Ok(()) };
        let end = section.region.offset() + section.region.len();
        let mut offset = section.region.offset();
        while let Some(block) = section.block_at(offset)? {
            if block.kind == MetadataType::Custom {
                let (start, len) = (block.data.start, block.data.end - block.data.start);
                section
                    .region
                    .with(start, len, Extension::verify)?
                    .map_err(|defect| section.error(block.offset, defect))?;
            }
            offset = block.data.end;
        }
        let Some(integrity) = section.integrity else { return Ok(()) };
        let covered = integrity.sample_metadata_bytes;
        let (start, what) = (section.sample_blocks, "sample metadata");
        if covered != end - start {
            let count = FormatError::Count { what, expected: end - start, found: covered };
            return Err(section.error(start, count));
        }
        let (stored, computed) = (integrity.sample_metadata, section.region.checksum_from(start)?);
        if stored == computed {
            return Ok(());
        }
        Err(section.error(start, FormatError::Crc32c { what, stored, computed }))
    }
}

/// A block's place in the file.
struct BlockPlace {
    offset: u64,
    sample_index: u64,
    kind: MetadataType,
    data: Range<u64>,
}

/// What a whole-file block contributes.
enum Found {
    Nothing,
    ClassNames(Vec<String>),
    Names { first: u64, count: u64 },
    Labels,
    Checksums,
    Integrity(Integrity),
}

impl Found {
    fn from_extension(
        extension: Option<Extension<'_>>,
        data: &[u8],
        sample_count: u64,
    ) -> Result<Self, FormatError> {
        let check_count = |what, found: usize| {
            let found = found as u64;
            if found == sample_count {
                return Ok(());
            }
            Err(FormatError::Count { what, expected: sample_count, found })
        };
        Ok(match extension {
            Some(Extension::ClassNames(names)) => {
                // Small, and used as they are: worth reading twice at opening.
                Extension::verify(data)?;
                Self::ClassNames(names.to_vec())
            }
            Some(Extension::SampleNames(names)) => {
                Self::Names { first: names.first_sample(), count: names.len() as u64 }
            }
            Some(Extension::Labels(labels)) => {
                check_count("label list", labels.len())?;
                Self::Labels
            }
            Some(Extension::Checksums(checksums)) => {
                check_count("checksum list", checksums.len())?;
                Self::Checksums
            }
            Some(Extension::Integrity(integrity)) => Self::Integrity(integrity),
            _ => Self::Nothing,
        })
    }
}

impl Section {
    /// The block that starts at `offset` in the file; `None` at the section's end.
    fn block_at(&self, offset: u64) -> Result<Option<BlockPlace>, ReadError> {
        let end = self.region.offset() + self.region.len();
        let left = end.saturating_sub(offset);
        if left == 0 {
            return Ok(None);
        }
        let header_bytes = BlockHeader::SIZE as u64;
        let place = self.region.with(offset, left.min(header_bytes), |bytes| {
            let header = BlockHeader::parse(bytes)?;
            let need = header_bytes + u64::from(header.data_bytes());
            if need > left {
                return Err(FormatError::Truncated { what: "metadata block", need, have: left });
            }
            Ok(BlockPlace {
                offset,
                sample_index: header.sample_index(),
                kind: header.kind(),
                data: offset + header_bytes..offset + need,
            })
        })?;
        place.map(Some).map_err(|defect| self.error(offset, defect))
    }

    /// The next of the whole-file blocks at the front of the section.
    fn whole_file_block(&self) -> Result<Option<BlockPlace>, ReadError> {
        let block = self.block_at(self.sample_blocks)?;
        Ok(block.filter(|block| {
            block.sample_index == BlockHeader::WHOLE_FILE && block.kind == MetadataType::Custom
        }))
    }

    fn name(&self, index: u64) -> Result<Option<Vec<u8>>, ReadError> {
        let after = self.names.partition_point(|run| run.first <= index);
        let run = after.checked_sub(1).and_then(|at| self.names.get(at));
        let Some(run) = run.filter(|run| index - run.first < run.count) else { return Ok(None) };
        let (start, len) = (run.data.start, run.data.end - run.data.start);
        self.region
            .with(start, len, |data| match Extension::parse(data)? {
                Some(Extension::SampleNames(names)) => Ok(names.name(index)?.map(<[u8]>::to_vec)),
                _ => Ok(None),
            })?
            .map_err(|defect| self.error(start, defect))
    }

    /// Element `index` of a per-sample list whose block data is at `data`.
    fn element<T>(
        &self,
        data: Option<&Range<u64>>,
        index: u64,
        element: impl FnOnce(Extension<'_>, usize) -> Option<T>,
    ) -> Result<Option<T>, ReadError> {
        let (Some(data), Ok(position)) = (data, usize::try_from(index)) else { return Ok(None) };
        self.region
            .with(data.start, data.end - data.start, |bytes| {
                let extension = Extension::parse(bytes)?;
                Ok(extension.and_then(|extension| element(extension, position)))
            })?
            .map_err(|defect| self.error(data.start, defect))
    }

    /// What the first JSON block of sample `index` says.
    fn json(&self, index: u64) -> Result<JsonFacts, ReadError> {
        let mut facts = None;
        self.for_each_block(index, |kind, data| {
            if kind == MetadataType::Json && facts.is_none() {
                facts = Some(JsonFacts::parse(data));
            }
            Ok(())
        })?;
        Ok(facts.unwrap_or_default())
    }

    fn for_each_block(
        &self,
        index: u64,
        mut take: impl FnMut(MetadataType, &[u8]) -> Result<(), FormatError>,
    ) -> Result<(), ReadError> {
        let map = self.map()?;
        if let Some((offset, defect)) = &map.damage {
            return Err(self.error(*offset, defect.clone()));
        }
        let first = map.blocks.partition_point(|&(sample, _)| sample < index);
        let blocks = map.blocks.get(first..).unwrap_or_default();
        for &(_, offset) in blocks.iter().take_while(|&&(sample, _)| sample == index) {
            let Some(block) = self.block_at(offset)? else { continue };
            let (start, len) = (block.data.start, block.data.end - block.data.start);
            self.region
                .with(start, len, |data| take(block.kind, data))?
                .map_err(|defect| self.error(offset, defect))?;
        }
        Ok(())
    }

    /// The map of all samples' blocks, made on first use.
    fn map(&self) -> Result<&BlockMap, ReadError> {
        if let Some(map) = self.map.get() {
            return Ok(map);
        }
        let start = self.sample_blocks;
        let len = self.region.offset() + self.region.len() - start;
        let map = self.region.with(start, len, |bytes| {
            let mut map = BlockMap { blocks: Vec::new(), damage: None };
            let mut blocks = Blocks::new(bytes);
            loop {
                let offset = start + blocks.offset();
                match blocks.next() {
                    Some(Ok(Block { sample_index, .. })) => map.blocks.push((sample_index, offset)),
                    Some(Err(defect)) => map.damage = Some((offset, defect)),
                    None => break,
                }
            }
            map.blocks.sort_unstable();
            map
        })?;
        Ok(self.map.get_or_init(|| map))
    }

    fn error(&self, offset: u64, source: FormatError) -> ReadError {
        ReadError::Format { path: self.path.clone(), offset, source }
    }
}

/// What is used of a sample's JSON metadata. The original's examples say `name`, ours `key`.
#[derive(Debug, Default)]
struct JsonFacts {
    key: Option<Vec<u8>>,
    label: Option<i64>,
}

impl JsonFacts {
    /// Metadata that is not a JSON object is somebody else's and says nothing to us.
    fn parse(data: &[u8]) -> Self {
        let Ok(serde_json::Value::Object(object)) = serde_json::from_slice(data) else {
            return Self::default();
        };
        let name = object.get("key").or_else(|| object.get("name"));
        let key = name.and_then(|name| name.as_str()).map(|name| name.as_bytes().to_vec());
        Self { key, label: object.get("label").and_then(serde_json::Value::as_i64) }
    }
}
