//! The events of a simulation, in the order of their times.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

use super::{Cluster, Job, Simulated};
use crate::config::LoaderConfig;
use crate::error::PipelineError;
use crate::order::{Blocks, Order, Sampler, Shuffle};
use crate::reader::lead;
use crate::reader::plan::{Part, Wanted};
use crate::reader::planned::LEAD;
use crate::reader::planner::Planner;
use crate::schedule::{Schedule, Shard};
use crate::work::Work;

/// Something that happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The first byte of a request arrives.
    FirstByte(usize),
    /// A training step is over.
    StepEnd,
}

/// A request that is under way.
struct Flow {
    rank: usize,
    parts: VecDeque<Part>,
    /// The first byte that was asked for.
    start: u64,
    /// The node's `passed` when this one began.
    begun: f64,
}

/// A machine's link, on which all requests have the same rate.
#[derive(Default)]
struct Node {
    active: usize,
    /// Bytes that a request would have received that had been under way from the start.
    passed: f64,
    /// The value of `passed` at which the next part of a request is there.
    due: BinaryHeap<Reverse<(Due, usize)>>,
}

#[derive(Clone, Copy, Debug)]
struct Due(f64);

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

/// A row that has not been taken.
#[derive(Clone, Copy)]
enum Row {
    OnDisk,
    Awaited,
    Ready,
}

/// A process with a loader.
struct Rank {
    node: usize,
    planner: Planner,
    schedule: Schedule,
    /// The first row that has not been taken, and those after it that the planner has looked at.
    first: u64,
    rows: VecDeque<Row>,
    /// Bytes that are requested and not taken.
    charged: u64,
    /// A request that does not fit yet.
    pending: Option<Vec<Part>>,
    /// Requests that wait for a connection.
    queue: VecDeque<Vec<Part>>,
    under_way: usize,
    /// Batches that training has taken.
    taken: u64,
    is_planned: bool,
}

/// The state of a simulation.
pub(super) struct Engine<'a> {
    cluster: &'a Cluster,
    job: &'a Job,
    config: LoaderConfig,
    order: Order,
    end_row: u64,
    base: Instant,
    now: f64,
    timers: BinaryHeap<Reverse<(Due, Event)>>,
    nodes: Vec<Node>,
    ranks: Vec<Rank>,
    flows: Vec<Option<Flow>>,
    free: Vec<usize>,
    random: u64,
    /// The step that training is in, and when it ends.
    step: u64,
    step_ends: f64,
    found: Simulated,
}

impl<'a> Engine<'a> {
    pub(super) fn new(cluster: &'a Cluster, job: &'a Job) -> Result<Self, PipelineError> {
        let world = cluster.nodes * cluster.ranks;
        let mut config = LoaderConfig {
            batch_size: job.batch_size,
            sampler: job.shuffle.into(),
            seed: job.seed,
            ..LoaderConfig::new(Work::Bytes)
        };
        let rows = lead::window_rows(job.shuffle, world.into(), |blocks| match blocks {
            Blocks::Samples(samples) => samples,
            Blocks::Source => job.object_samples,
        });
        let wanted = lead::wanted(rows.min(job.samples), job.sample_bytes);
        config.read_ahead_bytes = match job.read_ahead_bytes {
            0 => lead::LEAST.max(wanted),
            bytes => bytes,
        };
        let sampler = Sampler::from(job.shuffle);
        let global_batch = (job.batch_size as u64).saturating_mul(world.into());
        let sequence = sampler.resolve_over(job.samples, global_batch, &[], |_| None)?;
        let mut ranks = Vec::new();
        let mut end_row = u64::MAX;
        for rank in 0..cluster.simulated * cluster.ranks {
            let shard = Shard { rank, world, tail: None };
            let schedule = Schedule::new(sequence.len(), job.batch_size, shard)?;
            end_row = job.batches.min(schedule.batches()).saturating_mul(job.batch_size as u64);
            end_row = end_row.min(schedule.rows());
            ranks.push(Rank {
                node: (rank / cluster.ranks) as usize,
                planner: Planner::new(&config, 0..end_row, schedule.rows(), LEAD),
                schedule,
                first: 0,
                rows: VecDeque::new(),
                charged: 0,
                pending: None,
                queue: VecDeque::new(),
                under_way: 0,
                taken: 0,
                is_planned: false,
            });
        }
        let read_ahead_bytes = config.read_ahead_bytes;
        let found =
            Simulated { ranks: ranks.len() as u64, read_ahead_bytes, ..Simulated::default() };
        Ok(Self {
            cluster,
            job,
            config,
            order: sequence.order(job.seed, 0),
            end_row,
            base: Instant::now(),
            now: 0.0,
            timers: BinaryHeap::new(),
            nodes: (0..cluster.simulated).map(|_| Node::default()).collect(),
            ranks,
            flows: Vec::new(),
            free: Vec::new(),
            random: job.seed,
            step: 0,
            step_ends: 0.0,
            found,
        })
    }

