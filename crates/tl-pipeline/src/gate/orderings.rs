//! Models for loom: what is counted of a batch is there whenever it is looked at.

use super::*;
use crate::sync::{AtomicUsize, thread};

/// Rows are charged without an order of their own: a row's charge comes before its finish, and the
/// finish of the last row before the batch is handed over.
#[test]
fn a_batch_is_handed_over_with_the_charges_of_all_rows() {
    loom::model(|| {
        let gate = Gate::new(2, 100);
        let turn = gate.turn(0).unwrap();
        let (permit, unfinished) = (Arc::new(turn.permit()), Arc::new(AtomicUsize::new(2)));
        let ready = Arc::new((Mutex::new(false), Condvar::new()));
        let workers = [3, 4].map(|bytes| {
            let (permit, unfinished) = (Arc::clone(&permit), Arc::clone(&unfinished));
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
        assert_eq!(lock(&gate.state).ahead, 0);
        for worker in workers {
            worker.join().unwrap();
        }
        drop((permit, held));
        assert_eq!((gate.counts(), lock(&gate.state).ahead), ((0, 0), 0));
    });
}

/// Nobody sleeps behind the batch that makes room for his, or behind the end of the run.
#[test]
fn whoever_waits_is_woken() {
    for closes in [false, true] {
        loom::model(move || {
            let gate = Gate::new(1, u64::MAX);
            let turn = Arc::new(gate.turn(0).unwrap());
            let first = turn.permit();
            let waiting = {
                let turn = Arc::clone(&turn);
                thread::spawn(move || {
                    turn.wait(1);
                    drop(turn.permit());
                })
            };
            let held = first.publish();
            first.receive(&held);
            drop(first);
            if closes {
                turn.close();
                waiting.join().unwrap();
                drop(held);
            } else {
                drop(held);
                waiting.join().unwrap();
            }
            assert_eq!(gate.counts(), (0, 0));
        });
    }
}
