//! Requests that wait for their POA without occupying a thread of their lane.

use chronorb_orb::poa::{Poa, Policy, PriorityModel, ThreadModel};
use chronorb_orb::rtcorba::{Lane, Priority, ThreadpoolLanes};
use chronorb_orb::{Object, OrbConfig, SystemExceptionKind as Kind, ThreadpoolStrategy};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::adapters::{
    Log, Site, ask, ask_for, named, omg, site_with, teller, told, until, waiter_if_asked,
};
use crate::support::{Latch, PATIENCE};

const SINGLE: Policy = Policy::Thread(ThreadModel::SingleThread);
const STRATEGIES: &[ThreadpoolStrategy] = &[
    ThreadpoolStrategy::LeaderFollowers,
    ThreadpoolStrategy::HalfSyncHalfAsync,
    #[cfg(feature = "baselines")]
    ThreadpoolStrategy::WorkerPool,
    ThreadpoolStrategy::Reactive,
];

/// Returns a site whose server has one serving thread.
fn one_thread(strategy: ThreadpoolStrategy, configure: impl FnOnce(&mut OrbConfig)) -> Site {
    site_with(|config| {
        config.threads = 1.into();
        config.threadpool_strategy = strategy;
        configure(config);
    })
}

/// Returns a POA with its own manager, which holds requests.
fn holding(s: &Site, name: &str) -> Poa {
    let poa = s.root.create_poa(name, None, &[]);
    poa.expect("the name is free")
}

/// Returns the number of requests that wait in the only lane.
fn waiting(s: &Site) -> u32 {
    s.server.snapshot().pools[0].lanes[0].queued
}

#[test]
fn one_thread_serves_others_while_requests_wait_for_a_holding_and_a_busy_poa() {
    for strategy in STRATEGIES.iter().copied() {
        let s = one_thread(strategy, |_| {});
        let held = holding(&s, "held");
        let single = s.poa("single", &[SINGLE]);
        let latch = Arc::new(Latch::default());
        let near = single.serve(waiter_if_asked(&latch));
        let near = near.expect("it is new");
        let (busy, held_object) = (s.remote(&near), held.serve(named("held")));
        let held_object = s.remote(&held_object.expect("it is new"));
        let free = s.remote(&s.root.serve(named("free")).expect("it is new"));
        std::thread::scope(|threads| {
            // A collocated call: the caller's own thread serves it.
            let inside = threads.spawn(|| ask_for(&near, "wait"));
            latch.reach(1);
            let asking: Vec<_> = (0..8)
                .map(|n| {
                    let (held, busy) = (&held_object, &busy);
                    threads.spawn(move || match n % 2 {
                        0 => ask(held),
                        _ => ask(busy),
                    })
                })
                .collect();
            until("all wait", || waiting(&s) == 8);
            for _ in 0..10 {
                assert_eq!(ask(&free), told("free"), "{strategy:?}");
            }
            assert!(asking.iter().all(|asking| !asking.is_finished()));
            held.manager().activate().expect("it is not inactive");
            until("the held ones go on", || waiting(&s) == 4);
            latch.set(2);
            assert_eq!(inside.join().expect("no panic"), told("done"));
            for (n, asking) in asking.into_iter().enumerate() {
                let expected = if n % 2 == 0 { "held" } else { "done" };
                let answer = asking.join().expect("no panic");
                assert_eq!(answer, told(expected), "{strategy:?}");
            }
        });
        assert_eq!(waiting(&s), 0);
    }
}

