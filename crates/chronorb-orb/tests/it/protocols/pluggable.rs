//! Pluggable protocols: an application's own beside IIOP, and the choice among several.

use chronorb_giop::{Ior, TAG_INTERNET_IOP};
use chronorb_orb::poa::CreateManagerError;
use chronorb_orb::rtcorba::{
    ClientPolicy, Protocol, Protocols, SetOverride, TcpProtocolProperties,
};
use chronorb_orb::transport::tcp::Tcp;
use chronorb_orb::transport::{
    Acceptor, Address, ConnectError, Connection, ListenError, Setup, Transport,
};
use chronorb_orb::{
    AddressForm, Endpoint, EndpointError, Object, Orb, OrbConfig, PluggableProtocol,
    SystemExceptionKind as Kind, minor, parse_endpoints,
};
use chronorb_rt::Deadline;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Probe, ProbeSkeleton, add, orb_with};

/// TCP with another name, which counts its connections.
#[derive(Debug, Default)]
struct Twin {
    connected: AtomicUsize,
}

impl Transport for Twin {
    fn scheme(&self) -> &str {
        "twin"
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        Tcp.check(endpoint)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        Tcp.listen(endpoint, setup)
    }

    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        self.connected.fetch_add(1, Ordering::Relaxed);
        Tcp.connect(address, setup, deadline)
    }
}

/// A number in the range for experiments.
const TWIN: u32 = 0x7f00_0001;

fn endpoints(text: &str) -> Vec<Endpoint> {
    parse_endpoints(text).expect("endpoints")
}

/// Returns an ORB with a twin, and the twin.
fn twin_orb(configure: impl FnOnce(&mut OrbConfig)) -> (Orb, Arc<Twin>) {
    let twin = Arc::new(Twin::default());
    let protocol = PluggableProtocol::new(twin.clone(), TWIN, AddressForm::HOST_AND_PORT);
    let orb = orb_with(|config| {
        config.add_protocol(protocol);
        configure(config);
    });
    (orb, twin)
}

const BOTH: &str = "iiop://127.0.0.1:0;twin://127.0.0.1:0";

/// Returns a probe of an ORB that listens by both protocols, from the server's point of view.
fn served_by_both(configure: impl FnOnce(&mut OrbConfig)) -> (Orb, Object) {
    let (server, _) = twin_orb(|config| {
        config.listen_endpoints = endpoints(BOTH);
        configure(config);
    });
    let root = server.root_poa().expect("the endpoints open");
    root.manager().activate().expect("it is active");
    let object = root
        .serve(ProbeSkeleton(Arc::new(Probe::default())))
        .expect("it activates");
    (server, object)
}

fn tags(object: &Object) -> Vec<u32> {
    let profiles = object.ior().profiles.iter();
    profiles.map(|profile| profile.tag).collect()
}

/// Returns the object from another ORB's point of view.
fn at(client: &Orb, server: &Orb, object: &Object) -> Object {
    let text = server.object_to_string(object);
    client.string_to_object(&text).expect("it reads")
}

#[test]
fn a_reference_has_a_profile_of_each_protocol_in_the_order_of_the_endpoints() {
    let (server, object) = served_by_both(|_| {});
    assert_eq!(tags(&object), [TAG_INTERNET_IOP, TWIN]);
    server.shutdown(true).expect("it ends");
}

#[test]
fn the_protocol_of_the_application_is_preferred_unless_others_are_named_first() {
    let (server, object) = served_by_both(|_| {});
    for (protocols, connections) in [
        (vec![], 1),
        (vec!["twin", "iiop"], 1),
        (vec!["iiop", "twin"], 0),
    ] {
        let (client, twin) = twin_orb(|config| {
            config.protocols = protocols.iter().map(|name| name.to_string()).collect();
        });
        assert_eq!(add(&at(&client, &server, &object), 1, 2), Ok(3));
        let connected = twin.connected.load(Ordering::Relaxed);
        assert_eq!(connected, connections, "{protocols:?}");
        client.shutdown(true).expect("it ends");
    }
    server.shutdown(true).expect("it ends");
}

#[test]
fn clients_without_the_protocol_take_another_way() {
    let (server, object) = served_by_both(|_| {});
    let client = crate::support::orb();
    assert_eq!(add(&at(&client, &server, &object), 1, 2), Ok(3));
    client.shutdown(true).expect("it ends");
    server.shutdown(true).expect("it ends");
}

