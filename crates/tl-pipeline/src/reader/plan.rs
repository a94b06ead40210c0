//! The samples of an object that are requested together: a function of the order of rows, of where
//! their samples lie, of the bytes that may be read ahead and of the rate at which rows are taken.
//!
//! Rows are requested in their order. A request grows from its first row's sample to neighbours in
//! the object whose own rows are not far away, so that they are not requested one by one later. How
//! far that is, and how much of it, are bytes: rows that are needed much later must leave room for
//! the next ones.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// The largest request: beyond it a connection brings nothing sooner.
pub(super) const LARGEST: u64 = 8 << 20;

/// The largest gap between two samples of a request: headers and small fields, which are received and
/// dropped.
pub(super) const GAP: u64 = 16 << 10;

/// The largest request while nothing has been received: about what a connection brings in the time
/// that a first byte takes, so that the first batch does not wait for bytes of later ones.
const LARGEST_AT_FIRST: u64 = 1 << 20;

/// The smallest part of the bytes read ahead that is kept for the next rows, one in so many. Later
/// ones may have the rest, so that samples come together.
const LEAST_NEAR: u64 = 4;

/// The largest part that is kept for the next rows, one in so many.
const MOST_NEAR: u64 = 2;

/// The sample of a row, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The number of its object. Samples that are objects of their own may share one: they all begin
    /// at its first byte, so that none of them is another's neighbour.
    pub(super) object: usize,
    /// Its bytes in the object, of which there is at least one.
    pub(super) range: Range<u64>,
    pub(super) sample: u64,
}

/// A sample to be received by a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) row: u64,
    pub(super) wanted: Wanted,
}

impl Part {
    /// The bytes of the sample.
    pub(super) fn bytes(&self) -> u64 {
        self.wanted.range.end - self.wanted.range.start
    }
}

/// The rows that are not requested yet, as far as they are known.
#[derive(Debug)]
pub(super) struct Plan {
    /// Bytes that may be read ahead.
    budget: u64,
    /// Bytes of the budget that are kept for the next rows.
    near: u64,
    /// Rows before this one are requested in small parts.
    first_rows_end: u64,
    /// The next row to request.
    row: u64,
    /// That row and those after it, as far as they are known.
    rows: VecDeque<Row>,
    /// Samples that are not requested, by object, first byte and row.
    unplanned: BTreeMap<(usize, u64, u64), Wanted>,
    /// Bytes of all rows before `row`, and of all known rows.
    passed: u64,
    known: u64,
    /// Bytes of rows from `row` on that have been requested.
    far: u64,
}

#[derive(Clone, Debug)]
enum Row {
    /// Somebody else reads it.
    Skipped,
    /// Not requested: object, range, and the bytes of all rows before it.
    Unplanned { object: usize, range: Range<u64>, before: u64 },
    /// Requested, with its bytes.
    Planned(u64),
    /// Left to somebody else when it was known already, with its bytes.
    Left(u64),
}

impl Plan {
    /// A plan from row `first` on, which reads `budget` bytes ahead; rows before `first_rows_end`
    /// are those that somebody waits for.
    pub(super) fn new(first: u64, first_rows_end: u64, budget: u64) -> Self {
        Self {
            budget,
            near: budget / LEAST_NEAR,
            first_rows_end,
            row: first,
            rows: VecDeque::new(),
            unplanned: BTreeMap::new(),
            passed: 0,
            known: 0,
            far: 0,
        }
    }

    /// The next row to request.
    pub(super) fn row(&self) -> u64 {
        self.row
    }

    /// The row that [`push`](Self::push) tells about.
    pub(super) fn next_unknown(&self) -> u64 {
        self.row + self.rows.len() as u64
    }

    /// Keeps bytes for this many next rows, from a quarter to half of the budget.
    pub(super) fn leave_room(&mut self, rows: u64) {
        let mean = (self.known - self.passed) / (self.rows.len() as u64).max(1);
        let least = self.budget / LEAST_NEAR;
        self.near = rows.saturating_mul(mean).clamp(least, self.budget / MOST_NEAR);
    }

    /// Whether a later row could be requested together with the next one.
    pub(super) fn reaches_further(&self) -> bool {
        if self.row < self.first_rows_end {
            return self.next_unknown() < self.first_rows_end;
        }
        self.known - self.passed < self.far_budget().saturating_mul(2).max(1)
    }

    /// Adds the next row, with its sample if that should be requested.
    pub(super) fn push(&mut self, wanted: Option<Wanted>) {
        let row = self.next_unknown();
        let Some(wanted) = wanted else { return self.rows.push_back(Row::Skipped) };
        let Wanted { object, ref range, .. } = wanted;
        let before = self.known;
        self.known += range.end - range.start;
        self.rows.push_back(Row::Unplanned { object, range: range.clone(), before });
        self.unplanned.insert((object, range.start, row), wanted);
    }

    /// Passes over rows before `row`, which have been taken.
    pub(super) fn pass(&mut self, row: u64) {
        while self.row < row && !self.rows.is_empty() {
            self.pass_one();
        }
        self.row = self.row.max(row);
    }