#[test]
fn a_request_waits_for_a_name_that_the_program_has_still_to_register() {
    let s = one_thread(ThreadpoolStrategy::LeaderFollowers, |_| {});
    let object = s.root.serve(named("late")).expect("it is new");
    let profile = &object.ior().profiles[0];
    let profile = chronorb_giop::IiopProfile::decode(&profile.data).expect("our own");
    let by_name = |name: &str| {
        let url = format!("corbaloc::127.0.0.1:{}/{name}", profile.port);
        s.client.string_to_object(&url).expect("it is correct")
    };
    let (late, never) = (by_name("Late"), by_name("Never"));
    s.root.manager().hold_requests(false).expect("it is active");
    std::thread::scope(|threads| {
        let asking = [&late, &never].map(|object| threads.spawn(move || ask(object)));
        until("both wait", || waiting(&s) == 2);
        let registered = s.server.register_initial_reference("Late", &object);
        registered.expect("the name is free");
        s.root.manager().activate().expect("it is not inactive");
        let [late, never] = asking.map(|asking| asking.join().expect("no panic"));
        assert_eq!(late, told("late"));
        assert_eq!(never, Err(omg(Kind::ObjectNotExist, 2)));
    });
}

/// Calls an operation in another thread, and returns when the request waits.
fn leave<'s>(
    s: &'s Site,
    threads: &'s std::thread::Scope<'s, '_>,
    object: &'s Object,
    operation: &'static str,
    priority: Option<i16>,
) {
    let before = waiting(s);
    threads.spawn(move || {
        if let Some(priority) = priority.and_then(Priority::new) {
            let current = s.client.rt_current();
            current.set_priority(priority).expect("it has a native one");
        }
        ask_for(object, operation)
    });
    until("it waits", || waiting(s) == before + 1);
}

#[test]
fn they_go_on_in_order_the_most_urgent_first() {
    let s = one_thread(ThreadpoolStrategy::LeaderFollowers, |_| {});
    let model = Policy::PriorityModel(
        PriorityModel::ClientPropagated,
        Priority::new(0).expect("not negative"),
    );
    for policies in [vec![model.clone()], vec![model, SINGLE]] {
        let name = format!("{}", policies.len());
        let poa = s.root.create_poa(&name, None, &policies);
        let poa = poa.expect("the name is free");
        let log = Arc::new(Log::default());
        let noted = log.clone();
        let servant = teller(move |call| {
            noted.note(String::from_utf8_lossy(call.operation()));
            Ok(String::new())
        });
        let object = s.remote(&poa.serve(servant).expect("it is new"));
        std::thread::scope(|threads| {
            leave(&s, threads, &object, "low", Some(100));
            leave(&s, threads, &object, "high", Some(20_000));
            leave(&s, threads, &object, "low, later", Some(100));
            leave(&s, threads, &object, "none", None);
            leave(&s, threads, &object, "high, later", Some(20_000));
            poa.manager().activate().expect("it is not inactive");
        });
        let order = ["high", "high, later", "low", "low, later", "none"];
        assert_eq!(log.take(), order);
    }
}

#[test]
fn they_are_bounded_in_number() {
    let s = one_thread(ThreadpoolStrategy::LeaderFollowers, |config| {
        config.max_held_requests = 2;
        config.hold_timeout = PATIENCE;
    });
    let poa = holding(&s, "held");
    let object = s.remote(&poa.serve(named("it")).expect("it is new"));
    std::thread::scope(|threads| {
        let waits = [(); 2].map(|()| threads.spawn(|| ask(&object)));
        until("both wait", || waiting(&s) == 2);
        assert_eq!(ask(&object), Err(omg(Kind::Transient, 1)), "too many");
        poa.manager().activate().expect("it is not inactive");
        for waits in waits {
            assert_eq!(waits.join().expect("no panic"), told("it"));
        }
    });
}

#[test]
fn they_are_bounded_in_time() {
    let s = one_thread(ThreadpoolStrategy::LeaderFollowers, |config| {
        config.hold_timeout = Duration::from_millis(20);
    });
    let poa = holding(&s, "held");
    let object = s.remote(&poa.serve(named("it")).expect("it is new"));
    std::thread::scope(|threads| {
        for waits in [(); 2].map(|()| threads.spawn(|| ask(&object))) {
            let answer = waits.join().expect("no panic");
            assert_eq!(answer, Err(omg(Kind::Transient, 1)));
        }
    });
    poa.manager().activate().expect("it is not inactive");
    assert_eq!(ask(&object), told("it"));
}

