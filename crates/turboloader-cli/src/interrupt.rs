//! Ctrl-C during work that ends by itself: on a store, where parts would be left if the process just
//! ended, and on many shards.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use tbl_io::Location;

use crate::failure::Failure;

/// The end of a message.
const INTERRUPTED: &str = ": interrupted, nothing is written";

/// The state that the handlers of signals look at. They stay for the life of the process.
struct Signals {
    /// Whether a signal ends the process at once, as it does without a handler.
    ends: Arc<AtomicBool>,
    /// Whether one has arrived since.
    has_come: Arc<AtomicBool>,
}

impl Signals {
    fn get() -> &'static Self {
        static SIGNALS: OnceLock<Signals> = OnceLock::new();
        SIGNALS.get_or_init(|| {
            let ends = Arc::new(AtomicBool::new(true));
            let has_come = Arc::new(AtomicBool::new(false));
            for signal in [SIGINT, SIGTERM] {
                // In this order: the first signal is noted, and a second one ends the process.
                let handlers = [
                    flag::register_conditional_default(signal, Arc::clone(&ends)),
                    flag::register_conditional_default(signal, Arc::clone(&has_come)),
                    flag::register(signal, Arc::clone(&has_come)),
                ];
                // Without a handler the process ends, as it does for other commands.
                drop(handlers);
            }
            Self { ends, has_come }
        })
    }
}

/// Does work that writes `destination`. If that is in a store, Ctrl-C ends the work, whose upload ends
/// with it, instead of the process; a second one ends the process. A local file needs nothing of this.
/// Work on several files has this around all of it, too, so that Ctrl-C between two of them ends it.
pub(crate) fn undone<T>(
    destination: &Path,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    if Location::new(destination).url().is_none() {
        return work();
    }
    let mut is_over = false;
    let done = ended(&mut is_over, work);
    let failure = match done {
        Err(failure) if is_over => failure.to_string(),
        done => return done,
    };
    // Of several files the one that was being written is named.
    if failure.contains(INTERRUPTED) {
        return Err(Failure::system(failure));
    }
    // What the store keeps of an upload is said too.
    let left = failure.find("; the upload ").and_then(|place| failure.get(place..));
    let destination = Location::new(destination);
    let left = left.unwrap_or_default();
    Err(Failure::system(format_args!("{destination}{INTERRUPTED}{left}")))
}

/// Does work that Ctrl-C ends, instead of the process; a second one ends the process. `is_over` is
/// whether one came.
pub(crate) fn ended<T>(is_over: &mut bool, work: impl FnOnce() -> T) -> T {
    let Signals { ends, has_come } = Signals::get();
    let is_outermost = ends.swap(false, Ordering::Relaxed);
    let done = tbl_io::interruptible(|| has_come.load(Ordering::Relaxed), work);
    *is_over = has_come.load(Ordering::Relaxed);
    if is_outermost {
        ends.store(true, Ordering::Relaxed);
        has_come.store(false, Ordering::Relaxed);
    }
    done
}
