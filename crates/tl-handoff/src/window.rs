//! The rows that are read ahead: which are being read, which wait for their worker, and how many
//! bytes that is.
//!
//! Readers claim rows in order and read them in whatever time it takes; the worker that has claimed
//! a row of the ring takes its bytes from here, or reads them itself where no reader has begun. So
//! nobody waits for a reader that waits for room, and a reader that is gone costs nothing but speed.

use std::collections::VecDeque;
use std::ops::Range;

#[cfg(test)]
#[cfg(not(feature = "loom"))]
use crate::sync::MutexGuard;
use crate::sync::{Arc, AtomicU64, Condvar, Mutex, Ordering, lock, wait};

/// Rows that may be between the first that has not been taken and the last that is being read. What
/// bounds memory is bytes; this bounds the list.
pub const MAX_ROWS: u64 = 4096;

/// Buffers above this size are not kept for another sample.
pub const SPARE_BYTES: usize = 4 << 20;

/// The largest total capacity of the buffers that are kept for other samples.
pub const ALL_SPARE_BYTES: usize = 16 << 20;

/// The largest number of buffers that are kept.
const SPARE_BUFFERS: usize = 256;

/// The rows that are read ahead of the workers.
#[derive(Debug)]
pub struct Window {
    /// The number of rows.
    end: u64,
    /// Bytes that may be read and not taken, unless one sample alone has more.
    budget: u64,
    state: Mutex<State>,
    /// Signalled when a row is taken, or the window is closed.
    room: Condvar,
    /// Signalled when a row has been read, or the window is closed.
    ready: Condvar,
    /// Buffers on their way back from workers to readers.
    spare: Mutex<Spare>,
    /// The counters of the window's bytes and rows.
    counters: Arc<WindowCounters>,
}

#[derive(Debug)]
struct State {
    /// The row of the front slot: every row before it is taken.
    first: u64,
    /// The row that a reader claims next.
    next: u64,
    slots: VecDeque<Slot>,
    /// Bytes of rows that are being read or were read and not taken.
    bytes: u64,
    closed: bool,
}

#[derive(Debug)]
enum Slot {
    /// No reader has begun.
    Idle,
    /// Being read, charged with this many bytes.
    Reading(u64),
    Ready(u64, Fetched),
    /// Its worker has it, or reads it itself.
    Taken,
}

impl Slot {
    /// Takes away what the slot has added to `counters`.
    fn uncount(&self, counters: &WindowCounters) {
        match self {
            Self::Reading(charge) => counters.give_up(*charge),
            Self::Ready(charge, _) => counters.release(*charge),
            Self::Idle | Self::Taken => {}
        }
    }
}

/// Counts of what windows hold, for reports.
#[derive(Debug, Default)]
pub struct WindowCounters {
    reading: AtomicU64,
    ready: AtomicU64,
    bytes: AtomicU64,
    found: AtomicU64,
}

impl WindowCounters {
    /// Rows that are being read.
    pub fn reading(&self) -> u64 {
        self.reading.load(Ordering::Relaxed)
    }

    /// Rows that wait for their workers.
    pub fn ready(&self) -> u64 {
        self.ready.load(Ordering::Relaxed)
    }

    /// Bytes of rows.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Rows that were ready when a worker asked for its own, added up over the requests.
    pub fn found(&self) -> u64 {
        self.found.load(Ordering::Relaxed)
    }

    /// A read of this many bytes has begun.
    fn begin(&self, bytes: u64) {
        self.reading.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A row has been read, and waits for its worker.
    fn complete(&self) {
        self.reading.fetch_sub(1, Ordering::Relaxed);
        self.ready.fetch_add(1, Ordering::Relaxed);
    }

    /// Nobody waits for a read any more.
    fn give_up(&self, bytes: u64) {
        self.reading.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A row that was ready has left the window.
    fn release(&self, bytes: u64) {
        self.ready.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A worker asks for its row.
    fn ask(&self) {
        self.found.fetch_add(self.ready(), Ordering::Relaxed);
    }
}

/// The bytes of a sample as a reader brought them.
#[derive(Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Number of the sample in its data set.
    pub sample: u64,
    /// The bytes of the sample.
    pub bytes: Vec<u8>,
    /// True if they are unpacked, false if they are as stored in the container.
    pub is_unpacked: bool,
}

/// The answer to a reader that asks to read a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The row is charged and may be read.
    Granted,
    /// The row's worker has not waited.
    Taken,
    /// Not before others are taken.
    Full,
}

/// The next task of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Read this row.
    Row(u64),
    /// Nothing before rows are taken.
    Full,
    /// No row: the reader should end.
    Ended,
}

