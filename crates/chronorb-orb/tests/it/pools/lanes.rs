//! Thread pools with lanes, and priorities end to end.

use chronorb_orb::poa::{CreatePoaError, Poa, Policy, PriorityModel};
use chronorb_orb::rtcorba::{Lane, Priority, Threadpool, ThreadpoolLanes};
use chronorb_orb::{CompletionStatus, Object, Orb, RealTimeMode, SystemExceptionKind};
use std::sync::Arc;

use crate::support::{
    Probe, ProbeSkeleton, add, has_real_time, kind_and_completion, nothing, orb, orb_with,
    priority, relayed,
};

const LOW: i16 = 8_000;
const HIGH: i16 = 24_000;

fn corba(value: i16) -> Priority {
    Priority::new(value).expect("not negative")
}

fn two_lanes() -> ThreadpoolLanes {
    ThreadpoolLanes {
        lanes: vec![Lane::new(corba(LOW), 1), Lane::new(corba(HIGH), 1)],
        ..Default::default()
    }
}

/// A server with a high and a low lane, and its probe as a client sees it.
struct LanedServer {
    server: Orb,
    client: Orb,
    probe: Arc<Probe>,
    object: Object,
}

fn laned(model: PriorityModel, server_priority: i16) -> LanedServer {
    let server = orb();
    let pool = server.rt().create_threadpool_with_lanes(&two_lanes());
    let root = server.root_poa().expect("the endpoint opens");
    let policies = [
        Policy::Threadpool(pool.expect("the lanes open")),
        Policy::PriorityModel(model, corba(server_priority)),
    ];
    let poa = root.create_poa("rt", Some(root.manager()), &policies);
    let probe = Arc::new(Probe::default());
    let object = poa
        .expect("the policies agree")
        .serve(ProbeSkeleton(probe.clone()))
        .expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let client = orb();
    let text = server.object_to_string(&object);
    LanedServer {
        object: client.string_to_object(&text).expect("the reference reads"),
        server,
        client,
        probe,
    }
}

impl LanedServer {
    /// Runs `f` in a thread of this CORBA priority.
    fn at<R: Send>(&self, value: i16, f: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|threads| {
            let thread = threads.spawn(|| {
                let current = self.client.rt_current();
                current
                    .set_priority(corba(value))
                    .expect("it has a native priority");
                f()
            });
            thread.join().expect("it does not panic")
        })
    }
}

impl Drop for LanedServer {
    fn drop(&mut self) {
        self.probe.gate.set(u32::MAX);
        let _ = self.client.shutdown(false);
        let _ = self.server.shutdown(true);
    }
}

/// Returns the native priority by the default mapping, if the process may use it.
fn native(value: i16) -> i32 {
    match (value, has_real_time()) {
        (LOW, true) => 24,
        (HIGH, true) => 72,
        _ => 0,
    }
}

#[test]
fn a_propagated_priority_is_that_of_the_serving_thread() {
    let s = laned(PriorityModel::ClientPropagated, LOW);
    for value in [LOW, HIGH] {
        assert_eq!(
            s.at(value, || priority(&s.object)),
            Ok((value, native(value)))
        );
    }
}

#[test]
fn a_declared_priority_holds_whatever_the_client_has() {
    let s = laned(PriorityModel::ServerDeclared, HIGH);
    for value in [LOW, HIGH] {
        assert_eq!(
            s.at(value, || priority(&s.object)),
            Ok((HIGH, native(HIGH)))
        );
    }
    assert_eq!(
        priority(&s.object),
        Ok((HIGH, native(HIGH))),
        "and without one"
    );
}

#[test]
fn the_high_lane_answers_while_the_low_one_is_busy() {
    let s = laned(PriorityModel::ClientPropagated, LOW);
    std::thread::scope(|threads| {
        // The only thread of the low lane is held until the test lets it go.
        let busy = threads.spawn(|| s.at(LOW, || nothing(&s.object, "wait")));
        s.probe.gate.reach(1);
        assert_eq!(s.at(HIGH, || add(&s.object, 40, 2)), Ok(42));
        s.probe.gate.set(2);
        assert_eq!(busy.join().expect("it does not panic"), Ok(()));
    });
}

#[test]
fn a_priority_without_a_lane_is_refused() {
    let s = laned(PriorityModel::ClientPropagated, LOW);
    let (kind, completed) = kind_and_completion(s.at(12_345, || add(&s.object, 1, 1)));
    assert_eq!(kind, SystemExceptionKind::NoResources);
    assert_eq!(completed, CompletionStatus::No);
}

#[test]
fn a_thread_without_a_priority_is_served_at_the_servers() {
    let s = laned(PriorityModel::ClientPropagated, LOW);
    assert_eq!(priority(&s.object), Ok((LOW, native(LOW))));
}

#[test]
fn a_client_that_knows_nothing_of_lanes_is_served() {
    // It connects to the endpoint of the profile itself, which belongs to the low lane.
    let s = laned(PriorityModel::ClientPropagated, LOW);
    let mut ior = s.object.ior().clone();
    let mut profile = chronorb_giop::IiopProfile::decode(&ior.profiles[0].data).expect("our own");
    profile.components.clear();
    ior.profiles[0].data = profile.encode().expect("it fits");
    let plain = s
        .client
        .string_to_object(&ior.to_string())
        .expect("it reads");
    assert_eq!(s.at(HIGH, || priority(&plain)), Ok((LOW, native(LOW))));
}

