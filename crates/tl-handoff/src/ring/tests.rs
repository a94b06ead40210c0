use super::*;
use crate::slab::{Identity, RowBytes, SlabLayout};
use crate::sync::{Arc, thread};

/// Fills every batch with its row count, records what was claimed, and sleeps nowhere.
struct Model {
    ring: Ring<Arc<AtomicU64>, u64, &'static str>,
    rows: u64,
    batch_size: u64,
    /// Batches made and not yet counted out by the consumer.
    in_flight: AtomicU64,
    most_in_flight: AtomicU64,
}

impl Model {
    fn new(rows: u64, batch_size: u64, depth: usize) -> Arc<Self> {
        let ring = Ring::new(0..rows, 0..rows.div_ceil(batch_size), depth);
        let in_flight = AtomicU64::new(0);
        let most_in_flight = AtomicU64::new(0);
        Arc::new(Self { ring, rows, batch_size, in_flight, most_in_flight })
    }

    fn work(&self) {
        while let Some(row) = self.ring.claim() {
            let batch = row / self.batch_size;
            let make = || {
                let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
                self.most_in_flight.fetch_max(now, Ordering::SeqCst);
                Ok(Arc::new(AtomicU64::new(0)))
            };
            let (Some(filling), _) = self.ring.enter(batch, make) else { return };
            if filling.fetch_add(1, Ordering::SeqCst) + 1
                == rows_of(batch, self.rows, self.batch_size)
            {
                self.ring.publish(batch, batch);
            }
        }
    }

    fn take(&self) -> Taken<u64, &'static str> {
        let (taken, _) = self.ring.take(None);
        if matches!(taken, Taken::Ready(_)) {
            self.in_flight.fetch_sub(1, Ordering::SeqCst);
        }
        taken
    }

    fn start(self: &Arc<Self>, workers: usize) -> Vec<thread::JoinHandle<()>> {
        let start = || {
            let model = Arc::clone(self);
            thread::spawn(move || model.work())
        };
        std::iter::repeat_with(start).take(workers).collect()
    }
}

fn rows_of(batch: u64, rows: u64, batch_size: u64) -> u64 {
    batch_size.min(rows - batch * batch_size)
}

