//! Creation of POAs on demand by adapter activators.

use chronorb_giop::LocateStatus;
use chronorb_orb::poa::{AdapterActivator, FindPoaError, ObjectId, Poa, Policy, PriorityModel};
use chronorb_orb::rtcorba::{Lane, Priority, ThreadpoolLanes};
use chronorb_orb::{Object, SystemException, SystemExceptionKind as Kind};
use std::sync::Arc;

use crate::support::Latch;
use crate::support::adapters::{
    Log, PERSISTENT, Site, USER, ask, ask_for, kind, locate, named, omg, site, told, waiter,
};

type CreationResult = Result<bool, SystemException>;
type Make = dyn Fn(&Poa, &str) -> CreationResult + Send + Sync;

/// An activator that runs a test's function, and keeps a log.
struct Adapters {
    make: Box<Make>,
    log: Arc<Log>,
}

impl AdapterActivator for Adapters {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> CreationResult {
        self.log.note(format!("{} in {}", name, parent.name()));
        (self.make)(parent, name)
    }
}

/// Installs an activator that creates children of the root. Returns the activator's log.
fn adapting(
    s: &Site,
    make: impl Fn(&Poa, &str) -> CreationResult + Send + Sync + 'static,
) -> Arc<Log> {
    let log = Arc::new(Log::default());
    let activator = Adapters {
        make: Box::new(make),
        log: log.clone(),
    };
    s.root.set_activator(Some(Arc::new(activator)));
    log
}

/// Creates a persistent child whose object `x` returns the name of its POA, and whose own children
/// are created likewise.
fn make_child(parent: &Poa, name: &str) -> CreationResult {
    let child = parent
        .create_poa(name, Some(parent.manager()), &[PERSISTENT, USER])
        .expect("it is not there");
    child.set_activator(parent.activator());
    child
        .activate_object_with_id("x", named(name))
        .expect("it is free");
    Ok(true)
}

/// Returns the reference of `x` in the POA of a path, which no longer exists.
fn reference(s: &Site, path: &[&str]) -> Object {
    let mut poa = s.root.clone();
    for name in path {
        make_child(&poa, name).expect("it does not fail");
        poa = poa.find_poa(name, false).expect("it is there");
    }
    let object = poa.id_to_reference(&ObjectId::from("x"));
    let object = s.remote(&object.expect("it is active"));
    let first = s.root.find_poa(path[0], false).expect("it is there");
    first.destroy(true, true).expect("no servant calls");
    object
}

#[test]
fn a_request_makes_all_adapters_on_its_way_from_the_root_down() {
    let s = site();
    let object = reference(&s, &["one", "two", "three"]);
    assert_eq!(
        ask(&object),
        Err(omg(Kind::ObjectNotExist, 2)),
        "they are not made"
    );
    let log = adapting(&s, make_child);
    assert_eq!(ask(&object), told("three"));
    assert_eq!(log.take(), ["one in RootPOA", "two in one", "three in two"]);
    assert_eq!(ask(&object), told("three"));
    assert_eq!(log.take(), Vec::<String>::new(), "they are there now");
    // A destroyed adapter is created again.
    let one = s.root.find_poa("one", false).expect("it is there");
    let two = one.find_poa("two", false).expect("it is there");
    two.destroy(true, true).expect("no servant calls");
    assert_eq!(ask(&object), told("three"));
    assert_eq!(log.take(), ["two in one", "three in two"]);
}

#[test]
fn names_may_hold_whatever_parts_names() {
    let s = site();
    let names = ["a/b", "a", "a\\", "\\/", "/", "", "ü", "..", "a b"];
    let log = adapting(&s, make_child);
    for name in names {
        for path in [&[name][..], &[name, "b"], &["p", name]] {
            let object = reference(&s, path);
            log.take();
            let last = path[path.len() - 1];
            assert_eq!(ask(&object), told(last), "{path:?}");
            assert_eq!(log.len(), path.len(), "{path:?}");
            let first = s.root.find_poa(path[0], false).expect("it is there");
            first.destroy(true, true).expect("no servant calls");
        }
    }
}

