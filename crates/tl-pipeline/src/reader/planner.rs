//! The next request for samples of a store: by the order of rows, and by the rate at which they are
//! taken. It has no clock of its own, so that simulations plan as loaders do.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::plan::{Plan, Wanted};
use crate::config::LoaderConfig;

/// How long before their turn the next rows are requested, as far as there is room: some answers take
/// several times the usual one, and rows that are needed first may come last.
const AHEAD: Duration = Duration::from_millis(500);

/// The least time over which the rate of rows is measured. Batches are taken in bursts.
const MEASURED: Duration = Duration::from_millis(250);

/// Chooses requests for rows until all have been requested.
pub(super) struct Planner {
    plan: Plan,
    demand: Demand,
    rows: Range<u64>,
    /// Rows of an epoch.
    epoch_rows: u64,
    first_rows_end: u64,
    /// Rows that are asked for soon, whatever the rate.
    least_soon: u64,
    /// The rows that are looked ahead at most.
    lead: u64,
    within: u64,
}

impl Planner {
    /// Requests for `rows`, where an epoch has `epoch_rows`, at most `lead` rows ahead.
    pub(super) fn new(config: &LoaderConfig, rows: Range<u64>, epoch_rows: u64, lead: u64) -> Self {
        let batch = config.batch_size as u64;
        let first_rows_end = rows.start.saturating_add(batch).min(rows.end);
        Self {
            plan: Plan::new(rows.start, first_rows_end, config.read_ahead_bytes),
            demand: Demand::new(rows.start, Instant::now()),
            rows,
            epoch_rows,
            first_rows_end,
            least_soon: 2 * batch,
            lead,
            within: lead,
        }
    }

    /// The next row to request.
    pub(super) fn row(&self) -> u64 {
        self.plan.row()
    }

    /// The distance from the first row that has not been taken within which that row may be requested.
    pub(super) fn within(&self) -> u64 {
        self.within
    }

    /// The end of the rows that somebody waits for at the start.
    pub(super) fn first_rows_end(&self) -> u64 {
        self.first_rows_end
    }

    /// Whether a row that somebody waits for at the start is known and not requested.
    pub(super) fn has_first_row(&mut self) -> bool {
        self.plan.next().is_some() && self.plan.row() < self.first_rows_end
    }

    /// Whether no row is left to look at.
    pub(super) fn knows_all(&self) -> bool {
        self.plan.next_unknown() >= self.rows.end
    }

    /// The plan of the known rows, which has the next request.
    pub(super) fn plan(&mut self) -> &mut Plan {
        &mut self.plan
    }

    /// Passes over rows before `first`, the first that has not been taken, and adds to the plan those
    /// that may be requested now. `look` has the sample of a row that should be requested.
    pub(super) fn look_ahead(
        &mut self,
        first: u64,
        now: Instant,
        mut look: impl FnMut(u64) -> Option<Wanted>,
    ) {
        self.plan.pass(first);
        self.demand.taken(first, now);
        let soon = self.demand.rows_in(AHEAD);
        let epochs_end = epochs_end(first, soon.max(self.least_soon), self.epoch_rows);
        let known_end = first.saturating_add(self.lead).min(epochs_end).min(self.rows.end);
        while self.plan.next_unknown() < known_end && self.plan.reaches_further() {
            let row = self.plan.next_unknown();
            self.plan.push(look(row));
        }
        // Rows that are known may be requested, also when the rate has fallen since.
        self.within = known_end.max(self.plan.next_unknown()) - first;
        self.plan.leave_room(soon);
    }

    /// The time until `row` is taken, when `first` is the first row that has not been; `None` while that
    /// is unknown.
    pub(super) fn needed_in(&mut self, row: u64, first: u64, now: Instant) -> Option<Duration> {
        self.demand.taken(first, now);
        self.demand.needed_in(row)
    }
}

/// The end of the rows that may be read ahead when `first` is taken next: that of the epoch, of so many
/// rows, in which the next `soon` rows end. Many runs end with an epoch, and a small data set would
/// otherwise be received several times for one.
fn epochs_end(first: u64, soon: u64, rows: u64) -> u64 {
    (first.saturating_add(soon) / rows + 1).saturating_mul(rows)
}

/// The rate at which rows are taken, which tells when a row is needed.
struct Demand {
    /// The first row that has not been taken.
    first: u64,
    /// That row when the rate was last measured, and the time.
    measured: (u64, Instant),
    /// The time from one row to the next, once it is known.
    per_row: Option<Duration>,
}

impl Demand {
    fn new(first: u64, now: Instant) -> Self {
        Self { first, measured: (first, now), per_row: None }
    }

    /// Notes the first row that has not been taken.
    fn taken(&mut self, first: u64, now: Instant) {
        self.first = first;
        let (row, since) = self.measured;
        let time = now.saturating_duration_since(since);
        if first > row && time >= MEASURED {
            self.per_row = Some(time / u32::try_from(first - row).unwrap_or(u32::MAX));
            self.measured = (first, now);
        }
    }

    /// The rows that are taken in this time; zero while that is unknown.
    fn rows_in(&self, time: Duration) -> u64 {
        let rows = |per_row: Duration| time.as_nanos() / per_row.as_nanos().max(1);
        u64::try_from(self.per_row.map_or(0, rows)).unwrap_or(u64::MAX)
    }

    /// The time until a row is taken; `None` while that is unknown.
    fn needed_in(&self, row: u64) -> Option<Duration> {
        let rows = u32::try_from(row.saturating_sub(self.first)).unwrap_or(u32::MAX);
        self.per_row.map(|per_row| per_row.saturating_mul(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_ahead_to_the_end_of_the_epoch_that_the_next_ones_reach() {
        assert_eq!(epochs_end(0, 20, 100), 100);
        assert_eq!(epochs_end(79, 20, 100), 100);
        assert_eq!(epochs_end(80, 20, 100), 200);
        assert_eq!(epochs_end(100, 20, 100), 200);
        assert_eq!(epochs_end(130, 20, 8), 152, "epochs may be short");
        assert_eq!(epochs_end(u64::MAX - 1, 20, 100), u64::MAX);
    }

    #[test]
    fn rows_are_needed_at_the_rate_at_which_others_were_taken() {
        let begun = Instant::now();
        let at = |millis| begun + Duration::from_millis(millis);
        let mut demand = Demand::new(100, begun);
        assert_eq!(demand.needed_in(1_000), None, "nothing is known");
        demand.taken(110, at(10));
        assert_eq!(demand.needed_in(1_000), None, "too short to tell");
        assert_eq!(demand.rows_in(Duration::from_secs(1)), 0);
        demand.taken(200, at(500));
        assert_eq!(demand.rows_in(Duration::from_secs(1)), 200);
        assert_eq!(demand.needed_in(300), Some(Duration::from_millis(500)));
        assert_eq!(demand.needed_in(200), Some(Duration::ZERO), "it is the next one");
        demand.taken(250, at(600));
        assert_eq!(demand.needed_in(300), Some(Duration::from_millis(250)));
        // The consumer was away for a while, which counts until it takes rows again.
        demand.taken(250, at(10_000));
        assert_eq!(demand.needed_in(300), Some(Duration::from_millis(9_500)));
        demand.taken(300, at(10_500));
        assert_eq!(demand.needed_in(301), Some(Duration::from_millis(10)));
    }
}
