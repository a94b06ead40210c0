//! A range of an object: requests until all of its bytes have arrived.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tbl_io::{Pin, RangeFault};
use tokio::time::{Instant, sleep_until, timeout};

use crate::answer::{Defect, Head};
use crate::bucket::{Bucket, Key};
use crate::cause::Cause;
use crate::counters::{Count, Counters};
use crate::pace::SILENCE;
use crate::transfer::Transfer;
use crate::tries::Tries;

/// The wait for a byte at the first try, and at most; it doubles with each try.
const PATIENCE: Duration = Duration::from_secs(5);
const MOST_PATIENCE: Duration = Duration::from_secs(30);
/// Needs are told apart up to this far away.
const LONGEST: Duration = Duration::from_secs(3_600);
/// A body that is slower than this part of the usual rate is asked for once more.
const SLOW: f64 = 0.25;
/// The wait for the end of a body whose bytes are all there, so that its connection can be reused.
const END: Duration = Duration::from_millis(100);

/// The time at which the bytes of a range are needed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// A thread waits for it.
    Now,
    /// At this time, estimated from the rate at which rows were taken.
    At(Instant),
    /// The time is unknown.
    Unknown,
}

impl Need {
    /// The need of bytes that are wanted once `delay` is over.
    pub(crate) fn after(delay: Duration) -> Self {
        Self::At(Instant::now() + delay.min(LONGEST))
    }

    /// Whether someone waits for it.
    fn is_urgent(self) -> bool {
        match self {
            Self::Now => true,
            Self::At(time) => time <= Instant::now(),
            Self::Unknown => false,
        }
    }

    /// The wait for a byte before a second request is worth its cost, where answers usually begin
    /// within `usual`. It leaves half of the time that is left to the second request.
    fn patience(self, usual: Duration) -> Duration {
        match self {
            Self::Now | Self::Unknown => usual,
            Self::At(time) => {
                let left = time.saturating_duration_since(Instant::now());
                usual.max((left / 2).min(SILENCE))
            }
        }
    }
}

/// Reads a range, which may end after the object does, in the version `expected` if that is given.
/// `sink` gets its bytes in order, each once.
///
/// # Errors
/// The fault of the last request, once no other may succeed in time.
pub(crate) async fn read(
    bucket: &Arc<Bucket>,
    key: &Key,
    asked: Range<u64>,
    expected: Option<&Head>,
    need: Need,
    mut sink: impl FnMut(Bytes),
) -> Result<Head, RangeFault> {
    let mut tries = Tries::new(bucket);
    let mut reading =
        Reading { bucket, key, next: asked.start, end: asked.end, head: expected.cloned(), need };
    loop {
        let permit = match tries.start(need.is_urgent()).await {
            Ok(permit) => permit,
            Err(cause) => return Err(reading.fault(cause, &tries).await),
        };
        if reading.next > asked.start {
            bucket.counters.count(Count::Resumed);
        }
        let begun = Instant::now();
        let first = reading.next;
        let tried = timeout(tries.left(), reading.attempt(tries.sent(), &mut sink)).await;
        drop(permit);
        let cause = match tried {
            Ok(Ok(head)) => return Ok(head),
            Ok(Err(cause)) => cause,
            Err(_) if reading.next > first => reading.unfinished(asked.start),
            Err(_) => Cause::Silent(begun.elapsed()),
        };
        if let Err(cause) = tries.failed(cause).await {
            return Err(reading.fault(cause, &tries).await);
        }
    }
}

/// A range of which some bytes have arrived.
struct Reading<'a> {
    bucket: &'a Arc<Bucket>,
    key: &'a Key,
    /// The first byte that is missing.
    next: u64,
    end: u64,
    /// The object and its version, once an answer has named them: later ones must agree.
    head: Option<Head>,
    need: Need,
}

/// A second request for the missing bytes, which are kept until it has all of them.
struct Hedge {
    transfer: Transfer,
    from: u64,
    kept: Vec<Bytes>,
    /// The time by which its first byte usually arrives.
    awaited_until: Instant,
    counters: Arc<Counters>,
}

impl Drop for Hedge {
    /// Counts what nobody took as wasted.
    fn drop(&mut self) {
        let kept: usize = self.kept.iter().map(Bytes::len).sum();
        self.counters.wasted(kept as u64);
    }
}

/// The times of one request, which say whether it is late.
struct Timing {
    begun: Instant,
    first_byte: Option<Instant>,
    /// The last byte of this request or of the second one; before it, the start.
    last_byte: Instant,
    received: u64,
    need: Need,
    /// Whether a second request may be sent, and when.
    may_hedge: bool,
    hedge_at: Instant,
    /// No second request is sent before that: one was not allowed, or failed.
    no_hedge_before: Instant,
    failed_hedges: u32,
}

