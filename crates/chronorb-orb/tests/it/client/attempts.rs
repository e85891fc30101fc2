//! The rules for further attempts of a call, which are the same for synchronous, asynchronous,
//! explicit and collocated calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_giop::minor;
use chronorb_orb::SystemExceptionKind::{self as Kind, ObjectNotExist, Rebind};
use chronorb_orb::poa::{Cookie, ObjectId, Poa, Refusal, ServantLocator};
use chronorb_orb::rtcorba::{ClientPolicy, RebindMode, SetOverride};
use chronorb_orb::{
    BindError, Collocation, CompletionStatus, Object, Orb, Servant, SystemException,
};

use crate::support::adapters::{
    MANAGER, NON_RETAIN, Site, USER, profile_of, site, site_with, with_key,
};
use crate::support::asynchronous::{WAYS, begin_add};
use crate::support::raw_server::{CLOSE_CONNECTION, Peer, forward, object_at, raw_server};
use crate::support::{
    PATIENCE, PROBE_ID, ProbeSkeleton, add, kind_and_completion, orb, orb_with, with_longer_times,
};

type CallResult = Result<i32, SystemException>;

/// Checks the sum of 1 and 2 by each kind of call.
fn by_each_kind_of_call(check: impl Fn(&str, &dyn Fn(&Object) -> CallResult)) {
    check("synchronous", &|object| add(object, 1, 2));
    for (way, take) in WAYS {
        check(way, &|object| take(begin_add(object, 1, 2)?));
    }
}

/// Returns an object that a server does not have.
fn missing_at(server: &Site, client: &Orb) -> Object {
    let there = server.root.serve(ProbeSkeleton(Arc::default()));
    with_key(client, &there.expect("it is new"), b"key")
}

/// Returns the result of a call whose server forwards `times` requests to a missing object, and the
/// number of requests that the server gets.
fn forwarded_to_nobody(times: usize, call: &dyn Fn(&Object) -> CallResult) -> (CallResult, usize) {
    let (elsewhere, client) = (site(), orb());
    let port = profile_of(&missing_at(&elsewhere, &client)).port;
    // The reference has no code sets, like the server's, so marshalled arguments fit both.
    let missing = object_at(&client, ([127, 0, 0, 1], port).into());
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    let server = raw_server(move |mut peer: Peer| {
        while let Some(request) = peer.request() {
            if count.fetch_add(1, Ordering::SeqCst) < times {
                peer.send(&forward(request.0, missing.ior()))
            } else {
                peer.answer(request)
            }
        }
    });
    let called = call(&object_at(&client, server.address));
    client.shutdown(true).expect("not from a servant");
    (called, requests.load(Ordering::SeqCst))
}

#[test]
fn a_stale_target_leads_back_to_the_original_one_so_often() {
    by_each_kind_of_call(|kind, call| {
        assert_eq!(forwarded_to_nobody(2, call), (Ok(3), 3), "{kind}");
        let (called, requests) = forwarded_to_nobody(usize::MAX, call);
        let told = called.map_err(|exception| exception.kind);
        assert_eq!((told, requests), (Err(ObjectNotExist), 3), "{kind}");
    });
}

#[test]
fn a_binding_ends_where_the_target_is_stale_again_and_again() {
    let (s, elsewhere) = (site(), site());
    let missing = missing_at(&elsewhere, &s.client);
    let name = s.server.register_initial_reference("Lost", &missing);
    name.expect("it is free");
    let port = profile_of(&missing_at(&s, &s.client)).port;
    let url = format!("corbaloc::127.0.0.1:{port}/Lost");
    let object = s.client.string_to_object(&url).expect("a correct URL");
    match object.validate_connection().expect_err("it is not there") {
        BindError::System(exception) => assert_eq!(exception.kind, ObjectNotExist),
        other => panic!("{other}"),
    }
}

/// A servant locator that forwards its first requests, and serves the others.
struct Mover {
    to: Object,
    forwards: AtomicUsize,
}

impl ServantLocator for Mover {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Servant, Cookie), Refusal> {
        let left = |left: usize| left.checked_sub(1);
        let (this, order) = (&self.forwards, Ordering::SeqCst);
        match this.fetch_update(order, order, left) {
            Ok(_) => Err(Refusal::Forward(self.to.clone())),
            Err(_) => Ok((Arc::new(ProbeSkeleton(Arc::default())), Cookie::default())),
        }
    }
}

