mod goldens;

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::order::{Order, Sequence};
use crate::{Blocks, Shuffle, config};

/// Objects with a header, and samples with their framing.
#[derive(Clone, Debug)]
struct Layout {
    samples: Vec<(usize, Range<u64>)>,
}

impl Layout {
    fn new(objects: usize, sizes: &[(u64, u64)]) -> Self {
        let mut at = 512;
        let each = sizes.len().div_ceil(objects);
        let place = |(number, &(gap, len)): (usize, &(u64, u64))| {
            if number % each == 0 {
                at = 512;
            }
            let start = at + gap;
            at = start + len;
            (number / each, start..at)
        };
        Self { samples: sizes.iter().enumerate().map(place).collect() }
    }

    fn wanted(&self, sample: u64) -> Wanted {
        let (object, range) = self.samples[usize::try_from(sample).unwrap()].clone();
        Wanted { object, range, sample }
    }
}

/// The requests of a loader that takes each row as soon as it has been requested. `is_own` says whose rows these are.
fn requests(
    layout: &Layout,
    rows: &[u64],
    is_own: impl Fn(u64) -> bool,
    mut plan: Plan,
) -> Vec<Vec<Part>> {
    let mut requests = Vec::new();
    let end = rows.len() as u64;
    loop {
        while plan.next_unknown() < end && plan.reaches_further() {
            let row = plan.next_unknown();
            let sample = rows[usize::try_from(row).unwrap()];
            plan.push(is_own(row).then(|| layout.wanted(sample)));
        }
        match plan.request(None) {
            Some(request) => requests.push(request),
            None if plan.next_unknown() == end => return requests,
            None => {}
        }
        let far: u64 = plan
            .rows
            .iter()
            .map(|row| if let Row::Planned(bytes) = row { *bytes } else { 0 })
            .sum();
        assert_eq!(plan.far, far);
        let unplanned = plan.rows.iter().filter(|row| matches!(row, Row::Unplanned { .. }));
        assert_eq!(plan.unplanned.len(), unplanned.count());
    }
}

fn rows_of(order: &Order) -> Vec<u64> {
    (0..order.len()).map(|position| order.sample_at(position).unwrap()).collect()
}

