//! The rows that are read ahead: which are being read, which wait for their worker, and how many
//! bytes that is.
//!
//! Readers claim rows in order and read them in whatever time it takes; the worker that has claimed
//! a row of the ring takes its bytes from here, or reads them itself where no reader has begun. So
//! nobody waits for a reader that waits for room, and a reader that is gone costs nothing but speed.

mod spare;

use std::collections::VecDeque;
use std::ops::Range;

use self::spare::{Spare, room_for};
use crate::sync::{Arc, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, lock, wait};

pub use self::spare::{ALL_SPARE_BYTES, SPARE_BYTES};

/// Rows that may be between the first that has not been taken and the last that is being read. What
/// bounds memory is bytes; this bounds the list.
pub const MAX_ROWS: u64 = 4096;

/// The rows that are read ahead of the workers.
#[derive(Debug)]
pub struct Window {
    /// The number of rows.
    end: u64,
    /// Bytes that may be read and not taken, unless one sample alone has more.
    budget: u64,
    state: Mutex<State>,
    /// Signalled when a condition that a reader waits for holds, or the window is closed.
    room: Condvar,
    /// Signalled when a row has been read and workers wait, or the window is closed.
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
    awaited: Awaited,
    /// Workers that wait for their rows.
    waiting: usize,
    closed: bool,
}

/// The changes that waiting readers are woken for. Most wait for many rows to be taken, and to wake
/// one for each costs more than to plan the row's request.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    /// The smallest first row at which one of them can proceed.
    first: u64,
    /// The largest number of bytes at which one of them can proceed.
    bytes: Option<u64>,
    /// Whether one of them waits for rows to be read.
    reads: bool,
}

impl Awaited {
    const NOTHING: Self = Self { first: u64::MAX, bytes: None, reads: false };
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
        let state = State {
            first: start,
            next: start,
            slots,
            bytes: 0,
            awaited: Awaited::NOTHING,
            waiting: 0,
            closed: false,
        };
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
            let first = state.first + 1;
            state = self.wait_for_first(first, state);
        }
    }

    /// The first row that has not been taken, once it is one or `row` is less than `lead` after it.
    /// `None` when nothing can be read any more.
    pub fn first_within(&self, row: u64, lead: u64) -> Option<u64> {
        let mut state = lock(&self.state);
        while !state.closed && row.saturating_sub(state.first) >= lead {
            state = self.wait_for_first((row - lead).saturating_add(1), state);
        }
        (!state.closed).then_some(state.first)
    }

    /// Waits until at most `most` of the rows before `end` are being read.
    pub fn read_before(&self, end: u64, most: usize) {
        let mut state = lock(&self.state);
        while !state.closed && state.reading_before(end) > most {
            state.awaited.reads = true;
            state = wait(&self.room, state);
        }
    }

    /// Charges rows that are read together, by row and bytes, once all of them fit or no other row is
    /// charged. Rows that others have begun are left out. Returns the rows to read: none if all have
    /// been begun, or the window is closed.
    pub fn admit_together(&self, mut rows: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
        let mut state = lock(&self.state);
        loop {
            rows.retain(|&(row, _)| !state.closed && state.is_idle(row));
            let sum = rows.iter().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes));
            if rows.is_empty() || self.has_room(&state, sum) {
                break;
            }
            state = self.wait_for_room(sum, state);
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
            if self.has_room(&state, bytes) {
                state.bytes += bytes;
                *state.slot_or_new(row) = Slot::Reading(bytes);
                self.counters.begin(bytes);
                return Admission::Granted;
            }
            if !waits {
                return Admission::Full;
            }
            state = self.wait_for_room(bytes, state);
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
                Slot::Idle
            }
        };
        let wakes_readers = state.wakes_readers();
        let wakes_workers = state.waiting > 0;
        drop(state);
        if wakes_readers {
            self.room.notify_all();
        }
        if wakes_workers {
            self.ready.notify_all();
        }
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
            state.waiting += 1;
            state = wait(&self.ready, state);
            state.waiting -= 1;
        }
        if state.closed || row < state.first {
            return None;
        }
        self.take_from(state, row)
    }

    /// Releases a row, taken or not, after its worker got the bytes from elsewhere.
    pub fn discard(&self, row: u64) {
        let state = lock(&self.state);
        if state.closed || row < state.first {
            return;
        }
        if let Some(Fetched { bytes, .. }) = self.take_from(state, row) {
            self.give_back(bytes);
        }
    }

    /// Takes a row, which is not before the first, and wakes readers that can proceed without it.
    fn take_from(&self, mut state: MutexGuard<'_, State>, row: u64) -> Option<Fetched> {
        // A reader may wait for room for this row, and need it no more.
        let is_unwanted = state.is_idle(row) && state.awaited.bytes.is_some();
        let fetched = state.take(row, &self.counters);
        let wakes_readers = state.wakes_readers() || is_unwanted;
        drop(state);
        if wakes_readers {
            self.room.notify_all();
        }
        fetched
    }

    /// Whether so many bytes may be charged now.
    fn has_room(&self, state: &State, bytes: u64) -> bool {
        state.bytes == 0 || state.bytes.saturating_add(bytes) <= self.budget
    }

    /// Waits until so many bytes may be charged, or the thread is woken for another reader.
    fn wait_for_room<'a>(
        &self,
        bytes: u64,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        let most = self.budget.saturating_sub(bytes);
        state.awaited.bytes = state.awaited.bytes.max(Some(most));
        wait(&self.room, state)
    }

    /// Waits until no row before `first` is left, or the thread is woken for another reader.
    fn wait_for_first<'a>(
        &self,
        first: u64,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        state.awaited.first = state.awaited.first.min(first);
        wait(&self.room, state)
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

    fn reading_before(&self, end: u64) -> usize {
        let rows = usize::try_from(end.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let is_read = |slot: &&Slot| matches!(slot, Slot::Reading(_));
        self.slots.iter().take(rows).filter(is_read).count()
    }

    /// Whether readers have to be woken, because one of them can proceed. They note what they await
    /// anew if they wait again.
    fn wakes_readers(&mut self) -> bool {
        let Awaited { first, bytes, reads } = self.awaited;
        let has_room = bytes.is_some_and(|bytes| self.bytes <= bytes);
        let can_proceed = reads || has_room || self.first >= first;
        if can_proceed {
            self.awaited = Awaited::NOTHING;
        }
        can_proceed
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
