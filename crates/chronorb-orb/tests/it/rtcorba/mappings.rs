//! From CORBA priorities to native ones: mappings, the scheduling policy, transforms, and
//! `RTCurrent`.

use chronorb_orb::poa::{Policy, PriorityModel};
use chronorb_orb::rtcorba::{
    Lane, MappingKind, NativePriority, Priority, PriorityMapping, PriorityTransform,
    SchedulingPolicy, Threadpool, ThreadpoolLanes,
};
use chronorb_orb::{
    Collocation, Object, Orb, OrbConfig, RealTimeMode, SystemException,
    SystemExceptionKind as Kind, minor,
};
use chronorb_rt::{PiMutex, Rights, Scheduling};
use std::sync::Arc;

use crate::support::adapters::{Site, ask, omg, site_with, teller};
use crate::support::{has_real_time, orb, orb_with};

fn corba(value: i16) -> Priority {
    Priority::new(value).expect("not negative")
}

/// Returns the CORBA priority and the native scheduling of an upcall, in the format of [`seen`].
fn served_at(value: i16, scheduling: Scheduling) -> Result<String, SystemException> {
    Ok(format!("{value}, {}", possible(scheduling)))
}

/// Returns the effective result of a requested scheduling in this process.
fn possible(scheduling: Scheduling) -> Scheduling {
    if has_real_time() {
        scheduling
    } else {
        Scheduling::OTHER
    }
}

fn seen(priority: Option<Priority>) -> String {
    let native = chronorb_rt::current().expect("it can be asked");
    format!("{}, {native}", priority.map_or(-1, Priority::value))
}

/// Returns an object that returns the priority of its upcall, from the client's point of view, in
/// its own POA.
fn object(site: &Site, name: &str, model: PriorityModel, default: i16) -> Object {
    let poa = site.poa(name, &[Policy::PriorityModel(model, corba(default))]);
    let object = poa.serve(teller(|call| Ok(seen(call.priority()))));
    site.remote(&object.expect("it is new"))
}

/// Runs `f` in a thread with this CORBA priority, set by an ORB.
fn at<R: Send>(orb: &Orb, value: i16, f: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|threads| {
        let thread = threads.spawn(|| {
            let set = orb.rt_current().set_priority(corba(value));
            set.expect("it has a native priority");
            f()
        });
        thread.join().expect("it does not panic")
    })
}

/// Runs `f` in another thread, and returns its result.
fn apart<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|threads| threads.spawn(f).join().expect("it does not panic"))
}

fn not_mapped() -> SystemException {
    omg(Kind::DataConversion, 2)
}

fn panicked() -> SystemException {
    SystemException::no(Kind::Internal, minor::MAPPING_PANICKED)
}

/// A mapping of an application: priorities that are not in its table get invalid results.
#[derive(Debug)]
struct Plant;

impl PriorityMapping for Plant {
    fn to_native(&self, priority: Priority) -> Option<NativePriority> {
        match priority.value() {
            0 => Some(0),
            1 => Some(30),
            2 => Some(60),
            // Invalid on every system.
            3 => Some(100),
            4 => Some(NativePriority::MAX),
            5 => panic!("the mapping was asked to"),
            _ => None,
        }
    }

    fn to_corba(&self, native: NativePriority) -> Option<Priority> {
        (0..3)
            .map(corba)
            .find(|p| self.to_native(*p) == Some(native))
    }
}

fn plant() -> MappingKind {
    MappingKind::Custom(Arc::new(Plant))
}

