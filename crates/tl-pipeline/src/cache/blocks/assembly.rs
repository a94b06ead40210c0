//! A block whose samples arrive.

use tbl_io::UnderWay;
use tl_handoff::sync::{Arc, Condvar, Mutex, lock, wait_timeout};
use zerocopy::IntoBytes;

use std::fs::File;
use std::io::{self, BufWriter, Write};

use super::layout::Layout;
use super::shelf::{Shelf, TICK};
use crate::cache::entry::{Slot, Trailer};
use crate::cache::key::Key;

/// The buffer through which small samples are written.
const WRITE_BYTES: usize = 256 << 10;

/// A block whose samples arrive, from one request or several, and which is then written. Until then
/// workers take samples from here.
pub(crate) struct Assembly {
    shelf: Arc<Shelf>,
    pub(super) number: u64,
    pub(super) key: Key,
    /// Bytes of the folder that are reserved for its entry.
    pub(super) cost: u64,
    /// True if memory for all samples is reserved, false if each is charged when it arrives.
    is_reserved: bool,
    /// The bytes of each sample.
    lens: Vec<u64>,
    state: Mutex<State>,
    /// Signalled when a sample has arrived, or none will.
    changed: Condvar,
    /// The requests that bring the samples. They end with the block, not with the epoch.
    requests: Mutex<Vec<Request>>,
}

/// A request of samples.
struct Request {
    #[expect(dead_code, reason = "the request ends when this is dropped")]
    read: UnderWay,
    /// Whether it also brings samples to rows.
    has_rows: bool,
}

struct State {
    samples: Vec<Option<Arc<Vec<u8>>>>,
    missing: usize,
    /// Bytes of memory that count for it.
    charged: u64,
    has_failed: bool,
}

