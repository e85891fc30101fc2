//! Requirements of a client's connections: one suite for all strategies.

use chronorb_giop::contexts;
use chronorb_orb::SystemExceptionKind::{CommFailure, Timeout};
use chronorb_orb::{CompletionStatus, ConnectionStrategy, Operation, Orb, OrbConfig};
use chronorb_rt::Deadline;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use ConnectionStrategy::Exclusive;

use crate::support::raw_server::{
    CLOSE_CONNECTION, Message, Peer, fragments, object_at, raw_server, reply,
};
use crate::support::strategies::{SHARED, STRATEGIES, WITH_THREAD};
use crate::support::{
    Latch, PATIENCE, add, echo, full_listener, kind_and_completion, orb_with, served,
    with_longer_times, with_short_timeout,
};

const THREADS: usize = 6;
const A_MOMENT: Duration = Duration::from_millis(60);

fn client(strategy: ConnectionStrategy) -> Orb {
    client_with(strategy, |_| {})
}

fn client_with(strategy: ConnectionStrategy, configure: impl FnOnce(&mut OrbConfig)) -> Orb {
    orb_with(|config| {
        config.client_connection = strategy;
        configure(config);
    })
}

/// Runs `f` in threads that it gets the numbers of, and returns when all have ended.
fn in_threads(threads: usize, f: impl Fn(i32) + Sync) {
    std::thread::scope(|scope| {
        for number in 0..threads as i32 {
            let f = &f;
            scope.spawn(move || f(number));
        }
    });
}

/// Returns the number of requests on a connection when `threads` threads all wait.
fn together(strategy: ConnectionStrategy, threads: usize) -> usize {
    match strategy {
        Exclusive => 1,
        _ => threads,
    }
}

fn requests(peer: &mut Peer, count: usize) -> Vec<(u32, (i32, i32))> {
    (0..count).map_while(|_| peer.request()).collect()
}

#[test]
fn each_thread_gets_its_own_replies() {
    for strategy in STRATEGIES {
        let s = served();
        let client = client(strategy);
        let text = s.server.object_to_string(&s.object);
        let object = client.string_to_object(&text).expect("the reference reads");
        in_threads(THREADS, |n| {
            for i in 0..200 {
                assert_eq!(add(&object, n * 1000, i), Ok(n * 1000 + i));
                let text = "x".repeat((n * 211 + i) as usize % 3000);
                assert_eq!(echo(&object, &text), Ok(text));
            }
        });
    }
}

#[test]
fn threads_share_a_connection_or_have_their_own() {
    for strategy in STRATEGIES {
        let arrived = Arc::new(Latch::default());
        let server = raw_server(Peer::answer_all);
        let object = object_at(&client(strategy), server.address);
        let count = AtomicUsize::new(0);
        in_threads(THREADS, |n| {
            assert_eq!(add(&object, n, n), Ok(2 * n));
            // All have their connection at the same time.
            if count.fetch_add(1, Ordering::SeqCst) + 1 == THREADS {
                arrived.set(1);
            }
            arrived.reach(1);
        });
        let expected = match strategy {
            Exclusive => THREADS,
            _ => 1,
        };
        assert_eq!(server.connections(), expected, "{strategy:?}");
    }
}

#[test]
fn replies_go_to_those_who_wait_for_them_in_whatever_order() {
    for strategy in STRATEGIES {
        let batch = together(strategy, THREADS);
        let server = raw_server(move |mut peer| {
            loop {
                let requests = requests(&mut peer, batch);
                if requests.is_empty() {
                    return;
                }
                requests.into_iter().rev().for_each(|r| peer.answer(r));
            }
        });
        let object = object_at(&client(strategy), server.address);
        in_threads(THREADS, |n| {
            for i in 0..50 {
                assert_eq!(add(&object, 100 * n, i), Ok(100 * n + i));
            }
        });
    }
}