fn join(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Every batch once, in order, never more in flight than allowed, and everyone comes home.
fn whole_epoch(positions: u64, batch_size: u64, depth: usize, workers: usize) {
    let model = Model::new(positions, batch_size, depth);
    let threads = model.start(workers);
    for batch in 0..positions.div_ceil(batch_size) {
        assert_eq!(model.take(), Taken::Ready(batch));
    }
    assert_eq!(model.take(), Taken::Ended);
    join(threads);
    // The consumer subtracts a batch only after the ring has released it.
    assert!(model.most_in_flight.load(Ordering::SeqCst) <= depth as u64 + 1);
}

fn early_close(workers: usize) {
    let model = Model::new(9, 2, 2);
    let threads = model.start(workers);
    assert_eq!(model.take(), Taken::Ready(0));
    model.ring.close();
    join(threads);
    assert_eq!(model.ring.claim(), None);
}

fn failure_while_waiting() {
    let model = Model::new(4, 2, 1);
    // Position 0 is never finished, so the consumer would wait for good.
    assert_eq!(model.ring.claim(), Some(0));
    let threads = model.start(1);
    let failing = {
        let model = Arc::clone(&model);
        thread::spawn(move || model.ring.fail("broken"))
    };
    assert_eq!(model.take(), Taken::Failed("broken"));
    assert_eq!(model.take(), Taken::Ended);
    join(threads);
    failing.join().unwrap();
}

/// A batch fails: those before it are finished by the workers that have rows of them.
fn failure_in_the_middle(workers: usize) {
    let ring: Ring<Arc<AtomicU64>, u64, u64> = Ring::new(0..10, 0..5, 4);
    let ring = Arc::new(ring);
    let start = || {
        let ring = Arc::clone(&ring);
        thread::spawn(move || {
            while let Some(row) = ring.claim() {
                let batch = row / 2;
                let make = || if batch < 2 { Ok(Arc::new(AtomicU64::new(0))) } else { Err(batch) };
                let (Some(filling), _) = ring.enter(batch, make) else { return };
                if filling.fetch_add(1, Ordering::SeqCst) == 1 {
                    ring.publish(batch, batch);
                }
            }
        })
    };
    let threads: Vec<_> = std::iter::repeat_with(start).take(workers).collect();
    let taken: Vec<_> = (0..4).map(|_| ring.take(None).0).collect();
    assert_eq!(taken, [Taken::Ready(0), Taken::Ready(1), Taken::Failed(2), Taken::Ended]);
    join(threads);
}

/// Two epochs of real slabs: each row is written by the thread that claimed it, and read after the
/// batch was published; memory returns to the pool while workers may still hold it.
fn slabs_through_the_ring(positions: u64, workers: usize) {
    const ROWS: u64 = 2;
    let shape = SlabLayout::new(2, RowBytes { images: 1, masks: 0 }).expect("two bytes");
    let pool: Arc<crate::pool::Pool<()>> = Arc::new(crate::pool::Pool::new(2));
    for epoch in 0..2u8 {
        let ring = Ring::new(0..positions, 0..positions.div_ceil(ROWS), 1);
        let ring: Arc<Ring<_, _, ()>> = Arc::new(ring);
        let start = || {
            let ring = Arc::clone(&ring);
            let pool = Arc::clone(&pool);
            let shape = shape.clone();
            thread::spawn(move || {
                while let Some(position) = ring.claim() {
                    let batch = position / ROWS;
                    let rows = usize::try_from(rows_of(batch, positions, ROWS)).unwrap();
                    let make = || pool.take(&shape, rows).map(Arc::new).ok_or(());
                    let (Some(lease), _) = ring.enter(batch, make) else { return };
                    let mut row = lease.claim(usize::try_from(position % ROWS).unwrap()).unwrap();
                    row.parts().image.fill(epoch + 1);
                    let label = -1;
                    let index = position;
                    row.identify(Identity { label, index, size: [1; 2], valid: true });
                    if let Some(complete) = row.finish() {
                        complete.publish();
                        ring.publish(batch, (Arc::clone(&lease), rows));
                    }
                }
            })
        };
        let threads: Vec<_> = std::iter::repeat_with(start).take(workers).collect();
        let mut next = 0;
        while let (Taken::Ready((lease, rows)), _) = ring.take(None) {
            assert!(lease.images(rows).iter().all(|&byte| byte == epoch + 1));
            for &index in lease.indices(rows) {
                assert_eq!(index, next);
                next += 1;
            }
        }
        assert_eq!(next, positions);
        join(threads);
    }
}

#[cfg(not(feature = "shuttle"))]
mod real_threads {
    use super::*;

    #[test]
    fn batches_come_in_order_for_any_shape() {
        for (positions, batch_size) in [(0, 1), (1, 1), (1, 8), (16, 4), (17, 4), (40, 1)] {
            for depth in [1, 2, 5] {
                for workers in [1, 2, 3, 7] {
                    whole_epoch(positions, batch_size, depth, workers);
                }
            }
        }
    }

    #[test]
    fn a_long_epoch_survives_contention() {
        whole_epoch(if cfg!(miri) { 60 } else { 40_000 }, 3, 2, 8);
    }

    #[test]
    fn closing_wakes_every_worker() {
        for workers in [1, 2, 8] {
            early_close(workers);
        }
    }

    #[test]
    fn a_failure_reaches_a_waiting_consumer() {
        failure_while_waiting();
    }

    #[test]
    fn batches_before_one_that_cannot_be_made_are_finished_first() {
        (1..=4).for_each(failure_in_the_middle);
        let ring: Ring<(), (), &str> = Ring::new(0..4, 0..2, 2);
        assert_eq!(ring.enter(0, || Ok(())).0, Some(()));
        ring.fail_at(1, "second");
        assert_eq!(ring.take(Some(Duration::ZERO)).0, Taken::TimedOut);
        assert_eq!(ring.enter(0, || Ok(())).0, Some(()));
        // An earlier one counts, a later one does not.
        ring.fail_at(0, "first");
        ring.fail_at(1, "second");
        let taken = [ring.take(None).0, ring.take(None).0];
        assert_eq!(taken, [Taken::Failed("first"), Taken::Ended]);
    }

    #[test]
    fn slabs_are_handed_round() {
        slabs_through_the_ring(if cfg!(miri) { 9 } else { 3_001 }, 3);
    }

    #[test]
    fn batches_before_a_failure_are_delivered_first() {
        let model = Model::new(4, 2, 2);
        model.work();
        model.ring.fail("late");
        let taken = [model.take(), model.take(), model.take()];
        assert_eq!(taken, [Taken::Ready(0), Taken::Ready(1), Taken::Ended]);
    }

    #[test]
    fn a_ring_can_start_anywhere() {
        let ring: Ring<(), u64, ()> = Ring::new(5..7, 2..4, 2);
        assert_eq!((ring.claim(), ring.claim(), ring.claim()), (Some(5), Some(6), None));
        for batch in [2, 3] {
            assert_eq!((ring.enter(batch, || Ok(())).0, ring.taken()), (Some(()), 2));
            ring.publish(batch, batch);
        }
        let taken = [ring.take(None).0, ring.take(None).0, ring.take(None).0];
        assert_eq!(taken, [Taken::Ready(2), Taken::Ready(3), Taken::Ended]);
    }

    #[test]
    fn waiting_for_so_long_is_no_end() {
        let ring: Ring<(), u64, ()> = Ring::new(0..1, 0..1, 1);
        assert_eq!(ring.take(Some(Duration::from_micros(1))).0, Taken::TimedOut);
        assert_eq!(ring.enter(0, || Ok(())).0, Some(()));
        ring.publish(0, 9);
        assert_eq!(ring.take(Some(Duration::ZERO)).0, Taken::Ready(9));
    }

    #[test]
    fn a_batch_that_cannot_be_made_ends_the_epoch() {
        let ring: Ring<(), (), &str> = Ring::new(0..4, 0..2, 2);
        assert_eq!(ring.claim(), Some(0));
        assert_eq!(ring.enter(0, || Err("no memory")).0, None);
        assert_eq!((ring.claim(), ring.take(None).0), (None, Taken::Failed("no memory")));
    }
}

/// `cargo xtask prove schedules`
#[cfg(feature = "shuttle")]
mod schedules {
    use super::*;
    use crate::sync::explore;

    #[test]
    fn whole_epochs() {
        explore(|| whole_epoch(5, 2, 2, 2));
        explore(|| whole_epoch(4, 1, 1, 3));
    }

    #[test]
    fn early_closes() {
        explore(|| early_close(2));
    }

    #[test]
    fn slabs_are_handed_round() {
        explore(|| slabs_through_the_ring(3, 2));
    }

    #[test]
    fn failures() {
        explore(failure_while_waiting);
        explore(|| failure_in_the_middle(2));
        explore(|| failure_in_the_middle(3));
    }
}
