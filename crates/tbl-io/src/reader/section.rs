//! A metadata section as bytes: where our whole-file blocks are in it, and looking things up in
//! them. Offsets count from the section's first byte.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

use tbl_format::FormatError;
use tbl_format::checksum::crc32c;
use tbl_format::extension::{Extension, Integrity, NO_LABEL, SampleNames};
use tbl_format::metadata::{Block, BlockHeader, Blocks, MetadataType};

use super::MetadataTotals;
use super::block_limits::SPARE_BLOCKS;
use super::block_map::{BlockMap, blocks_from};
use super::order::{Order, Trust};
use crate::sample::is_extension;

/// Class names allowed, 24 bytes of memory each in addition to the text.
const MAX_CLASSES: u64 = 1 << 22;

/// A defect of a section.
#[derive(Clone, Debug)]
pub(super) enum Defect {
    /// The block at `offset` is not as it should be.
    Format { offset: u64, source: FormatError },
    /// There is more of something than a reader can afford.
    Limit { what: &'static str, limit: u64, need: u64 },
}

pub(super) fn at(offset: u64) -> impl FnOnce(FormatError) -> Defect {
    move |source| Defect::Format { offset, source }
}

pub(super) fn check_limit(what: &'static str, need: u64, limit: u64) -> Result<(), Defect> {
    if need <= limit { Ok(()) } else { Err(Defect::Limit { what, limit, need }) }
}

/// The whole-file blocks at the front of a section.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) class_names: Vec<String>,
    pub(super) box_class_names: Vec<String>,
    names: Vec<Run>,
    row_indexes: Vec<Run>,
    /// Offsets of blocks of the whole file that are not ours, as far as they stand among ours.
    foreign: Vec<u64>,
    /// Extension blocks of a kind or version that is not known here.
    later_version: u64,
    labels: Option<List>,
    checksums: Option<List>,
    dictionary: Option<List>,
    /// Checksums of index and section, and where the part of the section that they cover starts.
    pub(super) integrity: Option<(Integrity, usize)>,
    /// The offset of the samples' own blocks.
    pub(super) sample_blocks: u64,
    /// Damage that the walk over the blocks found. What it hides is left out.
    pub(super) defects: Vec<Defect>,
}

/// The data of a whole-file block, which is checked against its CRC-32C at its first use.
#[derive(Debug)]
struct List {
    data: Range<usize>,
    checked: OnceLock<Result<(), FormatError>>,
}

impl List {
    fn new(data: Range<usize>) -> Self {
        Self { data, checked: OnceLock::new() }
    }

    fn offset(&self) -> u64 {
        self.data.start as u64
    }

    fn bytes<'a>(&self, section: &'a [u8]) -> &'a [u8] {
        // The range was found in this section; a section that changes keeps its length.
        section.get(self.data.clone()).unwrap_or_default()
    }

    /// The content, checked.
    fn extension<'a>(&self, section: &'a [u8]) -> Result<Option<Extension<'a>>, Defect> {
        let checked = self.checked.get_or_init(|| Extension::verify(self.bytes(section)));
        checked.clone().map_err(at(self.offset()))?;
        self.unchecked(section)
    }

    /// The content for a use to which damage does no harm.
    fn unchecked<'a>(&self, section: &'a [u8]) -> Result<Option<Extension<'a>>, Defect> {
        Extension::parse(self.bytes(section)).map_err(at(self.offset()))
    }
}

/// The samples `first..first + count`, described by `list`.
#[derive(Debug)]
struct Run {
    first: u64,
    count: u64,
    list: List,
}

impl Run {
    /// The run of `runs`, which are sorted, that sample `index` belongs to.
    fn find(runs: &[Self], index: u64) -> Option<&Self> {
        let after = runs.partition_point(|run| run.first <= index);
        let run = after.checked_sub(1).and_then(|at| runs.get(at))?;
        (index - run.first < run.count).then_some(run)
    }
}

