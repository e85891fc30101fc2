//! Law 1: in steady state, a two-way call on an exclusive connection and a lane allocates nothing,
//! takes no lock and has no page fault on either side.

use chronorb_cdr::Decoder;
use chronorb_orb::codegen::v1::reply_error;
use chronorb_orb::poa::{AuthorizationRequest, Policy, PriorityModel};
use chronorb_orb::rtcorba::{
    ClientPolicy, Lane, Priority, SetOverride, ThreadpoolLanes, TimeConstraint,
};
use chronorb_orb::{
    Call, Object, Orb, OrbConfig, ReplyWriter, Skeleton, SystemException, ThreadpoolStrategy,
};
use chronorb_rt::{allocations, lock_operations, page_faults};
use chronorb_transport::parse_endpoints;
use std::sync::Arc;
use std::time::SystemTime;

use crate::alone;
use crate::support::{PATIENCE, call, orb_with};

/// The counters of a thread.
#[derive(Clone, Copy, Debug)]
struct Counts {
    allocations: u64,
    locks: u64,
    faults: u64,
}

impl Counts {
    fn now() -> Self {
        let (minor, major) = page_faults();
        Self {
            allocations: allocations(),
            locks: lock_operations(),
            faults: minor + major,
        }
    }
}

/// A servant that returns the counters of its thread.
struct Counter;

impl Skeleton for Counter {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Counter:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        _: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        let values: &[f64] = d.read_seq()?;
        let counts = Counts::now();
        let e = reply.normal()?;
        e.write_u64(counts.allocations)
            .and_then(|()| e.write_u64(counts.locks))
            .and_then(|()| e.write_u64(counts.faults))
            .and_then(|()| e.write_seq(values))
            .map_err(reply_error)
    }
}

fn counts_of_server(object: &Object, values: &[f64]) -> Counts {
    let counts = call(object, "counts", &|e| e.write_seq(values), |d| {
        let counts = Counts {
            allocations: d.read_u64()?,
            locks: d.read_u64()?,
            faults: d.read_u64()?,
        };
        let back: &[f64] = d.read_seq()?;
        assert_eq!(back, values);
        Ok(counts)
    });
    counts.expect("the call succeeds")
}

#[test]
fn nothing_gratuitous_happens_on_the_request_path() {
    for lite in [false, true] {
        nothing_gratuitous_happens("iiop://127.0.0.1:0", lite, false, &[]);
    }
}

#[cfg(feature = "uiop")]
#[test]
fn nor_by_unix_domain_sockets() {
    for lite in [false, true] {
        nothing_gratuitous_happens("uiop://", lite, false, &[]);
    }
}

#[cfg(feature = "diop")]
#[test]
fn nor_by_datagrams() {
    nothing_gratuitous_happens("diop://127.0.0.1:0", false, false, &[]);
}

/// Permits only the loopback, on both sides.
fn add_rule(config: &mut OrbConfig) {
    #[cfg(feature = "access")]
    for rules in [
        &mut config.server_transport_rules,
        &mut config.client_transport_rules,
    ] {
        rules.push("127.0.0.0/8 tcp".parse().expect("it is a rule"));
    }
    let _ = config;
}

#[test]
fn nor_with_access_rules_and_an_authorizer() {
    nothing_gratuitous_happens("iiop://127.0.0.1:0", false, true, &[]);
}

#[test]
fn nor_with_end_times() {
    let policies = [
        ClientPolicy::ReplyEndTime(SystemTime::now() + PATIENCE),
        ClientPolicy::RelativeRequestTimeout(PATIENCE),
    ];
    for lite in [false, true] {
        nothing_gratuitous_happens("iiop://127.0.0.1:0", lite, false, &policies);
    }
}

#[test]
fn nor_with_a_deadline() {
    let client = orb_with(|_| {});
    let _until = client
        .rt_current()
        .constrain(TimeConstraint::within(PATIENCE));
    for lite in [false, true] {
        nothing_gratuitous_happens("iiop://127.0.0.1:0", lite, false, &[]);
    }
}

/// A servant that returns the counters of its thread, from within a scheduling segment.
#[cfg(feature = "distributable-threads")]
struct NestedCounter;

#[cfg(feature = "distributable-threads")]
impl Skeleton for NestedCounter {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Counter:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch<'a>(
        &self,
        call: &Call<'a>,
        operation: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        let current = call.orb().scheduling_current();
        let segment = current.segment("nested", None, None);
        let _segment = segment.expect("the request has brought a thread");
        Counter.dispatch(call, operation, d, reply)
    }
}

