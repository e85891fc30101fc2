//! The number and lifetime of a client's connections, and their use by priority.

use chronorb_giop::minor;
use chronorb_orb::SystemExceptionKind::{NoResources, Timeout};
use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::{ClientPolicy, RebindMode, SetOverride};
use chronorb_orb::{
    CompletionStatus, ConnectionStrategy, Object, Operation, Orb, OrbConfig, SystemException,
};
use chronorb_rt::Monotonic;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::adapters::until;
use crate::support::asynchronous::begin_add;
use crate::support::laned::{LANES, PROPAGATED, Pool, bands, corba, laned};
use crate::support::raw_server::{Message, Peer, RawServer, object_at, raw_server, raw_server_at};
use crate::support::strategies::{SHARED, STRATEGIES, WITH_THREAD};
use crate::support::{Latch, add, orb_with, served, with_longer_times, with_short_timeout};

fn client_with(strategy: ConnectionStrategy, configure: impl FnOnce(&mut OrbConfig)) -> Orb {
    orb_with(|config| {
        config.client_connection = strategy;
        configure(config);
    })
}

/// Returns servers, and an object of each.
fn servers<const N: usize>(client: &Orb) -> [(RawServer, Object); N] {
    [(); N].map(|()| {
        let server = raw_server(Peer::answer_all);
        let object = object_at(client, server.address);
        (server, object)
    })
}

fn keeps_its_connection(object: &Object) -> Object {
    let policy = ClientPolicy::Rebind(RebindMode::NoReconnect);
    object
        .with_policy_overrides(&[policy], SetOverride::Add)
        .expect("there is one of the kind")
}

#[test]
fn at_the_limit_the_connection_that_was_used_least_recently_is_closed() {
    for strategy in STRATEGIES {
        let client = client_with(strategy, |config| config.max_client_connections = 2);
        let [(a, to_a), (b, to_b), (c, to_c)] = servers(&client);
        for object in [&to_a, &to_b, &to_a, &to_c, &to_a, &to_b] {
            assert_eq!(add(object, 1, 2), Ok(3));
        }
        let connections = [&a, &b, &c].map(RawServer::connections);
        assert_eq!(connections, [1, 2, 1], "{strategy:?}");
    }
}

#[test]
fn threads_that_connect_at_the_limit_lose_no_request() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 40;
    for strategy in SHARED {
        // More than the threads have in use at once, and fewer than there are servers.
        let client = client_with(strategy, |config| {
            config.max_client_connections = 2 * THREADS as u32;
        });
        let received = Arc::new(AtomicUsize::new(0));
        let servers = [(); 4 * THREADS].map(|()| {
            let received = received.clone();
            raw_server(move |mut peer: Peer| {
                while peer.message().is_some() {
                    received.fetch_add(1, Ordering::SeqCst);
                }
            })
        });
        let objects = servers.map(|server| object_at(&client, server.address));
        std::thread::scope(|scope| {
            for first in 0..THREADS {
                let objects = &objects;
                scope.spawn(move || {
                    for at in 0..ROUNDS * objects.len() {
                        let object = &objects[(first + at) % objects.len()];
                        let sent = object.invoke_oneway(&Operation::oneway("add"), &|e| {
                            e.write_i32(1)?;
                            e.write_i32(2)
                        });
                        assert_eq!(sent, Ok(()), "{strategy:?}");
                    }
                });
            }
        });
        let sent = THREADS * ROUNDS * objects.len();
        until("all arrive", || received.load(Ordering::SeqCst) == sent);
    }
}

#[test]
fn the_host_with_most_connections_makes_room_for_others() {
    for strategy in STRATEGIES {
        let client = client_with(strategy, |config| config.max_client_connections = 3);
        let [(a, to_a), (b, to_b), (c, to_c)] = servers(&client);
        let elsewhere = raw_server_at("127.0.0.2:0", Peer::answer_all);
        let to_elsewhere = object_at(&client, elsewhere.address);
        for object in [&to_elsewhere, &to_a, &to_b, &to_c, &to_a, &to_elsewhere] {
            assert_eq!(add(object, 1, 2), Ok(3));
        }
        let connections = [&elsewhere, &a, &b, &c].map(RawServer::connections);
        assert_eq!(connections, [1, 2, 1, 1], "{strategy:?}");
    }
}

