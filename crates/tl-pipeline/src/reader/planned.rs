//! The reader of objects in stores: one thread that requests the samples of coming rows in the
//! background, many at once, in the requests that a [`Planner`] chooses.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use tbl_io::{PartReceiver, SampleSource, SampleSourceExt, StoredSamples, UnderWay};
use tl_handoff::sync::{Arc, Mutex, lock};
use tl_handoff::window::{Fetched, MAX_ROWS, Window};

use super::plan::{Part, Wanted};
use super::planner::Planner;
use super::{Log, Lookup, Watch};
use crate::batching::Batching;
use crate::run::Run;
use crate::work::Work;

/// The rows that the plan looks ahead at most: it lists them. More than a window of the usual block
/// shuffles has.
pub(super) const LEAD: u64 = 1 << 16;

/// Later rows are not requested before at most one in 16 of the first batch's rows is outstanding: all
/// share one link, and someone waits for the first batch alone.
const FIRST_LEFT: usize = 16;

/// A first batch of at most this many requests delays nothing: all are under way from the start, and
/// their connections may be what limits them.
const FEW_REQUESTS: usize = 32;

/// The samples of a source, if they can be requested in the background.
pub(super) fn samples(source: &dyn SampleSource) -> Option<&dyn StoredSamples> {
    source.stored_samples().filter(|samples| samples.in_background())
}

/// Whether samples of a source lie side by side in one object, so that they can come together.
pub(super) fn has_neighbours(source: &dyn SampleSource) -> bool {
    samples(source).is_some_and(|samples| samples.source().is_some())
}

/// The place of a sample: in the object that has all samples of its source, or the whole of its own.
/// None of these objects is opened.
pub(super) fn range(source: &dyn SampleSource, index: u64) -> Option<Range<u64>> {
    let samples = samples(source)?;
    let Some(object) = samples.source() else { return Some(0..source.facts(index).ok()?.bytes) };
    let stored = samples.stored(index).ok()??;
    let end = stored.offset.checked_add(stored.len)?;
    // An index that is wrong is the worker's to find.
    (end <= object.len()).then_some(stored.offset..end)
}

/// Requests rows until none are left, and stays until all have been taken or the run is over.
pub(super) fn request_rows(run: &Run, rows: &Range<u64>) {
    let Some(window) = run.window() else { return };
    let _watch = Watch { window };
    let log = Arc::new(Mutex::new(RequestLog { log: Log::new(run, 0), lanes: Lanes::default() }));
    let mut lookup = Lookup::new(run);
    let lead = lead(run);
    let mut planner = Planner::new(run.config(), rows.clone(), run.shared().schedule.rows(), lead);
    let mut under_way: Vec<Request> = Vec::new();
    let mut first_requests = 0;
    while let Some(first) = window.first_within(planner.row(), planner.within()) {
        let look = |row| lookup.look(row, |sample, scratch| find(run, sample, scratch));
        let Some(parts) = planner.request(first, Instant::now(), look) else {
            if !planner.knows_all() {
                continue;
            }
            // The requests that are under way end with this.
            window.first_within(rows.end, 1);
            return;
        };
        if planner.row() < planner.first_rows_end() {
            first_requests += 1;
        } else if first_requests > FEW_REQUESTS {
            // Workers that wait for no row of it would read later ones by themselves.
            let most = (run.config().batch_size / FIRST_LEFT).max(run.config().workers);
            window.read_before(planner.first_rows_end(), most);
            first_requests = 0;
        }
        let parts = admit(window, parts);
        let Some(first_row) = parts.iter().map(|part| part.row).min() else { continue };
        // Rows may have been taken while there was no room.
        let Some(first) = window.first_within(first_row, lead) else { return };
        let needed_in = planner.needed_in(first_row, first, Instant::now());
        let Some(request) = start(run, window, &log, parts, needed_in) else { continue };
        if under_way.len() == under_way.capacity() {
            under_way.retain(|request| request.last_row >= first);
        }
        under_way.push(request);
    }
}

/// The rows that may be read ahead. The grouping of rows keeps its windows only so far, and objects of
/// one sample each have no neighbours to look for.
fn lead(run: &Run) -> u64 {
    let shards = run.dataset().shards();
    match run.config().batching {
        Batching::InOrder if shards.iter().any(|source| has_neighbours(&**source)) => LEAD,
        Batching::InOrder | Batching::Buckets(_) => MAX_ROWS,
    }
}

