//! Thread models: servants are called by any thread, by one at a time, or by the main thread.

use chronorb_orb::poa::{
    Cookie, ObjectId, Poa, Policy, PriorityModel, Refusal, ServantActivator, ServantLocator,
    ThreadModel,
};
use chronorb_orb::rtcorba::Priority;
use chronorb_orb::{Object, Operation, Servant, SystemExceptionKind as Kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::adapters::{
    Log, MANAGER, NON_RETAIN, Site, USER, ask, ask_for, kind, named, omg, site, site_with, teller,
    told, until, waiter_if_asked,
};
use crate::support::{Latch, PATIENCE};

const SINGLE: Policy = Policy::Thread(ThreadModel::SingleThread);
const MAIN: Policy = Policy::Thread(ThreadModel::MainThread);

/// Application code that must not run in two threads at a time.
#[derive(Default)]
struct UnprotectedCode(AtomicU32);

impl UnprotectedCode {
    fn run(&self) {
        assert_eq!(self.0.fetch_add(1, Ordering::SeqCst), 0, "another is here");
        std::thread::yield_now();
        assert_eq!(self.0.fetch_sub(1, Ordering::SeqCst), 1);
    }
}

fn careless(code: &Arc<UnprotectedCode>) -> Servant {
    let code = code.clone();
    teller(move |_| {
        code.run();
        Ok("done".to_owned())
    })
}

#[test]
fn a_single_threaded_adapter_serves_one_request_at_a_time() {
    let s = site();
    let code = Arc::new(UnprotectedCode::default());
    let poa = s.poa("single", &[SINGLE]);
    let near = [(); 2].map(|()| poa.serve(careless(&code)).expect("it is new"));
    let objects = [
        s.remote(&near[0]),
        near[0].clone(),
        s.remote(&near[1]),
        near[1].clone(),
    ];
    std::thread::scope(|threads| {
        for object in &objects {
            threads.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(ask(object), told("done"));
                }
            });
        }
    });
}

#[test]
fn others_go_on_while_a_single_threaded_adapter_is_busy() {
    let s = site();
    let latch = Arc::new(Latch::default());
    let one = s.poa("one", &[SINGLE]);
    let other = s.poa("other", &[SINGLE]);
    let busy = s.remote(&one.serve(waiter_if_asked(&latch)).expect("it is new"));
    let second = s.remote(&one.serve(named("second")).expect("it is new"));
    let free = s.remote(&other.serve(named("free")).expect("it is new"));
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| ask_for(&busy, "wait"));
        latch.reach(1);
        assert_eq!(ask(&free), told("free"));
        let queued = threads.spawn(|| ask(&second));
        assert_eq!(ask(&free), told("free"));
        assert!(!queued.is_finished());
        latch.set(2);
        assert_eq!(waiting.join().expect("no panic"), told("done"));
        assert_eq!(queued.join().expect("no panic"), told("second"));
    });
}

#[test]
fn the_thread_that_is_in_a_single_threaded_adapter_may_come_in_again() {
    let s = site();
    let poa = s.poa("single", &[SINGLE]);
    let inner = poa.serve(named("inner")).expect("it is new");
    let middle = poa.serve(teller(move |_| ask(&inner))).expect("it is new");
    let outer = poa.serve(teller(move |_| ask(&middle))).expect("it is new");
    assert_eq!(ask(&s.remote(&outer)), told("inner"));
    assert_eq!(ask(&outer), told("inner"));
}

/// Servant managers that are entirely unprotected.
struct Careless(Arc<UnprotectedCode>);

impl ServantActivator for Careless {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        self.0.run();
        Ok(careless(&self.0))
    }

    fn etherealize(&self, _: &ObjectId, _: &Poa, _: Servant, _: bool, _: bool) {
        self.0.run();
    }
}

impl ServantLocator for Careless {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Servant, Cookie), Refusal> {
        self.0.run();
        Ok((careless(&self.0), None))
    }

    fn postinvoke(&self, _: &ObjectId, _: &Poa, _: &str, _: Cookie, _: Servant) {
        self.0.run();
    }
}

#[test]
fn servant_managers_of_a_single_threaded_adapter_are_called_one_at_a_time_too() {
    // In a deadlock of two objects, the request is refused after this time.
    let s = site_with(|config| config.hold_timeout = PATIENCE);
    let activating = s.poa("activating", &[SINGLE, MANAGER, USER]);
    activating
        .set_servant_activator(Careless(Arc::default()))
        .expect("it retains");
    let locating = s.poa("locating", &[SINGLE, MANAGER, NON_RETAIN, USER]);
    locating
        .set_servant_locator(Careless(Arc::default()))
        .expect("it retains nothing");
    std::thread::scope(|threads| {
        for id in ["a", "a", "b"] {
            for poa in [&activating, &locating] {
                let object = s.remote_to(poa, id);
                threads.spawn(move || {
                    for _ in 0..200 {
                        assert_eq!(ask(&object), told("done"));
                    }
                });
            }
        }
        threads.spawn(|| {
            for _ in 0..400 {
                for id in ["a", "b"] {
                    let _ = activating.deactivate_object(&id.into());
                    std::thread::yield_now();
                }
            }
        });
    });
}

