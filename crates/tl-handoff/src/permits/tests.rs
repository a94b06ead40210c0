use super::*;
use crate::sync::thread;

/// True if a batch would be admitted without waiting.
fn admits(ticket: &RunTicket, batch: u64) -> bool {
    ticket.admits(batch, &lock(&ticket.permits.state))
}

/// A batch is made and received.
fn receive(permit: &Permit) -> HeldBatch {
    let held = permit.publish();
    permit.receive(&held);
    held
}

#[test]
fn batches_begin_in_the_order_in_which_they_are_received() {
    let permits = BatchPermits::new(2, u64::MAX);
    let ticket = permits.begin(10).unwrap();
    assert!(admits(&ticket, 10) && admits(&ticket, 11) && !admits(&ticket, 12));
    let second = ticket.permit();
    let first = ticket.permit();
    let held = receive(&first);
    assert!(!admits(&ticket, 12), "the consumer has one and the other is in the making");
    drop(held);
    assert!(admits(&ticket, 12) && !admits(&ticket, 13));
    assert_eq!(permits.counts(), (2, 0));
    // A worker still has the first; a thread that needs its memory waits for it.
    let third = thread::spawn(move || ticket.permit());
    drop(first);
    drop((third.join().unwrap(), second));
    assert_eq!(permits.counts(), (0, 0));
}

#[test]
fn what_an_earlier_run_left_with_the_consumer_counts() {
    let permits = BatchPermits::new(2, u64::MAX);
    let ticket = permits.begin(0).unwrap();
    let held = receive(&ticket.permit());
    assert!(permits.begin(0).is_none(), "one run at a time");
    drop(ticket);
    let ticket = permits.begin(5).unwrap();
    assert!(admits(&ticket, 5) && !admits(&ticket, 6));
    drop(held);
    assert!(admits(&ticket, 6));
}

#[test]
fn rows_ahead_hold_back_all_but_the_next_batch() {
    let permits = BatchPermits::new(u64::MAX, 100);
    let ticket = permits.begin(0).unwrap();
    let first = ticket.permit();
    assert_eq!((first.charge(60), first.charge(60)), (60, 120));
    assert!(admits(&ticket, 0) && !admits(&ticket, 1));
    let held = receive(&first);
    assert!(admits(&ticket, 1) && admits(&ticket, 2));
    let second = ticket.permit();
    second.charge(100);
    assert!(admits(&ticket, 1) && !admits(&ticket, 2));
    second.discharge();
    assert!(admits(&ticket, 2), "it is made again");
    assert_eq!(second.charge(100), 100);
    assert!(admits(&ticket, 1) && !admits(&ticket, 2));
    // A batch that is dropped without being received is released.
    drop(second);
    assert!(admits(&ticket, 2));
    drop((first, held));
    assert_eq!((permits.counts(), lock(&permits.state).ahead), ((0, 0), 0));
}

#[test]
fn a_consumer_with_everything_is_told() {
    let permits = BatchPermits::new(2, u64::MAX);
    let ticket = permits.begin(0).unwrap();
    let given = [ticket.permit(), ticket.permit()];
    let first = receive(&given[0]);
    assert!(ticket.check_held(1, Duration::ZERO).is_ok());
    let second = receive(&given[1]);
    let error = ticket.check_held(2, Duration::from_millis(1)).unwrap_err();
    assert!(error == BatchesHeld { held: 2, most: 2 }, "{error}");
    // Let go of before it is asked or while it waits.
    let letting_go = thread::spawn(move || drop((first, second)));
    assert!(ticket.check_held(2, Duration::from_secs(600)).is_ok());
    letting_go.join().unwrap();
}

#[test]
fn closing_lets_everybody_through() {
    let permits = BatchPermits::new(1, u64::MAX);
    let ticket = Arc::new(permits.begin(0).unwrap());
    let waiting = Arc::clone(&ticket);
    let waiter = thread::spawn(move || waiting.wait(7));
    ticket.close();
    waiter.join().unwrap();
}

#[test]
fn without_a_budget_everybody_passes() {
    let permits = BatchPermits::new(u64::MAX, u64::MAX);
    let tickets = [permits.begin(0).unwrap(), permits.begin(0).unwrap()];
    assert!(admits(&tickets[0], u64::MAX - 1));
    let given: Vec<_> = (0..100).map(|_| tickets[1].permit()).collect();
    assert_eq!(permits.counts(), (100, 0));
    assert_eq!((given[3].charge(7), given[3].charge(5)), (7, 12));
    assert_eq!(lock(&permits.state).ahead, 0, "counted under no lock");
}

#[test]
fn what_was_never_received_counts_while_somebody_keeps_it() {
    let permits = BatchPermits::new(2, u64::MAX);
    let ticket = permits.begin(0).unwrap();
    let kept = ticket.permit().publish();
    assert_eq!(permits.counts(), (0, 0));
    drop(ticket);
    let ticket = permits.begin(4).unwrap();
    assert!(
        admits(&ticket, 4) && !admits(&ticket, 5) && ticket.check_held(4, Duration::ZERO).is_ok()
    );
    drop(kept);
    assert!(admits(&ticket, 5));
}
