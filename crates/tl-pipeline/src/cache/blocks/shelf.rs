//! The blocks of a loader that are on their way to the disk, and the thread that writes them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use tl_handoff::sync::{
    Arc, AtomicU64, Condvar, Mutex, Ordering, lock, thread, wait, wait_timeout,
};

use super::assembly::Assembly;
use super::claims::Claims;
use super::layout::Layout;
use crate::cache::CacheStats;
use crate::cache::disk::{Disk, EntryFile};
use crate::cache::entry;
use crate::cache::errands::Errands;
use crate::cache::folder::cost;

/// The time after which a thread that waits looks whether its run is over.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// The wait for others that change the ledger: longer ones would hold up requests.
const PATIENCE: Duration =
    Duration::from_millis(if cfg!(feature = "shuttle") { 600_000 } else { 50 });

/// How long the last blocks of a loader are written after it is dropped.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// The part of the memory for blocks that those may have which wait for the disk, one in so many. Beyond
/// it the disk is too slow, and blocks are not begun.
const WAITING: u64 = 2;

/// Blocks that are fetched, and those that wait to be written.
#[derive(Debug)]
pub(super) struct Shelf {
    pub(super) disk: Arc<Disk>,
    pub(super) claims: Claims,
    /// All of them, by their numbers.
    pending: Mutex<HashMap<u64, Arc<Assembly>>>,
    /// The numbers of blocks that did not arrive or were not written in this epoch.
    failed: Mutex<HashSet<u64>>,
    /// The most bytes of memory that they have.
    budget: u64,
    room: Mutex<Room>,
    /// Signalled when `room` changes.
    changed: Condvar,
    errands: Errands,
    dropped: Arc<AtomicU64>,
    large: AtomicU64,
    bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct Room {
    /// Bytes of memory that are reserved or in use.
    held: u64,
    /// Those of blocks that wait for the disk or are being written.
    waiting: u64,
    blocks: VecDeque<Arc<Assembly>>,
    /// The time at which nothing more is written, once the loader is gone.
    ends: Option<Instant>,
    has_writer: bool,
    writer: Option<thread::JoinHandle<()>>,
}

/// The answer to a block that would be fetched.
#[derive(Debug)]
pub(crate) enum Begun {
    /// It is fetched here.
    Here(Arc<Assembly>),
    /// It is there, or somebody else fetches it.
    Elsewhere,
    /// It cannot be kept.
    Nowhere,
}

impl Shelf {
    pub(super) fn new(disk: Arc<Disk>, budget: u64) -> Self {
        let claims = Claims::open(&disk.folder().claims()).unwrap_or_default();
        Self {
            disk,
            claims,
            pending: Mutex::default(),
            failed: Mutex::default(),
            budget,
            room: Mutex::default(),
            changed: Condvar::new(),
            errands: Errands::new(),
            dropped: Arc::new(AtomicU64::new(0)),
            large: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// The most bytes of a block.
    pub(super) fn budget(&self) -> u64 {
        self.budget
    }

    /// A block that is fetched here.
    pub(super) fn pending(&self, number: u64) -> Option<Arc<Assembly>> {
        lock(&self.pending).get(&number).cloned()
    }

    /// Whether a block of so many bytes could be kept, as far as that is known.
    pub(super) fn takes(&self, bytes: u64) -> bool {
        bytes <= self.budget && self.disk.has_room(bytes)
    }

    /// Notes that a block is not kept.
    pub(super) fn refuse(&self, number: u64) {
        lock(&self.failed).insert(number);
    }

    /// Tries all blocks again.
    pub(super) fn forgive(&self) {
        lock(&self.failed).clear();
    }

    /// True if a block was not kept in this epoch.
    pub(super) fn has_failed(&self, number: u64) -> bool {
        lock(&self.failed).contains(&number)
    }

    /// See [`Blocks::begin`](super::Blocks::begin).
    pub(super) fn begin(
        shelf: &Arc<Self>,
        layout: &Layout,
        extra: u64,
        is_over: &dyn Fn() -> bool,
    ) -> Begun {
        let Layout { number, key, .. } = *layout;
        if shelf.pending(number).is_some() {
            return Begun::Elsewhere;
        }
        if layout.bytes > shelf.budget {
            shelf.large.fetch_add(1, Ordering::Relaxed);
        }
        let takes = shelf.takes(layout.bytes) && !shelf.disk.is_unusable(key);
        if !takes || !shelf.start_writer() {
            return Begun::Nowhere;
        }
        if !shelf.claims.take(key) {
            let is_awaited = shelf.claims.awaits(number, key);
            return if is_awaited { Begun::Elsewhere } else { Begun::Nowhere };
        }
        if shelf.disk.contains(key) {
            shelf.claims.release(key);
            return Begun::Elsewhere;
        }
        // A block of rows alone is charged as they arrive, so that its memory bounds no requests. One with
        // other samples must not be dropped for its size, because those would be fetched again.
        let reserved = if extra > 0 { layout.bytes } else { 0 };
        if !shelf.reserve(reserved, is_over) {
            shelf.claims.release(key);
            return Begun::Nowhere;
        }
        let cost = cost_of(layout);
        if !shelf.reserve_on_disk(cost) {
            shelf.release(reserved, 0);
            shelf.claims.release(key);
            return Begun::Nowhere;
        }
        let assembly = Arc::new(Assembly::new(shelf, layout, cost, reserved));
        let mut pending = lock(&shelf.pending);
        if pending.contains_key(&number) || shelf.disk.contains(key) {
            // Another thread began it meanwhile, and perhaps has written it.
            drop(pending);
            shelf.disk.abandon(cost);
            shelf.claims.release(key);
            shelf.release(reserved, 0);
            return Begun::Elsewhere;
        }
        pending.insert(number, Arc::clone(&assembly));
        drop(pending);
        Begun::Here(assembly)
    }

    /// Reserves memory for a block, once earlier ones have arrived.
    /// False if the disk is behind, or the run is over.
    fn reserve(&self, bytes: u64, is_over: &dyn Fn() -> bool) -> bool {
        let mut room = lock(&self.room);
        loop {
            // What waits for the disk may never leave: only what the store sends is waited for.
            let is_behind = room.waiting > self.budget / WAITING
                || room.waiting.saturating_add(bytes) > self.budget;
            if is_behind {
                drop(room);
                self.count_dropped();
                return false;
            }
            if room.held.saturating_add(bytes) <= self.budget {
                room.held += bytes;
                return true;
            }
            if is_over() {
                return false;
            }
            room = wait_timeout(&self.changed, room, TICK);
        }
    }

    /// Reserves bytes of the folder. A disk that does not answer is too slow for the block.
    fn reserve_on_disk(&self, cost: u64) -> bool {
        let disk = Arc::clone(&self.disk);
        let other = Arc::clone(&self.disk);
        let dropped = Arc::clone(&self.dropped);
        let begin = move || {
            disk.begin(cost, PATIENCE, None, |_| None).unwrap_or_else(|_| {
                dropped.fetch_add(1, Ordering::Relaxed);
                false
            })
        };
        // Longer than the lock is waited for.
        match self.errands.within(2 * PATIENCE, begin, move || other.abandon(cost)) {
            Ok(Some(is_reserved)) => is_reserved,
            Ok(None) => {
                self.count_dropped();
                false
            }
            Err(error) => {
                self.disk.fault(self.disk.folder().path(), "start its thread", error);
                false
            }
        }
    }

    /// Charges memory for a sample that has arrived; false if there is none left.
    pub(super) fn charge(&self, bytes: u64) -> bool {
        let mut room = lock(&self.room);
        let fits = room.held.saturating_add(bytes) <= self.budget;
        room.held += if fits { bytes } else { 0 };
        fits
    }

    /// Releases memory, of which `waiting` bytes waited for the disk.
    pub(super) fn release(&self, held: u64, waiting: u64) {
        let mut room = lock(&self.room);
        room.held -= held;
        room.waiting -= waiting;
        drop(room);
        self.changed.notify_all();
    }

    /// Passes a block on to the thread that writes.
    pub(super) fn enqueue(&self, block: Arc<Assembly>, charged: u64) {
        let mut room = lock(&self.room);
        if room.ends.is_some() {
            drop(room);
            return self.abandon(&block, charged, 0);
        }
        room.waiting += charged;
        room.blocks.push_back(block);
        drop(room);
        self.changed.notify_all();
    }

    /// Gives up a block that is not written.
    pub(super) fn abandon(&self, block: &Assembly, held: u64, waiting: u64) {
        self.refuse(block.number);
        self.disk.abandon(block.cost);
        self.retire(block, held, waiting);
    }

    /// Ends a block: it is on disk, or it will not be.
    fn retire(&self, block: &Assembly, held: u64, waiting: u64) {
        lock(&self.pending).remove(&block.number);
        self.claims.release(block.key);
        self.release(held, waiting);
    }

    /// Starts the thread that writes, if it is not running; false if it cannot be.
    fn start_writer(self: &Arc<Self>) -> bool {
        let mut room = lock(&self.room);
        if room.has_writer || room.ends.is_some() {
            return room.has_writer;
        }
        let shelf = Arc::clone(self);
        let started = thread::Builder::new().name("tl-cache-0".into()).spawn(move || shelf.write());
        match started {
            Ok(writer) => {
                room.has_writer = true;
                room.writer = Some(writer);
                true
            }
            Err(error) => {
                drop(room);
                self.disk.fault(self.disk.folder().path(), "start its thread", error);
                false
            }
        }
    }

    /// Writes blocks until the loader is dropped.
    fn write(&self) {
        let mut room = lock(&self.room);
        loop {
            let Some(block) = room.blocks.pop_front() else {
                if room.ends.is_some() {
                    break;
                }
                room = wait(&self.changed, room);
                continue;
            };
            let is_late = room.ends.is_some_and(|ends| Instant::now() >= ends);
            drop(room);
            let charged = block.charged();
            if is_late {
                self.count_dropped();
                self.abandon(&block, charged, charged);
            } else {
                let file = EntryFile { number: block.number, key: block.key, cost: block.cost };
                if !self.disk.finish(file, None, |file| block.write_to(file)) {
                    self.refuse(block.number);
                }
                self.retire(&block, charged, charged);
            }
            drop(block);
            room = lock(&self.room);
        }
        room.has_writer = false;
        drop(room);
        self.changed.notify_all();
    }

    /// Ends the requests of blocks and, after the last ones are written, the thread. It does not wait
    /// long for a disk.
    pub(super) fn close(&self) {
        let pending: Vec<_> = lock(&self.pending).values().cloned().collect();
        for block in pending {
            block.fail();
            block.cancel();
        }
        let ends = Instant::now() + LAST_WRITES;
        let mut room = lock(&self.room);
        room.ends = Some(ends);
        self.changed.notify_all();
        while room.has_writer && Instant::now() < ends {
            room = wait_timeout(&self.changed, room, TICK);
        }
        let has_writer = room.has_writer;
        let writer = room.writer.take();
        drop(room);
        // A thread that waits for a disk ends by itself.
        if !has_writer {
            drop(writer.map(thread::JoinHandle::join));
        }
        self.errands.end(ends.saturating_duration_since(Instant::now()));
        self.disk.leave();
    }

    /// True if no memory is in use or reserved.
    #[cfg(test)]
    #[cfg(feature = "shuttle")]
    pub(super) fn is_empty(&self) -> bool {
        let room = lock(&self.room);
        room.held == 0 && room.waiting == 0
    }

    pub(super) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a sample of a block that was found.
    pub(super) fn count_hit(&self, bytes: usize) {
        self.disk.hit();
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn add_stats(&self, stats: &mut CacheStats) {
        self.disk.add_stats(stats);
        stats.dropped_blocks = self.dropped.load(Ordering::Relaxed);
        stats.large_blocks = self.large.load(Ordering::Relaxed);
        stats.bytes_from_blocks = self.bytes.load(Ordering::Relaxed);
    }
}

/// The bytes of the folder that a block takes.
fn cost_of(layout: &Layout) -> u64 {
    cost(layout.bytes.saturating_add(entry::block_end(layout.members.len()) as u64))
}
