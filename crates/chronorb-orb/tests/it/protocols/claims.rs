//! Callbacks to clients at addresses that the server cannot see: behind a router that translates
//! addresses, and by TLS. Access rules of the server refuse all connections of its own.

use std::sync::Arc;

use chronorb_cdr::Decoder;
use chronorb_orb::{
    BidirectionalConnections, Call, Incident, Object, Orb, OrbConfig, ReplyWriter, Skeleton,
    SystemException, SystemExceptionKind,
};
use chronorb_rt::PiMutex;
use chronorb_transport::parse_endpoints;

use super::bidirectional::{at, callbacks, noted, offer, serve};
use crate::support::{Probe, add, kind_and_completion, orb_with, relayed};

/// Hosts that nothing can connect to: an address for documentation, and a reserved name.
const ELSEWHERE: [&str; 2] = ["192.0.2.7", "client.invalid"];

fn server(change: impl FnOnce(&mut OrbConfig)) -> Orb {
    orb_with(|config| {
        config.bidirectional = BidirectionalConnections::Accept;
        config.threads = "1".parse().expect("a number");
        config.client_transport_rules = ["* none".parse().expect("a rule")].into_iter().collect();
        change(config);
    })
}

/// An ORB that publishes itself at this host, an object of it, and the probe there.
fn client(scheme: &str, host: &str, change: impl FnOnce(&mut OrbConfig)) -> (Orb, Object) {
    let orb = orb_with(|config| {
        let endpoint = format!("{scheme}://127.0.0.1:0/hostname_in_ior={host}");
        config.listen_endpoints = parse_endpoints(&endpoint).expect("an endpoint");
        config.bidirectional = BidirectionalConnections::Offer;
        config.threads = "1".parse().expect("a number");
        change(config);
    });
    let (_, own): (Arc<Probe>, _) = serve(&callbacks(&orb, &[]));
    offer(&orb);
    (orb, own)
}

/// Whether the server would have had to connect, which a rule forbids, or to a host that is not.
fn is_refused(result: Result<impl std::fmt::Debug, SystemException>) -> bool {
    let kind = kind_and_completion(result).0;
    matches!(
        kind,
        SystemExceptionKind::NoPermission | SystemExceptionKind::Transient
    )
}

#[test]
fn a_reference_that_arrived_calls_back_a_client_behind_a_router() {
    for host in ELSEWHERE {
        let server = server(|_| {});
        let (_, object) = serve(&server.root_poa().expect("the ORB runs"));
        let (client, own) = client("iiop", host, |_| {});
        let object = at(&client, &object);
        for _ in 0..3 {
            relayed(&object, &own).expect("the callback is served");
        }
        assert_eq!(noted(&server, Incident::ListenPointRefused), 0);
        assert!(
            is_refused(add(&at(&server, &own), 1, 2)),
            "it did not arrive"
        );
        // The same reference, by a client that offers nothing.
        let other = orb_with(|_| {});
        let refused = relayed(&at(&other, &object), &at(&other, &own));
        assert!(is_refused(refused), "it arrived on another connection");
        relayed(&object, &own).expect("the callback is served");
        for orb in [client, other, server] {
            orb.shutdown(true).expect("it runs");
        }
    }
}

/// A servant that keeps the references it gets, and their return paths.
#[derive(Default)]
struct Keeper(Arc<PiMutex<Vec<KeptReference>>>);

/// A reference, and its return path.
type KeptReference = (Object, Option<Object>);

impl Skeleton for Keeper {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Keeper:1.0"
    }

    fn is_a(&self, id: &str) -> bool {
        id == self.repository_id()
    }

    fn dispatch<'a>(
        &self,
        call: &Call<'a>,
        _: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        let object = Object::decode_reference(d)?.expect("it is not nil");
        let path = object.by_connection_of(call);
        self.0.lock().push((object, path));
        let e = reply.normal()?;
        let written = e.write_i16(0).and_then(|()| e.write_i32(0));
        written.map_err(chronorb_orb::codegen::v1::reply_error)
    }
}

#[test]
fn a_reference_of_a_claimant_equals_only_those_of_its_connection() {
    let server = server(|_| {});
    let keeper = Keeper::default();
    let kept = keeper.0.clone();
    let root = server.root_poa().expect("the ORB runs");
    let object = root.serve(keeper).expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let (client, own) = client("iiop", ELSEWHERE[0], |_| {});
    let other = orb_with(|_| {});
    for orb in [&client, &client, &other, &other] {
        relayed(&at(orb, &object), &at(orb, &own)).expect("it is kept");
    }
    let kept = std::mem::take(&mut *kept.lock());
    let kept: Vec<_> = kept.into_iter().map(|(object, _)| object).collect();
    assert!(kept[0] == kept[1] && kept[2] == kept[3]);
    assert!(kept[0] != kept[2], "calls go elsewhere");
    assert!(kept[2] == at(&server, &own));
    // A copy with policies of its own goes by the same connection.
    let copy = kept[0].with_timeout(std::time::Duration::from_secs(60));
    assert_eq!(add(&copy, 1, 2), Ok(3));
    drop((kept, copy));
    for orb in [client, other, server] {
        orb.shutdown(true).expect("it runs");
    }
}

