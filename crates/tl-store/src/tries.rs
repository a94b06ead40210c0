//! The tries of a request: when each may be sent, and whether another may follow.

use std::sync::Arc;
use std::time::Duration;

use tbl_io::{RangeFault, RetryPolicy};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::bucket::Bucket;
use crate::cause::Cause;
use crate::connections::Permit;
use crate::counters::Count;

/// Requests to a host that nothing was read from yet: its name is probably wrong.
const TRIES_UNREACHABLE: u32 = 4;
/// The time for an answer that is not a range.
const PATIENCE: Duration = Duration::from_secs(30);

/// The tries of one request. Their deadline counts from the first permit: the wait for that depends
/// on other requests.
pub(crate) struct Tries<'a> {
    bucket: &'a Arc<Bucket>,
    begun: Option<Instant>,
    sent: u32,
    /// The failure of the last try.
    last: Option<Cause>,
}

impl<'a> Tries<'a> {
    pub(crate) fn new(bucket: &'a Arc<Bucket>) -> Self {
        Self { bucket, begun: None, sent: 0, last: None }
    }

    /// The requests that were sent.
    pub(crate) fn sent(&self) -> u32 {
        self.sent
    }

    /// The time until the deadline.
    pub(crate) fn left(&self) -> Duration {
        self.bucket.retry.deadline.saturating_sub(self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }

    /// Waits until a request may be sent: with a permit, and after the pause that the store asked for.
    ///
    /// # Errors
    /// The last cause, if that would be after the deadline.
    pub(crate) async fn start(&mut self, is_urgent: bool) -> Result<Permit, Cause> {
        let permit = self.bucket.connections.permit(is_urgent);
        let permit = match self.begun {
            None => permit.await,
            Some(_) => match timeout(self.left(), permit).await {
                Ok(permit) => permit,
                Err(_) => return Err(self.late(Cause::Silent(self.elapsed()))),
            },
        };
        self.begun.get_or_insert_with(Instant::now);
        // Other requests wait for this permit, so that none of them is sent in the pause.
        while let Some((until, cause)) = self.bucket.pace.quiet() {
            if self.is_late(until) {
                return Err(self.late(cause));
            }
            sleep_until(until).await;
        }
        if self.sent > 0 {
            self.bucket.counters.count(Count::Retry);
        }
        self.sent += 1;
        Ok(permit)
    }

    /// Waits before the next try.
    ///
    /// # Errors
    /// The cause, if no other try may succeed in time.
    pub(crate) async fn failed(&mut self, cause: Cause) -> Result<(), Cause> {
        let attempts = if !cause.is_unreachable() {
            self.bucket.retry.attempts
        } else if self.bucket.pace.has_read() {
            // The store is probably being restarted: it is asked again up to the deadline.
            u32::MAX
        } else {
            TRIES_UNREACHABLE
        };
        if !cause.may_pass() || self.sent >= attempts {
            return Err(cause);
        }
        if self.left().is_zero() && cause.is_silence() {
            return Err(self.late(cause));
        }
        let quiet = self.bucket.pace.quiet();
        if self.left().is_zero() || quiet.is_some_and(|(until, _)| self.is_late(until)) {
            return Err(cause);
        }
        let random = self.bucket.random();
        let delay = self.bucket.pace.delay(self.sent, random);
        let policy = RetryPolicy { attempts, ..self.bucket.retry };
        let Some(pause) = policy.pause(self.sent, self.elapsed(), delay) else { return Err(cause) };
        sleep(pause).await;
        self.last = Some(cause);
        Ok(())
    }

    /// Whether the deadline comes before `time`.
    fn is_late(&self, time: Instant) -> bool {
        time.saturating_duration_since(Instant::now()) >= self.left()
    }

    /// The cause to report at the deadline: what kept the last try from success, if there was one.
    fn late(&mut self, other: Cause) -> Cause {
        self.last.take().unwrap_or(other)
    }

    /// The fault for the caller.
    pub(crate) fn fault(&self, cause: Cause) -> RangeFault {
        // A request that was not sent ends with the answer to another one.
        cause.fault(self.bucket.endpoint.as_deref(), self.sent.max(1), self.elapsed())
    }
}

/// A request that failed, and its tries.
pub(crate) struct Failed<'a> {
    tries: Tries<'a>,
    pub(crate) cause: Cause,
}

impl Failed<'_> {
    /// The fault for the caller.
    pub(crate) fn fault(self) -> RangeFault {
        self.tries.fault(self.cause)
    }

    /// The status of the last answer.
    pub(crate) fn status(&self) -> Option<u16> {
        if let Cause::Status { status, .. } = self.cause { Some(status) } else { None }
    }

    /// Whether the store may have done what was asked, and the answer was lost.
    pub(crate) fn may_be_done(&self) -> bool {
        // A try before this one may have made the object that is now in the way, or used the upload up.
        let is_second = matches!(self.cause, Cause::Status { status: 400 | 404 | 409 | 412, .. });
        self.cause.may_be_done() || is_second && self.tries.sent() > 1
    }
}

/// The result of a request that writes, repeated where that may help. The argument of `request` is
/// whether it has a condition: some stores know none.
pub(crate) async fn tried<'a, T, R: Future<Output = Result<T, Cause>>>(
    bucket: &'a Arc<Bucket>,
    request: impl Fn(bool) -> R,
) -> Result<T, Failed<'a>> {
    let mut tries = Tries::new(bucket);
    let mut is_conditional = true;
    loop {
        let permit = match tries.start(true).await {
            Ok(permit) => permit,
            Err(cause) => return Err(Failed { tries, cause }),
        };
        let answer = request(is_conditional).await;
        drop(permit);
        let cause = match answer {
            Ok(answer) => return Ok(answer),
            Err(Cause::Status { status: 501, .. }) if is_conditional => {
                is_conditional = false;
                continue;
            }
            Err(cause) => cause,
        };
        bucket.note(&cause);
        if let Err(cause) = tries.failed(cause).await {
            return Err(Failed { tries, cause });
        }
    }
}

/// The result of a small request that somebody waits for, repeated where that may help.
pub(crate) async fn repeated<T, R: Future<Output = Result<T, Cause>>>(
    bucket: &Arc<Bucket>,
    request: impl Fn() -> R,
) -> Result<T, RangeFault> {
    let mut tries = Tries::new(bucket);
    loop {
        let permit = match tries.start(true).await {
            Ok(permit) => permit,
            Err(cause) => return Err(tries.fault(cause)),
        };
        let patience = PATIENCE.min(tries.left());
        let answer = timeout(patience, request()).await.unwrap_or(Err(Cause::Silent(patience)));
        drop(permit);
        let cause = match answer {
            Ok(answer) => return Ok(answer),
            Err(cause) => cause,
        };
        bucket.note(&cause);
        if let Err(cause) = tries.failed(cause).await {
            return Err(tries.fault(cause));
        }
    }
}
