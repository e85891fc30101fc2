//! The identity of a program, and the authorities that it trusts.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use chronorb_rt::log::{self, Event, Level, Limit};
use chronorb_rt::{Monotonic, PiMutex};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime,
};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, ClientConfig, Error, RootCertStore, ServerConfig};

use super::unverified::AnyPeerVerifier;
use super::{TlsConfigError, TlsVersions, files};
use crate::{Address, Endpoint, EndpointError};

/// The files that [`TlsConfig::read`] reads. All of them are in PEM form.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TlsSettings {
    /// The file of this program's certificate, followed by those that lead to an authority. A
    /// server needs one, and a client where servers ask for it.
    pub certificate: Option<PathBuf>,
    /// The file of the certificate's private key, without a passphrase, that only its owner can
    /// read; the file of the certificate if it is left out.
    pub private_key: Option<PathBuf>,
    /// The file of the certificate authorities to trust. A client needs it, and so does a server
    /// that verifies clients.
    pub authority: Option<PathBuf>,
    /// The file of lists of revoked certificates (CRL), which need an authority. Peers whose
    /// certificates are in them are refused, and so are those of whose issuer there is no list.
    pub revocation_list: Option<PathBuf>,
    /// The peers that must prove their identity.
    pub verify: Verify,
    /// The versions of TLS.
    pub versions: TlsVersions,
}

/// The peers that must prove their identity.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Verify {
    /// No peer. Messages are encrypted, but every process that pretends to be the peer can read
    /// them. For tests.
    None,
    /// Servers, to this program as a client.
    #[default]
    Peer,
    /// Servers, and the clients of this program as a server.
    Mutual,
}

/// Reads `none`, `peer` or `mutual`.
impl FromStr for Verify {
    type Err = TlsConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::None),
            "peer" => Ok(Self::Peer),
            "mutual" => Ok(Self::Mutual),
            other => Err(TlsConfigError::UnknownVerify(other.to_owned())),
        }
    }
}

/// A configuration whose files have been read, and found fit for use. Clones are the same
/// configuration.
///
/// Changed files are read again: at a handshake, at most once a second, and by
/// [`reload`](Self::reload). Unusable files leave the configuration unchanged; the log reports that
/// once, as `unusable certificate`. Existing connections do not change.
///
/// Sessions are never resumed: connections last long, and each one proves the identities anew.
#[derive(Clone)]
pub struct TlsConfig {
    settings: Arc<TlsSettings>,
    current: Arc<PiMutex<Current>>,
}

/// The configuration made of the files when they were read last.
struct Current {
    loaded: Credentials,
    /// The state of the files before they were read.
    stamps: Vec<Option<Stamp>>,
    /// When they are looked at next.
    next_look: Monotonic,
}

/// The content of the files.
#[derive(Clone)]
struct Credentials {
    /// The certificate of this program, where it has one.
    own: Option<CertificateDer<'static>>,
    client: Option<Arc<ClientConfig>>,
    server: Option<Arc<ServerConfig>>,
}

/// The properties of a file that change with its content: its number, length and time.
type Stamp = (u64, u64, i64, i64);

impl TlsConfig {
    /// Reads the files, and checks that they fit each other and the present time.
    ///
    /// # Errors
    /// [`TlsConfigError`] names the file and the reason.
    pub fn read(settings: &TlsSettings) -> Result<Self, TlsConfigError> {
        let stamps = stamps(settings);
        let loaded = Credentials::read(settings)?;
        Ok(Self {
            settings: Arc::new(settings.clone()),
            current: Arc::new(PiMutex::new(Current {
                loaded,
                stamps,
                next_look: Monotonic::now() + LOOK_PAUSE,
            })),
        })
    }

    /// Reads the files again, for connections from now on.
    ///
    /// # Errors
    /// As [`read`](Self::read). The configuration stays as it was then.
    pub fn reload(&self) -> Result<(), TlsConfigError> {
        let stamps = stamps(&self.settings);
        let loaded = Credentials::read(&self.settings)?;
        let mut current = self.current.lock();
        (current.loaded, current.stamps) = (loaded, stamps);
        Ok(())
    }

    /// The content of the files at present.
    fn current(&self) -> Credentials {
        let now = Monotonic::now();
        let mut current = self.current.lock();
        if now < current.next_look {
            return current.loaded.clone();
        }
        current.next_look = now + LOOK_PAUSE;
        let (loaded, before) = (current.loaded.clone(), current.stamps.clone());
        // Other threads use the present configuration meanwhile.
        drop(current);
        let stamps = stamps(&self.settings);
        if stamps == before {
            return loaded;
        }
        let reloaded = self.reload();
        let mut current = self.current.lock();
        if let Err(error) = reloaded {
            // Until they change once more.
            current.stamps = stamps;
            log::tell(&Event {
                level: Level::Warn,
                cause: "unusable certificate",
                peer: &"",
                number: 0,
                detail: &error,
                limit: Limit::NONE,
            });
        }
        current.loaded.clone()
    }

