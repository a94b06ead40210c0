//! The permits under shuttle: workers that begin batches, a consumer that keeps some, early ends.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::*;
use crate::sync::{explore, thread};

/// A batch with its memory, which the worker that finished it releases a moment later. The memory
/// is released first.
type Batch = (Arc<Permit>, HeldBatch);

/// The state between workers and consumer, as in the ring: a thread that waits for memory holds its
/// lock.
#[derive(Default)]
struct Finished {
    state: Mutex<Batches>,
    changed: Condvar,
}

#[derive(Default)]
struct Batches {
    ready: BTreeMap<u64, Batch>,
    is_closed: bool,
}

impl Finished {
    fn begin(&self, ticket: &RunTicket) -> Option<Arc<Permit>> {
        let state = lock(&self.state);
        (!state.is_closed).then(|| Arc::new(ticket.permit()))
    }

    fn publish(&self, number: u64, permit: &Arc<Permit>) {
        let batch = (Arc::clone(permit), permit.publish());
        let mut state = lock(&self.state);
        if !state.is_closed {
            state.ready.insert(number, batch);
        }
        drop(state);
        self.changed.notify_all();
    }

    fn take(&self, number: u64) -> Batch {
        let mut state = lock(&self.state);
        loop {
            if let Some(batch) = state.ready.remove(&number) {
                return batch;
            }
            state = wait(&self.changed, state);
        }
    }

    fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.ready.clear();
    }
}

/// Two workers on `batches` of a ticket, and a consumer that receives the first `receives` of them,
/// keeping the last `keeps` while it waits for the next. What it keeps at the end is returned.
fn run(
    permits: &Arc<BatchPermits>,
    batches: Range<u64>,
    receives: usize,
    keeps: usize,
) -> VecDeque<Batch> {
    let ticket = Arc::new(permits.begin(batches.start).unwrap());
    let finished = Arc::new(Finished::default());
    let next = Arc::new(AtomicU64::new(batches.start));
    let workers = [(); 2].map(|()| {
        let ticket = Arc::clone(&ticket);
        let finished = Arc::clone(&finished);
        let next = Arc::clone(&next);
        let end = batches.end;
        thread::spawn(move || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return;
                }
                ticket.wait(number);
                let Some(permit) = finished.begin(&ticket) else { return };
                permit.charge(10 + number);
                finished.publish(number, &permit);
            }
        })
    });
    let mut kept = VecDeque::new();
    for number in batches.take(receives) {
        ticket.check_held(number, Duration::ZERO).unwrap();
        let batch = finished.take(number);
        batch.0.receive(&batch.1);
        let (live, with_consumer) = permits.counts();
        assert!(live <= permits.most && with_consumer <= 2, "{live} {with_consumer}");
        kept.push_back(batch);
        if kept.len() > keeps {
            kept.pop_front();
        }
    }
    finished.close();
    ticket.close();
    for worker in workers {
        worker.join().unwrap();
    }
    kept
}

fn is_empty(permits: &BatchPermits) -> bool {
    let State { live, published, released, held, runs, ahead, .. } = *lock(&permits.state);
    (live, published - released, held, runs, ahead) == (0, 0, 0, 0, 0)
}

/// With room for two batches, and for the rows of one ahead, the consumer gets all.
#[test]
fn a_consumer_that_keeps_one_of_two_batches_gets_the_others() {
    explore(|| {
        for bytes in [u64::MAX, 10] {
            let permits = BatchPermits::new(2, bytes);
            drop(run(&permits, 3..7, 4, 1));
            assert!(is_empty(&permits));
        }
    });
}

/// A run that is broken off leaves nothing, and what the consumer keeps of it counts in the next.
#[test]
fn turns_end_early_and_follow_each_other() {
    explore(|| {
        let permits = BatchPermits::new(2, 10);
        let kept = run(&permits, 0..u64::MAX, 2, 1);
        assert_eq!(permits.counts(), (1, 1));
        let dropping = thread::spawn(move || drop(kept));
        drop(run(&permits, 0..3, 3, 0));
        dropping.join().unwrap();
        assert!(is_empty(&permits));
    });
}
