//! The usual times of a store, and the allowance for requests beyond the needed ones.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tbl_io::RetryPolicy;
use tokio::time::Instant;

use crate::cause::Cause;

/// Answers that the usual times are taken from.
const REMEMBERED: usize = 256;
/// Fewer say nothing about the slowest hundredth.
const ENOUGH: usize = 16;
/// The usual times are looked at once for so many answers.
const LOOK: usize = 8;
/// A hedge before this would race with jitter of the network.
const EARLIEST_HEDGE: Duration = Duration::from_millis(50);
/// The wait for the first byte before a hedge while nothing is known, and at most for any other byte.
pub(crate) const SILENCE: Duration = Duration::from_secs(1);
/// The part of requests, and of bytes, that hedges may add.
const HEDGES: f64 = 0.02;
/// Hedges and their bytes that are reserved for ranges that somebody waits for.
const KEPT_HEDGES: f64 = 1.0;
const KEPT_BYTES: f64 = (1 << 20) as f64;
/// The tries of a request; a bucket has its own deadline. Ten tries with these delays take some 10 s,
/// so that they outlast a short outage; a store that is back is noticed in 3 s.
pub(crate) const RETRY: RetryPolicy = RetryPolicy {
    attempts: 10,
    first_delay: Duration::from_millis(100),
    longest_delay: Duration::from_millis(2_500),
    deadline: Duration::MAX,
};
/// The part of requests that may be repeated soon, and how many such repetitions may be saved up.
const RETRIES: f64 = 0.2;
const RETRIES_SAVED: f64 = 64.0;

/// The times of the last answers, and the allowances of a store.
#[derive(Debug)]
pub(crate) struct Pace {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    first_bytes: Recent<Duration>,
    /// Bytes a second of bodies.
    rates: Recent<f64>,
    /// The results of these, which are asked for with every part of a body.
    patience: Duration,
    usual_rate: Option<f64>,
    hedges: f64,
    hedged_bytes: f64,
    retries: f64,
    retries_filled: Instant,
    quiet: Option<Quiet>,
}

/// A pause that the store asked for, and its answer.
#[derive(Debug)]
struct Quiet {
    until: Instant,
    status: u16,
    code: Option<Box<str>>,
}

impl Pace {
    pub(crate) fn new() -> Self {
        let state = State {
            first_bytes: Recent::default(),
            rates: Recent::default(),
            patience: SILENCE,
            usual_rate: None,
            hedges: 1.0 + KEPT_HEDGES,
            hedged_bytes: (8 << 20) as f64 + KEPT_BYTES,
            retries: RETRIES_SAVED,
            retries_filled: Instant::now(),
            quiet: None,
        };
        Self { state: Mutex::new(state) }
    }

    /// A request for this many bytes is about to be sent.
    pub(crate) fn asked(&self, bytes: u64) {
        let mut state = self.lock();
        state.hedges = (state.hedges + HEDGES).min(4.0);
        let bytes = state.hedged_bytes + HEDGES * float(bytes);
        state.hedged_bytes = bytes.min(f64::from(32 << 20));
        state.retries = (state.retries + RETRIES).min(RETRIES_SAVED);
    }

    pub(crate) fn first_byte(&self, after: Duration) {
        let mut state = self.lock();
        if let Some(times) = state.first_bytes.push(after, Duration::cmp) {
            let last = times.len() - 1;
            let slow = times[last * 99 / 100].max(times[last / 2] * 3);
            let slow = slow.clamp(EARLIEST_HEDGE, SILENCE.max(times[last / 2] * 3));
            state.patience = slow;
        }
    }

    /// Whether bytes of a range have ever arrived.
    pub(crate) fn has_read(&self) -> bool {
        self.lock().first_bytes.pushed > 0
    }

    /// A body of so many bytes took this long after its first byte.
    pub(crate) fn body(&self, bytes: u64, took: Duration) {
        // What came with the head tells no rate.
        if bytes < 64 << 10 || took.is_zero() {
            return;
        }
        let mut state = self.lock();
        let rates = state.rates.push(float(bytes) / took.as_secs_f64(), f64::total_cmp);
        if let Some(rates) = rates {
            state.usual_rate = rates.get(rates.len() / 2).copied();
        }
    }

    /// The wait for a first byte after which a hedge is worth its cost: it is longer than that of 99
    /// in 100 answers, and than three times the median.
    pub(crate) fn patience(&self) -> Duration {
        self.lock().patience
    }

    /// The median rate of bodies in bytes a second.
    pub(crate) fn usual_rate(&self) -> Option<f64> {
        self.lock().usual_rate
    }

    /// Takes the allowance for a hedge of this many bytes, for which somebody waits if it is urgent.
    pub(crate) fn may_hedge(&self, bytes: u64, is_urgent: bool) -> bool {
        let mut state = self.lock();
        let bytes = float(bytes);
        let kept_hedges = if is_urgent { 0.0 } else { KEPT_HEDGES };
        let kept_bytes = if is_urgent { 0.0 } else { KEPT_BYTES };
        let may = state.hedges >= 1.0 + kept_hedges && state.hedged_bytes >= bytes + kept_bytes;
        if may {
            state.hedges -= 1.0;
            state.hedged_bytes -= bytes;
        }
        may
    }

