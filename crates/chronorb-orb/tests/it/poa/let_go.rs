//! Permitted operations of application code while its servants, servant managers and activators are
//! called or released outside of any request.

use chronorb_orb::poa::{
    AdapterActivator, CreatePoaError, ObjectId, Poa, Policy, Refusal, ServantActivator, ThreadModel,
};
use chronorb_orb::rtcorba::Priority;
use chronorb_orb::{
    Collocation, Object, Operation, Orb, Scope, Servant, SystemException,
    SystemExceptionKind as Kind,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::support::adapters::{
    DEFAULT, Log, MANAGER, MULTIPLE, PERSISTENT, Site, USER, ask, key_of, kind, named, omg, site,
    site_with, teller, told, until, with_key,
};
use crate::support::{Latch, PROBE_ID, orb};

const SINGLE: Policy = Policy::Thread(ThreadModel::SingleThread);
const MAIN: Policy = Policy::Thread(ThreadModel::MainThread);

/// A value that runs a function when it is dropped.
struct LastWords<F: Fn()>(F);

impl<F: Fn()> Drop for LastWords<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Returns a servant that deactivates itself in its first request, and runs a function when it is
/// dropped.
fn leaver(last: impl Fn() + Send + Sync + 'static) -> Servant {
    let last = LastWords(last);
    teller(move |call| {
        let _ = &last;
        let id = call.object_id().clone();
        call.poa().deactivate_object(&id).expect("it is active");
        Ok("done".to_owned())
    })
}

#[test]
fn a_servant_that_is_dropped_cannot_wait_for_the_request_that_it_is_dropped_after() {
    let s = site();
    for is_near in [false, true] {
        let poa = s.poa("poa", &[]);
        let log = Arc::new(Log::default());
        let servant = {
            let (poa, log, server) = (poa.clone(), log.clone(), s.server.clone());
            leaver(move || {
                log.note(format!("{:?}", poa.destroy(true, true)));
                log.note(format!("{:?}", poa.manager().hold_requests(true)));
                log.note(format!("{:?}", server.shutdown(true)));
            })
        };
        let near = poa.serve(servant).expect("it is new");
        let object = if is_near { near } else { s.remote(&near) };
        assert_eq!(ask(&object), told("done"));
        until("it is dropped", || log.len() == 3);
        let refused = format!("{:?}", omg(Kind::BadInvOrder, 3));
        for answer in log.take() {
            assert!(answer.contains(&refused), "{answer}");
        }
        poa.destroy(true, true).expect("no servant calls");
    }
}

fn panics() -> LastWords<impl Fn()> {
    LastWords(|| panic!("the test wants it"))
}

#[test]
fn a_former_default_servant_that_panics_as_it_is_dropped_spoils_no_answer() {
    let s = site();
    let poa = s.poa("poa", &[DEFAULT, MULTIPLE, USER]);
    let near = poa
        .create_reference_with_id(&"x".into(), PROBE_ID)
        .expect("ids are ours");
    for object in [s.remote(&near), near] {
        let latch = Arc::new(Latch::default());
        let servant = {
            let (last, latch) = (panics(), latch.clone());
            teller(move |_| {
                let _ = &last;
                latch.arrive();
                latch.reach(2);
                Ok("done".to_owned())
            })
        };
        poa.set_servant(servant).expect("it uses one");
        std::thread::scope(|threads| {
            let busy = threads.spawn(|| ask(&object));
            latch.reach(1);
            poa.set_servant(named("second")).expect("it uses one");
            latch.set(2);
            assert_eq!(busy.join().expect("no panic"), told("done"));
        });
    }
}

/// A servant manager and adapter activator that may panic when it is dropped.
struct Brittle<F: Fn()>(#[allow(dead_code, reason = "it is dropped")] LastWords<F>);

impl<F: Fn() + Send + Sync + 'static> ServantActivator for Brittle<F> {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Ok(named("made"))
    }
}

impl<F: Fn() + Send + Sync + 'static> AdapterActivator for Brittle<F> {
    fn unknown_adapter(&self, _: &Poa, _: &str) -> Result<bool, SystemException> {
        Ok(false)
    }
}