#[test]
fn a_way_that_is_closed_is_passed_over_for_the_next() {
    let (server, object) = served_by_both(|_| {});
    let (client, twin) = twin_orb(|_| {});
    let mut ior: Ior = object.ior().clone();
    // The same profile, at a port at which no socket listens.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
    let profile = chronorb_giop::IiopProfile::decode(&ior.profiles[1].data);
    let mut profile = profile.expect("it is as of IIOP");
    profile.port = closed.expect("a port was free").port();
    ior.profiles[1].data = profile.encode().expect("it can be written");
    let object = client.string_to_object(&ior.to_string()).expect("it reads");
    assert_eq!(add(&object, 1, 2), Ok(3));
    assert_eq!(twin.connected.load(Ordering::Relaxed), 1, "it was tried");
    client.shutdown(true).expect("it ends");
    server.shutdown(true).expect("it ends");
}

#[test]
fn the_policy_of_a_client_says_which_protocols_may_be_used_in_which_order() {
    let (server, object) = served_by_both(|_| {});
    let (client, twin) = twin_orb(|_| {});
    let object = at(&client, &server, &object);
    let with = |list: &[Protocol]| {
        let protocols = Protocols::new(list).expect("they differ");
        let policies = [ClientPolicy::ClientProtocol(protocols)];
        let how = SetOverride::Set;
        object.with_policy_overrides(&policies, how)
    };
    let iiop = Protocol::Iiop(TcpProtocolProperties::default());
    let first = with(&[iiop.clone(), Protocol::Other(TWIN)]).expect("a policy");
    assert_eq!(add(&first, 1, 2), Ok(3));
    assert_eq!(twin.connected.load(Ordering::Relaxed), 0);
    let second = with(&[Protocol::Other(TWIN), iiop]).expect("a policy");
    assert_eq!(add(&second, 1, 2), Ok(3));
    assert_eq!(twin.connected.load(Ordering::Relaxed), 1);
    let none = with(&[Protocol::Other(TWIN + 1)]).expect("a policy");
    let refused = add(&none, 1, 2).expect_err("there is no such protocol");
    assert_eq!(refused.kind, Kind::InvPolicy);
    client.shutdown(true).expect("it ends");
    server.shutdown(true).expect("it ends");
}

#[test]
fn the_policy_of_a_server_says_what_references_tell() {
    let (server, _) = twin_orb(|config| config.listen_endpoints = endpoints(BOTH));
    let iiop = Protocol::Iiop(TcpProtocolProperties::default());
    let both = Protocols::new(&[Protocol::Other(TWIN), iiop]).expect("they differ");
    let set = server.policy_manager().set_server_protocol(both);
    set.expect("nothing is open yet");
    let root = server.root_poa().expect("the endpoints open");
    let probe = || ProbeSkeleton(Arc::new(Probe::default()));
    let object = root.serve(probe()).expect("it activates");
    assert_eq!(tags(&object), [TWIN, TAG_INTERNET_IOP]);

    let twin = Protocols::new(&[Protocol::Other(TWIN)]).expect("one");
    let policies = [chronorb_orb::poa::Policy::ServerProtocol(twin)];
    let poa = root
        .create_poa("twin", None, &policies)
        .expect("it is one of them");
    let id = poa.activate_object(probe()).expect("it is new");
    let object = poa.id_to_reference(&id).expect("it is active");
    assert_eq!(tags(&object), [TWIN]);
    server.shutdown(true).expect("it ends");
}

#[test]
fn a_server_that_listens_by_no_protocol_of_its_policy_says_so() {
    let (server, _) = twin_orb(|config| config.listen_endpoints = endpoints("iiop://127.0.0.1:0"));
    let root = server.root_poa().expect("the endpoints open");
    let twin = Protocols::new(&[Protocol::Other(TWIN)]).expect("one");
    let policies = [chronorb_orb::poa::Policy::ServerProtocol(twin)];
    let poa = root.create_poa("twin", None, &policies);
    let probe = ProbeSkeleton(Arc::new(Probe::default()));
    let refused = poa.expect("the ORB has it").serve(probe);
    let text = refused.expect_err("it could not be called").to_string();
    assert!(text.contains("listens by none of the protocols"), "{text}");
    server.shutdown(true).expect("it ends");
}

