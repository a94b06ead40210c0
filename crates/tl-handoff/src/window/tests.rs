use super::*;

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

#[test]
fn buffers_come_back_unless_there_are_too_many() {
    let window = Window::new(0..1, 1);
    for size in [3_000, 1_000, 2_000] {
        window.give_back(Vec::with_capacity(size));
    }
    let taken = [1_001, 1_001, 1_001].map(|len| window.buffer(len));
    let capacities = taken.map(|buffer| buffer.capacity());
    assert_eq!(capacities, [1_024; 3], "2000 bytes are too many for 1001");
    assert_eq!([2_900, 1_400].map(|len| window.buffer(len).capacity()), [3_000, 2_000]);
    window.give_back(Vec::with_capacity(SPARE_BYTES + 1));
    assert_eq!(lock(&window.spare).bytes, 1_000);
    for _ in 0..10 {
        window.give_back(Vec::with_capacity(SPARE_BYTES / 2));
    }
    assert!((ALL_SPARE_BYTES / 2..=ALL_SPARE_BYTES).contains(&lock(&window.spare).bytes));
    for size in [10, 0] {
        (0..1_000).for_each(|_| window.give_back(Vec::with_capacity(size)));
    }
    assert_eq!(lock(&window.spare).buffers.len(), SPARE_BUFFERS);
    window.give_back(Vec::with_capacity(1_500));
    assert_eq!(window.buffer(1_400).capacity(), 1_500, "the latest one has room");
}

#[test]
fn buffers_have_few_sizes_and_little_more_than_their_samples() {
    let mut rooms: Vec<_> = (65_537..=131_072).map(room_for).collect();
    rooms.dedup();
    assert_eq!(rooms.len(), 8);
    for len in (0..200_000).chain([usize::MAX - 1, usize::MAX]) {
        let room = room_for(len);
        assert!(room >= len && room - len <= len / 8, "{room} for {len}");
    }
}
