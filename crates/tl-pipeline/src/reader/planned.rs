//! The reader of objects in stores: one thread that requests the samples of coming rows in the
//! background, many at once, in the requests that a [`Planner`] chooses.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use tbl_io::{PartReceiver, SampleSourceExt, UnderWay};
use tl_handoff::sync::{Arc, Mutex, lock};
use tl_handoff::window::{Fetched, MAX_ROWS, Window};

use super::plan::{GAP, LARGEST, Part, Plan, Wanted};
use super::planner::Planner;
use super::{Log, Lookup, Watch};
use crate::batching::Batching;
use crate::cache::{Assembly, Begun, Layout, Member};
use crate::placement::{has_neighbours, requested_range, requested_samples};
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

/// Requests rows until none are left, and stays until all have been taken or the run is over.
pub(super) fn request_rows(run: &Run, rows: &Range<u64>) {
    let Some(window) = run.window() else { return };
    let _watch = Watch { window };
    let log = RequestLog { log: Log::new(run, 0), lanes: Lanes::default() };
    let requester = Requester { run, window, log: Arc::new(Mutex::new(log)) };
    let mut lookup = Lookup::new(run);
    let lead = lead(run);
    let mut planner = Planner::new(run.config(), rows.clone(), run.shared().schedule.rows(), lead);
    let mut under_way: Vec<Request> = Vec::new();
    let mut first_requests = 0;
    while let Some(first) = window.first_within(planner.row(), planner.within()) {
        let look = |row| lookup.look(row, |sample, scratch| find(run, sample, scratch));
        planner.look_ahead(first, Instant::now(), look);
        let Some(NextRequest { parts, block }) = next_request(run, planner.plan()) else {
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
        let parts = match block {
            Some(block) => {
                let takes_extra = first_row >= planner.first_rows_end();
                let rest = requester.start_block(&block, takes_extra, parts, needed_in);
                if rest.is_kept {
                    let is_member = |sample| block.place(sample).is_some();
                    planner.plan().leave(block.object, &block.bounds(), is_member);
                }
                rest.parts
            }
            None => parts,
        };
        let Some(request) = requester.start_rows(parts, needed_in) else { continue };
        if under_way.len() == under_way.capacity() {
            under_way.retain(|request| request.last_row >= first);
        }
        under_way.push(request);
    }
}

/// Rows to request, and the block of their samples if that may be kept.
struct NextRequest {
    parts: Vec<Part>,
    block: Option<Layout>,
}

/// The next rows to request: neighbours of one block, where blocks are kept. Rows whose block is on
/// disk, or on its way there, are left to their workers.
fn next_request(run: &Run, plan: &mut Plan) -> Option<NextRequest> {
    let Some(blocks) = run.caches().blocks() else {
        return Some(NextRequest { parts: plan.request(None)?, block: None });
    };
    loop {
        let Wanted { object, range, sample } = plan.next()?.clone();
        let bounds = blocks.bounds(sample).unwrap_or(range);
        if blocks.has(sample) || blocks.awaits(sample) {
            plan.leave(object, &bounds, |other| blocks.are_together(sample, other));
            continue;
        }
        let block = blocks.may_take().then(|| blocks.layout(sample)).flatten();
        return Some(NextRequest { parts: plan.request(Some(&bounds))?, block });
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
    let range = requested_range(&**source, local)?;
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

/// Starts requests.
struct Requester<'a> {
    run: &'a Run,
    window: &'a Arc<Window>,
    log: Arc<Mutex<RequestLog>>,
}

/// The rows of a block that are to be requested by themselves.
struct Rest {
    parts: Vec<Part>,
    /// Whether the block is kept, or will be.
    is_kept: bool,
}

/// A sample that a request brings.
struct Target {
    /// Its bytes in the object.
    range: Range<u64>,
    sample: u64,
    /// The row that needs it; `None` if only the cache does.
    row: Option<u64>,
    /// Its place in the block that is collected.
    place: usize,
}

impl Requester<'_> {
    /// Requests the whole block of some rows, if it can be kept. `takes_extra` tells whether samples of
    /// other rows may come with them.
    fn start_block(
        &self,
        block: &Layout,
        takes_extra: bool,
        parts: Vec<Part>,
        needed_in: Option<Duration>,
    ) -> Rest {
        let bytes = |part: &Part| match block.place(part.wanted.sample) {
            Some(_) => part.wanted.range.end - part.wanted.range.start,
            None => 0,
        };
        let extra = block.bytes.saturating_sub(parts.iter().map(bytes).sum());
        let blocks = self.run.caches().blocks();
        let Some(blocks) = blocks.filter(|_| extra == 0 || takes_extra) else {
            return Rest { parts, is_kept: false };
        };
        let begun = blocks.begin(block, extra, &|| self.run.is_over());
        if matches!(begun, Begun::Nowhere) {
            return Rest { parts, is_kept: false };
        }
        let is_member = |part: &Part| block.place(part.wanted.sample).is_some();
        let (own, others): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(is_member);
        if let Begun::Here(assembly) = begun {
            for targets in requests_of(block, &own) {
                if let Some(read) = self.start(targets, needed_in, Some(&assembly)) {
                    assembly.hold(read);
                }
            }
        } else {
            // Their workers find them there.
            own.iter().for_each(|part| self.window.complete(part.row, None));
        }
        Rest { parts: others, is_kept: true }
    }

    /// Requests rows.
    fn start_rows(&self, parts: Vec<Part>, needed_in: Option<Duration>) -> Option<Request> {
        let last_row = parts.iter().map(|part| part.row).max()?;
        let target = |Part { row, wanted: Wanted { range, sample, .. } }| Target {
            range,
            sample,
            row: Some(row),
            place: 0,
        };
        let read = self.start(parts.into_iter().map(target).collect(), needed_in, None)?;
        Some(Request { last_row, read })
    }

    /// Starts one request.
    fn start(
        &self,
        targets: VecDeque<Target>,
        needed_in: Option<Duration>,
        block: Option<&Arc<Assembly>>,
    ) -> Option<UnderWay> {
        let first = targets.front()?.sample;
        let ranges = targets.iter().map(|target| target.range.clone()).collect();
        let lane = lock(&self.log).lanes.take();
        let delivery = Delivery {
            window: Arc::clone(self.window),
            log: Arc::clone(&self.log),
            targets,
            block: block.cloned(),
            since: Instant::now(),
            lane,
        };
        // Rows whose object does not open are their workers', like all that `delivery` is dropped with.
        let (source, index) = self.run.dataset().locate(first).ok()?;
        let samples = requested_samples(source)?;
        let object = match samples.source() {
            Some(object) => Cow::Borrowed(object),
            None => Cow::Owned(samples.stored(index).ok()??.source),
        };
        Some(object.background()?.start(ranges, needed_in, Box::new(delivery)))
    }
}

/// The requests that bring all samples of a block, of which `parts` have rows: several where much lies
/// between two of them.
fn requests_of(block: &Layout, parts: &[Part]) -> Vec<VecDeque<Target>> {
    let rows: HashMap<u64, u64> = parts.iter().map(|part| (part.wanted.sample, part.row)).collect();
    let target = |(place, member): (usize, &Member)| Target {
        range: member.range.clone(),
        sample: member.sample,
        row: rows.get(&member.sample).copied(),
        place,
    };
    let mut targets: Vec<Target> = block.members.iter().enumerate().map(target).collect();
    targets.retain(|target| !target.range.is_empty());
    targets.sort_by_key(|target| target.range.start);
    let mut requests: Vec<VecDeque<Target>> = Vec::new();
    for target in targets {
        let follows = |request: &&mut VecDeque<Target>| {
            let first = &request[0].range;
            let last = &request[request.len() - 1].range;
            target.range.start - last.end <= GAP && target.range.end - first.start <= LARGEST
        };
        match requests.last_mut().filter(follows) {
            Some(request) => request.push_back(target),
            None => requests.push(VecDeque::from([target])),
        }
    }
    requests
}

/// Brings the samples of a request to their rows, and to the block that is collected.
struct Delivery {
    window: Arc<Window>,
    log: Arc<Mutex<RequestLog>>,
    /// The samples that have not arrived.
    targets: VecDeque<Target>,
    block: Option<Arc<Assembly>>,
    /// The start of the request, or the time at which the last sample arrived.
    since: Instant,
    lane: u32,
}

impl PartReceiver for Delivery {
    fn buffer(&mut self, len: usize) -> Vec<u8> {
        if self.targets.front().is_some_and(|target| target.row.is_some()) {
            return self.window.buffer(len);
        }
        // Kept as long as the block, and no longer than it is needed.
        with_capacity(len)
    }

    fn receive(&mut self, bytes: Vec<u8>) {
        let Some(Target { row, sample, place, .. }) = self.targets.pop_front() else { return };
        let block = self.block.as_ref().filter(|block| block.is_open());
        let Some(row) = row else {
            if let Some(block) = block {
                block.receive(place, bytes);
            }
            return;
        };
        let copy = block.map(|block| {
            let mut copy = with_capacity(bytes.len());
            if copy.capacity() >= bytes.len() {
                copy.extend_from_slice(&bytes);
            }
            (block, copy)
        });
        let fetched = Fetched { sample, bytes, is_unpacked: false };
        lock(&self.log).log.read(sample, self.lane, self.since, &fetched);
        self.since = Instant::now();
        self.window.complete(row, Some(fetched));
        if let Some((block, copy)) = copy {
            block.receive(place, copy);
        }
    }
}

/// An empty buffer for `len` bytes, without capacity where memory is refused.
fn with_capacity(len: usize) -> Vec<u8> {
    let mut buffer = Vec::new();
    drop(buffer.try_reserve_exact(len));
    buffer
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(block) = self.block.as_ref().filter(|_| !self.targets.is_empty()) {
            block.fail();
        }
        for row in self.targets.drain(..).filter_map(|target| target.row) {
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