#[test]
fn pools_without_endpoints_listen_by_the_protocols_of_the_servers_policy() {
    let (server, _) = twin_orb(|config| config.listen_endpoints.clear());
    let twin = Protocols::new(&[Protocol::Other(TWIN)]).expect("one");
    let set = server.policy_manager().set_server_protocol(twin);
    set.expect("nothing is open yet");
    let root = server.root_poa().expect("the endpoints open");
    let object = root.serve(ProbeSkeleton(Arc::new(Probe::default())));
    let mut tags = tags(&object.expect("it activates"));
    // One for the address of each interface.
    tags.dedup();
    assert_eq!(tags, [TWIN]);
    server.shutdown(true).expect("it ends");
}

#[test]
fn a_manager_can_have_endpoints_of_its_own() {
    let (server, _) = served_by_both(|_| {});
    let factory = server.poa_manager_factory();
    let manager = factory.create_with_endpoints("twins", &endpoints("twin://127.0.0.1:0"));
    let manager = manager.expect("it is one of the configuration");
    let root = server.root_poa().expect("it is there");
    let poa = root.create_poa("twins", Some(&manager), &[]);
    let poa = poa.expect("the name is free");
    let id = poa.activate_object(ProbeSkeleton(Arc::new(Probe::default())));
    let object = poa.id_to_reference(&id.expect("it is new"));
    assert_eq!(tags(&object.expect("it is active")), [TWIN]);

    let elsewhere = factory.create_with_endpoints("else", &endpoints("iiop://127.0.0.1:1"));
    let known = "iiop://127.0.0.1:1".to_owned();
    assert_eq!(elsewhere, Err(CreateManagerError::NoEndpoint(known)));
    assert!(factory.create_with_endpoints("none", &[]).is_err());
    server.shutdown(true).expect("it ends");
}

#[test]
fn a_corbaloc_names_the_protocol() {
    let (server, object) = served_by_both(|_| {});
    server
        .register_initial_reference("Probe", &object)
        .expect("the name is free");
    let profile = &object.ior().profiles[1];
    let profile = chronorb_giop::IiopProfile::decode(&profile.data).expect("as of IIOP");
    let (client, twin) = twin_orb(|_| {});
    let text = format!("corbaloc:twin:1.2@127.0.0.1:{}/Probe", profile.port);
    let object = client.string_to_object(&text).expect("it reads");
    assert_eq!(add(&object, 1, 2), Ok(3));
    assert!(twin.connected.load(Ordering::Relaxed) > 0);
    let unknown = client.string_to_object("corbaloc:triplet:h/Probe");
    let unknown = unknown.expect_err("there is no such protocol");
    assert_eq!(
        (unknown.kind, unknown.minor),
        (Kind::BadParam, minor::BAD_ADDRESS)
    );
    client.shutdown(true).expect("it ends");
    server.shutdown(true).expect("it ends");
}

#[test]
fn configurations_that_cannot_be_had_are_refused_by_name() {
    let refused = |configure: &dyn Fn(&mut OrbConfig)| {
        let mut config = OrbConfig::default();
        configure(&mut config);
        Orb::with_config(config)
            .expect_err("it cannot be had")
            .to_string()
    };
    let listening = |text: &'static str| {
        move |config: &mut OrbConfig| config.listen_endpoints = endpoints(text)
    };
    let naming = |names: &'static [&'static str]| {
        move |config: &mut OrbConfig| {
            config.protocols = names.iter().map(|name| name.to_string()).collect();
        }
    };
    for (text, expected) in [
        ("twin://", "\"twin\""),
        ("iiop://h/colour=red", "colour"),
        ("iiop://h/portspan=0", "portspan"),
    ] {
        let error = refused(&listening(text));
        assert!(error.contains(expected), "{text}: {error}");
        assert!(error.contains("-ORBListenEndpoints"), "{text}: {error}");
    }
    assert!(refused(&naming(&["iiop", "twin"])).contains("\"twin\""));
    assert!(refused(&naming(&["iiop", "iiop"])).contains("twice"));
    let same = refused(&|config| {
        let twin = Arc::new(Twin::default());
        let tag = TAG_INTERNET_IOP;
        config.add_protocol(PluggableProtocol::new(
            twin,
            tag,
            AddressForm::HOST_AND_PORT,
        ));
    });
    assert!(same.contains("twice"), "{same}");
}