#[test]
fn a_text_chooses_mapping_and_scheduling_policy() {
    let read = |line: &str| {
        let mut args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        OrbConfig::read(&mut args).map_err(|error| error.to_string())
    };
    for (text, native) in [
        ("linear", Some(0)),
        ("direct", Some(0)),
        ("continuous", Some(1)),
    ] {
        let config = read(&format!("-ORBPriorityMapping {text}")).expect(text);
        let orb = Orb::with_config(config).expect("it is made");
        let mapping = orb.rt().priority_mapping();
        assert_eq!(mapping.to_native(Priority::MIN), native, "{text}");
    }
    let wrong = read("-ORBPriorityMapping custom").expect_err("there is no such text");
    assert!(wrong.contains("linear, direct or continuous"), "{wrong}");
    for (text, policy) in [
        ("-ORBSchedulingPolicy fifo", SchedulingPolicy::Fifo),
        ("-ORBSchedulingPolicy rr", SchedulingPolicy::RoundRobin),
        ("-ORBSchedPolicy SCHED_FIFO", SchedulingPolicy::Fifo),
        ("-ORBSchedPolicy SCHED_RR", SchedulingPolicy::RoundRobin),
        ("-ORBSchedPolicy SCHED_OTHER", SchedulingPolicy::Other),
    ] {
        assert_eq!(read(text).expect(text).scheduling_policy, policy, "{text}");
    }
    let wrong = read("-ORBSchedulingPolicy batch").expect_err("there is no such policy");
    assert!(wrong.contains("fifo, rr or other"), "{wrong}");
}

#[test]
fn every_mapping_reaches_the_upcall() {
    for (mapping, value, native) in [
        (MappingKind::Linear, 24_000, 72),
        (MappingKind::Direct, 24, 24),
        (MappingKind::Continuous, 24, 25),
        (plant(), 2, 60),
    ] {
        let name = format!("{mapping:?}");
        let s = site_with(|config| config.priority_mapping = mapping);
        let object = object(&s, "p", PriorityModel::ServerDeclared, value);
        let expected = served_at(value, Scheduling::fifo(native));
        assert_eq!(ask(&object), expected, "{name}");
    }
}

#[test]
fn a_mapping_that_answers_nonsense_fails_the_call_and_nothing_else() {
    let s = site_with(|config| config.priority_mapping = plant());
    let object = object(&s, "p", PriorityModel::ClientPropagated, 1);
    for (value, expected) in [
        (3, not_mapped()),
        (4, not_mapped()),
        (5, panicked()),
        (6, not_mapped()),
    ] {
        // The client's own mapping is valid for them.
        assert_eq!(at(&s.client, value, || ask(&object)), Err(expected));
        let current = s.server.rt_current();
        assert_eq!(current.set_priority(corba(value)), Err(expected));
        let lanes = ThreadpoolLanes {
            lanes: vec![Lane::new(corba(value), 1)],
            ..Default::default()
        };
        let pool = s.server.rt().create_threadpool_with_lanes(&lanes);
        assert_eq!(pool, Err(expected));
        // The thread serves the next request normally.
        let next = at(&s.client, 2, || ask(&object));
        assert_eq!(next, served_at(2, Scheduling::fifo(60)));
    }
}

#[test]
fn round_robin_is_that_of_all_threads_of_the_orb() {
    let s = site_with(|config| config.scheduling_policy = SchedulingPolicy::RoundRobin);
    let lanes = ThreadpoolLanes {
        lanes: vec![Lane::new(corba(8_000), 1)],
        ..Default::default()
    };
    let pool = s.server.rt().create_threadpool_with_lanes(&lanes);
    let model = Policy::PriorityModel(PriorityModel::ServerDeclared, corba(8_000));
    let poa = s.poa(
        "lane",
        &[Policy::Threadpool(pool.expect("it opens")), model],
    );
    let laned = poa.serve(teller(|call| Ok(seen(call.priority()))));
    let laned = s.remote(&laned.expect("it is new"));
    assert_eq!(ask(&laned), served_at(8_000, Scheduling::rr(24)), "a lane");
    let object = object(&s, "p", PriorityModel::ServerDeclared, 24_000);
    for _ in 0..3 {
        let served = ask(&object);
        assert_eq!(served, served_at(24_000, Scheduling::rr(72)), "a change");
    }
    let own = at(&s.server, 24_000, chronorb_rt::current);
    assert_eq!(own.expect("it can be asked"), possible(Scheduling::rr(72)));
}

#[test]
fn an_application_may_want_no_real_time_thread() {
    let orb = orb_with(|config| config.scheduling_policy = SchedulingPolicy::Other);
    assert!(!orb.is_real_time());
    assert_eq!(orb.rt().native_priority_range(), None);
    let own = at(&orb, 24_000, chronorb_rt::current);
    assert_eq!(own.expect("it can be asked"), Scheduling::OTHER);
}