impl std::fmt::Debug for Assembly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assembly").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Assembly {
    /// A block without samples, with `cost` bytes of the folder, and with memory for all of it or none.
    pub(super) fn new(shelf: &Arc<Shelf>, layout: &Layout, cost: u64, charged: u64) -> Self {
        let lens = layout.members.iter().map(|member| member.range.end - member.range.start);
        let lens: Vec<u64> = lens.collect();
        let samples: Vec<_> =
            lens.iter().map(|&len| (len == 0).then(|| Arc::new(Vec::new()))).collect();
        let missing = samples.iter().filter(|sample| sample.is_none()).count();
        let state = State { samples, missing, charged, has_failed: false };
        Self {
            shelf: Arc::clone(shelf),
            number: layout.number,
            key: layout.key,
            cost,
            is_reserved: charged > 0,
            lens,
            state: Mutex::new(state),
            changed: Condvar::new(),
            requests: Mutex::default(),
        }
    }

    /// Keeps a request of its samples until the block has arrived. `has_rows` tells whether it also
    /// brings samples to rows, and so is of use when the block has failed.
    pub(crate) fn hold(&self, read: UnderWay, has_rows: bool) {
        let mut requests = lock(&self.requests);
        requests.push(Request { read, has_rows });
        drop(requests);
        if lock(&self.state).has_failed {
            self.cancel_extra();
        }
    }

    /// True if samples are still of use.
    pub(crate) fn is_open(&self) -> bool {
        let state = lock(&self.state);
        !state.has_failed && state.missing > 0
    }

    /// Takes the sample at `place`.
    pub(crate) fn receive(self: &Arc<Self>, place: usize, bytes: Vec<u8>) {
        let len = bytes.len() as u64;
        if self.lens.get(place) != Some(&len) {
            return self.fail();
        }
        if !self.is_reserved && !self.shelf.charge(len) {
            self.shelf.count_dropped();
            return self.fail();
        }
        let mut state = lock(&self.state);
        if state.has_failed || state.samples[place].is_some() {
            drop(state);
            if !self.is_reserved {
                self.shelf.release(len, 0);
            }
            return;
        }
        if !self.is_reserved {
            state.charged += len;
        }
        state.samples[place] = Some(Arc::new(bytes));
        state.missing -= 1;
        let is_complete = state.missing == 0;
        let charged = state.charged;
        drop(state);
        self.changed.notify_all();
        if is_complete {
            self.shelf.enqueue(Arc::clone(self), charged);
        }
    }

    /// Gives the block up, unless all of it has arrived. Requests that are for it alone end.
    pub(crate) fn fail(&self) {
        self.fail_if(|_| true);
    }

    /// Gives the block up if nothing of it has arrived.
    pub(crate) fn fail_if_empty(&self) {
        let is_empty =
            |state: &State| state.samples.iter().flatten().all(|sample| sample.is_empty());
        self.fail_if(is_empty);
    }

    fn fail_if(&self, is_given_up: impl Fn(&State) -> bool) {
        let mut state = lock(&self.state);
        if state.has_failed || state.missing == 0 || !is_given_up(&state) {
            return;
        }
        state.has_failed = true;
        state.samples.clear();
        let charged = state.charged;
        drop(state);
        self.changed.notify_all();
        self.shelf.abandon(self, charged, 0);
        self.cancel_extra();
    }

    /// Ends the requests that bring samples to no row.
    fn cancel_extra(&self) {
        let mut requests = lock(&self.requests);
        let (kept, ended) = std::mem::take(&mut *requests).into_iter().partition(|r| r.has_rows);
        *requests = kept;
        drop(requests);
        drop::<Vec<_>>(ended);
    }

    /// Ends the requests of samples.
    pub(super) fn cancel(&self) {
        drop(std::mem::take(&mut *lock(&self.requests)));
    }

    /// The bytes of a sample, once they are here; `None` if they will not come or the run is over.
    pub(super) fn wait_for(
        &self,
        place: usize,
        is_over: &dyn Fn() -> bool,
    ) -> Option<Arc<Vec<u8>>> {
        let mut state = lock(&self.state);
        while !state.has_failed && !is_over() {
            match state.samples.get(place) {
                Some(Some(sample)) if !sample.is_empty() => return Some(Arc::clone(sample)),
                Some(None) => state = wait_timeout(&self.changed, state, TICK),
                Some(Some(_)) | None => return None,
            }
        }
        None
    }

    pub(super) fn charged(&self) -> u64 {
        lock(&self.state).charged
    }

    /// Writes the entry of a block that has arrived.
    pub(super) fn write_to(&self, file: &mut File) -> io::Result<()> {
        // The lock is not held: workers take samples meanwhile.
        let samples: Vec<_> = lock(&self.state).samples.iter().flatten().cloned().collect();
        let mut file = BufWriter::with_capacity(WRITE_BYTES, file);
        let mut table = Vec::with_capacity(samples.len());
        let mut at = 0;
        for sample in &samples {
            file.write_all(sample)?;
            table.push(Slot::new(at, sample));
            at += sample.len() as u64;
        }
        file.write_all(table.as_bytes())?;
        file.write_all(Trailer::of_block(self.key, at, &table).as_bytes())?;
        file.flush()
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use tl_handoff::sync::{AtomicBool, Ordering};

    use super::*;
    use crate::cache::blocks::Begun;
    use crate::cache::blocks::layout::Member;
    use crate::cache::disk::Disk;

    /// A request that tells when it has ended.
    struct Request(Arc<AtomicBool>);

    impl Drop for Request {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn requests_for_a_failed_block_alone_end() {
        let root = tempfile::tempdir().unwrap();
        let shelf = Arc::new(Shelf::new(Disk::open(root.path(), 1 << 20), 1000));
        let members =
            vec![Member { sample: 8, range: 100..103 }, Member { sample: 9, range: 110..115 }];
        let layout = Layout { number: 8, key: Key([7; 32]), object: 0, members, bytes: 8 };
        let Begun::Here(block) = Shelf::begin(&shelf, &layout, 5, &|| false) else {
            panic!("nobody else fetches it");
        };
        let [with_rows, alone, late] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        let request = |ended: &Arc<AtomicBool>| UnderWay::new(Request(Arc::clone(ended)));
        block.hold(request(&with_rows), true);
        block.hold(request(&alone), false);
        block.receive(0, vec![1; 3]);
        block.fail_if_empty();
        assert!(!alone.load(Ordering::Relaxed), "something has arrived");
        block.fail();
        block.hold(request(&late), false);
        let have_ended = [&with_rows, &alone, &late].map(|ended| ended.load(Ordering::Relaxed));
        assert_eq!(have_ended, [false, true, true]);
        assert!(shelf.has_failed(8) && shelf.pending(8).is_none());
        shelf.close();
    }
}
