//! Servants of objects that are not in the active object map: servant activators, servant locators,
//! default servants.

use chronorb_giop::LocateStatus;
use chronorb_orb::poa::{
    Cookie, ObjectId, Poa, Refusal, ServantActivator, ServantError, ServantLocator,
};
use chronorb_orb::{
    CompletionStatus, Object, Servant, SystemException, SystemExceptionKind as Kind,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::support::adapters::{
    DEFAULT, Log, MANAGER, MULTIPLE, NON_RETAIN, Site, USER, ask, ask_for, hex, id_teller, kind,
    locate, named, omg, site, skeleton_of, teller, told, until, waiter_if_asked,
};
use crate::support::{Latch, PROBE_ID};

type IncarnationResult = Result<Servant, Refusal>;
type Make = dyn Fn(&ObjectId, &Poa) -> IncarnationResult + Send + Sync;
type LocateResult = Result<(Servant, Cookie), Refusal>;
type Locate = dyn Fn(&ObjectId, &Poa, &str) -> LocateResult + Send + Sync;

/// An activator that runs a test's function, and keeps a log.
struct Activator {
    make: Box<Make>,
    take_back: Box<dyn Fn(&Poa) + Send + Sync>,
    log: Arc<Log>,
}

fn text(id: &ObjectId) -> String {
    String::from_utf8_lossy(id.as_bytes()).into_owned()
}

impl ServantActivator for Activator {
    fn incarnate(&self, id: &ObjectId, adapter: &Poa) -> IncarnationResult {
        self.log.note(format!("incarnate {}", text(id)));
        (self.make)(id, adapter)
    }

    fn etherealize(
        &self,
        id: &ObjectId,
        adapter: &Poa,
        servant: Servant,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    ) {
        (self.take_back)(adapter);
        drop(servant);
        let cleanup = if cleanup_in_progress { " cleanup" } else { "" };
        let remaining = if remaining_activations {
            " remaining"
        } else {
            ""
        };
        let id = text(id);
        self.log
            .note(format!("etherealize {id}{cleanup}{remaining}"));
    }
}

/// Returns a POA with an activator, and the activator's log.
fn activating(
    s: &Site,
    name: &str,
    make: impl Fn(&ObjectId, &Poa) -> IncarnationResult + Send + Sync + 'static,
) -> (Poa, Arc<Log>) {
    activating_with(s, name, make, |_| {})
}

fn activating_with(
    s: &Site,
    name: &str,
    make: impl Fn(&ObjectId, &Poa) -> IncarnationResult + Send + Sync + 'static,
    take_back: impl Fn(&Poa) + Send + Sync + 'static,
) -> (Poa, Arc<Log>) {
    let poa = s.poa(name, &[MANAGER, USER, MULTIPLE]);
    let log = Arc::new(Log::default());
    let activator = Activator {
        make: Box::new(make),
        take_back: Box::new(take_back),
        log: log.clone(),
    };
    poa.set_servant_activator(activator).expect("it retains");
    (poa, log)
}

/// Returns an object from the client's and the server's point of view.
fn far_and_near(s: &Site, poa: &Poa, id: &str) -> [Object; 2] {
    let near = poa.create_reference_with_id(&id.into(), PROBE_ID);
    let near = near.expect("ids are the test's");
    [s.remote(&near), near]
}

#[test]
fn an_object_is_incarnated_once_and_stays_active() {
    let s = site();
    let (poa, log) = activating(&s, "poa", |_, _| Ok(id_teller()));
    for id in ["a", "b"] {
        for object in far_and_near(&s, &poa, id)
            .iter()
            .chain(&far_and_near(&s, &poa, id))
        {
            assert_eq!(ask(object), told(&hex(id.as_bytes())));
        }
    }
    assert_eq!(log.take(), ["incarnate a", "incarnate b"]);
    assert_eq!(poa.active_objects(), 2);
    assert!(poa.id_to_servant(&"a".into()).is_ok());
}

#[test]
fn requests_that_come_meanwhile_wait_for_the_same_incarnation() {
    let s = site();
    let latch = Arc::new(Latch::default());
    let (poa, log) = {
        let latch = latch.clone();
        activating(&s, "poa", move |id, _| {
            if id.as_bytes() == b"slow" {
                latch.set(1);
                latch.reach(2);
            }
            Ok(id_teller())
        })
    };
    let [far, near] = far_and_near(&s, &poa, "slow");
    std::thread::scope(|threads| {
        let calls: Vec<_> = [&far, &near, &far, &near]
            .map(|object| threads.spawn(|| ask(object)))
            .into();
        latch.reach(1);
        // Another object does not wait for this one.
        assert_eq!(ask(&s.remote_to(&poa, "quick")), told(&hex(b"quick")));
        latch.set(2);
        for call in calls {
            assert_eq!(call.join().expect("no panic"), told(&hex(b"slow")));
        }
    });
    assert_eq!(log.take(), ["incarnate slow", "incarnate quick"]);
}

#[test]
fn servants_are_given_back_with_the_reason() {
    let s = site();
    let shared = id_teller();
    let (poa, log) = {
        let shared = shared.clone();
        activating(&s, "poa", move |_, _| Ok(shared.clone()))
    };
    for id in ["a", "b", "c"] {
        assert_eq!(ask(&s.remote_to(&poa, id)), told(&hex(id.as_bytes())));
    }
    // An object that the activator did not incarnate is etherealized in the same way.
    poa.activate_object_with_id("d", named("x"))
        .expect("it is free");
    log.take();
    for id in ["a", "d", "b", "c"] {
        poa.deactivate_object(&id.into()).expect("it is active");
    }
    assert_eq!(
        log.take(),
        [
            "etherealize a remaining",
            "etherealize d",
            "etherealize b remaining",
            "etherealize c",
        ]
    );
    assert_eq!(Arc::strong_count(&shared), 2, "ours and the activator's");
}

#[test]
fn the_end_of_the_adapter_says_so() {
    let s = site();
    for (name, etherealize) in [("back", true), ("dropped", false)] {
        let token = Arc::new(());
        let held = token.clone();
        let (poa, log) = activating(&s, name, move |_, _| {
            Ok(crate::support::adapters::holding(&held))
        });
        assert_eq!(ask(&s.remote_to(&poa, "a")), told(""));
        log.take();
        poa.destroy(etherealize, true).expect("no servant calls");
        let given = if etherealize {
            vec!["etherealize a cleanup"]
        } else {
            vec![]
        };
        assert_eq!(log.take(), given);
        drop(poa);
        until("the servant is dropped", || Arc::strong_count(&token) <= 2);
    }
}

#[test]
fn the_end_of_the_manager_says_so_too() {
    let s = site();
    for (name, etherealize) in [("back", true), ("kept", false)] {
        let (poa, log) = activating(&s, name, |_, _| Ok(id_teller()));
        let manager = s
            .server
            .poa_manager_factory()
            .create(name)
            .expect("it is new");
        let own = s
            .root
            .create_poa(
                &format!("{name} by itself"),
                Some(&manager),
                &[MANAGER, USER],
            )
            .expect("it is free");
        let activator = Activator {
            make: Box::new(|_, _| Ok(id_teller())),
            take_back: Box::new(|_| {}),
            log: log.clone(),
        };
        own.set_servant_activator(activator).expect("it retains");
        manager.activate().expect("it is not inactive");
        for poa in [&poa, &own] {
            assert_eq!(ask(&s.remote_to(poa, "x")), told(&hex(b"x")));
        }
        log.take();
        manager
            .deactivate(etherealize, true)
            .expect("no servant calls");
        // Only the POAs of this manager.
        let given = if etherealize {
            vec!["etherealize x cleanup"]
        } else {
            vec![]
        };
        assert_eq!(log.take(), given);
        assert_eq!(own.active_objects(), usize::from(!etherealize));
    }
}

#[test]
fn the_end_of_the_orb_gives_all_servants_back() {
    let s = site();
    let (poa, log) = activating(&s, "poa", |_, _| Ok(id_teller()));
    for id in ["a", "b"] {
        assert_eq!(ask(&s.remote_to(&poa, id)), told(&hex(id.as_bytes())));
    }
    log.take();
    s.server.shutdown(true).expect("no servant calls");
    let mut given = log.take();
    given.sort();
    assert_eq!(given, ["etherealize a cleanup", "etherealize b cleanup"]);
}

#[test]
fn a_servant_is_given_back_after_its_last_request() {
    let s = site();
    let latch = Arc::new(Latch::default());
    let (poa, log) = {
        let latch = latch.clone();
        activating(&s, "poa", move |_, _| Ok(waiter_if_asked(&latch)))
    };
    let [far, near] = far_and_near(&s, &poa, "x");
    assert_eq!(ask(&far), told("done"));
    std::thread::scope(|threads| {
        let calls = [&far, &near].map(|object| threads.spawn(|| ask_for(object, "wait")));
        latch.reach(1);
        poa.deactivate_object(&"x".into()).expect("it is active");
        assert_eq!(log.take(), ["incarnate x"]);
        latch.set(2);
        for call in calls {
            assert_eq!(call.join().expect("no panic"), told("done"));
        }
    });
    // The second call may have arrived after the deactivation.
    let events = log.take();
    assert_eq!(events[0], "etherealize x");
}

#[test]
fn a_new_incarnation_waits_until_the_old_servant_is_given_back() {
    let s = site();
    let latch = Arc::new(Latch::default());
    let (poa, log) = {
        let latch = latch.clone();
        activating_with(
            &s,
            "poa",
            |_, _| Ok(id_teller()),
            move |_| {
                latch.arrive();
                latch.reach(2);
            },
        )
    };
    let object = s.remote_to(&poa, "x");
    let explicit = s.remote_to(&poa, "y");
    for object in [&object, &explicit] {
        assert!(ask(object).is_ok());
    }
    log.take();
    std::thread::scope(|threads| {
        let poa = &poa;
        let giving = threads.spawn(|| poa.deactivate_object(&"x".into()));
        latch.reach(1);
        let asking = threads.spawn(|| ask(&object));
        let activating = threads.spawn(|| poa.activate_object_with_id("x", named("explicit")));
        // It does not delay other objects.
        assert_eq!(ask(&explicit), told(&hex(b"y")));
        assert_eq!(log.take(), Vec::<String>::new());
        latch.set(2);
        assert_eq!(giving.join().expect("no panic"), Ok(()));
        let by_hand = activating.join().expect("no panic").is_ok();
        let seen = asking.join().expect("no panic");
        let events = log.take();
        assert_eq!(events[0], "etherealize x", "{events:?}");
        let incarnated = events[1..] == ["incarnate x"];
        assert_ne!(by_hand, incarnated, "one of them was first");
        assert_eq!(seen, told(if by_hand { "explicit" } else { "78" }));
    });
}

#[test]
fn an_activator_may_refuse_forward_or_fail() {
    let s = site();
    let elsewhere = s.root.serve(named("elsewhere")).expect("it is new");
    let mut refused = omg(Kind::NoPermission, 7);
    refused.completed = CompletionStatus::Maybe;
    let (poa, log) = activating(&s, "poa", move |id, _| match id.as_bytes() {
        b"forward" => Err(Refusal::Forward(elsewhere.clone())),
        b"refuse" => Err(refused.into()),
        _ => panic!("as the test wants it"),
    });
    for object in far_and_near(&s, &poa, "forward") {
        assert_eq!(ask(&object), told("elsewhere"));
        assert_eq!(ask(&object), told("elsewhere"));
    }
    for object in far_and_near(&s, &poa, "refuse") {
        assert_eq!(ask(&object), Err(refused));
    }
    for object in far_and_near(&s, &poa, "panic") {
        assert_eq!(kind(ask(&object)), Kind::Unknown);
        assert_eq!(kind(ask(&object)), Kind::Unknown, "it is asked again");
    }
    assert_eq!(
        log.take()
            .iter()
            .filter(|e| *e == "incarnate panic")
            .count(),
        4
    );
    assert_eq!(poa.active_objects(), 0);
}

#[test]
fn a_servant_that_is_another_object_already_violates_uniqueness() {
    let s = site();
    let poa = s.poa("unique", &[MANAGER, USER]);
    let activator = Activator {
        make: Box::new(|_, _| Ok(skeleton_of(5))),
        take_back: Box::new(|_| {}),
        log: Arc::default(),
    };
    poa.set_servant_activator(activator).expect("it retains");
    assert_eq!(ask(&s.remote_to(&poa, "a")), told(""));
    let violation = omg(Kind::ObjAdapter, 5);
    for object in far_and_near(&s, &poa, "b") {
        assert_eq!(ask(&object), Err(violation));
    }
    assert_eq!(ask(&s.remote_to(&poa, "a")), told(""));
}

#[test]
fn an_etherealizer_sees_its_adapter_destroyed() {
    let s = site();
    let outcome = Arc::new(Log::default());
    let (poa, _) = {
        let outcome = outcome.clone();
        activating_with(
            &s,
            "poa",
            |_, _| Ok(id_teller()),
            move |poa| {
                let activated = poa.activate_object_with_id("late", named("x"));
                outcome.note(format!("{activated:?}"));
            },
        )
    };
    assert!(ask(&s.remote_to(&poa, "x")).is_ok());
    poa.destroy(true, true).expect("no servant calls");
    let outcome = outcome.take();
    assert_eq!(outcome.len(), 1);
    assert!(outcome[0].contains("ObjectNotExist"), "{outcome:?}");
}

#[test]
fn an_activator_that_panics_at_the_end_stops_nothing() {
    let s = site();
    let (poa, _) = activating_with(&s, "poa", |_, _| Ok(id_teller()), |_| panic!("on purpose"));
    let object = s.remote_to(&poa, "x");
    for _ in 0..3 {
        assert_eq!(ask(&object), told(&hex(b"x")));
        poa.deactivate_object(&"x".into()).expect("it is active");
    }
    poa.destroy(true, true).expect("no servant calls");
}

#[test]
fn a_servant_manager_cannot_wait_for_the_end_of_the_request_that_it_is_asked_for() {
    let s = site();
    let log = Arc::new(Log::default());
    let destroy = |log: &Arc<Log>| {
        let log = log.clone();
        move |poa: &Poa| {
            let error = poa
                .destroy(true, true)
                .expect_err("it would wait for itself");
            log.note(format!(
                "{}",
                error.exception() == omg(Kind::BadInvOrder, 3)
            ));
        }
    };
    let (poa, _) = {
        let destroy = destroy(&log);
        activating(&s, "activating", move |_, poa| {
            destroy(poa);
            Ok(id_teller())
        })
    };
    let locating = Locator::set(&s, "locating", {
        let destroy = destroy(&log);
        move |_, poa, _| {
            destroy(poa);
            Ok((id_teller(), None))
        }
    });
    for poa in [&poa, &locating.poa] {
        for object in far_and_near(&s, poa, "x") {
            assert_eq!(ask(&object), told("78"));
        }
    }
    assert_eq!(
        log.take(),
        ["true", "true", "true"],
        "an active object asks no manager"
    );
}

/// A locator that runs a test's function, and keeps a log of pairs.
struct ScriptedLocator {
    make: Box<Locate>,
    log: Arc<Log>,
}

impl ServantLocator for ScriptedLocator {
    fn preinvoke(&self, id: &ObjectId, adapter: &Poa, operation: &str) -> LocateResult {
        self.log.note(format!("pre {} {operation}", text(id)));
        (self.make)(id, adapter, operation)
    }

    fn postinvoke(
        &self,
        id: &ObjectId,
        _: &Poa,
        operation: &str,
        cookie: Cookie,
        servant: Servant,
    ) {
        drop(servant);
        let cookie = cookie.and_then(|cookie| cookie.downcast::<u32>().ok());
        let cookie = cookie.map_or(0, |cookie| *cookie);
        self.log
            .note(format!("post {} {operation} {cookie}", text(id)));
    }
}

struct Locator {
    poa: Poa,
    log: Arc<Log>,
}

impl Locator {
    fn set(
        s: &Site,
        name: &str,
        make: impl Fn(&ObjectId, &Poa, &str) -> LocateResult + Send + Sync + 'static,
    ) -> Self {
        let poa = s.poa(name, &[MANAGER, NON_RETAIN, USER]);
        let log = Arc::new(Log::default());
        let locator = ScriptedLocator {
            make: Box::new(make),
            log: log.clone(),
        };
        poa.set_servant_locator(locator)
            .expect("it retains nothing");
        Self { poa, log }
    }
}

fn cookie(value: u32) -> Cookie {
    Some(Box::new(value))
}

#[test]
fn a_locator_is_asked_for_each_request_and_gets_its_cookie_back() {
    let s = site();
    let token = Arc::new(());
    let l = {
        let token = token.clone();
        Locator::set(&s, "poa", move |id, _, _| {
            let token = token.clone();
            let servant = teller(move |call| {
                let _ = &token;
                let current = call.orb().poa_current();
                let id = current.object_id().expect("a request is in progress");
                Ok(hex(id.as_bytes()))
            });
            Ok((servant, cookie(id.as_bytes().len() as u32)))
        })
    };
    for object in far_and_near(&s, &l.poa, "abc") {
        assert_eq!(ask_for(&object, "one"), told(&hex(b"abc")));
        assert_eq!(ask_for(&object, "two"), told(&hex(b"abc")));
        assert_eq!(
            l.log.take(),
            [
                "pre abc one",
                "post abc one 3",
                "pre abc two",
                "post abc two 3"
            ]
        );
    }
    assert_eq!(l.poa.active_objects(), 0);
    assert_eq!(Arc::strong_count(&token), 2, "each servant was given back");
}

#[test]
fn what_was_begun_is_ended_whatever_the_servant_does() {
    let s = site();
    let raised = SystemException::maybe(Kind::NoPermission, 42);
    let l = Locator::set(&s, "poa", move |_, _, _| {
        let servant = teller(move |call| match call.operation() {
            b"raise" => Err(raised),
            _ => panic!("as the test wants it"),
        });
        Ok((servant, cookie(1)))
    });
    for object in far_and_near(&s, &l.poa, "x") {
        assert_eq!(ask_for(&object, "raise"), Err(raised));
        assert_eq!(kind(ask_for(&object, "panic")), Kind::Unknown);
        let ended = [
            "pre x raise",
            "post x raise 1",
            "pre x panic",
            "post x panic 1",
        ];
        assert_eq!(l.log.take(), ended);
    }
}

#[test]
fn what_was_not_begun_is_not_ended() {
    let s = site();
    let elsewhere = s.root.serve(named("elsewhere")).expect("it is new");
    let refused = omg(Kind::NoPermission, 7);
    let l = Locator::set(&s, "poa", move |id, _, _| match id.as_bytes() {
        b"forward" => Err(Refusal::Forward(elsewhere.clone())),
        b"refuse" => Err(refused.into()),
        _ => panic!("as the test wants it"),
    });
    for object in far_and_near(&s, &l.poa, "forward") {
        assert_eq!(ask(&object), told("elsewhere"));
    }
    for object in far_and_near(&s, &l.poa, "refuse") {
        assert_eq!(ask(&object), Err(refused));
    }
    for object in far_and_near(&s, &l.poa, "panic") {
        assert_eq!(kind(ask(&object)), Kind::Unknown);
    }
    let log = l.log.take();
    assert!(log.iter().all(|event| event.starts_with("pre ")), "{log:?}");
}

#[test]
fn requests_of_a_locator_run_side_by_side() {
    let s = site();
    let latch = Arc::new(Latch::default());
    let l = {
        let latch = latch.clone();
        Locator::set(&s, "poa", move |_, _, _| {
            Ok((waiter_if_asked(&latch), None))
        })
    };
    let object = s.remote_to(&l.poa, "x");
    std::thread::scope(|threads| {
        let busy = threads.spawn(|| ask_for(&object, "wait"));
        latch.reach(1);
        assert_eq!(ask(&object), told("done"));
        latch.set(2);
        assert_eq!(busy.join().expect("no panic"), told("done"));
    });
    assert_eq!(l.log.len(), 4);
}

#[test]
fn every_object_answers_what_all_objects_do() {
    let s = site();
    let (activating, log) = activating(&s, "activator", |id, _| match id.as_bytes() {
        b"x" => Ok(id_teller()),
        _ => Err(omg(Kind::ObjectNotExist, 0).into()),
    });
    let located = Locator::set(&s, "locator", |id, _, _| match id.as_bytes() {
        b"x" => Ok((id_teller(), None)),
        _ => Err(omg(Kind::ObjectNotExist, 0).into()),
    });
    let default = s.poa("default", &[DEFAULT, MULTIPLE, NON_RETAIN, USER]);
    default.set_servant(id_teller()).expect("it uses one");
    let map = s.poa("map", &[USER]);
    map.activate_object_with_id("x", id_teller())
        .expect("it is free");
    for (poa, serves_all) in [
        (&activating, false),
        (&located.poa, false),
        (&default, true),
        (&map, false),
    ] {
        for object in far_and_near(&s, poa, "x") {
            assert_eq!(object.is_a(PROBE_ID), Ok(true), "{poa:?}");
            assert_eq!(object.is_a("IDL:Test/Other:1.0"), Ok(false), "{poa:?}");
            assert_eq!(object.non_existent(), Ok(false), "{poa:?}");
        }
        for object in far_and_near(&s, poa, "y") {
            assert_eq!(object.non_existent(), Ok(!serves_all), "{poa:?}");
        }
        let [far, _] = far_and_near(&s, poa, "x");
        assert_eq!(locate(&far), LocateStatus::ObjectHere, "{poa:?}");
    }
    assert_eq!(log.take()[0], "incarnate x");
    assert!(located.log.take().contains(&"pre x _is_a".to_owned()));
    let nobody = s.remote_to(&map, "y");
    assert_eq!(locate(&nobody), LocateStatus::UnknownObject);
}

#[test]
fn without_a_manager_or_default_servant_it_is_obj_adapter() {
    let s = site();
    for (n, (policies, minor)) in [
        (vec![MANAGER, USER], 4),
        (vec![MANAGER, NON_RETAIN, USER], 4),
        (vec![DEFAULT, MULTIPLE, USER], 3),
        (vec![DEFAULT, MULTIPLE, NON_RETAIN, USER], 3),
    ]
    .iter()
    .enumerate()
    {
        let poa = s.poa(&n.to_string(), policies);
        for object in far_and_near(&s, &poa, "x") {
            assert_eq!(ask(&object), Err(omg(Kind::ObjAdapter, *minor)));
        }
        let [far, _] = far_and_near(&s, &poa, "x");
        assert_eq!(locate(&far), LocateStatus::UnknownObject);
    }
}

#[test]
fn a_default_servant_serves_all_objects_that_are_not_active() {
    let s = site();
    let retains = s.poa("retains", &[DEFAULT, MULTIPLE, USER]);
    let forgets = s.poa("forgets", &[DEFAULT, MULTIPLE, USER, NON_RETAIN]);
    assert_eq!(retains.servant().err(), Some(ServantError::NoServant));
    for poa in [&retains, &forgets] {
        poa.set_servant(id_teller()).expect("it uses one");
        for id in ["a", "b", ""] {
            for object in far_and_near(&s, poa, id) {
                assert_eq!(ask(&object), told(&hex(id.as_bytes())));
            }
        }
        let servant = poa.servant().expect("it was set");
        let found = poa.id_to_servant(&"any".into()).expect("it serves all");
        assert_eq!(found.identity(), servant.identity());
    }
    retains
        .activate_object_with_id("a", named("its own"))
        .expect("it is free");
    for object in far_and_near(&s, &retains, "a") {
        assert_eq!(ask(&object), told("its own"));
    }
    retains
        .deactivate_object(&"a".into())
        .expect("it is active");
    for object in far_and_near(&s, &retains, "a") {
        assert_eq!(ask(&object), told(&hex(b"a")));
    }
}

#[test]
fn a_default_servant_may_be_replaced_while_it_serves() {
    let s = site();
    let poa = s.poa("poa", &[DEFAULT, MULTIPLE, USER]);
    let latch = Arc::new(Latch::default());
    let first = waiter_if_asked(&latch);
    let alive = Arc::downgrade(&first);
    poa.set_servant(first).expect("it uses one");
    let object = s.remote_to(&poa, "x");
    std::thread::scope(|threads| {
        let busy = threads.spawn(|| ask_for(&object, "wait"));
        latch.reach(1);
        poa.set_servant(named("second")).expect("it uses one");
        assert_eq!(ask(&object), told("second"));
        assert!(alive.strong_count() > 0, "the first one is in use");
        latch.set(2);
        assert_eq!(busy.join().expect("no panic"), told("done"));
    });
    until("the first one is dropped", || alive.strong_count() == 0);
    // Any number of times.
    for n in 0..5000 {
        poa.set_servant(named(n.to_string())).expect("it uses one");
    }
    assert_eq!(ask(&object), told("4999"));
}

#[test]
fn a_default_servant_ends_with_its_adapter() {
    let s = site();
    let poa = s.poa("poa", &[DEFAULT, MULTIPLE, USER]);
    let servant = id_teller();
    let alive = Arc::downgrade(&servant);
    poa.set_servant(servant).expect("it uses one");
    poa.destroy(true, true).expect("no servant calls");
    assert_eq!(alive.strong_count(), 0);
}

/// An activator that counts the servants of a few objects.
#[derive(Default)]
struct Strict([AtomicI32; 4]);

impl Strict {
    fn of(&self, id: &ObjectId) -> &AtomicI32 {
        let number: usize = text(id).parse().expect("ids are numbers");
        &self.0[number]
    }
}

#[test]
fn each_servant_is_made_and_given_back_once_whatever_happens_at_the_same_time() {
    let s = site();
    let count = Arc::new(Strict::default());
    let poa = s.poa("poa", &[MANAGER, USER]);
    let (made, back) = (count.clone(), count.clone());
    let activator = StrictActivator {
        make: Box::new(move |id| {
            assert_eq!(
                made.of(id).fetch_add(1, Ordering::SeqCst),
                0,
                "two servants"
            );
            id_teller()
        }),
        take_back: Box::new(move |id| {
            assert_eq!(back.of(id).fetch_sub(1, Ordering::SeqCst), 1, "none");
        }),
    };
    poa.set_servant_activator(activator).expect("it retains");
    let ids = ["0", "1", "2", "3"];
    std::thread::scope(|threads| {
        for n in 0..4 {
            let (s, poa) = (&s, &poa);
            threads.spawn(move || {
                let objects = ids.map(|id| far_and_near(s, poa, id));
                for i in 0..1_000 {
                    let id = (i + n) % ids.len();
                    // After a deactivation, the activator incarnates it again.
                    let object = &objects[id][i % 2];
                    assert_eq!(ask(object), told(&hex(ids[id].as_bytes())));
                    if i % 3 == 0 {
                        let _ = poa.deactivate_object(&ids[(id + 1) % ids.len()].into());
                    }
                }
            });
        }
    });
    s.server.shutdown(true).expect("no servant calls");
    for count in &count.0 {
        assert_eq!(count.load(Ordering::SeqCst), 0, "a servant was kept");
    }
}

struct StrictActivator {
    make: Box<dyn Fn(&ObjectId) -> Servant + Send + Sync>,
    take_back: Box<dyn Fn(&ObjectId) + Send + Sync>,
}

impl ServantActivator for StrictActivator {
    fn incarnate(&self, id: &ObjectId, _: &Poa) -> IncarnationResult {
        Ok((self.make)(id))
    }

    fn etherealize(&self, id: &ObjectId, _: &Poa, _: Servant, _: bool, _: bool) {
        (self.take_back)(id);
    }
}
