//! The usual times of a store, and the allowance for requests beyond the needed ones.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Answers that the usual times are taken from.
const REMEMBERED: usize = 256;
/// Fewer say nothing about the slowest hundredth.
const ENOUGH: usize = 16;
/// A hedge before this would race with jitter of the network.
const EARLIEST_HEDGE: Duration = Duration::from_millis(50);
/// The wait for the first byte before a hedge while nothing is known, and for any other byte.
pub(crate) const SILENCE: Duration = Duration::from_secs(1);
/// The part of requests, and of bytes, that hedges may add.
const HEDGES: f64 = 0.02;
/// The part of requests that may be repetitions, and how many may be saved up.
const RETRIES: f64 = 0.2;
const RETRIES_SAVED: f64 = 64.0;

/// The times of the last answers, and the allowances of a store.
#[derive(Debug)]
pub(crate) struct Pace {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    first_bytes: VecDeque<Duration>,
    /// Bytes a second of bodies.
    rates: VecDeque<f64>,
    hedges: f64,
    hedged_bytes: f64,
    retries: f64,
    retries_filled: Instant,
    /// The store asked to be left alone until then.
    quiet_until: Option<Instant>,
}

impl Pace {
    pub(crate) fn new() -> Self {
        let state = State {
            first_bytes: VecDeque::new(),
            rates: VecDeque::new(),
            hedges: 1.0,
            hedged_bytes: (8 << 20) as f64,
            retries: RETRIES_SAVED,
            retries_filled: Instant::now(),
            quiet_until: None,
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
        push(&mut self.lock().first_bytes, after);
    }

    /// A body of so many bytes took this long after its first byte.
    pub(crate) fn body(&self, bytes: u64, took: Duration) {
        // What came with the head tells no rate.
        if bytes >= 64 << 10 && !took.is_zero() {
            push(&mut self.lock().rates, float(bytes) / took.as_secs_f64());
        }
    }

    /// The wait for a first byte after which a hedge is worth its cost: it is longer than that of 99
    /// in 100 answers, and than three times the median.
    pub(crate) fn patience(&self) -> Duration {
        let state = self.lock();
        if state.first_bytes.len() < ENOUGH {
            return SILENCE;
        }
        let mut times: Vec<_> = state.first_bytes.iter().copied().collect();
        times.sort_unstable();
        let last = times.len() - 1;
        let slow = times[last * 99 / 100].max(times[last / 2] * 3);
        slow.clamp(EARLIEST_HEDGE, SILENCE.max(times[last / 2] * 3))
    }

    /// The median rate of bodies in bytes a second.
    pub(crate) fn usual_rate(&self) -> Option<f64> {
        let state = self.lock();
        if state.rates.len() < ENOUGH {
            return None;
        }
        let mut rates: Vec<_> = state.rates.iter().copied().collect();
        rates.sort_unstable_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    }

    /// Takes the allowance for a hedge of this many bytes.
    pub(crate) fn may_hedge(&self, bytes: u64) -> bool {
        let mut state = self.lock();
        let bytes = float(bytes);
        let may = state.hedges >= 1.0 && state.hedged_bytes >= bytes;
        if may {
            state.hedges -= 1.0;
            state.hedged_bytes -= bytes;
        }
        may
    }

    /// Takes the allowance for a repetition. Beyond it one a second is allowed, and this returns the
    /// time to wait.
    pub(crate) fn retry(&self) -> Duration {
        let now = Instant::now();
        let mut state = self.lock();
        let filled = (now - state.retries_filled).as_secs_f64();
        state.retries_filled = now;
        state.retries = (state.retries + filled).min(RETRIES_SAVED) - 1.0;
        Duration::from_secs_f64((-state.retries).max(0.0))
    }

    /// The store asked for a pause.
    pub(crate) fn quiet(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut state = self.lock();
        state.quiet_until = Some(state.quiet_until.map_or(until, |other| other.max(until)));
    }

    /// The end of the pause that the store asked for, if it is not over.
    pub(crate) fn quiet_until(&self) -> Option<Instant> {
        self.lock().quiet_until.filter(|until| *until > Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push<T>(values: &mut VecDeque<T>, value: T) {
    if values.len() == REMEMBERED {
        values.pop_front();
    }
    values.push_back(value);
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
            hedges += u32::from(pace.may_hedge(100_000));
        }
        assert!((20..=22).contains(&hedges), "{hedges}");
    }

    #[tokio::test(start_paused = true)]
    async fn retries_beyond_the_allowance_wait() {
        let pace = Pace::new();
        let waits: Vec<_> = (0..70).map(|_| pace.retry().as_secs()).collect();
        assert!(waits[..64].iter().all(|wait| *wait == 0), "{waits:?}");
        assert_eq!(waits[64..], [1, 2, 3, 4, 5, 6]);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(pace.retry(), Duration::ZERO);
    }
}
