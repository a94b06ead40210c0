//! Models for loom: workers and a consumer around the ring, every outcome with up to three forced
//! switches of threads.
//!
//! The batches are slabs whose rows hold an atomic of loom's that is written through `&mut`, so a
//! hand-over that does not put the write before the consumer's read is found, and so is a sleeper
//! that nobody wakes.

use super::*;
use crate::slab::{RowBytes, Slab, SlabLayout};
use crate::sync::{Arc, thread};

type Filling = Arc<Slab<AtomicU64>>;

struct Model {
    ring: Ring<Filling, Filling, &'static str>,
    batch_size: usize,
}

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

impl Model {
    fn new(batches: u64, batch_size: usize, depth: usize) -> Arc<Self> {
        let rows = batches * batch_size as u64;
        Arc::new(Self { ring: Ring::new(0..rows, 0..batches, depth), batch_size })
    }

    fn slab(&self) -> Filling {
        let shape = SlabLayout::new(self.batch_size, RowBytes { images: 0, masks: 0 }).unwrap();
        let mut slab = Slab::new(&shape, 0).unwrap();
        slab.reset(&shape, self.batch_size);
        Arc::new(slab)
    }

    fn work(&self) {
        let batch_size = self.batch_size as u64;
        while let Some(position) = self.ring.claim() {
            let batch = position / batch_size;
            let row = position % batch_size;
            let (Some(slab), _) = self.ring.enter(batch, || Ok(self.slab())) else { return };
            let mut claimed = slab.claim(usize::try_from(row).unwrap()).unwrap();
            claimed.parts().extra.with_mut(|value| *value = position + 1);
            if let Some(complete) = claimed.finish() {
                complete.publish();
                self.ring.publish(batch, Arc::clone(&slab));
            }
        }
    }

    fn start(self: &Arc<Self>, workers: usize) -> Vec<thread::JoinHandle<()>> {
        let start = || {
            let model = Arc::clone(self);
            thread::spawn(move || model.work())
        };
        std::iter::repeat_with(start).take(workers).collect()
    }

    /// Takes a batch and reads what its rows hold.
    fn take(&self) -> Taken<Vec<u64>, &'static str> {
        match self.ring.take(None).0 {
            Taken::Ready(slab) => {
                let value = |row| slab.extra(row).load(Ordering::Relaxed);
                Taken::Ready((0..self.batch_size).map(value).collect())
            }
            Taken::Failed(error) => Taken::Failed(error),
            Taken::Ended => Taken::Ended,
            Taken::TimedOut => Taken::TimedOut,
        }
    }
}

fn join(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn two_workers_fill_one_batch() {
    explore(|| {
        let model = Model::new(1, 2, 1);
        let threads = model.start(2);
        assert_eq!(model.take(), Taken::Ready(vec![1, 2]));
        assert_eq!(model.take(), Taken::Ended);
        join(threads);
    });
}

#[test]
fn a_full_ring_holds_workers_until_the_consumer_takes() {
    explore(|| {
        let model = Model::new(3, 1, 1);
        let threads = model.start(1);
        for value in 1..=3 {
            assert_eq!(model.take(), Taken::Ready(vec![value]));
        }
        join(threads);
    });
}

#[test]
fn batches_of_two_workers_come_in_order() {
    explore(|| {
        let model = Model::new(2, 1, 1);
        let threads = model.start(2);
        assert_eq!(model.take(), Taken::Ready(vec![1]));
        assert_eq!(model.take(), Taken::Ready(vec![2]));
        join(threads);
    });
}

#[test]
fn closing_sends_every_worker_home() {
    explore(|| {
        let model = Model::new(3, 1, 1);
        let threads = model.start(2);
        model.ring.close();
        join(threads);
        assert_eq!(model.ring.claim(), None);
    });
}

#[test]
fn a_failure_wakes_the_consumer() {
    explore(|| {
        let model = Model::new(1, 1, 1);
        assert_eq!(model.ring.claim(), Some(0));
        let failing = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.ring.fail("broken"))
        };
        assert_eq!(model.take(), Taken::Failed("broken"));
        assert_eq!(model.take(), Taken::Ended);
        failing.join().unwrap();
    });
}
