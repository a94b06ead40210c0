//! How samples could reach workers: the counter that they claim rows from, and queues that a thread
//! would fill for them.
//!
//! Times are the processor's, of all threads together: by the clock, a queue that is waited for
//! costs nothing.

use std::hint::black_box;
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use crossbeam_deque::{Injector, Worker};
use crossbeam_queue::ArrayQueue;
use tl_benches::{is_measuring, processor_time};

/// Numbers in a bounded queue.
const QUEUED: usize = 256;

/// Brings the numbers below the first argument to so many workers, and returns the sum of what they
/// got.
type Way = fn(u64, usize) -> u64;

fn queues(criterion: &mut Criterion) {
    let ways: [(&str, Way); 4] = [
        ("claim counter", claim_counter),
        ("crossbeam-deque", stolen),
        ("crossbeam-channel", channel),
        ("ArrayQueue", array_queue),
    ];
    let samples = if is_measuring() { 2_000_000 } else { 2000 };
    let mut group = criterion.benchmark_group("queues");
    group.sample_size(10).throughput(Throughput::Elements(samples));
    for (name, way) in ways {
        for workers in [1, 2] {
            let id = BenchmarkId::new(name, format!("workers {workers}"));
            group.bench_function(id, |b| {
                b.iter_custom(|rounds| {
                    let before = processor_time();
                    for _ in 0..rounds {
                        let sum = way(black_box(samples), workers);
                        assert_eq!(sum, samples * (samples - 1) / 2, "every number comes once");
                    }
                    processor_time() - before
                });
            });
        }
    }
    group.finish();
}

/// What the loader does: nobody fills anything.
fn claim_counter(samples: u64, workers: usize) -> u64 {
    let next = AtomicU64::new(0);
    let claim = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&number| number < samples);
    run(workers, || iter::from_fn(claim).map(black_box).sum(), || ())
}

fn channel(samples: u64, workers: usize) -> u64 {
    let (sender, receiver) = crossbeam_channel::bounded(QUEUED);
    let fill = move || {
        for number in 0..samples {
            sender.send(number).expect("the receiver outlives the workers");
        }
    };
    run(workers, || receiver.iter().map(black_box).sum(), fill)
}

fn array_queue(samples: u64, workers: usize) -> u64 {
    let (queue, filled) = (ArrayQueue::new(QUEUED), AtomicBool::new(false));
    let fill = || {
        for number in 0..samples {
            while queue.push(number).is_err() {
                thread::yield_now();
            }
        }
        filled.store(true, Ordering::Release);
    };
    run(workers, || polled(&filled, || queue.pop()), fill)
}

/// Without a bound: an injector has none.
fn stolen(samples: u64, workers: usize) -> u64 {
    let (injector, filled) = (Injector::new(), AtomicBool::new(false));
    let fill = || {
        (0..samples).for_each(|number| injector.push(number));
        filled.store(true, Ordering::Release);
    };
    let work = || {
        let own = Worker::new_fifo();
        let steal = || {
            let mut tries = iter::repeat_with(|| injector.steal_batch_and_pop(&own));
            tries.find(|stolen| !stolen.is_retry()).and_then(|stolen| stolen.success())
        };
        polled(&filled, || own.pop().or_else(steal))
    };
    run(workers, work, fill)
}

/// The sum of what `pop` gives until there is nothing and no more comes. Yields while there is
/// nothing.
fn polled(filled: &AtomicBool, pop: impl Fn() -> Option<u64>) -> u64 {
    let mut sum = 0;
    loop {
        // Asked first: what is there afterwards is all there will be.
        let is_last = filled.load(Ordering::Acquire);
        match pop() {
            Some(number) => sum += black_box(number),
            None if is_last => return sum,
            None => thread::yield_now(),
        }
    }
}

/// Runs `work` on so many threads, and `fill` on this one.
fn run(workers: usize, work: impl Fn() -> u64 + Sync, fill: impl FnOnce()) -> u64 {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(&work)).collect();
        fill();
        threads.into_iter().map(|thread| thread.join().expect("workers only add")).sum()
    })
}

criterion_group!(benches, queues);
criterion_main!(benches);
