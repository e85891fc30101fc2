//! Configurations of TLS that cannot work, or must not, are refused by name before the first
//! connection.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use chronorb_transport::tls::{Tls, TlsConfig, TlsConfigError, TlsSettings, TlsVersions, Verify};
use chronorb_transport::{Endpoint, Setup, Transport, parse_endpoints};
use rcgen::date_time_ymd;
use tempfile::TempDir;

use crate::certificates::{Authority, only_for_the_owner};
use crate::tls_peers::read;

fn authority() -> (TempDir, Authority) {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(directory.path(), "authority");
    (directory, authority)
}

/// The error of settings that are wrong, which names what is.
#[track_caller]
fn refused(settings: &TlsSettings, words: &[&str]) -> TlsConfigError {
    let error = TlsConfig::read(settings).expect_err("they are wrong");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
    error
}

fn endpoint(text: &str) -> Endpoint {
    parse_endpoints(text).expect("an endpoint").remove(0)
}

fn key_of(settings: &TlsSettings) -> &Path {
    settings.private_key.as_deref().expect("there is one")
}

#[test]
fn what_fits_is_taken() {
    let (_directory, authority) = authority();
    let config = read(&authority.settings("radar", &["radar.example"]));
    assert!(config.can_listen() && config.can_connect());
    assert_eq!(config.verify(), Verify::Peer);
}

#[test]
fn a_key_of_another_certificate() {
    let (_directory, authority) = authority();
    let radar = authority.settings("radar", &["radar.example"]);
    let other = authority.settings("other", &["other.example"]);
    let settings = TlsSettings {
        private_key: other.private_key,
        ..radar
    };
    let error = refused(&settings, &["other.key", "radar.pem"]);
    assert!(matches!(error, TlsConfigError::KeyDoesNotFit { .. }));
}

#[test]
fn a_certificate_that_is_not_valid_any_more() {
    let (_directory, authority) = authority();
    let settings = authority.settings_of("radar", &["radar.example"], |params| {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    });
    let error = refused(&settings, &["radar.pem", "expired"]);
    assert!(matches!(error, TlsConfigError::OutOfDate { .. }));
}

#[test]
fn a_certificate_that_is_not_valid_yet() {
    let (_directory, authority) = authority();
    let settings = authority.settings_of("radar", &["radar.example"], |params| {
        params.not_before = date_time_ymd(4000, 1, 1);
        params.not_after = date_time_ymd(4001, 1, 1);
    });
    let error = refused(&settings, &["radar.pem", "not valid yet"]);
    assert!(matches!(error, TlsConfigError::OutOfDate { .. }));
}

#[test]
fn a_key_that_others_can_read() {
    let (_directory, authority) = authority();
    let settings = authority.settings("radar", &["radar.example"]);
    for mode in [0o640, 0o604, 0o622] {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(key_of(&settings), permissions).expect("it is ours");
        let error = refused(&settings, &["radar.key", &format!("{mode:04o}"), "chmod"]);
        assert!(matches!(error, TlsConfigError::Exposed { .. }));
    }
    for mode in [0o600, 0o400] {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(key_of(&settings), permissions).expect("it is ours");
        read(&settings);
    }
}