impl Window {
    /// A window over `rows` that holds `budget` bytes.
    pub fn new(rows: Range<u64>, budget: u64) -> Self {
        let Range { start, end } = rows;
        let slots = VecDeque::new();
        let state = State { first: start, next: start, slots, bytes: 0, closed: false };
        let room = Condvar::new();
        let ready = Condvar::new();
        let spare = Mutex::default();
        let counters = Arc::default();
        Self { end, budget, state: Mutex::new(state), room, ready, spare, counters }
    }

    /// The window, adding what it holds to `counters`.
    pub fn counting(self, counters: Arc<WindowCounters>) -> Self {
        Self { counters, ..self }
    }

    /// The row to read next, at once or, if `waits`, once one is free to claim.
    pub fn claim(&self, waits: bool) -> Claim {
        let mut state = lock(&self.state);
        loop {
            if state.closed {
                return Claim::Ended;
            }
            state.next = state.next.max(state.first);
            while state.is_taken(state.next) {
                state.next += 1;
            }
            if state.next >= self.end {
                return Claim::Ended;
            }
            if state.next - state.first < MAX_ROWS {
                state.next += 1;
                return Claim::Row(state.next - 1);
            }
            if !waits {
                return Claim::Full;
            }
            state = wait(&self.room, state);
        }
    }

    /// The first row that has not been taken, once it is one or `row` is less than `lead` after it.
    /// `None` when nothing can be read any more.
    pub fn first_within(&self, row: u64, lead: u64) -> Option<u64> {
        let mut state = lock(&self.state);
        while !state.closed && row.saturating_sub(state.first) >= lead {
            state = wait(&self.room, state);
        }
        (!state.closed).then_some(state.first)
    }

    /// Charges rows that are read together, by row and bytes, once all of them fit or no other row is
    /// charged. Rows that others have begun are left out. Returns the rows to read: none if all have
    /// been begun, or the window is closed.
    pub fn admit_together(&self, mut rows: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
        let mut state = lock(&self.state);
        loop {
            rows.retain(|&(row, _)| !state.closed && state.is_idle(row));
            let sum = rows.iter().fold(state.bytes, |sum, (_, bytes)| sum.saturating_add(*bytes));
            if state.bytes == 0 || sum <= self.budget || rows.is_empty() {
                break;
            }
            state = wait(&self.room, state);
        }
        for &(row, bytes) in &rows {
            state.bytes += bytes;
            *state.slot_or_new(row) = Slot::Reading(bytes);
            self.counters.begin(bytes);
        }
        rows
    }

    /// Charges a claimed row with its bytes, at once or, if `waits`, once they fit. One row is
    /// always admitted.
    pub fn admit(&self, row: u64, bytes: u64, waits: bool) -> Admission {
        let mut state = lock(&self.state);
        loop {
            if state.closed || !state.is_idle(row) {
                return Admission::Taken;
            }
            if state.bytes == 0 || state.bytes.saturating_add(bytes) <= self.budget {
                state.bytes += bytes;
                *state.slot_or_new(row) = Slot::Reading(bytes);
                self.counters.begin(bytes);
                return Admission::Granted;
            }
            if !waits {
                return Admission::Full;
            }
            state = wait(&self.room, state);
        }
    }

    /// Puts a row that has been read in its place; `None` where it could not be read, which its
    /// worker will find out.
    pub fn complete(&self, row: u64, fetched: Option<Fetched>) {
        let mut state = lock(&self.state);
        let Some(&Slot::Reading(charge)) = state.slot(row) else { return };
        *state.slot_or_new(row) = match fetched {
            Some(fetched) => {
                self.counters.complete();
                Slot::Ready(charge, fetched)
            }
            None => {
                self.counters.give_up(charge);
                state.bytes -= charge;
                self.room.notify_all();
                Slot::Idle
            }
        };
        drop(state);
        self.ready.notify_all();
    }

    /// The bytes of a row, waiting for them if they are on their way. `None` when no reader has
    /// begun to read them: none will. `before_waiting` is called before it waits, if it does.
    pub fn take(&self, row: u64, before_waiting: impl FnOnce()) -> Option<Fetched> {
        let mut state = lock(&self.state);
        self.counters.ask();
        let mut before_waiting = Some(before_waiting);
        while !state.closed && matches!(state.slot(row), Some(Slot::Reading(_))) {
            if let Some(before_waiting) = before_waiting.take() {
                before_waiting();
            }
            state = wait(&self.ready, state);
        }
        if state.closed || row < state.first {
            return None;
        }
        let fetched = state.take(row, &self.counters);
        drop(state);
        self.room.notify_all();
        fetched
    }

    /// Releases a row, taken or not, after its worker got the bytes from elsewhere.
    pub fn discard(&self, row: u64) {
        let mut state = lock(&self.state);
        if state.closed || row < state.first {
            return;
        }
        let fetched = state.take(row, &self.counters);
        drop(state);
        self.room.notify_all();
        if let Some(Fetched { bytes, .. }) = fetched {
            self.give_back(bytes);
        }
    }