    /// Returns which peers must prove their identity.
    #[must_use]
    pub fn verify(&self) -> Verify {
        self.settings.verify
    }

    /// Whether it can listen: it has a certificate.
    #[must_use]
    pub fn can_listen(&self) -> bool {
        self.current.lock().loaded.server.is_some()
    }

    /// Whether it can connect: it has authorities to trust, or verifies no peer.
    #[must_use]
    pub fn can_connect(&self) -> bool {
        self.current.lock().loaded.client.is_some()
    }

    /// Returns the configuration of the connecting side, or the missing part.
    pub(super) fn client(&self) -> Result<Arc<ClientConfig>, &'static str> {
        let missing = "this program has no certificate authority to judge servers by";
        self.current().client.ok_or(missing)
    }

    /// Returns the configuration of the accepting side; `None` without a certificate.
    pub(super) fn acceptor(&self) -> Option<Arc<ServerConfig>> {
        self.current().server
    }

    /// Returns the configuration of the listening side.
    pub(super) fn server(&self, endpoint: &Endpoint) -> Result<Arc<ServerConfig>, EndpointError> {
        let missing = || endpoint.error("a server needs a certificate and its private key");
        self.acceptor().ok_or_else(missing)
    }

    /// Checks that the certificate has the name by which clients address this program.
    pub(super) fn check_own_name(
        &self,
        endpoint: &Endpoint,
        address: &Address,
    ) -> Result<(), EndpointError> {
        let own = self.current().own;
        let (Some(own), Some((host, _))) = (own, address.as_host()) else {
            return Ok(());
        };
        if self.verify() == Verify::None || is_for(&own, host) {
            return Ok(());
        }
        Err(endpoint.error(format!(
            "the certificate is not for {host}, which references would name; give a name that it \
             is for by hostname_in_ior"
        )))
    }
}

impl Credentials {
    fn read(settings: &TlsSettings) -> Result<Self, TlsConfigError> {
        let provider = Arc::new(ring::default_provider());
        let identity = Identity::read(settings, &provider)?;
        let roots = match &settings.authority {
            Some(file) => Some(Arc::new(read_roots(file)?)),
            None if settings.verify == Verify::Mutual => return Err(TlsConfigError::NoAuthority),
            None => None,
        };
        let revoked = match &settings.revocation_list {
            Some(list) if roots.is_none() => {
                let list = list.clone();
                return Err(TlsConfigError::RevocationWithoutAuthority { list });
            }
            Some(list) => files::revocation_lists(list)?,
            None => Vec::new(),
        };
        let judges = roots.as_ref().map(|roots| (roots, &revoked[..]));
        Ok(Self {
            own: identity.as_ref().map(|identity| identity.chain[0].clone()),
            client: client(settings, &provider, identity.as_ref(), judges)?.map(Arc::new),
            server: match &identity {
                Some(identity) => Some(server(settings, &provider, identity, judges)?.into()),
                None => None,
            },
        })
    }
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConfig")
            .field("verify", &self.verify())
            .field("can_listen", &self.can_listen())
            .field("can_connect", &self.can_connect())
            .finish_non_exhaustive()
    }
}

/// A certificate, those that lead from it to an authority, and its key.
struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    fn read(
        settings: &TlsSettings,
        provider: &CryptoProvider,
    ) -> Result<Option<Self>, TlsConfigError> {
        let file = match (&settings.certificate, &settings.private_key) {
            (Some(file), _) => file,
            (None, Some(key)) => return Err(TlsConfigError::NoCertificate { key: key.clone() }),
            (None, None) => return Ok(None),
        };
        let key_file = settings.private_key.as_ref().unwrap_or(file);
        let chain = files::certificates(file, "certificate")?;
        let key = files::private_key(key_file)?;
        match CertifiedKey::from_der(chain.clone(), key.clone_key(), provider) {
            Ok(_) => {}
            Err(Error::InconsistentKeys(_)) => {
                return Err(TlsConfigError::KeyDoesNotFit {
                    key: key_file.clone(),
                    certificate: file.clone(),
                });
            }
            Err(Error::InvalidCertificate(problem)) => {
                return Err(files::malformed(file, "certificate", problem));
            }
            Err(problem) => return Err(files::malformed(key_file, "private key", problem)),
        }
        check_dates(file, &chain, provider)?;
        Ok(Some(Self { chain, key }))
    }
}

