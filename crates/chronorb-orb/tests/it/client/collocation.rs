//! Equivalence of collocated and remote calls.

use chronorb_orb::poa::{
    Cookie, ObjectId, Poa, Policy, PriorityModel, Refusal, ServantActivator, ServantLocator,
};
use chronorb_orb::rtcorba::{Lane, Priority, ThreadpoolLanes};
use chronorb_orb::{
    Collocation, Object, Operation, Reply, Scope, Servant, SystemException,
    SystemExceptionKind as Kind,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::adapters::{
    DEFAULT, MANAGER, MULTIPLE, NON_RETAIN, Site, USER, ask, ask_for, hex, kind, named, omg,
    site_with, teller, told, until, waiter_if_asked,
};
use crate::support::{
    Latch, PROBE_ID, Probe, ProbeSkeleton, add, call, echo, has_real_time, nothing,
};

const WAYS: [Collocation; 2] = [Collocation::Off, Collocation::ThroughPoa];

fn site_of(collocation: Collocation) -> Site {
    site_with(|config| config.collocation = collocation)
}

/// Returns the answers, which must be the same in both ways.
fn alike<R: std::fmt::Debug + PartialEq>(answers: impl Fn(&Site) -> R) -> R {
    let [off, through] = WAYS.map(|way| answers(&site_of(way)));
    assert_eq!(through, off, "calls within differ from those from outside");
    through
}

fn probe(s: &Site) -> Object {
    s.root
        .serve(ProbeSkeleton(Arc::default()))
        .expect("it is new")
}

/// Returns the exception of `refuse`, with its members.
fn refused(object: &Object) -> (String, String) {
    Scope::with(|scope| {
        let operation = Operation::twoway("refuse");
        let reply = object.invoke(scope, &operation, &|e| e.write_str("because"));
        match reply.expect("it raises a user exception") {
            Reply::UserException(id, mut d) => {
                let why = d.read_str().expect("it has a member");
                (id.to_owned(), why.to_owned())
            }
            Reply::Normal(_) => panic!("a user exception"),
        }
    })
}

#[test]
fn results_are_the_same() {
    let answers = alike(|s| {
        let object = probe(s);
        let octets = vec![7; 1 << 20];
        let back = call(&object, "octets", &|e| e.write_octet_seq(&octets), |d| {
            Ok(d.read_octet_seq()?.to_vec())
        });
        assert!(back == Ok(octets));
        (
            add(&object, 2, 3),
            echo(&object, "grüße"),
            nothing(&object, "wrong name"),
        )
    });
    assert_eq!((answers.0, answers.1), (Ok(5), told("grüße")));
}

#[test]
fn exceptions_are_the_same() {
    let answers = alike(|s| {
        let object = probe(s);
        let too_large = vec![0; 17 << 20];
        let exceptions: Vec<SystemException> = [
            nothing(&object, "fail"),
            nothing(&object, "panic"),
            nothing(&object, "fly"),
            nothing(&object, "add"),
            nothing(&object, "_fly"),
            call(
                &object,
                "octets",
                &|e| e.write_octet_seq(&too_large),
                |_| Ok(()),
            ),
            call(&object, "echo", &|e| e.write_str("a\0b"), |_| Ok(())),
            nothing(&object, "_interface"),
        ]
        .map(|answer| answer.expect_err("an exception"))
        .into();
        (refused(&object), exceptions)
    });
    let (user, system) = answers;
    assert_eq!(
        user,
        (crate::support::REFUSED_ID.to_owned(), "because".to_owned())
    );
    assert_eq!(system[0], SystemException::maybe(Kind::NoPermission, 42));
    let kinds: Vec<Kind> = system.iter().map(|e| e.kind).collect();
    assert_eq!(
        kinds[1..4],
        [Kind::Unknown, Kind::BadOperation, Kind::Marshal]
    );
}

#[test]
fn objects_that_are_not_there_are_the_same() {
    let answers = alike(|s| {
        let gone = probe(s);
        let id = s.root.reference_to_id(&gone).expect("it is ours");
        s.root.deactivate_object(&id).expect("it is active");
        let poa = s.poa("poa", &[USER]);
        let nobody = poa
            .create_reference_with_id(&"missing".into(), PROBE_ID)
            .expect("ids are ours");
        let destroyed = s.poa("destroyed", &[]);
        let with_it = destroyed.serve(named("x")).expect("it is new");
        destroyed.destroy(true, true).expect("no servant calls");
        let default = s.poa("default", &[DEFAULT, MULTIPLE, USER]);
        let no_default = default
            .create_reference_with_id(&"x".into(), PROBE_ID)
            .expect("ids are ours");
        let strange = crate::support::adapters::with_key(&s.server, &nobody, b"not ours");
        [gone, nobody, with_it, no_default, strange].map(|object| {
            (
                ask(&object),
                object.non_existent(),
                object.is_a("IDL:Other:1.0"),
            )
        })
    });
    let kinds = answers.map(|(asked, _, _)| kind(asked));
    let not_there = Kind::ObjectNotExist;
    let expected = [not_there, not_there, not_there, Kind::ObjAdapter, not_there];
    assert_eq!(kinds, expected);
}

#[test]
fn managers_are_the_same() {
    let answers = alike(|s| {
        let object = s.root.serve(named("it")).expect("it is new");
        let manager = s.root.manager();
        let mut answers = Vec::new();
        manager.discard_requests(true).expect("it is active");
        answers.push(ask(&object));
        manager.hold_requests(true).expect("it is active");
        std::thread::scope(|threads| {
            let held = threads.spawn(|| ask(&object));
            manager.activate().expect("it is not inactive");
            answers.push(held.join().expect("no panic"));
        });
        manager.deactivate(true, true).expect("it is active");
        answers.push(ask(&object));
        answers
    });
    assert_eq!(answers[..2], [Err(omg(Kind::Transient, 1)), told("it")]);
    assert_eq!(
        answers[2].as_ref().map_err(|e| e.kind),
        Err(Kind::ObjAdapter)
    );
}

struct Forwarder(Object);

impl ServantActivator for Forwarder {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Err(Refusal::Forward(self.0.clone()))
    }
}