#[test]
fn the_native_range_is_what_the_process_may_use() {
    let most = Rights::probe().max_fifo;
    let range = most.map(|most| 1..=most);
    assert_eq!(orb().rt().native_priority_range(), range);
    let off = orb_with(|config| config.real_time = RealTimeMode::Off);
    assert_eq!(off.rt().native_priority_range(), None);
}

#[test]
fn required_priorities_outside_of_the_range_are_refused() {
    if !has_real_time() {
        // Then the ORB itself is refused, as other tests show.
        return;
    }
    let orb = orb_with(|config| {
        config.real_time = RealTimeMode::Required;
        config.scheduling_policy = SchedulingPolicy::Other;
    });
    let too_restricted = omg(Kind::Initialize, 1);
    let set = apart(|| orb.rt_current().set_priority(corba(1)));
    assert_eq!(set, Err(too_restricted));
    let pool = orb.rt().create_threadpool(&Threadpool::new(corba(1), 1));
    assert_eq!(pool, Err(too_restricted));
    let ordinary = apart(|| orb.rt_current().set_priority(Priority::MIN));
    assert_eq!(ordinary, Ok(()), "which is always there");
}

#[test]
fn the_current_priority_is_known_once_it_is_set() {
    let orb = orb_with(|config| config.priority_mapping = MappingKind::Direct);
    let current = orb.rt_current();
    apart(|| {
        let never_set = SystemException::no(Kind::Initialize, 0);
        assert_eq!(current.priority(), Err(never_set));
        assert_eq!(current.set_priority(corba(99)), Err(not_mapped()));
        assert_eq!(current.priority(), Err(never_set), "nothing was changed");
        assert_eq!(current.set_priority(corba(7)), Ok(()));
        assert_eq!(current.priority(), Ok(corba(7)));
        assert_eq!(current.set_priority(Priority::MAX), Err(not_mapped()));
        assert_eq!(current.priority(), Ok(corba(7)));
        let native = chronorb_rt::current().expect("it can be asked");
        assert_eq!(native, possible(Scheduling::fifo(7)));
    });
    // The values that the standard's attribute accepts.
    for value in [-1, i16::MIN] {
        let set = Priority::try_from(value).and_then(|p| current.set_priority(p));
        assert_eq!(set, Err(SystemException::no(Kind::BadParam, 0)));
    }
}

/// A transform that adds or subtracts a thousand, and records the priorities and objects.
#[derive(Default)]
struct Thousand {
    asked: PiMutex<Vec<(i16, Vec<u8>)>>,
}

impl Thousand {
    /// Returns the arguments since the last call.
    fn asked(&self) -> Vec<(i16, Vec<u8>)> {
        std::mem::take(&mut *self.asked.lock())
    }

    fn add(&self, priority: Priority, id: &[u8], more: i16) -> Option<Priority> {
        self.asked.lock().push((priority.value(), id.to_vec()));
        match priority.value() {
            REFUSED => None,
            PANICS => panic!("the transform was asked to"),
            value => Priority::new(value + more),
        }
    }
}

impl PriorityTransform for Thousand {
    fn inbound(&self, priority: Priority, object_id: &[u8]) -> Option<Priority> {
        self.add(priority, object_id, 1000)
    }

    fn outbound(&self, priority: Priority, object_id: &[u8]) -> Option<Priority> {
        self.add(priority, object_id, -2000)
    }
}

const REFUSED: i16 = 13;
const PANICS: i16 = 14;

fn transformed(orb: &Orb) -> Arc<Thousand> {
    let transform = Arc::new(Thousand::default());
    let set = orb.rt().set_priority_transform(transform.clone());
    set.expect("it is the first");
    transform
}

fn linear(value: i16) -> Scheduling {
    let native = chronorb_orb::rtcorba::LinearMapping.to_native(corba(value));
    Scheduling::fifo(native.expect("every priority has one"))
}

