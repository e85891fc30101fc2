//! The contract of transports that carry streams.

use std::thread;
use std::time::Duration;

use chronorb_transport::{ConnectError, Connection, Deadline, Interest, IoError, Reactor};

use super::subject::{PATIENCE, Subject, message, patience, receive, setup, soon};
use super::waits::{event, under_signals, woken_by_shutdown};

pub(crate) fn octets_of_any_cut_arrive_whole(subject: &Subject) {
    let (near, far) = subject.pair();
    // More than any buffer on the way.
    let sent = message(5 << 20, 1);
    let cuts = [1, 2, 3, 7, 64, 1000, 4096, 65_535, 65_536, 65_537, 1 << 20];
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut rest = &sent[..];
            for len in cuts.iter().cycle() {
                let (now, later) = rest.split_at(rest.len().min(*len));
                near.send_all(now, patience()).expect("the peer reads");
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
        });
        let mut received: Vec<u8> = Vec::new();
        let mut room = vec![0; 1 << 20];
        for len in cuts.iter().rev().cycle() {
            let n = far.recv(&mut room[..*len], patience());
            received.extend(&room[..n.expect("more comes")]);
            if received.len() >= sent.len() {
                break;
            }
        }
        assert!(received == sent);
    });
}

pub(crate) fn pieces_of_any_length_arrive_one_after_the_other(subject: &Subject) {
    let (near, far) = subject.pair();
    for lengths in [(0, 5), (5, 0), (16, 16), (16, 9 << 20), (9 << 20, 16)] {
        let (first, second) = (vec![1; lengths.0], vec![2; lengths.1]);
        let octets = thread::scope(|scope| {
            let received = scope.spawn(|| receive(&*far, lengths.0 + lengths.1));
            let sent = near.send_both(&first, &second, patience());
            sent.expect("the peer reads");
            received.join().expect("no panic")
        });
        assert!(octets == [first, second].concat(), "{lengths:?}");
    }
}

pub(crate) fn what_does_not_fit_is_left_without_waiting(subject: &Subject) {
    let (near, far) = subject.pair();
    let (first, second) = (vec![1; 16], vec![2; 64 << 20]);
    let sent = near.try_send_both(&first, &second);
    let sent = sent.expect("some of it fits");
    assert!((1..first.len() + second.len()).contains(&sent));
    let more = fill(&*near);
    let octets = receive(&*far, sent + more);
    let whole = [first, second].concat();
    assert!(octets[..sent] == whole[..sent]);
    assert!(octets[sent..].iter().all(|octet| *octet == FILLING));
}

pub(crate) fn who_could_not_send_is_told_of_room(subject: &Subject) {
    let (near, far) = subject.pair();
    let reactor = Reactor::new().expect("a descriptor is free");
    reactor
        .add(&near, 3, Interest::ReadWrite)
        .expect("it is open");
    for _ in 0..3 {
        let filled = fill(&*near);
        thread::scope(|scope| {
            scope.spawn(|| receive(&*far, filled));
            loop {
                // Some transports tell of room as of input.
                event(&reactor);
                if near.try_send(&[FILLING]) == Ok(1) {
                    break;
                }
            }
        });
        assert_eq!(receive(&*far, 1), [FILLING]);
    }
}

/// Sends until nothing fits any more. Returns how many octets did.
pub(crate) fn fill(connection: &dyn Connection) -> usize {
    let octets = [FILLING; 4096];
    let mut sent = 0;
    loop {
        match connection.try_send(&octets) {
            Ok(n) => sent += n,
            Err(IoError::WouldBlock) => return sent,
            Err(error) => panic!("it is open, but: {error}"),
        }
    }
}

pub(crate) fn a_peer_that_takes_nothing_ends_the_wait_at_the_deadline(subject: &Subject) {
    let octets = vec![FILLING; 64 << 20];
    // On a busy machine a deadline may pass before the first octets are sent.
    let mut time = Duration::from_millis(200);
    let (near, far, error) = loop {
        let (near, far) = subject.pair();
        let error = near.send_both(&[FILLING; 16], &octets, Deadline::after(time));
        let error = error.expect_err("there is no reader");
        assert_eq!(error.cause, IoError::TimedOut);
        if error.sent >= 16 {
            break (near, far, error);
        }
        assert!(time < PATIENCE, "nothing is sent");
        time *= 2;
    };
    assert!(error.sent < octets.len());
    let error2 = near
        .send_all(&octets, soon())
        .expect_err("there is no reader");
    assert_eq!(error2.cause, IoError::TimedOut);
    let all = receive(&*far, error.sent + error2.sent);
    assert!(all.iter().all(|octet| *octet == FILLING));
    assert_eq!(far.try_recv(&mut [0]), Err(IoError::WouldBlock));
}