#[test]
fn their_manager_and_their_poa_may_go_away() {
    let s = one_thread(ThreadpoolStrategy::LeaderFollowers, |_| {});
    let poa = holding(&s, "held");
    let object = s.remote(&poa.serve(named("it")).expect("it is new"));
    std::thread::scope(|threads| {
        let asking = threads.spawn(|| ask(&object));
        until("it waits", || waiting(&s) == 1);
        poa.manager().discard_requests(true).expect("it is active");
        let answer = asking.join().expect("no panic");
        assert_eq!(answer, Err(omg(Kind::Transient, 1)));
        poa.manager().hold_requests(true).expect("it is active");
        let asking = threads.spawn(|| ask(&object));
        until("it waits", || waiting(&s) == 1);
        poa.destroy(true, true).expect("no servant calls it");
        poa.manager().activate().expect("it is not inactive");
        let answer = asking.join().expect("no panic");
        assert_eq!(answer.expect_err("it is gone").kind, Kind::ObjectNotExist);
    });
}

#[test]
fn one_thread_at_a_time_whatever_waits() {
    for strategy in STRATEGIES.iter().copied() {
        let s = site_with(|config| {
            config.threads = 3.into();
            config.threadpool_strategy = strategy;
        });
        let poa = s.poa("single", &[SINGLE]);
        let inside = Arc::new(AtomicBool::new(false));
        let noted = inside.clone();
        let servant = teller(move |_| {
            assert!(!noted.swap(true, Ordering::SeqCst), "another is here");
            std::thread::yield_now();
            noted.store(false, Ordering::SeqCst);
            Ok("done".to_owned())
        });
        let near = poa.serve(servant).expect("it is new");
        let far = s.remote(&near);
        std::thread::scope(|threads| {
            for object in [&far, &far, &far, &far, &far, &near] {
                threads.spawn(move || {
                    for _ in 0..200 {
                        assert_eq!(ask(object), told("done"), "{strategy:?}");
                    }
                });
            }
        });
        assert_eq!(waiting(&s), 0, "{strategy:?}");
    }
}

#[test]
fn a_more_urgent_request_lends_its_priority_and_others_of_its_lane_do_not_wait() {
    let s = site_with(|_| {});
    let priority = |value| Priority::new(value).expect("not negative");
    let lanes = ThreadpoolLanes {
        lanes: vec![Lane::new(priority(100), 1), Lane::new(priority(20_000), 2)],
        ..Default::default()
    };
    let pool = s.server.rt().create_threadpool_with_lanes(&lanes);
    let pool = Policy::Threadpool(pool.expect("the lanes open"));
    let model = Policy::PriorityModel(PriorityModel::ServerDeclared, priority(100));
    let poa = s.poa("single", &[pool.clone(), model.clone(), SINGLE]);
    let other = s.poa("other", &[pool, model]);
    let latch = Arc::new(Latch::default());
    let low = s.remote(&poa.serve(waiter_if_asked(&latch)).expect("it is new"));
    let high = |poa: &Poa, name: &str| {
        let id = poa.activate_object_with_priority(named(name), priority(20_000));
        let object = poa.id_to_reference(&id.expect("it is new"));
        s.remote(&object.expect("it is active"))
    };
    let (urgent, free) = (high(&poa, "urgent"), high(&other, "free"));
    std::thread::scope(|threads| {
        let busy = threads.spawn(|| ask_for(&low, "wait"));
        latch.reach(1);
        // One of them waits on its thread; the lane has another thread for the rest.
        let urgent = [(); 4].map(|()| threads.spawn(|| ask(&urgent)));
        for _ in 0..20 {
            assert_eq!(ask(&free), told("free"));
        }
        latch.set(2);
        assert_eq!(busy.join().expect("no panic"), told("done"));
        for urgent in urgent {
            assert_eq!(urgent.join().expect("no panic"), told("urgent"));
        }
    });
}
