//! Calls between chronorb and omniORB by TLS with mutual authentication.

use std::fs;
use std::path::{Path, PathBuf};

use chronorb_transport::tls::TlsSettings;
use tempfile::TempDir;

use crate::certificates::{Authority, only_for_the_owner};
use crate::support::peers::{OMNIORB, require};
use crate::support::programs::{Server, Side, run_ssl_client};

/// The certificates of a client and a server.
struct Place {
    directory: TempDir,
    authority: Authority,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let authority = Authority::new(directory.path(), "authority");
        Self {
            directory,
            authority,
        }
    }

    /// Returns the options of a program that proves its identity, and requires that of its peers.
    fn options(&self, side: Side, owner: &str) -> Vec<String> {
        let settings = self.authority.settings(owner, &["127.0.0.1", "localhost"]);
        let text = |path: PathBuf| path.display().to_string();
        match side {
            Side::Chronorb => vec![
                "-ORBSSLCertificate".to_owned(),
                text(settings.certificate.expect("there is one")),
                "-ORBSSLPrivateKey".to_owned(),
                text(settings.private_key.expect("there is one")),
                "-ORBSSLCertificateAuthority".to_owned(),
                text(self.authority.file()),
                "-ORBSSLVerify".to_owned(),
                "mutual".to_owned(),
            ],
            Side::OmniOrb => vec![
                "-ORBsslKeyFile".to_owned(),
                text(joined(self.directory.path(), owner, &settings)),
                "-ORBsslCAFile".to_owned(),
                text(self.authority.file()),
                // Without a password option it loads no key at all, even if the key needs none.
                "-ORBsslKeyPassword".to_owned(),
                "unused".to_owned(),
                "-ORBsslVerifyMode".to_owned(),
                "peer,fail".to_owned(),
            ],
        }
    }
}

/// Returns a file with certificate and key, as omniORB requires.
fn joined(directory: &Path, owner: &str, settings: &TlsSettings) -> PathBuf {
    let read = |file: &Option<PathBuf>| {
        let file = file.as_ref().expect("there is one");
        fs::read_to_string(file).expect("it is there")
    };
    let file = directory.join(format!("{owner}-both.pem"));
    let both = read(&settings.certificate) + &read(&settings.private_key);
    fs::write(&file, both).expect("room on the disk");
    only_for_the_owner(&file);
    file
}

/// Makes one side's client check the other side's server; chronorb uses these versions of TLS.
fn check(client: Side, server: Side, versions: &str, options: &[&str]) {
    if [client, server].contains(&Side::OmniOrb) && !require(&[&OMNIORB]) {
        return;
    }
    let place = Place::new();
    let of = |side: Side, owner: &str| {
        let mut all = place.options(side, owner);
        if side == Side::Chronorb {
            all.extend(["-ORBSSLVersions".to_owned(), versions.to_owned()]);
        }
        all
    };
    // The URLs are those of IIOP.
    let options = [options, &["--skip", "corbaloc"]].concat();
    let (of_server, of_client) = (of(server, "server"), of(client, "client"));
    let of_server: Vec<_> = of_server.iter().map(String::as_str).collect();
    let mut of_client: Vec<_> = of_client.iter().map(String::as_str).collect();
    of_client.extend(options);
    let server = Server::start_ssl(server, &of_server);
    run_ssl_client(client, &server.ior, &of_client);
}

#[test]
fn omniorb_calls_chronorb_in_tls_1_3() {
    check(Side::OmniOrb, Side::Chronorb, "1.3", &["--utf8"]);
}

#[test]
fn omniorb_calls_chronorb_in_tls_1_2() {
    check(Side::OmniOrb, Side::Chronorb, "1.2", &["--utf8"]);
}

#[test]
fn chronorb_calls_omniorb_in_tls_1_3() {
    check(Side::Chronorb, Side::OmniOrb, "1.3", &["--skip", "precise"]);
}

#[test]
fn chronorb_calls_omniorb_in_tls_1_2() {
    check(Side::Chronorb, Side::OmniOrb, "1.2", &["--skip", "precise"]);
}

#[test]
fn chronorb_calls_chronorb() {
    check(Side::Chronorb, Side::Chronorb, "1.2,1.3", &["--utf8"]);
}