#[test]
fn connections_in_use_are_not_closed_for_others() {
    for strategy in STRATEGIES {
        let client = client_with(strategy, |config| config.max_client_connections = 1);
        let (called, answer) = (Arc::new(Latch::default()), Arc::new(Latch::default()));
        let (calls, answers) = (called.clone(), answer.clone());
        let slow = raw_server(move |mut peer: Peer| {
            let request = peer.request().expect("one");
            calls.set(1);
            answers.reach(1);
            peer.answer(request);
            peer.until_the_end();
        });
        let slow = object_at(&client, slow.address);
        let [(_, other)] = servers(&client);
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| add(&slow, 1, 2));
            called.reach(1);
            let refused = SystemException::no(NoResources, minor::TOO_MANY_CONNECTIONS);
            assert_eq!(add(&other, 1, 2), Err(refused), "{strategy:?}");
            answer.set(1);
            assert_eq!(caller.join().expect("no panic"), Ok(3));
        });
        // The thread has ended, and its connection with it.
        assert_eq!(add(&other, 1, 2), Ok(3), "{strategy:?}");
    }
}

#[test]
fn connections_that_may_not_be_made_again_are_not_closed_for_others() {
    for strategy in STRATEGIES {
        let client = client_with(strategy, |config| {
            config.max_client_connections = 1;
            config.client_idle_timeout = Some(Duration::from_nanos(1));
        });
        let [(_, kept), (_, other)] = servers(&client);
        let kept = keeps_its_connection(&kept);
        assert_eq!(add(&kept, 1, 2), Ok(3));
        let refused = SystemException::no(NoResources, minor::TOO_MANY_CONNECTIONS);
        assert_eq!(add(&other, 1, 2), Err(refused), "{strategy:?}");
        assert_eq!(add(&kept, 1, 2), Ok(3));
    }
}

#[test]
fn idle_connections_are_closed_when_a_thread_calls() {
    for strategy in STRATEGIES {
        let closed = Arc::new(Latch::default());
        let closes = closed.clone();
        let client = client_with(strategy, |config| {
            config.client_idle_timeout = Some(Duration::from_nanos(1));
        });
        let idle = raw_server(move |peer: Peer| {
            peer.answer_all();
            closes.set(1);
        });
        assert_eq!(add(&object_at(&client, idle.address), 1, 2), Ok(3));
        let [(_, other)] = servers(&client);
        assert_eq!(add(&other, 1, 2), Ok(3));
        closed.reach(1);
    }
}

#[test]
fn without_an_idle_time_out_connections_stay() {
    for strategy in STRATEGIES {
        let client = client_with(strategy, |_| {});
        let [(a, to_a), (b, to_b)] = servers(&client);
        for object in [&to_a, &to_b, &to_a, &to_b] {
            assert_eq!(add(object, 1, 2), Ok(3));
        }
        assert_eq!([&a, &b].map(RawServer::connections), [1, 1]);
    }
}

/// Returns the number of connections to a server when two threads call it at each of two
/// priorities.
fn connections_of_two_priorities(client: &Orb) -> usize {
    let [(server, object)] = servers(client);
    let (done, arrived) = (Latch::default(), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for value in [10, 20, 10, 20] {
            let (object, done, arrived) = (&object, &done, &arrived);
            scope.spawn(move || {
                let current = client.rt_current();
                current.set_priority(corba(value)).expect("it is mapped");
                assert_eq!(add(object, 1, 2), Ok(3));
                if arrived.fetch_add(1, Ordering::SeqCst) == 3 {
                    done.set(1);
                }
                done.reach(1);
            });
        }
    });
    server.connections()
}

#[test]
fn priorities_share_no_connection_unless_that_is_asked_for() {
    let unshared = STRATEGIES.map(|strategy| match strategy {
        ConnectionStrategy::Exclusive => (strategy, false, 4),
        _ => (strategy, false, 2),
    });
    let shared = SHARED.map(|strategy| (strategy, true, 1));
    for (strategy, share, expected) in unshared.into_iter().chain(shared) {
        let client = client_with(strategy, |config| {
            config.share_connections_across_priorities = share;
        });
        let connections = connections_of_two_priorities(&client);
        assert_eq!(connections, expected, "{strategy:?} {share}");
    }
}