#[test]
fn a_pool_without_lanes_takes_the_requests_priority_for_the_upcall() {
    let server = orb();
    let pool = server
        .rt()
        .create_threadpool(&Threadpool::new(corba(LOW), 1))
        .expect("the pool opens");
    let root = server.root_poa().expect("the endpoint opens");
    let policies = [
        Policy::Threadpool(pool),
        Policy::PriorityModel(PriorityModel::ClientPropagated, corba(LOW)),
    ];
    let poa = root
        .create_poa("rt", Some(root.manager()), &policies)
        .expect("they agree");
    let probe = Arc::new(Probe::default());
    let object = poa
        .serve(ProbeSkeleton(probe.clone()))
        .expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let client = orb();
    let text = server.object_to_string(&object);
    let s = LanedServer {
        object: client.string_to_object(&text).expect("it reads"),
        server,
        client,
        probe,
    };
    for value in [HIGH, LOW, HIGH] {
        assert_eq!(
            s.at(value, || priority(&s.object)),
            Ok((value, native(value)))
        );
    }
}

#[test]
fn the_calls_of_a_servant_keep_the_priority_of_its_request() {
    let near = laned(PriorityModel::ClientPropagated, LOW);
    let far = laned(PriorityModel::ClientPropagated, LOW);
    for value in [HIGH, LOW] {
        let seen = near.at(value, || relayed(&near.object, &far.object));
        assert_eq!(seen, Ok((value, native(value))));
    }
}

#[test]
fn a_priority_that_a_servant_gives_itself_ends_with_the_upcall() {
    let s = laned(PriorityModel::ServerDeclared, LOW);
    let raise =
        |value| crate::support::call(&s.object, "raise", &|e| e.write_i16(value), |_| Ok(()));
    assert_eq!(raise(HIGH), Ok(()));
    // The lane has one thread, which serves this too.
    assert_eq!(priority(&s.object), Ok((LOW, native(LOW))));
    let thread = chronorb_rt::list()
        .into_iter()
        .find(|t| t.name == "1:0.0 chronorb");
    assert!(thread.is_some());
}

#[test]
fn impossible_pools_are_refused() {
    let orb = orb();
    let lane = |priority, threads| Lane::new(corba(priority), threads);
    let with = |lanes: Vec<Lane>| ThreadpoolLanes {
        lanes,
        ..Default::default()
    };
    for pool in [
        with(vec![]),
        with(vec![lane(LOW, 0)]),
        with(vec![lane(LOW, 1), lane(LOW, 2)]),
        with(vec![lane(LOW, u32::MAX)]),
    ] {
        let refused = orb.rt().create_threadpool_with_lanes(&pool);
        let (kind, _) = kind_and_completion(refused);
        assert_eq!(kind, SystemExceptionKind::BadParam, "{pool:?}");
    }
}

#[test]
fn policies_that_contradict_each_other_are_named() {
    let orb = orb();
    let pool = orb
        .rt()
        .create_threadpool_with_lanes(&two_lanes())
        .expect("it opens");
    let root = orb.root_poa().expect("the endpoint opens");
    let make = |policies: &[Policy]| root.create_poa("rt", None, policies);
    let model = |p| Policy::PriorityModel(PriorityModel::ServerDeclared, corba(p));
    let index = |result: Result<Poa, CreatePoaError>| match result {
        Err(CreatePoaError::InvalidPolicy { index, .. }) => index,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        index(make(&[Policy::Threadpool(pool)])),
        0,
        "lanes want a model"
    );
    assert_eq!(
        index(make(&[Policy::Threadpool(pool), model(5)])),
        1,
        "no such lane"
    );
    assert_eq!(index(make(&[model(LOW), model(LOW)])), 1, "given twice");
    let other = self::orb();
    let elsewhere = other
        .rt()
        .create_threadpool_with_lanes(&two_lanes())
        .expect("it opens");
    let third = other
        .rt()
        .create_threadpool_with_lanes(&two_lanes())
        .expect("it opens");
    assert_ne!(elsewhere, third);
    assert_eq!(
        index(make(&[model(LOW), Policy::Threadpool(third)])),
        1,
        "no such pool"
    );
    assert!(make(&[model(LOW), Policy::Threadpool(pool)]).is_ok());
    assert_eq!(
        make(&[]).expect_err("the name is taken"),
        CreatePoaError::AdapterAlreadyExists
    );
}

#[test]
fn without_real_time_lanes_still_serve_each_priority_apart() {
    let server = orb_with(|config| config.real_time = RealTimeMode::Off);
    assert!(!server.is_real_time());
    let pool = server
        .rt()
        .create_threadpool_with_lanes(&two_lanes())
        .expect("it opens");
    let root = server.root_poa().expect("the endpoint opens");
    let policies = [
        Policy::Threadpool(pool),
        Policy::PriorityModel(PriorityModel::ServerDeclared, corba(HIGH)),
    ];
    let poa = root
        .create_poa("rt", Some(root.manager()), &policies)
        .expect("they agree");
    let object = poa
        .serve(ProbeSkeleton(Arc::default()))
        .expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let client = orb_with(|config| config.real_time = RealTimeMode::Off);
    let object = client
        .string_to_object(&server.object_to_string(&object))
        .expect("it reads");
    assert_eq!(priority(&object), Ok((HIGH, 0)));
    server
        .shutdown(true)
        .expect("it is not called by a servant");
}

#[test]
fn every_thread_of_a_lane_has_a_name_and_its_priority() {
    let s = laned(PriorityModel::ClientPropagated, LOW);
    assert_eq!(s.at(HIGH, || add(&s.object, 1, 1)), Ok(2));
    let threads = chronorb_rt::list();
    for (name, value) in [("1:0.0 chronorb", LOW), ("1:1.0 chronorb", HIGH)] {
        let thread = threads
            .iter()
            .find(|t| t.name == name && i32::from(t.scheduling.priority) == native(value));
        assert!(thread.is_some(), "{name} in {threads:?}");
    }
}
