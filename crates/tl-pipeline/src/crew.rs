//! The threads of a run, and where they wait between two epochs.

use std::mem;
use std::ops::Range;

use tl_handoff::sync::{Arc, Mutex, lock, thread};

use crate::error::PipelineError;
use crate::reader;
use crate::run::Run;
use crate::shared::Shared;
use crate::threads;
use crate::worker::{self, Watch};

/// The stack of a worker: that of a main thread on Linux, because a user's transform may recurse as
/// deep as there. Only the used part takes memory.
const STACK_BYTES: usize = 8 << 20;

/// A run and its threads. Dropping them stops and joins, all but the thread that drops them.
pub(crate) struct Workers {
    run: Arc<Run>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Workers {
    /// Starts the workers on the batches with these numbers, which continue after the last of
    /// `epoch`. A thread that cannot be started fails the run.
    pub(crate) fn start(shared: Arc<Shared>, epoch: u32, batches: Range<u64>) -> Self {
        let workers = shared.config.workers;
        let run = Arc::new(Run::new(shared, epoch, batches));
        let mut threads = Vec::with_capacity(workers);
        if !run.has_ticket() {
            return Self { run, threads };
        }
        for worker in 0..workers {
            let run_of_worker = Arc::clone(&run);
            let name = format!("tl-worker-{worker}");
            let body = move || until_over(&run_of_worker, |run| work(run, worker));
            match thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(body) {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    run.ring.fail(PipelineError::Spawn { worker, workers, source });
                    break;
                }
            }
        }
        reader::start(&run, &mut threads);
        Self { run, threads }
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// True if the next batch to be received is batch `batch` of `epoch`.
    pub(crate) fn are_at(&self, epoch: u32, batch: u64) -> bool {
        self.run.next() == (epoch, batch)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let threads = mem::take(&mut self.threads);
        if self.run.shared().is_forked() {
            // The threads are the parent's, and a lock may have been held at the fork.
            mem::forget(threads);
            return;
        }
        self.run.close();
        // A user's transform may drop its own loader: its worker ends when the transform returns.
        let own = thread::current().id();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != own) {
            // A worker that panicked has reported it through its `Watch`.
            drop(thread.join());
        }
    }
}

/// Does the work of a thread; reads of stores end with the run.
pub(crate) fn until_over(run: &Arc<Run>, work: impl FnOnce(&Run)) {
    if cfg!(feature = "shuttle") {
        // The model runs all its threads on one thread of the system, so a thread-local would keep
        // this run beyond the end of its schedule. No model reads a store.
        return work(run);
    }
    let watched = Arc::clone(run);
    tbl_io::interruptible(move || watched.is_over(), || work(run));
}

fn work(run: &Run, worker: usize) {
    let _watch = Watch { run, worker };
    if let Err(error) = threads::settle(&run.config().cpus, run.config().nice) {
        run.ring.fail(error.into());
        return;
    }
    let recycled = lock(&run.shared().scratch).pop();
    let mut scratch = recycled.unwrap_or_else(|| run.shared().new_scratch());
    let events = run.shared().trace.as_ref().map(|trace| trace.worker(worker));
    worker::run(run, &mut scratch, events);
    let mut kept = lock(&run.shared().scratch);
    if kept.len() < run.shared().config.workers {
        kept.push(scratch);
    }
}

/// The run that waits between two epochs.
#[derive(Default)]
pub(crate) struct Parking(Mutex<Parked>);

#[derive(Default)]
struct Parked {
    workers: Option<Workers>,
    /// The epoch asked for last.
    latest: Option<u32>,
    /// True once the loader is dropped.
    is_closed: bool,
}

impl Parking {
    /// Keeps a run that has reached the end of an epoch, if it continues.
    pub(crate) fn park(&self, workers: Option<Workers>) {
        let workers = workers.filter(|workers| !workers.run().ring.is_over());
        let mut parking = lock(&self.0);
        let left =
            if parking.is_closed { workers } else { mem::replace(&mut parking.workers, workers) };
        drop(parking);
        // Joined without the lock.
        drop(left);
    }

    /// The run that waits, and whether epochs are asked for in order, so that a run from `epoch` should
    /// continue with the next one: not for a loader whose only epoch is 0.
    pub(crate) fn unpark(&self, epoch: u32) -> (Option<Workers>, bool) {
        let mut parking = lock(&self.0);
        let latest = parking.latest.replace(epoch);
        let follows = latest.is_none_or(|latest| latest.checked_add(1) == Some(epoch));
        (parking.workers.take(), follows)
    }

    /// Ends the run that waits, and keeps none from now on.
    pub(crate) fn close(&self) {
        let mut parking = lock(&self.0);
        parking.is_closed = true;
        let left = parking.workers.take();
        drop(parking);
        drop(left);
    }
}
