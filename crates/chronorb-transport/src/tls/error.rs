//! The errors of a configuration.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A configuration of TLS that cannot be used, or must not.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsConfigError {
    /// A file is not there, or not permitted.
    #[error("{}: cannot read the {what}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The expected content.
        what: &'static str,
        /// The system's word.
        source: io::Error,
    },
    /// A file lacks the expected content.
    #[error("{}: there is no {what} in PEM form (`-----BEGIN …`) in this file", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
        /// The expected content.
        what: &'static str,
    },
    /// The content of a file is malformed.
    #[error("{}: the {what} cannot be read: {problem}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The expected content.
        what: &'static str,
        /// The reason.
        problem: String,
    },
    /// The key is protected by a passphrase, which cannot be asked for.
    #[error("{}: the private key is encrypted; write it without a passphrase (`openssl pkey -in \
        …`) to a file that only its owner can read", file.display())]
    Encrypted {
        /// The file.
        file: PathBuf,
    },
    /// Other users can read the key. OpenSSH has the same rule for files of the user that runs it.
    #[error("{}: others can read the private key (mode {mode:04o}); `chmod 600` it, and use \
        another key if they may have done so", file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
        /// The permissions of the file.
        mode: u32,
    },
    /// The key is not that of the certificate.
    #[error(
        "{}: the private key does not belong to the certificate in {}",
        key.display(),
        certificate.display()
    )]
    KeyDoesNotFit {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
    },
    /// A certificate is not valid now.
    #[error("{}: {problem}", file.display())]
    OutOfDate {
        /// The file.
        file: PathBuf,
        /// Since when, or from when on.
        problem: String,
    },
    /// There is a key and no certificate for it.
    #[error("there is a private key ({}) and no certificate: give it too", key.display())]
    NoCertificate {
        /// The file of the key.
        key: PathBuf,
    },
    /// Clients must prove their identity, but no authorities are given.
    #[error(
        "clients must prove their identity, and there is no file of certificate authorities to \
         judge them by"
    )]
    NoAuthority,
    /// The list of revoked certificates cannot be used without authorities.
    #[error(
        "there is a list of revoked certificates ({}) and no file of certificate authorities",
        list.display()
    )]
    RevocationWithoutAuthority {
        /// The file of the list.
        list: PathBuf,
    },
    /// There is no such version, or it is not safe any more.
    #[error("there is no TLS version {0:?}: use 1.2, 1.3, or 1.2,1.3")]
    UnknownVersion(String),
    /// There is no such way to verify peers.
    #[error("peers cannot be verified by {0:?}: use none, peer or mutual")]
    UnknownVerify(String),
    /// TLS refuses it for another reason.
    #[error("TLS refuses this configuration: {0}")]
    Refused(String),
}
