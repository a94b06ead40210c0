//! The window under shuttle: readers and workers over its rows, and early ends.

use crate::sync::{Arc, AtomicU64, Ordering, explore, thread};
use crate::window::{Admission, Claim, Fetched, Window};

const ROWS: u64 = 6;

/// Readers and workers over all rows; some rows cannot be read, and room is for two.
fn all_rows() {
    let window = Arc::new(Window::new(0..ROWS, 2));
    let next = Arc::new(AtomicU64::new(0));
    let readers = (0..2).map(|_| {
        let window = Arc::clone(&window);
        thread::spawn(move || {
            while let Claim::Row(row) = window.claim(true) {
                if window.admit(row, 1, true) == Admission::Granted {
                    let bytes = vec![u8::try_from(row).unwrap()];
                    let fetched = Fetched { sample: row, bytes, is_unpacked: false };
                    window.complete(row, (row % 3 != 1).then_some(fetched));
                }
            }
        })
    });
    let workers = (0..2).map(|_| {
        let window = Arc::clone(&window);
        let next = Arc::clone(&next);
        thread::spawn(move || {
            loop {
                let row = next.fetch_add(1, Ordering::Relaxed);
                if row >= ROWS {
                    return;
                }
                if let Some(Fetched { bytes, .. }) = window.take(row, || ()) {
                    assert_eq!(bytes, [u8::try_from(row).unwrap()]);
                    assert_ne!(row % 3, 1);
                }
            }
        })
    });
    let threads: Vec<_> = readers.chain(workers).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(window.state().bytes, 0);
}

/// A planner admits rows in pairs, not in their order, and another thread brings them, but not all.
fn rows_in_pairs() {
    let window = Arc::new(Window::new(0..ROWS, 3));
    let (sender, requests) = shuttle::sync::mpsc::channel();
    let planner = {
        let window = Arc::clone(&window);
        thread::spawn(move || {
            for first in 0..ROWS / 2 {
                let pair = vec![(first, 1), (first + ROWS / 2, 1)];
                if first == 1 {
                    window.read_before(ROWS, 1);
                }
                if window.first_within(first, 2).is_some() {
                    sender.send(window.admit_together(pair)).unwrap();
                }
            }
            assert_eq!(window.first_within(ROWS, 1), Some(ROWS));
        })
    };
    let net = {
        let window = Arc::clone(&window);
        thread::spawn(move || {
            for (row, _) in requests.into_iter().flatten() {
                let fetched = Fetched { sample: row, bytes: Vec::new(), is_unpacked: false };
                window.complete(row, (row % 3 != 1).then_some(fetched));
            }
        })
    };
    let workers = (0..2).map(|worker| {
        let window = Arc::clone(&window);
        thread::spawn(move || {
            for row in (0..ROWS).filter(|row| row % 2 == worker) {
                if let Some(fetched) = window.take(row, || ()) {
                    assert_eq!(fetched.sample, row);
                }
            }
        })
    });
    let threads: Vec<_> = workers.chain([planner, net]).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(window.state().bytes, 0);
}

/// The window is closed while all threads work: none keeps waiting.
fn closed_early() {
    let window = Arc::new(Window::new(0..u64::MAX, 2));
    let threads: Vec<_> = (0..5)
        .map(|number| {
            let window = Arc::clone(&window);
            thread::spawn(move || match number {
                0 | 1 => {
                    while let Claim::Row(row) = window.claim(true) {
                        if window.admit(row, 1, true) == Admission::Granted {
                            let fetched =
                                Fetched { sample: row, bytes: Vec::new(), is_unpacked: true };
                            window.complete(row, Some(fetched));
                        }
                    }
                }
                2 => {
                    for row in 0..3 {
                        drop(window.take(row, || ()));
                    }
                }
                4 => {
                    for row in 3..6 {
                        window.admit_together(vec![(row, 2), (row + 3, 1)]);
                        window.first_within(row, 2);
                    }
                }
                _ => window.close(),
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn every_row_is_read_once_by_someone() {
    explore(all_rows);
}

#[test]
fn rows_that_are_read_together_are_read_once() {
    explore(rows_in_pairs);
}

#[test]
fn closing_leaves_nobody_behind() {
    explore(closed_early);
}