#[test]
fn the_end_of_an_adapter_is_complete_whatever_panics() {
    let s = site();
    for _ in 0..2 {
        let parent = s.poa("parent", &[]);
        parent.set_activator(Some(Arc::new(Brittle(panics()))));
        let manager = Some(s.root.manager());
        let child = |name, policies: &[Policy]| {
            let child = parent.create_poa(name, manager, policies);
            child.expect("the policies agree")
        };
        let servant = {
            let last = panics();
            teller(move |_| {
                let _ = &last;
                Ok(String::new())
            })
        };
        child("default", &[DEFAULT, MULTIPLE])
            .set_servant(servant)
            .expect("it uses one");
        child("managed", &[MANAGER, USER])
            .set_servant_activator(Brittle(panics()))
            .expect("it retains");
        child("plain", &[])
            .serve(leaver(|| panic!("the test wants it")))
            .expect("it is new");
        parent.destroy(true, true).expect("no servant calls");
    }
}

/// A servant that raises the priority of its calling thread.
struct Raises(Orb);

impl Raises {
    fn raise(&self) {
        let priority = Priority::new(77).expect("it is one");
        self.0
            .rt_current()
            .set_priority(priority)
            .expect("it is mapped");
    }
}

impl AdapterActivator for Raises {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
        self.raise();
        let made = parent.create_poa(name, None, &[]);
        Ok(made.is_ok())
    }
}

impl ServantActivator for Raises {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Ok(named("made"))
    }

    fn etherealize(&self, _: &ObjectId, _: &Poa, _: Servant, _: bool, _: bool) {
        self.raise();
    }
}

#[test]
fn what_activators_do_to_the_priority_of_a_thread_ends_with_them() {
    let s = site();
    let priority = || s.server.rt_current().priority().ok();
    let before = (priority(), chronorb_rt::current().ok());
    let raises = || Raises(s.server.clone());
    s.root.set_activator(Some(Arc::new(raises())));
    s.root.find_poa("child", true).expect("it is made");
    assert_eq!((priority(), chronorb_rt::current().ok()), before);
    let poa = s.poa("poa", &[MANAGER, USER]);
    poa.set_servant_activator(raises()).expect("it retains");
    poa.activate_object_with_id("x", named("x"))
        .expect("it is free");
    poa.deactivate_object(&"x".into()).expect("it is active");
    assert_eq!((priority(), chronorb_rt::current().ok()), before);
}

/// A servant manager that records etherealized objects.
struct Notes(Arc<Log>, Arc<AtomicBool>);

impl ServantActivator for Notes {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Ok(named("made"))
    }

    fn etherealize(&self, id: &ObjectId, _: &Poa, _: Servant, _: bool, _: bool) {
        let is_occupied = self.1.load(Ordering::SeqCst);
        self.0.note(format!("{id:?} {is_occupied}"));
    }
}

#[test]
fn servants_of_two_single_threaded_adapters_may_end_each_others_objects() {
    let s = site();
    let names = ["left", "right"];
    let poas = names.map(|name| s.poa(name, &[SINGLE, MANAGER, USER]));
    let latches = names.map(|_| Arc::new(Latch::default()));
    let log = Arc::new(Log::default());
    for n in 0..2 {
        let is_in = Arc::new(AtomicBool::new(false));
        let notes = Notes(log.clone(), is_in.clone());
        poas[n].set_servant_activator(notes).expect("it retains");
        let (here, there) = (latches[n].clone(), latches[1 - n].clone());
        let (other, victim) = (poas[1 - n].clone(), ObjectId::from(names[1 - n]));
        let busy = teller(move |_| {
            is_in.store(true, Ordering::SeqCst);
            here.arrive();
            there.reach(1);
            other.deactivate_object(&victim).expect("it is active");
            here.set(2);
            // Both servants are removed while both requests are in progress.
            there.reach(2);
            is_in.store(false, Ordering::SeqCst);
            Ok("done".to_owned())
        });
        poas[n]
            .activate_object_with_id("busy", busy)
            .expect("it is free");
        poas[n]
            .activate_object_with_id(names[n], named(names[n]))
            .expect("it is free");
    }
    std::thread::scope(|threads| {
        let asking = [0, 1].map(|n| {
            let object = s.remote_to(&poas[n], "busy");
            threads.spawn(move || ask(&object))
        });
        for asking in asking {
            assert_eq!(asking.join().expect("no panic"), told("done"));
        }
    });
    until("both are taken back", || log.len() == 2);
    let mut taken = log.take();
    taken.sort();
    assert_eq!(taken, ["ObjectId(left) false", "ObjectId(right) false"]);
}

/// A servant manager that counts the etherealized servants, and those with no remaining
/// activations.
#[derive(Clone, Default)]
struct Counts {
    taken: Arc<AtomicU32>,
    last: Arc<AtomicU32>,
}

impl ServantActivator for Counts {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Ok(named("made"))
    }

    fn etherealize(&self, _: &ObjectId, _: &Poa, _: Servant, _: bool, remaining: bool) {
        self.taken.fetch_add(1, Ordering::SeqCst);
        self.last.fetch_add(u32::from(!remaining), Ordering::SeqCst);
    }
}

