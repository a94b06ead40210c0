use super::*;
use crate::sync::thread;

fn fetched(row: u64) -> Fetched {
    Fetched { sample: row, bytes: row.to_le_bytes().to_vec(), is_unpacked: false }
}

#[test]
fn rows_are_claimed_in_order_and_taken_as_they_were_read() {
    let window = Window::new(5..8, 1000);
    assert_eq!(
        [(); 4].map(|()| window.claim(false)),
        [Claim::Row(5), Claim::Row(6), Claim::Row(7), Claim::Ended]
    );
    for row in [7, 5] {
        assert_eq!(window.admit(row, 8, false), Admission::Granted);
        window.complete(row, Some(fetched(row)));
    }
    assert_eq!(window.take(7, || ()), Some(fetched(7)));
    assert_eq!(window.take(5, || ()), Some(fetched(5)));
    // No reader has begun, so none will.
    assert_eq!(window.take(6, || ()), None);
    assert_eq!(window.admit(6, 8, true), Admission::Taken);
    let state = window.state();
    assert_eq!((state.bytes, state.slots.len()), (0, 0));
}

#[test]
fn bytes_are_bounded_but_one_row_is_always_let_in() {
    let window = Window::new(0..9, 10);
    for _ in 0..3 {
        window.claim(false);
    }
    assert_eq!(window.admit(1, 11, false), Admission::Granted);
    assert_eq!(window.admit(2, 1, false), Admission::Full);
    // The worker of a row that waits for room reads it itself.
    assert_eq!(window.take(0, || ()), None);
    assert_eq!(window.admit(0, 1, true), Admission::Taken);
    window.complete(1, Some(fetched(1)));
    assert_eq!(window.admit(2, 1, false), Admission::Full);
    assert!(window.take(1, || ()).is_some());
    assert_eq!(window.admit(2, 1, false), Admission::Granted);
    // A row that cannot be read is not charged.
    window.complete(2, None);
    assert_eq!(window.state().bytes, 0);
    assert_eq!(window.take(2, || ()), None);
}

#[test]
fn readers_are_woken_for_the_room_that_they_await() {
    let window = Window::new(0..9, 10);
    assert_eq!(window.admit_together(vec![(0, 4), (1, 4), (2, 2)]).len(), 3);
    let takes = |row| window.state().take(row, &window.counters).is_none();
    window.state().awaited = Awaited { first: 2, bytes: Some(3), reads: false };
    assert!(takes(0) && !window.state().wakes_readers(), "6 bytes are charged");
    assert!(takes(2) && !window.state().wakes_readers());
    assert!(takes(1) && window.state().wakes_readers());
    assert!(!window.state().wakes_readers(), "nobody waits any more");
    window.state().awaited = Awaited { first: 5, ..Awaited::NOTHING };
    assert!(takes(3) && !window.state().wakes_readers());
    assert!(takes(4) && window.state().wakes_readers());
}

#[test]
fn a_reader_waits_until_few_of_the_first_rows_are_being_read() {
    let window = Window::new(0..9, 10);
    assert_eq!(window.admit_together(vec![(0, 1), (1, 1), (2, 1)]).len(), 3);
    window.read_before(1, 1);
    thread::scope(|scope| {
        let reader = scope.spawn(|| window.read_before(2, 1));
        let awaits = || window.state().awaited.reads;
        while !awaits() {
            thread::yield_now();
        }
        // Rows after the second do not count.
        window.complete(2, Some(fetched(2)));
        while !awaits() {
            thread::yield_now();
        }
        assert!(!reader.is_finished());
        window.complete(1, Some(fetched(1)));
    });
}

#[test]
fn rows_are_let_in_together_without_those_that_are_taken() {
    let window = Window::new(0..9, 10);
    assert_eq!(window.take(1, || ()), None);
    assert_eq!(window.admit_together(vec![(0, 4), (1, 50), (7, 6)]), [(0, 4), (7, 6)]);
    assert_eq!(window.first_within(5, 6), Some(0));
    assert_eq!(window.admit(2, 1, false), Admission::Full);
    assert_eq!(window.admit_together(vec![(0, 4), (1, 50)]), [], "all have been begun");
    window.complete(7, Some(fetched(7)));
    window.complete(0, Some(fetched(0)));
    assert_eq!(window.take(0, || ()), Some(fetched(0)));
    assert_eq!(window.take(7, || ()), Some(fetched(7)));
    assert_eq!(window.first_within(3, 2), Some(2));
    // More than the budget is let in where nothing else is.
    assert_eq!(window.admit_together(vec![(3, 40)]), [(3, 40)]);
    window.close();
    assert_eq!((window.admit_together(vec![(5, 1)]), window.first_within(2, 9)), (vec![], None));
}

#[test]
fn readers_pass_over_what_workers_have() {
    let window = Window::new(0..10_000, 10);
    assert_eq!(window.take(0, || ()), None);
    assert_eq!(window.take(2, || ()), None);
    assert_eq!(window.claim(false), Claim::Row(1));
    assert_eq!(window.claim(false), Claim::Row(3));
    let rows = std::iter::from_fn(|| match window.claim(false) {
        Claim::Row(row) => Some(row),
        Claim::Full | Claim::Ended => None,
    });
    assert_eq!(rows.last(), Some(MAX_ROWS));
    assert_eq!(window.claim(false), Claim::Full);
    window.close();
    assert_eq!((window.claim(true), window.take(3, || ())), (Claim::Ended, None));
}