#[test]
fn a_return_path_is_the_connection_of_its_request_and_no_other() {
    // The first address is proved, the others are claimed.
    for host in ["127.0.0.1", ELSEWHERE[0], ELSEWHERE[1]] {
        let server = server(|_| {});
        let keeper = Keeper::default();
        let kept = keeper.0.clone();
        let root = server.root_poa().expect("the ORB runs");
        let object = root.serve(keeper).expect("it activates");
        root.manager().activate().expect("it was not deactivated");
        let (client, own) = client("iiop", host, |_| {});
        let (other, others) = self::client("iiop", ELSEWHERE[0], |_| {});
        let silent = orb_with(|_| {});
        let requests = [
            (&client, &own),
            (&other, &others),
            (&client, &others),
            (&other, &own),
            (&silent, &own),
        ];
        for (orb, passed) in requests {
            relayed(&at(orb, &object), &at(orb, passed)).expect("it is kept");
        }
        let mut kept = std::mem::take(&mut *kept.lock()).into_iter();
        let mut path = || kept.next().expect("one each").1;
        let (path, of_other) = (path(), [path(), path(), path(), path()]);
        let [None, None, None] = &of_other[1..] else {
            panic!("it is no address of the client");
        };
        let path = path.expect("the client can be called back");
        let copy = path.with_timeout(std::time::Duration::from_secs(60));
        for path in [&path, &copy] {
            assert_eq!(add(path, 1, 2), Ok(3));
        }
        client.shutdown(true).expect("it runs");
        // Neither a thread that has called by it nor another one connects.
        let (kind, _) = kind_and_completion(add(&path, 1, 2));
        assert_eq!(kind, SystemExceptionKind::Rebind);
        let elsewhere = std::thread::spawn(move || kind_and_completion(add(&copy, 1, 2)).0);
        let kind = elsewhere.join().expect("no panic");
        assert_eq!(kind, SystemExceptionKind::Rebind);
        drop((kept, of_other, path));
        for orb in [other, silent, server] {
            orb.shutdown(true).expect("it runs");
        }
    }
}

#[test]
fn a_claimant_passes_references_of_others_on() {
    let victim = orb_with(|_| {});
    let (probe, own) = serve(&victim.root_poa().expect("the ORB runs"));
    let server = orb_with(|config| config.bidirectional = BidirectionalConnections::Accept);
    let (_, object) = serve(&server.root_poa().expect("the ORB runs"));
    let (client, _) = client("iiop", ELSEWHERE[0], |_| {});
    relayed(&at(&client, &object), &at(&client, &own)).expect("it is served");
    let pools = victim.snapshot().pools;
    assert_eq!(pools[0].lanes[0].accepted, 1, "it was called itself");
    drop(probe);
    for orb in [client, server, victim] {
        orb.shutdown(true).expect("it runs");
    }
}

#[cfg(feature = "ssliop")]
mod tls {
    use chronorb_transport::tls::{TlsSettings, Verify};

    use super::*;
    use crate::certificates::Authority;

    /// A server that wants certificates or does not, and a client with a certificate for `names`
    /// that publishes itself at `host`.
    fn sides(verify: Verify, host: &str, names: &[&str]) -> (Orb, Object, Orb, Object) {
        let directory = tempfile::tempdir().expect("a directory");
        let authority = Authority::new(directory.path(), "authority");
        let of_server = TlsSettings {
            verify,
            ..authority.settings("server", &["127.0.0.1"])
        };
        let server = server(|config| {
            config.listen_endpoints = parse_endpoints("ssliop://127.0.0.1:0").expect("one");
            config.ssl = of_server;
        });
        let (_, object) = serve(&server.root_poa().expect("the ORB runs"));
        let of_client = authority.settings("client", names);
        let (client, own) = client("ssliop", host, |config| config.ssl = of_client);
        let object = at(&client, &object);
        (server, object, client, own)
    }

    fn end(server: &Orb, client: &Orb) {
        client.shutdown(true).expect("it runs");
        server.shutdown(true).expect("it runs");
    }

    #[test]
    fn a_certificate_proves_the_host_of_a_listen_point() {
        for (host, names) in [
            ("radar.example", ["other.example", "radar.example"]),
            ("192.0.2.7", ["192.0.2.7", "192.0.2.8"]),
        ] {
            let (server, object, client, own) = sides(Verify::Mutual, host, &names);
            for _ in 0..3 {
                relayed(&object, &own).expect("the callback is served");
            }
            assert_eq!(add(&at(&server, &own), 1, 2), Ok(3), "it need not arrive");
            assert_eq!(noted(&server, Incident::ListenPointRefused), 0);
            let pools = client.snapshot().pools;
            assert_eq!(pools[0].lanes[0].accepted, 0);
            end(&server, &client);
        }
    }

    /// A server that verifies no clients sees no certificate.
    #[test]
    fn a_client_without_a_certificate_is_refused() {
        let (server, object, client, own) = sides(Verify::Peer, "192.0.2.7", &["192.0.2.7"]);
        assert!(is_refused(relayed(&object, &own)));
        assert_eq!(noted(&server, Incident::ListenPointRefused), 1);
        end(&server, &client);
    }
}