#[cfg(feature = "distributable-threads")]
#[test]
fn nor_within_segments_on_both_sides() {
    let enter = |client: &Orb| client.scheduling_current().segment("root", None, None).ok();
    for lite in [false, true] {
        let conditions = ("iiop://127.0.0.1:0", lite, false);
        nothing_gratuitous_happens_at(NestedCounter, conditions, &[], &enter);
    }
}

/// Checks the law, by GIOPlite or GIOP, with or without access rules on both sides and an
/// authorizer, and with policies of the client.
fn nothing_gratuitous_happens(
    endpoint: &str,
    lite: bool,
    is_guarded: bool,
    of_client: &[ClientPolicy],
) {
    let conditions = (endpoint, lite, is_guarded);
    nothing_gratuitous_happens_at(Counter, conditions, of_client, &|_| None::<()>);
}

/// Checks the law as [`nothing_gratuitous_happens`] does, for a servant, and with what the client's
/// thread has for the time of the calls.
fn nothing_gratuitous_happens_at<T>(
    servant: impl Skeleton,
    (endpoint, lite, is_guarded): (&str, bool, bool),
    of_client: &[ClientPolicy],
    enter: &dyn Fn(&Orb) -> Option<T>,
) {
    let _alone = alone();
    let priority = Priority::new(20_000).expect("not negative");
    // Independent of the environment: the other strategy hands each request over, with two locks.
    let server = orb_with(|config| {
        config.threadpool_strategy = ThreadpoolStrategy::LeaderFollowers;
        config.listen_endpoints = parse_endpoints(endpoint).expect("an endpoint");
        config.giop_lite = lite;
        if is_guarded {
            add_rule(config);
        }
    });
    let lanes = ThreadpoolLanes {
        lanes: vec![Lane::new(priority, 1)],
        ..Default::default()
    };
    let pool = server
        .rt()
        .create_threadpool_with_lanes(&lanes)
        .expect("the lane opens");
    let root = server.root_poa().expect("the endpoint opens");
    let policies = [
        Policy::Threadpool(pool),
        Policy::PriorityModel(PriorityModel::ClientPropagated, priority),
    ];
    let poa = root
        .create_poa("rt", Some(root.manager()), &policies)
        .expect("they agree");
    let object = poa.serve(servant).expect("it activates");
    if is_guarded {
        poa.set_authorizer(|request: &AuthorizationRequest<'_>| {
            let peer = request.peer().and_then(|peer| peer.address());
            peer.is_some_and(|peer| peer.ip().is_loopback()) && request.operation() == b"counts"
        })
        .expect("it is the first");
    }
    root.manager().activate().expect("it was not deactivated");

    let client = orb_with(|config| {
        config.giop_lite = lite;
        if is_guarded {
            add_rule(config);
        }
    });
    client
        .rt_current()
        .set_priority(priority)
        .expect("it has a native priority");
    let object = client
        .string_to_object(&server.object_to_string(&object))
        .expect("the reference reads")
        .with_policy_overrides(of_client, SetOverride::Set)
        .expect("one of each kind");
    let _entered = enter(&client);
    let values: Arc<[f64]> = (0..200).map(f64::from).collect();

    // The first calls connect, and fault in what they touch.
    for _ in 0..100 {
        counts_of_server(&object, &values);
    }
    // The kernel may move a page at any time, which causes a page fault that is not the ORB's.
    // Therefore one of three runs must be without. Allocations and locks must be absent from each.
    let mut least_faults = u64::MAX;
    for _ in 0..3 {
        let server_before = counts_of_server(&object, &values);
        let client_before = Counts::now();
        for _ in 0..1000 {
            counts_of_server(&object, &values);
        }
        let client_after = Counts::now();
        let server_after = counts_of_server(&object, &values);
        let mut faults = 0;
        for (side, before, after) in [
            ("client", client_before, client_after),
            ("server", server_before, server_after),
        ] {
            assert_eq!(
                after.allocations, before.allocations,
                "allocations of the {side}"
            );
            assert_eq!(after.locks, before.locks, "lock operations of the {side}");
            faults += after.faults - before.faults;
        }
        least_faults = least_faults.min(faults);
    }
    assert_eq!(least_faults, 0, "page faults in 1000 calls");
    server
        .shutdown(true)
        .expect("it is not called by a servant");
}
