//! Requests of samples, by their rows or for blocks that a cache keeps, and what they bring.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use tbl_io::{PartReceiver, UnderWay};
use tl_handoff::sync::{Arc, Mutex, lock};
use tl_handoff::window::{Fetched, Window};

use super::log::Log;
use super::plan::{GAP, LARGEST, Part};
use crate::cache::{Assembly, Begun, Layout, Member};
use crate::placement::requested_samples;
use crate::run::Run;

/// A sample that a request brings.
pub(super) struct Target {
    /// Its bytes in the object.
    pub(super) range: Range<u64>,
    pub(super) sample: u64,
    /// The row that needs it; `None` if only the cache does.
    pub(super) row: Option<u64>,
    /// Its place in the block that is collected.
    pub(super) place: usize,
}

/// Starts one request, for rows of `window` or for a block.
pub(super) fn start(
    run: &Run,
    window: &Arc<Window>,
    log: Option<&Arc<Mutex<RequestLog>>>,
    targets: VecDeque<Target>,
    needed_in: Option<Duration>,
    block: Option<&Arc<Assembly>>,
) -> Option<UnderWay> {
    let first = targets.front()?.sample;
    let ranges = targets.iter().map(|target| target.range.clone()).collect();
    let lane = log.map(|log| lock(log).lanes.take());
    let delivery = Delivery {
        window: Arc::clone(window),
        log: log.cloned(),
        targets,
        block: block.cloned(),
        since: Instant::now(),
        lane: lane.unwrap_or_default(),
    };
    // Rows whose object does not open are their workers', like all that `delivery` is dropped with.
    let (source, index) = run.dataset().locate(first).ok()?;
    let samples = requested_samples(source)?;
    let object = match samples.source() {
        Some(object) => Cow::Borrowed(object),
        None => Cow::Owned(samples.stored(index).ok()??.source),
    };
    Some(object.background()?.start(ranges, needed_in, Box::new(delivery)))
}

/// Requests the block of a sample that a worker needs now, of which no row is requested. False if it
/// is not kept.
pub(crate) fn fetch_block(run: &Run, sample: u64) -> bool {
    let Some((window, blocks)) = run.window().zip(run.caches().blocks()) else { return false };
    let block = blocks.may_take().then(|| blocks.layout(sample)).flatten();
    let Some(block) = block.filter(|block| !blocks.has_failed(block.number)) else { return false };
    match blocks.begin(&block, block.bytes, &|| run.is_over()) {
        Begun::Here(assembly) => {
            for targets in requests_of(&block, &[], |_| true) {
                let needed_in = Some(Duration::ZERO);
                let read = start(run, window, None, targets, needed_in, Some(&assembly));
                if let Some(read) = read {
                    assembly.hold(read, false);
                }
            }
            true
        }
        Begun::Elsewhere => true,
        Begun::Nowhere => false,
    }
}

/// The requests that bring samples of a block, of which `parts` have rows: several where much lies
/// between two of them.
pub(super) fn requests_of(
    block: &Layout,
    parts: &[Part],
    is_wanted: impl Fn(&Target) -> bool,
) -> Vec<VecDeque<Target>> {
    let rows: HashMap<u64, u64> = parts.iter().map(|part| (part.wanted.sample, part.row)).collect();
    let target = |(place, member): (usize, &Member)| Target {
        range: member.range.clone(),
        sample: member.sample,
        row: rows.get(&member.sample).copied(),
        place,
    };
    let mut targets: Vec<Target> = block.members.iter().enumerate().map(target).collect();
    targets.retain(|target| !target.range.is_empty() && is_wanted(target));
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
    /// `None` for the cache alone.
    log: Option<Arc<Mutex<RequestLog>>>,
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
        if let Some(log) = &self.log {
            lock(log).log.read(sample, self.lane, self.since, &fetched);
        }
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
        if let Some(log) = &self.log {
            lock(log).lanes.give_back(self.lane);
        }
    }
}

/// Counts and traces what requests bring.
pub(super) struct RequestLog {
    log: Log,
    lanes: Lanes,
}

impl RequestLog {
    pub(super) fn new(log: Log) -> Self {
        Self { log, lanes: Lanes::default() }
    }
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