    fn pass_one(&mut self) {
        match self.rows.pop_front() {
            Some(Row::Unplanned { object, range, .. }) => {
                self.unplanned.remove(&(object, range.start, self.row));
                self.passed += range.end - range.start;
            }
            Some(Row::Planned(bytes)) => {
                self.passed += bytes;
                self.far -= bytes;
            }
            Some(Row::Left(bytes)) => self.passed += bytes,
            Some(Row::Skipped) | None => {}
        }
        self.row += 1;
    }

    /// The sample of the next row to request; `None` when all known rows have been requested.
    pub(super) fn next(&mut self) -> Option<&Wanted> {
        while !matches!(self.rows.front()?, Row::Unplanned { .. }) {
            self.pass_one();
        }
        let Some(Row::Unplanned { object, range, .. }) = self.rows.front() else { return None };
        self.unplanned.get(&(*object, range.start, self.row))
    }

    /// Leaves rows to somebody else: of samples in this part of an object, if `is_left` says so.
    pub(super) fn leave(
        &mut self,
        object: usize,
        bytes: &Range<u64>,
        is_left: impl Fn(u64) -> bool,
    ) {
        let within = self.unplanned.range((object, bytes.start, 0)..(object, bytes.end, 0));
        let left = within.filter(|(_, wanted)| is_left(wanted.sample)).map(|(place, _)| *place);
        for place in left.collect::<Vec<_>>() {
            let Some(Wanted { range, .. }) = self.unplanned.remove(&place) else { continue };
            let row = usize::try_from(place.2 - self.row).ok();
            if let Some(slot) = row.and_then(|row| self.rows.get_mut(row)) {
                *slot = Row::Left(range.end - range.start);
            }
        }
    }

    /// The next request: samples of one object in the order of their bytes, within `bounds` if there are
    /// any. `None` when all known rows have been requested.
    pub(super) fn request(&mut self, bounds: Option<&Range<u64>>) -> Option<Vec<Part>> {
        self.next()?;
        let first = self.row;
        let is_within = |range: &Range<u64>| {
            bounds.is_none_or(|bounds| bounds.start <= range.start && range.end <= bounds.end)
        };
        let Some(Row::Unplanned { object, range, .. }) = self.rows.front().cloned() else {
            return None;
        };
        let mut parts = VecDeque::from([self.plan(object, range.start, first)?]);
        let mut bytes = range;
        while let Some((place, row)) = self.next_after(object, bytes.end, &bytes)
            && self.unplanned.get(&(object, place, row)).is_some_and(|next| is_within(&next.range))
        {
            let part = self.plan(object, place, row)?;
            bytes.end = part.wanted.range.end;
            parts.push_back(part);
        }
        while let Some((place, row)) = self.next_before(object, bytes.start, &bytes)
            && self.unplanned.get(&(object, place, row)).is_some_and(|next| is_within(&next.range))
        {
            let part = self.plan(object, place, row)?;
            bytes.start = part.wanted.range.start;
            parts.push_front(part);
        }
        Some(parts.into())
    }

    /// The sample that follows `end`, if the request of `bytes` may grow to it.
    fn next_after(&self, object: usize, end: u64, bytes: &Range<u64>) -> Option<(u64, u64)> {
        let (&(_, place, row), wanted) = self
            .unplanned
            .range((object, end, 0)..=(object, end.saturating_add(GAP), u64::MAX))
            .next()?;
        self.may_grow(row, wanted, &(bytes.start..wanted.range.end)).then_some((place, row))
    }

    /// The sample that ends before `start`, if the request of `bytes` may grow to it.
    fn next_before(&self, object: usize, start: u64, bytes: &Range<u64>) -> Option<(u64, u64)> {
        let (&(_, place, _), _) =
            self.unplanned.range((object, 0, 0)..(object, start, 0)).next_back()?;
        // Of rows with the same sample, the first one.
        let (&(_, _, row), wanted) =
            self.unplanned.range((object, place, 0)..(object, start, 0)).next()?;
        let is_adjacent = wanted.range.end <= start && start - wanted.range.end <= GAP;
        let grown = place..bytes.end;
        (is_adjacent && self.may_grow(row, wanted, &grown)).then_some((place, row))
    }

    fn may_grow(&self, row: u64, wanted: &Wanted, grown: &Range<u64>) -> bool {
        let is_first = self.row < self.first_rows_end;
        let largest = if is_first { LARGEST_AT_FIRST } else { LARGEST };
        if grown.end - grown.start > largest.min(self.budget / LEAST_NEAR) {
            return false;
        }
        if is_first {
            return row < self.first_rows_end;
        }
        let place = usize::try_from(row - self.row).ok().and_then(|place| self.rows.get(place));
        let Some(&Row::Unplanned { before, .. }) = place else { return false };
        let is_near = before - self.passed <= self.near;
        is_near || self.far + (wanted.range.end - wanted.range.start) <= self.far_budget()
    }

    /// Takes a sample out of those that are not requested.
    fn plan(&mut self, object: usize, place: u64, row: u64) -> Option<Part> {
        let wanted = self.unplanned.remove(&(object, place, row))?;
        let bytes = wanted.range.end - wanted.range.start;
        let slot = self.rows.get_mut(usize::try_from(row - self.row).ok()?)?;
        *slot = Row::Planned(bytes);
        self.far += bytes;
        Some(Part { row, wanted })
    }

    /// Bytes that rows after the next one may have.
    fn far_budget(&self) -> u64 {
        self.budget - self.near
    }
}

#[cfg(test)]
mod tests;
