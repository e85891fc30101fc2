//! Names that lead through contexts of several servers.

use std::time::Duration;

use chronorb_naming::idl::cos_naming::naming_context::NotFoundReason;
use chronorb_naming::idl::cos_naming::{BindErrorBuf, NamingContext, RebindErrorBuf};
use chronorb_naming::{Limits, NameServer};

use crate::support::{Fixture, n};

/// Two servers; the context `there` of the first one is the root of the second one.
fn two(first: NameServer) -> (Fixture, Fixture) {
    let (here, there) = (Fixture::new(first), Fixture::new(NameServer::new()));
    let text = there.server.object_to_string(there.service.root());
    let object = here.client.string_to_object(&text).unwrap();
    let context = NamingContext::unchecked_narrow(&object);
    here.root()
        .bind_context(&n(["there"]), Some(&context))
        .unwrap();
    (here, there)
}

#[test]
fn every_operation_continues_at_the_other_server() {
    let (here, there) = two(NameServer::new());
    let (root, remote) = (here.root(), there.root());
    root.bind(&n(["there", "o"]), Some(&here.object(1)))
        .unwrap();
    assert_eq!(remote.resolve(&n(["o"])).unwrap(), Some(there.object(1)));
    root.rebind(&n(["there", "o"]), Some(&here.object(2)))
        .unwrap();
    assert_eq!(
        root.resolve(&n(["there", "o"])).unwrap(),
        Some(here.object(2))
    );
    assert_eq!(root.resolve_str("there/o").unwrap(), Some(here.object(2)));
    let made = root.bind_new_context(&n(["there", "c"])).unwrap().unwrap();
    made.bind(&n(["x"]), None).unwrap();
    assert_eq!(remote.resolve(&n(["c", "x"])).unwrap(), None);
    assert_eq!(
        (here.service.context_count(), there.service.context_count()),
        (1, 2)
    );
    root.bind_context(&n(["there", "d"]), Some(&made)).unwrap();
    root.rebind_context(&n(["there", "d"]), Some(&made))
        .unwrap();
    assert_eq!(root.resolve(&n(["there", "d", "x"])).unwrap(), None);
    root.unbind(&n(["there", "o"])).unwrap();
    let leasing = here.leasing();
    let lease = leasing
        .bind_with_lease(&n(["there", "l"]), None, 60)
        .unwrap();
    leasing.renew(&n(["there", "l"]), lease).unwrap();
    leasing.release(&n(["there", "l"]), lease).unwrap();
    match root.resolve(&n(["there", "o"])) {
        Err(RebindErrorBuf::NotFound(error)) => {
            assert_eq!(error.why, NotFoundReason::MissingNode);
            assert_eq!(error.rest_of_name[0].id, "o");
        }
        other => panic!("{other:?}"),
    }
    match root.bind(&n(["there", "c"]), None) {
        Err(BindErrorBuf::AlreadyBound(_)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_caller_continues_by_itself_if_the_other_server_fails() {
    let (here, there) = two(NameServer::new());
    drop(there);
    match here.root().resolve(&n(["there", "a", "b"])) {
        Err(RebindErrorBuf::CannotProceed(error)) => {
            let rest: Vec<_> = error.rest_of_name.iter().map(|c| &*c.id).collect();
            assert_eq!(rest, ["a", "b"]);
            assert!(error.cxt.is_some());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_circle_of_servers_ends() {
    let limits = Limits {
        federation_timeout: Duration::from_secs(60),
        federated_calls: 2,
        federated_calls_per_origin: Some(2),
        ..Limits::default()
    };
    let (here, there) = two(NameServer::new().limits(limits));
    let text = here.server.object_to_string(here.service.root());
    let object = there.client.string_to_object(&text).unwrap();
    let back = NamingContext::unchecked_narrow(&object);
    there
        .root()
        .bind_context(&n(["back"]), Some(&back))
        .unwrap();
    here.root().bind(&n(["x"]), Some(&here.object(0))).unwrap();
    let root = here.root();
    let found = root.resolve(&n(["there", "back", "x"])).unwrap();
    assert_eq!(found, Some(here.object(0)));
    // Each server has made two calls when the third is refused.
    let name = ["there", "back"].repeat(20);
    let name: [&str; 40] = name.try_into().unwrap();
    match root.resolve(&n(name)) {
        Err(RebindErrorBuf::CannotProceed(error)) => assert_eq!(error.rest_of_name.len(), 35),
        other => panic!("{other:?}"),
    }
    // The calls that were counted are over.
    root.resolve(&n(["there", "back", "x"])).unwrap();
}
