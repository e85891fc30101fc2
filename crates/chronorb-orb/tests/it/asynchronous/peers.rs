//! Asynchronous calls of servers that answer late, in any order, elsewhere or never.

use chronorb_orb::rtcorba::{ClientPolicy, RebindMode, SetOverride};
use chronorb_orb::{CompletionStatus, ConnectionStrategy, Object, Orb, SystemExceptionKind, minor};
use std::sync::Arc;
use std::time::Instant;

use crate::support::asynchronous::{Alarm, Inbox, WAYS, begin_add, block_on, poll_once};
use crate::support::raw_server::{
    CLOSE_CONNECTION, Message, Peer, RawServer, forward, object_at, raw_server, reply,
};
use crate::support::strategies::STRATEGIES;
use crate::support::{Latch, PATIENCE, add, kind_and_completion, orb_with, with_short_timeout};

/// Returns a client, and an object at a server on a bare socket.
fn at(strategy: ConnectionStrategy, server: &RawServer) -> (Orb, Object) {
    eprintln!("with {strategy:?}");
    let orb = orb_with(|config| config.client_connection = strategy);
    let object = object_at(&orb, server.address);
    (orb, object)
}

#[test]
fn replies_come_in_any_order() {
    for strategy in STRATEGIES {
        let server = raw_server(|mut peer: Peer| {
            let requests = [(); 3].map(|()| peer.request().expect("a request comes"));
            for request in requests.into_iter().rev() {
                peer.answer(request);
            }
            peer.answer_all();
        });
        let (orb, object) = at(strategy, &server);
        let inbox = Inbox::new();
        let first = begin_add(&object, 1, 0).expect("it begins");
        let second = begin_add(&object, 2, 0).expect("it begins");
        second.on_reply(inbox.handler()).expect("there is a thread");
        let third = begin_add(&object, 3, 0).expect("it begins");
        assert_eq!(first.wait(), Ok(1));
        assert_eq!(block_on(third), Ok(3));
        assert_eq!(inbox.take(1), [Ok(2)]);
        assert_eq!(server.connections(), 1);
        let _ = orb.shutdown(true);
    }
}

#[test]
fn asynchronous_calls_have_a_connection_of_their_own_where_each_thread_has() {
    for strategy in STRATEGIES {
        let server = raw_server(Peer::answer_all);
        let (orb, object) = at(strategy, &server);
        std::thread::scope(|scope| {
            for i in 0..3 {
                let object = &object;
                scope.spawn(move || {
                    let pending = begin_add(object, i, 1).expect("it begins");
                    assert_eq!(pending.wait(), Ok(i + 1));
                });
            }
        });
        let pending = begin_add(&object, 1, 2).expect("it begins");
        assert_eq!(add(&object, 3, 4), Ok(7));
        assert_eq!(pending.wait(), Ok(3));
        if strategy != ConnectionStrategy::Exclusive {
            // Threads that have ended may have been the connections' last users.
            assert!(server.connections() <= 4);
            continue;
        }
        let before = server.connections();
        let pending = [(); 5].map(|()| begin_add(&object, 1, 2).expect("it begins"));
        assert!(pending.into_iter().all(|pending| pending.wait() == Ok(3)));
        assert_eq!(add(&object, 3, 4), Ok(7));
        assert_eq!(
            server.connections(),
            before,
            "all share one, and this thread has one"
        );
        let _ = orb.shutdown(true);
    }
}

#[test]
fn a_call_whose_time_is_over_ends_alone() {
    for (way, take) in WAYS {
        for strategy in STRATEGIES {
            eprintln!("{way}");
            let server = raw_server(|mut peer: Peer| {
                let first = peer.request().expect("a request comes");
                peer.answer(first);
                let other = peer.request().expect("another one comes");
                let late = peer.request().expect("a third one comes");
                // A sign of life since the third one was sent.
                peer.answer(other);
                assert_eq!(peer.message(), Some(Message::Cancel { id: late.0 }));
                peer.answer(late);
                peer.answer_all();
            });
            let (orb, object) = at(strategy, &server);
            // The connection is there, and does not count.
            let first = begin_add(&object, 5, 6).expect("it begins");
            assert_eq!(take(first), Ok(11));
            let mut other = Some(begin_add(&object, 7, 8).expect("it begins"));
            let late = with_short_timeout(&object, |hasty| {
                let hasty = begin_add(hasty, 1, 2)?;
                if let Some(other) = other.take() {
                    assert_eq!(other.wait(), Ok(15));
                }
                take(hasty)
            });
            let exception = late.expect_err("nothing comes in time");
            assert_eq!(exception.minor, minor::TIMEOUT_REPLY_END);
            assert_eq!(exception.completed, CompletionStatus::Maybe);
            let next = begin_add(&object, 3, 4).expect("it begins");
            assert_eq!(take(next), Ok(7), "the late reply belongs to no call");
            assert_eq!(server.connections(), 1);
            let _ = orb.shutdown(true);
        }
    }
}

