//! Failed TLS handshakes: the client's exception, and the log and the counter of the server.

use std::net::TcpStream;

use chronorb_orb::{Incident, Orb, OrbConfig, SystemExceptionKind as Kind};
use chronorb_transport::tls::{TlsSettings, Verify};

use super::{Adder, PATIENCE, add, count, fail, port_of, send_garbage, subscribed, told_of};
use crate::certificates::Authority;

fn orb(endpoint: Option<&str>, settings: TlsSettings) -> Orb {
    let mut config = OrbConfig::default();
    if let Some(endpoint) = endpoint {
        config.listen_endpoints = chronorb_orb::parse_endpoints(endpoint).expect("correct");
    }
    config.ssl = settings;
    Orb::with_config(config).expect("an ORB")
}

/// Waits until the server has counted this many failures.
fn reach(server: &Orb, failed: u64) {
    let deadline = chronorb_rt::Deadline::after(PATIENCE);
    while count(server, Incident::FailedHandshake) < failed {
        assert!(!deadline.has_passed(), "{failed} failed handshakes");
        std::thread::yield_now();
    }
}

#[test]
fn both_sides_are_told_why_a_handshake_failed() {
    let _turn = subscribed();
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(directory.path(), "authority");
    let other = Authority::new(directory.path(), "other");
    let mutual = TlsSettings {
        verify: Verify::Mutual,
        ..authority.settings("server", &["127.0.0.1"])
    };
    let server = orb(Some("ssliop://127.0.0.1:0"), mutual);
    let root = server.root_poa().expect("it runs");
    let object = root.serve(Adder).expect("active");
    root.manager().activate().expect("it runs");
    let text = server.object_to_string(&object);

    let believes_another = other.settings("stranger", &["127.0.0.1"]);
    let client = orb(None, believes_another);
    let exception = fail(&client.string_to_object(&text).expect("a reference"), "add");
    assert_eq!(exception.kind, Kind::NoPermission);
    let cause = client.last_failure().expect("it is known");
    assert!(cause.cause().contains("UnknownIssuer"), "{cause}");
    reach(&server, 1);
    let told = told_of("failed handshake");
    let last = told.last().expect("it is told");
    assert!(last.message.contains("UnknownCA"), "{told:?}");
    assert!(last.peer.starts_with("127.0.0.1:"), "{told:?}");

    // It trusts the server, but has a certificate of an authority that the server does not know.
    let unknown = TlsSettings {
        authority: Some(authority.file()),
        ..other.settings("stranger", &["127.0.0.1"])
    };
    let client = orb(None, unknown);
    let exception = fail(&client.string_to_object(&text).expect("a reference"), "add");
    let cause = client.last_failure().expect("it is known");
    assert_eq!(cause.exception(), exception);
    assert!(cause.cause().contains("127.0.0.1:"), "{cause}");
    reach(&server, 2);
    let told = told_of("failed handshake");
    assert!(
        told.last().expect("told").message.contains("UnknownIssuer"),
        "{told:?}"
    );

    send_garbage(ssl_port_of(&object));
    reach(&server, 3);
    let told = told_of("failed handshake");
    assert!(
        told.last()
            .expect("told")
            .message
            .contains("corrupt message"),
        "{told:?}"
    );
    drop(TcpStream::connect(("127.0.0.1", ssl_port_of(&object))).expect("it listens"));
    reach(&server, 4);
    server.shutdown(true).expect("not from a servant");
}

#[test]
fn an_expired_certificate_is_refused_at_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(directory.path(), "authority");
    let mut config = OrbConfig::default();
    config.ssl = authority.settings_of("server", &["127.0.0.1"], |params| {
        params.not_before = rcgen::date_time_ymd(2019, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    });
    let error = Orb::with_config(config)
        .expect_err("it has expired")
        .to_string();
    assert!(error.contains("server.pem: certificate expired"), "{error}");
}

#[test]
fn a_file_that_cannot_be_used_is_told_once_and_changes_nothing() {
    let _turn = subscribed();
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(directory.path(), "authority");
    let settings = authority.settings("server", &["127.0.0.1"]);
    let certificate = settings.certificate.clone().expect("it has one");
    let server = orb(Some("ssliop://127.0.0.1:0"), settings);
    let root = server.root_poa().expect("it runs");
    let text = server.object_to_string(&root.serve(Adder).expect("active"));
    root.manager().activate().expect("it runs");
    std::fs::write(certificate, "no certificate").expect("it is ours");

    // The files are looked at once a second.
    let deadline = chronorb_rt::Deadline::after(PATIENCE);
    let told = || told_of("unusable certificate");
    while told().is_empty() {
        assert!(!deadline.has_passed(), "the change is seen");
        let client = orb(None, authority.settings("client", &["127.0.0.1"]));
        let object = client.string_to_object(&text).expect("a reference");
        assert_eq!(add(&object, 1, 2), Ok(3));
        client.shutdown(true).expect("not from a servant");
        std::thread::yield_now();
    }
    assert!(told()[0].message.contains("server.pem"), "{:?}", told());
    server.shutdown(true).expect("not from a servant");
    assert_eq!(told().len(), 1);
}

/// Returns the TLS port in a component of the profile.
fn ssl_port_of(object: &chronorb_orb::Object) -> u16 {
    let profile = &object.ior().profiles[0];
    let profile = chronorb_giop::IiopProfile::decode(&profile.data).expect("it is IIOP");
    let ports = profile
        .components
        .iter()
        .find_map(|component| match component.typed() {
            Ok(chronorb_giop::Component::SslSecTrans(ssl)) => Some(ssl.port),
            _ => None,
        });
    ports.unwrap_or_else(|| port_of(object))
}
