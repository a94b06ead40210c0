//! Models for loom: every outcome that the slab's memory orderings allow, for two or three threads.
//!
//! A row holds an atomic of loom that is written through `&mut`, like plain memory: loom fails if
//! another access is not ordered before or after such a write.

use super::*;
use crate::sync::{Arc, AtomicU64, Condvar, Mutex, lock, thread, wait};

fn slab(rows: usize) -> Slab<AtomicU64> {
    let shape = SlabLayout::new(rows, RowBytes { images: 1, masks: 0 }).unwrap();
    let mut slab = Slab::new(&shape, 0).unwrap();
    slab.reset(&shape, rows);
    slab
}

fn fill(mut row: RowMut<'_, AtomicU64>, value: u64) -> Option<Complete<'_, AtomicU64>> {
    row.parts().extra.with_mut(|place| *place = value);
    row.finish()
}

/// Doubles every row, as one that mixes a batch changes all of them.
fn double(complete: &mut Complete<'_, AtomicU64>) {
    for row in 0..complete.rows() {
        complete.extra(row).with_mut(|place| *place *= 2);
    }
}

fn rows(slab: &Slab<AtomicU64>, rows: usize) -> Vec<u64> {
    (0..rows).map(|row| slab.extra(row).load(Ordering::Relaxed)).collect()
}

/// A consumer that learns of the batch through a lock, as with the ring, while two threads fill.
#[test]
fn rows_are_seen_by_the_last_finisher_and_by_the_consumer() {
    loom::model(|| {
        let slab = Arc::new(slab(2));
        let done = Arc::new((Mutex::new(false), Condvar::new()));
        let threads = [0usize, 1].map(|row| {
            let slab = Arc::clone(&slab);
            let done = Arc::clone(&done);
            thread::spawn(move || {
                let claimed = slab.claim(row).unwrap();
                if let Some(mut complete) = fill(claimed, row as u64 + 1) {
                    double(&mut complete);
                    complete.publish();
                    *lock(&done.0) = true;
                    done.1.notify_one();
                }
            })
        });
        let mut is_done = lock(&done.0);
        while !*is_done {
            is_done = wait(&done.1, is_done);
        }
        drop(is_done);
        assert_eq!(rows(&slab, 2), [2, 4]);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// The flag `published` alone carries everything over, for a reader that happens to look.
#[test]
fn whoever_sees_a_slab_published_sees_its_rows() {
    loom::model(|| {
        let slab = Arc::new(slab(2));
        let threads = [0usize, 1].map(|row| {
            let slab = Arc::clone(&slab);
            thread::spawn(move || {
                let claimed = slab.claim(row).unwrap();
                if let Some(mut complete) = fill(claimed, row as u64 + 1) {
                    double(&mut complete);
                    complete.publish();
                }
            })
        });
        if slab.published.load(Ordering::Acquire) {
            assert_eq!(rows(&slab, 2), [2, 4]);
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(rows(&slab, 2), [2, 4]);
    });
}

/// Three threads that all want every row: each is written once, and one of them has the whole.
#[test]
fn a_row_that_several_want_is_given_out_once() {
    loom::model(|| {
        let slab = Arc::new(slab(2));
        let work = |slab: &Slab<AtomicU64>| {
            let mut completed = 0;
            for row in 0..2 {
                let Some(claimed) = slab.claim(row) else { continue };
                if let Some(mut complete) = fill(claimed, 1) {
                    double(&mut complete);
                    complete.publish();
                    completed += 1;
                }
            }
            completed
        };
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let slab = Arc::clone(&slab);
                thread::spawn(move || work(&slab))
            })
            .collect();
        let own: usize = work(&slab);
        let others: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!((own + others, rows(&slab, 2)), (1, vec![2, 2]));
    });
}