impl Directory {
    /// Walks the blocks up to the first that belongs to a sample. Damage becomes a
    /// [defect](Self::defects).
    ///
    /// # Errors
    /// [`Defect::Limit`].
    pub(super) fn parse(section: &[u8], sample_count: u64) -> Result<Self, Defect> {
        let mut directory = Self::default();
        let mut order = Order::default();
        let mut class_names = None;
        let mut suspects = Vec::new();
        let mut blocks = Blocks::new(section);
        for block_count in 1.. {
            directory.sample_blocks = blocks.offset();
            let Some(block) = blocks.next() else { break };
            let Some(block) = directory.tolerate(directory.sample_blocks, block) else { break };
            if block.sample_index != BlockHeader::WHOLE_FILE || block.kind != MetadataType::Custom {
                match directory.tolerate(block.offset, Order::check_end(&block)) {
                    Some(()) => break,
                    None => continue,
                }
            }
            let limit = sample_count.saturating_add(SPARE_BLOCKS);
            check_limit("whole-file metadata blocks", block_count, limit)?;
            let parsed = Extension::parse(block.data);
            let Some(extension) = directory.tolerate(block.offset, parsed) else { continue };
            let trust = order.check(&block, extension.as_ref());
            let Some(trust) = directory.tolerate(block.offset, trust) else { continue };
            match extension {
                Some(Extension::ClassNames(names)) => class_names = Some((block, names)),
                Some(extension) => {
                    let added = directory.add(&block, &extension, sample_count);
                    directory.tolerate(block.offset, added);
                }
                None if trust == Trust::Suspect => suspects.push(block.offset),
                None if is_extension(block.kind, block.data) => directory.later_version += 1,
                None => directory.foreign.push(block.offset),
            }
        }
        directory.tolerate(0, order.check_whole(section));
        if !suspects.is_empty() {
            match verify_integrity(section, &directory) {
                Ok(()) => directory.foreign.append(&mut suspects),
                Err(defect) => directory.defects.push(defect),
            }
            directory.foreign.sort_unstable();
        }
        if let Some((block, names)) = class_names {
            let count = names.len() + names.of_boxes().len();
            check_limit("class names", count as u64, MAX_CLASSES)?;
            // Small, and used as they are: worth checking at once.
            let checked = Extension::verify(block.data);
            if directory.tolerate(block.offset, checked).is_some() {
                directory.class_names = names.to_vec();
                directory.box_class_names = names.of_boxes().to_vec();
            }
        }
        directory.names.sort_by_key(|run| run.first);
        directory.row_indexes.sort_by_key(|run| run.first);
        Ok(directory)
    }

    /// A good value, or `None` for damage, which is noted.
    fn tolerate<T>(&mut self, offset: u64, result: Result<T, FormatError>) -> Option<T> {
        result.map_err(|source| self.defects.push(Defect::Format { offset, source })).ok()
    }

    fn add(
        &mut self,
        block: &Block<'_>,
        extension: &Extension<'_>,
        sample_count: u64,
    ) -> Result<(), FormatError> {
        let list = List::new(data_range(block)?);
        match extension {
            Extension::SampleNames(names) => {
                let first = names.first_sample();
                let count = names.len() as u64;
                self.names.push(Run { first, count, list });
            }
            Extension::Labels(labels) => {
                check_count("label list", labels.len(), sample_count)?;
                self.labels = Some(list);
            }
            Extension::Checksums(checksums) => {
                check_count("checksum list", checksums.len(), sample_count)?;
                self.checksums = Some(list);
            }
            Extension::RowIndexes(table) => {
                let first = table.first_sample();
                let count = table.len() as u64;
                self.row_indexes.push(Run { first, count, list });
            }
            Extension::Dictionary(_) => self.dictionary = Some(list),
            Extension::Integrity(integrity) => self.integrity = Some((*integrity, list.data.end)),
            Extension::ClassNames(_) | Extension::Field(_) | _ => {}
        }
        Ok(())
    }

    pub(super) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    pub(super) fn has_labels(&self) -> bool {
        self.labels.is_some()
    }

    /// Whether samples have blocks.
    pub(super) fn has_blocks(&self, section: &[u8]) -> bool {
        self.sample_blocks < section.len() as u64
    }