#[test]
fn a_short_call_ends_in_time_although_a_longer_one_is_attended() {
    for strategy in STRATEGIES {
        let server = raw_server(Peer::until_the_end);
        let (orb, object) = at(strategy, &server);
        let (long, short) = (Inbox::new(), Inbox::new());
        let pending = begin_add(&object, 1, 2).expect("it begins");
        pending.on_reply(long.handler()).expect("there is a thread");
        let late = with_short_timeout(&object, |hasty| {
            let pending = begin_add(hasty, 1, 2)?;
            let handled = pending.on_reply(short.handler());
            handled.expect("there is a thread");
            let [late] = short.take(1).try_into().expect("it is one");
            late
        });
        let expected = (SystemExceptionKind::Timeout, CompletionStatus::Maybe);
        assert_eq!(kind_and_completion(late), expected);
        assert!(long.take(0).is_empty());
        let _ = orb.shutdown(false);
    }
}

#[test]
fn a_call_that_is_dropped_is_cancelled_and_its_late_reply_passed_over() {
    for attended in [false, true] {
        for strategy in STRATEGIES {
            let arrived = Arc::new(Latch::default());
            let tell = arrived.clone();
            let server = raw_server(move |mut peer: Peer| {
                let dropped = peer.request().expect("a request comes");
                tell.set(1);
                assert_eq!(peer.message(), Some(Message::Cancel { id: dropped.0 }));
                let next = peer.request().expect("another one comes");
                peer.answer(dropped);
                peer.answer(next);
                peer.answer_all();
            });
            let (orb, object) = at(strategy, &server);
            let mut pending = begin_add(&object, 1, 2).expect("it begins");
            if attended {
                let alarm = Arc::new(Alarm::default());
                assert!(poll_once(&mut pending, &alarm).is_pending());
            }
            arrived.reach(1);
            drop(pending);
            let next = begin_add(&object, 3, 4).expect("it begins");
            assert_eq!(next.wait(), Ok(7));
            assert_eq!(server.connections(), 1);
            let _ = orb.shutdown(true);
        }
    }
}

#[test]
fn a_server_that_dies_ends_all_calls_that_are_under_way() {
    for strategy in STRATEGIES {
        let server = raw_server(|mut peer: Peer| {
            for _ in 0..WAYS.len() {
                peer.request().expect("a request comes");
            }
        });
        let (orb, object) = at(strategy, &server);
        let pending = WAYS.map(|(_, take)| {
            let pending = begin_add(&object, 1, 2).expect("it begins");
            (pending, take)
        });
        let expected = (SystemExceptionKind::CommFailure, CompletionStatus::Maybe);
        for (pending, take) in pending {
            assert_eq!(kind_and_completion(take(pending)), expected);
        }
        let _ = orb.shutdown(true);
    }
}

#[test]
fn what_a_server_has_not_begun_when_it_closes_is_sent_again() {
    for (way, take) in WAYS {
        for strategy in STRATEGIES {
            eprintln!("{way}");
            let server = raw_server(|mut peer: Peer| {
                if peer.number > 0 {
                    return peer.answer_all();
                }
                for _ in 0..2 {
                    peer.request().expect("a request comes");
                }
                peer.send(CLOSE_CONNECTION);
            });
            let (orb, object) = at(strategy, &server);
            let first = begin_add(&object, 1, 2).expect("it begins");
            let second = begin_add(&object, 3, 4).expect("it begins");
            assert_eq!((take(first), take(second)), (Ok(3), Ok(7)));
            // The thread that read the first CloseConnection may have ended before the second.
            assert!((2..=3).contains(&server.connections()));
            let _ = orb.shutdown(true);
        }
    }
}

#[test]
fn a_server_that_closes_without_end_is_transient() {
    for (way, take) in WAYS {
        for strategy in STRATEGIES {
            eprintln!("{way}");
            let server = raw_server(|mut peer: Peer| {
                peer.request().expect("a request comes");
                peer.send(CLOSE_CONNECTION);
            });
            let (orb, object) = at(strategy, &server);
            let pending = begin_add(&object, 1, 2).expect("it begins");
            let expected = (SystemExceptionKind::Transient, CompletionStatus::No);
            assert_eq!(kind_and_completion(take(pending)), expected);
            assert_eq!(server.connections(), 3);
            let _ = orb.shutdown(true);
        }
    }
}