#[test]
fn paths_that_look_alike_are_different_adapters() {
    let s = site();
    for (parent, child) in [("a/b", "c"), ("a", "b/c"), ("a\\/b", "c")] {
        let parent_poa = s.poa(parent, &[PERSISTENT]);
        make_child(&parent_poa, child).expect("it does not fail");
        let child = parent_poa.find_poa(child, false).expect("it is there");
        child.deactivate_object(&"x".into()).expect("it is active");
        let text = format!("{parent} {}", child.name());
        child
            .activate_object_with_id("x", named(text.clone()))
            .expect("it is free");
        let object = child.id_to_reference(&"x".into()).expect("it is active");
        assert_eq!(ask(&s.remote(&object)), told(&text));
    }
}

#[test]
fn an_activator_that_knows_no_such_adapter_says_so() {
    let s = site();
    let object = reference(&s, &["one"]);
    let log = adapting(&s, |_, _| Ok(false));
    assert_eq!(ask(&object), Err(omg(Kind::ObjectNotExist, 2)));
    assert_eq!(object.non_existent(), Ok(true));
    assert_eq!(locate(&object), LocateStatus::UnknownObject);
    assert_eq!(log.take().len(), 3, "it is asked each time");
    assert_eq!(
        s.root.find_poa("one", true),
        Err(FindPoaError::AdapterNonExistent)
    );
}

#[test]
fn an_activator_that_fails_is_obj_adapter() {
    let s = site();
    let object = reference(&s, &["one"]);
    let failed = omg(Kind::ObjAdapter, 1);
    adapting(&s, |_, _| Err(omg(Kind::NoResources, 0)));
    assert_eq!(ask(&object), Err(failed));
    assert_eq!(
        s.root.find_poa("one", true),
        Err(FindPoaError::System(failed))
    );
    adapting(&s, |_, _| panic!("as the test wants it"));
    assert_eq!(ask(&object), Err(failed));
    // The activator claims to have created the adapter, and has not.
    adapting(&s, |_, _| Ok(true));
    assert_eq!(kind(ask(&object)), Kind::ObjectNotExist);
    // Then it succeeds.
    adapting(&s, make_child);
    assert_eq!(ask(&object), told("one"));
}

#[test]
fn a_locate_request_makes_adapters_too() {
    let s = site();
    let object = reference(&s, &["one", "two"]);
    let log = adapting(&s, make_child);
    assert_eq!(locate(&object), LocateStatus::ObjectHere);
    assert_eq!(log.take(), ["one in RootPOA", "two in one"]);
}

#[test]
fn find_poa_makes_an_adapter_where_it_is_wanted() {
    let s = site();
    let log = adapting(&s, make_child);
    let none = Err(FindPoaError::AdapterNonExistent);
    assert_eq!(s.root.find_poa("one", false), none);
    assert_eq!(log.take(), Vec::<String>::new());
    let one = s.root.find_poa("one", true).expect("it is made");
    assert_eq!(one.name(), "one");
    assert_eq!(one.parent(), Some(&s.root));
    assert_eq!(s.root.children(), std::slice::from_ref(&one));
    assert_eq!(s.root.find_poa("one", true), Ok(one.clone()));
    assert_eq!(log.take(), ["one in RootPOA"]);
    s.root.set_activator(None);
    assert_eq!(s.root.find_poa("two", true), none);
    assert!(one.activator().is_some(), "it keeps its own");
}

#[test]
fn requests_wait_for_the_activator_which_is_asked_once() {
    let s = site();
    let object = reference(&s, &["one"]);
    let latch = Arc::new(Latch::default());
    let log = {
        let latch = latch.clone();
        adapting(&s, move |parent, name| {
            // The adapter and its object exist before the activator has finished.
            make_child(parent, name)?;
            latch.set(1);
            latch.reach(2);
            let poa = parent.find_poa(name, false).expect("it is there");
            poa.deactivate_object(&"x".into()).expect("it is active");
            poa.activate_object_with_id("x", named("complete"))
                .expect("it is free");
            Ok(true)
        })
    };
    let others = s.poa("others", &[]);
    let other = s.remote(&others.serve(named("other")).expect("it is new"));
    std::thread::scope(|threads| {
        let first = threads.spawn(|| ask(&object));
        latch.reach(1);
        // These requests find the adapter, and wait all the same.
        let more: Vec<_> = (0..2).map(|_| threads.spawn(|| ask(&object))).collect();
        assert_eq!(ask(&other), told("other"), "others do not");
        latch.set(2);
        assert_eq!(first.join().expect("no panic"), told("complete"));
        for asking in more {
            assert_eq!(asking.join().expect("no panic"), told("complete"));
        }
    });
    assert_eq!(log.take(), ["one in RootPOA"]);
}

