//! A client that takes all that it can, beside another one that is served.

use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb::prelude::*;
use chronorb::quota::QuotaSnapshot;
use chronorb_naming::idl::cos_naming::{
    BindErrorBuf, BindingIterator, NamingContext, NamingContextExt, RebindErrorBuf,
    ResolveStrErrorBuf, ToStringError, ToUrlError,
};
use chronorb_naming::{Limits, NameServer, Tree};
use chronorb_rt::ThreadBuilder;

use crate::support::{FailingJournal, Fixture, n, orb_with};

macro_rules! exception {
    ($call:expr, $error:ident) => {
        match $call {
            Err($error::System(exception)) => exception.kind,
            other => panic!("{other:?}"),
        }
    };
}

/// A server with two clients, each of which is an origin: it has one connection.
struct Pair {
    server: Fixture,
    other: Orb,
}

impl Pair {
    fn new(server: NameServer) -> Self {
        let server = Fixture::new(server);
        // All threads of a client have one connection, so they are one origin.
        let shared = ["-ORBClientConnection", "leader"];
        let other = orb_with(&shared);
        Self { server, other }
    }

    /// The root context, as the other client sees it.
    fn other_root(&self) -> NamingContextExt {
        NamingContextExt::unchecked_narrow(&self.seen_by_other(self.server.service.root()))
    }

    fn seen_by_other(&self, object: &Object) -> Object {
        let text = self.server.server.object_to_string(object);
        self.other.string_to_object(&text).unwrap()
    }

    fn quota(&self, name: &str) -> QuotaSnapshot {
        let mut quotas = self.server.server.snapshot().quotas.into_iter();
        quotas.find(|quota| quota.name == name).unwrap()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.other.shutdown(true).unwrap();
    }
}

#[test]
fn texts_that_no_name_has_are_refused_by_their_length() {
    let limits = Limits {
        components: 3,
        component_octets: 4,
        reference_octets: 400,
        ..Limits::default()
    };
    let f = Fixture::new(NameServer::new().limits(limits));
    let root = f.root();
    let longest = r"\.\.\.\./ab.cd/\\\\";
    assert_eq!(root.to_name(longest).unwrap().len(), 3);
    let too_long = ["a/b/c/d", "abcde", "abc.de", r"a\.\.\.\.", "a/b/cdefg"];
    let endless = "a/".repeat(1 << 19) + "a";
    for text in too_long.into_iter().chain([&*endless]) {
        let refused = exception!(root.resolve_str(text), ResolveStrErrorBuf);
        assert_eq!(refused, SystemExceptionKind::ImpLimit, "{text:.9}");
        let refused = exception!(root.to_name(text), ToStringError);
        assert_eq!(refused, SystemExceptionKind::ImpLimit, "{text:.9}");
        let refused = exception!(root.to_url(":h", text), ToUrlError);
        assert_eq!(refused, SystemExceptionKind::ImpLimit, "{text:.9}");
    }
    let address = format!(":{}", "h".repeat(400));
    let refused = exception!(root.to_url(&address, "a"), ToUrlError);
    assert_eq!(refused, SystemExceptionKind::ImpLimit);
    for name in [&n(["a"; 4])[..], &n(["abcde"])] {
        let refused = exception!(root.to_string(name), ToStringError);
        assert_eq!(refused, SystemExceptionKind::ImpLimit);
    }
    // What is malformed within the limits is so still.
    assert!(matches!(
        root.to_name("a//b"),
        Err(ToStringError::InvalidName(_))
    ));
    assert!(matches!(
        root.resolve_str(""),
        Err(ResolveStrErrorBuf::InvalidName(_))
    ));
}

fn open(root: &NamingContextExt) -> BindingIterator {
    root.list(0).unwrap().1.unwrap()
}

fn has_ended(iterator: &BindingIterator) -> bool {
    match iterator.next_n(1) {
        Ok(_) => false,
        Err(exception) => exception.kind == SystemExceptionKind::ObjectNotExist,
    }
}

