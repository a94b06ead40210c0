//! Ranges of a file that is not mapped, which are requested together: one request after the other would
//! take seconds.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tbl_io::{ReadError, Source};

/// The most bytes that are requested together.
const TOGETHER: u64 = 32 << 20;

/// Bytes of a file by their offset, until the file is open.
#[derive(Debug, Default)]
pub(crate) struct Ahead(Mutex<BTreeMap<u64, Vec<u8>>>);

impl Ahead {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, offset: u64, bytes: Vec<u8>) {
        self.lock().insert(offset, bytes);
    }

    /// Bytes that are here.
    pub(crate) fn get(&self, offset: u64, len: u64) -> Option<Vec<u8>> {
        let kept = self.lock();
        let (start, bytes) = kept.range(..=offset).next_back()?;
        let first = usize::try_from(offset - start).ok()?;
        Some(bytes.get(first..)?.get(..usize::try_from(len).ok()?)?.to_vec())
    }

    /// Requests ranges, given by offset and length, that are not here. Nothing if they are too much: then
    /// each is read by itself.
    pub(crate) fn request(
        &self,
        source: &Source,
        mut ranges: Vec<(u64, u64)>,
    ) -> Result<(), ReadError> {
        ranges.retain(|&(offset, len)| len > 0 && self.get(offset, len).is_none());
        ranges.sort_unstable();
        ranges.dedup();
        let total = ranges.iter().fold(0_u64, |total, &(_, len)| total.saturating_add(len));
        if ranges.is_empty() || total > TOGETHER {
            return Ok(());
        }
        let read = source.read_ranges(&ranges)?;
        let offsets = ranges.into_iter().map(|(offset, _)| offset);
        self.lock().extend(offsets.zip(read));
        Ok(())
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }
}
