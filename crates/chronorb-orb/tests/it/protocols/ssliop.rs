//! Calls by TLS: the clients' choice of protocol, refused connections, and the information for
//! servants.

use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chronorb_cdr::Decoder;
use chronorb_giop::{
    AssociationOptions, Component, IiopProfile, SslSecTrans, TAG_SSL_SEC_TRANS, TAG_SSLIOP_LANES,
    TAG_TAO_ENDPOINTS, TaoEndpoint, minor,
};
use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::{Protocol, Protocols};
use chronorb_orb::{
    Call, ConfigError, Object, Orb, OrbConfig, ReplyWriter, Skeleton, SystemException,
    SystemExceptionKind, ThreadpoolStrategy,
};
use chronorb_rt::PiMutex;
use chronorb_transport::tls::{TlsSettings, Verify};
use chronorb_transport::{Endpoint, parse_endpoints};
use rustix::fs::{Mode, chmod};
use tempfile::TempDir;

use crate::certificates::Authority;
use crate::support::laned::{LANES, PROPAGATED, Pool, connections_to, corba, laned_by};
use crate::support::strategies::SHARED;
use crate::support::{
    Probe, ProbeSkeleton, ServedProbe, add, echo, orb, orb_with, priority, with_longer_times,
};

/// An authority, and the settings of a server at 127.0.0.1.
pub(super) struct Place {
    _directory: TempDir,
    authority: Authority,
    pub(super) server: TlsSettings,
}

impl Place {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let authority = Authority::new(directory.path(), "authority");
        let server = authority.settings("server", &["127.0.0.1"]);
        Self {
            _directory: directory,
            authority,
            server,
        }
    }

    /// Returns the settings of a client that trusts the authority, and has no certificate.
    pub(super) fn anonymous(&self) -> TlsSettings {
        TlsSettings {
            authority: Some(self.authority.file()),
            ..TlsSettings::default()
        }
    }
}

fn mutual(settings: &TlsSettings) -> TlsSettings {
    TlsSettings {
        verify: Verify::Mutual,
        ..settings.clone()
    }
}

/// Returns an ORB with these endpoints and settings.
pub(super) fn orb_at(endpoints: &str, settings: &TlsSettings) -> Orb {
    orb_with(|config| {
        config.listen_endpoints = parse_endpoints(endpoints).expect("endpoints");
        config.ssl = settings.clone();
    })
}

/// Returns an ORB that only calls.
fn client(settings: &TlsSettings) -> Orb {
    orb_with(|config| config.ssl = settings.clone())
}

fn served(server: Orb, client: Orb) -> ServedProbe {
    let probe = Arc::new(Probe::default());
    let root = server.root_poa().expect("the endpoints open");
    let object = root.serve(ProbeSkeleton(probe.clone()));
    let object = object.expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let text = server.object_to_string(&object);
    let object = client.string_to_object(&text).expect("it reads");
    ServedProbe {
        server,
        client,
        probe,
        object,
    }
}

/// Returns these endpoints for each lane of the application's first pool.
fn at_each_lane(endpoints: &str) -> Vec<((u32, u32), Endpoint)> {
    let of_lane = |lane| {
        let endpoints = parse_endpoints(endpoints).expect("endpoints");
        endpoints.into_iter().map(move |at| ((1, lane), at))
    };
    (0..LANES.len() as u32).flat_map(of_lane).collect()
}

fn profile(object: &Object) -> IiopProfile {
    IiopProfile::decode(&object.ior().profiles[0].data).expect("a profile of IIOP")
}

pub(super) fn ssl(object: &Object) -> SslSecTrans {
    let profile = profile(object);
    let mut components = profile.components.iter();
    let component = components.find(|component| component.tag == TAG_SSL_SEC_TRANS);
    match component.expect("it tells of TLS").typed() {
        Ok(Component::SslSecTrans(ssl)) => ssl,
        other => panic!("{other:?}"),
    }
}

const NO_PROTECTION: SystemException =
    SystemException::no(SystemExceptionKind::NoPermission, minor::NO_PROTECTION);
pub(super) const TLS_ONLY: &str = "ssliop://127.0.0.1:0";
const BOTH: &str = "iiop://127.0.0.1:0;ssliop://127.0.0.1:0";