#[test]
fn iterators_of_a_client_end_only_for_its_own() {
    let limits = Limits {
        iterators: 8,
        ..Limits::default()
    };
    let pair = Pair::new(NameServer::new().limits(limits));
    let (greedy, other) = (pair.server.root(), pair.other_root());
    let kept = open(&other);
    let taken: Vec<_> = (0..20).map(|_| open(&greedy)).collect();
    assert!(!has_ended(&kept));
    let alive: Vec<_> = taken.iter().map(|it| !has_ended(it)).collect();
    assert_eq!(alive, [[false; 18].as_slice(), &[true; 2]].concat());
    let quota = pair.quota("binding iterators");
    assert_eq!((quota.used, quota.most), (3, 2));
}

#[test]
fn the_client_with_the_most_iterators_gives_way() {
    let limits = Limits {
        iterators: 4,
        iterators_per_origin: Some(4),
        ..Limits::default()
    };
    let pair = Pair::new(NameServer::new().limits(limits));
    let (greedy, other) = (pair.server.root(), pair.other_root());
    let taken: Vec<_> = (0..4).map(|_| open(&greedy)).collect();
    let first = open(&other);
    assert!(has_ended(&taken[0]));
    let second = open(&other);
    assert!(has_ended(&taken[1]));
    // Both have as many.
    let third = open(&greedy);
    assert!(has_ended(&taken[2]));
    for iterator in [&taken[3], &first, &second, &third] {
        assert!(!has_ended(iterator));
    }
}

#[test]
fn contexts_of_a_client_are_at_most_its_share_until_they_are_destroyed() {
    let limits = Limits {
        contexts: 9,
        ..Limits::default()
    };
    let pair = Pair::new(NameServer::new().limits(limits));
    let (greedy, other) = (pair.server.root(), pair.other_root());
    let mut made: Vec<_> = (0..3)
        .map(|_| greedy.new_context().unwrap().unwrap())
        .collect();
    made.push(greedy.bind_new_context(&n(["a"])).unwrap().unwrap());
    let refused = |root: &NamingContextExt| root.new_context().unwrap_err().kind;
    assert_eq!(refused(&greedy), SystemExceptionKind::NoResources);
    let refused_bound = exception!(greedy.bind_new_context(&n(["b"])), BindErrorBuf);
    assert_eq!(refused_bound, SystemExceptionKind::NoResources);
    // A name makes no room, since it can be taken away or lead in a circle.
    made[0].bind_context(&n(["self"]), Some(&made[0])).unwrap();
    assert_eq!(refused(&greedy), SystemExceptionKind::NoResources);
    let kept = other.new_context().unwrap().unwrap();
    other.bind_context(&n(["kept"]), Some(&kept)).unwrap();
    made[1].destroy().unwrap();
    greedy.new_context().unwrap();
    assert_eq!(refused(&greedy), SystemExceptionKind::NoResources);
    assert_eq!(pair.quota("contexts").used, 5);
}

#[test]
fn octets_of_a_client_are_at_most_its_share() {
    // A binding without a reference has the octets of a nil one, its component and 256 others.
    const EACH: u64 = 256 + 16 + 2;
    let limits = Limits {
        octets: 8 * EACH + 7,
        ..Limits::default()
    };
    let pair = Pair::new(NameServer::new().limits(limits));
    let (greedy, other) = (pair.server.root(), pair.other_root());
    for id in ["a", "b", "c", "d"] {
        greedy.bind(&n([id]), None).unwrap();
    }
    let refused = exception!(greedy.bind(&n(["e"]), None), BindErrorBuf);
    assert_eq!(refused, SystemExceptionKind::NoResources);
    let quota = pair.quota("octets of bindings");
    assert_eq!((quota.used, quota.most), (4 * EACH, 4 * EACH));
    // What replaces a binding of the same client takes the difference only.
    greedy.rebind(&n(["d"]), None).unwrap();
    let object = pair.server.object(1);
    let refused = exception!(greedy.rebind(&n(["d"]), Some(&object)), RebindErrorBuf);
    assert_eq!(refused, SystemExceptionKind::NoResources);
    // Another client is served, and takes over what it replaces.
    for id in ["f", "g", "h"] {
        other.bind(&n([id]), None).unwrap();
    }
    other.rebind(&n(["a"]), None).unwrap();
    greedy.bind(&n(["e"]), None).unwrap();
    // All is given back to the origin that was charged, whichever client removes it.
    for id in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        other.unbind(&n([id])).unwrap();
    }
    let quota = pair.quota("octets of bindings");
    assert_eq!((quota.used, quota.origins), (0, 0));
}