#[test]
fn fragments_of_several_replies_may_alternate() {
    for strategy in STRATEGIES {
        let batch = together(strategy, THREADS);
        let server = raw_server(move |mut peer| {
            let requests = requests(&mut peer, batch);
            let parts: Vec<_> = requests
                .iter()
                .map(|(id, (a, b))| fragments(&reply(*id, a + b), 8))
                .collect();
            for i in 0..parts.first().map_or(0, Vec::len) {
                for parts in &parts {
                    peer.send(&parts[i]);
                }
            }
            peer.until_the_end();
        });
        let object = object_at(&client(strategy), server.address);
        in_threads(THREADS, |n| assert_eq!(add(&object, n, 1), Ok(n + 1)));
    }
}

#[test]
fn requests_in_fragments_go_whole_however_little_the_peer_takes_at_a_time() {
    for strategy in STRATEGIES {
        let s = served();
        let client = client_with(strategy, |config| config.fragment_size = 1 << 10);
        let text = s.server.object_to_string(&s.object);
        let object = client.string_to_object(&text).expect("the reference reads");
        in_threads(3, |n| {
            // More than a socket buffers, and a little.
            for len in [3 << 20, 100, 1020, 1030] {
                let text = "x".repeat(len + n as usize);
                assert_eq!(echo(&object, &text).as_ref(), Ok(&text), "{strategy:?}");
            }
        });
    }
}

#[test]
fn one_who_gives_up_does_the_others_no_harm() {
    for strategy in SHARED {
        // The request of thread 0 is answered only after it was given up.
        let server = raw_server(|mut peer: Peer| {
            let mut late = None;
            while let Some(message) = peer.message() {
                match message {
                    Message::Request {
                        id,
                        arguments: (0, b),
                    } => late = Some((id, (0, b))),
                    Message::Request { id, arguments } => peer.answer((id, arguments)),
                    Message::Cancel { id } => {
                        let (given_up, arguments) = late.take().expect("it was sent");
                        assert_eq!(id, given_up);
                        peer.answer((id, arguments));
                    }
                    Message::Locate { .. } => {}
                }
            }
        });
        let object = object_at(&client(strategy), server.address);
        let (ended, count) = (Latch::default(), AtomicUsize::new(0));
        in_threads(THREADS, |n| {
            match n {
                0 => {
                    let late = with_short_timeout(&object, |hasty| add(hasty, 0, 1));
                    let expected = (Timeout, CompletionStatus::Maybe);
                    assert_eq!(kind_and_completion(late), expected);
                    // The late reply is skipped.
                    assert_eq!(add(&object, 5, 1), Ok(6));
                }
                n => (0..50).for_each(|i| assert_eq!(add(&object, n, i), Ok(n + i))),
            }
            // The connection would end with the last thread that has called.
            if count.fetch_add(1, Ordering::SeqCst) + 1 == THREADS {
                ended.set(1);
            }
            ended.reach(1);
        });
        assert_eq!(server.connections(), 1, "{strategy:?}");
    }
}

#[test]
fn a_leader_that_gives_up_leaves_what_has_come_to_the_next() {
    for strategy in SHARED {
        // On a busy machine the hasty one may give up before the patient one begins.
        with_longer_times(A_MOMENT * 4, |time| {
            let (sent, is_split) = (Arc::new(Latch::default()), Arc::new(AtomicBool::new(false)));
            let (came, splits) = (sent.clone(), is_split.clone());
            let server = raw_server(move |mut peer: Peer| {
                let first = peer.request().expect("a request comes");
                came.set(1);
                if first.1 == (20, 3) {
                    return peer.answer(first);
                }
                let second = peer.message();
                let Some(Message::Request { id, arguments }) = second else {
                    return;
                };
                // A part of a reply, and the rest after the reading thread has timed out.
                let octets = reply(id, arguments.0 + arguments.1);
                splits.store(true, Ordering::SeqCst);
                peer.send(&octets[..17]);
                assert_eq!(peer.message(), Some(Message::Cancel { id: first.0 }));
                peer.send(&octets[17..]);
                peer.until_the_end();
            });
            let object = object_at(&client(strategy), server.address);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let hasty = object.with_timeout(time);
                    assert_eq!(kind_and_completion(add(&hasty, 1, 1)).0, Timeout);
                    sent.set(1);
                });
                sent.reach(1);
                assert_eq!(add(&object, 20, 3), Ok(23));
            });
            is_split
                .load(Ordering::SeqCst)
                .then(|| assert_eq!(server.connections(), 1, "{strategy:?}"))
        });
    }
}

