//! The places that a row's bytes come from: a cache, a reader that was ahead, or the data set, in
//! this order.
//!
//! A worker asks here, whatever it does with the bytes. Readers, which run ahead of the workers, are
//! in [`reader`](crate::reader).

use std::cell::Cell;
use std::mem;

use tbl_format::SampleFormat;
use tl_handoff::window::{Fetched, Window};
use tl_transform::Draw;

use crate::cache::{Blocks, CacheKind, PayloadForm, Wanted};
use crate::metrics::WorkerMetrics;
use crate::reader::requests::fetch_block;
use crate::row::Interrupted;
use crate::run::Run;
use crate::sample::Stored;
use crate::stage::Stage;
use crate::work::Work;

/// A row of the run whose bytes a reader may bring.
pub(crate) struct ReadRow {
    row: u64,
    is_open: Cell<bool>,
}

impl ReadRow {
    pub(crate) fn new(row: u64) -> Self {
        Self { row, is_open: Cell::new(true) }
    }

    /// A row whose bytes have been taken: they are read here.
    pub(crate) fn taken() -> Self {
        Self { row: 0, is_open: Cell::new(false) }
    }

    /// The row's number, the first time it is asked for.
    fn once(&self) -> Option<u64> {
        self.is_open.replace(false).then_some(self.row)
    }

    /// Drops what a reader has brought or would bring, unless it was asked for.
    pub(crate) fn discard(&self, run: &Run) {
        if let (Some(window), Some(row)) = (run.window(), self.once()) {
            window.discard(row);
        }
    }
}

/// One sample for one row: the row's own, or one that takes its place.
#[derive(Clone, Copy)]
pub(crate) struct RowSource<'r> {
    pub(crate) run: &'r Run,
    pub(crate) draw: Draw,
    pub(crate) row: &'r ReadRow,
}

impl<'r> RowSource<'r> {
    /// The sample's number in the data set.
    pub(crate) fn sample(&self) -> u64 {
        self.draw.sample
    }

    /// The sample as caches see it.
    pub(crate) fn wanted(&self) -> Wanted<'r> {
        self.run.wanted(self.draw)
    }

    /// Replaces `bytes` by the stored bytes of the sample.
    pub(crate) fn bytes(
        &self,
        bytes: &mut Vec<u8>,
        metrics: &mut WorkerMetrics,
    ) -> Result<(), Interrupted> {
        if self.run.caches().has(CacheKind::Encoded) {
            self.through_cache(bytes, metrics)?;
        } else {
            self.read(bytes, metrics)?;
        }
        Ok(())
    }

    /// The sample as decoders take it, in `bytes` and, for a JPEG with a row index, in `row_index`.
    pub(crate) fn stored<'b>(
        &self,
        bytes: &'b mut Vec<u8>,
        row_index: &'b mut Vec<u8>,
        metrics: &mut WorkerMetrics,
    ) -> Result<Stored<'b>, Interrupted> {
        let dataset = self.run.dataset();
        let (format, size) = if self.run.caches().has(CacheKind::Encoded) {
            self.through_cache(bytes, metrics)?
        } else {
            let facts = dataset.facts(self.sample())?;
            self.read(bytes, metrics)?;
            (facts.format, (facts.width, facts.height))
        };
        let is_indexed =
            format == SampleFormat::Jpeg && dataset.row_index_into(self.sample(), row_index)?;
        metrics.lap(Stage::Read);
        let row_index = is_indexed.then_some(&row_index[..]);
        Ok(Stored { format, size, bytes, row_index })
    }

    /// Brings the bytes from the cache of stored bytes, or reads and keeps them.
    fn through_cache(
        &self,
        bytes: &mut Vec<u8>,
        metrics: &mut WorkerMetrics,
    ) -> Result<PayloadForm, Interrupted> {
        let caches = self.run.caches();
        let kind = CacheKind::Encoded;
        let wanted = self.wanted();
        if let Some(block) = caches.held(kind, wanted) {
            bytes.clear();
            bytes.extend_from_slice(block.bytes());
            return Ok(block.form());
        }
        let facts = wanted.dataset.facts(wanted.sample)?;
        let form = (facts.format, (facts.width, facts.height));
        if let Err(name) = caches.read(kind, wanted, &facts, facts.bytes, bytes) {
            self.read(bytes, metrics)?;
            caches.keep(kind, wanted, name, bytes, form);
        }
        Ok(form)
    }

    /// Takes the bytes from the row's reader, or reads them here, as for a sample that replaces the
    /// row's own. In a run that is over nothing is read.
    fn read(&self, bytes: &mut Vec<u8>, metrics: &mut WorkerMetrics) -> Result<(), Interrupted> {
        let ahead = self.run.window().zip(self.row.once());
        let fetched = ahead.and_then(|(window, row)| take(window, row, metrics));
        if self.run.is_over() {
            return Err(Interrupted::Over);
        }
        if let Some(blocks) = self.run.caches().blocks() {
            if fetched.is_none() && self.read_block(blocks, bytes) {
                return Ok(());
            }
            if self.run.is_over() {
                return Err(Interrupted::Over);
            }
            blocks.missed();
        }
        match (ahead, fetched) {
            (Some((window, _)), Some(fetched)) if fetched.sample == self.sample() => {
                window.give_back(mem::replace(bytes, fetched.bytes));
                if !fetched.is_unpacked {
                    self.run.dataset().unpack(self.sample(), bytes)?;
                }
            }
            (Some(_), None) => {
                let result = self.read_here(bytes);
                metrics.lap_late();
                result?;
            }
            (Some(_), Some(_)) | (None, _) => self.read_here(bytes)?,
        }
        metrics.read(bytes.len());
        Ok(())
    }

    /// Takes the bytes from a block on disk, or one that is on its way there. What cannot be unpacked is
    /// fetched once more, past the cache.
    fn read_block(&self, blocks: &Blocks, bytes: &mut Vec<u8>) -> bool {
        let fetch = || fetch_block(self.run, self.sample());
        blocks.read(self.sample(), bytes, &|| self.run.is_over(), &fetch)
            && self.run.dataset().unpack(self.sample(), bytes).is_ok()
    }

    fn read_here(&self, bytes: &mut Vec<u8>) -> Result<(), Interrupted> {
        let dataset = self.run.dataset();
        match self.run.config().work {
            Work::Bytes => dataset.copy_into(self.sample(), bytes)?,
            Work::Views | Work::Images(_) | Work::Clips(_) | Work::Columns(_) | Work::Tokens(_) => {
                dataset.read_into(self.sample(), bytes)?;
            }
        }
        Ok(())
    }
}

/// Takes a row from the readers' window; the time spent waiting for it is counted as such.
fn take(window: &Window, row: u64, metrics: &mut WorkerMetrics) -> Option<Fetched> {
    let mut waited = false;
    let fetched = window.take(row, || {
        waited = true;
        metrics.lap(Stage::Read);
    });
    if waited {
        metrics.lap_waiting();
    }
    fetched
}