    pub(super) fn run(mut self) -> Simulated {
        for rank in 0..self.ranks.len() {
            self.drive(rank);
        }
        self.start_step();
        while self.advance() {}
        self.found
    }

    /// Requests what a rank may request now, and takes the rows that are there.
    fn drive(&mut self, rank: usize) {
        loop {
            let taken = self.take(rank);
            let requested = self.request(rank);
            if !taken && !requested {
                return;
            }
        }
    }

    /// Lets a rank's workers take rows up to the batches that may be ready.
    fn take(&mut self, number: usize) -> bool {
        let rank = &mut self.ranks[number];
        let batch = self.job.batch_size as u64;
        let before = rank.first;
        while rank.first < rank.taken.saturating_add(self.job.prefetch).saturating_mul(batch)
            && let Some(row @ (Row::OnDisk | Row::Ready)) = rank.rows.front()
        {
            match row {
                Row::OnDisk => self.found.from_disk += self.job.sample_bytes,
                Row::Ready | Row::Awaited => rank.charged -= self.job.sample_bytes,
            }
            rank.rows.pop_front();
            rank.first += 1;
        }
        self.found.rows += rank.first - before;
        let ready = rank.first / batch
            + u64::from(rank.first == self.end_row && !self.end_row.is_multiple_of(batch));
        if before < batch.min(self.end_row) && ready > 0 {
            self.found.first_batch = self.found.first_batch.max(seconds(self.now));
        }
        if self.cluster.step.is_none() {
            rank.taken = ready;
            if rank.first == self.end_row {
                self.found.time = self.found.time.max(seconds(self.now));
            }
        }
        rank.first > before
    }

    /// Sends the next request of a rank, if it may be sent.
    fn request(&mut self, number: usize) -> bool {
        let Self { cluster, job, config, order, base, now, .. } = self;
        let rank = &mut self.ranks[number];
        if rank.pending.is_none() {
            if rank.is_planned
                || rank.planner.row() >= rank.first.saturating_add(rank.planner.within())
            {
                return false;
            }
            let Rank { rows, schedule, node, planner, first, .. } = rank;
            let batch = job.batch_size as u64;
            let block = block_samples(job);
            let look = |row: u64| {
                let sample = order.sample_at(schedule.slot(row / batch, row % batch).position)?;
                let is_cached = unit(mixed(sample / block, *node as u64)) < cluster.cached;
                rows.push_back(if is_cached { Row::OnDisk } else { Row::Awaited });
                let start = sample % job.object_samples * job.sample_bytes;
                let object = usize::try_from(sample / job.object_samples).ok()?;
                let range = start..start + job.sample_bytes;
                (!is_cached).then_some(Wanted { object, range, sample })
            };
            let at = *base + seconds(*now);
            planner.look_ahead(*first, at, look);
            rank.pending = planner.plan().request(None);
            rank.is_planned = rank.pending.is_none() && rank.planner.knows_all();
            if rank.pending.is_none() {
                return !rank.is_planned;
            }
        }
        let bytes = job.sample_bytes * rank.pending.as_ref().map_or(0, |parts| parts.len() as u64);
        if rank.charged > 0 && rank.charged + bytes > config.read_ahead_bytes {
            return false;
        }
        rank.charged += bytes;
        self.found.read_ahead = self.found.read_ahead.max(rank.charged);
        rank.queue.extend(rank.pending.take());
        self.send(number);
        true
    }

    /// Sends requests that wait for a connection, as far as there are connections.
    fn send(&mut self, number: usize) {
        while self.ranks[number].under_way < self.cluster.connections {
            let rank = &mut self.ranks[number];
            let Some(parts) = rank.queue.pop_front() else { return };
            rank.under_way += 1;
            let start = parts.first().map_or(0, |part| part.wanted.range.start);
            let end = parts.last().map_or(0, |part| part.wanted.range.end);
            self.found.requests += 1;
            self.found.received += end - start;
            let flow = Flow { rank: number, parts: parts.into(), start, begun: 0.0 };
            let place = self.free.pop().unwrap_or(self.flows.len());
            if place == self.flows.len() {
                self.flows.push(None);
            }
            self.flows[place] = Some(flow);
            let wait =
                self.cluster.first_byte.as_secs_f64() * (self.cluster.sigma * self.normal()).exp();
            self.timers.push(Reverse((Due(self.now + wait), Event::FirstByte(place))));
        }
    }

