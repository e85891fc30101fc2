//! Authorizers: the admission of requests to a POA by peer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use chronorb_giop::LocateStatus;
use chronorb_orb::poa::{AdapterActivator, AuthorizationRequest, Poa};
use chronorb_orb::quota::Origin;
use chronorb_orb::{Incident, SystemException, SystemExceptionKind, minor};

use crate::support::adapters::{
    Locator, PERSISTENT, USER, ask, ask_for, key_of, named, site, teller, told,
};

const NOT_AUTHORIZED: SystemException =
    SystemException::no(SystemExceptionKind::NoPermission, minor::NOT_AUTHORIZED);

#[test]
fn requests_are_permitted_by_operation_and_object() {
    let site = site();
    let poa = site.poa("guarded", &[USER]);
    for id in ["open", "closed"] {
        poa.activate_object_with_id(id, named(id))
            .expect("it is new");
    }
    let [open, closed] = ["open", "closed"].map(|id| site.remote_to(&poa, id));
    assert_eq!(ask(&closed), told("closed"));
    poa.set_authorizer(|request: &AuthorizationRequest<'_>| {
        assert_eq!(request.poa().name(), "guarded");
        let peer = request.peer().expect("it came by a connection");
        assert_eq!(peer.protocol(), "iiop");
        assert!(
            peer.address()
                .is_some_and(|address| address.ip().is_loopback())
        );
        request.object_id() == b"open" && request.operation() != b"secret"
    })
    .expect("it is the first");
    assert_eq!(ask(&open), told("open"));
    assert_eq!(ask_for(&open, "secret"), Err(NOT_AUTHORIZED));
    // An existing connection does not bypass the authorizer.
    assert_eq!(ask(&closed), Err(NOT_AUTHORIZED));
    let counts = site.server.snapshot().incidents;
    assert!(
        counts.contains(&(Incident::RequestNotAuthorized, 2)),
        "{counts:?}"
    );
    // A locate request does not reveal which objects exist.
    assert!(closed.validate_connection().is_err());
    let mut locator = Locator::of(&open);
    assert_eq!(
        locator.locate(&[key_of(&open), key_of(&closed)]),
        [LocateStatus::ObjectHere, LocateStatus::SystemException]
    );
    // Objects of other POAs, including children, are not subject to it.
    let child = poa
        .create_poa("child", Some(site.root.manager()), &[USER])
        .expect("the name is free");
    child
        .activate_object_with_id("secret", named("child"))
        .expect("it is new");
    assert_eq!(ask(&site.remote_to(&child, "secret")), told("child"));
}

#[test]
fn a_refused_request_reaches_neither_servant_nor_servant_manager() {
    let site = site();
    let called = Arc::new(AtomicU32::new(0));
    let counted = called.clone();
    let servant = teller(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(String::new())
    });
    let poa = site.poa("guarded", &[USER]);
    poa.activate_object_with_id("one", servant)
        .expect("it is new");
    poa.set_authorizer(|_: &AuthorizationRequest<'_>| false)
        .expect("it is the first");
    let one = site.remote_to(&poa, "one");
    assert_eq!(ask(&one), Err(NOT_AUTHORIZED));
    // The absence of an object is not revealed either.
    assert_eq!(ask(&site.remote_to(&poa, "two")), Err(NOT_AUTHORIZED));
    assert_eq!(one.non_existent(), Err(NOT_AUTHORIZED));
    assert_eq!(called.load(Ordering::SeqCst), 0);
    // The authorizer cannot be replaced.
    let error = poa.set_authorizer(|_: &AuthorizationRequest<'_>| true);
    let error = error.expect_err("there is one");
    assert_eq!(error.kind, SystemExceptionKind::BadInvOrder);
    assert_eq!(ask(&one), Err(NOT_AUTHORIZED));
}

#[test]
fn an_authorizer_that_panics_refuses() {
    let site = site();
    let poa = site.poa("guarded", &[USER]);
    poa.activate_object_with_id("one", named("one"))
        .expect("it is new");
    poa.set_authorizer(|request: &AuthorizationRequest<'_>| {
        assert_ne!(request.operation(), b"secret", "it was asked to");
        true
    })
    .expect("it is the first");
    let one = site.remote_to(&poa, "one");
    assert_eq!(ask_for(&one, "secret"), Err(NOT_AUTHORIZED));
    assert_eq!(ask(&one), told("one"));
}

#[test]
fn calls_within_the_process_are_asked_for_and_have_no_peer() {
    let site = site();
    let poa = site.poa("guarded", &[USER]);
    poa.activate_object_with_id("one", named("one"))
        .expect("it is new");
    poa.set_authorizer(|request: &AuthorizationRequest<'_>| {
        request.peer().is_none() && request.operation() != b"secret"
    })
    .expect("it is the first");
    let object = poa.create_reference_with_id(&"one".into(), "");
    let object = object.expect("ids are the test's");
    assert_eq!(ask(&object), told("one"));
    assert_eq!(ask_for(&object, "secret"), Err(NOT_AUTHORIZED));
    assert_eq!(ask(&site.remote(&object)), Err(NOT_AUTHORIZED));
}

/// A peer makes a process call itself by a reference that it sends.
#[test]
fn a_reference_of_a_peer_to_the_process_itself_has_no_peer() {
    let site = site();
    let poa = site.poa("guarded", &[USER]);
    let tells = teller(|call| Ok(call.origin().to_string()));
    poa.activate_object_with_id("one", tells)
        .expect("it is new");
    poa.set_authorizer(|_: &AuthorizationRequest<'_>| true)
        .expect("it is the first");
    let at_peer = site.remote_to(&poa, "one");
    let by_peer = ask(&at_peer).expect("it is permitted");
    assert!(by_peer.starts_with("127.0.0.1:"), "{by_peer}");
    let sent = site.client.object_to_string(&at_peer);
    let received = site.server.string_to_object(&sent).expect("it reads");
    assert_eq!(ask(&received), told(&Origin::Process.to_string()));
}

#[test]
fn an_adapter_activator_sets_one_before_the_first_request() {
    struct Guards;

    impl AdapterActivator for Guards {
        fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
            let poa = parent.create_poa(name, Some(parent.manager()), &[USER, PERSISTENT]);
            let poa = poa.expect("the name is free");
            poa.set_authorizer(|_: &AuthorizationRequest<'_>| false)?;
            poa.activate_object_with_id("one", named("one"))
                .expect("it is new");
            Ok(true)
        }
    }

    let site = site();
    let before = site.poa("later", &[USER, PERSISTENT]);
    let one = site.remote_to(&before, "one");
    before.destroy(false, true).expect("nothing is in it");
    site.root.set_activator(Some(Arc::new(Guards)));
    assert_eq!(ask(&one), Err(NOT_AUTHORIZED));
}