#[test]
fn a_servant_may_be_very_many_objects() {
    const OBJECTS: u32 = 20_000;
    let s = site();
    let poa = s.poa("poa", &[MANAGER, MULTIPLE, USER]);
    let counts = Counts::default();
    poa.set_servant_activator(counts.clone())
        .expect("it retains");
    let servants = [named("one"), named("other")];
    let id = |n: u32| ObjectId::new(n.to_be_bytes());
    for n in 0..OBJECTS {
        let servant = &servants[(n % 2) as usize];
        poa.activate_object_with_id(id(n), servant)
            .expect("it is free");
    }
    for n in 0..OBJECTS - 2 {
        poa.deactivate_object(&id(n)).expect("it is active");
    }
    assert_eq!(counts.last.load(Ordering::SeqCst), 0);
    poa.destroy(true, true).expect("no servant calls");
    assert_eq!(counts.taken.load(Ordering::SeqCst), OBJECTS);
    assert_eq!(counts.last.load(Ordering::SeqCst), 2);
}

/// A servant that counts its calls.
struct CallCounter(Arc<Log>);

impl AdapterActivator for CallCounter {
    fn unknown_adapter(&self, _: &Poa, name: &str) -> Result<bool, SystemException> {
        self.0.note(name);
        Ok(false)
    }
}

#[test]
fn the_main_thread_is_not_asked_for_adapters_that_nobody_waits_for() {
    let s = site_with(|config| {
        config.hold_timeout = Duration::from_millis(20);
        config.max_main_thread_requests = 1;
    });
    let log = Arc::new(Log::default());
    let poa = s.poa("main", &[MAIN]);
    poa.set_activator(Some(Arc::new(CallCounter(log.clone()))));
    // From now on this is the main thread.
    s.server.perform_work();
    std::thread::scope(|threads| {
        let asking = ["a", "b"].map(|name| {
            let poa = &poa;
            threads.spawn(move || poa.find_poa(name, true).is_err())
        });
        for asking in asking {
            assert!(asking.join().expect("no panic"));
        }
    });
    while s.server.work_pending() {
        s.server.perform_work();
    }
    assert_eq!(log.take(), [""; 0]);
}

#[test]
fn what_a_servant_of_the_main_thread_keeps_for_its_reply_goes_with_it() {
    let s = site();
    let poa = s.poa("main", &[MAIN]);
    let token = Arc::new(());
    let kept = token.clone();
    let servant = teller(move |call| {
        call.keep(kept.clone());
        Ok("done".to_owned())
    });
    let object = s.remote(&poa.serve(servant).expect("it is new"));
    std::thread::scope(|threads| {
        let asking = threads.spawn(|| ask(&object));
        until("a request is there", || s.server.work_pending());
        s.server.perform_work();
        assert_eq!(asking.join().expect("no panic"), told("done"));
    });
    assert_eq!(Arc::strong_count(&token), 2);
}

#[test]
fn adapters_stand_upon_each_other_up_to_a_bound() {
    struct Always;
    impl AdapterActivator for Always {
        fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
            let made = parent.create_poa(name, Some(parent.manager()), &[PERSISTENT, USER]);
            let Ok(child) = made else {
                return Ok(false);
            };
            child.set_activator(parent.activator());
            let deepest = child.activate_object_with_id("x", named("deep"));
            Ok(deepest.is_ok())
        }
    }
    let s = site();
    let near = s
        .poa("a", &[PERSISTENT, USER])
        .create_reference_with_id(&"x".into(), PROBE_ID)
        .expect("ids are ours");
    s.root.set_activator(Some(Arc::new(Always)));
    s.root
        .find_poa("a", false)
        .expect("it is there")
        .set_activator(s.root.activator());
    let at_depth = |depth: usize| {
        let path = "/a".repeat(depth);
        let length = u16::try_from(path.len())
            .expect("it is short")
            .to_be_bytes();
        // The hashes are hints.
        let key = [&key_of(&near)[..4], &[0; 8], &length, path.as_bytes(), b"x"].concat();
        with_key(&s.client, &s.remote(&near), &key)
    };
    assert_eq!(ask(&at_depth(64)), told("deep"));
    let no_adapter = Err(omg(Kind::ObjectNotExist, 2));
    for depth in [65, 66, 30_000] {
        assert_eq!(ask(&at_depth(depth)), no_adapter);
    }
    // All of them end on one thread, which may be one of a lane.
    let top = s.root.find_poa("a", false).expect("it is there");
    let ended = s.remote(&ender(&s, &top));
    assert_eq!(ask(&ended), told("begun"));
    until("all have ended", || s.root.find_poa("a", false).is_err());
}

