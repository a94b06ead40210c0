//! Models for loom: the charges of a batch are visible to every thread that reads them.

use super::*;
use crate::sync::{AtomicUsize, thread};

/// Rows are charged with relaxed ordering: a row's charge comes before its finish, and the finish
/// of the last row before the batch is handed over.
#[test]
fn a_batch_is_handed_over_with_the_charges_of_all_rows() {
    loom::model(|| {
        let permits = BatchPermits::new(2, 100);
        let ticket = permits.begin(0).unwrap();
        let permit = Arc::new(ticket.permit());
        let unfinished = Arc::new(AtomicUsize::new(2));
        let ready = Arc::new((Mutex::new(false), Condvar::new()));
        let workers = [3, 4].map(|bytes| {
            let permit = Arc::clone(&permit);
            let unfinished = Arc::clone(&unfinished);
            let ready = Arc::clone(&ready);
            thread::spawn(move || {
                permit.charge(bytes);
                if unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
                    assert_eq!(permit.charged(), 7);
                    *lock(&ready.0) = true;
                    ready.1.notify_one();
                }
            })
        });
        let mut is_ready = lock(&ready.0);
        while !*is_ready {
            is_ready = wait(&ready.1, is_ready);
        }
        drop(is_ready);
        let held = permit.publish();
        permit.receive(&held);
        assert_eq!(lock(&permits.state).ahead, 0);
        for worker in workers {
            worker.join().unwrap();
        }
        drop((permit, held));
        assert_eq!((permits.counts(), lock(&permits.state).ahead), ((0, 0), 0));
    });
}

/// No thread keeps sleeping after the batch that frees memory for its own, or after the end of the
/// run.
#[test]
fn whoever_waits_is_woken() {
    for closes in [false, true] {
        loom::model(move || {
            let permits = BatchPermits::new(1, u64::MAX);
            let ticket = Arc::new(permits.begin(0).unwrap());
            let first = ticket.permit();
            let waiting = {
                let ticket = Arc::clone(&ticket);
                thread::spawn(move || {
                    ticket.wait(1);
                    drop(ticket.permit());
                })
            };
            let held = first.publish();
            first.receive(&held);
            drop(first);
            if closes {
                ticket.close();
                waiting.join().unwrap();
                drop(held);
            } else {
                drop(held);
                waiting.join().unwrap();
            }
            assert_eq!(permits.counts(), (0, 0));
        });
    }
}
