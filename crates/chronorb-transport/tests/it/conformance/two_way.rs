//! The contract of transports that carry octets both ways.

use std::thread;

use chronorb_transport::IoError;

use super::subject::{Subject, message, patience, receive, soon};
use super::waits::{called_by_a_kick, woken_by_shutdown};

pub(crate) fn octets_go_both_ways_at_the_same_time(subject: &Subject) {
    let (near, far) = subject.pair();
    // Each waits for the other one's message before its next one, so that nothing is dropped.
    thread::scope(|scope| {
        for (end, number) in [(&near, 1), (&far, 2)] {
            scope.spawn(move || {
                for round in 0..100 {
                    let sent = message(12 + 40 * round, number);
                    end.send_all(&sent, patience()).expect("it is taken");
                    let awaited = message(sent.len(), 3 - number);
                    assert!(receive(&**end, sent.len()) == awaited, "round {round}");
                }
            });
        }
    });
}

pub(crate) fn each_client_has_a_connection_of_its_own(subject: &Subject) {
    let acceptor = subject.listen();
    let address = &acceptor.published()[0];
    let mut pairs: Vec<_> = (0..20)
        .map(|_| subject.pair_at(&*acceptor, address))
        .collect();
    // What has ended leaves the others alone.
    pairs.truncate(17);
    for (number, (near, _)) in pairs.iter().enumerate() {
        near.send_all(&message(200, number), patience())
            .expect("it is taken");
    }
    for (number, (_, far)) in pairs.iter().enumerate().rev() {
        assert!(receive(&**far, 200) == message(200, number));
        far.send_all(&message(100, number), patience())
            .expect("it is taken");
    }
    for (number, (near, _)) in pairs.iter().enumerate() {
        assert!(receive(&**near, 100) == message(100, number));
    }
}

pub(crate) fn the_connecting_side_waits_and_is_called_as_the_other(subject: &Subject) {
    let (near, far) = subject.pair();
    assert_eq!(near.recv(&mut [0; 100], soon()), Err(IoError::TimedOut));
    assert_eq!(near.try_recv(&mut [0; 100]), Err(IoError::WouldBlock));
    assert!(!near.is_stale());
    called_by_a_kick(&*far, &*near);
    woken_by_shutdown(&*near, |near| {
        near.recv(&mut [0; 100], patience()).map(|_| ())
    });
}

pub(crate) fn after_its_shutdown_a_connection_carries_nothing(subject: &Subject) {
    let (near, far) = subject.pair();
    for end in [near, far] {
        end.shutdown();
        end.shutdown();
        let mut room = [0; 100];
        assert!(end.recv(&mut room, patience()).is_err());
        let refused = end.try_recv(&mut room).expect_err("it is shut down");
        assert_ne!(refused, IoError::WouldBlock);
        let refused = end.send_all(&message(30, 1), patience());
        assert_ne!(
            refused.expect_err("it is shut down").cause,
            IoError::TimedOut
        );
    }
}
