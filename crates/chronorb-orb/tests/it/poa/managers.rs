//! POA managers: active, holding, discarding and inactive; and locate requests.

use chronorb_cdr::Decoder;
use chronorb_orb::poa::{
    CreatePoaError, FindPoaError, IdAssignment, Lifespan, ObjectId, PoaManagerState, Policy,
    PriorityModel,
};
use chronorb_orb::rtcorba::{Lane, Priority, ThreadpoolLanes};
use chronorb_orb::{
    Call, CompletionStatus, ReplyWriter, Skeleton, SystemException, SystemExceptionKind, minor,
};
use std::sync::Arc;
use std::time::Duration;

use crate::support::{ProbeSkeleton, add, kind_and_completion, orb, orb_with, served, served_by};

#[test]
fn a_discarding_manager_is_transient() {
    let s = served();
    let root = s.server.root_poa().expect("it exists");
    root.manager()
        .discard_requests(false)
        .expect("it is active");
    assert_eq!(root.manager().state(), PoaManagerState::Discarding);
    assert_eq!(
        kind_and_completion(add(&s.object, 1, 1)),
        (SystemExceptionKind::Transient, CompletionStatus::No)
    );
    root.manager().activate().expect("it is not inactive");
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[test]
fn an_inactive_manager_is_obj_adapter_for_good() {
    let s = served();
    let root = s.server.root_poa().expect("it exists");
    root.manager()
        .deactivate(false, false)
        .expect("it is active");
    assert_eq!(
        kind_and_completion(add(&s.object, 1, 1)),
        (SystemExceptionKind::ObjAdapter, CompletionStatus::No)
    );
    assert!(root.manager().activate().is_err());
}

#[test]
fn a_holding_manager_lets_requests_wait() {
    let s = served();
    let root = s.server.root_poa().expect("it exists");
    root.manager().hold_requests(false).expect("it is active");
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| add(&s.object, 1, 1));
        root.manager().activate().expect("it is not inactive");
        assert_eq!(waiting.join().expect("it does not panic"), Ok(2));
    });
}

#[test]
fn who_is_held_too_long_is_turned_away() {
    let s = served_by(orb_with(|config| {
        config.hold_timeout = Duration::from_millis(1)
    }));
    let root = s.server.root_poa().expect("it exists");
    root.manager().hold_requests(false).expect("it is active");
    let (kind, _) = kind_and_completion(add(&s.object, 1, 1));
    assert_eq!(kind, SystemExceptionKind::Transient);
}

#[test]
fn a_held_request_meets_the_object_that_is_activated_meanwhile() {
    let s = served();
    let root = s.server.root_poa().expect("it exists");
    let policies = [Policy::IdAssignment(IdAssignment::User)];
    let poa = root
        .create_poa("later", None, &policies)
        .expect("it is free");
    let id = ObjectId::from("soon");
    let early = poa
        .create_reference_with_id(&id, crate::support::PROBE_ID)
        .expect("ids are ours");
    let early = s
        .client
        .string_to_object(&s.server.object_to_string(&early))
        .expect("it reads");
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| add(&early, 1, 1));
        let servant = ProbeSkeleton(Arc::default());
        poa.activate_object_with_id(id, servant)
            .expect("it is free");
        poa.manager().activate().expect("it is not inactive");
        assert_eq!(waiting.join().expect("it does not panic"), Ok(2));
    });
}

#[test]
fn a_discarding_manager_says_nothing_of_objects() {
    let s = served();
    let root = s.server.root_poa().expect("it exists");
    let id = root
        .reference_to_id(&s.object)
        .expect("it is of the root POA");
    root.deactivate_object(&id).expect("it was active");
    root.manager()
        .discard_requests(false)
        .expect("it is active");
    let (kind, _) = kind_and_completion(add(&s.object, 1, 1));
    assert_eq!(kind, SystemExceptionKind::Transient);
}

#[test]
fn a_poa_of_the_name_of_a_destroyed_one_is_reached() {
    let s = served();
    let root = s.server.root_poa().expect("it exists");
    let policies = [
        Policy::Lifespan(Lifespan::Persistent),
        Policy::IdAssignment(IdAssignment::User),
    ];
    let make = || loop {
        match root.create_poa("again", Some(root.manager()), &policies) {
            Ok(poa) => return poa,
            // It exists, or its destruction is not complete.
            Err(CreatePoaError::AdapterAlreadyExists) => std::thread::yield_now(),
            Err(CreatePoaError::System(exception))
                if exception.minor == minor::ADAPTER_BEING_DESTROYED =>
            {
                std::thread::yield_now();
            }
            Err(other) => panic!("{other}"),
        }
    };
    let mut poa = make();
    for _ in 0..200 {
        // The new POA is created while the former one is still being destroyed.
        poa = std::thread::scope(|threads| {
            threads.spawn(|| poa.destroy(false, false));
            make()
        });
        let servant = ProbeSkeleton(Arc::default());
        poa.activate_object_with_id("x", servant)
            .expect("it is new");
        let object = poa
            .id_to_reference(&ObjectId::from("x"))
            .expect("it is active");
        let object = s
            .client
            .string_to_object(&s.server.object_to_string(&object));
        assert_eq!(add(&object.expect("it reads"), 1, 1), Ok(2));
    }
}