impl ServantLocator for Forwarder {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Servant, Cookie), Refusal> {
        Err(Refusal::Forward(self.0.clone()))
    }
}

#[test]
fn forwards_are_the_same() {
    let answers = alike(|s| {
        // Within the process, away from it, and round in circles.
        let near = s.root.serve(named("near")).expect("it is new");
        let elsewhere = crate::support::adapters::site();
        let far = elsewhere.root.serve(named("far")).expect("it is new");
        let far = s
            .server
            .string_to_object(&elsewhere.server.object_to_string(&far))
            .expect("it reads");
        let circle = s.poa("circle", &[MANAGER, NON_RETAIN, USER]);
        let round = circle
            .create_reference_with_id(&"x".into(), PROBE_ID)
            .expect("ids are ours");
        circle
            .set_servant_locator(Forwarder(round.clone()))
            .expect("it retains nothing");
        let by = |name: &str, target: &Object| {
            let poa = s.poa(name, &[MANAGER, USER]);
            poa.set_servant_activator(Forwarder(target.clone()))
                .expect("it retains");
            let object = poa.create_reference_with_id(&"x".into(), PROBE_ID);
            ask(&object.expect("ids are ours"))
        };
        (by("near", &near), by("far", &far), ask(&round))
    });
    assert_eq!((answers.0, answers.1), (told("near"), told("far")));
    assert_eq!(answers.2.map_err(|e| e.kind), Err(Kind::Transient));
}

#[test]
fn current_and_call_are_the_same() {
    let answers = alike(|s| {
        let poa = s.poa("poa", &[USER]);
        let servant = teller(|call| {
            let current = call.orb().poa_current();
            let id = current.object_id().expect("a request is in progress");
            let operation = String::from_utf8_lossy(call.operation()).into_owned();
            let poa = current.poa().expect("a request is in progress");
            Ok(format!(
                "{} {} {operation} {} {:?}",
                poa.name(),
                hex(id.as_bytes()),
                call.response_expected(),
                call.priority(),
            ))
        });
        poa.activate_object_with_id("x", servant)
            .expect("it is free");
        let object = poa.id_to_reference(&"x".into()).expect("it is active");
        ask_for(&object, "what")
    });
    assert_eq!(answers, told("poa 78 what true None"));
}

#[test]
fn a_servant_that_panics_stops_nothing() {
    alike(|s| {
        let object = probe(s);
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(nothing(&object, "panic"));
            answers.push(add(&object, 1, 1).map(drop));
        }
        answers
    });
}

#[test]
fn oneway_calls_do_not_wait_for_the_servant() {
    for way in WAYS {
        let s = site_of(way);
        let latch = Arc::new(Latch::default());
        let object = s.root.serve(waiter_if_asked(&latch)).expect("it is new");
        object
            .invoke_oneway(&Operation::oneway("wait"), &|_| Ok(()))
            .expect("the object is there");
        // The servant waits for this thread.
        latch.reach(1);
        latch.set(2);
        let probe = Arc::new(Probe::default());
        let noting = s
            .root
            .serve(ProbeSkeleton(probe.clone()))
            .expect("it is new");
        noting
            .invoke_oneway(&Operation::oneway("note"), &|_| Ok(()))
            .expect("the object is there");
        probe.gate.reach(1);
        assert_eq!(probe.notes.load(Ordering::Relaxed), 1);
    }
}

fn corba(value: i16) -> Priority {
    Priority::new(value).expect("it is not negative")
}

/// Returns the servant's priority, and whether the calling thread's is unchanged.
fn priorities(s: &Site, object: &Object, caller: Option<i16>) -> (i16, i32, bool) {
    std::thread::scope(|threads| {
        let calling = threads.spawn(|| {
            let current = s.server.rt_current();
            if let Some(value) = caller {
                current
                    .set_priority(corba(value))
                    .expect("it has a native priority");
            }
            let own = || (current.priority().ok(), chronorb_rt::current().ok());
            let before = own();
            let (seen, native) = crate::support::priority(object).expect("it is served");
            (seen, native, own() == before)
        });
        calling.join().expect("no panic")
    })
}