    pub(super) fn name<'a>(
        &self,
        section: &'a [u8],
        index: u64,
    ) -> Result<Option<&'a [u8]>, Defect> {
        let Some(run) = Run::find(&self.names, index) else { return Ok(None) };
        match run.list.extension(section)? {
            Some(Extension::SampleNames(names)) => names.name(index).map_err(at(run.list.offset())),
            _ => Ok(None),
        }
    }

    /// Checks that the name of sample `index` stays inside a folder, but not that it is undamaged:
    /// that costs the CRC-32C of a whole list, and reading a sample needs no name.
    pub(super) fn check_name(&self, section: &[u8], index: u64) -> Result<(), Defect> {
        let Some(run) = Run::find(&self.names, index) else { return Ok(()) };
        match run.list.unchecked(section)? {
            Some(Extension::SampleNames(names)) => {
                names.name(index).map(drop).map_err(at(run.list.offset()))
            }
            _ => Ok(()),
        }
    }

    /// The labels of all samples, if the file has a list of them.
    pub(super) fn labels(&self, section: &[u8]) -> Result<Option<Vec<i64>>, Defect> {
        let Some(list) = &self.labels else { return Ok(None) };
        Ok(match list.extension(section)? {
            Some(Extension::Labels(list)) => {
                Some((0..list.len()).map(|at| list.label(at).unwrap_or(NO_LABEL)).collect())
            }
            _ => None,
        })
    }

    pub(super) fn label(&self, section: &[u8], index: u64) -> Result<Option<i64>, Defect> {
        let (Some(list), Ok(position)) = (&self.labels, usize::try_from(index)) else {
            return Ok(None);
        };
        match list.extension(section)? {
            Some(Extension::Labels(list)) => Ok(list.label(position)),
            _ => Ok(None),
        }
    }

    /// CRC-32C of sample `index`, if the file has one for each.
    pub(super) fn checksum(&self, section: &[u8], index: u64) -> Result<Option<u32>, Defect> {
        let (Some(list), Ok(position)) = (&self.checksums, usize::try_from(index)) else {
            return Ok(None);
        };
        match list.extension(section)? {
            Some(Extension::Checksums(list)) => Ok(list.crc32c(position)),
            _ => Ok(None),
        }
    }

    /// The dictionary of the file's Zstandard frames, if it has one.
    pub(super) fn dictionary<'a>(&self, section: &'a [u8]) -> Result<Option<&'a [u8]>, Defect> {
        let Some(list) = &self.dictionary else { return Ok(None) };
        Ok(match list.extension(section)? {
            Some(Extension::Dictionary(bytes)) => Some(bytes),
            _ => None,
        })
    }

    /// The row index of sample `index`, checked against `sample_crc32c`, or where that is `None`
    /// against the file's own checksum of the sample.
    pub(super) fn row_index<'a>(
        &self,
        section: &'a [u8],
        index: u64,
        sample_crc32c: Option<u32>,
    ) -> Result<Option<&'a [u8]>, Defect> {
        let Some(run) = Run::find(&self.row_indexes, index) else { return Ok(None) };
        let offset = run.list.offset();
        // Each row index has its own checksum, and one that is missing changes no pixel.
        let Some(Extension::RowIndexes(table)) = run.list.unchecked(section)? else {
            return Ok(None);
        };
        let crc32c = match sample_crc32c {
            Some(crc32c) => crc32c,
            // Our writers never store one without the other.
            None => self.checksum(section, index)?.ok_or_else(|| {
                at(offset)(FormatError::Missing { what: "checksum list for row indexes" })
            })?,
        };
        table.row_index(index, crc32c).map_err(at(offset))
    }

    /// Calls `take` with kind and data of each block of the whole file that is not ours, in stored
    /// order, until it has enough.
    pub(super) fn for_each_file_block(
        &self,
        section: &[u8],
        map: &BlockMap,
        take: &mut impl FnMut(MetadataType, &[u8]) -> Result<ControlFlow<()>, FormatError>,
    ) -> Result<(), Defect> {
        for &offset in &self.foreign {
            if let Some(block) = blocks_from(section, offset).next() {
                let block = block.map_err(at(offset))?;
                if take(block.kind, block.data).map_err(at(offset))?.is_break() {
                    return Ok(());
                }
            }
        }
        map.for_each(section, BlockHeader::WHOLE_FILE, |kind, data| {
            if is_extension(kind, data) { Ok(ControlFlow::Continue(())) } else { take(kind, data) }
        })
    }

    /// How many blocks belong to no sample, or are of a later version of the format.
    pub(super) fn unreachable_blocks(&self, section: &[u8], map: &BlockMap) -> Result<u64, Defect> {
        let mut count = self.later_version + map.without_sample;
        map.for_each(section, BlockHeader::WHOLE_FILE, |kind, data| {
            count += u64::from(is_extension(kind, data));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    /// How many samples have a row index, and the bytes of all blocks of them.
    pub(super) fn row_index_totals(&self, section: &[u8]) -> Result<(u64, u64), Defect> {
        let mut samples = 0_u64;
        let mut bytes = 0_u64;
        for run in &self.row_indexes {
            if let Some(Extension::RowIndexes(table)) = run.list.unchecked(section)? {
                samples += table.count().map_err(at(run.list.offset()))?;
                bytes += (run.list.data.len() + BlockHeader::SIZE) as u64;
            }
        }
        Ok((samples, bytes))
    }
}

/// The lists of names of a section, looked into in the order of the samples.
pub(super) struct Names<'a> {
    section: &'a [u8],
    runs: &'a [Run],
    /// The list looked into last, and the samples that it is for.
    current: Option<(Range<u64>, Named<'a>)>,
}

/// The names of a run, and where their list is.
struct Named<'a> {
    names: SampleNames<'a>,
    offset: u64,
}

impl<'a> Names<'a> {
    pub(super) fn new(directory: &'a Directory, section: &'a [u8]) -> Self {
        Self { section, runs: &directory.names, current: None }
    }

    /// The name of sample `index`, as [`Directory::name`] has it.
    pub(super) fn name(&mut self, index: u64) -> Result<Option<&'a [u8]>, Defect> {
        if self.current.as_ref().is_none_or(|(samples, _)| !samples.contains(&index)) {
            self.current = self.list_of(index)?;
        }
        match &self.current {
            Some((_, Named { names, offset })) => names.name(index).map_err(at(*offset)),
            None => Ok(None),
        }
    }

    fn list_of(&self, index: u64) -> Result<Option<(Range<u64>, Named<'a>)>, Defect> {
        let after = self.runs.partition_point(|run| run.first <= index);
        let Some(run) = Run::find(self.runs, index) else { return Ok(None) };
        let Some(Extension::SampleNames(names)) = run.list.extension(self.section)? else {
            return Ok(None);
        };
        // A list that starts within another one has the names from there on.
        let next = self.runs.get(after).map_or(u64::MAX, |next| next.first);
        let end = run.first.saturating_add(run.count).min(next);
        Ok(Some((index..end, Named { names, offset: run.list.offset() })))
    }
}

