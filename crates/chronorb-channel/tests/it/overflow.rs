//! Queues that overflow: each loss is counted, and told at its place.

use std::time::Duration;

use chronorb_channel::{Delivery, Event, Filter, Overflow};

use crate::support::{Note, Notes, one, stepped};

/// Pushes the types from 100 on through a queue of 4 before the lane works, and then one more.
fn overflow(policy: Overflow, types: &[i32]) -> Vec<Note> {
    let (channel, _) = stepped(1);
    let notes = Notes::default();
    let subscription = channel.subscribe(Filter::Everything).queue(4, policy);
    let subscription = subscription.call_on(0, notes.clone()).expect("a lane");
    for event_type in types {
        channel.push(&Event::new(1, *event_type, 0));
    }
    channel.step(0);
    channel.push(&Event::new(1, 200, 0));
    channel.step(0);
    let notes = notes.take();
    let told = notes.iter().map(|note| match note {
        Note::Lost(number) => *number,
        _ => 0,
    });
    let told: u64 = told.sum();
    let status = subscription.status();
    let got = status.events;
    if policy == Overflow::Disconnect {
        assert!(status.has_ended);
        assert_eq!(got + status.lost, types.len() as u64 + 1);
    } else {
        assert_eq!((got + told, status.lost), (types.len() as u64 + 1, told));
    }
    assert_eq!(status.queued, 0);
    notes
}

#[test]
fn each_policy_tells_its_losses() {
    let six = [100, 101, 102, 103, 104, 105];
    let first = [one(1, 100), one(1, 101), one(1, 102), one(1, 103)];
    let last = [one(1, 102), one(1, 103), one(1, 104), one(1, 105)];
    let (lost, next) = (Note::Lost(2), one(1, 200));

    let expected = [&[lost.clone()][..], &last, std::slice::from_ref(&next)].concat();
    assert_eq!(overflow(Overflow::DropOldest, &six), expected);
    let expected = [&first[..], &[lost.clone(), next.clone()]].concat();
    assert_eq!(overflow(Overflow::DropNewest, &six), expected);
    assert_eq!(
        overflow(Overflow::Block, &six),
        expected,
        "it waits for no time"
    );
    let expected = [&first[..], &[lost, Note::Disconnected]].concat();
    let got = overflow(Overflow::Disconnect, &six);
    assert_eq!(got, expected);
    let expected = [Note::Lost(3), one(1, 101), one(1, 100), next];
    assert_eq!(
        overflow(Overflow::LatestByKey, &[100, 100, 100, 101, 100]),
        expected
    );
}

#[test]
fn a_stream_is_told_too() {
    let (channel, _) = stepped(0);
    let subscription = channel.subscribe(Filter::Everything);
    let mut stream = subscription
        .queue(2, Overflow::Disconnect)
        .stream()
        .expect("a filter");
    for event_type in 20..25 {
        channel.push(&Event::new(1, event_type, 0));
    }
    assert_eq!(stream.status().lost, 3);
    let taken: Vec<_> = std::iter::from_fn(|| stream.next_within(Duration::ZERO)).collect();
    let set = |event_type| Delivery::Set(vec![Event::new(1, event_type, 0)]);
    assert_eq!(taken, [set(20), set(21), Delivery::Lost(3)]);
    assert_eq!(stream.next(), None, "it has ended");
}

#[test]
fn a_slow_consumer_costs_nobody_else_an_event() {
    let (channel, _) = stepped(2);
    let (slow, fast) = (Notes::default(), Notes::default());
    let small = channel
        .subscribe(Filter::Everything)
        .queue(1, Overflow::DropOldest);
    let small = small.call_on(1, slow.clone()).expect("a lane");
    let _fast = channel
        .subscribe(Filter::Everything)
        .call_on(0, fast.clone());
    for event_type in 20..120 {
        channel.push(&Event::new(1, event_type, 0));
        channel.step(0);
    }
    assert_eq!(fast.types(), (20..120).collect::<Vec<_>>());
    assert_eq!(small.status().lost, 99);
    channel.step(1);
    assert_eq!(slow.take(), [Note::Lost(99), one(1, 119)]);
}
