//! The reader stage: threads that read the bytes of coming rows before a worker needs them.
//!
//! Without it workers read, after hints to the system about coming reads. That is as fast on
//! storage that follows the hints. This stage is for storage that does not, and for stores that are
//! not files.

mod counters;
mod lead;
mod log;
mod plan;
mod planned;
mod planner;
pub(crate) mod requests;
#[cfg(feature = "simulate")]
pub mod simulate;

use std::io;
use std::time::Instant;

use tbl_io::{PageCache, SampleSource, SampleSourceExt, StoredBytes};
use tl_handoff::sync::{Arc, thread};
use tl_handoff::window::{Admission, Claim, Fetched, Window};

use self::log::Log;
use crate::crew::until_over;
use crate::note::LoaderNote;
use crate::panics::catch_panic;
use crate::placement::requested_samples;
use crate::readers::{REMOTE_READERS, Readers, THREADS_INSTEAD};
use crate::run::{EpochOrder, Run};
use crate::work::Work;

pub use counters::ReaderStats;
pub(crate) use counters::{ReaderCounters, Waits, nanoseconds};
pub(crate) use lead::bytes as lead_bytes;

/// Does something for a sample before its turn. What panics is noted and nothing else: the sample's
/// own turn says what is wrong with it.
pub(crate) fn catch_prefetch_panic<T>(
    run: &Run,
    sample: u64,
    work: impl FnOnce() -> T,
) -> Option<T> {
    let note = |message| run.shared().note(LoaderNote::ReadAheadPanicked { sample, message });
    catch_panic(work).map_err(note).ok()
}

/// Starts the readers of a run. Readers that cannot be started leave the reading to the workers.
pub(crate) fn start(run: &Arc<Run>, threads: &mut Vec<thread::JoinHandle<()>>) {
    let count = match run.config().readers {
        Readers::Workers => return,
        Readers::Threads(count) => count,
        Readers::Planned => {
            run.shared().counters.readers.start_planned();
            threads.extend(start_planned(run));
            let is_planned = |source: &dyn SampleSource| requested_samples(source).is_some();
            if run.dataset().shards().iter().all(|source| is_planned(&**source)) {
                return;
            }
            // Files, and objects that cannot be requested in the background.
            REMOTE_READERS
        }
        Readers::Uring { depth, page_cache } => match start_uring(run, depth, page_cache) {
            Ok(thread) => {
                threads.extend(thread);
                return;
            }
            Err(error) => {
                let threads = THREADS_INSTEAD;
                run.shared().note(LoaderNote::NoUring { threads, error });
                THREADS_INSTEAD
            }
        },
    };
    if run.config().readers != Readers::Planned {
        run.shared().counters.readers.start(count);
    }
    for reader in 0..count {
        let run_of_reader = Arc::clone(run);
        let body = move || until_over(&run_of_reader, |run| read_one_by_one(run, reader));
        threads.extend(spawn(run, reader, body));
    }
}

/// Starts the thread that requests rows in the background.
fn start_planned(run: &Arc<Run>) -> Option<thread::JoinHandle<()>> {
    let run_of_reader = Arc::clone(run);
    let rows = run.rows.clone();
    spawn(run, 0, move || {
        until_over(&run_of_reader, |run| planned::request_rows(run, &rows));
    })
}

fn spawn(
    run: &Run,
    reader: usize,
    body: impl FnOnce() + Send + 'static,
) -> Option<thread::JoinHandle<()>> {
    let started = thread::Builder::new().name(format!("tl-reader-{reader}")).spawn(body);
    started.map_err(|error| give_up(run, &error)).ok()
}

/// Leaves reading to the workers and notes it, so that no report advises more readers.
fn give_up(run: &Run, error: &io::Error) {
    run.close_window();
    run.shared().counters.readers.start(0);
    run.shared().note(LoaderNote::ReadersGone { error: error.to_string() });
}

/// A row to read, and where its bytes are.
struct Wanted {
    row: u64,
    sample: u64,
    /// `None` where the source reads it whole or not at all.
    stored: Option<StoredBytes>,
    bytes: u64,
}

/// Finds out what rows need, and remembers the order that it looked at.
struct Lookup<'a> {
    run: &'a Run,
    epoch: Option<Arc<EpochOrder>>,
    /// Memory for a sample's name.
    scratch: Vec<u8>,
}

