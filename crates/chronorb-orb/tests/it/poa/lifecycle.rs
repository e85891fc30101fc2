//! The lifecycle of POAs and their managers, and the information that a servant gets of its
//! request.

use chronorb_orb::ThreadpoolStrategy;
use chronorb_orb::poa::{Cookie, ObjectId, Refusal};
use chronorb_orb::poa::{
    CreatePoaError, FindPoaError, NoContext, Poa, PoaManagerState, ServantLocator,
};
use chronorb_orb::{Servant, SystemExceptionKind as Kind};
use std::sync::Arc;
use std::time::Duration;

use crate::support::adapters::{
    DEFAULT, MANAGER, MULTIPLE, NON_RETAIN, USER, ask, ask_for, hex, holding, kind, named, omg,
    site, site_with, teller, told, until, waiter, waiter_if_asked,
};
use crate::support::{Latch, PROBE_ID};

#[test]
fn destroy_ends_children_and_objects() {
    let s = site();
    let token = Arc::new(());
    let parent = s.poa("parent", &[]);
    let manager = Some(s.root.manager());
    let child = parent
        .create_poa("child", manager, &[])
        .expect("it is free");
    let grandchild = child.create_poa("child", manager, &[]).expect("it is free");
    let poas = [&parent, &child, &grandchild];
    let objects = poas.map(|poa| s.remote(&poa.serve(holding(&token)).expect("it is new")));
    assert_eq!(Arc::strong_count(&token), 4);
    parent.destroy(true, true).expect("no servant calls");
    assert_eq!(Arc::strong_count(&token), 1);
    for object in &objects {
        assert_eq!(kind(ask(object)), Kind::ObjectNotExist);
    }
    for poa in poas {
        assert!(poa.serve(named("late")).is_err());
        let made = poa.create_poa("late", None, &[]);
        let destroyed = omg(Kind::BadInvOrder, 17);
        assert_eq!(made, Err(CreatePoaError::System(destroyed)));
    }
    assert_eq!(s.root.children(), []);
    assert_eq!(
        s.root.find_poa("parent", false),
        Err(FindPoaError::AdapterNonExistent)
    );
    // A second call has no effect.
    parent.destroy(true, true).expect("no servant calls");
    s.poa("parent", &[]);
}

#[test]
fn a_name_is_taken_until_the_last_request_has_left() {
    let s = site();
    let latch = Arc::new(Latch::default());
    let poa = s.poa("busy", &[]);
    let object = s.remote(&poa.serve(waiter(&latch)).expect("it is new"));
    let other = s.remote(&poa.serve(named("other")).expect("it is new"));
    let again = || s.root.create_poa("busy", None, &[]);
    assert_eq!(again(), Err(CreatePoaError::AdapterAlreadyExists));
    std::thread::scope(|threads| {
        let busy = threads.spawn(|| ask(&object));
        latch.reach(1);
        poa.destroy(true, false).expect("it does not wait");
        let destroyed = omg(Kind::BadInvOrder, 17);
        assert_eq!(again(), Err(CreatePoaError::System(destroyed)));
        assert_eq!(ask(&other), Err(omg(Kind::Transient, 4)));
        let waiting = threads.spawn(|| poa.destroy(true, true));
        assert_eq!(ask(&other), Err(omg(Kind::Transient, 4)));
        latch.set(2);
        assert_eq!(busy.join().expect("no panic"), told("done"));
        assert_eq!(waiting.join().expect("no panic"), Ok(()));
        again().expect("the name is free");
    });
    assert_eq!(kind(ask(&other)), Kind::ObjectNotExist);
}