#[test]
fn the_thread_of_a_connection_has_its_priority() {
    for strategy in WITH_THREAD {
        the_thread_has_its_priority(strategy);
    }
}

fn the_thread_has_its_priority(strategy: ConnectionStrategy) {
    let client = client_with(strategy, |config| config.orb_id = "prio".to_owned());
    let [(_, object)] = servers(&client);
    let value = corba(20_000);
    let done = Latch::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            client
                .rt_current()
                .set_priority(value)
                .expect("it is mapped");
            assert_eq!(add(&object, 1, 2), Ok(3));
            let threads = chronorb_rt::list();
            let reader = threads.iter().find(|thread| thread.name == "conn.0 prio");
            let reader = reader.expect("it is there while the connection is");
            let caller = chronorb_rt::current().expect("it has a policy");
            assert_eq!(reader.scheduling, caller);
            done.set(1);
        });
        done.reach(1);
    });
}

#[test]
fn the_thread_of_a_connection_for_all_priorities_has_that_of_the_most_urgent_one() {
    for strategy in WITH_THREAD {
        let client = client_with(strategy, |config| {
            config.orb_id = "most".to_owned();
            config.share_connections_across_priorities = true;
        });
        let [(server, object)] = servers(&client);
        let (called, done) = (Latch::default(), Latch::default());
        std::thread::scope(|scope| {
            // All threads keep their connection until the last one has checked.
            let values = [None, Some(10_000), Some(20_000), Some(15_000)];
            let most = [None, Some(10_000), Some(20_000), Some(20_000)];
            for (turn, (value, most)) in values.into_iter().zip(most).enumerate() {
                let (client, object, called, done) = (&client, &object, &called, &done);
                scope.spawn(move || {
                    called.reach(turn as u32);
                    let current = client.rt_current();
                    if let Some(value) = value {
                        current.set_priority(corba(value)).expect("it is mapped");
                    }
                    assert_eq!(add(object, 1, 2), Ok(3));
                    let threads = chronorb_rt::list();
                    let own = threads.iter().find(|thread| thread.name == "conn.0 most");
                    let own = own.expect("it is there while the connection is");
                    if let Some(most) = most {
                        current.set_priority(corba(most)).expect("it is mapped");
                        let wanted = chronorb_rt::current().expect("it has a policy");
                        assert_eq!(own.scheduling, wanted, "{strategy:?}, after {value:?}");
                    }
                    called.set(turn as u32 + 1);
                    done.reach(1);
                });
            }
            called.reach(4);
            done.set(1);
        });
        assert_eq!(server.connections(), 1, "{strategy:?}");
    }
}

#[test]
fn a_thread_that_becomes_more_urgent_takes_the_thread_of_its_connection_along() {
    for strategy in WITH_THREAD {
        let client = client_with(strategy, |config| {
            config.orb_id = "rise".to_owned();
            config.share_connections_across_priorities = true;
        });
        let [(server, object)] = servers(&client);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(add(&object, 1, 2), Ok(3));
                for value in [10_000, 20_000] {
                    let current = client.rt_current();
                    current.set_priority(corba(value)).expect("it is mapped");
                    assert_eq!(add(&object, 1, 2), Ok(3));
                    let threads = chronorb_rt::list();
                    let own = threads.iter().find(|thread| thread.name == "conn.0 rise");
                    let own = own.expect("it is there while the connection is");
                    let caller = chronorb_rt::current().expect("it has a policy");
                    assert_eq!(own.scheduling, caller, "{strategy:?}, at {value}");
                }
            });
        });
        assert_eq!(server.connections(), 1, "{strategy:?}");
    }
}