/// Returns an ORB with a twin that shares the references of IIOP, and the twin.
fn orb_beside(configure: impl FnOnce(&mut OrbConfig)) -> (Orb, Arc<Twin>) {
    let twin = Arc::new(Twin::default());
    let orb = orb_with(|config| {
        config.add_protocol(PluggableProtocol::beside_iiop(twin.clone()));
        configure(config);
    });
    (orb, twin)
}

#[test]
fn who_shares_the_references_of_iiop_serves_those_who_do_not_know_it() {
    let (server, _) =
        orb_beside(|config| config.listen_endpoints = endpoints("twin://127.0.0.1:0"));
    let root = server.root_poa().expect("the endpoint opens");
    root.manager().activate().expect("it is active");
    let object = root.serve(ProbeSkeleton(Arc::new(Probe::default())));
    let object = object.expect("it activates");
    assert_eq!(tags(&object), [TAG_INTERNET_IOP]);
    let client = crate::support::orb();
    assert_eq!(add(&at(&client, &server, &object), 1, 2), Ok(3));
    client.shutdown(true).expect("it ends");
    server.shutdown(true).expect("it ends");
}

#[test]
fn who_listens_by_both_has_one_profile_of_both() {
    let (server, _) = orb_beside(|config| config.listen_endpoints = endpoints(BOTH));
    let root = server.root_poa().expect("the endpoints open");
    let object = root.serve(ProbeSkeleton(Arc::new(Probe::default())));
    let object = object.expect("it activates");
    assert_eq!(tags(&object), [TAG_INTERNET_IOP]);
    let profile = chronorb_giop::IiopProfile::decode(&object.ior().profiles[0].data);
    let components = profile.expect("it reads").components;
    let alternate = components
        .iter()
        .filter(|one| one.tag == chronorb_giop::TAG_ALTERNATE_IIOP_ADDRESS);
    assert_eq!(alternate.count(), 1);
    server.shutdown(true).expect("it ends");
}

#[test]
fn references_of_iiop_are_called_by_what_shares_them_unless_iiop_is_named_first() {
    let server = orb_with(|config| config.listen_endpoints = endpoints("iiop://127.0.0.1:0"));
    let root = server.root_poa().expect("the endpoint opens");
    root.manager().activate().expect("it is active");
    let object = root.serve(ProbeSkeleton(Arc::new(Probe::default())));
    let object = object.expect("it activates");
    for (protocols, connections) in [
        (vec![], 1),
        (vec!["twin"], 1),
        (vec!["twin", "iiop"], 1),
        (vec!["iiop", "twin"], 0),
        (vec!["iiop"], 0),
    ] {
        let (client, twin) = orb_beside(|config| {
            config.listen_endpoints.clear();
            config.protocols = protocols.iter().map(|name| name.to_string()).collect();
        });
        assert_eq!(add(&at(&client, &server, &object), 1, 2), Ok(3));
        let connected = twin.connected.load(Ordering::Relaxed);
        assert_eq!(connected, connections, "{protocols:?}");
        client.shutdown(true).expect("it ends");
    }
    server.shutdown(true).expect("it ends");
}

/// A transport that reaches no host, and counts the attempts.
#[derive(Debug, Default)]
struct Nowhere(AtomicUsize);

impl Transport for Nowhere {
    fn scheme(&self) -> &str {
        "nowhere"
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        Err(endpoint.error("there is no listener"))
    }

    fn listen(&self, endpoint: &Endpoint, _: Setup) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        self.check(endpoint)?;
        Ok(Vec::new())
    }

    fn connect(
        &self,
        address: &Address,
        _: Setup,
        _: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err(ConnectError::Refused {
            address: address.to_string(),
            source: std::io::ErrorKind::NetworkUnreachable.into(),
        })
    }
}

#[test]
fn addresses_that_the_sharing_protocol_does_not_reach_are_called_by_iiop() {
    let (server, object) = served_by_both(|_| {});
    let nowhere = Arc::new(Nowhere::default());
    let client = orb_with(|config| {
        config.add_protocol(PluggableProtocol::beside_iiop(nowhere.clone()));
    });
    assert_eq!(add(&at(&client, &server, &object), 1, 2), Ok(3));
    assert_eq!(nowhere.0.load(Ordering::Relaxed), 1, "it was tried");
    client.shutdown(true).expect("it ends");
    server.shutdown(true).expect("it ends");
}