#[test]
fn after_shutdown_no_reference_opens_an_endpoint() {
    let server = orb();
    let root = server.root_poa().expect("it is made");
    let policies = [Policy::IdAssignment(IdAssignment::User)];
    let poa = root
        .create_poa("late", None, &policies)
        .expect("it is free");
    server
        .shutdown(true)
        .expect("it is not called by a servant");
    let id = ObjectId::from("x");
    assert!(
        poa.create_reference_with_id(&id, crate::support::PROBE_ID)
            .is_err()
    );
    assert!(
        poa.activate_object_with_id(id, ProbeSkeleton(Arc::default()))
            .is_err()
    );
}

/// A skeleton whose every method panics.
struct Bomb;

impl Skeleton for Bomb {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Bomb:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        panic!("as the test wants it")
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        _: &[u8],
        _: &mut Decoder<'a>,
        _: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        panic!("as the test wants it")
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("as the test wants it");
        }
    }
}

#[test]
fn servants_that_panic_wherever_they_can_stop_neither_lanes_nor_shutdown() {
    let s = served_by(orb_with(|config| config.threads = 1.into()));
    let root = s.server.root_poa().expect("it exists");
    let bomb = root.serve(Bomb).expect("it activates");
    let bomb = s
        .client
        .string_to_object(&s.server.object_to_string(&bomb))
        .expect("it reads");
    for _ in 0..3 {
        assert!(bomb.is_a("IDL:Test/Other:1.0").is_err());
        assert!(crate::support::nothing(&bomb, "anything").is_err());
        assert_eq!(add(&s.object, 1, 1), Ok(2));
    }
    // The servant is still active, and dropped at the end.
    s.server
        .shutdown(true)
        .expect("it is not called by a servant");
}

#[test]
fn shutdown_lets_nobody_wait() {
    let s = served_by(orb_with(|config| {
        config.hold_timeout = Duration::from_secs(3600)
    }));
    let root = s.server.root_poa().expect("it exists");
    root.manager().hold_requests(false).expect("it is active");
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| add(&s.object, 1, 1));
        s.server
            .shutdown(true)
            .expect("it is not called by a servant");
        assert!(waiting.join().expect("it does not panic").is_err());
    });
}

#[test]
fn a_child_has_its_own_manager_unless_it_shares_one() {
    let server = orb();
    let root = server.root_poa().expect("the endpoint opens");
    root.manager().activate().expect("it was not deactivated");
    let own = root.create_poa("own", None, &[]).expect("it is free");
    let shared = root
        .create_poa("shared", Some(root.manager()), &[])
        .expect("it is free");
    assert_eq!(own.manager().state(), PoaManagerState::Holding);
    assert_eq!(shared.manager().state(), PoaManagerState::Active);
    assert_eq!(root.find_poa("own", false), Ok(own.clone()));
    own.destroy(false, true)
        .expect("it is not called by a servant");
    assert_eq!(
        root.find_poa("own", false),
        Err(FindPoaError::AdapterNonExistent)
    );
    assert!(own.serve(ProbeSkeleton(Arc::default())).is_err());
}

#[test]
fn unknown_initial_references_are_looked_for_at_the_default() {
    let s = served();
    s.server
        .register_initial_reference("Probe", &s.object)
        .expect("it is free");
    let profile = &s.object.ior().profiles[0];
    let profile = chronorb_giop::IiopProfile::decode(&profile.data).expect("our own");
    let client = orb_with(|config| {
        config.default_init_ref = Some(format!("corbaloc::127.0.0.1:{}", profile.port));
    });
    let object = client
        .resolve_initial_references("Probe")
        .expect("it has a URL");
    assert_eq!(add(&object, 1, 1), Ok(2));
}

#[test]
fn lanes_listen_where_they_are_told() {
    let ports = [(); 2].map(|()| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("it is bound").port()
    });
    let server = orb_with(|config| {
        for (lane, port) in ports.into_iter().enumerate() {
            let endpoint = format!("iiop://127.0.0.1:{port}");
            let endpoint = chronorb_transport::parse_endpoints(&endpoint).expect("it is correct");
            let lane = ((1, lane as u32), endpoint[0].clone());
            config.lane_listen_endpoints.push(lane);
        }
    });
    let priority = |value| Priority::new(value).expect("not negative");
    let lanes = ThreadpoolLanes {
        lanes: vec![Lane::new(priority(0), 1), Lane::new(priority(100), 1)],
        ..Default::default()
    };
    let pool = server
        .rt()
        .create_threadpool_with_lanes(&lanes)
        .expect("the lanes open");
    let root = server.root_poa().expect("the endpoint opens");
    for (name, value, port) in [("low", 0, ports[0]), ("high", 100, ports[1])] {
        let policies = [
            Policy::Threadpool(pool),
            Policy::PriorityModel(PriorityModel::ServerDeclared, priority(value)),
        ];
        let poa = root.create_poa(name, None, &policies).expect("they agree");
        let object = poa
            .serve(ProbeSkeleton(Arc::default()))
            .expect("it activates");
        let profile = chronorb_giop::IiopProfile::decode(&object.ior().profiles[0].data);
        assert_eq!(profile.expect("our own").port, port, "{name}");
    }
    server
        .shutdown(true)
        .expect("it is not called by a servant");
}