#[test]
fn private_connections_and_bands_hold_for_shared_connections_too() {
    for strategy in SHARED {
        let client = client_with(strategy, |_| {});
        let [(server, object)] = servers(&client);
        let private = object
            .with_policy_overrides(&[ClientPolicy::PrivateConnection], SetOverride::Add)
            .expect("there is one of the kind");
        for object in [&object, &private, &object, &private] {
            assert_eq!(add(object, 1, 2), Ok(3));
        }
        assert_eq!(server.connections(), 2, "{strategy:?}");

        let s = laned(
            Pool::Plain,
            &[Policy::PriorityModel(PROPAGATED, corba(LANES[0]))],
        );
        let text = s.server.object_to_string(&s.object);
        let object = client.string_to_object(&text).expect("the reference reads");
        let banded = ClientPolicy::PriorityBandedConnection(bands(&[(0, 15), (16, 40)]));
        let object = object
            .with_policy_overrides(&[banded], SetOverride::Add)
            .expect("there is one of the kind");
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| {
                for value in [3, 10, 20, 40] {
                    let current = client.rt_current();
                    current.set_priority(corba(value)).expect("it is mapped");
                    assert_eq!(add(&object, 1, 2), Ok(3));
                }
                assert_eq!(object.validate_connection(), Ok(()));
                s.connections().len()
            });
            assert_eq!(caller.join().expect("no panic"), 2, "{strategy:?}");
        });
    }
}

#[test]
fn a_call_that_takes_longer_than_the_idle_time_out_is_no_idleness() {
    let stays = |strategy, time_out| {
        let client = client_with(strategy, |config| {
            config.client_idle_timeout = Some(time_out)
        });
        let server = raw_server(move |mut peer: Peer| {
            while let Some(request) = peer.request() {
                chronorb_rt::sleep_until(Monotonic::now() + time_out * 5 / 4);
                peer.answer(request);
            }
        });
        let object = object_at(&client, server.address);
        for _ in 0..2 {
            assert_eq!(add(&object, 1, 2), Ok(3));
        }
        server.connections() == 1
    };
    std::thread::scope(|scope| {
        for strategy in STRATEGIES {
            scope.spawn(move || {
                // On a busy machine the time may also be over between the calls.
                let first = Duration::from_millis(100);
                with_longer_times(first, |time_out| stays(strategy, time_out).then_some(()));
            });
        }
    });
}

#[test]
fn a_call_that_was_sent_is_not_cut_off_because_the_connection_was_idle() {
    for strategy in SHARED {
        let s = served();
        let client = client_with(strategy, |config| {
            config.client_idle_timeout = Some(Duration::from_nanos(1));
        });
        let text = s.server.object_to_string(&s.object);
        let object = client.string_to_object(&text).expect("the reference reads");
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for n in 0..2000 {
                        match add(&object, n, 1) {
                            Ok(sum) => assert_eq!(sum, n + 1),
                            // It found closed connections repeatedly.
                            Err(e) => assert_eq!(e.completed, CompletionStatus::No, "{e}"),
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn a_reply_that_comes_late_is_not_taken_for_the_end_of_the_connection() {
    for strategy in SHARED {
        let client = client_with(strategy, |_| {});
        let late = Arc::new(Latch::default());
        let sent = late.clone();
        let server = raw_server(move |mut peer: Peer| {
            let first = peer.request().expect("the first call");
            peer.answer(first);
            if peer.number > 0 {
                return peer.answer_all();
            }
            let second = peer.request().expect("the second call");
            let request = peer.request().expect("the third call");
            // A sign of life since the third request was sent.
            peer.answer(second);
            // The client has given up when it cancels.
            assert!(matches!(peer.message(), Some(Message::Cancel { .. })));
            peer.answer(request);
            sent.set(1);
            peer.answer_all();
        });
        let object = keeps_its_connection(&object_at(&client, server.address));
        assert_eq!(add(&object, 1, 2), Ok(3));
        let mut second = Some(begin_add(&object, 3, 4).expect("it begins"));
        let hasty = with_short_timeout(&object, |hasty| {
            let hasty = begin_add(hasty, 1, 2)?;
            if let Some(second) = second.take() {
                assert_eq!(second.wait(), Ok(7), "{strategy:?}");
            }
            hasty.wait()
        });
        let hasty = hasty.expect_err("no answer comes in time");
        assert_eq!(hasty.kind, Timeout, "{strategy:?}");
        late.reach(1);
        // A thread that makes a new connection checks which ones have ended.
        let [(_other, to_other)] = servers(&client);
        assert_eq!(add(&to_other, 1, 2), Ok(3));
        assert_eq!(add(&object, 2, 3), Ok(5), "{strategy:?}");
        assert_eq!(server.connections(), 1, "{strategy:?}");
    }
}