    /// A number from the normal distribution (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        let mut next = || {
            self.random = self.random.wrapping_add(1);
            unit(mixed(self.random, self.job.seed))
        };
        let radius = next();
        let angle = next();
        (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Bytes a second of each request on a node.
    fn rate(&self, node: &Node, active: usize) -> f64 {
        let share = self.cluster.link / float(node.active);
        // Machines that are not simulated have as many requests as those that are.
        let simulated = f64::from(self.cluster.simulated) / f64::from(self.cluster.nodes);
        let of_store = self.cluster.store * simulated / float(active);
        self.cluster.connection.min(share).min(of_store)
    }

    /// Goes to the next time at which something happens; false when nothing will.
    fn advance(&mut self) -> bool {
        let active: usize = self.nodes.iter().map(|node| node.active).sum();
        let mut next = self.timers.peek().map(|Reverse((Due(time), _))| (*time, None));
        for (number, node) in self.nodes.iter().enumerate() {
            let Some(Reverse((Due(passed), _))) = node.due.peek() else { continue };
            let time = self.now + (passed - node.passed).max(0.0) / self.rate(node, active);
            if next.is_none_or(|(earliest, _)| time < earliest) {
                next = Some((time, Some(number)));
            }
        }
        let Some((time, node)) = next else { return false };
        for number in 0..self.nodes.len() {
            let node = &self.nodes[number];
            if node.active > 0 {
                let passed = self.rate(node, active) * (time - self.now);
                self.nodes[number].passed += passed;
            }
        }
        self.now = time;
        match node {
            Some(node) => self.part_is_there(node),
            None => {
                let Some(Reverse((_, event))) = self.timers.pop() else { return false };
                match event {
                    Event::FirstByte(flow) => self.first_byte(flow),
                    Event::StepEnd => self.start_step(),
                }
            }
        }
        true
    }

    fn first_byte(&mut self, place: usize) {
        let Some(flow) = &mut self.flows[place] else { return };
        let node = &mut self.nodes[self.ranks[flow.rank].node];
        node.active += 1;
        flow.begun = node.passed;
        let end = flow.parts.front().map_or(flow.start, |part| part.wanted.range.end);
        node.due.push(Reverse((Due(flow.begun + real(end - flow.start)), place)));
    }

    /// The next part of a request on this node has arrived.
    fn part_is_there(&mut self, node: usize) {
        let Some(Reverse((_, place))) = self.nodes[node].due.pop() else { return };
        let Some(flow) = &mut self.flows[place] else { return };
        let number = flow.rank;
        let rank = &mut self.ranks[number];
        if let Some(part) = flow.parts.pop_front() {
            let row = usize::try_from(part.row.wrapping_sub(rank.first)).ok();
            if let Some(row) = row.and_then(|row| rank.rows.get_mut(row)) {
                *row = Row::Ready;
            }
        }
        let node = &mut self.nodes[node];
        if let Some(part) = flow.parts.front() {
            let due = flow.begun + real(part.wanted.range.end - flow.start);
            node.due.push(Reverse((Due(due), place)));
        } else {
            self.flows[place] = None;
            self.free.push(place);
            node.active -= 1;
            rank.under_way -= 1;
            self.send(number);
        }
        self.drive(number);
        self.start_step();
    }

    /// Starts the next step of training, if the last one is over and every rank has its batch.
    fn start_step(&mut self) {
        let Some(length) = self.cluster.step else { return };
        let batch = self.job.batch_size as u64;
        let end = ((self.step + 1) * batch).min(self.end_row);
        let is_over = self.step * batch >= self.end_row || self.now < self.step_ends;
        if is_over || self.ranks.iter().any(|rank| rank.first < end) {
            return;
        }
        if self.step > 0 {
            self.found.waited += seconds(self.now - self.step_ends);
        }
        self.step += 1;
        self.step_ends = self.now + length.as_secs_f64();
        self.found.time = seconds(self.step_ends);
        self.timers.push(Reverse((Due(self.step_ends), Event::StepEnd)));
        for number in 0..self.ranks.len() {
            self.ranks[number].taken = self.step;
            self.drive(number);
        }
    }
}

/// Samples of a block that a disk keeps: those of the shuffle, or 2 MiB.
fn block_samples(job: &Job) -> u64 {
    match job.shuffle {
        Shuffle::Block { blocks: Blocks::Samples(samples), .. }
        | Shuffle::Lanes { blocks: Blocks::Samples(samples), .. } => samples,
        Shuffle::Block { .. } | Shuffle::Lanes { .. } => job.object_samples,
        Shuffle::None | Shuffle::Full => ((2 << 20) / job.sample_bytes.max(1)).max(1),
    }
}

/// Two numbers mixed to one that looks random (the finalizer of `MurmurHash3`).
fn mixed(one: u64, other: u64) -> u64 {
    let mut bits = one.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ other.rotate_left(32);
    for multiplier in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        bits = (bits ^ (bits >> 33)).wrapping_mul(multiplier);
    }
    bits ^ (bits >> 33)
}

/// A number from 0 to 1, less than that.
fn unit(bits: u64) -> f64 {
    real(bits >> 11) / real(1 << 53)
}

fn seconds(time: f64) -> Duration {
    Duration::from_secs_f64(time.max(0.0))
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a request, and bits that were cut")]
fn real(number: u64) -> f64 {
    number as f64
}

fn float(number: usize) -> f64 {
    real(number as u64)
}
