//! The number of requests under way, found by additive increase and multiplicative decrease.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

/// The first guess, before anything has been measured.
const START: usize = 32;
/// The most requests under way before the first rate was measured. Each answer until then admits one
/// more, as in TCP's slow start: a first batch may have hundreds of samples far apart.
const MOST_AT_START: usize = 64;
/// Fewer are not worth the search: each costs a few KiB.
const LEAST: usize = 8;
/// The time between two changes.
const PERIOD: Duration = Duration::from_millis(250);
/// Fewer refusals are treated as chance: a store of many servers always refuses some.
const LEAST_REFUSALS: u64 = 4;
/// The limit falls when one answer in this many is a refusal: in one period, and in all periods of
/// the time [`JUDGED`].
const REFUSED_AT_ONCE: u64 = 6;
const REFUSED: u64 = 20;
/// The time whose refusals are added up.
const JUDGED: Duration = Duration::from_secs(2);
/// The time without growth after the store asked for fewer requests.
const PAUSE: Duration = Duration::from_secs(1);

/// Permits for requests, of which a store takes only so many.
#[derive(Debug)]
pub(crate) struct Connections {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit: usize,
    most: usize,
    used: usize,
    /// Requests that somebody waits for, and all others.
    urgent: VecDeque<oneshot::Sender<Permit>>,
    waiting: VecDeque<oneshot::Sender<Permit>>,
    period: Period,
    /// The starts of the last periods and their answers, the latest last, since the limit was last
    /// lowered.
    judged: VecDeque<(Instant, Answers)>,
    /// Growth is useless, or unwelcome, until then.
    no_growth_until: Instant,
    /// The limit and the rate before growth that has brought nothing yet.
    before: Option<(usize, f64)>,
    /// The number of times in sequence that growth has brought nothing.
    in_vain: u32,
    /// The limit that was of use before it was lowered, to which it returns fast. `None` while growth
    /// has always paid.
    sustained: Option<usize>,
    /// Whether this is the start: no rate measured with all connections in use, no refusal.
    is_starting: bool,
    /// Whether the limit was lowered since it last grew.
    is_falling: bool,
    use_so_far: Use,
}

/// The use of connections since they were made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Use {
    /// The most requests under way at once.
    pub(crate) most: usize,
    /// The number of times that more connections brought no more bytes.
    pub(crate) in_vain: u64,
}

/// The use of permits since the last change.
#[derive(Debug)]
struct Period {
    begun: Instant,
    most_used: usize,
    has_waited: bool,
    bytes: u64,
    answers: Answers,
}

impl Period {
    fn new(begun: Instant, used: usize) -> Self {
        let answers = Answers::default();
        Self { begun, most_used: used, has_waited: false, bytes: 0, answers }
    }
}

/// Numbers of answers.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    all: u64,
    refusals: u64,
}

impl Answers {
    /// Whether one in `part` was refused, and too many for chance.
    fn are_refused(self, part: u64) -> bool {
        self.refusals >= LEAST_REFUSALS && self.refusals * part >= self.all
    }
}

/// A request that may be under way. Dropping it lets the next one start.
#[derive(Debug)]
pub(crate) struct Permit(Option<Arc<Connections>>);

impl Connections {
    /// At most `most` requests under way.
    pub(crate) fn new(most: usize) -> Self {
        let now = Instant::now();
        let state = State {
            limit: START.min(most),
            most,
            used: 0,
            urgent: VecDeque::new(),
            waiting: VecDeque::new(),
            period: Period::new(now, 0),
            judged: VecDeque::new(),
            no_growth_until: now,
            before: None,
            in_vain: 0,
            sustained: None,
            is_starting: true,
            is_falling: false,
            use_so_far: Use::default(),
        };
        Self { state: Mutex::new(state) }
    }

    /// Waits until a request may start; urgent ones are first.
    pub(crate) async fn permit(self: &Arc<Self>, is_urgent: bool) -> Permit {
        loop {
            let turn = {
                let mut state = self.lock();
                state.adjust(Instant::now(), self);
                if state.used < state.limit {
                    return state.take(self);
                }
                state.period.has_waited = true;
                let (sender, turn) = oneshot::channel();
                let queue = if is_urgent { &mut state.urgent } else { &mut state.waiting };
                queue.push_back(sender);
                turn
            };
            // The sender is dropped by nobody but `Connections`, which this future keeps alive.
            if let Ok(permit) = turn.await {
                return permit;
            }
        }
    }

