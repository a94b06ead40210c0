//! The policy for repeating what failed for a reason that may pass, of local reads and of stores.

use std::error::Error;
use std::io;
use std::time::Duration;

use crate::error::ReadError;

/// Limits of attempts at one read, and the waits between them.
///
/// Waits double from attempt to attempt and are shortened at random, so that reads which failed
/// together are not repeated together. The arithmetic is the same for local files and for stores.
///
/// ```
/// use std::time::Duration;
/// use tbl_io::RetryPolicy;
///
/// let policy = RetryPolicy::default();
/// assert_eq!(policy.delay(1, 1.0), Duration::from_millis(50));
/// assert_eq!(policy.delay(2, 0.0), Duration::from_millis(50));
/// assert_eq!(policy.pause(1, Duration::ZERO, policy.delay(1, 1.0)), Some(Duration::from_millis(50)));
/// assert_eq!(RetryPolicy::NEVER.pause(1, Duration::ZERO, Duration::ZERO), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The most attempts, the first one included; 1 repeats nothing.
    pub attempts: u32,
    /// The longest wait after the first attempt, which doubles with each further one.
    pub first_delay: Duration,
    /// The longest wait after any attempt.
    pub longest_delay: Duration,
    /// The time from the first failure (of stores: from the first request) after which no further
    /// attempt begins.
    pub deadline: Duration,
}

impl RetryPolicy {
    /// One attempt.
    pub const NEVER: Self = Self {
        attempts: 1,
        first_delay: Duration::ZERO,
        longest_delay: Duration::ZERO,
        deadline: Duration::ZERO,
    };

    /// The wait after `attempts` attempts. `random` is from 0 to 1, and shortens it by up to a half.
    #[must_use]
    pub fn delay(&self, attempts: u32, random: f64) -> Duration {
        let doubled = self.first_delay.saturating_mul(1 << attempts.saturating_sub(1).min(16));
        jittered(doubled.min(self.longest_delay), random)
    }

    /// The longest wait, shortened as [`delay`](Self::delay) is.
    #[must_use]
    pub fn most_delay(&self, random: f64) -> Duration {
        jittered(self.longest_delay, random)
    }

    /// The wait before a further attempt, after `attempts` of them and `elapsed` time: `delay`, but at
    /// most half of the time that is left, because a long wait alone must not miss the deadline. `None`
    /// if no further attempt may begin.
    #[must_use]
    pub fn pause(&self, attempts: u32, elapsed: Duration, delay: Duration) -> Option<Duration> {
        let left = self.deadline.saturating_sub(elapsed);
        (attempts < self.attempts && !left.is_zero()).then(|| delay.min(left / 2))
    }
}

impl Default for RetryPolicy {
    /// Four attempts within 3 s, after waits of 50, 100 and 200 ms at most: longer than a server of
    /// files takes to answer again after a moment of load, and short on a disk that is dying. Its reads
    /// fail with the same error, each after seconds, so that the deadline leaves it a second attempt.
    fn default() -> Self {
        Self {
            attempts: 4,
            first_delay: Duration::from_millis(50),
            longest_delay: Duration::from_secs(1),
            deadline: Duration::from_secs(3),
        }
    }
}

fn jittered(delay: Duration, random: f64) -> Duration {
    delay.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
}

/// Errors of the system that may pass: EIO, which file systems also give for a server that does not
/// answer; ESTALE, a file that has to be opened again; ETIMEDOUT; EAGAIN; and EREMOTEIO, which NFS
/// gives for a fault of the server.
const TRANSIENT: &[i32] = &[
    libc::EIO,
    libc::ESTALE,
    libc::ETIMEDOUT,
    libc::EAGAIN,
    #[cfg(target_os = "linux")]
    libc::EREMOTEIO,
];

/// Whether an error comes from an error of the operating system that may pass: EIO, ESTALE,
/// ETIMEDOUT, EAGAIN, EREMOTEIO. Causes are searched to the end of their chain. Errors of stores are
/// none of these: a store's requests have been repeated before they fail.
///
/// ```
/// let stale = std::io::Error::from_raw_os_error(libc::ESTALE);
/// assert!(tbl_io::is_transient(&std::io::Error::other(stale)));
/// assert!(!tbl_io::is_transient(&std::io::Error::from(std::io::ErrorKind::TimedOut)));
/// ```
#[must_use]
pub fn is_transient(error: &(dyn Error + 'static)) -> bool {
    os_error(error).is_some_and(|number| TRANSIENT.contains(&number))
}

/// The number of the first error of the operating system among an error and its causes.
fn os_error(error: &(dyn Error + 'static)) -> Option<i32> {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<ReadError>().is_some_and(ReadError::is_of_store) {
            return None;
        }
        next = match error.downcast_ref::<io::Error>() {
            // The error that one carries is not its own source, whose source that error's is.
            Some(error) => match error.raw_os_error() {
                Some(number) => return Some(number),
                None => error.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            },
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_keep_half_of_the_time() {
        let policy = RetryPolicy { attempts: 9, ..RetryPolicy::default() };
        let waits: Vec<_> = (1..7).map(|made| policy.delay(made, 1.0).as_millis()).collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1000]);
        assert_eq!(policy.delay(u32::MAX, 0.0).as_millis(), 500);
        assert_eq!(policy.most_delay(0.5).as_millis(), 750);
        let second = Duration::from_secs(1);
        assert_eq!(policy.pause(8, 2 * second, second), Some(second / 2));
        assert_eq!(policy.pause(9, Duration::ZERO, second), None, "attempts");
        assert_eq!(policy.pause(1, 3 * second, second), None, "deadline");
    }

    #[test]
    fn errors_of_the_system_are_found_below_others() {
        let io = |number| ReadError::io("a", io::Error::from_raw_os_error(number));
        for number in TRANSIENT {
            assert!(is_transient(&io(*number)), "{number}");
            assert!(is_transient(&io(*number).for_sample(3, None)), "{number}");
            let wrapped = io::Error::other(io(*number).for_sample(3, None));
            assert!(is_transient(&ReadError::io("b", wrapped)), "{number}");
        }
        for number in [libc::ENOENT, libc::EACCES, libc::ENOSPC, libc::EISDIR] {
            assert!(!is_transient(&io(number)), "{number}");
        }
        let of_store = ReadError::io("s3://b/k", io::Error::from_raw_os_error(libc::EIO));
        assert!(!is_transient(&of_store.for_sample(3, None)));
        let short = ReadError::ChangedWhileOpen { location: "a".into(), offset: 0, expected: 1 };
        assert!(!is_transient(&short));
    }
}