#[test]
fn a_location_forward_is_followed_with_the_arguments_that_were_given() {
    for (way, take) in WAYS {
        for strategy in STRATEGIES {
            eprintln!("{way}");
            let elsewhere = raw_server(Peer::answer_all);
            let orb = orb_with(|config| config.client_connection = strategy);
            let there = object_at(&orb, elsewhere.address);
            let server = raw_server(move |mut peer: Peer| {
                while let Some((id, _)) = peer.request() {
                    peer.send(&forward(id, there.ior()));
                }
            });
            let object = object_at(&orb, server.address);
            for i in 0..3 {
                let pending = begin_add(&object, i, 2).expect("it begins");
                assert_eq!(take(pending), Ok(i + 2), "{strategy:?}");
            }
            assert_eq!(elsewhere.connections(), 1);
            let _ = orb.shutdown(true);
        }
    }
}

#[test]
fn a_forward_that_the_rebind_policy_forbids_is_not_followed() {
    for (way, take) in WAYS {
        eprintln!("{way}");
        let orb = orb_with(|_| {});
        let there = object_at(&orb, "127.0.0.1:9".parse().expect("an address"));
        let server = raw_server(move |mut peer: Peer| {
            while let Some((id, _)) = peer.request() {
                peer.send(&forward(id, there.ior()));
            }
        });
        let object = object_at(&orb, server.address);
        let policy = ClientPolicy::Rebind(RebindMode::NoReconnect);
        let object = object
            .with_policy_overrides(&[policy], SetOverride::Add)
            .expect("one policy");
        let pending = begin_add(&object, 1, 2).expect("it begins");
        let exception = take(pending).expect_err("it is elsewhere");
        assert_eq!(exception.kind, SystemExceptionKind::Rebind);
        assert_eq!(exception.minor, minor::FORWARD_FORBIDDEN);
        let _ = orb.shutdown(true);
    }
}

#[test]
fn a_reply_that_is_malformed_ends_the_connection() {
    for (way, take) in WAYS {
        for strategy in STRATEGIES {
            eprintln!("{way}");
            let server = raw_server(|mut peer: Peer| {
                let (id, _) = peer.request().expect("a request comes");
                let mut octets = reply(id, 0);
                // An invalid status.
                octets[16] = 99;
                peer.send(&octets);
                peer.until_the_end();
            });
            let (orb, object) = at(strategy, &server);
            let pending = begin_add(&object, 1, 2).expect("it begins");
            let expected = (SystemExceptionKind::Marshal, CompletionStatus::Maybe);
            assert_eq!(kind_and_completion(take(pending)), expected);
            let _ = orb.shutdown(true);
        }
    }
}

#[test]
fn nobody_listening_shows_when_a_call_begins() {
    for strategy in STRATEGIES {
        let orb = orb_with(|config| config.client_connection = strategy);
        // No socket listens at the discard port.
        let object = object_at(&orb, "127.0.0.1:9".parse().expect("an address"));
        let expected = (SystemExceptionKind::Transient, CompletionStatus::No);
        assert_eq!(kind_and_completion(begin_add(&object, 1, 2)), expected);
        let _ = orb.shutdown(true);
    }
}

#[test]
fn one_who_waits_reads_while_a_handler_is_busy() {
    for strategy in STRATEGIES {
        let server = raw_server(Peer::answer_all);
        let (orb, object) = at(strategy, &server);
        let latch = Arc::new(Latch::default());
        let pending = begin_add(&object, 1, 2).expect("it begins");
        let in_handler = latch.clone();
        let handled = pending.on_reply(move |_| {
            in_handler.set(1);
            in_handler.reach(2);
        });
        handled.expect("there is a thread");
        latch.reach(1);
        let attended = begin_add(&object, 5, 6).expect("it begins");
        let inbox = Inbox::new();
        attended
            .on_reply(inbox.handler())
            .expect("there is a thread");
        let mut pending = begin_add(&object, 3, 4).expect("it begins");
        assert_eq!(pending.wait_until(Instant::now() + PATIENCE), Ok(7));
        assert_eq!(add(&object, 7, 8), Ok(15));
        latch.set(2);
        assert_eq!(inbox.take(1), [Ok(11)]);
        let _ = orb.shutdown(true);
    }
}

#[test]
fn the_connection_stays_while_a_call_is_under_way_and_ends_with_the_last_that_uses_it() {
    let (go_on, ended) = (Arc::new(Latch::default()), Arc::new(Latch::default()));
    let (wait, tell) = (go_on.clone(), ended.clone());
    let server = raw_server(move |mut peer: Peer| {
        let request = peer.request().expect("a request comes");
        wait.reach(1);
        peer.answer(request);
        peer.until_the_end();
        tell.set(1);
    });
    let (orb, object) = at(ConnectionStrategy::Exclusive, &server);
    let begun = std::thread::scope(|scope| {
        let thread = scope.spawn(|| begin_add(&object, 1, 2).expect("it begins"));
        thread.join().expect("it does not panic")
    });
    go_on.set(1);
    let inbox = Inbox::new();
    begun.on_reply(inbox.handler()).expect("there is a thread");
    assert_eq!(inbox.take(1), [Ok(3)]);
    ended.reach(1);
    let _ = orb.shutdown(true);
}