/// Counts the blocks of `section` that are not ours.
pub(super) fn totals(section: &[u8], sample_count: u64) -> Result<MetadataTotals, Defect> {
    let mut totals = MetadataTotals::default();
    let mut samples = BTreeMap::new();
    let mut file = BTreeMap::new();
    let mut blocks = Blocks::new(section);
    loop {
        let offset = blocks.offset();
        let Some(block) = blocks.next() else { break };
        let block = block.map_err(at(offset))?;
        let is_of_file = block.sample_index == BlockHeader::WHOLE_FILE;
        if is_extension(block.kind, block.data) {
            let is_known = Extension::parse(block.data).map_err(at(offset))?.is_some();
            totals.later_version += u64::from(is_of_file && !is_known);
            if is_of_file || is_known {
                continue;
            }
        }
        if is_of_file {
            *file.entry(block.kind.code()).or_insert(0) += 1;
        } else if block.sample_index < sample_count {
            *samples.entry(block.kind.code()).or_insert(0) += 1;
        } else {
            totals.without_sample += 1;
        }
    }
    let by_type = |counts: BTreeMap<u16, u64>| {
        counts.into_iter().map(|(code, count)| (MetadataType::from_code(code), count)).collect()
    };
    (totals.samples, totals.file) = (by_type(samples), by_type(file));
    Ok(totals)
}

/// Checks that blocks follow each other to the section's end, every extension block's own
/// checksum, and the one of the whole.
pub(super) fn verify(section: &[u8], directory: &Directory) -> Result<(), Defect> {
    let mut is_extended = false;
    let mut blocks = Blocks::new(section);
    loop {
        let offset = blocks.offset();
        let Some(block) = blocks.next() else { break };
        let block = block.map_err(at(offset))?;
        if block.kind == MetadataType::Custom {
            // A block of a later version says nothing of what else its writer stores.
            is_extended |= !matches!(Extension::parse(block.data), Ok(None));
            Extension::verify(block.data).map_err(at(offset))?;
        }
    }
    if directory.integrity.is_none() && is_extended {
        return Err(at(0)(FormatError::Missing { what: "integrity block" }));
    }
    verify_integrity(section, directory)
}

/// Checks the CRC-32C of the whole section, where there is one.
pub(super) fn verify_integrity(section: &[u8], directory: &Directory) -> Result<(), Defect> {
    let Some((integrity, start)) = directory.integrity else { return Ok(()) };
    let covered = section.get(start..).unwrap_or_default();
    let offset = start as u64;
    let what = "metadata section";
    let need = integrity.metadata_bytes;
    let have = covered.len() as u64;
    if need != have {
        return Err(at(offset)(FormatError::Truncated { what, need, have }));
    }
    let stored = integrity.metadata;
    let computed = crc32c(covered);
    if stored == computed {
        return Ok(());
    }
    Err(at(offset)(FormatError::Crc32c { what, stored, computed }))
}

fn data_range(block: &Block<'_>) -> Result<Range<usize>, FormatError> {
    // The block is part of a slice, so its offset fits.
    let start = usize::try_from(block.offset).unwrap_or(usize::MAX);
    start
        .checked_add(BlockHeader::SIZE)
        .and_then(|start| Some(start..start.checked_add(block.data.len())?))
        .ok_or(FormatError::TooLarge {
            what: "metadata section",
            bytes: block.offset,
            limit: usize::MAX as u64,
        })
}

fn check_count(what: &'static str, found: usize, expected: u64) -> Result<(), FormatError> {
    let found = found as u64;
    if found == expected {
        return Ok(());
    }
    Err(FormatError::Count { what, expected, found })
}
