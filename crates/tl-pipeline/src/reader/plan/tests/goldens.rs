//! The requests of three orders, against files that `testdata/tools/reference_plans.py` computes
//! without this code.

use std::fmt::Write as _;

use super::*;

const NONE: &str = tl_testdata::shipped_text!("plans/none.txt");
const BLOCK: &str = tl_testdata::shipped_text!("plans/block.txt");
const FULL: &str = tl_testdata::shipped_text!("plans/full.txt");

/// Two objects of 32 samples with 10 to 25 KB. Most gaps are 512 bytes; every 16th is
/// larger than requests may have.
fn layout() -> Layout {
    let place = |sample: u64| {
        let gap = if sample % 16 == 11 { GAP + 1 } else { 512 };
        (gap, 10_000 + sample * 7 % 16 * 1_000)
    };
    Layout::new(2, &(0..64).map(place).collect::<Vec<_>>())
}

/// Compares the requests for an epoch. Four rows are the first ones, and some are read by others.
fn check(expected: &str, shuffle: Shuffle) {
    let rows = rows_of(&Sequence::of_all(64, shuffle).order(2, 0));
    let plan = Plan::new(0, 4, 480_000);
    let mut found = String::new();
    for request in requests(&layout(), &rows, |row| row % 13 != 5, plan) {
        let last = &request[request.len() - 1].wanted;
        let bytes = request[0].wanted.range.start..last.range.end;
        write!(found, "object {} bytes {bytes:?} row:sample", last.object).unwrap();
        for part in request {
            write!(found, " {}:{}", part.row, part.wanted.sample).unwrap();
        }
        found.push('\n');
    }
    assert!(found == expected, "expected\n{expected}\nfound\n{found}");
}

#[test]
fn samples_in_order_are_requested_as_stored() {
    check(NONE, Shuffle::None);
}

#[test]
fn shuffled_blocks_are_requested_as_stored() {
    check(BLOCK, Shuffle::Block { blocks: Blocks::Samples(4), window: 3 });
}

#[test]
fn shuffled_samples_are_requested_as_stored() {
    check(FULL, Shuffle::Full);
}
