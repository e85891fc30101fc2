//! Certificates that are replaced and revoked while a program runs.

use std::fs;

use chronorb_transport::tls::{CertificateNames, Tls, TlsConfigError, TlsSettings, Verify};
use chronorb_transport::{Acceptor, Setup, Transport};
use rcgen::SerialNumber;

use crate::certificates::Authority;
use crate::tls_peers::{accept, connect, listen, patience, read};

/// Returns the identity of the server as a client sees it.
fn subject_of_server(client: &Tls, acceptor: &dyn Acceptor) -> String {
    let address = &acceptor.published()[0];
    std::thread::scope(|scope| {
        let far = scope.spawn(|| {
            // The handshake is the client's wait, and goes on while the server receives.
            let far = accept(acceptor);
            let _ = far.recv(&mut [0; 1], patience());
        });
        let near = connect(client, address);
        let certificate = near.peer_certificate().expect("servers have one");
        let names = CertificateNames::read(&certificate).expect("it is well-formed");
        near.send_all(b"x", patience()).expect("it is taken");
        far.join().expect("no panic");
        names.subject
    })
}

/// Whether a client with this certificate can talk to a server with these settings.
fn is_believed(server: &TlsSettings, client: &TlsSettings) -> bool {
    let acceptor = listen(&Tls::new(read(server)));
    let address = &acceptor.published()[0];
    std::thread::scope(|scope| {
        let far = scope.spawn(|| accept(&*acceptor).recv(&mut [0; 1], patience()));
        let near = Tls::new(read(client)).connect(address, Setup::default(), patience());
        if let Ok(near) = &near {
            // With TLS 1.3 the client is done before the server has judged it.
            let _ = near.send_all(b"x", patience());
        }
        far.join().expect("no panic") == Ok(1)
    })
}

fn copy(from: &TlsSettings, to: &TlsSettings) {
    for (from, to) in [
        (&from.private_key, &to.private_key),
        (&from.certificate, &to.certificate),
    ] {
        let (Some(from), Some(to)) = (from, to) else {
            panic!("both have files");
        };
        fs::copy(from, to).expect("it can be replaced");
    }
}

#[test]
fn a_replaced_certificate_is_used_without_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(directory.path(), "authority");
    let own = authority.settings("before", &["127.0.0.1"]);
    let next = authority.settings("after", &["127.0.0.1"]);
    let client = Tls::new(read(&TlsSettings {
        authority: own.authority.clone(),
        ..TlsSettings::default()
    }));
    let server = Tls::new(read(&own));
    let acceptor = listen(&server);
    assert_eq!(subject_of_server(&client, &*acceptor), "CN=before");

    // A file that cannot be used changes nothing.
    let file = own.certificate.clone().expect("it has one");
    let before = fs::read(&file).expect("it is there");
    fs::write(&file, "nonsense").expect("it can be replaced");
    let problem = server.reload().expect_err("there is no certificate");
    assert!(problem.to_string().contains("no certificate"), "{problem}");
    assert_eq!(subject_of_server(&client, &*acceptor), "CN=before");
    fs::write(&file, before).expect("it can be replaced");

    copy(&next, &own);
    server.reload().expect("the files fit each other");
    assert_eq!(subject_of_server(&client, &*acceptor), "CN=after");

    // Without a word it is noticed at a handshake, within a second.
    copy(&authority.settings("later", &["127.0.0.1"]), &own);
    while subject_of_server(&client, &*acceptor) != "CN=later" {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn revoked_certificates_are_refused_on_both_sides() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(directory.path(), "authority");
    let numbered = |owner: &str, serial: u64| {
        authority.settings_of(owner, &["127.0.0.1"], |params| {
            params.serial_number = Some(SerialNumber::from(serial));
        })
    };
    let (server, radar, sonar) = (
        numbered("server", 1),
        numbered("radar", 2),
        numbered("sonar", 3),
    );
    let list = authority.revocation_list(&[3]);
    let mutual = TlsSettings {
        verify: Verify::Mutual,
        revocation_list: Some(list.clone()),
        ..server
    };
    assert!(is_believed(&mutual, &radar));
    assert!(!is_believed(&mutual, &sonar));
    // The same list judges servers.
    let wary = TlsSettings {
        revocation_list: Some(list),
        ..radar.clone()
    };
    assert!(is_believed(&mutual, &wary));
    assert!(!is_believed(&sonar, &wary));
    assert!(is_believed(&sonar, &radar));
}

#[test]
fn a_list_that_cannot_be_used_is_refused_with_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(directory.path(), "authority");
    let file = authority.file();
    let with = |list: Option<_>, authority| TlsSettings {
        authority,
        revocation_list: list,
        ..TlsSettings::default()
    };
    let read = |settings: &TlsSettings| chronorb_transport::tls::TlsConfig::read(settings);
    let error = read(&with(Some(file.clone()), Some(file.clone()))).expect_err("it has no list");
    assert!(matches!(error, TlsConfigError::Missing { .. }), "{error}");
    let error = read(&with(Some(file), None)).expect_err("it is not signed");
    assert!(
        matches!(error, TlsConfigError::RevocationWithoutAuthority { .. }),
        "{error}"
    );
}