pub(crate) fn signals_do_not_keep_a_sender_from_its_end(subject: &Subject) {
    let (near, _far) = subject.pair();
    let octets = vec![FILLING; 64 << 20];
    for both in [false, true] {
        let sent = under_signals(|| {
            if both {
                near.send_both(&[FILLING; 16], &octets, soon())
            } else {
                near.send_all(&octets, soon())
            }
        });
        let error = sent.expect_err("there is no reader");
        assert_eq!(error.cause, IoError::TimedOut);
    }
}

pub(crate) fn the_end_comes_after_what_was_sent(subject: &Subject) {
    let by_shutdown: fn(Box<dyn Connection>) = |near| near.shutdown();
    for end in [by_shutdown, drop] {
        let (near, far) = subject.pair();
        let sent = message(10_000, 1);
        near.send_all(&sent, patience()).expect("it is taken");
        end(near);
        assert!(receive(&*far, sent.len()) == sent);
        let ended = far.recv(&mut [0], patience());
        assert_eq!(ended, Err(IoError::Ended));
    }
}

pub(crate) fn after_an_error_no_octet_comes(subject: &Subject) {
    let (near, far) = subject.pair();
    near.send_all(&message(30, 1), patience())
        .expect("it is taken");
    drop(near);
    assert!(receive(&*far, 30) == message(30, 1));
    for _ in 0..3 {
        assert_eq!(far.recv(&mut [0], patience()), Err(IoError::Ended));
        assert_eq!(far.try_recv(&mut [0]), Err(IoError::Ended));
        let outcome = far.recv_until_interrupted(&mut [0], None);
        assert_eq!(outcome, Err(IoError::Ended));
    }
    // The peer is gone, which the first octets may be needed to find out.
    let until = patience();
    let mut outcome = Ok(1);
    while matches!(outcome, Ok(_) | Err(IoError::WouldBlock)) && !until.has_passed() {
        outcome = far.try_send(&[0; 16]);
    }
    let error = outcome.expect_err("there is no peer");
    assert_ne!(error, IoError::WouldBlock);
}

pub(crate) fn a_connection_whose_peer_is_gone_is_stale(subject: &Subject) {
    let (near, far) = subject.pair();
    assert!(!near.is_stale());
    drop(far);
    // It is told by an edge, too.
    let reactor = Reactor::new().expect("a descriptor is free");
    reactor.add(&near, 3, Interest::Read).expect("it is open");
    while !event(&reactor).hang_up && !near.is_stale() {}
    assert!(near.is_stale());
}

pub(crate) fn where_nobody_listens_nobody_is_connected(subject: &Subject) {
    let acceptor = subject.listen();
    let address = acceptor.published()[0].clone();
    drop(acceptor);
    let refused = subject.transport.connect(&address, setup(), patience());
    let error = refused.expect_err("there is no listener");
    assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
}

pub(crate) fn a_peer_that_is_cut_off_is_told_at_once(subject: &Subject) {
    let (near, far) = subject.pair();
    fill(&*near);
    far.abort();
    // Another thread that was about to read takes all that has come.
    let mut room = vec![0; 64 << 10];
    while matches!(far.try_recv(&mut room), Ok(1..)) {}
    drop(far);
    let octets = vec![FILLING; 64 << 20];
    let error = near.send_all(&octets, patience());
    let error = error.expect_err("there is no peer").cause;
    assert_ne!(error, IoError::TimedOut);
}

pub(crate) fn shutting_down_wakes_who_sends(subject: &Subject) {
    let (near, _far) = subject.pair();
    fill(&*near);
    // More than the kernel may find room for later.
    let octets = vec![FILLING; 64 << 20];
    woken_by_shutdown(&*near, |near| {
        let error = near.send_all(&octets, patience());
        Err(error.expect_err("nothing is taken any more").cause)
    });
}

const FILLING: u8 = 0x5a;