#[test]
fn the_end_of_a_parent_waits_for_requests_in_its_children() {
    let s = site();
    let latch = Arc::new(Latch::default());
    let parent = s.poa("parent", &[]);
    let child = parent
        .create_poa("child", Some(s.root.manager()), &[])
        .expect("it is free");
    let object = s.remote(&child.serve(waiter(&latch)).expect("it is new"));
    std::thread::scope(|threads| {
        let busy = threads.spawn(|| ask(&object));
        latch.reach(1);
        let waiting = threads.spawn(|| {
            let destroyed = parent.destroy(true, true);
            (destroyed, s.root.create_poa("parent", None, &[]).is_ok())
        });
        until("it has begun", || s.root.find_poa("parent", false).is_err());
        assert!(!waiting.is_finished());
        latch.set(2);
        assert_eq!(busy.join().expect("no panic"), told("done"));
        assert_eq!(waiting.join().expect("no panic"), (Ok(()), true));
    });
}

#[test]
fn a_servant_may_end_its_adapter_but_not_wait_for_it() {
    let s = site();
    let token = Arc::new(());
    for near in [false, true] {
        let poa = s.poa("poa", &[]);
        let held = token.clone();
        let servant = teller(move |call| {
            let _ = &held;
            let current = call.orb().poa_current();
            let waited = call.poa().destroy(true, true);
            let refused = waited.expect_err("it would wait for itself").exception();
            assert_eq!(refused, omg(Kind::BadInvOrder, 3));
            assert!(call.poa().serve(named("x")).is_ok(), "nothing was done");
            call.poa().destroy(true, false).expect("it does not wait");
            // The request continues unchanged.
            assert_eq!(current.object_id().as_ref(), Ok(call.object_id()));
            assert_eq!(current.poa().as_ref(), Ok(call.poa()));
            assert!(current.servant().is_ok());
            Ok(format!(
                "{:?}",
                call.orb().shutdown(true).map_err(|e| e.minor & 0xfff)
            ))
        });
        let object = poa.serve(servant).expect("it is new");
        let object = if near { object } else { s.remote(&object) };
        assert_eq!(ask(&object), told("Err(3)"));
        poa.destroy(true, true).expect("no servant calls");
        assert_eq!(Arc::strong_count(&token), 1);
        assert_eq!(kind(ask(&object)), Kind::ObjectNotExist);
    }
}

#[test]
fn managers_say_what_becomes_of_requests() {
    let s = site();
    let manager = s
        .server
        .poa_manager_factory()
        .create("m")
        .expect("it is new");
    let poa = s
        .root
        .create_poa("poa", Some(&manager), &[])
        .expect("it is free");
    let near = poa.serve(named("it")).expect("it is new");
    let far = s.remote(&near);
    assert_eq!(manager.state(), PoaManagerState::Holding);
    for object in [&near, &far] {
        manager.hold_requests(true).expect("it is not inactive");
        std::thread::scope(|threads| {
            let held = threads.spawn(|| ask(object));
            manager.activate().expect("it is not inactive");
            assert_eq!(held.join().expect("no panic"), told("it"));
        });
        manager.discard_requests(true).expect("it is not inactive");
        assert_eq!(ask(object), Err(omg(Kind::Transient, 1)));
        // A held request can be discarded in the end.
        manager.hold_requests(true).expect("it is not inactive");
        std::thread::scope(|threads| {
            let held = threads.spawn(|| ask(object));
            manager.discard_requests(true).expect("it is not inactive");
            assert_eq!(held.join().expect("no panic"), Err(omg(Kind::Transient, 1)));
        });
    }
    manager.deactivate(true, true).expect("it is not inactive");
    assert_eq!(manager.state(), PoaManagerState::Inactive);
    for object in [&near, &far] {
        assert_eq!(kind(ask(object)), Kind::ObjAdapter);
    }
    assert!(manager.activate().is_err());
    assert!(manager.hold_requests(false).is_err());
    assert!(manager.discard_requests(false).is_err());
    assert!(manager.deactivate(false, false).is_err());
}

#[test]
fn a_request_that_is_held_too_long_is_transient() {
    for strategy in [
        ThreadpoolStrategy::LeaderFollowers,
        ThreadpoolStrategy::HalfSyncHalfAsync,
        ThreadpoolStrategy::Reactive,
        ThreadpoolStrategy::ThreadPerConnection,
    ] {
        let s = site_with(|config| {
            config.hold_timeout = Duration::from_millis(1);
            config.threadpool_strategy = strategy;
        });
        s.root.manager().hold_requests(true).expect("it is active");
        let near = s.root.serve(named("it")).expect("it is new");
        for object in [s.remote(&near), near] {
            assert_eq!(ask(&object), Err(omg(Kind::Transient, 1)), "{strategy:?}");
        }
    }
}