    /// Counts bytes that arrived.
    pub(crate) fn received(self: &Arc<Self>, bytes: usize) {
        let mut state = self.lock();
        state.period.bytes += bytes as u64;
        state.adjust(Instant::now(), self);
    }

    /// The use so far.
    pub(crate) fn use_so_far(&self) -> Use {
        self.lock().use_so_far
    }

    /// Counts an answer that asks for fewer requests.
    pub(crate) fn throttled(&self) {
        let mut state = self.lock();
        state.period.answers.refusals += 1;
        state.is_starting = false;
    }

    /// Counts an answer to a request without a permit.
    pub(crate) fn answered(&self) {
        self.lock().period.answers.all += 1;
    }

    /// The limit does not grow before that time: nothing is learnt while nothing may be sent.
    pub(crate) fn pause_growth(&self, until: Instant) {
        let mut state = self.lock();
        state.no_growth_until = state.no_growth_until.max(until + PAUSE);
    }

    /// Requests that may be under way, and those that are.
    #[cfg(test)]
    pub(crate) fn now(&self) -> (usize, usize) {
        let state = self.lock();
        (state.limit, state.used)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(connections) = self.0.take() else { return };
        let mut state = connections.lock();
        state.used -= 1;
        state.period.answers.all += 1;
        let now = Instant::now();
        if state.may_start_faster(now) {
            state.limit += 1;
        }
        state.adjust(now, &connections);
        state.start_waiting(&connections);
    }
}

impl State {
    fn take(&mut self, connections: &Arc<Connections>) -> Permit {
        self.used += 1;
        self.period.most_used = self.period.most_used.max(self.used);
        self.use_so_far.most = self.use_so_far.most.max(self.used);
        Permit(Some(Arc::clone(connections)))
    }

    /// Whether an answer admits one more request because nothing has been measured.
    fn may_start_faster(&self, now: Instant) -> bool {
        self.is_starting
            && self.limit < MOST_AT_START.min(self.most)
            && self.has_waiting()
            && self.period.bytes > 0
            && now >= self.no_growth_until
    }

    fn has_waiting(&self) -> bool {
        !(self.urgent.is_empty() && self.waiting.is_empty())
    }

    /// Hands permits to those that wait. One whose request is given up before it looks at the permit
    /// drops it, and so gives it back.
    fn start_waiting(&mut self, connections: &Arc<Connections>) {
        while self.used < self.limit {
            let Some(next) = self.urgent.pop_front().or_else(|| self.waiting.pop_front()) else {
                return;
            };
            let permit = self.take(connections);
            // Nobody waits for it any more. It must not give itself back under this lock.
            if let Err(mut unused) = next.send(permit) {
                unused.0 = None;
                self.used -= 1;
            }
        }
    }

    /// Whether the store refuses too much, with the answers of the period that is over.
    fn is_throttled(&mut self, last: &Period, now: Instant) -> bool {
        self.judged.push_back((last.begun, last.answers));
        self.judged.retain(|(begun, _)| now - *begun <= JUDGED);
        let all = self.judged.iter().map(|(_, answers)| answers.all).sum();
        let refusals = self.judged.iter().map(|(_, answers)| answers.refusals).sum();
        last.answers.are_refused(REFUSED_AT_ONCE) || Answers { all, refusals }.are_refused(REFUSED)
    }

    /// Notes the limit that the current one falls to. On the way back to a larger one it may be far too
    /// small, as when a store that recovers still refuses a few.
    fn sustain(&mut self, limit: usize) {
        let larger = self.sustained.filter(|sustained| self.limit < *sustained);
        self.sustained = Some(larger.map_or(limit, |sustained| limit.max(sustained / 2)));
    }