impl Timing {
    fn new(bucket: &Bucket, need: Need) -> Self {
        let begun = Instant::now();
        let mut timing = Self {
            begun,
            first_byte: None,
            last_byte: begun,
            received: 0,
            need,
            may_hedge: bucket.has_hedges,
            hedge_at: begun,
            no_hedge_before: begun,
            failed_hedges: 0,
        };
        timing.hedge_at = begun + timing.usual_wait(bucket);
        timing
    }

    fn arrived(&mut self, bucket: &Bucket, bytes: usize) {
        let now = Instant::now();
        if self.first_byte.is_none() {
            self.first_byte = Some(now);
            bucket.pace.first_byte(now - self.begun);
            bucket.counters.first_byte(now - self.begun);
        }
        self.last_byte = now;
        self.received += bytes as u64;
        let wait = if self.is_slow(bucket) { Duration::ZERO } else { self.usual_wait(bucket) };
        self.hedge_at = (now + wait).max(self.no_hedge_before);
    }

    /// The usual wait for the next byte: as for a first byte, but at most [`SILENCE`] once one has
    /// arrived.
    fn usual_wait(&self, bucket: &Bucket) -> Duration {
        let usual = bucket.pace.patience();
        let usual = if self.first_byte.is_some() { usual.min(SILENCE) } else { usual };
        self.need.patience(usual)
    }

    /// No second request is sent for the usual time, and at least for `delay`.
    fn postpone_hedge(&mut self, bucket: &Bucket, delay: Duration) {
        self.no_hedge_before = Instant::now() + self.usual_wait(bucket).max(delay);
        self.hedge_at = self.no_hedge_before;
    }

    /// A second request failed. The next one waits as a repetition does.
    fn hedge_failed(&mut self, bucket: &Bucket) {
        self.failed_hedges += 1;
        let delay = bucket.pace.delay(self.failed_hedges, bucket.random());
        self.postpone_hedge(bucket, delay);
    }

    fn since_first_byte(&self) -> Duration {
        self.first_byte.map_or(Duration::ZERO, |first| first.elapsed())
    }

    fn ended(&self, bucket: &Bucket) {
        bucket.pace.body(self.received, self.since_first_byte());
    }

    /// Whether the body is much slower than usual.
    fn is_slow(&self, bucket: &Bucket) -> bool {
        let took = self.since_first_byte();
        let Some(usual) = bucket.pace.usual_rate().filter(|_| took >= SILENCE / 4) else {
            return false;
        };
        #[expect(clippy::cast_precision_loss, reason = "rates need no more digits")]
        let rate = self.received as f64 / took.as_secs_f64();
        rate < usual * SLOW
    }
}

/// The next event of requests under way.
enum Event {
    Main(Result<Option<Bytes>, Cause>),
    Hedge(Result<Option<Bytes>, Cause>),
    /// It is time for a hedge.
    Late,
    /// No request has brought a byte.
    Silent,
}

