use super::*;
use crate::order::Order;

fn samples(evicted: Option<Vec<(u64, Slot<()>)>>) -> Option<Vec<u64>> {
    evicted.map(|evicted| evicted.into_iter().map(|(sample, _)| sample).collect())
}

#[test]
fn what_is_needed_last_goes_first() {
    let mut planner = Planner::new();
    for (sample, next) in [(1, 10), (2, 30), (3, 20)] {
        planner.insert(sample, (), 5, Some(next));
    }
    assert_eq!(samples(planner.evict(5, Some(25))), Some(vec![2]));
    assert_eq!(samples(planner.evict(6, Some(5))), Some(vec![3, 1]));
    assert_eq!((planner.bytes(), planner.len()), (0, 0));
}

#[test]
fn a_newcomer_that_is_needed_last_replaces_nothing() {
    let mut planner = Planner::new();
    planner.insert(1, (), 5, Some(10));
    planner.insert(2, (), 5, Some(30));
    assert_eq!(samples(planner.evict(1, Some(30))), None);
    assert_eq!(samples(planner.evict(1, None)), None);
    // One could go, and is not enough.
    assert_eq!(samples(planner.evict(6, Some(20))), None);
    assert_eq!((planner.bytes(), planner.len()), (10, 2));
    assert_eq!(samples(planner.evict(6, Some(9))), Some(vec![2, 1]));
}

#[test]
fn a_use_moves_an_entry() {
    let mut planner = Planner::new();
    planner.insert(1, (), 5, Some(10));
    planner.insert(2, (), 5, Some(30));
    assert!(planner.touch(1, Some(40)).is_some());
    assert!(planner.touch(3, Some(50)).is_none());
    assert_eq!(samples(planner.evict(1, Some(0))), Some(vec![1]));
    // An entry that left and returned with the same use is one entry.
    planner.insert(2, (), 7, Some(30));
    planner.insert(2, (), 8, Some(30));
    assert_eq!(planner.bytes(), 8);
    assert_eq!(samples(planner.evict(9, Some(0))), None);
    assert_eq!(samples(planner.evict(8, Some(0))), Some(vec![2]));
}

#[test]
fn entries_without_a_next_use_stay() {
    let mut planner = Planner::new();
    planner.insert(1, (), 5, None);
    planner.insert(2, (), 5, Some(30));
    assert_eq!(samples(planner.evict(10, Some(0))), None);
    assert_eq!(samples(planner.evict(5, Some(0))), Some(vec![2]));
    assert!(planner.contains(1));
}

#[test]
fn the_queue_does_not_grow_with_the_number_of_uses() {
    let mut planner = Planner::new();
    for sample in 0..10 {
        planner.insert(sample, (), 1, Some(sample));
    }
    for time in 0..100_000 {
        planner.touch(time % 10, Some(100 + time));
    }
    assert!(planner.queue.len() <= 20 + STALE + 1);
    assert_eq!(samples(planner.evict(1, Some(0))), Some(vec![9]));
}

/// Misses of the planner on permutations, with memory for `room` samples. `told` rounds the next
/// use: to the step, or to the epoch.
fn misses(orders: &[Vec<u64>], room: u64, told: fn(u64, u64) -> u64) -> u64 {
    let mut planner = Planner::new();
    let mut misses = 0;
    for (epoch, order) in (0u64..).zip(orders) {
        let following = orders.iter().zip(0..).find(|(_, number)| *number == epoch + 1);
        for &sample in order {
            let next = following.map_or(u64::MAX, |(order, _)| {
                let place = order.iter().position(|&other| other == sample);
                told(epoch + 1, place.unwrap() as u64)
            });
            if planner.touch(sample, Some(next)).is_some() {
                continue;
            }
            misses += 1;
            let over = (planner.bytes() + 1).saturating_sub(room);
            if planner.evict(over, Some(next)).is_some() {
                planner.insert(sample, (), 1, Some(next));
            }
            assert!(planner.bytes() <= room);
        }
    }
    misses
}

/// The fewest misses there can be: all choices tried, over the sets of samples a cache can hold.
fn fewest(orders: &[Vec<u64>], room: u32) -> u64 {
    let mut costs = HashMap::from([(0u32, 0u64)]);
    for &sample in orders.iter().flatten() {
        let bit = 1u32 << sample;
        let mut after: HashMap<u32, u64> = HashMap::new();
        for (&held, &cost) in &costs {
            let cost = cost + u64::from(held & bit == 0);
            let mut keep = |held: u32| {
                let known = after.entry(held).or_insert(cost);
                *known = (*known).min(cost);
            };
            keep(held & !bit);
            if (held | bit).count_ones() <= room {
                keep(held | bit);
            }
            for other in (0..u32::BITS).map(|other| 1 << other).filter(|o| held & o != 0) {
                keep((held | bit) & !other);
            }
        }
        costs = after;
    }
    costs.into_values().min().unwrap()
}

#[test]
fn no_choice_has_fewer_misses() {
    for seed in 0..20 {
        for count in [3, 6, 8] {
            let order = |epoch| -> Vec<u64> {
                let order = Order::shuffled(count, seed, epoch);
                (0..count).filter_map(|position| order.sample_at(position)).collect()
            };
            let orders: Vec<_> = (0..4).map(order).collect();
            for room in 1..count {
                let expected = fewest(&orders, u32::try_from(room).unwrap());
                let tells: [fn(u64, u64) -> u64; 2] =
                    [|epoch, place| epoch << 32 | place, |epoch, _| epoch];
                for told in tells {
                    let found = misses(&orders, room, told);
                    assert_eq!(found, expected, "{count} samples, {room} kept");
                }
            }
        }
    }
}
