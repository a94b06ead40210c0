//! A metadata section as bytes: where our whole-file blocks are in it, where each sample's blocks
//! are, and looking things up in them. Offsets count from the section's first byte.

use std::ops::Range;

use tbl_format::FormatError;
use tbl_format::checksum::crc32c;
use tbl_format::extension::{Extension, ExtensionHeader, Integrity};
use tbl_format::metadata::{Block, BlockHeader, Blocks, MetadataType};

/// What is wrong, and with the block where.
#[derive(Debug)]
pub(super) struct Defect {
    pub(super) offset: u64,
    pub(super) source: FormatError,
}

fn at(offset: u64) -> impl FnOnce(FormatError) -> Defect {
    move |source| Defect { offset, source }
}

/// The whole-file blocks at the front of a section.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) class_names: Vec<String>,
    names: Vec<NameRun>,
    labels: Option<Range<usize>>,
    checksums: Option<Range<usize>>,
    /// Checksums of index and section, and where the part of the section that they cover starts.
    pub(super) integrity: Option<(Integrity, usize)>,
    /// Where the samples' own blocks start.
    pub(super) sample_blocks: u64,
}

/// The samples `first..first + count`, named in the block data at `data`.
#[derive(Debug)]
struct NameRun {
    first: u64,
    count: u64,
    data: Range<usize>,
}

impl Directory {
    /// Walks the blocks up to the first that belongs to a sample.
    pub(super) fn parse(section: &[u8], sample_count: u64) -> Result<Self, Defect> {
        let mut directory = Self::default();
        let mut blocks = Blocks::new(section);
        loop {
            directory.sample_blocks = blocks.offset();
            let Some(block) = blocks.next() else { break };
            let block = block.map_err(at(directory.sample_blocks))?;
            if block.sample_index != BlockHeader::WHOLE_FILE || block.kind != MetadataType::Custom {
                break;
            }
            directory.add(&block, sample_count).map_err(at(block.offset))?;
        }
        directory.names.sort_by_key(|run| run.first);
        Ok(directory)
    }

    fn add(&mut self, block: &Block<'_>, sample_count: u64) -> Result<(), FormatError> {
        let data = data_range(block)?;
        match Extension::parse(block.data)? {
            Some(Extension::ClassNames(names)) => {
                // Small, and used as they are: worth checking at once.
                Extension::verify(block.data)?;
                self.class_names = names.to_vec();
            }
            Some(Extension::SampleNames(names)) => {
                let (first, count) = (names.first_sample(), names.len() as u64);
                self.names.push(NameRun { first, count, data });
            }
            Some(Extension::Labels(list)) => {
                check_count("label list", list.len(), sample_count)?;
                self.labels = Some(data);
            }
            Some(Extension::Checksums(list)) => {
                check_count("checksum list", list.len(), sample_count)?;
                self.checksums = Some(data);
            }
            Some(Extension::Integrity(integrity)) => self.integrity = Some((integrity, data.end)),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    pub(super) fn has_labels(&self) -> bool {
        self.labels.is_some()
    }

    pub(super) fn name<'a>(
        &self,
        section: &'a [u8],
        index: u64,
    ) -> Result<Option<&'a [u8]>, Defect> {
        let after = self.names.partition_point(|run| run.first <= index);
        let run = after.checked_sub(1).and_then(|at| self.names.get(at));
        let Some(run) = run.filter(|run| index - run.first < run.count) else { return Ok(None) };
        match extension(section, &run.data)? {
            Some(Extension::SampleNames(names)) => {
                names.name(index).map_err(at(run.data.start as u64))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn label(&self, section: &[u8], index: u64) -> Result<Option<i64>, Defect> {
        let (Some(data), Ok(position)) = (&self.labels, usize::try_from(index)) else {
            return Ok(None);
        };
        match extension(section, data)? {
            Some(Extension::Labels(list)) => Ok(list.label(position)),
            _ => Ok(None),
        }
    }

    /// CRC-32C of sample `index`, if the file has one for each.
    pub(super) fn checksum(&self, section: &[u8], index: u64) -> Result<Option<u32>, Defect> {
        let (Some(data), Ok(position)) = (&self.checksums, usize::try_from(index)) else {
            return Ok(None);
        };
        match extension(section, data)? {
            Some(Extension::Checksums(list)) => Ok(list.crc32c(position)),
            _ => Ok(None),
        }
    }
}

/// Where each sample's blocks are.
#[derive(Debug)]
pub(super) struct BlockMap {
    /// `(sample, offset)`, sorted, so that a sample's blocks stay in stored order.
    blocks: Vec<(u64, u64)>,
    /// Where and why the walk over the blocks ended early.
    damage: Option<(u64, FormatError)>,
}

impl BlockMap {
    /// Walks all blocks of `section` from `start` on.
    pub(super) fn new(section: &[u8], start: u64) -> Self {
        let mut map = Self { blocks: Vec::new(), damage: None };
        let skipped = usize::try_from(start).ok().and_then(|start| section.get(start..));
        let mut blocks = Blocks::new(skipped.unwrap_or_default());
        loop {
            let offset = start + blocks.offset();
            match blocks.next() {
                Some(Ok(block)) => map.blocks.push((block.sample_index, offset)),
                Some(Err(defect)) => map.damage = Some((offset, defect)),
                None => break,
            }
        }
        map.blocks.sort_unstable();
        map
    }

    /// Calls `take` with kind and data of each block of sample `index`, in stored order.
    pub(super) fn for_each(
        &self,
        section: &[u8],
        index: u64,
        mut take: impl FnMut(MetadataType, &[u8]) -> Result<(), FormatError>,
    ) -> Result<(), Defect> {
        if let Some((offset, source)) = &self.damage {
            return Err(Defect { offset: *offset, source: source.clone() });
        }
        let first = self.blocks.partition_point(|&(sample, _)| sample < index);
        let blocks = self.blocks.get(first..).unwrap_or_default();
        for &(_, offset) in blocks.iter().take_while(|&&(sample, _)| sample == index) {
            let rest = usize::try_from(offset).ok().and_then(|start| section.get(start..));
            let Some(block) = Blocks::new(rest.unwrap_or_default()).next() else { continue };
            let block = block.map_err(at(offset))?;
            take(block.kind, block.data).map_err(at(offset))?;
        }
        Ok(())
    }
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
        is_extended |= block.data.starts_with(&ExtensionHeader::MAGIC);
        if block.kind == MetadataType::Custom {
            Extension::verify(block.data).map_err(at(offset))?;
        }
    }
    let Some((integrity, start)) = directory.integrity else {
        let missing = FormatError::Missing { what: "integrity block" };
        return if is_extended { Err(at(0)(missing)) } else { Ok(()) };
    };
    let covered = section.get(start..).unwrap_or_default();
    let (offset, what) = (start as u64, "metadata section");
    check_count(what, covered.len(), integrity.metadata_bytes).map_err(at(offset))?;
    let (stored, computed) = (integrity.metadata, crc32c(covered));
    if stored == computed {
        return Ok(());
    }
    Err(at(offset)(FormatError::Crc32c { what, stored, computed }))
}

fn extension<'a>(section: &'a [u8], data: &Range<usize>) -> Result<Option<Extension<'a>>, Defect> {
    // The range was found in this section; a section that changes keeps its length.
    let bytes = section.get(data.clone()).unwrap_or_default();
    Extension::parse(bytes).map_err(at(data.start as u64))
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