#[test]
fn the_octets_of_all_bindings_have_a_limit() {
    const EACH: u64 = 256 + 16 + 2;
    let limits = Limits {
        octets: 2 * EACH,
        octets_per_origin: Some(u64::MAX),
        ..Limits::default()
    };
    let f = Fixture::new(NameServer::new().limits(limits));
    let root = f.root();
    root.bind(&n(["a"]), None).unwrap();
    root.bind(&n(["b"]), None).unwrap();
    let refused = exception!(root.bind(&n(["c"]), None), BindErrorBuf);
    assert_eq!(refused, SystemExceptionKind::NoResources);
    root.rebind(&n(["b"]), None).unwrap();
    root.unbind(&n(["a"])).unwrap();
    root.bind(&n(["c"]), None).unwrap();
}

#[test]
fn changes_that_are_not_kept_are_not_charged() {
    let journal = FailingJournal::default();
    let fails = journal.0.clone();
    let server = NameServer::new().state(Tree::new(1), journal);
    let pair = Pair::new(server);
    let root = pair.server.root();
    root.bind(&n(["a"]), None).unwrap();
    let before = pair.quota("octets of bindings").used;
    fails.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        assert!(root.bind_new_context(&n(["b"])).is_err());
        assert!(
            root.rebind(&n(["a"]), Some(&pair.server.object(1)))
                .is_err()
        );
        assert!(root.unbind(&n(["a"])).is_err());
    }
    assert_eq!(pair.quota("octets of bindings").used, before);
    assert_eq!(pair.quota("contexts").used, 0);
}

#[test]
fn a_client_has_a_share_of_the_calls_to_other_servers() {
    let limits = Limits {
        federation_timeout: Duration::from_secs(600),
        ..Limits::default()
    };
    let pair = Pair::new(NameServer::new().limits(limits));
    let living = Fixture::new(NameServer::new());
    let bind = |name, url: &str| {
        let object = pair.server.client.string_to_object(url).unwrap();
        let context = NamingContext::unchecked_narrow(&object);
        let root = pair.server.root();
        root.bind_context(&n([name]), Some(&context)).unwrap();
    };
    bind(
        "living",
        &living.server.object_to_string(living.service.root()),
    );
    living.root().bind(&n(["o"]), None).unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    bind("silent", &format!("corbaloc::127.0.0.1:{port}/silent"));
    let greedy = pair.other_root();
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let greedy = greedy.clone();
            let thread = ThreadBuilder::new("greedy");
            thread.spawn(move || greedy.resolve(&n(["silent", "o"])).is_err())
        })
        .collect();
    let open: Vec<_> = (0..2).map(|_| silent.accept().unwrap()).collect();
    match greedy.resolve(&n(["living", "o"])) {
        Err(RebindErrorBuf::CannotProceed(error)) => assert_eq!(error.rest_of_name.len(), 1),
        other => panic!("{other:?}"),
    }
    for _ in 0..20 {
        assert_eq!(
            pair.server.root().resolve(&n(["living", "o"])).unwrap(),
            None
        );
    }
    drop((open, silent));
    for thread in waiting {
        assert!(thread.unwrap().join().unwrap());
    }
}
