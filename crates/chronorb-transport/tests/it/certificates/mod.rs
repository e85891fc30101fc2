//! Certificates that last for the time of a test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use chronorb_transport::tls::TlsSettings;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer,
    KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};

/// An authority, and the directory in which it puts what it makes.
pub(crate) struct Authority {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    file: PathBuf,
}

impl Authority {
    pub(crate) fn new(directory: &Path, name: &str) -> Self {
        fs::create_dir_all(directory).expect("a directory");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let file = directory.join(format!("{name}.pem"));
        fs::write(&file, certificate.pem()).expect("room on the disk");
        Self {
            directory: directory.to_owned(),
            issuer: Issuer::new(params, key),
            file,
        }
    }

    /// The file of its own certificate.
    pub(crate) fn file(&self) -> PathBuf {
        self.file.clone()
    }

    /// The file of its list of revoked certificates, with these serial numbers.
    #[allow(dead_code, reason = "not every program of tests revokes certificates")]
    pub(crate) fn revocation_list(&self, serials: &[u64]) -> PathBuf {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(4000, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer).expect("a list");
        let file = self.directory.join("revoked.pem");
        fs::write(&file, list.pem().expect("it is text")).expect("room on the disk");
        file
    }

    /// A certificate and its key for these host names and addresses, as settings that believe this
    /// authority.
    pub(crate) fn settings(&self, owner: &str, names: &[&str]) -> TlsSettings {
        self.settings_of(owner, names, |_| {})
    }

    /// As [`settings`](Self::settings), with a certificate that `change` has changed.
    pub(crate) fn settings_of(
        &self,
        owner: &str,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> TlsSettings {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, owner);
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let certificate_file = self.directory.join(format!("{owner}.pem"));
        let key_file = self.directory.join(format!("{owner}.key"));
        fs::write(&certificate_file, certificate.pem()).expect("room on the disk");
        fs::write(&key_file, key.serialize_pem()).expect("room on the disk");
        only_for_the_owner(&key_file);
        TlsSettings {
            certificate: Some(certificate_file),
            private_key: Some(key_file),
            authority: Some(self.file()),
            ..TlsSettings::default()
        }
    }
}

pub(crate) fn only_for_the_owner(file: &Path) {
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("it is ours");
}