#[test]
fn a_request_is_served_at_what_the_inbound_transform_says() {
    let s = site_with(|_| {});
    let propagated = object(&s, "c", PriorityModel::ClientPropagated, 8_000);
    let declared = object(&s, "s", PriorityModel::ServerDeclared, 8_000);
    let none = {
        let object = s.root.serve(teller(|call| Ok(seen(call.priority()))));
        s.remote(&object.expect("it is new"))
    };
    let transform = transformed(&s.server);
    let high = at(&s.client, 20_000, || ask(&propagated));
    assert_eq!(high, served_at(21_000, linear(21_000)));
    assert_eq!(transform.asked()[0].0, 20_000, "what came with the request");
    let high = at(&s.client, 20_000, || ask(&declared));
    assert_eq!(high, served_at(9_000, linear(9_000)));
    assert_eq!(transform.asked()[0].0, 8_000, "what the server declares");
    assert_eq!(ask(&propagated), served_at(9_000, linear(9_000)));
    assert_eq!(transform.asked().len(), 1);
    // No priority to transform; the thread is unchanged.
    assert_eq!(ask(&none), served_at(-1, Scheduling::OTHER));
    assert_eq!(transform.asked(), []);
}

#[test]
fn a_transform_is_told_the_object() {
    let s = site_with(|_| {});
    let poa = s.poa(
        "ids",
        &[
            crate::support::adapters::USER,
            Policy::PriorityModel(PriorityModel::ServerDeclared, corba(8_000)),
        ],
    );
    let servant = teller(|call| Ok(seen(call.priority())));
    poa.activate_object_with_id("boiler", servant)
        .expect("it is free");
    let transform = transformed(&s.server);
    let object = s.remote_to(&poa, "boiler");
    assert_eq!(ask(&object), served_at(9_000, linear(9_000)));
    assert_eq!(transform.asked(), [(8_000, b"boiler".to_vec())]);
}

#[test]
fn a_transform_without_an_answer_fails_the_call_and_nothing_else() {
    let s = site_with(|_| {});
    let object = object(&s, "c", PriorityModel::ClientPropagated, 8_000);
    transformed(&s.server);
    let refused = at(&s.client, REFUSED, || ask(&object));
    assert_eq!(refused, Err(not_mapped()));
    let broken = at(&s.client, PANICS, || ask(&object));
    assert_eq!(broken, Err(panicked()));
    assert_eq!(ask(&object), served_at(9_000, linear(9_000)));
    let second = Arc::new(Thousand::default());
    let set = s.server.rt().set_priority_transform(second);
    assert_eq!(set, Err(SystemException::no(Kind::BadInvOrder, 0)));
}

/// Returns a server whose object calls another one of the ORB that `far` selects, and returns what
/// both observe.
fn relay(way: Collocation, far: &Site, near: &Site, model: PriorityModel) -> Object {
    let far_object = object(far, "far", model, 8_000);
    let text = far.server.object_to_string(&far_object);
    let target = near.server.string_to_object(&text).expect("it reads");
    let target = target.with_collocation(way);
    let poa = near.poa(
        "near",
        &[
            crate::support::adapters::USER,
            Policy::PriorityModel(PriorityModel::ServerDeclared, corba(20_000)),
        ],
    );
    let servant = teller(move |call| {
        let before = seen(call.orb().rt_current().priority().ok());
        let told = ask(&target)?;
        let after = seen(call.orb().rt_current().priority().ok());
        assert_eq!(before, after, "the call leaves the thread as it was");
        Ok(format!("{before}; {told}"))
    });
    poa.activate_object_with_id("relay", servant)
        .expect("it is free");
    near.remote_to(&poa, "relay")
}

/// Returns the expected observations of the relay and its target.
fn relayed(near: i16, far: i16) -> Result<String, SystemException> {
    let [near, far] = [near, far].map(|value| served_at(value, linear(value)));
    Ok(format!("{}; {}", near?, far?))
}

#[test]
fn the_outbound_transform_changes_what_a_servant_propagates() {
    let (near, far) = (site_with(|_| {}), site_with(|_| {}));
    let object = relay(
        Collocation::Off,
        &far,
        &near,
        PriorityModel::ClientPropagated,
    );
    assert_eq!(
        ask(&object),
        relayed(20_000, 20_000),
        "as long as there is none"
    );
    let transform = transformed(&near.server);
    assert_eq!(ask(&object), relayed(21_000, 19_000));
    let relay = b"relay".to_vec();
    let asked = [(20_000, relay.clone()), (21_000, relay)];
    assert_eq!(transform.asked(), asked, "for the object that calls");
}

