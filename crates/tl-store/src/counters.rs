//! Counts of requests and bytes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};

use crate::gate::Sending;

/// The requests to stores and their results, counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    gets: AtomicU64,
    heads: AtomicU64,
    puts: AtomicU64,
    others: AtomicU64,
    throttled: AtomicU64,
    refused: AtomicU64,
    retries: AtomicU64,
    resumed: AtomicU64,
    hedges: AtomicU64,
    hedges_won: AtomicU64,
    received: AtomicU64,
    wasted: AtomicU64,
    sent: AtomicU64,
    first_bytes: AtomicU64,
    /// Microseconds.
    first_byte_time: AtomicU64,
}

/// Counts of requests and bytes since the stores were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStats {
    /// `GET` requests: ranges of objects, and pages of listings.
    pub gets: u64,
    /// `HEAD` requests.
    pub heads: u64,
    /// Requests that write: objects, parts, and the beginning and the end of uploads.
    pub puts: u64,
    /// Requests for credentials.
    pub others: u64,
    /// Answers 429 and 503.
    pub throttled: u64,
    /// Answers 400 and above, except those.
    pub refused: u64,
    /// Requests that repeated one that failed.
    pub retries: u64,
    /// Those of them that continued a body in its middle.
    pub resumed: u64,
    /// Requests that were sent next to a slow one.
    pub hedges: u64,
    /// Those of them that were faster.
    pub hedges_won: u64,
    /// Bytes of ranges that were received.
    pub received: u64,
    /// Bytes among these that were received twice.
    pub wasted: u64,
    /// Bytes of objects that were sent, those that were sent twice included.
    pub sent: u64,
    /// Requests for ranges that brought a byte.
    pub first_bytes: u64,
    /// The time from such a request to its first byte, added up.
    pub first_byte_time: Duration,
    /// The most requests for ranges under way at once, in all buckets together, since the stores were
    /// made.
    pub connections: u64,
    /// The number of times that more connections brought no more bytes: the network or the store is used up.
    pub saturated: u64,
}

impl StoreStats {
    /// The difference to `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            gets: self.gets.saturating_sub(earlier.gets),
            heads: self.heads.saturating_sub(earlier.heads),
            puts: self.puts.saturating_sub(earlier.puts),
            others: self.others.saturating_sub(earlier.others),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            refused: self.refused.saturating_sub(earlier.refused),
            retries: self.retries.saturating_sub(earlier.retries),
            resumed: self.resumed.saturating_sub(earlier.resumed),
            hedges: self.hedges.saturating_sub(earlier.hedges),
            hedges_won: self.hedges_won.saturating_sub(earlier.hedges_won),
            received: self.received.saturating_sub(earlier.received),
            wasted: self.wasted.saturating_sub(earlier.wasted),
            sent: self.sent.saturating_sub(earlier.sent),
            first_bytes: self.first_bytes.saturating_sub(earlier.first_bytes),
            first_byte_time: self.first_byte_time.saturating_sub(earlier.first_byte_time),
            connections: self.connections,
            saturated: self.saturated.saturating_sub(earlier.saturated),
        }
    }

    /// The counts of two sets of stores together. `connections` are those of the one that had more
    /// requests under way.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            gets: self.gets + other.gets,
            heads: self.heads + other.heads,
            puts: self.puts + other.puts,
            others: self.others + other.others,
            throttled: self.throttled + other.throttled,
            refused: self.refused + other.refused,
            retries: self.retries + other.retries,
            resumed: self.resumed + other.resumed,
            hedges: self.hedges + other.hedges,
            hedges_won: self.hedges_won + other.hedges_won,
            received: self.received + other.received,
            wasted: self.wasted + other.wasted,
            sent: self.sent + other.sent,
            first_bytes: self.first_bytes + other.first_bytes,
            first_byte_time: self.first_byte_time + other.first_byte_time,
            connections: self.connections.max(other.connections),
            saturated: self.saturated + other.saturated,
        }
    }

    /// The mean time to the first byte of an answer; `None` before the first one.
    #[must_use]
    pub fn first_byte(&self) -> Option<Duration> {
        let count = u32::try_from(self.first_bytes).unwrap_or(u32::MAX);
        self.first_byte_time.checked_div(count)
    }
}

/// An event that is counted on its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    Retry,
    Resumed,
    Hedge,
    HedgeWon,
}

impl Counters {
    pub(crate) fn sent(&self, request: &Request<Bytes>) {
        let method = request.method();
        add(if method == Method::GET {
            &self.gets
        } else if method == Method::HEAD {
            &self.heads
        } else if request.extensions().get::<Sending>().is_some() {
            self.sent.fetch_add(request.body().len() as u64, Ordering::Relaxed);
            &self.puts
        } else {
            &self.others
        });
    }

    pub(crate) fn answered(&self, status: StatusCode) {
        if is_throttling(status.as_u16()) {
            add(&self.throttled);
        } else if status.as_u16() >= 400 {
            add(&self.refused);
        }
    }

    pub(crate) fn count(&self, what: Count) {
        add(match what {
            Count::Retry => &self.retries,
            Count::Resumed => &self.resumed,
            Count::Hedge => &self.hedges,
            Count::HedgeWon => &self.hedges_won,
        });
    }

    pub(crate) fn first_byte(&self, after: Duration) {
        add(&self.first_bytes);
        let micros = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        self.first_byte_time.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn wasted(&self, bytes: u64) {
        self.wasted.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> StoreStats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreStats {
            gets: of(&self.gets),
            heads: of(&self.heads),
            puts: of(&self.puts),
            others: of(&self.others),
            throttled: of(&self.throttled),
            refused: of(&self.refused),
            retries: of(&self.retries),
            resumed: of(&self.resumed),
            hedges: of(&self.hedges),
            hedges_won: of(&self.hedges_won),
            received: of(&self.received),
            wasted: of(&self.wasted),
            sent: of(&self.sent),
            first_bytes: of(&self.first_bytes),
            first_byte_time: Duration::from_micros(of(&self.first_byte_time)),
            connections: 0,
            saturated: 0,
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Whether a status asks for fewer requests.
pub(crate) fn is_throttling(status: u16) -> bool {
    matches!(status, 429 | 503)
}
