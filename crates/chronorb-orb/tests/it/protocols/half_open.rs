//! Connections to a host that has vanished: packets are dropped without a word. With
//! `-ORBPeerTimeout` calls fail within that time on each kind of connection, and the next call goes
//! by a new one.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use chronorb_orb::outbox::{Outbox, OutboxLimits, OutboxThread};
use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::{ClientPolicy, FailoverPolicy, SetOverride};
use chronorb_orb::{
    ConnectionStrategy, EncodedBody, Object, Operation, Orb, OrbConfig, SystemException,
    SystemExceptionKind, parse_endpoints,
};
use chronorb_testnet::{Host, Layout, Network};

use crate::support::adapters::until;
use crate::support::asynchronous::begin_add;
use crate::support::laned::{LANES, PROPAGATED, bands, corba};
use crate::support::strategies::STRATEGIES;
use crate::support::{PATIENCE, Probe, ProbeSkeleton, add, orb_with};

type Call = fn(&Object) -> Result<i32, SystemException>;
const CALLS: [Call; 2] = [
    |object| add(object, 1, 2),
    |object| begin_add(object, 1, 2)?.wait(),
];

/// A server on one host, whose clients are on the other.
struct Site {
    network: Network,
    server: Orb,
    object: Object,
}

impl Site {
    /// Serves an object; `None` if networks cannot be made.
    fn new(policies: &[Policy], endpoints: usize) -> Option<Self> {
        let network = Network::build_for_test(&Layout::default())?;
        let serve = || {
            let server = orb_on(&network, Host::B, |config| {
                let more = config.listen_endpoints[0].clone();
                config.listen_endpoints.resize(endpoints, more);
                accept_callbacks(config);
            });
            let root = server.root_poa().expect("the ORB runs");
            let poa = root.create_poa("objects", Some(root.manager()), policies);
            let object = poa
                .expect("the policies agree")
                .serve(ProbeSkeleton(std::sync::Arc::<Probe>::default()))
                .expect("it activates");
            root.manager().activate().expect("it was not deactivated");
            (server, object)
        };
        let (server, object) = network.host(Host::B).enter(serve);
        Some(Self {
            network,
            server,
            object,
        })
    }

    /// Runs a client of the object.
    fn client<R>(
        &self,
        configure: impl FnOnce(&mut OrbConfig),
        run: impl FnOnce(&Orb, &Object) -> R,
    ) -> R {
        self.network.host(Host::A).enter(|| {
            let client = orb_on(&self.network, Host::A, configure);
            let ior = self.object.ior().clone();
            let object = client.ior_to_object(ior).expect("it is not nil");
            let result = run(&client, &object);
            let _ = client.shutdown(true);
            result
        })
    }

    /// Lets the host of the server vanish, or come back.
    fn vanish(&self, has_vanished: bool) {
        let plugged = self.network.plug(Host::B, !has_vanished);
        plugged.expect("the test may change its network");
        if !has_vanished {
            // A closed port answers as soon as there is a path.
            let closed = SocketAddr::new(address(&self.network, Host::B), 9);
            let attempt = || TcpStream::connect_timeout(&closed, Duration::from_millis(200));
            self.network.host(Host::A).enter(|| {
                until("the network does not come back", || {
                    attempt().is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused)
                });
            });
        }
    }

    /// Calls while the host is there, while it has vanished, and when it is there again. The calls
    /// between fail `failures` times, with as many connections, and not by their own end time.
    fn check(
        &self,
        kind: &str,
        failures: usize,
        accepted: impl Fn() -> u64,
        call: impl Fn() -> Result<i32, SystemException>,
    ) {
        assert_eq!(call(), Ok(3), "{kind}");
        let before = accepted();
        self.vanish(true);
        for _ in 0..failures {
            let failed = call().expect_err("the host has vanished");
            assert_ne!(failed.kind, SystemExceptionKind::Timeout, "{kind}");
        }
        self.vanish(false);
        assert_eq!(call(), Ok(3), "{kind}");
        assert_eq!(accepted(), before + 1, "{kind}: by a new connection");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.server.shutdown(true);
    }
}

/// Lets an ORB take callbacks on connections of clients, if it can.
fn accept_callbacks(config: &mut OrbConfig) {
    #[cfg(feature = "bidir")]
    {
        config.bidirectional = chronorb_orb::BidirectionalConnections::Accept;
    }
    #[cfg(not(feature = "bidir"))]
    let _ = config;
}

fn address(network: &Network, host: Host) -> IpAddr {
    network.host(host).addresses().v4.into()
}

/// Returns an ORB that listens on a host, and notices within a second that a peer has vanished.
fn orb_on(network: &Network, host: Host, configure: impl FnOnce(&mut OrbConfig)) -> Orb {
    let address = address(network, host);
    orb_with(|config| {
        let endpoint = parse_endpoints(&format!("iiop://{address}:0"));
        config.listen_endpoints = endpoint.expect("an endpoint");
        config.peer_timeout = Some(Duration::from_secs(1));
        configure(config);
    })
}

/// The connections that an ORB has accepted.
fn accepted(orb: &Orb) -> u64 {
    let pools = orb.snapshot().pools;
    let lanes = pools.iter().flat_map(|pool| &pool.lanes);
    lanes.map(|lane| lane.accepted).sum()
}