#[test]
fn managers_wait_for_requests_in_progress() {
    type Change = fn(&chronorb_orb::poa::PoaManager) -> bool;
    let changes: [(Change, PoaManagerState); 3] = [
        (|m| m.hold_requests(true).is_ok(), PoaManagerState::Holding),
        (
            |m| m.discard_requests(true).is_ok(),
            PoaManagerState::Discarding,
        ),
        (
            |m| m.deactivate(true, true).is_ok(),
            PoaManagerState::Inactive,
        ),
    ];
    for (change, state) in changes {
        let s = site();
        let latch = Arc::new(Latch::default());
        let object = s.remote(&s.root.serve(waiter(&latch)).expect("it is new"));
        std::thread::scope(|threads| {
            let busy = threads.spawn(|| ask(&object));
            latch.reach(1);
            let manager = s.root.manager();
            let waiting = threads.spawn(|| change(manager));
            until("the state is changed", || manager.state() == state);
            assert!(!waiting.is_finished());
            latch.set(2);
            assert_eq!(busy.join().expect("no panic"), told("done"));
            assert!(waiting.join().expect("no panic"));
        });
    }
}

#[test]
fn who_waits_for_requests_is_let_go_when_the_state_changes_again() {
    let s = site();
    let latch = Arc::new(Latch::default());
    let object = s.remote(&s.root.serve(waiter(&latch)).expect("it is new"));
    std::thread::scope(|threads| {
        let busy = threads.spawn(|| ask(&object));
        latch.reach(1);
        let manager = s.root.manager();
        let waiting = threads.spawn(|| manager.discard_requests(true));
        until("the state is changed", || {
            manager.state() == PoaManagerState::Discarding
        });
        manager.activate().expect("it is not inactive");
        assert_eq!(waiting.join().expect("no panic"), Ok(()));
        latch.set(2);
        assert_eq!(busy.join().expect("no panic"), told("done"));
    });
}

#[test]
fn a_servant_may_change_its_manager_but_not_wait_for_it() {
    let s = site();
    let servant = teller(|call| {
        let manager = call.poa().manager();
        let refused = [
            manager.hold_requests(true).is_err(),
            manager.discard_requests(true).is_err(),
            manager.deactivate(true, true).is_err(),
        ];
        assert_eq!(refused, [true; 3]);
        assert_eq!(manager.state(), PoaManagerState::Active);
        manager.discard_requests(false).expect("it is active");
        Ok("discarding".to_owned())
    });
    let near = s.root.serve(servant).expect("it is new");
    for object in [s.remote(&near), near] {
        assert_eq!(ask(&object), told("discarding"));
        assert_eq!(ask(&object), Err(omg(Kind::Transient, 1)));
        s.root.manager().activate().expect("it is not inactive");
    }
}

#[test]
fn a_factory_knows_the_managers_by_name() {
    let s = site();
    let factory = s.server.poa_manager_factory();
    let one = factory.create("one").expect("it is new");
    assert_eq!(one.id(), "one");
    assert!(factory.create("one").is_err());
    assert_eq!(factory.find("one"), Some(one.clone()));
    assert_eq!(factory.find("two"), None);
    let own = s.root.create_poa("own", None, &[]).expect("it is free");
    assert_ne!(own.manager(), s.root.manager());
    let all = s.root.manager_factory().list();
    for manager in [&one, s.root.manager(), own.manager()] {
        assert_eq!(all.iter().filter(|m| *m == manager).count(), 1);
    }
    assert_eq!(all.len(), 3);
    let ids: std::collections::HashSet<_> = all.iter().map(|m| m.id()).collect();
    assert_eq!(ids.len(), 3, "names are their own");
    // It ends when its last reference is dropped.
    drop((one, all));
    assert_eq!(factory.find("one"), None);
    factory.create("one").expect("the name is free");
}