    /// The wait before a repetition after `tries` requests, which is about to be sent. It is the
    /// longest one where the allowance is used up. `random` is from 0 to 1.
    pub(crate) fn delay(&self, tries: u32, random: f64) -> Duration {
        if self.may_retry_soon() { RETRY.delay(tries, random) } else { RETRY.most_delay(random) }
    }

    /// Takes the allowance for a repetition, of which there is one a second besides.
    fn may_retry_soon(&self) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        let filled = (now - state.retries_filled).as_secs_f64();
        state.retries_filled = now;
        state.retries = (state.retries + filled).min(RETRIES_SAVED);
        let may = state.retries >= 1.0;
        if may {
            state.retries -= 1.0;
        }
        may
    }

    /// The store asked for a pause, with this answer.
    pub(crate) fn pause(&self, pause: Duration, status: u16, code: Option<&str>) {
        let until = Instant::now() + pause;
        let mut state = self.lock();
        if state.quiet.as_ref().is_none_or(|quiet| quiet.until < until) {
            state.quiet = Some(Quiet { until, status, code: code.map(Box::from) });
        }
    }

    /// The end of the pause that the store asked for, if it is not over, and the cause of requests
    /// that cannot wait for it.
    pub(crate) fn quiet(&self) -> Option<(Instant, Cause)> {
        let state = self.lock();
        let quiet = state.quiet.as_ref().filter(|quiet| quiet.until > Instant::now())?;
        let Quiet { status, ref code, until } = *quiet;
        Some((until, Cause::Status { status, code: code.clone(), retry_after: None }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last values, and how many there were.
#[derive(Debug, Default)]
struct Recent<T> {
    values: VecDeque<T>,
    pushed: usize,
}

impl<T: Copy> Recent<T> {
    /// Adds a value, and from time to time returns all in order.
    fn push(&mut self, value: T, compare: fn(&T, &T) -> Ordering) -> Option<Vec<T>> {
        if self.values.len() == REMEMBERED {
            self.values.pop_front();
        }
        self.values.push_back(value);
        self.pushed += 1;
        if self.values.len() < ENOUGH || !self.pushed.is_multiple_of(LOOK) {
            return None;
        }
        let mut sorted: Vec<_> = self.values.iter().copied().collect();
        sorted.sort_unstable_by(compare);
        Some(sorted)
    }
}

#[expect(clippy::cast_precision_loss, reason = "allowances need no more digits")]
fn float(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn patience_follows_what_is_usual() {
        let pace = Pace::new();
        assert_eq!(pace.patience(), SILENCE);
        for _ in 0..200 {
            pace.first_byte(Duration::from_millis(30));
        }
        assert_eq!(pace.patience(), Duration::from_millis(90));
        for _ in 0..10 {
            pace.first_byte(Duration::from_millis(400));
        }
        assert_eq!(pace.patience(), Duration::from_millis(400));
        for _ in 0..REMEMBERED {
            pace.first_byte(Duration::from_millis(2_000));
        }
        assert_eq!(pace.patience(), Duration::from_secs(6), "a store of slow first bytes");
    }

    #[tokio::test(start_paused = true)]
    async fn hedges_are_two_in_a_hundred() {
        let pace = Pace::new();
        let mut hedges = 0;
        for _ in 0..1_000 {
            pace.asked(100_000);
            hedges += u32::from(pace.may_hedge(100_000, false));
        }
        assert!((20..=22).contains(&hedges), "{hedges}");
        let urgent = [(); 3].map(|()| pace.may_hedge(100_000, true));
        assert_eq!(urgent, [true, false, false], "one is kept for these");
        let pace = Pace::new();
        let hedged = [(9 << 20, false), (8 << 20, false), (1 << 20, true)];
        let hedged = hedged.map(|(bytes, is_urgent)| pace.may_hedge(bytes, is_urgent));
        assert_eq!(hedged, [false, true, true], "and its bytes");
    }

    #[tokio::test(start_paused = true)]
    async fn repetitions_beyond_the_allowance_wait_longest() {
        let pace = Pace::new();
        let delays: Vec<_> = (0..10_000).map(|_| pace.delay(1, 1.0)).collect();
        assert!(delays[..64].iter().all(|delay| *delay == RETRY.first_delay), "{delays:?}");
        assert!(delays[64..].iter().all(|delay| *delay == RETRY.longest_delay), "no debt is kept");
        tokio::time::sleep(Duration::from_secs(2)).await;
        let delays = [(); 3].map(|()| pace.delay(2, 0.0));
        assert_eq!(
            delays,
            [RETRY.first_delay, RETRY.first_delay, RETRY.longest_delay / 2],
            "one a second"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn ten_tries_outlast_five_seconds() {
        let pace = Pace::new();
        let least: Duration = (1..10).map(|tries| pace.delay(tries, 0.0)).sum();
        assert!(least > Duration::from_secs(5), "{least:?}");
    }
}
