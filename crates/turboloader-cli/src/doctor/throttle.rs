//! A source that reads no faster than a disk of a given speed.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tbl_io::{
    BlockMemory, BulkIndex, DamageChecks, Entry, Facts, Field, Location, Note, ReadError,
    RowIndexes, SampleBlocks, SampleSource, SourceKind,
};

/// A disk that several sources lie on and all threads wait for.
#[derive(Debug)]
pub(super) struct SlowDisk {
    bytes_per_second: f64,
    /// The time at which the disk has done everything asked of it so far.
    free_at: Mutex<Instant>,
}

impl SlowDisk {
    /// A disk of `bytes_per_second`, which is above zero.
    pub(super) fn new(bytes_per_second: f64) -> Self {
        Self { bytes_per_second, free_at: Mutex::new(Instant::now()) }
    }

    /// Returns when the disk would have read `bytes`, after everything that was asked for before.
    fn read(&self, bytes: usize) {
        #[expect(clippy::cast_precision_loss, reason = "a sample is far below 2^53 bytes")]
        let seconds = bytes as f64 / self.bytes_per_second;
        let takes = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let done = {
            let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            let start = Instant::now().max(*free_at);
            *free_at = start.checked_add(takes).unwrap_or(start);
            *free_at
        };
        thread::sleep(done.saturating_duration_since(Instant::now()));
    }
}

/// A source on a slow disk.
#[derive(Debug)]
pub(super) struct Throttled {
    pub(super) source: Box<dyn SampleSource>,
    pub(super) disk: Arc<SlowDisk>,
}

impl SampleSource for Throttled {
    fn location(&self) -> &Location {
        self.source.location()
    }

    fn kind(&self) -> SourceKind {
        self.source.kind()
    }

    fn sample_count(&self) -> u64 {
        self.source.sample_count()
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        self.source.entry(index)
    }

    fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        self.source.facts(index)
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.source.read_into(index, bytes)?;
        self.disk.read(bytes.len());
        Ok(())
    }

    fn read_fields_where(
        &self,
        index: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        self.source.read_fields_where(index, is_wanted, fields)
    }

    fn class_names(&self) -> &[String] {
        self.source.class_names()
    }

    fn box_class_names(&self) -> &[String] {
        self.source.box_class_names()
    }

    fn box_class_numbers(&self) -> &[i64] {
        self.source.box_class_numbers()
    }

    fn notes(&self) -> Vec<Note> {
        self.source.notes()
    }

    // Neither stored bytes nor hints, by which reads would take none of the disk's time.

    fn bulk_index(&self) -> Option<&dyn BulkIndex> {
        self.source.bulk_index()
    }

    fn damage_checks(&self) -> Option<&dyn DamageChecks> {
        self.source.damage_checks()
    }

    fn row_indexes(&self) -> Option<&dyn RowIndexes> {
        self.source.row_indexes()
    }

    fn blocks(&self) -> Option<&dyn SampleBlocks> {
        self.source.blocks()
    }

    fn block_memory(&self) -> Option<&'static dyn BlockMemory> {
        self.source.block_memory()
    }
}