#[test]
fn one_manager_rules_several_adapters() {
    let s = site();
    let shared = s
        .server
        .poa_manager_factory()
        .create("shared")
        .expect("it is new");
    let make = |name| {
        s.root
            .create_poa(name, Some(&shared), &[])
            .expect("it is free")
    };
    let objects = [make("a"), make("b")].map(|poa| {
        let object = poa.serve(named(poa.name().to_owned()));
        s.remote(&object.expect("it is new"))
    });
    shared.activate().expect("it is not inactive");
    assert_eq!(ask(&objects[0]), told("a"));
    assert_eq!(ask(&objects[1]), told("b"));
    shared.discard_requests(false).expect("it is not inactive");
    for object in &objects {
        assert_eq!(ask(object), Err(omg(Kind::Transient, 1)));
    }
    let other = s.remote(&s.root.serve(named("root")).expect("it is new"));
    assert_eq!(ask(&other), told("root"));
}

#[test]
fn every_adapter_has_an_id_of_its_own() {
    let (s, t) = (site(), site());
    let poas = [
        s.root.clone(),
        t.root.clone(),
        s.poa("a", &[]),
        t.poa("a", &[]),
    ];
    for (n, poa) in poas.iter().enumerate() {
        assert!(poas[..n].iter().all(|other| other.id() != poa.id()));
        assert_eq!(poa.id(), poa.clone().id());
    }
}

#[test]
fn the_end_of_the_orb_is_the_end_of_all_adapters() {
    let s = site();
    let token = Arc::new(());
    let mut poa = s.root.clone();
    for n in 0..5 {
        poa = poa
            .create_poa(&n.to_string(), None, &[])
            .expect("it is free");
        poa.serve(holding(&token)).expect("it is new");
    }
    s.server.shutdown(true).expect("no servant calls");
    assert_eq!(Arc::strong_count(&token), 1);
    let over = omg(Kind::BadInvOrder, 4);
    assert_eq!(
        s.root.create_poa("x", None, &[]),
        Err(CreatePoaError::System(over))
    );
    assert_eq!(s.root.find_poa("0", false), Err(FindPoaError::System(over)));
    assert_eq!(s.server.root_poa(), Err(over));
}

#[test]
fn the_end_of_the_orb_waits_for_calls_within_the_process() {
    let s = site();
    let latch = Arc::new(Latch::default());
    let servant = waiter(&latch);
    let alive = Arc::downgrade(&servant);
    let near = s.root.serve(servant).expect("it is new");
    std::thread::scope(|threads| {
        let busy = threads.spawn(|| ask(&near));
        latch.reach(1);
        let ending = threads.spawn(|| s.server.shutdown(true));
        until("it has begun", || s.server.is_shut_down());
        assert!(ask(&near).is_err());
        assert!(!ending.is_finished());
        latch.set(2);
        assert_eq!(busy.join().expect("no panic"), told("done"));
        assert_eq!(ending.join().expect("no panic"), Ok(()));
        assert_eq!(alive.strong_count(), 0);
    });
}

#[test]
fn destroying_the_root_leaves_the_orb_running() {
    let s = site();
    let object = s.remote(&s.root.serve(named("it")).expect("it is new"));
    s.root.destroy(true, true).expect("no servant calls");
    assert_eq!(kind(ask(&object)), Kind::ObjectNotExist);
    // A POA of the name of a destroyed one may be made (CORBA 3.3, 15.3.9, `destroy`).
    let root = s.server.root_poa().expect("the ORB runs");
    root.manager().activate().expect("it is a new one");
    let object = s.remote(&root.serve(named("again")).expect("it is new"));
    assert_eq!(ask(&object), told("again"));
}