#[test]
fn calls_by_connections_of_each_strategy_fail_in_time_and_connect_again() {
    let Some(site) = Site::new(&[], 1) else {
        return;
    };
    for strategy in STRATEGIES {
        for call in CALLS {
            let configure = |config: &mut OrbConfig| config.client_connection = strategy;
            site.client(configure, |_, object| {
                let kind = format!("{strategy:?}");
                site.check(&kind, 1, || accepted(&site.server), || call(object));
            });
        }
    }
}

#[test]
fn calls_by_banded_connections_fail_in_time_and_connect_again() {
    let model = Policy::PriorityModel(PROPAGATED, corba(LANES[0]));
    let Some(site) = Site::new(&[model], 1) else {
        return;
    };
    for strategy in STRATEGIES {
        let configure = |config: &mut OrbConfig| config.client_connection = strategy;
        site.client(configure, |client, object| {
            let policy = ClientPolicy::PriorityBandedConnection(bands(&[(0, 15), (16, 40)]));
            let banded = object.with_policy_overrides(&[policy], SetOverride::Add);
            let banded = banded.expect("one policy");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for priority in [12, 30] {
                        let current = client.rt_current();
                        current.set_priority(corba(priority)).expect("it is mapped");
                        let kind = format!("{strategy:?}, band of {priority}");
                        site.check(&kind, 1, || accepted(&site.server), || add(&banded, 1, 2));
                    }
                });
            });
        });
    }
}

#[test]
fn calls_by_stand_by_connections_fail_in_time_and_connect_again() {
    let Some(site) = Site::new(&[], 2) else {
        return;
    };
    for strategy in STRATEGIES {
        let configure = |config: &mut OrbConfig| config.client_connection = strategy;
        site.client(configure, |_, object| {
            let policy = FailoverPolicy {
                standbys: 1,
                ..FailoverPolicy::default()
            };
            let policy = [ClientPolicy::Failover(policy)];
            let object = object.with_policy_overrides(&policy, SetOverride::Add);
            let object = object.expect("it can be followed");
            let before = accepted(&site.server);
            object.validate_connection().expect("the server is there");
            until("there is no stand-by", || {
                accepted(&site.server) == before + 2
            });
            // The connection in use ends, and then the stand-by.
            let kind = format!("{strategy:?}");
            site.check(&kind, 2, || accepted(&site.server), || add(&object, 1, 2));
        });
    }
}

#[cfg(feature = "bidir")]
#[test]
fn calls_and_callbacks_by_bidirectional_connections_fail_in_time_and_connect_again() {
    use super::bidirectional::{at, callbacks, offer, serve};

    let Some(site) = Site::new(&[], 1) else {
        return;
    };
    let configure = |config: &mut OrbConfig| {
        config.bidirectional = chronorb_orb::BidirectionalConnections::Offer;
    };
    site.client(configure, |client, object| {
        let (_, own) = serve(&callbacks(client, &[]));
        offer(client);
        let callback = at(&site.server, &own);
        site.check(
            "bidirectional",
            1,
            || accepted(&site.server),
            || add(object, 1, 2),
        );
        assert_eq!(accepted(client), 0);
        // Without the connection of the client the next call goes to its own endpoint.
        site.network.host(Host::B).enter(|| {
            site.check("callback", 1, || accepted(client), || add(&callback, 1, 2));
        });
    });
}

#[test]
fn an_outbox_ends_in_time_and_the_next_one_connects_again() {
    let Some(site) = Site::new(&[], 1) else {
        return;
    };
    const NOTE: Operation = Operation::oneway("note");
    let mut body = EncodedBody::in_form(chronorb_orb::BodyForm::default());
    body.renew(&|e| e.write_octet_seq(&[7; 64]))
        .expect("there is memory");
    site.client(
        |_| {},
        |client, object| {
            let thread = OutboxThread::start(client, None).expect("a thread starts");
            let open = || thread.open(object, &NOTE, OutboxLimits::default());
            let flushed = |outbox: &Outbox| {
                outbox.put(&body).expect("there is a connection");
                outbox.flush(PATIENCE)
            };
            let outbox = open().expect("it connects");
            assert_eq!(flushed(&outbox), Ok(true));
            let before = accepted(&site.server);
            site.vanish(true);
            // The kernel takes it.
            outbox.put(&body).expect("nothing is known yet");
            until("it never ends", || outbox.status().has_ended);
            let failed = outbox.put(&body).expect_err("it has ended");
            assert_eq!(failed.kind, SystemExceptionKind::CommFailure);
            site.vanish(false);
            let outbox = open().expect("it connects");
            assert_eq!(flushed(&outbox), Ok(true));
            assert_eq!(accepted(&site.server), before + 1);
        },
    );
}

#[test]
fn a_server_ends_the_connections_of_clients_that_have_vanished() {
    let Some(site) = Site::new(&[], 1) else {
        return;
    };
    let open = || {
        let pools = site.server.snapshot().pools;
        let lanes = pools.iter().flat_map(|pool| &pool.lanes);
        lanes.map(|lane| lane.connections).sum::<usize>()
    };
    let configure =
        |config: &mut OrbConfig| config.client_connection = ConnectionStrategy::Exclusive;
    site.client(configure, |_, object| {
        assert_eq!(add(object, 1, 2), Ok(3));
        assert_eq!(open(), 1);
        site.vanish(true);
        until("it stays", || open() == 0);
        site.vanish(false);
    });
}