#[test]
fn priorities_are_the_same_and_end_with_the_call() {
    const LOW: i16 = 8_000;
    const HIGH: i16 = 24_000;
    let answers = alike(|s| {
        let object = |name: &str, model| {
            let poa = s.poa(name, &[Policy::PriorityModel(model, corba(LOW))]);
            poa.serve(ProbeSkeleton(Arc::default())).expect("it is new")
        };
        let propagated = object("propagated", PriorityModel::ClientPropagated);
        let declared = object("declared", PriorityModel::ServerDeclared);
        [
            priorities(s, &propagated, Some(HIGH)),
            priorities(s, &propagated, Some(LOW)),
            priorities(s, &propagated, None),
            priorities(s, &declared, Some(HIGH)),
            priorities(s, &declared, None),
        ]
    });
    let native = |low, high| if has_real_time() { (low, high) } else { (0, 0) };
    let (low, high) = native(24, 72);
    assert_eq!(
        answers,
        [
            (HIGH, high, true),
            (LOW, low, true),
            (LOW, low, true),
            (LOW, low, true),
            (LOW, low, true),
        ]
    );
}

#[test]
fn an_object_of_lanes_is_served_by_its_lanes() {
    for way in WAYS {
        let s = site_of(way);
        let lanes = ThreadpoolLanes {
            lanes: vec![Lane::new(corba(100), 1), Lane::new(corba(20_000), 1)],
            ..Default::default()
        };
        let pool = s
            .server
            .rt()
            .create_threadpool_with_lanes(&lanes)
            .expect("the lanes open");
        let poa = s.poa(
            "lanes",
            &[
                Policy::Threadpool(pool),
                Policy::PriorityModel(PriorityModel::ClientPropagated, corba(100)),
            ],
        );
        let thread = || format!("{:?}", std::thread::current().id());
        let inner = poa.serve(teller(move |_| Ok(thread()))).expect("it is new");
        let seen = ask(&inner).expect("it is served");
        assert_ne!(seen, thread(), "by a thread of its lane");
        // A thread of the object's own lane serves collocated calls itself, if collocated calls are
        // permitted.
        let inner = match way {
            // The lane's only thread waits for itself.
            Collocation::Off => inner.with_timeout(std::time::Duration::from_millis(100)),
            _ => inner,
        };
        let outer = teller(move |_| ask(&inner));
        let outer = poa.serve(outer).expect("it is new");
        match way {
            Collocation::Off => assert_eq!(ask(&outer).map_err(|e| e.kind), Err(Kind::Timeout)),
            _ => assert_eq!(ask(&outer), Ok(seen)),
        }
    }
}

#[test]
fn where_calls_are_within_the_calling_thread_serves() {
    let thread = || format!("{:?}", std::thread::current().id());
    for way in WAYS {
        let s = site_of(way);
        let object = s
            .root
            .serve(teller(move |_| {
                Ok(format!("{:?}", std::thread::current().id()))
            }))
            .expect("it is new");
        assert_eq!(ask(&object) == Ok(thread()), way == Collocation::ThroughPoa);
        // Each reference may have another setting.
        for other in WAYS {
            let within = ask(&object.with_collocation(other)) == Ok(thread());
            assert_eq!(within, other == Collocation::ThroughPoa);
        }
        // And a reference that came as text is the same object.
        let text = s.server.object_to_string(&object);
        let again = s.server.string_to_object(&text).expect("it reads");
        assert_eq!(ask(&again) == Ok(thread()), way == Collocation::ThroughPoa);
    }
}

#[test]
fn calls_within_keep_their_adapter_alive() {
    let s = site_of(Collocation::ThroughPoa);
    let latch = Arc::new(Latch::default());
    let poa = s.poa("poa", &[]);
    let object = poa.serve(waiter_if_asked(&latch)).expect("it is new");
    std::thread::scope(|threads| {
        let busy = threads.spawn(|| ask_for(&object, "wait"));
        latch.reach(1);
        let ending = threads.spawn(|| poa.destroy(true, true));
        until("it has begun", || s.root.find_poa("poa", false).is_err());
        assert_eq!(ask(&object), Err(omg(Kind::Transient, 4)));
        assert!(!ending.is_finished());
        latch.set(2);
        assert_eq!(busy.join().expect("no panic"), told("done"));
        assert_eq!(ending.join().expect("no panic"), Ok(()));
    });
}

#[test]
fn after_shutdown_nothing_is_called() {
    let answers = alike(|s| {
        let object = probe(s);
        assert_eq!(add(&object, 1, 1), Ok(2));
        s.server.shutdown(true).expect("no servant calls");
        add(&object, 1, 1)
    });
    assert_eq!(answers, Err(omg(Kind::BadInvOrder, 4)));
}
