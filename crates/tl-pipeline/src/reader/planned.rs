//! The reader of objects in stores: one thread that requests the samples of coming rows in the
//! background, many at once, in the requests that a [`Planner`] chooses.

mod blocks;

use std::ops::Range;
use std::time::{Duration, Instant};

use tbl_io::{SampleSourceExt, UnderWay};
use tl_handoff::sync::{Arc, Mutex};
use tl_handoff::window::{MAX_ROWS, Window};

use self::blocks::HeldBack;
use super::log::Log;
use super::plan::{Part, Plan, Wanted};
use super::planner::Planner;
use super::requests::{RequestLog, Target, start};
use super::{Lookup, Watch};
use crate::batching::Batching;
use crate::cache::{Assembly, Layout};
use crate::placement::{has_neighbours, requested_range};
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
    let log = Arc::new(Mutex::new(RequestLog::new(Log::new(run, 0))));
    let held_back = HeldBack::default();
    let begun = Vec::new();
    let mut requester = Requester { run, window, log, held_back, begun };
    if let Some(blocks) = run.caches().blocks() {
        blocks.forgive();
    }
    let mut lookup = Lookup::new(run);
    let lead = lead(run);
    let mut planner = Planner::new(run.config(), rows.clone(), run.shared().schedule.rows(), lead);
    let mut under_way: Vec<Request> = Vec::new();
    let mut first_requests = 0;
    let mut first_bytes = 0;
    while let Some(first) = window.first_within(planner.row(), planner.within()) {
        let look = |row| lookup.look(row, |sample, scratch| find(run, sample, scratch));
        planner.look_ahead(first, Instant::now(), look);
        if !planner.has_first_row() {
            if first_requests > FEW_REQUESTS {
                // Workers that wait for no row of it would read later ones by themselves.
                let most = (run.config().batch_size / FIRST_LEFT).max(run.config().workers);
                window.read_before(planner.first_rows_end(), most);
            }
            first_requests = 0;
            // Before this thread waits for workers, who may wait for these samples.
            requester.start_held_back();
        }
        let next = next_request(run, planner.plan(), &requester.held_back);
        let Some(NextRequest { parts, block }) = next else {
            if !planner.knows_all() {
                continue;
            }
            // The requests that are under way end with this.
            window.first_within(rows.end, 1);
            return;
        };
        if planner.row() < planner.first_rows_end() {
            first_requests += 1;
            first_bytes += parts.iter().map(Part::bytes).sum::<u64>();
        }
        if first_bytes > run.config().read_ahead_bytes {
            // Room is made by workers, who may wait for samples that are held back.
            requester.start_held_back();
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
    block: Option<Arc<Layout>>,
}

/// The next rows to request: neighbours of one block, where blocks are kept. Rows whose block is on
/// disk, or on its way there, are left to their workers.
fn next_request(run: &Run, plan: &mut Plan, held_back: &HeldBack) -> Option<NextRequest> {
    let Some(blocks) = run.caches().blocks() else {
        return Some(NextRequest { parts: plan.request(None)?, block: None });
    };
    loop {
        let Wanted { object, range, sample } = plan.next()?.clone();
        if held_back.has(sample) || !(blocks.has(sample) || blocks.awaits(sample)) {
            let block = blocks.may_take().then(|| blocks.layout(sample)).flatten().map(Arc::new);
            // Where nothing is kept, blocks bound no request.
            let bounds = block.is_some().then(|| blocks.bounds(sample).unwrap_or(range));
            let parts = plan.request(bounds.as_ref())?;
            if block.is_none() {
                // With their blocks they would come twice.
                parts.iter().for_each(|part| blocks.refuse_block_of(part.wanted.sample));
            }
            return Some(NextRequest { parts, block });
        }
        let bounds = blocks.bounds(sample).unwrap_or(range);
        plan.leave(object, &bounds, |other| blocks.are_together(sample, other));
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
    held_back: HeldBack,
    /// The blocks that were begun, as far as they have not arrived.
    begun: Vec<Arc<Assembly>>,
}

/// The rows of a block that are to be requested by themselves.
struct Rest {
    parts: Vec<Part>,
    /// Whether all other rows of the block are left to the cache.
    is_kept: bool,
}

impl Requester<'_> {
    /// Requests rows.
    fn start_rows(&self, parts: Vec<Part>, needed_in: Option<Duration>) -> Option<Request> {
        let last_row = parts.iter().map(|part| part.row).max()?;
        let target = |Part { row, wanted: Wanted { range, sample, .. } }| Target {
            range,
            sample,
            row: Some(row),
            place: 0,
        };
        let targets = parts.into_iter().map(target).collect();
        let read = start(self.run, self.window, Some(&self.log), targets, needed_in, None)?;
        Some(Request { last_row, read })
    }
}
