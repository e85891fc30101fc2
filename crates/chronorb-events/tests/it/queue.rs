//! Queues of slow consumers: each policy, and a property that every loss is told.

use chronorb_events::{Next, Overflow, Put, Queue};
use proptest::prelude::*;

fn drain<T>(queue: &mut Queue<T>) -> Vec<Next<T>> {
    std::iter::from_fn(|| queue.take()).collect()
}

fn events(range: std::ops::Range<u64>) -> impl Iterator<Item = Next<u64>> {
    range.map(Next::Event)
}

/// A queue of 16 that 40 events were put into, with keys of 4.
fn filled(overflow: Overflow) -> (Queue<u64>, Vec<Put<u64>>) {
    let mut queue = Queue::new(16, overflow);
    let put = (0..40).map(|event| queue.put(event, event % 4)).collect();
    (queue, put)
}

#[test]
fn drop_oldest_keeps_the_last() {
    let (mut queue, _) = filled(Overflow::DropOldest);
    let expected: Vec<_> = [Next::Gap(24)].into_iter().chain(events(24..40)).collect();
    assert_eq!(drain(&mut queue), expected);
    assert_eq!(queue.lost(), 24);
}

#[test]
fn drop_newest_keeps_the_first() {
    let (mut queue, _) = filled(Overflow::DropNewest);
    let expected: Vec<_> = events(0..16).chain([Next::Gap(24)]).collect();
    assert_eq!(drain(&mut queue), expected);
    queue.put(40, 0);
    assert_eq!(drain(&mut queue), [Next::Event(40)]);
}

#[test]
fn latest_by_key_keeps_one_of_each() {
    let (mut queue, _) = filled(Overflow::LatestByKey);
    let expected: Vec<_> = [Next::Gap(36)].into_iter().chain(events(36..40)).collect();
    assert_eq!(drain(&mut queue), expected);
}

#[test]
fn block_gives_the_event_back() {
    let (mut queue, put) = filled(Overflow::Block);
    assert_eq!(put[16], Put::Full(16));
    assert_eq!(queue.lost(), 0);
    queue.give_up();
    let expected: Vec<_> = events(0..16).chain([Next::Gap(1)]).collect();
    assert_eq!(drain(&mut queue), expected);
    assert!(queue.is_empty());
}

#[test]
fn disconnect_is_told_once() {
    let (mut queue, put) = filled(Overflow::Disconnect);
    let told = put.iter().filter(|put| matches!(put, Put::Disconnect(_)));
    assert_eq!(told.count(), 1);
    assert_eq!(put[16], Put::Disconnect(16));
    let expected: Vec<_> = events(0..16).chain([Next::Gap(24)]).collect();
    assert_eq!(drain(&mut queue), expected);
}

fn any_overflow() -> impl Strategy<Value = Overflow> {
    prop::sample::select(vec![
        Overflow::DropOldest,
        Overflow::DropNewest,
        Overflow::LatestByKey,
        Overflow::Block,
        Overflow::Disconnect,
    ])
}

proptest! {
    /// The events that were put are the events that were taken, and the gaps. Events come in order,
    /// and a gap stands where its events are missing unless keys were replaced.
    #[test]
    fn put_is_taken_and_told_lost(
        overflow in any_overflow(),
        capacity in 1_usize..6,
        script in prop::collection::vec((any::<bool>(), 0_u64..3), 0..60),
    ) {
        let mut queue = Queue::new(capacity, overflow);
        let (mut put, mut got, mut gaps) = (0, 0, 0);
        let mut last = None;
        let mut lost_before_next = 0;
        let mut check = |taken: Next<u64>| {
            match taken {
                Next::Gap(count) => {
                    gaps += count;
                    lost_before_next += count;
                }
                Next::Event(event) => {
                    got += 1;
                    prop_assert!(last < Some(event));
                    if overflow != Overflow::LatestByKey {
                        let missing = event - last.map_or(0, |last| last + 1);
                        prop_assert_eq!(missing, lost_before_next);
                    }
                    lost_before_next = 0;
                    last = Some(event);
                }
            }
            Ok(())
        };
        for (is_put, key) in script {
            if is_put {
                if let Put::Full(_) = queue.put(put, key) {
                    queue.give_up();
                }
                put += 1;
            } else if let Some(taken) = queue.take() {
                check(taken)?;
            }
            prop_assert!(queue.len() <= capacity);
        }
        while let Some(taken) = queue.take() {
            check(taken)?;
        }
        prop_assert_eq!(put, got + gaps);
        prop_assert_eq!(queue.lost(), gaps);
    }
}