/// Returns an object of a server that forwards its first requests to a missing object.
fn moved(s: &Site, elsewhere: &Site, forwards: usize) -> Object {
    let poa = s.poa("moved", &[MANAGER, NON_RETAIN, USER]);
    let mover = Mover {
        to: missing_at(elsewhere, &s.server),
        forwards: AtomicUsize::new(forwards),
    };
    poa.set_servant_locator(mover).expect("it retains nothing");
    let object = poa.create_reference_with_id(&"x".into(), PROBE_ID);
    object.expect("ids are ours")
}

const COLLOCATIONS: [Collocation; 2] = [Collocation::Off, Collocation::ThroughPoa];

#[test]
fn a_stale_target_leads_back_into_the_process_too() {
    by_each_kind_of_call(|kind, call| {
        for collocation in COLLOCATIONS {
            let s = site_with(|config| config.collocation = collocation);
            let elsewhere = site();
            let object = moved(&s, &elsewhere, 2);
            assert_eq!(call(&object), Ok(3), "{kind}, {collocation:?}");
        }
    });
}

#[test]
fn the_rebind_policy_holds_for_forwards_within_the_process() {
    by_each_kind_of_call(|kind, call| {
        for collocation in COLLOCATIONS {
            let s = site_with(|config| config.collocation = collocation);
            let elsewhere = site();
            let policy = ClientPolicy::Rebind(RebindMode::NoReconnect);
            let object = moved(&s, &elsewhere, 1);
            let object = object.with_policy_overrides(&[policy], SetOverride::Add);
            let exception = call(&object.expect("one policy")).expect_err(kind);
            assert_eq!(
                exception,
                SystemException::no(Rebind, minor::FORWARD_FORBIDDEN)
            );
        }
    });
}

/// Returns a call's exception, and its cause as reported to the thread that takes the result.
fn failure(client: &Orb, called: CallResult) -> (Kind, String) {
    let kind = kind_and_completion(called).0;
    let failure = client.last_failure().expect("it has a cause");
    assert_eq!(failure.exception().kind, kind);
    (kind, failure.cause().to_owned())
}

#[test]
fn synchronous_and_asynchronous_calls_tell_the_same_causes() {
    type Serve = fn(Peer);
    let servers = [
        (
            (|mut peer| {
                peer.request();
                peer.send(CLOSE_CONNECTION);
            }) as Serve,
            Kind::Transient,
            "closed each connection without beginning the request",
        ),
        (
            |mut peer| {
                peer.request();
            },
            Kind::CommFailure,
            "was lost",
        ),
        (Peer::until_the_end, Kind::Timeout, "-ORBRequestTimeout"),
    ];
    for (serve, kind, cause) in servers {
        let server = raw_server(serve);
        let told = |call: fn(&Object) -> CallResult, time| {
            let client = orb_with(|config| config.request_timeout = time);
            let called = call(&object_at(&client, server.address));
            let completed = called.expect_err("it fails").completed;
            let is_unsent = kind == Kind::Timeout && completed == CompletionStatus::No;
            (!is_unsent).then(|| failure(&client, called))
        };
        let first = match kind {
            Kind::Timeout => Duration::from_millis(50),
            _ => PATIENCE / 2,
        };
        // On a busy machine a short time may pass before the request is sent.
        let (synchronous, asynchronous) = with_longer_times(first, |time| {
            let synchronous = told(|object| add(object, 1, 2), time)?;
            let asynchronous = told(|object| begin_add(object, 1, 2)?.wait(), time)?;
            Some((synchronous, asynchronous))
        });
        assert_eq!(asynchronous.0, kind);
        assert!(asynchronous.1.contains(cause), "{}", asynchronous.1);
        assert_eq!(synchronous, asynchronous);
    }
}

#[test]
fn an_exception_within_the_process_has_its_cause_in_an_asynchronous_call() {
    let s = site();
    let poa = s.poa("none", &[MANAGER, NON_RETAIN, USER]);
    let object = poa.create_reference_with_id(&"x".into(), PROBE_ID);
    let object = object.expect("ids are ours");
    let synchronous = failure(&s.server, add(&object, 1, 2));
    assert!(synchronous.1.contains("raised within this process"));
    let pending = begin_add(&object, 1, 2).expect("it begins");
    std::thread::scope(|threads| {
        threads.spawn(|| {
            assert_eq!(failure(&s.server, pending.wait()), synchronous);
        });
    });
}