impl Reading<'_> {
    /// Asks for the missing bytes once, and once more where the answer is late. It is the try of this
    /// number, from 1.
    async fn attempt(&mut self, number: u32, sink: &mut impl FnMut(Bytes)) -> Result<Head, Cause> {
        self.bucket.pace.asked(self.end - self.next);
        let silence = PATIENCE.saturating_mul(1 << (number - 1).min(3)).min(MOST_PATIENCE);
        let mut main = Some(self.transfer(0));
        let mut hedge: Option<Hedge> = None;
        let mut timing = Timing::new(self.bucket, self.need);
        let mut failure = Cause::Short { received: self.next };
        while main.is_some() || hedge.is_some() {
            let awaited_until = hedge.as_ref().map_or(timing.begun, |hedge| hedge.awaited_until);
            let silent_at = (timing.last_byte + silence).max(awaited_until);
            let event = tokio::select! {
                biased;
                next = next_of(main.as_mut()) => Event::Main(next),
                next = next_of(hedge.as_mut().map(|hedge| &mut hedge.transfer)) => Event::Hedge(next),
                () = sleep_until(timing.hedge_at), if timing.may_hedge && hedge.is_none() => {
                    Event::Late
                }
                () = sleep_until(silent_at) => Event::Silent,
            };
            match event {
                Event::Main(Ok(Some(bytes))) => {
                    timing.arrived(self.bucket, bytes.len());
                    self.learn(main.as_ref());
                    self.take(bytes, sink);
                    if self.next == self.end {
                        timing.ended(self.bucket);
                        drop(hedge);
                        finish(main).await;
                        return self.whole();
                    }
                }
                Event::Main(Ok(None)) => return self.whole(),
                Event::Main(Err(cause)) => {
                    self.learn(main.as_ref());
                    self.bucket.note(&cause);
                    if !cause.may_pass() {
                        return Err(cause);
                    }
                    failure = cause;
                    main = None;
                }
                Event::Hedge(Ok(Some(bytes))) => {
                    self.bucket.arrived(bytes.len());
                    timing.last_byte = Instant::now();
                    hedge = self.keep(hedge, bytes);
                    timing.may_hedge &= hedge.is_some();
                    if hedge.as_ref().is_some_and(|hedge| hedge.transfer.at == hedge.transfer.end) {
                        self.bucket.counters.count(Count::HedgeWon);
                        self.replay(hedge, sink);
                        return self.whole();
                    }
                }
                Event::Hedge(Ok(None)) => hedge = None,
                Event::Hedge(Err(cause)) => {
                    hedge = None;
                    self.bucket.connections.answered();
                    self.bucket.note(&cause);
                    if !cause.may_pass() {
                        return Err(cause);
                    }
                    failure = cause;
                    if main.is_some() {
                        timing.hedge_failed(self.bucket);
                    }
                }
                Event::Late => {
                    // It needs no permit of its own: the late one is expected to be dropped.
                    let pace = &self.bucket.pace;
                    timing.postpone_hedge(self.bucket, Duration::ZERO);
                    let is_urgent = self.need.is_urgent();
                    if pace.quiet().is_none() && pace.may_hedge(self.end - self.next, is_urgent) {
                        self.bucket.counters.count(Count::Hedge);
                        hedge = Some(self.hedge());
                    }
                }
                Event::Silent => return Err(Cause::Silent(silence)),
            }
        }
        Err(failure)
    }

    fn transfer(&self, pool: usize) -> Transfer {
        let range = self.next..self.end;
        Transfer::new(self.bucket, self.key, range, self.head.as_ref(), pool)
    }

    fn hedge(&self) -> Hedge {
        Hedge {
            transfer: self.transfer(1),
            from: self.next,
            kept: Vec::new(),
            awaited_until: Instant::now() + self.bucket.pace.patience(),
            counters: Arc::clone(&self.bucket.counters),
        }
    }

    /// Keeps what the answer says of the object.
    fn learn(&mut self, transfer: Option<&Transfer>) {
        if let Some(transfer) = transfer
            && let Some(head) = &transfer.head
        {
            self.end = transfer.end;
            self.head.get_or_insert_with(|| head.clone());
        }
    }

    /// Keeps bytes of a hedge. One of another version than the bytes that were passed on is given up:
    /// the object was replaced between two first requests.
    fn keep(&self, hedge: Option<Hedge>, bytes: Bytes) -> Option<Hedge> {
        let mut hedge = hedge?;
        hedge.kept.push(bytes);
        let known = self.head.as_ref().zip(hedge.transfer.head.as_ref());
        known.is_none_or(|(one, other)| one == other).then_some(hedge)
    }

    fn take(&mut self, bytes: Bytes, sink: &mut impl FnMut(Bytes)) {
        self.next += bytes.len() as u64;
        self.bucket.arrived(bytes.len());
        sink(bytes);
    }

    /// Passes on what a hedge has of the missing bytes.
    fn replay(&mut self, hedge: Option<Hedge>, sink: &mut impl FnMut(Bytes)) {
        let Some(mut hedge) = hedge else { return };
        self.learn(Some(&hedge.transfer));
        let mut at = hedge.from;
        for mut bytes in std::mem::take(&mut hedge.kept) {
            let end = at + bytes.len() as u64;
            if end > self.next {
                let known = usize::try_from(self.next.saturating_sub(at)).unwrap_or(usize::MAX);
                self.bucket.counters.wasted(known as u64);
                let missing = bytes.split_off(known.min(bytes.len()));
                self.next += missing.len() as u64;
                sink(missing);
            } else {
                self.bucket.counters.wasted(bytes.len() as u64);
            }
            at = end;
        }
    }

    /// The object, if all bytes have arrived.
    fn whole(&self) -> Result<Head, Cause> {
        match &self.head {
            Some(head) if self.next == self.end => Ok(head.clone()),
            _ => Err(Cause::Short { received: self.next }),
        }
    }

    /// The cause of a range from `start` on whose bytes still arrived at the deadline.
    fn unfinished(&self, start: u64) -> Cause {
        Cause::Unfinished { received: self.next - start, asked: self.end - start }
    }

    /// The fault for the caller. A version that no longer exists is named by asking for the current
    /// one.
    async fn fault(&self, cause: Cause, tries: &Tries<'_>) -> RangeFault {
        let fault = tries.fault(cause);
        if let RangeFault::Changed { found: Pin::Unknown } = &fault
            && let Ok(Ok(head)) = timeout(PATIENCE, self.bucket.head(self.key)).await
        {
            return tries.fault(Cause::Defect(Defect::Changed(head.version)));
        }
        fault
    }
}

/// Reads the end of a body, so that its connection can be used again.
async fn finish(transfer: Option<Transfer>) {
    if let Some(mut transfer) = transfer {
        // A connection that does not end in time, or ends with more bytes, is closed.
        drop(timeout(END, transfer.next()).await);
    }
}

/// The next bytes of a transfer, or nothing for ever.
async fn next_of(transfer: Option<&mut Transfer>) -> Result<Option<Bytes>, Cause> {
    match transfer {
        Some(transfer) => transfer.next().await,
        None => std::future::pending().await,
    }
}