#[test]
fn calls_go_by_tls_where_there_is_nothing_else() {
    let place = Place::new();
    for versions in ["1.2", "1.3", "1.2,1.3"] {
        let settings = TlsSettings {
            versions: versions.parse().expect("versions"),
            ..place.server.clone()
        };
        let s = served(orb_at(TLS_ONLY, &settings), client(&place.anonymous()));
        assert_eq!(add(&s.object, 20, 22), Ok(42));
        // Longer than a record, in both directions.
        let long = "x".repeat(100_000);
        assert_eq!(echo(&s.object, &long), Ok(long));
        assert_eq!(s.object.is_a(crate::support::BASE_ID), Ok(true));
    }
}

#[test]
fn every_lane_has_a_port_of_tls_and_serves_its_priority() {
    let place = Place::new();
    for endpoint in [TLS_ONLY, BOTH] {
        let server = orb_with(|config| {
            config.ssl = place.server.clone();
            config.lane_listen_endpoints = at_each_lane(endpoint);
        });
        let model = Policy::PriorityModel(PROPAGATED, corba(LANES[0]));
        let mut s = laned_by(server, Pool::Lanes, &[model]);
        let told = profile(&s.object).components;
        let told = told.iter().find(|told| told.tag == TAG_SSLIOP_LANES);
        let lanes = TaoEndpoint::decode(&told.expect("it tells the lanes").data);
        let lanes = lanes.expect("it is our own");
        let priorities: Vec<_> = lanes.iter().map(|lane| lane.priority).collect();
        assert_eq!(priorities, LANES);

        for protocols in [&["ssliop"][..], &["ssliop", "iiop"]] {
            let by_tls = orb_with(|config| {
                config.ssl = place.anonymous();
                config.listen_endpoints = Vec::new();
                config.protocols = protocols.iter().map(|name| name.to_string()).collect();
            });
            s.object = by_tls.ior_to_object(s.object.ior().clone()).expect("one");
            let before = std::mem::replace(&mut s.client, by_tls);
            // Its connections must be closed before others are counted.
            before.shutdown(true).expect("it runs");
            for (value, lane) in LANES.into_iter().zip(&lanes) {
                let (at, connected) = s.at(Some(value), || {
                    let (at, _) = priority(&s.object).expect("a lane");
                    (at, connections_to(lane.port).len())
                });
                assert_eq!((at, connected), (value, 1), "{endpoint} {protocols:?}");
            }
        }
    }
}

#[test]
fn a_server_that_offers_tls_alone_tells_no_other_port_of_its_lanes() {
    let place = Place::new();
    let server = orb_with(|config| {
        config.ssl = place.server.clone();
        config.lane_listen_endpoints = at_each_lane(BOTH);
    });
    let by_tls = Protocols::new(&[Protocol::Other(TAG_SSL_SEC_TRANS)]).expect("one is enough");
    let policies = [
        Policy::PriorityModel(PROPAGATED, corba(LANES[0])),
        Policy::ServerProtocol(by_tls),
    ];
    let s = laned_by(server, Pool::Lanes, &policies);
    let told = profile(&s.object);
    assert_eq!(told.port, 0);
    let tags: Vec<_> = told.components.iter().map(|told| told.tag).collect();
    assert!(tags.contains(&TAG_SSLIOP_LANES));
    assert!(!tags.contains(&TAG_TAO_ENDPOINTS));
}

#[test]
fn references_say_what_the_server_wants() {
    type Options = AssociationOptions;
    let place = Place::new();
    let protected = Options::INTEGRITY | Options::CONFIDENTIALITY;
    let s = served(orb_at(TLS_ONLY, &place.server), orb());
    assert_eq!(profile(&s.object).port, 0);
    assert_eq!(ssl(&s.object).target_requires, protected);
    assert!(ssl(&s.object).port != 0);

    let s = served(orb_at(TLS_ONLY, &mutual(&place.server)), orb());
    let with_client = protected | Options::ESTABLISH_TRUST_IN_CLIENT;
    assert_eq!(ssl(&s.object).target_requires, with_client);

    let s = served(orb_at(BOTH, &place.server), orb());
    assert!(profile(&s.object).port != 0);
    assert_eq!(ssl(&s.object).target_requires, Options::NO_PROTECTION);
    assert!(ssl(&s.object).target_supports.intersects(protected));
}

