use super::*;
use crate::sync::thread;

/// Whether a batch would be let in without waiting.
fn admits(turn: &Turn, batch: u64) -> bool {
    turn.admits(batch, &lock(&turn.gate.state))
}

/// A batch is made and received.
fn receive(permit: &Permit) -> Held {
    let held = permit.publish();
    permit.receive(&held);
    held
}

#[test]
fn batches_begin_in_the_order_in_which_they_are_received() {
    let gate = Gate::new(2, u64::MAX);
    let turn = gate.turn(10).unwrap();
    assert!(admits(&turn, 10) && admits(&turn, 11) && !admits(&turn, 12));
    let (second, first) = (turn.permit(), turn.permit());
    let held = receive(&first);
    assert!(!admits(&turn, 12), "the consumer has one and the other is in the making");
    drop(held);
    assert!(admits(&turn, 12) && !admits(&turn, 13));
    assert_eq!(gate.counts(), (2, 0));
    // A worker still has the first; whoever needs its memory waits for it.
    let third = thread::spawn(move || turn.permit());
    drop(first);
    drop((third.join().unwrap(), second));
    assert_eq!(gate.counts(), (0, 0));
}

#[test]
fn what_an_earlier_run_left_with_the_consumer_counts() {
    let gate = Gate::new(2, u64::MAX);
    let turn = gate.turn(0).unwrap();
    let held = receive(&turn.permit());
    assert!(gate.turn(0).is_none(), "one run at a time");
    drop(turn);
    let turn = gate.turn(5).unwrap();
    assert!(admits(&turn, 5) && !admits(&turn, 6));
    drop(held);
    assert!(admits(&turn, 6));
}

#[test]
fn rows_ahead_hold_back_all_but_the_next_batch() {
    let gate = Gate::new(u64::MAX, 100);
    let turn = gate.turn(0).unwrap();
    let first = turn.permit();
    assert_eq!((first.charge(60), first.charge(60)), (60, 120));
    assert!(admits(&turn, 0) && !admits(&turn, 1));
    let held = receive(&first);
    assert!(admits(&turn, 1) && admits(&turn, 2));
    let second = turn.permit();
    second.charge(100);
    assert!(admits(&turn, 1) && !admits(&turn, 2));
    // What nobody receives is gone when it is dropped.
    drop(second);
    assert!(admits(&turn, 2));
    drop((first, held));
    assert_eq!((gate.counts(), lock(&gate.state).ahead), ((0, 0), 0));
}

#[test]
fn a_consumer_with_everything_is_told() {
    let gate = Gate::new(2, u64::MAX);
    let turn = gate.turn(0).unwrap();
    let permits = [turn.permit(), turn.permit()];
    let first = receive(&permits[0]);
    assert!(turn.check_held(1, Duration::ZERO).is_ok());
    let second = receive(&permits[1]);
    let error = turn.check_held(2, Duration::from_millis(1)).unwrap_err();
    assert!(matches!(error, PipelineError::BatchesHeld { held: 2, most: 2 }), "{error}");
    // Let go of before it is asked or while it waits.
    let letting_go = thread::spawn(move || drop((first, second)));
    assert!(turn.check_held(2, Duration::from_secs(600)).is_ok());
    letting_go.join().unwrap();
}

#[test]
fn closing_lets_everybody_through() {
    let gate = Gate::new(1, u64::MAX);
    let turn = Arc::new(gate.turn(0).unwrap());
    let waiting = Arc::clone(&turn);
    let waiter = thread::spawn(move || waiting.wait(7));
    turn.close();
    waiter.join().unwrap();
}

#[test]
fn without_a_budget_everybody_passes() {
    let gate = Gate::new(u64::MAX, u64::MAX);
    let turns = [gate.turn(0).unwrap(), gate.turn(0).unwrap()];
    assert!(admits(&turns[0], u64::MAX - 1));
    let permits: Vec<_> = (0..100).map(|_| turns[1].permit()).collect();
    assert_eq!(gate.counts(), (100, 0));
    assert_eq!((permits[3].charge(7), permits[3].charge(5)), (7, 12));
    assert_eq!(lock(&gate.state).ahead, 0, "counted under no lock");
}

#[test]
fn what_was_never_received_counts_while_somebody_keeps_it() {
    let gate = Gate::new(2, u64::MAX);
    let turn = gate.turn(0).unwrap();
    let kept = turn.permit().publish();
    assert_eq!(gate.counts(), (0, 0));
    drop(turn);
    let turn = gate.turn(4).unwrap();
    assert!(admits(&turn, 4) && !admits(&turn, 5) && turn.check_held(4, Duration::ZERO).is_ok());
    drop(kept);
    assert!(admits(&turn, 5));
}