#[test]
fn silence_is_a_timeout_for_everybody() {
    for strategy in STRATEGIES {
        let server = raw_server(Peer::until_the_end);
        let object = object_at(&client(strategy), server.address);
        in_threads(THREADS, |n| {
            let late = with_short_timeout(&object, |hasty| add(hasty, n, n));
            assert_eq!(
                kind_and_completion(late),
                (Timeout, CompletionStatus::Maybe),
                "{strategy:?}"
            );
        });
    }
}

#[test]
fn a_server_that_takes_nothing_is_a_timeout_for_everybody() {
    for strategy in STRATEGIES {
        let done = Arc::new(Latch::default());
        let waits = done.clone();
        let server = raw_server(move |_peer| waits.reach(1));
        let object = object_at(&client(strategy), server.address).with_timeout(A_MOMENT);
        // More than the sockets of both sides buffer.
        let text = "x".repeat(12 << 20);
        in_threads(3, |_| {
            assert_eq!(
                kind_and_completion(echo(&object, &text)),
                (Timeout, CompletionStatus::No)
            );
        });
        done.set(1);
    }
}

#[test]
fn an_orderly_close_is_seen_by_nobody() {
    for strategy in STRATEGIES {
        let batch = together(strategy, THREADS);
        let all_called = Arc::new(Latch::default());
        let server = raw_server(move |mut peer: Peer| {
            // The connections of the first requests are closed, once all of them exist.
            let first = THREADS / batch;
            if peer.number >= first {
                return peer.answer_all();
            }
            requests(&mut peer, batch);
            if peer.number + 1 == first {
                all_called.set(1);
            }
            all_called.reach(1);
            peer.send(CLOSE_CONNECTION);
        });
        let object = object_at(&client(strategy), server.address);
        in_threads(THREADS, |n| assert_eq!(add(&object, n, 9), Ok(n + 9)));
    }
}

#[test]
fn a_reply_that_came_before_the_close_counts() {
    for strategy in STRATEGIES {
        let server = raw_server(|mut peer: Peer| {
            if let Some((id, (a, b))) = peer.request() {
                peer.send(&[&reply(id, a + b), CLOSE_CONNECTION].concat());
            }
        });
        let object = object_at(&client(strategy), server.address);
        for i in 0..5 {
            assert_eq!(add(&object, i, 1), Ok(i + 1));
        }
        assert_eq!(server.connections(), 5, "{strategy:?}");
    }
}

#[test]
fn a_connection_cut_in_a_reply_is_comm_failure_for_all_who_wait() {
    for strategy in STRATEGIES {
        let batch = together(strategy, THREADS);
        let server = raw_server(move |mut peer: Peer| {
            let requests = requests(&mut peer, batch);
            let (id, (a, b)) = requests[0];
            peer.send(&reply(id, a + b)[..20]);
        });
        let object = object_at(&client(strategy), server.address);
        in_threads(THREADS, |n| {
            assert_eq!(
                kind_and_completion(add(&object, n, n)),
                (CommFailure, CompletionStatus::Maybe)
            );
        });
    }
}

#[test]
fn a_goodbye_with_a_reply_in_parts_is_comm_failure() {
    for strategy in STRATEGIES {
        let server = raw_server(|mut peer: Peer| {
            let (id, (a, b)) = peer.request().expect("one");
            peer.send(&fragments(&reply(id, a + b), 8)[0]);
            peer.send(CLOSE_CONNECTION);
            peer.until_the_end();
        });
        let object = object_at(&client(strategy), server.address);
        assert_eq!(
            kind_and_completion(add(&object, 1, 1)),
            (CommFailure, CompletionStatus::Maybe)
        );
    }
}

