//! The metadata blocks that go with samples and files, as far as the target has a place for them.

use std::any::Any;
use std::ops::ControlFlow;

use tbl_format::metadata::MetadataType;

use super::Selection;
use super::error::ConvertError;
use crate::error::ReadError;
use crate::metadata_json::relabelled;
use crate::reader::TblFile;
use crate::sample::{Entry, MetadataBlock, SampleSource};

/// The source as a TBL file: no other container has metadata blocks.
pub(super) fn tbl_file(source: &dyn SampleSource) -> Option<&TblFile> {
    let source: &dyn Any = source;
    source.downcast_ref()
}

/// The blocks of sample `index`, whose label becomes `label`. Where classes are renumbered, a JSON
/// block that states the sample's label states the new one; nothing else in it changes.
pub(super) fn of_sample(
    source: &dyn SampleSource,
    index: u64,
    entry: &Entry<'_>,
    label: Option<i64>,
) -> Result<Vec<MetadataBlock>, ReadError> {
    let Some(file) = tbl_file(source) else { return Ok(Vec::new()) };
    let mut blocks = file.own_metadata(index, entry.key.as_deref(), entry.label)?;
    let Some(stale) = entry.label.filter(|_| entry.label != label) else { return Ok(blocks) };
    for block in blocks.iter_mut().filter(|block| block.kind == MetadataType::Json) {
        if let Some(data) = relabelled(&block.data, stale, label) {
            block.data = data;
        }
    }
    Ok(blocks)
}

/// Passes the blocks of the files that samples come from to `take`, in order; one that several
/// files have byte for byte, as shards of one data set do, once.
pub(super) fn of_files(
    selection: &Selection<'_>,
    mut take: impl FnMut(MetadataType, &[u8]) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    let files: Vec<&TblFile> =
        selection.sources().iter().filter_map(|source| tbl_file(*source)).collect();
    for (number, file) in files.iter().enumerate() {
        let mut result = Ok(());
        file.for_each_file_block(|kind, data| {
            result = is_in_any(files.get(..number).unwrap_or_default(), kind, data)
                .map_err(ConvertError::from)
                .and_then(|is_repeated| if is_repeated { Ok(()) } else { take(kind, data) });
            Ok(if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        result?;
    }
    for MetadataBlock { kind, data } in selection.file_metadata() {
        take(*kind, data)?;
    }
    Ok(())
}

/// Whether one of `files` has this block of the whole file.
fn is_in_any(files: &[&TblFile], kind: MetadataType, data: &[u8]) -> Result<bool, ReadError> {
    let mut is_found = false;
    for file in files {
        file.for_each_file_block(|other_kind, other| {
            is_found |= (other_kind, other) == (kind, data);
            Ok(if is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if is_found {
            break;
        }
    }
    Ok(is_found)
}

/// How many blocks of the sources belong to no sample, or are of a later version of the format.
pub(super) fn unreachable_blocks(selection: &Selection<'_>) -> Result<u64, ReadError> {
    let mut count = 0_u64;
    for file in selection.sources().iter().filter_map(|source| tbl_file(*source)) {
        count = count.saturating_add(file.unreachable_metadata()?);
    }
    Ok(count)
}