fn ender(s: &Site, poa: &Poa) -> Object {
    let poa = poa.clone();
    let ender = teller(move |_| {
        poa.destroy(true, false).expect("it does not wait");
        Ok("begun".to_owned())
    });
    s.root.serve(ender).expect("it is new")
}

#[test]
fn a_manager_rules_adapters_of_its_own_orb_alone() {
    let s = site();
    let other = orb();
    let foreign = other.root_poa().expect("it runs");
    let made = s.root.create_poa("poa", Some(foreign.manager()), &[]);
    let refused = SystemException::no(Kind::BadParam, 0);
    assert_eq!(made, Err(CreatePoaError::System(refused)));
    other.shutdown(true).expect("no servant calls");
}

#[test]
fn names_of_managers_that_are_made_with_their_adapter_are_taken() {
    let s = site();
    let factory = s.server.poa_manager_factory();
    assert!(factory.create("chronorb.1").is_err());
    let own = s.root.create_poa("poa", None, &[]).expect("it is free");
    assert_eq!(
        factory.find(own.manager().id()),
        Some(own.manager().clone())
    );
}

#[test]
fn after_shutdown_calls_within_are_bad_inv_order_however_they_are_made() {
    let s = site();
    let object = s.root.serve(named("it")).expect("it is new");
    s.server.shutdown(true).expect("no servant calls");
    for way in [Collocation::Off, Collocation::ThroughPoa] {
        assert_eq!(kind(ask(&object.with_collocation(way))), Kind::BadInvOrder);
    }
    // A servant that cannot be called directly gets a marshalled call, with the same answer.
    let object = object.with_collocation(Collocation::Direct);
    let tell = Operation::twoway("tell");
    let direct = Scope::with(|scope| object.direct(scope, &tell, |_: &Servant, _, _| ()));
    assert_eq!(direct, None);
}

/// A servant manager that calls the ORB while it etherealizes, and records its thread.
struct Uses(Orb, Arc<Log>);

impl ServantActivator for Uses {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Ok(named("made"))
    }

    fn etherealize(&self, id: &ObjectId, _: &Poa, _: Servant, _: bool, _: bool) {
        // It also etherealizes what the end of the ORB removes.
        let _ = self.0.shutdown(false);
        let thread = std::thread::current().id();
        self.1.note(format!("{id:?} {thread:?}"));
    }
}

#[test]
fn the_main_thread_takes_servants_back_at_the_latest_with_the_end_of_the_orb() {
    let s = site();
    let log = Arc::new(Log::default());
    let poa = s.poa("main", &[MAIN, MANAGER, USER]);
    poa.set_servant_activator(Uses(s.server.clone(), log.clone()))
        .expect("it retains");
    for id in ["a", "b"] {
        poa.activate_object_with_id(id, named(id))
            .expect("it is free");
    }
    // From now on this is the main thread.
    s.server.perform_work();
    let deactivate = |id: &'static str| {
        std::thread::scope(|threads| {
            let other = threads.spawn(|| poa.deactivate_object(&id.into()));
            other.join().expect("no panic").expect("it is active");
        });
    };
    deactivate("a");
    deactivate("b");
    assert_eq!(log.len(), 0, "they are left to the main thread");
    s.server.shutdown(true).expect("no servant calls");
    let here = std::thread::current().id();
    let expected = ["a", "b"].map(|id| format!("ObjectId({id}) {here:?}"));
    assert_eq!(log.take(), expected);
}

#[test]
fn a_thread_that_ends_may_still_try_to_call() {
    let s = site();
    let object = s.remote_to(&s.poa("poa", &[USER]), "x");
    struct Late(Object, Arc<AtomicU32>);
    impl Drop for Late {
        fn drop(&mut self) {
            // The operating system decides whether it still can; the call must only return.
            let _ = ask(&self.0);
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
    thread_local! {
        static LATE: std::cell::RefCell<Vec<Late>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    let tried = Arc::new(AtomicU32::new(0));
    std::thread::scope(|threads| {
        for first in [true, false] {
            let (object, tried) = (object.clone(), tried.clone());
            threads.spawn(move || {
                // Values of a thread are dropped in an order that the operating system determines.
                let call = || drop(ask(&object));
                if first {
                    call();
                }
                LATE.with_borrow_mut(|late| late.push(Late(object.clone(), tried)));
                call();
            });
        }
    });
    until("both have tried", || tried.load(Ordering::SeqCst) == 2);
}