#[test]
fn where_both_ways_are_open_those_who_can_go_by_tls() {
    let place = Place::new();
    // The server sees the attempt of a client that does not trust it.
    let other = Place::new();
    let s = served(orb_at(BOTH, &place.server), client(&place.anonymous()));
    assert_eq!(add(&s.object, 1, 1), Ok(2));
    let text = s.server.object_to_string(&s.object);
    let at = |client: &Orb| client.string_to_object(&text).expect("it reads");

    let distrusting = client(&other.anonymous());
    assert_eq!(add(&at(&distrusting), 1, 1), Err(NO_PROTECTION));
    // A client without TLS uses the plain port.
    let plain = orb();
    assert_eq!(add(&at(&plain), 1, 1), Ok(2));
    let plain_first = orb_with(|config| {
        config.ssl = other.anonymous();
        config.protocols = vec!["iiop".to_owned(), "ssliop".to_owned()];
    });
    assert_eq!(add(&at(&plain_first), 1, 1), Ok(2));
    for orb in [distrusting, plain, plain_first] {
        orb.shutdown(true).expect("it serves nothing");
    }
}

#[test]
fn who_cannot_protect_does_not_call_where_protection_is_required() {
    let place = Place::new();
    let s = served(orb_at(TLS_ONLY, &place.server), orb());
    assert_eq!(add(&s.object, 1, 1), Err(NO_PROTECTION));
}

#[test]
fn what_requires_protection_is_never_called_without_it() {
    // As in references of omniORB: protection is required, and yet a plain port is given.
    let place = Place::new();
    let s = served(orb_at(BOTH, &place.server), orb());
    let mut profile = profile(&s.object);
    for component in &mut profile.components {
        if component.tag == TAG_SSL_SEC_TRANS {
            let required = SslSecTrans {
                target_requires: AssociationOptions(0x66),
                ..ssl(&s.object)
            };
            *component = Component::SslSecTrans(required)
                .tagged()
                .expect("it is short");
        }
    }
    let mut ior = s.object.ior().clone();
    ior.profiles[0].data = profile.encode().expect("it is whole");
    let plain = s
        .client
        .string_to_object(&ior.to_string())
        .expect("it reads");
    assert_eq!(add(&plain, 1, 1), Err(NO_PROTECTION));
    let with_tls = client(&place.anonymous());
    let protected = with_tls
        .string_to_object(&ior.to_string())
        .expect("it reads");
    assert_eq!(add(&protected, 1, 1), Ok(2));
    with_tls.shutdown(true).expect("it serves nothing");
}

#[test]
fn who_wants_protection_only_calls_nobody_without_it() {
    let place = Place::new();
    let careful = orb_with(|config| {
        config.listen_endpoints.clear();
        config.ssl = place.anonymous();
        config.protocols = vec!["ssliop".to_owned()];
    });
    let s = served(orb(), careful);
    assert_eq!(add(&s.object, 1, 1), Err(NO_PROTECTION));
}

#[test]
fn who_does_not_prove_who_it_is_gets_no_answer() {
    let place = Place::new();
    let server = TlsSettings {
        versions: "1.2".parse().expect("a version"),
        ..mutual(&place.server)
    };
    let s = served(orb_at(TLS_ONLY, &server), client(&place.anonymous()));
    assert_eq!(add(&s.object, 1, 1), Err(NO_PROTECTION));

    // In TLS 1.3 the refusal arrives after the request was sent.
    let s = served(
        orb_at(TLS_ONLY, &mutual(&place.server)),
        client(&place.anonymous()),
    );
    add(&s.object, 1, 1).expect_err("it is not served");
    let known = client(&place.authority.settings("radar", &[]));
    let text = s.server.object_to_string(&s.object);
    let object = known.string_to_object(&text).expect("it reads");
    assert_eq!(add(&object, 1, 1), Ok(2));
    known.shutdown(true).expect("it serves nothing");
}