fn check(layout: &Layout, rows: &[u64], first_rows: u64, budget: u64) {
    let is_own = |row| row % 13 != 5;
    let requests = requests(layout, rows, is_own, Plan::new(0, first_rows, budget));
    let mut seen = BTreeSet::new();
    let mut before = None;
    for request in &requests {
        let first = request.iter().map(|part| part.row).min();
        assert!(first > before, "requests are in the order of their first rows");
        before = first;
        let span = request[0].wanted.range.start..request[request.len() - 1].wanted.range.end;
        assert!(request.len() == 1 || span.end - span.start <= LARGEST.min(budget / LEAST_NEAR));
        for pair in request.windows(2) {
            let [one, other] = pair else { unreachable!() };
            assert_eq!(one.wanted.object, other.wanted.object);
            let gap = other.wanted.range.start.checked_sub(one.wanted.range.end);
            assert!(gap.is_some_and(|gap| gap <= GAP), "parts ascend, and gaps are small");
        }
        for part in request {
            assert!(seen.insert(part.row), "a row is requested once");
            assert_eq!(part.wanted, layout.wanted(rows[usize::try_from(part.row).unwrap()]));
            if first < Some(first_rows) {
                assert!(part.row < first_rows, "nothing later comes with the first rows");
            }
        }
    }
    let expected: BTreeSet<_> = (0..rows.len() as u64).filter(|&row| is_own(row)).collect();
    assert_eq!(seen, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_row_is_requested_once_in_order_with_small_gaps(
        sizes in prop::collection::vec((0..40_000u64, 1..300_000u64), 1..200),
        objects in 1..5usize,
        shuffle in prop_oneof![
            Just(Shuffle::None),
            Just(Shuffle::Full),
            (1..20u64, 1..9u64).prop_map(|(samples, window)| Shuffle::Block { blocks: Blocks::Samples(samples), window }),
        ],
        repeats in any::<bool>(),
        first_rows in 0..40u64,
        budget in 1..64_000_000u64,
        seed in any::<u64>(),
    ) {
        let layout = Layout::new(objects, &sizes);
        let count = sizes.len() as u64;
        let mut rows = rows_of(&Sequence::of_all(count, shuffle).order(seed, 0));
        if repeats {
            // The next epoch follows, and samples come twice close to each other.
            rows.extend(rows_of(&Sequence::of_all(count, Shuffle::Full).order(seed, 1)));
            rows.extend_from_within(rows.len() / 2..);
        }
        check(&layout, &rows, first_rows, budget);
    }
}

/// Requests for 1000 rows, with photographs of 110 KB.
fn requests_per_1000(shuffle: Shuffle, budget: u64, near: u64) -> u64 {
    let layout = Layout::new(16, &vec![(512, 110_000); 40_000]);
    let rows = rows_of(&Sequence::of_all(40_000, shuffle).order(5, 0));
    let plan = Plan { near: budget / near, ..Plan::new(0, 256, budget) };
    requests(&layout, &rows, |_| true, plan).len() as u64 / 40
}

#[test]
fn blocks_come_whole_where_two_windows_fit() {
    let block = Shuffle::Block { blocks: Blocks::Samples(16), window: 256 };
    let window = 16 * 256 * 110_000;
    assert_eq!(requests_per_1000(Shuffle::None, config::READ_AHEAD_BYTES, LEAST_NEAR), 14);
    assert_eq!(requests_per_1000(block, 2 * window, LEAST_NEAR), 50);
    assert_eq!(requests_per_1000(block, 2 * window, MOST_NEAR), 58);
    assert_eq!(requests_per_1000(block, window, LEAST_NEAR), 79);
    assert_eq!(requests_per_1000(Shuffle::Full, 256 << 20, LEAST_NEAR), 832);
}

#[test]
fn room_for_next_rows_is_taken_from_later_ones() {
    let layout = Layout::new(1, &[(0, 100); 200]);
    let mut plan = Plan::new(0, 0, 24_000);
    plan.leave_room(80);
    assert_eq!(plan.far_budget(), 18_000, "the size of rows is not known");
    (0..200).for_each(|sample| plan.push(Some(layout.wanted(sample))));
    let mut far = |rows| {
        plan.leave_room(rows);
        plan.far_budget()
    };
    assert_eq!([0, 60, 80, 120, u64::MAX].map(&mut far), [18_000, 18_000, 16_000, 12_000, 12_000]);
}

#[test]
fn rows_that_others_read_are_passed_over() {
    let layout = Layout::new(1, &[(0, 10); 8]);
    let mut plan = Plan::new(0, 0, 1 << 20);
    for sample in 0..4 {
        plan.push(Some(layout.wanted(sample)));
    }
    plan.pass(2);
    let rows: Vec<_> = plan.request(None).unwrap().iter().map(|part| part.row).collect();
    assert_eq!(rows, [2, 3]);
    plan.pass(9);
    assert_eq!((plan.next_unknown(), plan.request(None)), (9, None));
    assert_eq!((plan.far, plan.known - plan.passed, plan.unplanned.len()), (0, 0, 0));
}

#[test]
fn samples_that_are_objects_of_their_own_are_requested_one_by_one() {
    let samples = [1, 300, 5, GAP, 7].map(|len| (0, 0..len)).to_vec();
    let layout = Layout { samples };
    let rows = [3, 1, 1, 0, 4, 2, 3];
    let requests = requests(&layout, &rows, |_| true, Plan::new(0, 2, 1 << 20));
    let requested: Vec<_> = requests.iter().flatten().map(|part| part.wanted.sample).collect();
    assert_eq!((requests.len(), &requested[..]), (rows.len(), &rows[..]));
}