#[test]
fn after_a_failure_calls_go_on_by_a_new_connection() {
    for strategy in STRATEGIES {
        let server = raw_server(|mut peer: Peer| {
            if peer.number == 0 {
                peer.request();
            } else {
                peer.answer_all();
            }
        });
        let object = object_at(&client(strategy), server.address);
        assert_eq!(kind_and_completion(add(&object, 1, 1)).0, CommFailure);
        assert_eq!(add(&object, 1, 1), Ok(2));
    }
}

#[test]
fn oneway_calls_and_two_way_calls_go_together() {
    for strategy in STRATEGIES {
        let s = served();
        let client = client(strategy);
        let text = s.server.object_to_string(&s.object);
        let object = client.string_to_object(&text).expect("the reference reads");
        in_threads(THREADS, |n| {
            for i in 0..50 {
                let sent = object.invoke_oneway(&Operation::oneway("note"), &|_| Ok(()));
                assert_eq!(sent, Ok(()));
                assert_eq!(add(&object, n, i), Ok(n + i));
            }
        });
        drop(client);
    }
}

#[test]
fn threads_that_connect_at_once_make_one_connection() {
    for strategy in SHARED {
        let server = raw_server(Peer::answer_all);
        for round in 1..=20 {
            let object = object_at(&client(strategy), server.address);
            in_threads(THREADS, |n| {
                (0..20).for_each(|i| assert_eq!(add(&object, n, i), Ok(n + i)));
            });
            // A late thread may find that the others have ended already.
            assert!(server.connections() <= round * THREADS, "{strategy:?}");
        }
    }
}

#[test]
fn no_thread_waits_longer_than_its_time_for_a_connection_that_another_makes() {
    for strategy in STRATEGIES {
        let (full, _filler) = full_listener();
        let address = full.local_addr().expect("it is bound");
        let object = object_at(&client(strategy), address).with_timeout(A_MOMENT);
        in_threads(THREADS, |n| {
            assert_eq!(
                kind_and_completion(add(&object, n, n)),
                (Timeout, CompletionStatus::No)
            );
        });
    }
}

#[test]
fn the_thread_of_a_connection_ends_with_the_orb() {
    for strategy in WITH_THREAD {
        the_thread_ends_with_the_orb(strategy);
    }
}

fn the_thread_ends_with_the_orb(strategy: ConnectionStrategy) {
    let server = raw_server(Peer::answer_all);
    let client = client_with(strategy, |config| config.orb_id = "ended".to_owned());
    let readers = || {
        let threads = chronorb_rt::list();
        threads.iter().filter(|t| t.name == "conn.0 ended").count()
    };
    let object = object_at(&client, server.address);
    let (called, go_on) = (Latch::default(), Latch::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(add(&object, 1, 1), Ok(2));
            called.set(1);
            go_on.reach(1);
        });
        called.reach(1);
        assert_eq!(readers(), 1);
        client
            .shutdown(true)
            .expect("it is not called by a servant");
        // The thread was joined; its entry in the list of threads disappears a moment later.
        let patience = Deadline::after(PATIENCE);
        while readers() > 0 {
            assert!(!patience.has_passed(), "the thread is still there");
            std::thread::yield_now();
        }
        go_on.set(1);
    });
}

#[test]
fn only_a_thread_that_has_a_connection_alone_promises_one_call_at_a_time() {
    for strategy in STRATEGIES {
        let server = raw_server(|mut peer: Peer| {
            while let Some((id, _)) = peer.request() {
                let context = contexts::ONE_AT_A_TIME.to_le_bytes();
                let promises = peer.body.windows(4).any(|octets| octets == context);
                peer.send(&reply(id, promises.into()));
            }
        });
        let object = object_at(&client(strategy), server.address);
        assert_eq!(add(&object, 1, 1), Ok((strategy == Exclusive).into()));
    }
}