fn this_thread() -> String {
    format!("{:?}", std::thread::current().id())
}

/// Returns a servant that returns the id of its calling thread.
fn thread_teller() -> Servant {
    teller(|_| Ok(this_thread()))
}

/// Sends a oneway request, and returns when the server has read it. The server has one thread,
/// which reads later requests afterwards.
fn leave(s: &Site, object: &Object, operation: &'static str) {
    object
        .invoke_oneway(&Operation::oneway(operation), &|_| Ok(()))
        .expect("the server is there");
    let ping = s.root.serve(named("ping")).expect("it is new");
    assert_eq!(ask(&s.remote(&ping)), told("ping"));
}

fn with_one_thread() -> Site {
    site_with(|config| config.threads = 1.into())
}

#[test]
fn the_main_thread_serves_and_no_other() {
    let s = site();
    let poa = s.poa("main", &[MAIN]);
    let near = poa.serve(thread_teller()).expect("it is new");
    let objects = [s.remote(&near), near.clone()];
    for object in &objects {
        assert!(!s.server.work_pending());
        s.server.perform_work();
        std::thread::scope(|threads| {
            // A collocated call, too, if another thread makes it.
            let asking = threads.spawn(|| ask(object));
            until("the request is there", || s.server.work_pending());
            assert!(!asking.is_finished());
            s.server.perform_work();
            assert_eq!(asking.join().expect("no panic"), told(&this_thread()));
        });
    }
    assert_eq!(ask(&near), told(&this_thread()), "the main thread itself");
}

#[test]
fn who_runs_the_orb_is_the_main_thread() {
    let s = site();
    let poa = s.poa("main", &[MAIN]);
    let near = poa.serve(thread_teller()).expect("it is new");
    let far = s.remote(&near);
    std::thread::scope(|threads| {
        let running = threads.spawn(|| {
            s.server.run();
            this_thread()
        });
        let seen = [&far, &near, &far].map(|object| ask(object).expect("it is served"));
        s.server.shutdown(true).expect("no servant calls");
        let main = running.join().expect("no panic");
        assert_eq!(seen, [(); 3].map(|()| main.clone()));
    });
}

#[test]
fn several_adapters_share_the_main_thread() {
    let s = site();
    let code = Arc::new(UnprotectedCode::default());
    let objects: Vec<Object> = ["a", "b"]
        .iter()
        .flat_map(|name| {
            let near = s.poa(name, &[MAIN]).serve(careless(&code));
            let near = near.expect("it is new");
            [s.remote(&near), near]
        })
        .collect();
    std::thread::scope(|threads| {
        threads.spawn(|| s.server.run());
        std::thread::scope(|clients| {
            for object in &objects {
                clients.spawn(|| {
                    for _ in 0..100 {
                        assert_eq!(ask(object), told("done"));
                    }
                });
            }
        });
        s.server.shutdown(true).expect("no servant calls");
    });
}

#[test]
fn servants_of_the_main_thread_may_call_each_other() {
    let s = site();
    let poa = s.poa("main", &[MAIN]);
    let inner = poa.serve(thread_teller()).expect("it is new");
    let outer = poa.serve(teller(move |_| ask(&inner))).expect("it is new");
    let outer = s.remote(&outer);
    std::thread::scope(|threads| {
        let asking = threads.spawn(|| ask(&outer));
        until("the request is there", || s.server.work_pending());
        s.server.perform_work();
        assert_eq!(asking.join().expect("no panic"), told(&this_thread()));
    });
}

struct ThreadLocator(Arc<Log>);

impl ServantLocator for ThreadLocator {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Servant, Cookie), Refusal> {
        self.0.note(this_thread());
        Ok((thread_teller(), None))
    }

    fn postinvoke(&self, _: &ObjectId, _: &Poa, _: &str, _: Cookie, _: Servant) {
        self.0.note(this_thread());
    }
}

#[test]
fn the_main_thread_calls_servant_managers_too() {
    let s = site();
    let poa = s.poa("main", &[MAIN, MANAGER, NON_RETAIN, USER]);
    let log = Arc::new(Log::default());
    poa.set_servant_locator(ThreadLocator(log.clone()))
        .expect("it retains nothing");
    let object = s.remote_to(&poa, "x");
    std::thread::scope(|threads| {
        let asking = threads.spawn(|| ask(&object));
        until("the request is there", || s.server.work_pending());
        s.server.perform_work();
        assert_eq!(asking.join().expect("no panic"), told(&this_thread()));
    });
    assert_eq!(log.take(), [this_thread(), this_thread()]);
}

