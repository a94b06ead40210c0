//! The repetition of work on a sample whose read failed for a reason that may pass.

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use tbl_io::{RetryPolicy, is_transient};
use tl_handoff::sync::{AtomicU64, Ordering, thread};

/// The longest sleep before a look at whether the result is still wanted.
const SLICE: Duration = Duration::from_millis(10);

/// The most attempts that a policy may ask for.
pub(crate) const MAX_ATTEMPTS: u32 = 100;
/// The longest time in which a policy may ask for further attempts.
pub(crate) const MAX_DEADLINE: Duration = Duration::from_secs(3600);

/// Counters of reads that were repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryStats {
    /// Reads that failed for a reason that may pass, and were repeated.
    pub repeated: u64,
    /// Samples whose last attempt failed as well.
    pub given_up: u64,
    /// Time that threads waited before they repeated a read, all together.
    pub waited: Duration,
}

impl RetryStats {
    /// The difference to `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            repeated: self.repeated.saturating_sub(earlier.repeated),
            given_up: self.given_up.saturating_sub(earlier.given_up),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}

/// The counters while they count.
#[derive(Debug, Default)]
pub(crate) struct RetryCounters {
    repeated: AtomicU64,
    given_up: AtomicU64,
    /// Nanoseconds.
    waited: AtomicU64,
}

impl RetryCounters {
    /// A read failed with this error before its sample's turn, at which it is repeated.
    pub(crate) fn failed_ahead(&self, error: &(dyn Error + 'static)) {
        if is_transient(error) {
            self.repeat(Duration::ZERO);
        }
    }

    fn repeat(&self, waited: Duration) {
        self.repeated.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        self.waited.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> RetryStats {
        RetryStats {
            repeated: self.repeated.load(Ordering::Relaxed),
            given_up: self.given_up.load(Ordering::Relaxed),
            waited: Duration::from_nanos(self.waited.load(Ordering::Relaxed)),
        }
    }
}

/// The attempts at one sample.
#[derive(Debug)]
pub(crate) struct Attempts<'a> {
    policy: RetryPolicy,
    counters: &'a RetryCounters,
    failed: u32,
    first_failure: Option<Instant>,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(policy: RetryPolicy, counters: &'a RetryCounters) -> Self {
        Self { policy, counters, failed: 0, first_failure: None }
    }

    /// The attempts that failed.
    pub(crate) fn failed(&self) -> u32 {
        self.failed
    }

    /// Counts an attempt that failed with `error`, and waits for the next one, or until `is_over`.
    /// False if there is none: the error lasts, or the policy allows no more.
    pub(crate) fn wait(
        &mut self,
        error: &(dyn Error + 'static),
        is_over: &dyn Fn() -> bool,
    ) -> bool {
        self.failed += 1;
        if !is_transient(error) {
            return false;
        }
        let first = *self.first_failure.get_or_insert_with(Instant::now);
        let random = RandomState::new().hash_one(self.failed) >> 32;
        let random = f64::from(u32::try_from(random).unwrap_or(0)) / f64::from(u32::MAX);
        let delay = self.policy.delay(self.failed, random);
        let Some(pause) = self.policy.pause(self.failed, first.elapsed(), delay) else {
            self.counters.given_up.fetch_add(1, Ordering::Relaxed);
            return false;
        };
        let begun = Instant::now();
        while !is_over() {
            let left = pause.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(SLICE));
        }
        self.counters.repeat(begun.elapsed());
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn stale() -> io::Error {
        io::Error::from_raw_os_error(libc_estale())
    }

    /// ESTALE of Linux and of macOS.
    fn libc_estale() -> i32 {
        if cfg!(target_os = "linux") { 116 } else { 70 }
    }

    #[test]
    fn attempts_end_with_the_policy_and_with_errors_that_last() {
        let counters = RetryCounters::default();
        let policy =
            RetryPolicy { first_delay: Duration::from_micros(1), ..RetryPolicy::default() };
        let mut attempts = Attempts::new(policy, &counters);
        let over = || false;
        let waits: Vec<_> = (0..4).map(|_| attempts.wait(&stale(), &over)).collect();
        assert_eq!((waits, attempts.failed()), (vec![true, true, true, false], 4));
        let mut attempts = Attempts::new(policy, &counters);
        assert!(attempts.wait(&stale(), &over));
        assert!(!attempts.wait(&io::Error::other("damaged"), &over));
        let RetryStats { repeated, given_up, .. } = counters.stats();
        assert_eq!((repeated, given_up), (4, 1));
    }

    #[test]
    fn a_wait_ends_when_nobody_wants_the_result() {
        let counters = RetryCounters::default();
        let delay = Duration::from_secs(600);
        let policy = RetryPolicy {
            first_delay: delay,
            longest_delay: delay,
            deadline: 4 * delay,
            ..RetryPolicy::default()
        };
        let begun = Instant::now();
        let over = || begun.elapsed() > Duration::from_millis(30);
        assert!(Attempts::new(policy, &counters).wait(&stale(), &over));
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
