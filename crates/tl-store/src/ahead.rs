//! Ranges of an object that were announced, requested before they are read.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tbl_io::is_interrupted;

use crate::engine::{INTERVAL, Task};

/// The largest block that is requested at once.
const BLOCK: u64 = 8 << 20;

/// Announcements that continue each other are requested together, once they are this long.
const TOGETHER: u64 = 1 << 20;

/// The gap between two ranges that is not worth a request of its own: headers and small fields.
const GAP: u64 = 16 << 10;

/// A block that was not read while this many other bytes of its object were makes room.
const STALE: u64 = 1 << 30;

/// A bound on bytes that all objects of a set of stores keep.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicU64,
}

impl Budget {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { left: AtomicU64::new(bytes) }
    }

    pub(crate) fn take(&self, bytes: u64) -> bool {
        let less = |left: u64| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    pub(crate) fn release(&self, bytes: u64) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The blocks of one object that are on their way, or here and not read yet.
pub(crate) struct ReadAhead {
    budget: Arc<Budget>,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    /// Announced and not requested. The last one may grow.
    wanted: VecDeque<Wanted>,
    /// By their first byte.
    blocks: BTreeMap<u64, Block>,
    /// The number of blocks so far.
    numbered: u64,
    /// The end of the last announcement.
    announced_end: Option<u64>,
    /// Bytes that were read of the object, requested ahead or not.
    read: u64,
}

#[derive(Clone)]
struct Wanted {
    range: Range<u64>,
    /// Whether it continues what was announced before it, so that more may follow.
    may_grow: bool,
}

struct Block {
    end: u64,
    /// Tells it from later ones with the same first byte.
    number: u64,
    /// The bytes that had been read of the object when the block was requested.
    requested_at: u64,
    content: Content,
}

enum Content {
    /// The request, once it runs. It ends when the block goes.
    Pending(Option<Task>),
    Ready(Bytes),
    /// A reader asks by itself and gets the reason.
    Failed,
}

/// A block to be requested. It fails if this is dropped before it arrives.
pub(crate) struct Request {
    ahead: Arc<ReadAhead>,
    pub(crate) range: Range<u64>,
    pub(crate) number: u64,
}

impl ReadAhead {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, state: Mutex::default(), arrived: Condvar::new() }
    }

    /// Notes that a range will be read. Ranges that do not fit wait until others were read.
    pub(crate) fn announce(&self, range: Range<u64>) {
        let mut state = self.lock();
        let is_wanted = |wanted: &Wanted| wanted.range.contains(&range.start);
        if range.is_empty()
            || state.wanted.iter().any(is_wanted)
            || state.block_at(range.start).is_some()
        {
            return;
        }
        // What lies between two ranges belongs to them: headers, labels of samples.
        let end = state
            .announced_end
            .filter(|end| (*end..=end.saturating_add(GAP)).contains(&range.start));
        let may_grow = end.is_some();
        let range = end.unwrap_or(range.start)..range.end;
        state.announced_end = Some(range.end);
        match state.wanted.back_mut().filter(|_| may_grow) {
            Some(last) => last.range.end = range.end,
            None => state.wanted.push_back(Wanted { range, may_grow }),
        }
    }

    /// The next block to request, if there is one and the budget has room for it.
    pub(crate) fn next(self: &Arc<Self>) -> Option<Request> {
        let mut state = self.lock();
        loop {
            let Wanted { range: wanted, may_grow } = state.wanted.front()?.clone();
            let is_last = state.wanted.len() == 1;
            if is_last && may_grow && wanted.end - wanted.start < TOGETHER {
                return None;
            }
            let end = wanted.end.min(wanted.start + BLOCK);
            let overlaps = state.blocks.range(..end).next_back();
            let is_known = overlaps.is_some_and(|(_, block)| block.end > wanted.start);
            if !is_known && !self.budget.take(end - wanted.start) {
                self.forget_stale(&mut state);
                return None;
            }
            match state.wanted.front_mut() {
                Some(front) if end < front.range.end => front.range.start = end,
                _ => drop(state.wanted.pop_front()),
            }
            if !is_known {
                let content = Content::Pending(None);
                let requested_at = state.read;
                state.numbered += 1;
                let number = state.numbered;
                let block = Block { end, number, requested_at, content };
                state.blocks.insert(wanted.start, block);
                let range = wanted.start..end;
                return Some(Request { ahead: Arc::clone(self), range, number });
            }
        }
    }

    /// Keeps the task of a request, given by its number, so that it ends with its block.
    pub(crate) fn started(&self, start: u64, number: u64, task: Task) {
        if let Some(Content::Pending(pending)) = self.lock().content(start, number) {
            *pending = Some(task);
        }
    }

    /// Copies what was requested ahead of `offset` on, waiting for blocks on their way, up to the
    /// first byte that was not. Returns the number of bytes.
    pub(crate) fn read(&self, offset: u64, target: &mut [u8]) -> usize {
        let mut copied = 0;
        let mut state = self.lock();
        state.read += target.len() as u64;
        let is_read = |wanted: &Wanted| wanted.range.contains(&offset);
        if let Some(read) = state.wanted.iter().position(is_read) {
            // The reader asks for it now; the rest of what was to grow need not wait.
            if let Some(wanted) = state.wanted.get_mut(read) {
                wanted.range.start = (offset + target.len() as u64).min(wanted.range.end);
                wanted.may_grow = false;
            }
            state.wanted.retain(|wanted| !wanted.range.is_empty());
        }
        while copied < target.len() {
            let at = offset + copied as u64;
            let Some(start) = state.block_at(at) else { break };
            let Some(block) = state.blocks.get_mut(&start) else { break };
            let bytes = match &block.content {
                Content::Pending(_) => {
                    let waited = self.arrived.wait_timeout(state, INTERVAL);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                    if is_interrupted() {
                        break;
                    }
                    continue;
                }
                Content::Ready(bytes) => bytes.clone(),
                Content::Failed => {
                    self.forget(&mut state, start);
                    break;
                }
            };
            let skip = usize::try_from(at - start).unwrap_or(usize::MAX);
            let have = bytes.get(skip..).unwrap_or_default();
            let len = have.len().min(target.len() - copied);
            if len == 0 {
                // The reader asks for what the block lacks.
                self.forget(&mut state, start);
                break;
            }
            target[copied..copied + len].copy_from_slice(&have[..len]);
            copied += len;
            // Blocks are read from front to back, parts of them perhaps not at all.
            if offset + copied as u64 == block.end {
                self.forget(&mut state, start);
            }
        }
        copied
    }

    /// Drops everything inside a range, and what was announced of it.
    pub(crate) fn drop_range(&self, range: &Range<u64>) {
        let mut state = self.lock();
        let is_inside = |other: &Range<u64>| range.start <= other.start && other.end <= range.end;
        state.wanted.retain(|wanted| !is_inside(&wanted.range));
        let starts: Vec<_> = state
            .blocks
            .iter()
            .filter(|(start, block)| is_inside(&(**start..block.end)))
            .map(|(start, _)| *start)
            .collect();
        for start in starts {
            self.forget(&mut state, start);
        }
    }

    /// Drops blocks that were announced and that nobody reads.
    fn forget_stale(&self, state: &mut State) {
        let now = state.read;
        let is_stale = |block: &Block| now - block.requested_at > STALE;
        let stale: Vec<_> = state
            .blocks
            .iter()
            .filter_map(|(start, block)| is_stale(block).then_some(*start))
            .collect();
        for start in stale {
            self.forget(state, start);
        }
    }

    fn forget(&self, state: &mut State, start: u64) {
        if let Some(block) = state.blocks.remove(&start) {
            self.budget.release(block.end - start);
            // Readers that wait for it ask by themselves.
            self.arrived.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The first byte of the block that has the byte at `offset`.
    fn block_at(&self, offset: u64) -> Option<u64> {
        let (start, block) = self.blocks.range(..=offset).next_back()?;
        (offset < block.end).then_some(*start)
    }

    /// The content of the block with this first byte, if it is the one with this number.
    fn content(&mut self, start: u64, number: u64) -> Option<&mut Content> {
        let block = self.blocks.get_mut(&start).filter(|block| block.number == number)?;
        Some(&mut block.content)
    }
}

impl Request {
    /// The block is here.
    pub(crate) fn arrived(self, bytes: BytesMut) {
        self.end(Content::Ready(bytes.freeze()));
    }

    fn end(&self, content: Content) {
        let mut state = self.ahead.lock();
        if let Some(place @ Content::Pending(_)) = state.content(self.range.start, self.number) {
            *place = content;
        }
        self.ahead.arrived.notify_all();
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.end(Content::Failed);
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (start, block) in std::mem::take(&mut state.blocks) {
            self.budget.release(block.end - start);
        }
    }
}

impl fmt::Debug for ReadAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadAhead")
            .field("blocks", &self.lock().blocks.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(bytes: u64) -> (Arc<ReadAhead>, Arc<Budget>) {
        let budget = Arc::new(Budget::new(bytes));
        (Arc::new(ReadAhead::new(Arc::clone(&budget))), budget)
    }

    fn arrive(request: Request) {
        let bytes = request.range.clone().map(|place| place.to_le_bytes()[0]).collect();
        request.arrived(bytes);
    }

    #[test]
    fn announced_bytes_are_read_once_and_then_go() {
        let (ahead, budget) = ahead(100);
        ahead.announce(10..20);
        arrive(ahead.next().unwrap());
        ahead.announce(10..20);
        assert!(ahead.next().is_none(), "an announcement counts once");
        ahead.announce(40_000..40_030);
        arrive(ahead.next().unwrap());
        let mut target = [0; 12];
        assert_eq!(ahead.read(10, &mut target[..5]), 5);
        assert_eq!(ahead.read(15, &mut target), 5, "up to what was not announced");
        assert_eq!(target[..5], [15, 16, 17, 18, 19]);
        assert_eq!(budget.left.load(Ordering::Relaxed), 70, "the first block was read");
        assert_eq!(ahead.read(10, &mut target), 0, "a block that is gone is asked for");
        drop(ahead);
        assert_eq!(budget.left.load(Ordering::Relaxed), 100);
    }

    #[test]
    fn announcements_in_sequence_are_requested_together() {
        let (ahead, _) = ahead(100 << 20);
        ahead.announce(0..300_000);
        assert_eq!(ahead.next().unwrap().range, 0..300_000, "the first is not held back");
        for number in 1..5 {
            ahead.announce(number * 301_000..number * 301_000 + 300_000);
        }
        assert_eq!(ahead.next().unwrap().range, 300_000..1_504_000);
        ahead.announce(1_505_000..1_805_000);
        assert!(ahead.next().is_none(), "more may follow");
        assert_eq!(ahead.read(1_505_000, &mut [0; 100_000]), 0, "the reader asks by itself");
        assert_eq!(ahead.next().unwrap().range, 1_605_000..1_805_000);
        ahead.announce(9_000_000..9_100_000);
        assert_eq!(ahead.next().unwrap().range, 9_000_000..9_100_000, "another place");
    }

    #[test]
    fn a_long_range_comes_in_blocks_as_others_are_read() {
        let (ahead, _) = ahead(2 * BLOCK);
        ahead.announce(0..3 * BLOCK + 5);
        let first = ahead.next().unwrap();
        let second = ahead.next().unwrap();
        assert_eq!((first.range.clone(), second.range.clone()), (0..BLOCK, BLOCK..2 * BLOCK));
        assert!(ahead.next().is_none(), "the budget is used up");
        arrive(first);
        let mut target = vec![0; usize::try_from(BLOCK).unwrap()];
        assert_eq!(ahead.read(0, &mut target), target.len());
        assert_eq!(ahead.next().unwrap().range, 2 * BLOCK..3 * BLOCK);
        drop(second);
    }

    #[test]
    fn a_block_that_fails_wakes_its_readers() {
        let (ahead, budget) = ahead(100);
        ahead.announce(0..10);
        let request = ahead.next().unwrap();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| ahead.read(0, &mut [0; 10]));
            drop(request);
            assert_eq!(reader.join().unwrap(), 0);
        });
        assert_eq!(budget.left.load(Ordering::Relaxed), 100);
        ahead.announce(500_000..500_010);
        let request = ahead.next().unwrap();
        ahead.drop_range(&(0..1_000_000));
        arrive(request);
        assert_eq!(budget.left.load(Ordering::Relaxed), 100, "nobody wants it any more");
    }

    #[test]
    fn a_late_answer_does_not_fill_a_later_block() {
        let (ahead, budget) = ahead(100);
        ahead.announce(0..10);
        let late = ahead.next().unwrap();
        ahead.drop_range(&(0..10));
        ahead.announce(0..20);
        let request = ahead.next().unwrap();
        arrive(late);
        arrive(request);
        let mut target = [9; 20];
        assert_eq!(ahead.read(0, &mut target), 20);
        assert_eq!(target.to_vec(), (0..20).collect::<Vec<u8>>());
        assert_eq!(budget.left.load(Ordering::Relaxed), 100);
    }

    #[test]
    fn a_block_that_is_too_short_is_dropped() {
        let (ahead, budget) = ahead(100);
        ahead.announce(0..10);
        ahead.next().unwrap().arrived(BytesMut::from(&b"abc"[..]));
        assert_eq!(ahead.read(0, &mut [0; 10]), 3);
        assert_eq!(budget.left.load(Ordering::Relaxed), 100);
    }
}