#[test]
fn the_most_urgent_request_comes_first() {
    let s = with_one_thread();
    let priority = |value| Priority::new(value).expect("it is not negative");
    let model = Policy::PriorityModel(PriorityModel::ClientPropagated, priority(0));
    let poa = s.poa("main", &[MAIN, model]);
    let log = Arc::new(Log::default());
    let noted = log.clone();
    let servant = teller(move |call| {
        noted.note(String::from_utf8_lossy(call.operation()));
        Ok(String::new())
    });
    let object = s.remote(&poa.serve(servant).expect("it is new"));
    for (operation, value) in [
        ("low", 100),
        ("high", 20_000),
        ("low, later", 100),
        ("middle", 10_000),
        ("high, later", 20_000),
    ] {
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let current = s.client.rt_current();
                current
                    .set_priority(priority(value))
                    .expect("it has a native priority");
                leave(&s, &object, operation);
            });
        });
    }
    while s.server.work_pending() {
        s.server.perform_work();
    }
    assert_eq!(
        log.take(),
        ["high", "high, later", "middle", "low", "low, later"]
    );
}

#[test]
fn the_main_thread_serves_at_the_priority_of_the_request() {
    let s = site();
    let priority = |value| Priority::new(value).expect("it is not negative");
    let model = |model| Policy::PriorityModel(model, priority(7_000));
    let serve = |name: &str, policy| {
        let servant = teller(|call| {
            let current = call.orb().rt_current().priority().map(Priority::value);
            assert_eq!(current.ok(), call.priority().map(Priority::value));
            Ok(format!("{:?}", call.priority().map(Priority::value)))
        });
        let poa = s.poa(name, &[MAIN, policy]);
        poa.serve(servant).expect("it is new")
    };
    let propagated = serve("propagated", model(PriorityModel::ClientPropagated));
    let declared = serve("declared", model(PriorityModel::ServerDeclared));
    for (near, value) in [(propagated, 9_000), (declared, 7_000)] {
        for object in [s.remote(&near), near] {
            std::thread::scope(|threads| {
                let asking = threads.spawn(|| {
                    let current = s.client.rt_current();
                    current
                        .set_priority(priority(9_000))
                        .expect("it has a native priority");
                    ask(&object)
                });
                until("the request is there", || s.server.work_pending());
                s.server.perform_work();
                let seen = asking.join().expect("no panic");
                assert_eq!(seen, told(&format!("Some({value})")));
            });
        }
    }
    assert!(
        s.server.rt_current().priority().is_err(),
        "it ends with the request"
    );
}

#[test]
fn requests_that_wait_for_the_main_thread_are_bounded() {
    let s = site_with(|config| {
        config.threads = 1.into();
        config.max_main_thread_requests = 2;
    });
    let poa = s.poa("main", &[MAIN]);
    let near = poa.serve(named("it")).expect("it is new");
    let far = s.remote(&near);
    leave(&s, &far, "one");
    leave(&s, &far, "two");
    assert_eq!(ask(&far), Err(omg(Kind::Transient, 1)));
    std::thread::scope(|threads| {
        let asking = threads.spawn(|| ask(&near));
        let answer = asking.join().expect("no panic");
        assert_eq!(answer, Err(omg(Kind::Transient, 1)));
    });
    s.server.perform_work();
    std::thread::scope(|threads| {
        let asking = threads.spawn(|| ask(&far));
        until("it is served", || {
            s.server.perform_work();
            asking.is_finished()
        });
        assert_eq!(asking.join().expect("no panic"), told("it"));
    });
}

#[test]
fn where_nobody_runs_the_orb_the_client_does_not_wait_for_ever() {
    let s = site();
    let poa = s.poa("main", &[MAIN]);
    let token = Arc::new(());
    let near = poa
        .serve(crate::support::adapters::holding(&token))
        .expect("it is new");
    for object in [s.remote(&near), near] {
        let object = object.with_timeout(Duration::from_millis(20));
        assert_eq!(kind(ask(&object)), Kind::Timeout);
    }
    // Remaining work is dropped and does no harm.
    while s.server.work_pending() {
        s.server.perform_work();
    }
    poa.destroy(true, true).expect("no servant calls");
    until("the servant is dropped", || Arc::strong_count(&token) == 1);
}

#[test]
fn the_end_of_the_orb_does_not_wait_for_the_main_thread() {
    let s = site();
    let poa = s.poa("main", &[MAIN]);
    let token = Arc::new(());
    let near = poa
        .serve(crate::support::adapters::holding(&token))
        .expect("it is new");
    let far = s.remote(&near);
    std::thread::scope(|threads| {
        let asking = [&near, &far].map(|object| threads.spawn(|| ask(object)));
        until("a request is there", || s.server.work_pending());
        s.server.shutdown(true).expect("no servant calls");
        for asking in asking {
            assert_ne!(kind(asking.join().expect("no panic")), Kind::Timeout);
        }
    });
    until("the servant is dropped", || Arc::strong_count(&token) == 1);
}

#[test]
fn a_main_thread_request_may_find_its_adapter_destroyed() {
    let s = with_one_thread();
    let poa = s.poa("main", &[MAIN]);
    let object = s.remote(&poa.serve(named("it")).expect("it is new"));
    std::thread::scope(|threads| {
        let asking = threads.spawn(|| ask(&object));
        until("the request is there", || s.server.work_pending());
        poa.destroy(true, true).expect("no servant calls");
        s.server.perform_work();
        let answer = asking.join().expect("no panic");
        assert_eq!(kind(answer), Kind::ObjectNotExist);
    });
}