#[test]
fn servants_learn_who_calls() {
    #[derive(Default)]
    struct Witness(Arc<PiMutex<Vec<Option<Vec<u8>>>>>);

    impl Skeleton for Witness {
        fn repository_id(&self) -> &'static str {
            "IDL:Test/Witness:1.0"
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
            let (a, b) = (d.read_i32()?, d.read_i32()?);
            self.0.lock().push(call.peer_certificate());
            let written = reply.normal()?.write_i32(a + b);
            written.map_err(chronorb_orb::codegen::v1::reply_error)
        }
    }

    let place = Place::new();
    let server = orb_at(BOTH, &mutual(&place.server));
    let seen = Arc::default();
    let root = server.root_poa().expect("the endpoints open");
    let object = root
        .serve(Witness(Arc::clone(&seen)))
        .expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let text = server.object_to_string(&object);
    let radar = place.authority.settings("radar", &[]);
    for client in [client(&radar), orb()] {
        let object = client.string_to_object(&text).expect("it reads");
        assert_eq!(add(&object, 1, 1), Ok(2));
        client.shutdown(true).expect("it serves nothing");
    }
    assert_eq!(add(&object, 1, 1), Ok(2), "from within the process");
    server.shutdown(true).expect("it runs");
    let of_radar = der(radar.certificate.as_deref().expect("there is one"));
    let seen = seen.lock();
    assert_eq!(*seen, [Some(of_radar), None, None]);
}

/// Returns the content between the lines of a PEM file.
fn der(file: &Path) -> Vec<u8> {
    let text = std::fs::read_to_string(file).expect("it is there");
    let digits = text.lines().filter(|line| !line.starts_with('-'));
    let digits: Vec<u8> = digits.flat_map(str::bytes).collect();
    let value = |digit: u8| match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut octets = Vec::new();
    for four in digits.chunks(4) {
        let bits = four
            .iter()
            .fold(0, |bits, digit| bits << 6 | u32::from(value(*digit)));
        let padding = four.iter().filter(|digit| **digit == b'=').count();
        octets.extend(&bits.to_be_bytes()[1..4 - padding]);
    }
    octets
}

#[test]
fn urls_name_tls_too() {
    let place = Place::new();
    let s = served(orb_at(TLS_ONLY, &place.server), client(&place.anonymous()));
    s.server
        .register_initial_reference("Probe", &s.object)
        .expect("the name is free");
    let url = format!(
        "corbaloc:ssliop:1.2@127.0.0.1:{}/Probe",
        ssl(&s.object).port
    );
    let object = s.client.string_to_object(&url).expect("a URL");
    assert_eq!(add(&object, 2, 2), Ok(4));
}

#[test]
fn connections_that_threads_share_carry_tls_as_well() {
    let place = Place::new();
    for strategy in SHARED {
        let client = orb_with(|config| {
            config.client_connection = strategy;
            config.ssl = place.anonymous();
        });
        let s = served(orb_at(TLS_ONLY, &place.server), client);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let object = &s.object;
                scope.spawn(move || {
                    for round in 0..100 {
                        assert_eq!(add(object, thread, round), Ok(thread + round));
                    }
                    let long = "y".repeat(70_000);
                    assert_eq!(echo(object, &long), Ok(long));
                });
            }
        });
    }
}

#[test]
fn who_connects_and_does_not_speak_is_sent_away() {
    let place = Place::new();
    with_longer_times(HANDSHAKE, |time_out| {
        let server = orb_with(|config| {
            config.listen_endpoints = parse_endpoints(TLS_ONLY).expect("an endpoint");
            config.ssl = place.server.clone();
            config.input_timeout = time_out;
        });
        let s = served(server, client(&place.anonymous()));
        let address = ("127.0.0.1", ssl(&s.object).port);
        let silent: Vec<_> = (0..20).map(|_| TcpStream::connect(address)).collect();
        add(&s.object, 1, 1).ok()?;
        for peer in silent {
            let mut peer = peer.expect("it listens");
            assert_eq!(peer.read(&mut [0]).unwrap_or(0), 0, "the end");
        }
        add(&s.object, 1, 1).ok()
    });
}

/// A time by which handshakes usually end.
const HANDSHAKE: Duration = Duration::from_millis(500);