impl<'a> Lookup<'a> {
    fn new(run: &'a Run) -> Self {
        Self { run, epoch: None, scratch: Vec::new() }
    }

    /// `None` for a sample that nobody reads, because a cache is expected to have it or it is viewed,
    /// and for one that something is wrong with, which its worker finds out.
    fn wanted(&mut self, row: u64) -> Option<Wanted> {
        let run = self.run;
        self.look(row, |sample, scratch| find(run, sample, row, scratch))
    }

    /// The result of `find` for the sample of a row.
    fn look<T>(
        &mut self,
        row: u64,
        find: impl FnOnce(u64, &mut Vec<u8>) -> Option<T>,
    ) -> Option<T> {
        let place = self.run.place(row);
        let known = self.epoch.take().filter(|epoch| epoch.number == place.epoch);
        let epoch = self.epoch.insert(known.unwrap_or_else(|| self.run.order(place.epoch)));
        // An error here ends the run when a worker reaches this row.
        let grouping = self.run.grouping(epoch, place).ok()?;
        let slot = self.run.slot(grouping.as_deref(), place);
        let sample = epoch.order.sample_at(slot.position);
        let sample = sample.expect("a position is below their number");
        let scratch = &mut self.scratch;
        catch_prefetch_panic(self.run, sample, || find(sample, scratch)).flatten()
    }
}

fn find(run: &Run, sample: u64, row: u64, scratch: &mut Vec<u8>) -> Option<Wanted> {
    if run.caches().expects(run.dataset(), sample, scratch) {
        return None;
    }
    let (source, local) = run.dataset().locate(sample).ok()?;
    if run.config().readers == Readers::Planned && requested_samples(source).is_some() {
        return None;
    }
    if run.config().work == Work::Views && source.view(local).ok()?.is_some() {
        return None;
    }
    let stored = source.stored(local).ok()?;
    let bytes = match &stored {
        Some(stored) => stored.len,
        None => source.facts(local).ok()?.bytes,
    };
    // Under a budget, what does not fit is left to its worker, which has room for it or says so.
    let fits = !run.memory().is_bounded() || bytes <= run.config().read_ahead_bytes;
    fits.then_some(Wanted { row, sample, stored, bytes })
}

/// Reads one sample at a time until no rows are left.
fn read_one_by_one(run: &Run, reader: usize) {
    let Some(window) = run.window() else { return };
    let _watch = Watch { window };
    let mut log = Log::new(run, reader);
    let mut lookup = Lookup::new(run);
    while let Claim::Row(row) = window.claim(true) {
        let Some(wanted) = lookup.wanted(row) else { continue };
        if window.admit(wanted.row, wanted.bytes, true) == Admission::Granted {
            window.complete(wanted.row, read(run, window, &wanted, &mut log));
        }
    }
}

/// Reads a sample here and now.
fn read(run: &Run, window: &Window, wanted: &Wanted, log: &mut Log) -> Option<Fetched> {
    let start = Instant::now();
    let mut bytes = buffer(window, wanted.bytes);
    let read = catch_prefetch_panic(run, wanted.sample, || match &wanted.stored {
        Some(stored) => stored.read_into(&mut bytes),
        None => run.dataset().read_into(wanted.sample, &mut bytes),
    });
    fit(&mut bytes);
    if let Some(Err(error)) = &read {
        run.shared().counters.retries.failed_ahead(error);
    }
    matches!(read, Some(Ok(()))).then(|| {
        let is_unpacked = wanted.stored.is_none();
        let fetched = Fetched { sample: wanted.sample, bytes, is_unpacked };
        log.read(wanted.sample, 0, start, &fetched);
        fetched
    })
}

