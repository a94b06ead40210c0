//! The same work on many items at once, for work that waits for a store.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::interrupt::Interrupt;

/// Items that are worked on at once: each takes one or two round trips.
pub(crate) const AT_ONCE: usize = 64;

/// Calls `work` with each item, on up to `threads` threads, and returns the results in order. What
/// interrupts the reads of this thread interrupts theirs.
///
/// # Errors
/// Of the items that fail, the error of the first one; those after it may not be tried.
pub(crate) fn at_once<T: Sync, R: Send, E: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let do_some = || {
        let mut done = Vec::new();
        loop {
            // All items before one that fails have been begun.
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else { return done };
            let result = work(item);
            if result.is_err() {
                next.store(items.len(), Ordering::Relaxed);
            }
            done.push((number, result));
        }
    };
    let interrupt = Interrupt::of_this_thread();
    let mut done = thread::scope(|scope| {
        let start = |_| {
            let interrupt = interrupt.clone();
            // Without a thread fewer do the work.
            thread::Builder::new().spawn_scoped(scope, || interrupt.during(do_some)).ok()
        };
        let more = 1..threads.min(items.len());
        let started: Vec<_> = more.map_while(start).collect();
        let mut done = do_some();
        for thread in started {
            done.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::time::Duration;

    use super::*;
    use crate::interrupt::{interruptible, is_interrupted};

    #[test]
    fn the_first_item_that_fails_is_the_error() {
        let items: Vec<usize> = (0..300).collect();
        for threads in [1, AT_ONCE] {
            let work = |bad: &'static [usize]| {
                at_once(&items, threads, |&item| {
                    // Later ones fail sooner.
                    thread::sleep(Duration::from_millis(u64::from(item == 70)));
                    if bad.contains(&item) { Err(item) } else { Ok(item) }
                })
            };
            assert_eq!(work(&[]).unwrap(), items);
            assert_eq!(work(&[71, 70, 299]), Err(70));
        }
        assert_eq!(at_once(&[0; 0], AT_ONCE, |&item| Ok::<_, ()>(item)), Ok(Vec::new()));
    }

    #[test]
    fn an_interrupt_reaches_all_threads() {
        let items = [0; 8];
        let all = Barrier::new(items.len());
        let look = |_: &usize| {
            // One item for each thread.
            all.wait();
            Ok::<_, ()>(is_interrupted())
        };
        let found = interruptible(|| true, || at_once(&items, items.len(), look));
        assert_eq!(found, Ok(vec![true; 8]));
        assert_eq!(at_once(&items, items.len(), look), Ok(vec![false; 8]));
    }
}
