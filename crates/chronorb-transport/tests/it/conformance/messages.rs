//! The contract of transports that carry messages.

use chronorb_transport::{Carriage, Connection, IoError};

use super::subject::{Subject, message, patience, receive, soon};

pub(crate) fn messages_of_any_length_arrive_whole(subject: &Subject) {
    let (near, far) = subject.pair();
    let largest = largest(&*near);
    let mut room = vec![0; largest + 1];
    let lengths = [12, 13, 16, 100, 1471, 1472, 1473, 8192, 30_000, 60_000];
    for (number, len) in lengths.into_iter().filter(|l| *l <= largest).enumerate() {
        let sent = message(len, number);
        near.send_all(&sent, patience()).expect("it is taken");
        let n = far.recv(&mut room, patience()).expect("it comes");
        assert!(room[..n] == sent, "{len} octets at once");
    }
}

pub(crate) fn several_messages_can_be_sent_at_once(subject: &Subject) {
    let (near, far) = subject.pair();
    let sent: Vec<_> = (1..6).map(|n| message(20 * n, n)).collect();
    let octets = sent.concat();
    near.send_all(&octets, patience()).expect("it is taken");
    assert!(receive(&*far, octets.len()) == octets);
    let mut taken = 0;
    while taken < octets.len() {
        let n = near.try_send(&octets[taken..]).expect("there is room");
        let ends = (1..=sent.len()).map(|count| sent[..count].concat().len());
        assert!(ends.into_iter().any(|end| end == taken + n), "whole ones");
        taken += n;
    }
    assert!(receive(&*far, octets.len()) == octets);
}

pub(crate) fn the_longest_message_arrives_and_a_longer_one_is_refused(subject: &Subject) {
    let (near, far) = subject.pair();
    let longest = message(largest(&*near), 1);
    let longer = message(longest.len() + 1, 2);
    for _ in 0..3 {
        let error = near.send_all(&longer, patience()).expect_err("too long");
        assert_eq!((error.sent, error.cause), (0, IoError::TooLarge));
        assert_eq!(near.try_send(&longer), Err(IoError::TooLarge));
        let (first, second) = longer.split_at(100);
        let refused = near.try_send_both(first, second);
        assert_eq!(refused, Err(IoError::TooLarge));
        let error = near.send_both(first, second, patience());
        assert_eq!(error.expect_err("too long").cause, IoError::TooLarge);

        near.send_all(&longest, patience()).expect("it is taken");
        assert!(receive(&*far, longest.len()) == longest);
    }
    assert_eq!(far.recv(&mut [0], soon()), Err(IoError::TimedOut));
}

pub(crate) fn the_rest_of_a_message_follows(subject: &Subject) {
    let (near, far) = subject.pair();
    for room in [1, 5, 100, 999] {
        let sent = message(1000, room);
        near.send_all(&sent, patience()).expect("it is taken");
        let mut received: Vec<u8> = Vec::new();
        let mut room = vec![0; room];
        while received.len() < sent.len() {
            let n = far.try_recv(&mut room).or_else(|error| {
                assert_eq!(error, IoError::WouldBlock);
                assert!(received.is_empty(), "the rest is there at once");
                far.recv(&mut room, patience())
            });
            received.extend(&room[..n.expect("it comes")]);
        }
        assert!(received == sent);
        assert_eq!(far.try_recv(&mut room), Err(IoError::WouldBlock));
    }
}

pub(crate) fn what_is_no_message_never_arrives(subject: &Subject) {
    let (near, far) = subject.pair();
    // A transport may refuse to send it: it is asked for whole messages.
    for wrong in [
        &b"noise"[..],
        b"noise of more than a header's octets",
        &message(100, 1)[..99],
    ] {
        let _ = near.try_send(wrong);
        near.send_all(&message(50, 2), patience())
            .expect("it is taken");
        assert!(receive(&*far, 50) == message(50, 2));
    }
}

fn largest(connection: &dyn Connection) -> usize {
    match connection.carriage() {
        Carriage::Messages { largest, .. } => largest,
        Carriage::Stream => panic!("it carries a stream"),
    }
}