/// Checks that `Current` agrees with the call: POA, id, reference and servant.
fn current_agrees(call: &chronorb_orb::Call<'_>) -> crate::support::adapters::ReplyText {
    let current = call.orb().poa_current();
    assert_eq!(current.poa().as_ref(), Ok(call.poa()));
    assert_eq!(current.object_id().as_ref(), Ok(call.object_id()));
    let reference = current.reference().expect("a request is in progress");
    assert_eq!(
        call.poa().reference_to_id(&reference).as_ref(),
        Ok(call.object_id())
    );
    assert_eq!(
        current.servant().expect("it is this one").repository_id(),
        PROBE_ID
    );
    Ok(hex(call.object_id().as_bytes()))
}

#[test]
fn outside_of_requests_there_is_no_current() {
    let s = site();
    let current = s.server.poa_current();
    assert_eq!(current.poa().err(), Some(NoContext));
    assert_eq!(current.object_id().err(), Some(NoContext));
    assert_eq!(current.reference().err(), Some(NoContext));
    assert_eq!(current.servant().err(), Some(NoContext));
    // Requests of another ORB do not count here.
    let (other, servers) = (site(), current);
    let servant = teller(move |_| Ok(format!("{:?}", servers.object_id())));
    let object = other.root.serve(servant).expect("it is new");
    assert_eq!(ask(&object), told("Err(NoContext)"));
}

struct Locator(Servant);

impl ServantLocator for Locator {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Servant, Cookie), Refusal> {
        Ok((self.0.clone(), None))
    }
}

#[test]
fn current_tells_the_same_whatever_the_servant_comes_from() {
    let s = site();
    let map = s.poa("map", &[USER]);
    map.activate_object_with_id("x", teller(current_agrees))
        .expect("it is free");
    let default = s.poa("default", &[DEFAULT, MULTIPLE, USER]);
    default
        .set_servant(teller(current_agrees))
        .expect("it uses one");
    let located = s.poa("located", &[MANAGER, NON_RETAIN, USER]);
    located
        .set_servant_locator(Locator(teller(current_agrees)))
        .expect("it uses one");
    for poa in [map, default, located] {
        let near = poa.create_reference_with_id(&"x".into(), PROBE_ID);
        let near = near.expect("ids are the test's");
        for object in [s.remote(&near), near] {
            assert_eq!(ask(&object), told(&hex(b"x")));
        }
    }
}

#[test]
fn current_is_the_innermost_request_and_then_the_outer_one_again() {
    let s = site();
    let poa = s.poa("poa", &[USER]);
    poa.activate_object_with_id("in", teller(current_agrees))
        .expect("it is free");
    let inner = poa.id_to_reference(&"in".into()).expect("it is active");
    let outer = teller(move |call| {
        let seen = ask(&inner)?;
        assert_eq!(seen, hex(b"in"));
        current_agrees(call)
    });
    poa.activate_object_with_id("out", outer)
        .expect("it is free");
    assert_eq!(ask(&s.remote_to(&poa, "out")), told(&hex(b"out")));
    let near = poa.id_to_reference(&"out".into()).expect("it is active");
    assert_eq!(ask(&near), told(&hex(b"out")));
    assert_eq!(s.server.poa_current().poa().err(), Some(NoContext));
}

#[test]
fn current_outlives_deactivation_and_reactivation() {
    let s = site();
    let poa = s.poa("poa", &[USER]);
    let latch = Arc::new(Latch::default());
    let servant = {
        let latch = latch.clone();
        teller(move |call| {
            latch.arrive();
            latch.reach(2);
            current_agrees(call)
        })
    };
    poa.activate_object_with_id("x", servant)
        .expect("it is free");
    let object = s.remote_to(&poa, "x");
    std::thread::scope(|threads| {
        let busy = threads.spawn(|| ask(&object));
        latch.reach(1);
        poa.deactivate_object(&"x".into()).expect("it is active");
        poa.activate_object_with_id("x", waiter_if_asked(&latch))
            .expect("it is free");
        assert_eq!(ask_for(&object, "else"), told("done"));
        latch.set(2);
        assert_eq!(busy.join().expect("no panic"), told(&hex(b"x")));
    });
}