#[test]
fn the_outbound_transform_is_not_for_what_the_target_declares() {
    let (near, far) = (site_with(|_| {}), site_with(|_| {}));
    let object = relay(Collocation::Off, &far, &near, PriorityModel::ServerDeclared);
    transformed(&near.server);
    assert_eq!(ask(&object), relayed(21_000, 8_000));
}

#[test]
fn a_call_within_the_process_is_transformed_both_ways() {
    for way in [Collocation::Off, Collocation::ThroughPoa] {
        let s = site_with(|_| {});
        let object = relay(way, &s, &s, PriorityModel::ClientPropagated);
        transformed(&s.server);
        // 21000 on the way in, 19000 on the way out, and 20000 on the way in there.
        assert_eq!(ask(&object), relayed(21_000, 20_000), "{way:?}");
    }
}

#[test]
fn a_client_that_serves_nothing_is_not_transformed() {
    let s = site_with(|_| {});
    let object = object(&s, "c", PriorityModel::ClientPropagated, 8_000);
    let transform = transformed(&s.client);
    let served = at(&s.client, 20_000, || ask(&object));
    assert_eq!(served, served_at(20_000, linear(20_000)));
    assert_eq!(transform.asked(), []);
}

#[test]
fn an_outbound_transform_without_an_answer_fails_the_servants_call() {
    let s = site_with(|_| {});
    let far = site_with(|_| {});
    let target = object(&far, "far", PriorityModel::ClientPropagated, 8_000);
    let text = far.server.object_to_string(&target);
    let target = s.server.string_to_object(&text).expect("it reads");
    let poa = s.poa(
        "near",
        &[Policy::PriorityModel(
            PriorityModel::ServerDeclared,
            corba(20_000),
        )],
    );
    let servant = teller(move |call| {
        let current = call.orb().rt_current();
        let mut told = Vec::new();
        for value in [REFUSED, PANICS] {
            current.set_priority(corba(value))?;
            told.push(format!("{:?}", ask(&target).expect_err("no answer").kind));
        }
        Ok(told.join(", "))
    });
    let object = poa.serve(servant).expect("it is new");
    transformed(&s.server);
    assert_eq!(
        ask(&s.remote(&object)),
        Ok("DataConversion, Internal".to_owned())
    );
}

#[test]
fn a_lane_keeps_its_thread_and_takes_its_priority_back() {
    let s = site_with(|_| {});
    let lanes = ThreadpoolLanes {
        lanes: vec![Lane::new(corba(8_000), 1), Lane::new(corba(9_000), 1)],
        ..Default::default()
    };
    let pool = s.server.rt().create_threadpool_with_lanes(&lanes);
    let policies = [
        Policy::Threadpool(pool.expect("the lanes open")),
        Policy::PriorityModel(PriorityModel::ServerDeclared, corba(8_000)),
    ];
    let servant = || {
        teller(|call| {
            let here = std::thread::current();
            let name = here.name().unwrap_or_default();
            Ok(format!("{}: {}", name, seen(call.priority())))
        })
    };
    let object = s.poa("low", &policies).serve(servant());
    let low = s.remote(&object.expect("it is new"));
    let before = ask(&low).expect("it answers");
    assert!(before.starts_with("1:0.0"), "{before}");
    transformed(&s.server);
    let after = ask(&low).expect("it answers");
    let expected = served_at(9_000, linear(9_000)).expect("it is a text");
    assert!(after.starts_with("1:0.0"), "{after}");
    assert!(after.ends_with(&expected), "{after}");
    let threads = chronorb_rt::list();
    let back = |name: &str, value| {
        let scheduling = possible(linear(value));
        threads
            .iter()
            .any(|t| t.name.starts_with(name) && t.scheduling == scheduling)
    };
    assert!(back("1:0.0", 8_000) && back("1:1.0", 9_000), "{threads:?}");
}
