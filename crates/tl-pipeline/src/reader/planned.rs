//! The reader of objects in stores: one thread that requests the samples of coming rows in the
//! background, many at once, in the requests that a [`Plan`] makes of their order.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use tbl_io::{PartReceiver, SampleSource, SampleSourceExt, StoredSamples, UnderWay};
use tl_handoff::sync::{Arc, Mutex, lock};
use tl_handoff::window::{Fetched, MAX_ROWS, Window};

use super::plan::{Part, Plan, Wanted};
use super::{Log, Lookup, Watch};
use crate::batching::Batching;
use crate::run::Run;
use crate::work::Work;

/// The rows that the plan looks ahead at most: it lists them. More than a window of the usual block
/// shuffles has.
pub(super) const LEAD: u64 = 1 << 16;

/// How long before their turn the next rows are requested, as far as there is room: some answers take
/// several times the usual one, and rows that are needed first may come last.
const AHEAD: Duration = Duration::from_millis(500);

/// The least time over which the rate of rows is measured. Batches are taken in bursts.
const MEASURED: Duration = Duration::from_millis(250);

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
    let first_rows_end = rows.start.saturating_add(run.config().batch_size as u64).min(rows.end);
    let mut plan = Plan::new(rows.start, first_rows_end, run.config().read_ahead_bytes);
    let lead = lead(run);
    let mut under_way: Vec<Request> = Vec::new();
    let mut demand = Demand::new(rows.start, Instant::now());
    let mut within = lead;
    let mut first_requests = 0;
    while let Some(first) = window.first_within(plan.row(), within) {
        plan.pass(first);
        demand.taken(first, Instant::now());
        let soon = demand.rows_in(AHEAD);
        let least = 2 * run.config().batch_size as u64;
        let epochs_end = epochs_end(first, soon.max(least), run.shared().schedule.rows());
        let known_end = first.saturating_add(lead).min(epochs_end).min(rows.end);
        while plan.next_unknown() < known_end && plan.reaches_further() {
            let row = plan.next_unknown();
            plan.push(lookup.look(row, |sample, scratch| find(run, sample, scratch)));
        }
        // Rows that are known may be requested, also when the rate has fallen since.
        within = known_end.max(plan.next_unknown()) - first;
        plan.leave_room(soon);
        let Some(parts) = plan.request() else {
            if plan.next_unknown() < rows.end {
                continue;
            }
            // The requests that are under way end with this.
            window.first_within(rows.end, 1);
            return;
        };
        if plan.row() < first_rows_end {
            first_requests += 1;
        } else if first_requests > FEW_REQUESTS {
            // Workers that wait for no row of it would read later ones by themselves.
            let most = (run.config().batch_size / FIRST_LEFT).max(run.config().workers);
            window.read_before(first_rows_end, most);
            first_requests = 0;
        }
        let parts = admit(window, parts);
        let Some(first_row) = parts.iter().map(|part| part.row).min() else { continue };
        // Rows may have been taken while there was no room.
        let Some(first) = window.first_within(first_row, lead) else { return };
        demand.taken(first, Instant::now());
        let needed_in = demand.needed_in(first_row);
        let Some(request) = start(run, window, &log, parts, needed_in) else { continue };
        if under_way.len() == under_way.capacity() {
            under_way.retain(|request| request.last_row >= first);
        }
        under_way.push(request);
    }
}

/// The end of the rows that may be read ahead when `first` is taken next: that of the epoch, of so many
/// rows, in which the next `soon` rows end. Many runs end with an epoch, and a small data set would
/// otherwise be received several times for one.
fn epochs_end(first: u64, soon: u64, rows: u64) -> u64 {
    (first.saturating_add(soon) / rows + 1).saturating_mul(rows)
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

/// The rate at which rows are taken, which tells when a row is needed.
struct Demand {
    /// The first row that has not been taken.
    first: u64,
    /// That row when the rate was last measured, and the time.
    measured: (u64, Instant),
    /// The time from one row to the next, once it is known.
    per_row: Option<Duration>,
}

impl Demand {
    fn new(first: u64, now: Instant) -> Self {
        Self { first, measured: (first, now), per_row: None }
    }

    /// Notes the first row that has not been taken.
    fn taken(&mut self, first: u64, now: Instant) {
        self.first = first;
        let (row, since) = self.measured;
        let time = now.saturating_duration_since(since);
        if first > row && time >= MEASURED {
            self.per_row = Some(time / u32::try_from(first - row).unwrap_or(u32::MAX));
            self.measured = (first, now);
        }
    }

    /// The rows that are taken in this time; zero while that is unknown.
    fn rows_in(&self, time: Duration) -> u64 {
        let rows = |per_row: Duration| time.as_nanos() / per_row.as_nanos().max(1);
        u64::try_from(self.per_row.map_or(0, rows)).unwrap_or(u64::MAX)
    }

    /// The time until a row is taken; `None` while that is unknown.
    fn needed_in(&self, row: u64) -> Option<Duration> {
        let rows = u32::try_from(row.saturating_sub(self.first)).unwrap_or(u32::MAX);
        self.per_row.map(|per_row| per_row.saturating_mul(rows))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_ahead_to_the_end_of_the_epoch_that_the_next_ones_reach() {
        assert_eq!(epochs_end(0, 20, 100), 100);
        assert_eq!(epochs_end(79, 20, 100), 100);
        assert_eq!(epochs_end(80, 20, 100), 200);
        assert_eq!(epochs_end(100, 20, 100), 200);
        assert_eq!(epochs_end(130, 20, 8), 152, "epochs may be short");
        assert_eq!(epochs_end(u64::MAX - 1, 20, 100), u64::MAX);
    }

    #[test]
    fn rows_are_needed_at_the_rate_at_which_others_were_taken() {
        let begun = Instant::now();
        let at = |millis| begun + Duration::from_millis(millis);
        let mut demand = Demand::new(100, begun);
        assert_eq!(demand.needed_in(1_000), None, "nothing is known");
        demand.taken(110, at(10));
        assert_eq!(demand.needed_in(1_000), None, "too short to tell");
        assert_eq!(demand.rows_in(Duration::from_secs(1)), 0);
        demand.taken(200, at(500));
        assert_eq!(demand.rows_in(Duration::from_secs(1)), 200);
        assert_eq!(demand.needed_in(300), Some(Duration::from_millis(500)));
        assert_eq!(demand.needed_in(200), Some(Duration::ZERO), "it is the next one");
        demand.taken(250, at(600));
        assert_eq!(demand.needed_in(300), Some(Duration::from_millis(250)));
        // The consumer was away for a while, which counts until it takes rows again.
        demand.taken(250, at(10_000));
        assert_eq!(demand.needed_in(300), Some(Duration::from_millis(9_500)));
        demand.taken(300, at(10_500));
        assert_eq!(demand.needed_in(301), Some(Duration::from_millis(10)));
    }
}