#[test]
fn who_connects_and_does_not_speak_has_no_thread_for_good() {
    let place = Place::new();
    with_longer_times(HANDSHAKE, |time_out| {
        let server = orb_with(|config| {
            config.listen_endpoints = parse_endpoints(TLS_ONLY).expect("an endpoint");
            config.ssl = place.server.clone();
            config.input_timeout = time_out;
            config.threadpool_strategy = ThreadpoolStrategy::ThreadPerConnection;
        });
        let s = served(server, client(&place.anonymous()));
        let address = ("127.0.0.1", ssl(&s.object).port);
        let mut silent = TcpStream::connect(address).expect("it listens");
        let patience = Some(crate::support::PATIENCE);
        silent.set_read_timeout(patience).expect("it is open");
        add(&s.object, 1, 1).ok()?;
        assert_eq!(silent.read(&mut [0]).ok(), Some(0), "the end");
        // A peer that has sent a request may be silent for longer.
        add(&s.object, 1, 1).ok()?;
        let pools = s.server.snapshot().pools;
        (pools[0].lanes[0].accepted == 2).then_some(())
    });
}

#[test]
fn those_who_do_not_speak_do_not_keep_out_those_who_do() {
    let place = Place::new();
    let server = orb_with(|config| {
        config.listen_endpoints = parse_endpoints(TLS_ONLY).expect("an endpoint");
        config.ssl = place.server.clone();
        config.max_connections = 8;
        // This limit does not apply within the test.
        config.input_timeout = Duration::from_secs(600);
    });
    let s = served(server, client(&place.anonymous()));
    assert_eq!(add(&s.object, 1, 1), Ok(2));
    let text = s.server.object_to_string(&s.object);
    let address = ("127.0.0.1", ssl(&s.object).port);
    let silent: Vec<_> = (0..100).map(|_| TcpStream::connect(address)).collect();
    for _ in 0..3 {
        let late = client(&place.anonymous());
        let object = late.string_to_object(&text).expect("it reads");
        assert_eq!(add(&object, 1, 1), Ok(2));
        late.shutdown(true).expect("it serves nothing");
    }
    // The first peer still has its connection.
    assert_eq!(add(&s.object, 1, 1), Ok(2));
    let pools = s.server.snapshot().pools;
    assert_eq!(pools[0].lanes[0].accepted, 104);
    drop(silent);
}

#[test]
fn what_cannot_be_used_is_refused_when_the_orb_is_made() {
    let refused = |configure: &dyn Fn(&mut OrbConfig), word: &str| {
        let mut config = OrbConfig::default();
        configure(&mut config);
        let error = Orb::with_config(config).expect_err("it cannot be used");
        assert!(error.to_string().contains(word), "{word}: {error}");
    };
    let place = Place::new();
    let named = |config: &mut OrbConfig| config.protocols = vec!["ssliop".to_owned()];
    refused(&named, "-ORBSSLCertificate");
    refused(
        &|config| config.listen_endpoints = parse_endpoints(TLS_ONLY).expect("one"),
        "-ORBSSLCertificate",
    );
    refused(
        &|config| {
            config.listen_endpoints = parse_endpoints(TLS_ONLY).expect("one");
            config.ssl = place.anonymous();
        },
        "certificate",
    );
    let key = place.server.private_key.clone().expect("there is one");
    chmod(&key, Mode::from_raw_mode(0o644)).expect("it is ours");
    refused(&|config| config.ssl = place.server.clone(), "server.key");
}

#[test]
fn settings_have_the_names_that_the_book_says() {
    let mut args: Vec<String> = "program -ORBSSLCertificate c.pem -ORBSSLPrivateKey k.pem \
        -ORBSSLCertificateAuthority a.pem -ORBSSLRevocationList r.pem \
        -ORBSSLVerify mutual -ORBSSLVersions 1.3"
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let config = OrbConfig::read(&mut args).expect("they are right");
    let expected = TlsSettings {
        certificate: Some("c.pem".into()),
        private_key: Some("k.pem".into()),
        authority: Some("a.pem".into()),
        revocation_list: Some("r.pem".into()),
        verify: Verify::Mutual,
        versions: "1.3".parse().expect("a version"),
    };
    assert_eq!(config.ssl, expected);
    for (option, value) in [("-ORBSSLVerify", "all"), ("-ORBSSLVersions", "1.1")] {
        let mut args = vec![option.to_owned(), value.to_owned()];
        let error = OrbConfig::read(&mut args).expect_err("there is none");
        assert!(matches!(error, ConfigError::BadValue { .. }), "{error}");
    }
}
