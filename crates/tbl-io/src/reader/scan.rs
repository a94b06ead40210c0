//! Names and sizes of samples in one pass over the index and the lists of names.

use std::ops::{ControlFlow, Range};

use super::TblFile;
use crate::error::ReadError;
use crate::sample::SampleName;

/// As [`SampleSourceExt::scan`](crate::SampleSourceExt::scan): false where each sample has to be asked for.
pub(super) fn scan(
    file: &TblFile,
    samples: Range<u64>,
    take: &mut dyn FnMut(Result<SampleName<'_>, ReadError>) -> ControlFlow<()>,
) -> Result<bool, ReadError> {
    assert!(samples.end <= file.sample_count, "{samples:?} of {} samples", file.sample_count);
    let entry_bytes = file.version().entry_bytes();
    let count = samples.end.saturating_sub(samples.start);
    let offset = file.entry_offset(samples.start);
    let len = count * entry_bytes as u64;
    file.metadata.with_names(|names| {
        let Some(mut names) = names else { return Ok(false) };
        file.index.with(offset, len, |index| {
            for (number, bytes) in (samples.start..).zip(index.chunks_exact(entry_bytes)) {
                let entry = file.header.parse_entry(bytes).map_err(|defect| {
                    let error = file.format_error(file.entry_offset(number), defect);
                    error.for_sample(number, None)
                });
                let sample = entry.and_then(|entry| {
                    file.check_extent(number, &entry)?;
                    let bytes = u64::from(entry.bytes);
                    Ok(SampleName { key: names.name(number, entry.has_metadata())?, bytes })
                });
                if take(sample).is_break() {
                    break;
                }
            }
            true
        })
    })
}