/// The place of a sample; `None` for one that is not requested here.
fn find(run: &Run, sample: u64, scratch: &mut Vec<u8>) -> Option<Wanted> {
    if run.caches().expects(run.dataset(), sample, scratch) {
        return None;
    }
    let (object, local) = run.dataset().place(sample).ok()?;
    let source = run.dataset().shards().get(object)?;
    // A local copy of the object is mapped, and nothing is read of it.
    if run.config().work == Work::Views && source.view(local).ok()?.is_some() {
        return None;
    }
    let range = range(&**source, local)?;
    // A sample that may not fit is the worker's.
    let fits =
        !run.memory().is_bounded() || range.end - range.start <= run.config().read_ahead_bytes;
    (!range.is_empty() && fits).then_some(Wanted { object, range, sample })
}

/// Waits until the window has room for the parts; those that somebody else has begun are left out.
fn admit(window: &Window, parts: Vec<Part>) -> Vec<Part> {
    let charge = |part: &Part| (part.row, part.wanted.range.end - part.wanted.range.start);
    let admitted = window.admit_together(parts.iter().map(charge).collect());
    let mut admitted = admitted.into_iter().map(|(row, _)| row).peekable();
    parts.into_iter().filter(|part| admitted.next_if_eq(&part.row).is_some()).collect()
}

/// A request that was started.
struct Request {
    last_row: u64,
    #[expect(dead_code, reason = "the request ends when this is dropped")]
    read: UnderWay,
}

fn start(
    run: &Run,
    window: &Arc<Window>,
    log: &Arc<Mutex<RequestLog>>,
    parts: Vec<Part>,
    needed_in: Option<Duration>,
) -> Option<Request> {
    let last_row = parts.iter().map(|part| part.row).max()?;
    let first = parts.first()?.wanted.sample;
    let ranges = parts.iter().map(|part| part.wanted.range.clone()).collect();
    let samples = parts.into_iter().map(|part| (part.row, part.wanted.sample)).collect();
    let lane = lock(log).lanes.take();
    let delivery = Delivery {
        window: Arc::clone(window),
        log: Arc::clone(log),
        samples,
        since: Instant::now(),
        lane,
    };
    // Rows whose object does not open are their workers', like all that `delivery` is dropped with.
    let (source, index) = run.dataset().locate(first).ok()?;
    let samples = self::samples(source)?;
    let object = match samples.source() {
        Some(object) => Cow::Borrowed(object),
        None => Cow::Owned(samples.stored(index).ok()??.source),
    };
    let read = object.background()?.start(ranges, needed_in, Box::new(delivery));
    Some(Request { last_row, read })
}

/// Brings the samples of a request to their rows.
struct Delivery {
    window: Arc<Window>,
    log: Arc<Mutex<RequestLog>>,
    /// The rows and samples that have not arrived.
    samples: VecDeque<(u64, u64)>,
    /// The start of the request, or the time at which the last sample arrived.
    since: Instant,
    lane: u32,
}

impl PartReceiver for Delivery {
    fn buffer(&mut self, len: usize) -> Vec<u8> {
        self.window.buffer(len)
    }

    fn receive(&mut self, bytes: Vec<u8>) {
        let Some((row, sample)) = self.samples.pop_front() else { return };
        let fetched = Fetched { sample, bytes, is_unpacked: false };
        lock(&self.log).log.read(sample, self.lane, self.since, &fetched);
        self.since = Instant::now();
        self.window.complete(row, Some(fetched));
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        for (row, _) in self.samples.drain(..) {
            self.window.complete(row, None);
        }
        lock(&self.log).lanes.give_back(self.lane);
    }
}

/// Counts and traces what requests bring.
struct RequestLog {
    log: Log,
    lanes: Lanes,
}

/// The lanes of a trace, one for each of the requests that are under way at once.
#[derive(Default)]
struct Lanes {
    free: Vec<u32>,
    most: u32,
}

impl Lanes {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.most += 1;
            self.most - 1
        })
    }

    fn give_back(&mut self, lane: u32) {
        self.free.push(lane);
    }
}