#[test]
fn threads_that_look_for_one_adapter_get_the_same() {
    let s = site();
    let log = adapting(&s, make_child);
    for n in 0..20 {
        let name = n.to_string();
        let found: Vec<Poa> = std::thread::scope(|threads| {
            let looking: Vec<_> = (0..4)
                .map(|_| threads.spawn(|| s.root.find_poa(&name, true)))
                .collect();
            let found = looking.into_iter().map(|t| t.join().expect("no panic"));
            found.map(|poa| poa.expect("it is made")).collect()
        });
        assert!(found.iter().all(|poa| *poa == found[0]));
        assert_eq!(log.take().len(), 1);
    }
}

#[test]
fn an_adapter_that_is_being_destroyed_is_not_made_meanwhile() {
    let s = site();
    let log = adapting(&s, make_child);
    let latch = Arc::new(Latch::default());
    let poa = s.poa("one", &[PERSISTENT, USER]);
    poa.activate_object_with_id("x", waiter(&latch))
        .expect("it is free");
    let object = poa.id_to_reference(&"x".into()).expect("it is active");
    let object = s.remote(&object);
    std::thread::scope(|threads| {
        let busy = threads.spawn(|| ask_for(&object, "wait"));
        latch.reach(1);
        poa.destroy(true, false).expect("it does not wait");
        assert_eq!(ask(&object), Err(omg(Kind::Transient, 4)));
        assert_eq!(log.take(), Vec::<String>::new());
        latch.set(2);
        assert_eq!(busy.join().expect("no panic"), told("done"));
    });
    poa.destroy(true, true).expect("no servant calls");
    assert_eq!(ask(&object), told("one"), "by its successor");
    assert_eq!(log.take(), ["one in RootPOA"]);
}

#[test]
fn what_an_activator_calls_has_the_priority_of_its_lane() {
    let s = site();
    let mid = Priority::new(16_000).expect("it is not negative");
    let lanes = vec![Lane::new(mid, 1)];
    let pool = s
        .server
        .rt()
        .create_threadpool_with_lanes(&ThreadpoolLanes {
            lanes,
            ..ThreadpoolLanes::default()
        });
    let pool = Policy::Threadpool(pool.expect("it opens"));
    let model = Policy::PriorityModel(PriorityModel::ServerDeclared, mid);
    let parent = s.poa("parent", &[pool.clone(), model.clone(), PERSISTENT, USER]);
    let make = move |parent: &Poa, name: &str| {
        let policies = [pool.clone(), model.clone(), PERSISTENT, USER];
        let child = parent.create_poa(name, Some(parent.manager()), &policies);
        let child = child.expect("it is not there");
        let activated = child.activate_object_with_id("x", named(name));
        activated.expect("it is free");
        Ok(true)
    };
    make(&parent, "child").expect("it does not fail");
    let child = parent.find_poa("child", false).expect("it is there");
    let object = child.id_to_reference(&ObjectId::from("x"));
    let object = s.remote(&object.expect("it is active"));
    child.destroy(true, true).expect("no servant calls");
    let current = s.server.rt_current();
    let seen = Arc::new(Log::default());
    let log = seen.clone();
    parent.set_activator(Some(Arc::new(Adapters {
        make: Box::new(move |parent, name| {
            log.note(format!("{:?}", current.priority()));
            make(parent, name)
        }),
        log: Arc::default(),
    })));
    assert_eq!(ask(&object), told("child"));
    assert_eq!(
        seen.take(),
        [format!("{:?}", Ok::<_, SystemException>(mid))]
    );
}