fn buffer(window: &Window, bytes: u64) -> Vec<u8> {
    window.buffer(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Makes a buffer no more than twice as large as what it holds, which is what counts as read ahead.
fn fit(bytes: &mut Vec<u8>) {
    if bytes.capacity() / 2 > bytes.len() {
        bytes.shrink_to_fit();
    }
}

#[cfg(all(target_os = "linux", feature = "io-uring"))]
fn start_uring(
    run: &Arc<Run>,
    depth: u32,
    page_cache: PageCache,
) -> Result<Option<thread::JoinHandle<()>>, Option<String>> {
    let reader = tbl_io::UringReader::new(depth, page_cache);
    let reader = reader.map_err(|error| Some(error.to_string()))?;
    run.shared()
        .counters
        .readers
        .start(usize::try_from(depth).unwrap_or(crate::readers::MAX_READERS));
    let run_of_reader = Arc::clone(run);
    Ok(spawn(run, 0, move || read_side_by_side(&run_of_reader, reader)))
}

#[cfg(not(all(target_os = "linux", feature = "io-uring")))]
fn start_uring(
    _: &Arc<Run>,
    _: u32,
    _: PageCache,
) -> Result<Option<thread::JoinHandle<()>>, Option<String>> {
    Err(None)
}

/// Keeps as many reads in flight as allowed until no rows are left.
#[cfg(all(target_os = "linux", feature = "io-uring"))]
fn read_side_by_side(run: &Run, mut reader: tbl_io::UringReader) {
    let Some(window) = run.window() else { return };
    let _watch = Watch { window };
    let mut lookup = Lookup::new(run);
    let mut log = Log::new(run, 0);
    // The samples of the rows that are being read, with the start and the lane of each read.
    let mut under_way = std::collections::HashMap::new();
    let mut lanes = Vec::new();
    // A row that is waiting for room.
    let mut pending: Option<Wanted> = None;
    loop {
        while !reader.is_full() {
            // It sleeps only while no read is in flight, whose end it would miss.
            let waits = reader.is_idle();
            let wanted = match pending.take() {
                Some(wanted) => wanted,
                None => match window.claim(waits) {
                    Claim::Row(row) => match lookup.wanted(row) {
                        Some(wanted) => wanted,
                        None => continue,
                    },
                    Claim::Ended if waits => return,
                    Claim::Full | Claim::Ended => break,
                },
            };
            match window.admit(wanted.row, wanted.bytes, waits) {
                Admission::Taken => {}
                Admission::Full => {
                    pending = Some(wanted);
                    break;
                }
                Admission::Granted => match wanted.stored {
                    Some(stored) => {
                        let most = u32::try_from(under_way.len()).expect("at most MAX_READERS");
                        let lane = lanes.pop().unwrap_or(most);
                        under_way.insert(wanted.row, (wanted.sample, lane, Instant::now()));
                        let room = reader.room(wanted.bytes);
                        reader.start(wanted.row, stored, buffer(window, room));
                    }
                    None => window.complete(wanted.row, read(run, window, &wanted, &mut log)),
                },
            }
        }
        match reader.wait() {
            Ok(Some(tbl_io::Completed { tag, mut bytes, result })) => {
                fit(&mut bytes);
                let read = under_way.remove(&tag);
                if let Err(error) = &result {
                    run.shared().counters.retries.failed_ahead(error);
                }
                lanes.extend(read.map(|(_, lane, _)| lane));
                let fetched = read.filter(|_| result.is_ok()).map(|(sample, lane, start)| {
                    let fetched = Fetched { sample, bytes, is_unpacked: false };
                    log.read(sample, lane, start, &fetched);
                    fetched
                });
                window.complete(tag, fetched);
            }
            Ok(None) => {}
            Err(error) => return give_up(run, &error),
        }
    }
}

/// Lets the workers read when a reader dies.
struct Watch<'a> {
    window: &'a Window,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.window.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dataset, Loader, LoaderConfig};

    #[test]
    fn readers_that_give_up_are_noted_and_count_no_more() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("class")).unwrap();
        std::fs::write(root.path().join("class/1.bmp"), "BM").unwrap();
        let dataset = Dataset::open(&[root.path()]).unwrap();
        let config =
            LoaderConfig { readers: Readers::Threads(3), ..LoaderConfig::new(Work::Bytes) };
        let loader = Loader::new(dataset, config).unwrap();
        let workers = crate::crew::Workers::start(Arc::clone(&loader.shared), 0, 0..0);
        assert_eq!(loader.stats().readers.readers, 3);
        give_up(workers.run(), &io::ErrorKind::OutOfMemory.into());
        assert_eq!(workers.run().window().unwrap().claim(true), Claim::Ended);
        assert_eq!(loader.stats().readers.readers, 0);
        assert_eq!(loader.notes(), [LoaderNote::ReadersGone { error: "out of memory".into() }]);
    }
}