#[test]
fn a_connection_ends_with_the_last_thread_that_uses_it() {
    for strategy in STRATEGIES {
        let ended = Arc::new(Latch::default());
        let ends = ended.clone();
        let server = raw_server(move |peer: Peer| {
            peer.answer_all();
            ends.set(1);
        });
        let object = object_at(&client(strategy), server.address);
        in_threads(2, |n| assert_eq!(add(&object, n, 1), Ok(n + 1)));
        ended.reach(1);
    }
}

#[test]
fn a_call_without_time_is_a_timeout_and_the_connection_stays() {
    for strategy in STRATEGIES {
        let server = raw_server(Peer::answer_all);
        let object = object_at(&client(strategy), server.address);
        assert_eq!(add(&object, 1, 1), Ok(2));
        let hopeless = object.with_timeout(Duration::from_nanos(1));
        assert_eq!(
            kind_and_completion(add(&hopeless, 1, 1)),
            (Timeout, CompletionStatus::No)
        );
        assert_eq!(add(&object.with_timeout(PATIENCE), 1, 1), Ok(2));
        assert_eq!(server.connections(), 1, "{strategy:?}");
    }
}

#[test]
fn a_request_waits_for_one_message_of_each_thread_that_floods() {
    // Not `active`: its queue has an order of its own.
    for strategy in [ConnectionStrategy::Leader, ConnectionStrategy::Thread] {
        let is_read = Arc::new(Latch::default());
        let (of_server, requests) = (is_read.clone(), Arc::new(AtomicUsize::new(0)));
        let before = requests.clone();
        let server = raw_server(move |mut peer| {
            of_server.reach(1);
            while let Some((id, arguments)) = peer.request() {
                if arguments == (20, 22) {
                    peer.answer((id, arguments));
                    break;
                }
                before.fetch_add(1, Ordering::SeqCst);
            }
            peer.until_the_end();
        });
        let object = object_at(&client(strategy), server.address);
        let (sent, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let threads = [const { AtomicU32::new(0) }; 3];
        let flood = |thread: &AtomicU32| {
            thread.store(chronorb_rt::thread_id(), Ordering::SeqCst);
            let payload = [7; 8 << 10];
            while !is_over.load(Ordering::SeqCst) {
                let note = Operation::oneway("note");
                let flooded = object.invoke_oneway(&note, &|e| e.write_octet_seq(&payload));
                assert_eq!(flooded, Ok(()));
                sent.fetch_add(1, Ordering::SeqCst);
            }
        };
        std::thread::scope(|scope| {
            let [first, second, third] = &threads;
            scope.spawn(|| flood(first));
            scope.spawn(|| flood(second));
            // The buffers of the sockets are full: one waits for room, and one for its turn.
            wait_until_all_sleep(&threads[..2], &sent);
            let call = scope.spawn(|| {
                third.store(chronorb_rt::thread_id(), Ordering::SeqCst);
                add(&object, 20, 22)
            });
            wait_until_all_sleep(&threads, &sent);
            let most = sent.load(Ordering::SeqCst) + 2;
            is_read.set(1);
            assert_eq!(call.join().expect("it does not panic"), Ok(42));
            is_over.store(true, Ordering::SeqCst);
            let before = requests.load(Ordering::SeqCst);
            assert!(before <= most, "{before} of {most} before it, {strategy:?}");
        });
    }
}

/// Waits until all threads sleep, and nothing more is sent.
fn wait_until_all_sleep(threads: &[AtomicU32], sent: &AtomicUsize) {
    let deadline = Deadline::after(PATIENCE);
    let (mut since, mut seen) = (0, 0);
    while since < 200 {
        assert!(!deadline.has_passed(), "the threads go on");
        std::thread::yield_now();
        let now = sent.load(Ordering::SeqCst);
        let is_still = now == seen && threads.iter().all(sleeps);
        (since, seen) = (if is_still { since + 1 } else { 0 }, now);
    }
}

fn sleeps(thread: &AtomicU32) -> bool {
    let path = format!("/proc/self/task/{}/stat", thread.load(Ordering::SeqCst));
    std::fs::read_to_string(path).is_ok_and(|stat| stat.contains(") S "))
}
