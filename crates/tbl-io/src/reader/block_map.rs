//! The positions of each sample's metadata blocks in a section, found in one walk over all block
//! headers.

use std::ops::ControlFlow;

use tbl_format::FormatError;
use tbl_format::extension::Extension;
use tbl_format::metadata::{Block, BlockHeader, Blocks, MetadataType};

use super::block_limits::{BLOCKS_PER_SAMPLE, RUNS_PER_SAMPLE, SPARE_BLOCKS};
use super::section::{Defect, at, check_limit};
use crate::metadata_json::is_label_json;

/// The positions of each sample's blocks.
#[derive(Debug, Default)]
pub(super) struct BlockMap {
    /// `(sample, offset)` of the first of each run of blocks of one sample, sorted, so that a
    /// sample's blocks stay in stored order.
    runs: Vec<(u64, u64)>,
    /// Blocks of samples that do not exist.
    pub(super) without_sample: u64,
    /// Whether a JSON block of a sample may say more than a label.
    has_other_json: bool,
    /// The offset at which the walk over the blocks ended early, and the reason.
    damage: Option<Defect>,
}

impl BlockMap {
    /// Whether all blocks could be walked.
    pub(super) fn is_whole(&self) -> bool {
        self.damage.is_none()
    }

    /// Whether a JSON block of a sample may say more than a label.
    pub(super) fn has_other_json(&self) -> bool {
        self.has_other_json
    }

    /// Walks all blocks of `section` from `start` on. `is_ours` says that our writer made the
    /// section: then a block that such a section cannot have is damage.
    pub(super) fn new(section: &[u8], start: u64, sample_count: u64, is_ours: bool) -> Self {
        let mut map = Self::default();
        map.damage = map.walk(section, start, sample_count, is_ours).err();
        map.runs.shrink_to_fit();
        // Our writers store them in order.
        if !map.runs.is_sorted() {
            map.runs.sort_unstable();
        }
        map
    }

    fn walk(
        &mut self,
        section: &[u8],
        start: u64,
        sample_count: u64,
        is_ours: bool,
    ) -> Result<(), Defect> {
        let limit_of = |each: u64| sample_count.saturating_mul(each).saturating_add(SPARE_BLOCKS);
        let mut blocks = blocks_from(section, start);
        let mut last_sample = None;
        for block_count in 1.. {
            let offset = start + blocks.offset();
            let Some(block) = blocks.next() else { break };
            let block = block.map_err(at(offset))?;
            let sample = block.sample_index;
            check_limit("metadata blocks", block_count, limit_of(BLOCKS_PER_SAMPLE))?;
            // Nobody can ask for the blocks of a sample that does not exist.
            let is_reachable = sample < sample_count || sample == BlockHeader::WHOLE_FILE;
            self.without_sample += u64::from(!is_reachable);
            if is_ours && (!is_reachable || (last_sample != Some(sample) && is_field(&block))) {
                let what = "block of a sample";
                return Err(at(offset)(FormatError::OutOfOrder { what }));
            }
            if last_sample != Some(sample) && is_reachable {
                self.runs.push((sample, offset));
                let runs = self.runs.len() as u64;
                let limit = limit_of(RUNS_PER_SAMPLE);
                check_limit("runs of metadata blocks", runs, limit)?;
            }
            self.has_other_json |= block.kind == MetadataType::Json && !is_label_json(block.data);
            last_sample = Some(sample);
        }
        Ok(())
    }

    /// Calls `take` with kind and data of each block of sample `index`, or of the whole file from
    /// where the map starts, in stored order, until it has enough.
    pub(super) fn for_each(
        &self,
        section: &[u8],
        index: u64,
        mut take: impl FnMut(MetadataType, &[u8]) -> Result<ControlFlow<()>, FormatError>,
    ) -> Result<(), Defect> {
        if let Some(damage) = &self.damage {
            return Err(damage.clone());
        }
        let first = self.runs.partition_point(|&(sample, _)| sample < index);
        let runs = self.runs.get(first..).unwrap_or_default();
        for &(_, start) in runs.iter().take_while(|&&(sample, _)| sample == index) {
            for block in blocks_from(section, start) {
                let block = block.map_err(at(start))?;
                if block.sample_index != index {
                    break;
                }
                let offset = start + block.offset;
                if take(block.kind, block.data).map_err(at(offset))?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Whether the block is a sidecar field, which is never the first block that our writers store of a
/// sample.
fn is_field(block: &Block<'_>) -> bool {
    block.kind == MetadataType::Custom
        && matches!(Extension::parse(block.data), Ok(Some(Extension::Field(_))))
}

pub(super) fn blocks_from(section: &[u8], start: u64) -> Blocks<'_> {
    let rest = usize::try_from(start).ok().and_then(|start| section.get(start..));
    Blocks::new(rest.unwrap_or_default())
}