/// Checks that each certificate of a chain is valid now. A peer would refuse it otherwise.
fn check_dates(
    file: &Path,
    chain: &[CertificateDer<'static>],
    provider: &CryptoProvider,
) -> Result<(), TlsConfigError> {
    let now = UnixTime::now();
    for certificate in chain {
        let out_of_date = |problem: &CertificateError| TlsConfigError::OutOfDate {
            file: file.to_owned(),
            problem: problem.to_string(),
        };
        let mut itself = RootCertStore::empty();
        itself
            .add(certificate.clone())
            .map_err(|problem| files::malformed(file, "certificate", problem))?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(itself.into(), provider.clone().into())
                .build()
                .map_err(|error| TlsConfigError::Refused(error.to_string()))?;
        // Any name: the dates are checked before it, and everything else is for the peer to judge.
        let name = ServerName::from(std::net::Ipv4Addr::LOCALHOST);
        let judged = verifier.verify_server_cert(certificate, &[], &name, &[], now);
        if let Err(Error::InvalidCertificate(problem)) = judged
            && matches!(
                problem,
                CertificateError::Expired
                    | CertificateError::ExpiredContext { .. }
                    | CertificateError::NotValidYet
                    | CertificateError::NotValidYetContext { .. }
            )
        {
            return Err(out_of_date(&problem));
        }
    }
    Ok(())
}

/// The state of all files of a configuration.
fn stamps(settings: &TlsSettings) -> Vec<Option<Stamp>> {
    let files = [
        &settings.certificate,
        &settings.private_key,
        &settings.authority,
        &settings.revocation_list,
    ];
    let stamp = |file: &PathBuf| {
        let about = std::fs::metadata(file).ok()?;
        Some((about.ino(), about.len(), about.mtime(), about.mtime_nsec()))
    };
    let files = files.into_iter().flatten();
    files.map(stamp).collect()
}

fn is_for(certificate: &CertificateDer<'_>, host: &str) -> bool {
    let (Ok(parsed), Ok(name)) = (
        ParsedCertificate::try_from(certificate),
        ServerName::try_from(host),
    ) else {
        return false;
    };
    verify_server_name(&parsed, &name).is_ok()
}

fn read_roots(file: &Path) -> Result<RootCertStore, TlsConfigError> {
    let what = "certificate of an authority";
    let mut roots = RootCertStore::empty();
    for certificate in files::certificates(file, what)? {
        let added = roots.add(certificate);
        added.map_err(|problem| files::malformed(file, what, problem))?;
    }
    Ok(roots)
}

/// Authorities, and the lists of certificates that they have revoked.
type Judges<'j> = (
    &'j Arc<RootCertStore>,
    &'j [CertificateRevocationListDer<'static>],
);

fn client(
    settings: &TlsSettings,
    provider: &Arc<CryptoProvider>,
    identity: Option<&Identity>,
    judges: Option<Judges<'_>>,
) -> Result<Option<ClientConfig>, TlsConfigError> {
    let verifier: Arc<dyn ServerCertVerifier> = match (settings.verify, judges) {
        (Verify::None, _) => Arc::new(AnyPeerVerifier(provider.clone())),
        (_, None) => return Ok(None),
        (_, Some((roots, revoked))) => {
            WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone())
                .with_crls(revoked.iter().cloned())
                .build()
                .map_err(|error| TlsConfigError::Refused(error.to_string()))?
        }
    };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&settings.versions.supported())
        .map_err(refused)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match identity {
        Some(Identity { chain, key }) => builder
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(refused)?,
        None => builder.with_no_client_auth(),
    };
    config.resumption = Resumption::disabled();
    Ok(Some(config))
}

fn server(
    settings: &TlsSettings,
    provider: &Arc<CryptoProvider>,
    identity: &Identity,
    judges: Option<Judges<'_>>,
) -> Result<ServerConfig, TlsConfigError> {
    let verifier: Arc<dyn ClientCertVerifier> = match (settings.verify, judges) {
        (Verify::Mutual, Some((roots, revoked))) => {
            WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
                .with_crls(revoked.iter().cloned())
                .build()
                .map_err(|error| TlsConfigError::Refused(error.to_string()))?
        }
        _ => WebPkiClientVerifier::no_client_auth(),
    };
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&settings.versions.supported())
        .map_err(refused)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain.clone(), identity.key.clone_key())
        .map_err(refused)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn refused(error: Error) -> TlsConfigError {
    TlsConfigError::Refused(error.to_string())
}

/// The interval at which handshakes check whether the files have changed.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
