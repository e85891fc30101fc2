//! TLS between programs that prove their identities to each other.

use std::os::unix::process::parent_id;
use std::path::Path;
use std::sync::OnceLock;

use chronorb_transport::tls::{Tls, TlsSettings, Verify};

use super::process::told;
use crate::certificates::Authority;
use crate::tls_peers::read;

/// TLS of one version. The other processes of a test have the certificates of the first.
pub(crate) fn of_version(version: &str) -> Tls {
    static SETTINGS: OnceLock<TlsSettings> = OnceLock::new();
    let settings = SETTINGS.get_or_init(|| {
        let first = told().map_or_else(std::process::id, |_| parent_id());
        let directory = format!("{}/conformance-{first}", env!("CARGO_TARGET_TMPDIR"));
        let directory = Path::new(&directory);
        if told().is_none() {
            return Authority::new(directory, "authority").settings("peer", &["127.0.0.1"]);
        }
        TlsSettings {
            certificate: Some(directory.join("peer.pem")),
            private_key: Some(directory.join("peer.key")),
            authority: Some(directory.join("authority.pem")),
            ..TlsSettings::default()
        }
    });
    Tls::new(read(&TlsSettings {
        verify: Verify::Mutual,
        versions: version.parse().expect("a version"),
        ..settings.clone()
    }))
}