    /// A buffer for `len` bytes with a capacity at most half as large again, if possible one that was
    /// given back, with its old content. It has no capacity where memory is refused.
    pub fn buffer(&self, len: usize) -> Vec<u8> {
        let returned = lock(&self.spare).take(len);
        returned.unwrap_or_else(|| {
            let mut buffer = Vec::new();
            // A length that is wrong may be larger than memory.
            drop(buffer.try_reserve_exact(room_for(len)));
            buffer
        })
    }

    /// Gives a buffer back.
    pub fn give_back(&self, buffer: Vec<u8>) {
        // Buffers are freed outside the lock: it may take long.
        drop(lock(&self.spare).add(buffer));
    }

    /// Ends the window: nothing can be claimed from now on, and all waiting threads wake.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        for slot in state.slots.drain(..) {
            slot.uncount(&self.counters);
        }
        drop(state);
        self.room.notify_all();
        self.ready.notify_all();
    }

    #[cfg(test)]
    #[cfg(not(feature = "loom"))]
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Buffers that were given back. Samples vary in size, and an allocator that gets and frees buffers
/// of thousands of sizes searches its lists for as long as copying the bytes takes.
#[derive(Debug, Default)]
struct Spare {
    /// In the order of their capacities.
    buffers: Vec<Vec<u8>>,
    bytes: usize,
    /// Chooses the buffer that makes room for another.
    turn: usize,
}

impl Spare {
    /// The smallest buffer with this much room, unless it has more than half as much again.
    fn take(&mut self, len: usize) -> Option<Vec<u8>> {
        let place = self.buffers.partition_point(|buffer| buffer.capacity() < len);
        if self.buffers.get(place)?.capacity() > len.saturating_add(len / 2) {
            return None;
        }
        Some(self.remove(place))
    }

    fn remove(&mut self, place: usize) -> Vec<u8> {
        let buffer = self.buffers.remove(place);
        self.bytes -= buffer.capacity();
        buffer
    }

    /// Keeps a buffer and returns the ones dropped to make room for it. Any size is dropped in turn,
    /// so that buffers that fit no sample any more do not stay.
    fn add(&mut self, buffer: Vec<u8>) -> Vec<Vec<u8>> {
        let size = buffer.capacity();
        if size == 0 || size > SPARE_BYTES {
            return vec![buffer];
        }
        let mut freed = Vec::new();
        while self.buffers.len() == SPARE_BUFFERS || self.bytes + size > ALL_SPARE_BYTES {
            self.turn += 1;
            freed.push(self.remove(self.turn % self.buffers.len()));
        }
        self.bytes += size;
        let place = self.buffers.partition_point(|other| other.capacity() < size);
        self.buffers.insert(place, buffer);
        freed
    }
}

/// A capacity for `len` bytes, at most an eighth larger, of which there are eight from one power of
/// two to the next, so that buffers of one sample fit many others.
fn room_for(len: usize) -> usize {
    let step = (len.checked_next_power_of_two().unwrap_or(len) / 16).max(1);
    len.checked_next_multiple_of(step).unwrap_or(len)
}

impl State {
    fn slot(&self, row: u64) -> Option<&Slot> {
        let place = usize::try_from(row.checked_sub(self.first)?).ok()?;
        self.slots.get(place)
    }

    fn is_taken(&self, row: u64) -> bool {
        matches!(self.slot(row), Some(Slot::Taken))
    }

    /// Marks a row, which is not before the first, as taken and returns its bytes if they were
    /// read.
    fn take(&mut self, row: u64, counters: &WindowCounters) -> Option<Fetched> {
        let slot = std::mem::replace(self.slot_or_new(row), Slot::Taken);
        slot.uncount(counters);
        let (charge, fetched) = match slot {
            Slot::Ready(charge, fetched) => (charge, Some(fetched)),
            Slot::Reading(charge) => (charge, None),
            Slot::Idle | Slot::Taken => (0, None),
        };
        self.bytes -= charge;
        while matches!(self.slots.front(), Some(Slot::Taken)) {
            self.slots.pop_front();
            self.first += 1;
        }
        fetched
    }

    /// True if no thread has begun this row.
    fn is_idle(&self, row: u64) -> bool {
        row >= self.first && matches!(self.slot(row), None | Some(Slot::Idle))
    }

    /// The slot of a row that is not before the first.
    fn slot_or_new(&mut self, row: u64) -> &mut Slot {
        let place = usize::try_from(row - self.first).expect("rows in flight are few");
        while self.slots.len() <= place {
            self.slots.push_back(Slot::Idle);
        }
        &mut self.slots[place]
    }
}

#[cfg(test)]
#[cfg(not(any(feature = "shuttle", feature = "loom")))]
mod tests;

#[cfg(test)]
#[cfg(feature = "shuttle")]
mod schedules;