    /// Changes the limit once a period, by what happened in it.
    #[expect(clippy::cast_precision_loss, reason = "rates need no more digits")]
    fn adjust(&mut self, now: Instant, connections: &Arc<Connections>) {
        let elapsed = now - self.period.begun;
        if elapsed < PERIOD {
            return;
        }
        let period = std::mem::replace(&mut self.period, Period::new(now, self.used));
        if self.is_throttled(&period, now) {
            self.judged.clear();
            let lowered = (self.limit * 7 / 10).max(1);
            if !self.is_falling {
                self.sustain(lowered);
            }
            self.limit = lowered;
            self.is_falling = true;
            self.no_growth_until = now + PAUSE;
            self.before = None;
            return;
        }
        let rate = period.bytes as f64 / elapsed.as_secs_f64();
        if let Some((before, rate_before)) = self.before {
            if rate >= rate_before * 1.03 {
                self.before = None;
                self.in_vain = 0;
                self.sustained = self.sustained.map(|limit| limit.max(self.limit));
            } else {
                self.in_vain += 1;
            }
            if self.in_vain == 2 {
                self.sustain(before);
                self.limit = before;
                self.use_so_far.in_vain += 1;
                self.before = None;
                self.in_vain = 0;
                self.no_growth_until = now + PAUSE;
            }
        }
        let is_full = (period.has_waited || self.has_waiting()) && period.most_used >= self.limit;
        let has_started = self.is_starting && is_full && period.bytes > 0;
        self.is_starting &= !has_started;
        // In this period the first requests began: the rate of the next one does not compare with it.
        if now < self.no_growth_until || has_started {
            return;
        }
        let is_served = period.bytes > 0 || period.answers.all > period.answers.refusals;
        if is_full && is_served {
            self.before.get_or_insert((self.limit, rate));
            let larger = match self.sustained {
                None => self.limit + self.limit / 2,
                Some(sustained) if self.limit < sustained => (self.limit * 2).min(sustained),
                Some(_) => self.limit + (self.limit / 8).max(1),
            };
            self.limit = larger.max(self.limit + 1).min(self.most);
            self.is_falling = false;
            self.start_waiting(connections);
        } else if period.most_used < self.limit && !self.is_starting {
            // By one a second, towards what is used.
            let seconds = elapsed.as_secs().max(u64::from(elapsed >= PERIOD * 4));
            let fall = usize::try_from(seconds).unwrap_or(usize::MAX);
            let floor = period.most_used.max(LEAST).min(self.limit);
            self.limit = self.limit.saturating_sub(fall).max(floor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_permit_of_a_request_that_is_given_up_comes_back() {
        let connections = Arc::new(Connections::new(1));
        for _ in 0..3 {
            let first = connections.permit(false).await;
            let waiting = tokio::spawn({
                let connections = Arc::clone(&connections);
                async move { drop(connections.permit(false).await) }
            });
            tokio::task::yield_now().await;
            // The permit is on its way to a task that never looks at it.
            drop(first);
            waiting.abort();
            assert!(waiting.await.unwrap_err().is_cancelled());
            assert_eq!(connections.now(), (1, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn urgent_requests_are_first() {
        let connections = Arc::new(Connections::new(1));
        let first = connections.permit(false).await;
        let (order, mut ended) = tokio::sync::mpsc::unbounded_channel();
        for (name, is_urgent) in [("far", false), ("near", true)] {
            let connections = Arc::clone(&connections);
            let order = order.clone();
            tokio::spawn(async move {
                let _permit = connections.permit(is_urgent).await;
                order.send(name).unwrap();
            });
            tokio::task::yield_now().await;
        }
        drop(first);
        assert_eq!(ended.recv().await, Some("near"));
        assert_eq!(ended.recv().await, Some("far"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_that_gave_up_takes_no_permit() {
        let connections = Arc::new(Connections::new(1));
        let first = connections.permit(false).await;
        let gone = tokio::time::timeout(Duration::from_secs(1), connections.permit(true)).await;
        assert!(gone.is_err());
        drop(first);
        let permit = connections.permit(false).await;
        assert_eq!(connections.now().1, 1);
        drop(permit);
        assert_eq!(connections.now().1, 0);
    }

    /// Keeps `demand` requests of 100 ms and 1 MB under way for some seconds, on a link of `link`
    /// bytes a second.
    async fn load(connections: &Arc<Connections>, demand: usize, link: f64, seconds: u64) {
        let until = Instant::now() + Duration::from_secs(seconds);
        let tasks = (0..demand).map(|_| {
            let connections = Arc::clone(connections);
            tokio::spawn(async move {
                while Instant::now() < until {
                    let _permit = connections.permit(false).await;
                    for _ in 0..10 {
                        // What the link brings is shared by all that are under way just now.
                        let shared = connections.now().1 as f64 * 1e5 / link;
                        tokio::time::sleep(Duration::from_secs_f64(shared.max(0.01))).await;
                        connections.received(100_000);
                    }
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_grows_while_growth_pays() {
        let connections = Arc::new(Connections::new(256));
        load(&connections, 200, 1e12, 2).await;
        assert!(connections.now().0 >= 160, "{:?}", connections.now());
        let flat = Arc::new(Connections::new(256));
        // 200 MB/s are 20 requests under way: more bring nothing, except by chance.
        load(&flat, 200, 200e6, 5).await;
        assert!((16..=2 * MOST_AT_START).contains(&flat.now().0), "{:?}", flat.now());
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_answers_admit_more_unless_one_refuses() {
        let connections = Arc::new(Connections::new(256));
        let mut permits = Vec::new();
        for _ in 0..START {
            permits.push(connections.permit(false).await);
        }
        let ask = || {
            let connections = Arc::clone(&connections);
            tokio::spawn(async move { connections.permit(false).await })
        };
        let waiting: Vec<_> = (0..4).map(|_| ask()).collect();
        tokio::task::yield_now().await;
        drop(permits.pop());
        assert_eq!(connections.now(), (START, START), "it brought nothing");
        connections.received(1);
        drop(permits.pop());
        assert_eq!(connections.now(), (START + 1, START + 1), "one for it, and one more");
        connections.throttled();
        drop(permits.pop());
        assert_eq!(connections.now(), (START + 1, START + 1));
        for waiting in waiting {
            drop(waiting.await.unwrap());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn throttling_lowers_the_limit_and_it_returns() {
        let connections = Arc::new(Connections::new(64));
        load(&connections, 100, 1e12, 5).await;
        let before = connections.now().0;
        for _ in 0..4 {
            (0..10).for_each(|_| connections.throttled());
            load(&connections, 20, 1e12, 0).await;
            tokio::time::sleep(PERIOD).await;
            drop(connections.permit(false).await);
        }
        let lowered = connections.now().0;
        assert!(lowered <= before / 3 && lowered >= 1, "{before} to {lowered}");
        load(&connections, 100, 1e12, 5).await;
        assert!(connections.now().0 > lowered * 3 / 2, "{:?}", connections.now());
    }

    /// The limit, at first 64, after periods with this many answers each, of which some are refused:
    /// `refusals` says how many of each period.
    async fn limit_after(answers: u64, refusals: impl IntoIterator<Item = u64>) -> usize {
        let connections = Arc::new(Connections::new(64));
        load(&connections, 100, 1e12, 5).await;
        tokio::time::sleep(PERIOD).await;
        drop(connections.permit(false).await);
        connections.lock().judged.clear();
        connections.lock().no_growth_until += Duration::from_secs(3_600);
        for refusals in refusals {
            {
                let mut state = connections.lock();
                state.period.answers.all += answers - 1;
                state.period.answers.refusals += refusals;
            }
            tokio::time::sleep(PERIOD).await;
            drop(connections.permit(false).await);
        }
        connections.now().0
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_refusals_do_not_slow_a_store_down() {
        // One in a hundred, as they fall by chance, for a minute of 320, 80 and 8 answers a second.
        for answers in [80, 20, 2] {
            let mut random = 1_u32;
            let mut is_refused = || {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                random < u32::MAX / 100
            };
            let mut refusals = || (0..answers).filter(|_| is_refused()).count() as u64;
            let refusals: Vec<_> = (0..240).map(|_| refusals()).collect();
            assert!(refusals.iter().sum::<u64>() > 0);
            assert_eq!(limit_after(answers, refusals).await, 64, "{answers} answers a period");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn steady_refusals_slow_a_store_down_however_few_requests_there_are() {
        assert_eq!(limit_after(37, [10]).await, 44, "a period is enough");
        assert_eq!(limit_after(10, [3, 3]).await, 44);
        assert_eq!(limit_after(2, [0, 1, 0, 1, 0, 1, 0, 1]).await, 44);
        assert_eq!(limit_after(2, [0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 1]).await, 64, "4 of 3 s");
        assert_eq!(limit_after(40, [2; 8]).await, 14, "no refusal counts for two changes");
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_store_keeps_few() {
        let connections = Arc::new(Connections::new(256));
        load(&connections, 200, 1e12, 5).await;
        for _ in 0..300 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(connections.permit(false).await);
        }
        assert_eq!(connections.now(), (LEAST, 0));
    }
}