#[test]
fn a_certificate_whose_key_was_not_named() {
    let (_directory, authority) = authority();
    let settings = TlsSettings {
        private_key: None,
        ..authority.settings("radar", &["radar.example"])
    };
    let certificate = settings.certificate.as_ref().expect("there is one");
    // As files of certificates are.
    fs::set_permissions(certificate, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let error = refused(&settings, &["radar.pem", "no private key"]);
    assert!(matches!(error, TlsConfigError::Missing { .. }));
}

#[test]
fn a_key_with_a_passphrase() {
    let (_directory, authority) = authority();
    let settings = authority.settings("radar", &["radar.example"]);
    let begin =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n";
    fs::write(key_of(&settings), begin).expect("room on the disk");
    let error = refused(&settings, &["radar.key", "passphrase"]);
    assert!(matches!(error, TlsConfigError::Encrypted { .. }));
}

#[test]
fn clients_to_be_judged_by_nobody() {
    let (_directory, authority) = authority();
    let settings = TlsSettings {
        authority: None,
        verify: Verify::Mutual,
        ..authority.settings("radar", &["radar.example"])
    };
    let error = refused(&settings, &["authorities"]);
    assert!(matches!(error, TlsConfigError::NoAuthority));
}

#[test]
fn a_key_without_a_certificate() {
    let (_directory, authority) = authority();
    let settings = TlsSettings {
        certificate: None,
        ..authority.settings("radar", &["radar.example"])
    };
    let error = refused(&settings, &["radar.key", "no certificate"]);
    assert!(matches!(error, TlsConfigError::NoCertificate { .. }));
}

#[test]
fn files_that_are_missing_empty_or_something_else() {
    let (directory, authority) = authority();
    let right = authority.settings("radar", &["radar.example"]);
    let bad = directory.path().join("bad");
    let changes: [fn(&mut TlsSettings, PathBuf); 3] = [
        |settings, bad| settings.certificate = Some(bad),
        |settings, bad| settings.private_key = Some(bad),
        |settings, bad| settings.authority = Some(bad),
    ];
    for change in changes {
        let mut settings = right.clone();
        change(&mut settings, bad.clone());

        fs::remove_file(&bad).ok();
        let error = refused(&settings, &["bad", "cannot read"]);
        assert!(matches!(error, TlsConfigError::Unreadable { .. }));
        for nothing in ["", "certificate, to be done\n"] {
            fs::write(&bad, nothing).expect("room on the disk");
            only_for_the_owner(&bad);
            let error = refused(&settings, &["bad", "PEM"]);
            assert!(matches!(error, TlsConfigError::Missing { .. }));
        }
        for kind in ["CERTIFICATE", "PRIVATE KEY"] {
            let rubbish = format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
            fs::write(&bad, rubbish).expect("room on the disk");
            refused(&settings, &["bad"]);
        }
        fs::write(&bad, "-----BEGIN CERTIFICATE-----\nMIIB").expect("room on the disk");
        refused(&settings, &["bad"]);
    }
}

#[test]
fn versions_and_ways_to_verify_that_there_are_not() {
    for text in ["1.1", "1.2,ssl3", "", "tls1.3"] {
        let error = text.parse::<TlsVersions>().expect_err(text);
        assert!(matches!(error, TlsConfigError::UnknownVersion(_)));
    }
    assert!(matches!("1.3, 1.2".parse(), Ok(TlsVersions::Both)));
    assert!(matches!("1.3".parse(), Ok(TlsVersions::Tls13)));
    for text in ["", "all", "Peer"] {
        let error = text.parse::<Verify>().expect_err(text);
        assert!(matches!(error, TlsConfigError::UnknownVerify(_)));
    }
}

#[test]
fn a_server_without_a_certificate() {
    let (_directory, authority) = authority();
    let client = Tls::new(read(&TlsSettings {
        authority: Some(authority.file()),
        ..TlsSettings::default()
    }));
    let endpoint = endpoint("ssliop://127.0.0.1:0");
    let error = client.check(&endpoint).expect_err("it cannot");
    assert!(error.to_string().contains("certificate"), "{error}");
    let error = client.listen(&endpoint, Setup::default());
    let error = error.expect_err("it cannot").to_string();
    assert!(error.contains("certificate"), "{error}");
}

#[test]
fn a_certificate_for_another_name_than_references_have() {
    let (_directory, authority) = authority();
    let settings = authority.settings("radar", &["radar.example", "127.0.0.2"]);
    let server = Tls::new(read(&settings));
    let listen = |text: &str| server.listen(&endpoint(text), Setup::default());
    let error = listen("ssliop://127.0.0.1:0").expect_err("another address");
    assert!(error.to_string().contains("hostname_in_ior"), "{error}");
    let error = listen("ssliop://127.0.0.1:0/hostname_in_ior=sonar.example");
    let error = error.expect_err("another name").to_string();
    assert!(error.contains("sonar.example"), "{error}");
    listen("ssliop://127.0.0.2:0").expect("its address");
    listen("ssliop://127.0.0.1:0/hostname_in_ior=radar.example").expect("its name");

    // A program that verifies no peer is not held up by names either.
    let unverified = Tls::new(read(&TlsSettings {
        verify: Verify::None,
        ..settings
    }));
    let opened = unverified.listen(&endpoint("ssliop://127.0.0.1:0"), Setup::default());
    opened.expect("a free port");
}
