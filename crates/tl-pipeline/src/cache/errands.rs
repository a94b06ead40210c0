//! Small changes of a folder on a thread of their own, so that a disk that does not answer holds up
//! nobody.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use tl_handoff::sync::{Arc, Condvar, Mutex, lock, process_id, thread, wait, wait_timeout};

/// A disk is not waited for while it takes so many times longer than an errand may. One that is busy
/// answers sooner.
const STUCK: u32 = 10;

type Work = Box<dyn FnOnce() -> bool + Send>;

/// A thread that does errands in order.
#[derive(Debug)]
pub(super) struct Errands {
    shared: Arc<Shared>,
    /// The process that has the thread.
    process: u32,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Signalled when `state` changes.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<Errand>>,
    thread: Option<thread::JoinHandle<()>>,
    is_running: bool,
    /// The time at which the errand that is done now was begun.
    since: Option<Instant>,
    ends: bool,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("ends", &self.ends).finish_non_exhaustive()
    }
}

struct Errand {
    stage: Mutex<Stage>,
    /// Undoes it, if it is done when nobody waits for it any more.
    undo: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

enum Stage {
    Waiting(Work),
    Running,
    Done(bool),
    GivenUp,
}

impl Errands {
    pub(super) fn new() -> Self {
        Self { shared: Arc::default(), process: process_id() }
    }

    /// Does `work` within this time, and returns its result. `None` if it takes longer: then it is not
    /// done, or undone by `undo` as soon as it is. It is not waited for while an earlier one takes far longer.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn within(
        &self,
        time: Duration,
        work: impl FnOnce() -> bool + Send + 'static,
        undo: impl FnOnce() + Send + 'static,
    ) -> io::Result<Option<bool>> {
        let since = Instant::now();
        let errand = Arc::new(Errand {
            stage: Mutex::new(Stage::Waiting(Box::new(work))),
            undo: Mutex::new(Some(Box::new(undo))),
        });
        let mut state = lock(&self.shared.state);
        let is_stuck = state.since.is_some_and(|since| since.elapsed() >= time * STUCK);
        if state.ends || is_stuck || process_id() != self.process {
            return Ok(None);
        }
        self.start(&mut state)?;
        state.queue.push_back(Arc::clone(&errand));
        self.shared.changed.notify_all();
        loop {
            let mut stage = lock(&errand.stage);
            if let Stage::Done(result) = *stage {
                return Ok(Some(result));
            }
            let Some(left) = time.checked_sub(since.elapsed()) else {
                *stage = Stage::GivenUp;
                return Ok(None);
            };
            drop(stage);
            state = wait_timeout(&self.shared.changed, state, left);
        }
    }

    fn start(&self, state: &mut State) -> io::Result<()> {
        if state.is_running {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name("tl-cache-2".into());
        state.thread = Some(thread.spawn(move || shared.run())?);
        state.is_running = true;
        Ok(())
    }

    /// Ends the thread after the errands that are there, and waits for it, but not longer than this.
    pub(super) fn end(&self, at_most: Duration) {
        let since = Instant::now();
        let mut state = lock(&self.shared.state);
        state.ends = true;
        self.shared.changed.notify_all();
        while state.is_running {
            let Some(left) = at_most.checked_sub(since.elapsed()) else { return };
            state = wait_timeout(&self.shared.changed, state, left);
        }
        let thread = state.thread.take();
        drop(state);
        drop(thread.map(thread::JoinHandle::join));
    }
}

impl Shared {
    fn run(&self) {
        let mut state = lock(&self.state);
        loop {
            let Some(errand) = state.queue.pop_front() else {
                if state.ends {
                    break;
                }
                state = wait(&self.changed, state);
                continue;
            };
            state.since = Some(Instant::now());
            drop(state);
            errand.run();
            state = lock(&self.state);
            state.since = None;
            self.changed.notify_all();
        }
        state.is_running = false;
        drop(state);
        self.changed.notify_all();
    }
}

impl Errand {
    fn run(&self) {
        let mut stage = lock(&self.stage);
        if matches!(*stage, Stage::GivenUp) {
            return;
        }
        let Stage::Waiting(work) = std::mem::replace(&mut *stage, Stage::Running) else { return };
        drop(stage);
        let result = work();
        let mut stage = lock(&self.stage);
        if matches!(*stage, Stage::GivenUp) {
            drop(stage);
            let undo = lock(&self.undo).take();
            if let Some(undo) = undo.filter(|_| result) {
                undo();
            }
            return;
        }
        *stage = Stage::Done(result);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use tl_handoff::sync::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn nobody_waits_for_an_errand_that_takes_too_long() {
        let errands = Errands::new();
        let long = Duration::from_secs(60);
        let short = Duration::from_millis(10);
        assert_eq!(errands.within(long, || true, || ()).unwrap(), Some(true));
        assert_eq!(errands.within(long, || false, || ()).unwrap(), Some(false));
        let disk = Arc::new(Mutex::new(()));
        let undone = Arc::new(AtomicU64::new(0));
        let hangs = lock(&disk);
        let within = |time| {
            let disk = Arc::clone(&disk);
            let undone = Arc::clone(&undone);
            let work = move || {
                drop(lock(&disk));
                true
            };
            let undo = move || {
                undone.fetch_add(1, Ordering::Relaxed);
            };
            errands.within(time, work, undo)
        };
        // One is begun, and the other is not.
        let since = Instant::now();
        assert_eq!((within(short).unwrap(), within(short).unwrap()), (None, None));
        thread::sleep(short * STUCK);
        let stuck = Instant::now();
        assert!((0..2_000).all(|_| within(short).unwrap().is_none()));
        assert!(stuck.elapsed() < short * 1_000, "they are not waited for");
        drop(hangs);
        while within(long).unwrap().is_none() {
            assert!(since.elapsed() < long, "the disk answers again");
            thread::yield_now();
        }
        assert_eq!(undone.load(Ordering::Relaxed), 1);
        errands.end(long);
        assert_eq!(within(long).unwrap(), None, "it has ended");
    }
}
